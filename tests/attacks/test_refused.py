"""What no attack takes, by the argument that the error names."""

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
from tests.errors import invalid

# Four images of three channels, in five classes; points and labels of a table.
MODEL = linear(0, n=4)
IMAGES, LABEL = MODEL.images, np.zeros(4, dtype=int)
X, Y = points(2)
STEPS = np.full(5, 0.1)

SETTINGS: list[tuple[Callable[..., object], str, Any]] = [
    (deepfool, "slack", 0.9),
    (deepfool, "overshoot", -0.1),
    (fmn, "steps", 0),
    (fmn, "step_size", 0.0),
    (fmn, "radius_change", 1.0),
    (certify, "sigma", 0.0),
    (certify, "tolerance", -1.0),
    (certify, "samples", 150),
    (certify, "rows", np.arange(3)),
    (certify, "channel_scale", (1.0, 1.0)),
]

FLOWS = (
    partial(gradient_flow, lambda x: (x[..., 0], x), X),
    partial(relu_flow, network(1), X, Y),
)
planned = partial(Plan, from_directions(np.ones((1, 5))))
PLANS = [
    (planned(5.0, 3 * STEPS, [5]), "step_size"),
    (planned(-5.0, STEPS, [5]), "regularization"),
    *((planned(5.0, STEPS, record), "record") for record in ([], [3, 2], [2, 2], [-1], [6])),
]

REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: deepfool(MODEL, 50 + IMAGES, LABEL), "images"),
    (lambda: deepfool(MODEL, IMAGES[:, 0, 0], LABEL), "images"),
    (lambda: deepfool(MODEL, IMAGES, LABEL - 1), "label"),
    (lambda: deepfool(MODEL, IMAGES, LABEL + 5), "model"),
    (lambda: deepfool(lambda x: MODEL(x)[:, :1], IMAGES, LABEL), "model"),
    (lambda: Execution(batch_size=0), "batch_size"),
    *((partial(attack, MODEL, IMAGES, LABEL, **{option: value}), option) for attack, option, value in SETTINGS),
    *((partial(flow, plan), option) for flow in FLOWS for plan, option in PLANS),
    (lambda: gradient_flow(lambda x: (x, x), X - 9, planned(5.0, STEPS, [5]), (np.full(5, -5.0), np.full(5, 5.0))),
     "bounds"),
    (lambda: gradient_flow_in_blocks(lambda rows: lambda x: (x, x), X, planned(5.0, STEPS, [5]), 0),
     "block_rows"),
    (partial(step_schedule, "power", 0.1, 0.0, 3), "power"),
    (partial(step_schedule, "constant", 0.0, 1.0, 3), "step_size"),
    (partial(step_schedule, "linear", 0.1, 1.0, 3), "kind"),  # type: ignore[arg-type]
    (lambda: autograd.cross_entropy(torch.ones(6, 1), torch.zeros(6)), "scores"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "option"), REFUSED)
def test_a_wrong_argument_is_named(call: Callable[[], object], option: str) -> None:
    with invalid(option=option):
        call()
