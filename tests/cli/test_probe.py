"""A network that cannot be audited is refused before the audit, with what was expected, found and to be done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.cli.audit.robustness.classifier import image_form
from pipeline.cli.network import Network
from pipeline.cli.probe import (
    Scores,
    check_alone,
    check_finite,
    check_gradient,
    output_caveats,
    probed,
    read,
    tensor_of,
)

X = torch.randn(40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
NAMES = ("age", "pay", "score")
W = torch.tensor([[1.0, -1.0], [0.5, 0.0], [2.0, 1.0]], dtype=torch.float64)


def probe(function: Callable[[torch.Tensor], Any], kind: Any = None) -> Scores:
    """Try a function on the rows X."""
    return probed(Network(function, "test", None), X, NAMES, kind)


def test_a_good_network_passes_with_its_probabilities() -> None:
    scores = probe(lambda x: x @ W)
    assert (scores.kind, scores.detected, scores.columns, scores.saturated) == ("logits", True, 2, 0)
    np.testing.assert_allclose(scores.probability, (X @ W).softmax(1)[:, 1])
    torch.testing.assert_close(scores.evaluate(X), X @ W)
    one = probe(lambda x: torch.sigmoid((x @ W)[:, 0]), "probability")
    assert (one.kind, one.detected, one.columns) == ("probability", False, 1)


def test_rows_with_a_saturated_probability_are_counted() -> None:
    far = (X[:, 0] > 0.5).double() * 1e4
    scores = probe(lambda x: torch.sigmoid(x[:, 0] + far[: len(x)]))
    assert scores.saturated == int((X[:, 0] > 0.5).sum()) > 0
    assert [caveat.condition for caveat in output_caveats(scores, "row")] == ["read_as_probabilities", "saturated"]
    assert f"exactly 0 or 1 in {scores.saturated} rows" in list(output_caveats(scores, "row"))[1].text
    assert list(output_caveats(probe(lambda x: x @ W), "row")) == []


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda x: x @ W[:2],
            r"failed on 40 rows of 3 features: .*It was given the columns age, pay, score: if it takes .*--features",
        ),
        (lambda x: x @ W.float(), r"another precision: try --dtype float32"),
        (lambda x: (x @ W).detach().numpy(), r"expected the model to return a torch tensor, found .* ndarray"),
        (lambda x: (x @ W, 1), r"found an object of type tuple"),
        (lambda x: torch.cat([x, x], 1), r"expected the model to return \(40, 2\) .*, found shape \(40, 6\)"),
        (lambda x: (x @ W).sum(), r"found shape \(\)"),
        (lambda x: (x @ W).argmax(1), r"expected the model to return floating-point scores, found torch.int64"),
        (lambda x: (x @ W).detach(), r"gives no gradient with respect to its input"),
        (lambda x: (x @ W).sign(), r"gradient is zero at all 40 rows tried: it is constant, saturated, or rounds"),
        (lambda x: 0 * (x @ W) + 0.3, r"gradient is zero at all 40 rows"),
        (lambda x: x @ W - (x @ W).mean(0), r"changes with the other rows of its batch, or from call to call"),
        (lambda x: torch.nn.functional.dropout(x @ W), r"evaluation mode, \.eval\(\)"),
        (
            lambda x: torch.where(x[:, :1] == X[7, 0], torch.nan, x @ W),
            r"NaN or infinite values for 1 of 40 rows, the first being 7 \(counted from 0\)",
        ),
    ],
)
def test_a_network_that_cannot_be_audited_is_explained(function: Callable[[torch.Tensor], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        probe(function)


IMAGES = torch.rand(12, 1, 4, 4, generator=torch.Generator().manual_seed(5))
FACES = image_form((1, 4, 4))


def try_images(function: Callable[[torch.Tensor], Any]) -> Scores:
    """The steps of a trial, as the audit of images takes them."""
    output = tensor_of(function, IMAGES, FACES)
    check_finite(output.detach().numpy(), [f"{number}.png" for number in range(12)], FACES)
    check_alone(lambda x: tensor_of(function, x, FACES).detach().numpy(), IMAGES, output.detach().numpy(), FACES)
    scores = read(output, function, None, edge=1e-7)
    check_gradient(scores.evaluate, [IMAGES], FACES)
    return scores


def test_a_network_of_images_may_have_any_number_of_classes_and_its_scores_are_finite() -> None:
    assert try_images(lambda x: x.flatten(1)[:, :5] - 0.5).trial.shape == (12, 5)
    sure = read(torch.tensor([[1.0, 0.0], [0.4, 0.6]]), lambda x: x, None, edge=1e-7)
    assert (sure.kind, sure.saturated, sure.prediction.tolist()) == ("probability", 1, [0, 1])
    assert bool(sure.trial.isfinite().all())
    assert not bool(read(torch.tensor([[1.0, 0.0]]), lambda x: x, None).trial.isfinite().all())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x @ x[:, :, :2], r"failed on 12 images of shape \(1, 4, 4\): .*1 channel of 4 x 4 .*--channels 3"),
        (lambda x: x.double() @ x.float(), r"another precision: images are float32: let the model compute in it"),
        (
            lambda x: x,
            r"\(12, K\) scores of K classes, or \(12,\) .*, found shape \(12, 1, 4, 4\): return the scores of",
        ),
        (lambda x: (x.flatten(1),), r"expected the model to return a torch tensor, found an object of type tuple"),
        (lambda x: x.flatten(1).argmax(1), r"floating-point scores, found torch.int64: return scores, not classes"),
        (lambda x: x.flatten(1)[:, :2] - x.mean(), r"for an image changes with the other images of its batch"),
        (lambda x: x.detach().flatten(1)[:, :3], r"gives no gradient .*; --attack smoothing needs no gradient"),
        (
            lambda x: x.flatten(1)[:, :1].round(),
            r"gradient is zero at all 12 images tried: .* --attack smoothing needs no",
        ),
        (
            lambda x: torch.where(x[:, 0, 0, :1] == IMAGES[7, 0, 0, 0], torch.nan, x.flatten(1)[:, :2]),
            r"NaN or infinite values for 1 of 12 images, the first being 7\.png: mend the model, or remove these",
        ),
    ],
)
def test_a_network_of_images_that_cannot_be_audited_is_explained(
    function: Callable[[torch.Tensor], Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        try_images(function)


def test_a_program_exported_for_one_number_of_rows_is_explained() -> None:
    program = torch.export.export(torch.nn.Linear(3, 2).double(), (torch.zeros(4, 3, dtype=torch.float64),)).module()
    with pytest.raises(ValueError, match="exported for one number or size of inputs: export it with dynamic_shapes"):
        probe(program)


def test_values_against_the_told_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="these look like logits"):
        probe(lambda x: x @ W, "probability")
