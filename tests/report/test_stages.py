"""The stages between audits and page: collect, artefacts, report."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline import io
from pipeline.report import markup, registry
from pipeline.report.inputs import Inputs
from pipeline.stages import artefacts, collect, report
from pipeline.types import AuditResult, Dataset


def audit(**columns: object) -> AuditResult:
    rows = pd.DataFrame({"repetition": [0, 1], "statistic": "T_n", "value": [1.0, 2.0], **columns})
    return AuditResult("loss_ratio", "adult", "sensr", "official", rows)


def test_rows_carry_study_block_scale_and_the_settings_of_the_grid() -> None:
    rows = collect.collect(
        [(audit(steps=500.0), "audit", {}), (audit(metric=""), "heatmaps", {"intercept": "zero"})], "s", "smoke"
    )
    assert list(rows.columns[:10]) == list(collect.FIRST)
    assert list(rows["block"]) == ["audit"] * 2 + ["heatmaps"] * 2
    assert set(rows["study"] + rows["scale"] + rows["origin"]) == {"ssmokeofficial"}
    assert list(rows["intercept"].isna()) == [True, True, False, False]
    assert rows["metric"].isna().all(), "text that is unused is missing"
    assert list(rows["steps"].isna()) == [False, False, True, True]


def test_an_audit_that_contradicts_the_grid_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"block 'audit', sensr on adult: the audit was made with angle \[5\], the grid says 10"
    ):
        collect.collect([(audit(angle=5), "audit", {"angle": 10})], "s", "smoke")
    with pytest.raises(ValueError, match="study 's' has no audits to collect"):
        collect.collect([], "s", "smoke")


def test_collected_rows_survive_their_file(tmp_path: Path) -> None:
    io.save(audit(metric_split=["test", "train"]), tmp_path / "a.npz")
    entry = {"path": str(tmp_path / "a.npz"), "block": "audit", "columns": {}}
    collect.main(
        [
            "--study",
            "s",
            "--scale",
            "smoke",
            "--audits",
            json.dumps([entry]),
            "--output",
            str(tmp_path / "rows.parquet"),
        ]
    )
    rows = io.load_rows(tmp_path / "rows.parquet")
    assert list(rows["metric_split"]) == ["test", "train"]
    assert rows["value"].dtype == np.float64


def test_values_go_by_their_place_in_the_workflow() -> None:
    path = "results/audits/smoke/s/heatmaps/simulated@labels=centred@n=1e5/logistic_grid@low=1.2/loss_ratio.npz"
    assert artefacts.place(path, 4) == "heatmaps/simulated@labels=centred@n=1e5/logistic_grid@low=1.2/loss_ratio"


def held_against_its_own_reference(arguments: dict[str, list[str]], folder: Path) -> None:
    """A reference is made of a run; the same tables are drawn from it, and the run is equal to it."""

    def made(*names: str, **changed: str) -> None:
        given = {name: arguments[name] for name in names} | {
            f"--{k.replace('_', '-')}": [v] for k, v in changed.items()
        }
        artefacts.main([word for name, values in given.items() for word in (name, *values)])

    reference, lists = str(folder / "reference"), folder / "lists"
    benchmark = folder / "train.tsv"
    benchmark.write_text("s\tmax_rss\tcpu_time\n5\t1\t4\n")
    made(*arguments, record=reference, verdicts=str(lists), benchmarks=json.dumps({"train": str(benchmark)}))
    assert set(pd.read_csv(lists / "verdicts.csv")["study"]) == {"individual_fairness"}
    again = {kind: str(folder / "again" / kind) for kind in ("tables", "figures")}
    index = folder / "again.json"
    made("--study", "--published", drawn_from=reference, index=str(index), **again)
    for path in (folder / "results" / "tables" / "individual_fairness").iterdir():
        assert (folder / "again" / "tables" / path.name).read_text() == path.read_text()
    assert json.loads(index.read_text())["reference"]["lines"] == []
    made(*arguments, against=reference, index=str(index), **again)
    told = json.loads(index.read_text())["reference"]
    assert all(line["equal"] == line["numbers"] for line in told["lines"])
    assert told["summary"][0].startswith("Same settings: ")


def test_from_rows_to_page(
    inputs_of: Callable[..., Inputs],
    prepared: Callable[..., dict[str, Dataset]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    """Every artefact that the study lists, at smoke scale from a twin, to one page."""
    inputs = inputs_of(scale="smoke", origin="twin", repetitions=2, steps=(5, 20))
    io.save_rows(inputs.rows, tmp_path / "rows.parquet")
    for name, dataset in prepared("twin", 2).items():
        io.save(dataset, tmp_path / "prepared" / f"{name}.npz")
    for name, classifier in inputs.classifiers.items():
        io.save(classifier, tmp_path / "models" / f"{name}.npz")
    for name, result in inputs.audits.items():
        io.save(result, tmp_path / "audits" / f"{name}.npz")
    found = {kind: sorted(map(str, (tmp_path / kind).rglob("*.npz"))) for kind in ("prepared", "models", "audits")}
    out = tmp_path / "results"
    arguments = {
        "--study": ["individual_fairness"],
        "--config": [json.dumps(inputs.config)],
        "--rows": [str(tmp_path / "rows.parquet")],
        "--datasets": found["prepared"],
        "--classifiers": found["models"],
        "--audits": found["audits"],
        "--published": ["data/published/individual_fairness.csv"],
        "--tables": [str(out / "tables" / "individual_fairness")],
        "--figures": [str(out / "figures" / "individual_fairness")],
        "--index": [str(out / "index.json")],
        "--processes": ["2"],
        "--captions": [str(out / "captions")],
    }
    artefacts.main([word for name, values in arguments.items() for word in (name, *values)])
    listed = registry.declared("individual_fairness")
    for kind, suffixes in (("table", ("csv", "md", "tex")), ("figure", ("pdf", "png"))):
        expected = {f"{one.name}.{suffix}" for one in listed if one.kind == kind for suffix in suffixes}
        assert {path.name for path in (out / f"{kind}s" / "individual_fairness").iterdir()} == expected
    for one in listed:
        told = (out / "captions" / f"{one.name}.rst").read_text().split("\n\n")
        assert told[1] == markup.rst(one.caption)
        assert "smoke scale" in told[2].lower()
    held_against_its_own_reference({k: v for k, v in arguments.items() if k != "--index"}, tmp_path)
    (out / "benchmarks" / "smoke" / "audit").mkdir(parents=True)
    (out / "benchmarks" / "smoke" / "audit" / "a.tsv").write_text("s\tmax_rss\tcpu_time\n5\t1\t4\n")
    (out / "benchmarks" / "paper").mkdir()
    (out / "benchmarks" / "paper" / "collect.tsv").write_text("s\tmax_rss\tcpu_time\n500\t1\t4\n")
    report.main(
        ["--index", str(out / "index.json"), "--figures", str(out / "figures"), "--benchmarks", str(out / "benchmarks"),
         "--scale", "smoke", "--output", str(out / "report.html"), "--summary", str(out / "summary.txt")]
    )  # fmt: skip
    page = (out / "report.html").read_text()
    assert page.count("data:image/png;base64,") == sum(one.kind == "figure" for one in listed)
    assert ">audit</th>" in page
    assert ">collect</th>" not in page, "another scale's times are not this run's"
    assert "published results:" in capsys.readouterr().out
    assert (out / "summary.txt").read_text().endswith("report.html\n")
