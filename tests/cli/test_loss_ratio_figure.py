"""The figure shows what was measured: each ratio in its bin, 1 between better and worse off, the tolerance in both."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from pipeline.audits.loss_ratio.admissible import Admissible, range_of
from pipeline.cli.audit.loss_ratio import Settings
from pipeline.cli.audit.loss_ratio.evidence import Evidence, gather, recorded_steps
from pipeline.cli.audit.loss_ratio.figure import BINS, bins, figure
from pipeline.cli.units import units
from pipeline.fair_metric import from_directions
from pipeline.report.style import paper


def counted(axes: Axes) -> float:
    """The sum of all bars."""
    return sum(bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle))


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    """A logistic network with logit x_0 + x_1, audited along the first coordinate."""
    import torch

    x = np.random.default_rng(3).normal(size=(60, 2))
    y = (x[:, 0] > 0).astype(int)
    settings = Settings(data=Path("x"), label="y", model="", steps=100)

    def scores(z: torch.Tensor) -> torch.Tensor:
        return torch.stack((torch.zeros_like(z[:, 0]), z.sum(1)), 1)

    people, metric = Admissible(range_of(x)), from_directions(np.array([[1.0, 0.0]]))
    return gather(scores, x, y, metric, units(x, ("a", "b"), "none"), settings, people, None)


def test_bins_cover_all_ratios_are_even_in_the_logarithm_and_have_an_edge_at_1() -> None:
    for ratios in (np.array([0.4, 0.9, 1.0, 7.3]), np.array([1.0]), np.array([2.0, 900.0]), np.array([0.1, 0.2])):
        edges = bins(ratios)
        assert edges[0] <= ratios.min()
        assert edges[-1] >= ratios.max()
        assert np.isclose(edges, 1, rtol=1e-12).any()
        np.testing.assert_allclose(np.diff(np.log(edges)), np.log(edges[1] / edges[0]), rtol=1e-6)
        assert len(edges) <= BINS + 5


def test_the_histogram_counts_every_row_and_the_course_ends_at_the_verdict(evidence: Evidence) -> None:
    with paper():
        left, right = figure(evidence).axes
    assert counted(left) == 60
    lines = {str(line.get_label()): np.asarray(line.get_xdata()) for line in left.lines}
    assert lines["tolerance 1.25"][0] == 1.25
    mean = next(x[0] for label, x in lines.items() if label.startswith("mean"))
    assert mean == evidence.course.mean[-1]
    bound = next(line for line in right.lines if line.get_label() == "$T_n$")
    assert np.asarray(bound.get_xdata())[-1] == 100
    assert np.asarray(bound.get_ydata())[-1] == evidence.course.statistic[-1]


def test_rows_without_a_ratio_are_left_out_of_the_histogram(evidence: Evidence) -> None:
    ratio = evidence.ratio.copy()
    ratio[:5] = np.nan
    with paper():
        left, _ = figure(replace(evidence, ratio=ratio)).axes
    assert counted(left) == 55


def test_recorded_steps_begin_at_1_and_end_at_the_last() -> None:
    assert recorded_steps(1) == (1,)
    assert recorded_steps(3) == (1, 2, 3)
    steps = recorded_steps(500)
    assert (steps[0], steps[-1]) == (1, 500)
    assert list(steps) == sorted(set(steps))
    assert 20 <= len(steps) <= 30
