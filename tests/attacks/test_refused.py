"""What no attack takes, and what it says then."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from fairness_audits.attacks import Execution, autograd
from fairness_audits.attacks.engines import relu_flow
from fairness_audits.attacks.gradient_flow import Plan, gradient_flow, gradient_flow_in_blocks, step_schedule
from fairness_audits.attacks.minimum_norm import deepfool, fmn
from fairness_audits.attacks.smoothing import certify
from fairness_audits.fair_metric import from_directions
from tests.attacks.builders import linear, network, points

# Four images of three channels, in five classes; points and labels of a table.
MODEL = linear(0, n=4)
IMAGES, LABEL = MODEL.images, np.zeros(4, dtype=int)
X, Y = points(2)
STEPS = np.full(5, 0.1)

SETTINGS: list[tuple[Callable[..., object], dict[str, Any], str]] = [
    (deepfool, {"slack": 0.9}, "expected steps >= 1, candidates >= 2, overshoot >= 0 and slack >= 1"),
    (fmn, {"steps": 0}, "expected steps >= 1, start_steps >= 1 and step_size > 0, found 0"),
    (fmn, {"radius_change": 1.0}, "expected 0 <= last_radius_change <= radius_change < 1, found 0.001 and 1.0"),
    (certify, {"sigma": 0.0}, "expected sigma > 0, 0 < alpha < 1, growth > 1 and tolerance >= 0, found "),
    (certify, {"samples": 150}, r"multiples of 100, the noisy images drawn at once, found \{'samples': 150\}"),
    (certify, {"rows": np.arange(3)}, r"one row number for each of 4 images, found shape \(3,\)"),
    (certify, {"channel_scale": (1.0, 1.0)}, "one positive channel_scale for each of 3 channels"),
]  # fmt: skip

FLOWS = (
    partial(gradient_flow, lambda x: (x[..., 0], x), X),
    partial(relu_flow, network(1), X, Y),
)
planned = partial(Plan, from_directions(np.ones((1, 5))))
PLANS = [
    (planned(5.0, 3 * STEPS, [5]), r"step size 0\.3 is unstable for regularization 5: .* = 0\.2;"),
    (planned(-5.0, STEPS, [5]), "expected regularization >= 0, found -5"),
    *((planned(5.0, STEPS, record), "increasing step numbers between 0 and 5")
      for record in ([], [3, 2], [2, 2], [-1], [6])),
]  # fmt: skip

REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: deepfool(MODEL, 50 + IMAGES, LABEL), r"pixels in \[0, 1\], found values from 50.*: divide the images"),
    (lambda: deepfool(MODEL, IMAGES[:, 0, 0], LABEL), r"\(n, c, h, w\) and one label each, .* \(4, 4\) and \(4,\)"),
    (lambda: deepfool(MODEL, IMAGES, LABEL - 1), "expected labels that number the classes from 0, found -1"),
    (lambda: deepfool(MODEL, IMAGES, LABEL + 5), r"logits \(4, K\) of at least 6 classes, .* found shape \(4, 5\)"),
    (lambda: deepfool(lambda x: MODEL(x)[:, :1], IMAGES, LABEL), r"at least 2 classes, .* found shape \(4, 1\)"),
    (lambda: Execution(batch_size=0), "batch_size >= 1, found 0"),
    *((partial(attack, MODEL, IMAGES, LABEL, **wrong), message) for attack, wrong, message in SETTINGS),
    *((partial(flow, plan), message) for flow in FLOWS for plan, message in PLANS),
    (lambda: gradient_flow(lambda x: (x, x), X - 9, planned(5.0, STEPS, [5]), (np.full(5, -5.0), np.full(5, 5.0))),
     "points within the bounds, found 40 of 40 outside"),
    (lambda: gradient_flow_in_blocks(lambda rows: lambda x: (x, x), X, planned(5.0, STEPS, [5]), 0),
     "block_rows >= 1, found 0"),
    (partial(step_schedule, "power", 0.1, 0.0, 3), "expected power > 0, found 0.0"),
    (partial(step_schedule, "constant", 0.0, 1.0, 3), "expected step_size > 0 and steps >= 1, found 0.0 and 3"),
    (partial(step_schedule, "linear", 0.1, 1.0, 3), "expected schedule 'constant' or 'power', found 'linear'"),  # type: ignore[arg-type]
    (lambda: autograd.cross_entropy(torch.ones(6, 1), torch.zeros(6)), r"at least 2 classes .*, found shape \(6, 1\)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_was_expected_is_said(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
