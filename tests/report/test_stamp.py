"""What an artefact was made from is printed on it."""

from collections.abc import Callable

import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from pipeline.report import registry
from pipeline.report.departures import departures
from pipeline.report.inputs import Inputs
from pipeline.report.settings import Reduction
from pipeline.report.stamp import Stamp
from pipeline.report.style import paper

ROWS = pd.DataFrame(
    {
        "block": "audit",
        "dataset": ["adult"] * 4,
        "method": ["baseline", "baseline", "sensr", "sensr"],
        "origin": "official",
        "scale": "laptop",
        "repetition": [0, 1, 0, 0],
        "statistic": ["T_n", "T_n", "T_n", "n"],
        "value": [1.0, 1.1, 1.2, 9045],
        "steps": [500.0, 500.0, 1000.0, 500.0],
    }
)


def test_sizes_are_read_off_the_rows() -> None:
    stamp = Stamp.of(ROWS, "laptop")
    assert (stamp.repetitions, stamp.points, stamp.steps) == ((2, 1), (9045,), 1000)
    assert stamp.lines() == (
        "Laptop scale \u00b7 2 and 1 repetitions \u00b7 9,045 audited points \u00b7 up to 1,000 steps "
        "\u00b7 official data",
    )


@pytest.mark.parametrize(
    ("scale", "origin", "emphatic"),
    [
        ("paper", "official", False),
        ("paper", "simulated", False),
        ("laptop", "official", False),
        ("paper", "twin", True),
    ],
)
def test_a_twin_is_emphatic_and_a_scale_at_published_settings_is_not(scale: str, origin: str, emphatic: bool) -> None:
    assert Stamp.of(ROWS.assign(scale=scale, origin=origin), scale).emphatic is emphatic


def test_a_twin_is_called_one_and_named() -> None:
    lines = Stamp.of(ROWS.assign(origin="twin"), "laptop").lines()
    assert any("Synthetic twin of Adult, not the official data" in line for line in lines)


def test_what_departs_is_counted_by_setting_and_said_in_full_once() -> None:
    reduced = [
        Reduction("audit", "adult", method, key, 2000, 20000)
        for method in ("sensr", "baseline")
        for key in ("method.iterations", "audit.steps")
    ]
    stamp = Stamp.of(ROWS, "laptop", reduced)
    assert stamp.emphatic
    assert stamp.lines()[0].endswith("official data \u00b7 2 settings not as published")
    assert Stamp.of(ROWS, "laptop", reduced[:1]).lines()[0].endswith("1 setting not as published")
    assert "SenSR on Adult: iterations 2,000 (published: 20,000)" in departures(reduced[:1])


def test_a_grid_of_classifiers_is_not_taken_for_repetitions() -> None:
    assert Stamp.of(ROWS.assign(theta_1=0.4), "laptop").repetitions == ()


def test_maps_without_a_model_have_trials_that_the_stamp_counts() -> None:
    maps = ROWS.assign(method="none", transport="wgan")
    assert Stamp.of(maps, "laptop").repetitions == (2,)
    assert Stamp.of(maps.drop(columns="transport"), "laptop").repetitions == ()


def test_an_audit_that_draws_its_own_samples_speaks_of_simulations_alone() -> None:
    drawn = pd.DataFrame(
        {
            "block": ["levels", "power"], "dataset": "none", "method": "none", "origin": "simulated", "scale": "paper",
            "repetition": 0, "statistic": "rejection_rate", "value": 0.05, "simulations": [4000.0, 2000.0],
        }
    )  # fmt: skip
    lines = Stamp.of(drawn, "paper").lines()
    assert lines == ("Paper scale \u00b7 4,000 and 2,000 simulations \u00b7 simulated data",)
    (both,) = Stamp.of(pd.concat([drawn, ROWS.assign(scale="paper")]), "paper").lines()
    assert "2 and 1 repetitions \u00b7 4,000 and 2,000 simulations" in both


def test_rows_of_another_scale_are_refused() -> None:
    with pytest.raises(ValueError, match="expected rows of scale 'paper' alone, found"):
        Stamp.of(ROWS, "paper")
    with pytest.raises(ValueError, match="needs rows"):
        Stamp.of(ROWS.iloc[:0], "laptop")


def test_every_artefact_from_a_twin_carries_it(inputs_of: Callable[..., Inputs], build: Callable) -> None:
    twin = inputs_of(scale="smoke", origin="twin", repetitions=2)
    for name, kind in ((one.name, one.kind) for one in registry.declared(twin.study)):
        made = build(name, twin)
        if "twin" not in made.stamp.origins:
            assert made.stamp.origins == ("simulated",), name
            continue
        assert "Synthetic twin of" in " ".join(made.stamp.lines()), name
        if kind == "table":
            assert "Synthetic twin of" in made.markdown(), name
            assert "Synthetic twin of" in made.latex(), name
            assert ",twin,smoke" in made.csv() or "simulated+twin,smoke" in made.csv(), name
        else:
            assert any("Synthetic twin of" in text.get_text() for text in made.figure.texts), name


def test_the_stamp_is_drawn_in_the_margin_of_a_figure(inputs_of: Callable[..., Inputs], build: Callable) -> None:
    twin = inputs_of(scale="smoke", origin="twin", repetitions=2)
    official = inputs_of()
    for inputs, words in ((twin, "Synthetic twin of Adult and COMPAS"), (official, "Paper scale")):
        figure = build("figure_2", inputs).figure
        (drawn,) = [text for text in figure.texts if "scale" in text.get_text()]
        assert words in drawn.get_text()
        with paper():
            FigureCanvasAgg(figure).draw()
        lowest = min(axes.get_tightbbox().y0 for axes in figure.axes)
        assert drawn.get_window_extent().y1 <= lowest, "the stamp lies on the axes"
