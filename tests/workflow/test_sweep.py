"""What a sweep declares is checked before anything runs, and its own values are the last word."""

from pathlib import Path

import pytest

from pipeline.workflow.composition import points, several
from pipeline.workflow.config import Workflow
from pipeline.workflow.sweep import Figure, column

GRID = {"main": {"dataset": "d", "method": ["m", "other"], "audit": "a", "audit.delta": "range(1.1, 1.3, 0.1)"}}


def declaration(**figure: object) -> dict:
    return {"grid": GRID, "figure": {"statistic": "T_n", "x": "audit.delta", **figure}}


@pytest.fixture
def sweep(conf: Path) -> Path:
    (conf / "sweep").mkdir()
    text = (
        "grid:\n"
        "  main:\n"
        "    method.rate: choice(1, 5, 7)\n"
        "    repetitions: 4\n"
        "    dataset: d\n"
        "    method: m\n"
        "    audit: a\n"
        "    audit.delta: 2\n"
        "figure: {statistic: T_n, x: method.rate}\n"
    )
    (conf / "sweep" / "w.yaml").write_text(text)
    (conf / "scale" / "small.yaml").write_text(
        "settings:\n"
        "  - {where: {method: m}, set: {repetitions: 2, method.rate: 9}}\n"
        "  - {where: {audit: a}, set: {audit.delta: 3}}\n"
    )
    return conf


def test_hydras_notations_are_lists_and_decimal_steps_leave_no_dust() -> None:
    assert several("range(0, 3)", "") == [0, 1, 2]
    assert several("range(0.1, 0.45, 0.1)", "") == [0.1, 0.2, 0.3, 0.4]
    assert several("choice(a, 2, 1e-3)", "") == ["a", 2, 0.001]
    assert several("Black", "") == "Black"
    assert several([1, 2], "") == [1, 2]


def test_what_only_looks_like_a_range_is_refused() -> None:
    with pytest.raises(ValueError, match=r"block 'main', audit\.delta: cannot read 'range\(one\)': write range\(start"):
        several("range(one)", "block 'main', audit.delta")


def test_a_sweeps_values_win_over_the_scales_and_stand_in_the_names_of_files(sweep: Path) -> None:
    workflow = Workflow(scale="small", tracker="none", conf=sweep, studies=["s"])
    assert workflow.files("train", "w") == [
        f"results/models/small/d/m@rate={rate}@repetitions=4.npz" for rate in (1, 5, 7)
    ]
    for rate in (1, 5, 7):
        trained = workflow.asked("train", "d", f"m@rate={rate}@repetitions=4")
        assert (trained["method"]["rate"], trained["repetitions"]) == (rate, 4)
    path = workflow.files("audit", "w")[0].removeprefix("results/audits/small/").removesuffix(".npz")
    assert workflow.asked("audit", *path.split("/"))["audit"]["delta"] == 2
    assert workflow.asked("train", "d", "m") == {"method": {"kind": "m", "name": "m", "rate": 9}, "repetitions": 2}


def test_a_number_of_repetitions_is_no_column_of_the_rows(sweep: Path) -> None:
    assert points(sweep, "w")[0].columns() == {"rate": 1, "delta": 2}


def test_a_typo_in_a_grids_key_is_refused_with_the_nearest_when_the_jobs_are_planned(sweep: Path) -> None:
    path = sweep / "sweep" / "w.yaml"
    path.write_text(path.read_text().replace("method.rate:", "method.rte:"))
    workflow = Workflow(scale="small", tracker="none", conf=sweep, studies=["s"])
    with pytest.raises(ValueError, match=r"there is no key 'method\.rte' \(did you mean 'method\.rate'\?\)"):
        workflow.asked("train", "d", "m@rte=1@repetitions=4")
    with pytest.raises(ValueError, match=r"the grid has no key 'method\.rate' \(did you mean 'method\.rte'\?\)"):
        workflow.sweep("w")


def test_a_typo_in_a_part_is_refused_with_the_nearest(sweep: Path) -> None:
    path = sweep / "sweep" / "w.yaml"
    path.write_text(path.read_text().replace("method.rate:", "metod.rate:"))
    with pytest.raises(ValueError, match=r"block 'main': there is no key 'metod\.rate' \(did you mean 'method'\?\)"):
        points(sweep, "w")


def test_a_sweep_asked_for_as_a_study_is_told_how_it_is_run(sweep: Path) -> None:
    with pytest.raises(ValueError, match="'w' is a sweep, not a study: run `snakemake sweep_w`"):
        Workflow(scale="small", tracker="none", conf=sweep, studies=["w"])


def test_a_declaration_without_a_grid_is_refused(conf: Path) -> None:
    (conf / "experiment" / "empty.yaml").write_text("title: nothing\n")
    with pytest.raises(ValueError, match=r"conf/experiment/empty\.yaml has no grid"):
        points(conf, "empty")


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        ({"colour": "method"}, "figure: there is no key 'colour'"),
        ({"column": "method"}, r"no key 'column' \(did you mean 'columns'\?\)"),
        ({"x": "audit.dleta"}, r"figure\.x: the grid has no key 'audit\.dleta' \(did you mean 'audit\.delta'\?\)"),
        ({"x": ""}, "figure: x is not given"),
        ({"log": "z"}, r"figure: expected log to be a list, each one of x, y; found \['z'\]"),
    ],
)
def test_a_figure_of_what_is_not_there_is_refused(figure: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Figure.of("w", declaration(**figure))
    with pytest.raises(ValueError, match="declares no figure"):
        Figure.of("w", {"grid": GRID})


def test_labels_are_found_by_key_by_column_and_otherwise_spelled_out() -> None:
    figure = Figure.of("w", declaration(lines="method", labels={"delta": "tolerance", "m": "ours"}))
    assert figure.axes == {"x": "delta", "lines": "method"}
    assert [figure.label(name) for name in ("audit.delta", "m", "mean_shift")] == ["tolerance", "ours", "mean shift"]
    assert column("T_n") == "T_n"


def test_runs_of_a_sweep_are_grouped_by_its_name(sweep: Path) -> None:
    workflow = Workflow(scale="small", tracker="none", conf=sweep, studies=["s"])
    environment: dict[str, str] = {}
    workflow.export_tracker(environment, workflow.sweeps_among(["--cores", "2", "sweep_w"]))
    assert '"group": "w"' in environment["PIPELINE_TRACKER"]
    workflow.export_tracker(environment, workflow.sweeps_among(["all", "results/sweeps/small/w/summary.csv"]))
    assert '"group": "s"' in environment["PIPELINE_TRACKER"]


def test_a_sweep_that_is_not_there_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"no sweep 'atack' \(did you mean 'attack'\?\)\. There are: attack, "):
        Workflow(scale="smoke").sweeps_among(["--cores", "2", "sweep_atack"])
