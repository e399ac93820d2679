"""A figure is laid out once and drawn once for each format."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes

from pipeline import io
from pipeline.report.inputs import Inputs
from pipeline.report.picture import Picture
from pipeline.report.stamp import Stamp
from pipeline.report.style import new_figure, paper


@pytest.fixture
def picture(inputs_of: Callable[..., Inputs]) -> Picture:
    with paper():
        figure = new_figure(2.0)
        figure.subplots(1, 1).plot([0, 1], [1, 0])
        return Picture.stamped(figure, "A line.", Stamp.of(inputs_of("laptop").rows, "laptop"), "A falling line.")


def test_a_figure_is_drawn_once_for_each_format(
    picture: Picture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, draw = [], Axes.draw

    def watched(axes: Axes, renderer: Any) -> None:
        drawn.append(axes)
        draw(axes, renderer)

    monkeypatch.setattr(Axes, "draw", watched)
    with paper():
        saved = io.save_figure(picture.figure, tmp_path / "line")
    assert len(drawn) == len(saved) == 2


def test_saving_leaves_the_layout_as_it_was_worked_out(picture: Picture, tmp_path: Path) -> None:
    (axes,) = picture.figure.axes
    before = axes.get_position().bounds
    with paper():
        io.save_figure(picture.figure, tmp_path / "line")
    assert axes.get_position().bounds == before
    assert before != pytest.approx((0.125, 0.11, 0.775, 0.77))
