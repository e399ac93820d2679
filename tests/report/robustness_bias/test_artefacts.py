"""Every artefact of somebody who has nothing but the digits: what can be made is, and the rest says what is missing."""

from collections.abc import Mapping
from typing import Any

import pytest

from pipeline.report import registry
from pipeline.report.artefacts import Artefact
from pipeline.report.picture import Picture
from pipeline.report.table import Table

LISTED = {one.name: one.kind for one in registry.declared("robustness_bias")}
OF_ABSENT_DATA = ["figure_5", *(f"figure_{n}" for n in range(6, 23))]
OF_DIGITS = [
    "figure_4",
    "figure_bias",
    "figure_training",
    *(name for name in LISTED if name.startswith("figure_digits")),
]


@pytest.mark.parametrize("name", LISTED)
def test_every_artefact_is_made_and_has_a_caption(name: str, made_alone: Mapping[str, Artefact]) -> None:
    assert isinstance(made_alone[name], Table if LISTED[name] == "table" else Picture)
    assert made_alone[name].caption == registry.one("robustness_bias", name).caption


@pytest.mark.parametrize("name", OF_ABSENT_DATA)
def test_a_figure_of_absent_data_says_so_in_place_of_axes(name: str, made_alone: Mapping[str, Artefact]) -> None:
    picture = made_alone[name]
    assert isinstance(picture, Picture)
    (axes,) = picture.figure.axes
    assert not axes.axison
    assert axes.texts[0].get_text().startswith("Not run: data. ")
    assert "from https://example.org/" in axes.texts[0].get_text()


@pytest.mark.parametrize("name", OF_DIGITS)
def test_a_figure_of_the_digits_has_no_empty_panel(name: str, made_alone: Mapping[str, Artefact]) -> None:
    picture = made_alone[name]
    assert isinstance(picture, Picture)
    shown = [axes for axes in picture.figure.axes if axes.axison]
    assert shown
    assert all(axes.has_data() for axes in shown)


def test_the_regularizers_table_has_every_form_of_the_distance(made_alone: Mapping[str, Artefact]) -> None:
    table = made_alone["table_regularizer"]
    assert isinstance(table, Table)
    forms = {row.labels[-1] for row in table.rows}
    assert forms >= {"logit, as coded", "logit, second order", "margin", "margin, second order"}


def test_passes_are_divided_by_the_points_that_were_attacked(made_alone: Mapping[str, Artefact]) -> None:
    """The inputs spend 40 passes on every point of the sample: divided by the correctly classified ones it is more."""
    table = made_alone["table_bounds"]
    assert isinstance(table, Table)
    keys = [column.key for column in table.columns]
    for row in table.rows:
        cells: tuple[Any, ...] = row.cells
        points, attacked, passes = (cells[keys.index(key)] for key in ("points", "attacked", "forward passes"))
        assert 0 < attacked < points
        assert passes == pytest.approx(40 * points / attacked)


def test_a_network_costs_its_passes_times_its_size(made_alone: Mapping[str, Artefact]) -> None:
    """The inputs train on 1,000 images of 10^8 multiply-adds each."""
    table = made_alone["table_costs"]
    assert isinstance(table, Table)
    keys = [column.key for column in table.columns]
    for row in [dict[str, Any](zip(keys, row.cells, strict=True)) for row in table.rows]:
        assert row["training"] == pytest.approx(3 * row["epochs"] * 1000 * 1e8 / 1e12)
        assert row["audit"] == pytest.approx(row["passes"] * 1e8 / 1e12)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        *((name, ("dataset.", "method.")) for name in ("table_2", "table_costs", "figure_training")),
        ("table_partitions", ("dataset.",)),
    ],
)
def test_what_no_audit_has_a_part_in_is_not_stamped_with_one(
    name: str, parts: tuple[str, ...], made_alone: Mapping[str, Artefact]
) -> None:
    stamp = made_alone[name].stamp
    assert stamp.points == ()
    assert all(reduction.key.startswith(parts) for reduction in stamp.reductions)
    assert not any("audited point" in line for line in stamp.lines())
