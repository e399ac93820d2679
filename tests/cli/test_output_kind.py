"""Whatever a network returns, the odds of the classes are those of its logits."""

from __future__ import annotations

import pytest
import torch

from pipeline.cli.output_kind import KINDS, Kind, check_kind, class_scores, detected_kind

LOGITS = torch.randn(200, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 3
ODDS = LOGITS[:, 1] - LOGITS[:, 0]
P = torch.sigmoid(ODDS)

RETURNED: dict[str, tuple[Kind, torch.Tensor]] = {
    "two logits": ("logits", LOGITS),
    "two log-probabilities": ("log-probabilities", LOGITS.log_softmax(1)),
    "two probabilities": ("probability", LOGITS.softmax(1)),
    "a logit": ("logits", ODDS),
    "a logit in a column": ("logits", ODDS[:, None]),
    "a probability": ("probability", P),
    "a probability in a column": ("probability", P[:, None]),
}


@pytest.mark.parametrize("form", RETURNED)
def test_every_form_is_recognised_and_gives_the_same_odds(form: str) -> None:
    kind, output = RETURNED[form]
    assert detected_kind(output) == kind
    assert detected_kind(output.float()) == kind
    check_kind(output, kind)
    scores = class_scores(kind)(output)
    assert scores.shape == (200, 2)
    torch.testing.assert_close(scores[:, 1] - scores[:, 0], ODDS)


def test_one_log_probability_can_be_told_but_not_guessed() -> None:
    scores = class_scores("log-probabilities")(P.log())
    torch.testing.assert_close(scores[:, 1] - scores[:, 0], ODDS)
    assert detected_kind(P.log()) == "logits"


@pytest.mark.parametrize("form", RETURNED)
def test_the_gradient_is_that_of_the_odds(form: str) -> None:
    kind, _ = RETURNED[form]
    x = ODDS.clone().requires_grad_(True)
    raw = {
        "two logits": lambda: torch.stack((-x / 2, x / 2), 1),
        "two log-probabilities": lambda: torch.stack((-x / 2, x / 2), 1).log_softmax(1),
        "two probabilities": lambda: torch.stack((-x / 2, x / 2), 1).softmax(1),
        "a logit": lambda: x,
        "a logit in a column": lambda: x[:, None],
        "a probability": lambda: torch.sigmoid(x),
        "a probability in a column": lambda: torch.sigmoid(x)[:, None],
    }[form]()
    scores = class_scores(kind)(raw)
    (gradient,) = torch.autograd.grad((scores[:, 1] - scores[:, 0]).sum(), x)
    torch.testing.assert_close(gradient, torch.ones_like(gradient))


def test_values_against_the_told_kind_are_refused() -> None:
    with pytest.raises(ValueError, match=r"--output-kind probability: expected values in \[0, 1\], found -.*logits"):
        check_kind(LOGITS, "probability")
    with pytest.raises(ValueError, match=r"--output-kind log-probabilities: expected values of at most 0, found"):
        check_kind(LOGITS, "log-probabilities")
    for kind in KINDS:
        check_kind(P if kind == "probability" else P.log(), kind)
