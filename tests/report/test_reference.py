"""A reference holds what its study declares, and nobody's row."""

import importlib
import itertools
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairness_audits.results.style import paper
from fairness_audits.values import Dataset
from pipeline import io
from pipeline.report import individual_fairness, reference, registry
from pipeline.report.artefacts import compared
from pipeline.report.comparison_table import verdicts
from pipeline.report.dataset_summary import summarize
from pipeline.report.facts import data_facts
from pipeline.report.inputs import Inputs
from pipeline.report.stamp import Picture
from pipeline.report.sweep import chosen, drawn, summary, undominated
from pipeline.stages.record import check_drawn, manifest_of
from pipeline.values import AuditResult
from pipeline.workflow import reference_store
from pipeline.workflow.sweep import Figure
from tests.builders import dataset as made_of
from tests.builders import image_dataset
from tests.errors import invalid
from tests.report import studies

NOWHERE: dict[str, Any] = {"study": "s", "runs": []}
RAN: dict[str, Any] = {"commit": "c", "machine": {"processor": "p"}, "versions": {}}


def people(rng: np.random.Generator, n: int = 60) -> dict[str, np.ndarray]:
    """What an audit keeps of people and of their images."""
    return {
        "features": rng.normal(size=(n, 3)),
        "images": rng.normal(size=(n, 3)),
        "score": rng.normal(size=n),
        "score_image": rng.normal(size=n),
        "decision": rng.integers(0, 2, n),
        "decision_image": rng.integers(0, 2, n),
        "target_features": rng.normal(size=(n + 5, 3)),
        "target_score": rng.normal(size=n + 5),
    }


def audit_of(arrays: dict[str, np.ndarray], audit: str = "fliptest", origin: Any = "official") -> AuditResult:
    return AuditResult(audit, "law", "logistic", origin, pd.DataFrame(), arrays)


@given(seed=st.integers(0, 2**16))
def test_sorting_keeps_every_column_of_every_cell_and_no_row(seed: int) -> None:
    held = people(np.random.default_rng(seed), 240)
    cells = 2 * held["decision"] + held["decision_image"]
    assume((np.bincount(cells) != 1).all())
    found = reference.committed(audit_of(held), {})
    for name in ("features", "images"):
        for code in np.unique(cells):
            before, after = (arrays[name][cells == code] for arrays in (held, found))
            np.testing.assert_array_equal(np.sort(before, axis=0), np.sort(after, axis=0))
        together = {tuple(row) for row in held[name]} & {tuple(row) for row in found[name]}
        # In a cell of sixty people a row stays together by chance with probability 1 / 60 ** 2.
        assert len(together) <= 3
    np.testing.assert_array_equal(np.sort(held["target_score"]), found["target_score"])
    np.testing.assert_array_equal(np.sort(held["target_features"], axis=0), found["target_features"])
    reverse = reference.committed(audit_of({f"{name}_reverse": array for name, array in held.items()}), {})
    assert all(np.array_equal(found[name], reverse[f"{name}_reverse"]) for name in held)
    simulated = reference.committed(audit_of(held, origin="simulated"), {})
    assert all(np.array_equal(simulated[name], held[name]) for name in held)


@pytest.mark.parametrize("audit", [*reference.COMMITTED, "permutation", "new"])
@pytest.mark.parametrize("origin", ["official", "re-encoded", "bundled", "twin", "simulated"])
def test_an_array_that_is_not_declared_is_an_error_that_names_it(audit: str, origin: str) -> None:
    rows = np.random.default_rng(0).normal(size=(30, 4))
    for array in (rows, rows[:, 0], np.arange(30)):
        with pytest.raises(ValueError, match=rf"'people' of the audit {audit} \(b/law/logistic/a\).*COMMITTED"):
            reference.committed(audit_of({"people": array}, audit, origin), {"group": ("a", "b")}, "b/law/logistic/a")


def test_a_partition_of_the_data_set_holds_codes_of_its_levels_and_nothing_else() -> None:
    codes, levels = np.array([0, 1, -1, 1]), {"sex": ("f", "m")}
    np.testing.assert_array_equal(
        reference.committed(audit_of({"sex": codes}, "robustness_bias"), levels)["sex"], codes
    )
    for other in (codes.astype(float), np.array([0, 2]), codes[:, None], np.array(["f", "m"])):
        with pytest.raises(ValueError, match="'sex' of the audit robustness_bias"):
            reference.committed(audit_of({"sex": other}, "robustness_bias"), levels)


def test_pictures_of_persons_and_a_person_who_is_alone_are_refused() -> None:
    pictures = audit_of({"example_images": np.zeros((2, 3, 4, 4))}, "robustness_bias")
    with pytest.raises(ValueError, match=r"'example_images' .* may show a person"):
        reference.committed(pictures, {})
    assert reference.committed(replace(pictures, dataset="digits"), {})
    held = people(np.random.default_rng(0)) | {"decision": np.arange(60) == 7, "decision_image": np.zeros(60)}
    with pytest.raises(ValueError, match=r"'features' .* only one person .*DATASETS"):
        reference.committed(audit_of(held), {})
    assert reference.committed(audit_of(held, origin="twin"), {})
    with pytest.raises(ValueError, match=r"'score' .* needs .* decision and decision_image"):
        reference.committed(audit_of({"score": np.zeros(3)}), {})


def declaring(monkeypatch: pytest.MonkeyPatch, **arrays: str) -> None:
    """Make the study declare these arrays for the keys that end with a name."""
    monkeypatch.setattr(individual_fairness, "ARRAYS", {f"*{key}": of for key, of in arrays.items()}, raising=False)


def test_what_a_study_declares_of_people_is_refused(inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> None:
    key, one = next((key, one) for key, one in inputs.audits.items() if one.origin != "simulated")
    people = replace(one, arrays={**one.arrays, "people": np.random.default_rng(0).normal(size=(30, 4))})
    changed = replace(inputs, audits={**inputs.audits, key: people})
    assert "people" not in reference.recorded(changed).audits[key].arrays, "nothing declares it"
    declaring(monkeypatch, loss_ratio="peop*")
    with pytest.raises(ValueError, match=f"'people' of the audit {one.audit} .{key}"):
        reference.recorded(changed)
    name, model = next(iter(inputs.classifiers.items()))
    machine = replace(model, parameters={"support": np.ones((model.repetitions, 2, 3))}, facts={})
    changed = replace(inputs, classifiers={name: machine})
    assert not reference.recorded(changed).classifiers[name].parameters["support"].size
    declaring(monkeypatch, **{name: "coef support"})
    with pytest.raises(ValueError, match=f"'support' of the classifier {name}"):
        reference.recorded(changed)
    wide = replace(model, facts={"scores": np.ones((model.repetitions, 50))})
    with pytest.raises(ValueError, match=f"'scores' of the classifier {name}"):
        reference.recorded(replace(inputs, classifiers={name: wide}))


@pytest.mark.parametrize("study", ["fliptest", "robustness_bias"])
def test_every_declaration_names_arrays_of_the_committed_reference(study: str) -> None:
    held, _ = reference_store.load_reference(Path("data/reference", study))
    names: dict[str, list[str]] = {key: [*one.arrays] for key, one in held.audits.items()}
    names |= {key: [*one.parameters, *one.history] for key, one in held.classifiers.items()}
    for keys, arrays in importlib.import_module(f"pipeline.report.{study}").ARRAYS.items():
        of = [name for key in names if registry.matches(key, keys.split()) for name in names[key]]
        assert all(any(registry.matches(name, [one]) for name in of) for one in arrays.split()), keys
    made = reference.recorded(held)
    for key, one in held.audits.items():
        assert one.rows.empty, "the rows are collected"
        assert made.audits[key].arrays.keys() == one.arrays.keys()
    for key, model in held.classifiers.items():
        assert made.classifiers[key].history.keys() == model.history.keys()


@given(st.lists(st.floats(-1e30, 1e30) | st.sampled_from([np.inf, -np.inf, np.nan]), min_size=1, max_size=30))
def test_large_arrays_keep_eight_digits_and_small_ones_all(values: list[float]) -> None:
    few = np.array(values, dtype=float)
    assert reference.rounded(few) is few
    many = np.resize(few, reference.LARGE)
    np.testing.assert_allclose(reference.rounded(many), many, rtol=6e-8, atol=1e-35)
    whole = np.resize(np.arange(10), reference.LARGE)
    assert reference.rounded(whole) is whole


@pytest.fixture(scope="module")
def recorded(inputs: Inputs, tmp_path_factory: pytest.TempPathFactory) -> tuple[Inputs, Path]:
    """The study's inputs and a reference made of them."""
    folder = tmp_path_factory.mktemp("reference")
    reference_store.save_reference(reference.recorded(inputs), {"study": inputs.study, "runs": []}, folder)
    return inputs, folder


def test_verdicts_are_those_of_the_run_and_what_nothing_declares_is_not_kept(
    recorded: tuple[Inputs, Path], published: pd.DataFrame
) -> None:
    inputs, folder = recorded
    again, manifest = reference_store.load_reference(folder)
    assert manifest["study"] == inputs.study
    assert set(again.rows.columns) == set(inputs.rows.columns)
    assert any(one.parameters for one in inputs.classifiers.values())
    for key, one in again.classifiers.items():
        assert one.repetitions == inputs.classifiers[key].repetitions
        assert all(array.size < reference.LARGE for array in one.parameters.values())
    for audit in again.audits.values():
        assert audit.rows.empty
    pd.testing.assert_frame_equal(verdicts(compared(again, published)), verdicts(compared(inputs, published)))


def test_the_blocks_that_a_run_leaves_out_are_as_the_reference_has_them(inputs: Inputs) -> None:
    run = studies.only(inputs, "compas", "audit")
    others = {part for part in reference.parts(inputs) if part.endswith("/compas")} - {"audit/compas"}
    assert others
    assert run.config["left_out"]
    again = reference.joined(run, inputs)
    assert reference.parts(again) == reference.parts(inputs)
    assert again.config["left_out"] == inputs.config["left_out"]
    assert [again.stamp(each.split("/")[0], "compas").scale for each in ("audit", *others)] == [
        "laptop", *["extended"] * len(others)
    ]  # fmt: skip
    # What neither has is left out, once; what only the run leaves out is there, and the other way round.
    neither = {"part": "new/compas"}
    had = [neither, {"part": "audit/compas"}]
    left = [*run.config["left_out"], neither]
    both = [replace(each, config={**each.config, "left_out": one}) for each, one in ((run, left), (inputs, had))]
    assert reference.joined(*both).config["left_out"] == [neither]
    told = manifest_of(inputs, {}, inputs, RAN)["runs"]
    first = {point["part"]: point["keys"].audit for point in inputs.points}
    told[0]["jobs"] = {f"paper/audit/x/{key} and 2 more": [1.0, 1.0] for key in first.values()}
    made = manifest_of(run, {}, reference.joined(*both), RAN, told)
    assert made["grid"] == sorted([*reference.parts(inputs), "new/compas"])
    assert [one["parts"] for one in made["runs"]] == [
        [part for part in reference.parts(inputs) if part != "audit/compas"], ["audit/compas"]
    ]  # fmt: skip
    kept = [f"paper/audit/x/{first[part]} and 2 more" for part in made["runs"][0]["parts"]]
    assert sorted(made["runs"][0]["jobs"]) == sorted(kept)


def test_a_reference_has_the_versions_that_its_results_record(inputs: Inputs) -> None:
    here = {**RAN, "versions": {"numpy": "3"}}
    assert manifest_of(inputs, {}, inputs, here)["runs"][0]["versions"] == {"numpy": "3"}, "of old results"
    recorded = [{"numpy": "1", "torch": "2"}, {"numpy": "2", "torch": "2"}]
    assert manifest_of(inputs, {}, inputs, here, (), recorded)["runs"][0]["versions"] == {
        "numpy": "1 and 2", "torch": "2"
    }  # fmt: skip


def test_the_datasets_that_a_run_leaves_out_are_as_the_reference_has_them(
    inputs: Inputs, published: pd.DataFrame
) -> None:
    run = studies.only(inputs, "compas")
    again = reference.joined(run, inputs)
    assert [again.stamp(dataset=name).scale for name in ("compas", "adult")] == ["laptop", "extended"]
    assert again.stamp().scale == again.scale == "extended and laptop"
    # The run's own come from the run alone.
    emptied = {key: replace(one, rows=one.rows.iloc[:0], arrays={}) for key, one in run.audits.items()}
    again = reference.joined(run, replace(inputs, audits={**inputs.audits, **emptied}))
    pd.testing.assert_frame_equal(verdicts(compared(again, published)), verdicts(compared(inputs, published)))
    told = manifest_of(inputs, {}, inputs, RAN)["runs"]
    told[0]["jobs"] = {f"paper/train/{name}/sensr": [1.0, 1.0] for name in ("adult", "compas")}
    first, second = manifest_of(run, {}, again, RAN, told)["runs"]
    assert (first["parts"], first["scale"], list(first["jobs"])) == (
        [part for part in reference.parts(inputs) if not part.endswith("/compas")],
        "extended",
        ["paper/train/adult/sensr"],
    )  # fmt: skip
    assert (second["parts"], second["scale"]) == (reference.parts(run), "laptop")


def test_an_artefact_that_a_reference_could_not_draw_is_named(inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> None:
    """No published number is needed to draw one that shows some."""
    study, find = inputs.study, registry.find
    shown = tuple(one for one in registry.declared(study) if one.name in ("comparison", "figure_2"))
    monkeypatch.setattr(registry, "declared", lambda study: shown)
    made = reference.recorded(inputs)
    check_drawn(made)

    def reads(inputs: Inputs) -> Any:
        return next(iter(inputs.audits.values())).arrays["lost"]

    monkeypatch.setattr(registry, "find", lambda *names: replace(find(*names), make=reads))
    with invalid(source=study, option=shown[0].name):
        check_drawn(made)


def test_a_network_without_its_weights_is_recorded(inputs: Inputs) -> None:
    name, model = next(iter(inputs.classifiers.items()))
    network = replace(model, parameters={}, index={"epoch": np.array([1, 8])}, facts={"accuracy": np.array([0.5, 0.8])})
    found = reference.recorded(replace(inputs, classifiers={name: network}))
    assert found.classifiers[name].facts["accuracy"].tolist() == [0.5, 0.8]


def test_a_later_run_of_one_block_leaves_the_files_of_the_others_as_they_are(
    recorded: tuple[Inputs, Path], tmp_path: Path
) -> None:
    inputs, folder = recorded
    earlier, _ = reference_store.load_reference(folder)
    run = studies.only(inputs, "compas", "audit")
    run = replace(run, rows=run.rows.assign(another="setting"))
    reference_store.save_reference(reference.joined(run, earlier), NOWHERE, tmp_path)
    before, after = ({path.stem: path.read_bytes() for path in (one / "rows").iterdir()} for one in (folder, tmp_path))
    assert len(before) > 1
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {"audit_1", "audit_2"}


def test_a_file_of_a_reference_is_at_most_a_megabyte(recorded: tuple[Inputs, Path], tmp_path: Path) -> None:
    inputs, _ = recorded
    key, one = next(iter(inputs.audits.items()))
    large = {"noise": np.random.default_rng(0).normal(size=200_000)}
    full = replace(inputs, audits={key: replace(one, arrays=large)})
    with invalid(source="audits_1.zip", remedy="Record fewer values"):
        reference_store.save_reference(full, NOWHERE, tmp_path)
    assert not (tmp_path / "manifest.json").exists()
    with invalid(source=tmp_path.name):
        reference_store.load_reference(tmp_path)


def test_small_values_share_a_file_and_many_take_more(recorded: tuple[Inputs, Path], tmp_path: Path) -> None:
    inputs, _ = recorded
    (key, one), *_ = inputs.audits.items()
    rng = np.random.default_rng(0)
    audits = {f"{key}{i}": replace(one, arrays={"noise": rng.normal(size=30_000)}) for i in range(9)}
    reference_store.save_reference(replace(inputs, audits=audits), NOWHERE, tmp_path)
    files = sorted(path.name for path in tmp_path.glob("audits_*.zip"))
    assert files == ["audits_1.zip", "audits_2.zip", "audits_3.zip"]
    again = reference_store._load_archives(tmp_path / "audits", io.load_audit)
    assert set(again) == set(audits)
    np.testing.assert_array_equal(again[f"{key}7"].arrays["noise"], audits[f"{key}7"].arrays["noise"])


# What the artefacts see of a data set: moments and sizes, and no row.


def dataset(origin: str = "official", n: int = 40) -> Dataset:
    """People of two groups, the last feature constant; some are in neither."""
    rng = np.random.default_rng(0)
    group = rng.integers(-1, 2, n)
    features = np.column_stack([rng.normal(size=n) + 2 * (group == 0), rng.integers(0, 2, n), np.ones(n)])
    rows = rng.permutation(n)
    groups, levels = {"g": group}, {"g": ("first", "second")}
    named: dict = {"feature_names": ("a", "b", "c"), "continuous": ("a",), "levels": levels, "origin": origin}
    return made_of(features, rng.integers(0, 2, n), groups, rows[None, : n // 2], rows[None, n // 2 :], **named)


def test_moments_are_those_of_the_rows_and_one_group_has_none() -> None:
    data = dataset()
    group, x = data.protected["g"], data.features
    found = summarize(data)
    assert (found.rows, found.train_rows, found.test_rows) == (40, 20, 20)
    assert found.positives == data.label.mean()
    known = group >= 0
    assert found.correlations["g"][0] == pytest.approx(np.corrcoef(x[known, 0], group[known] == 0)[0, 1])
    assert found.correlations["g"][0] > 0
    assert np.isnan(found.correlations["g"][2])
    assert found.deviations[2] == 0
    alone = replace(data, protected={"g": np.zeros(40, dtype=int)})
    assert summarize(alone).correlations == {}


def test_groups_of_images_are_counted_to_train_and_to_test() -> None:
    """A picture of an unknown group is in none."""
    kind, hand = np.array([0, 1, 1, 0, 1]), np.array([1, -1, 1, 0, -1])
    levels = {"kind": ("a", "b"), "hand": ("left", "right", "none")}
    found = summarize(image_dataset(np.zeros((5, 1, 2, 2)), {"kind": kind, "hand": hand}, levels, 3))
    assert found.groups["kind"].tolist() == [[1, 2], [1, 1]]
    assert found.groups["hand"].tolist() == [[0, 2, 0], [1, 0, 0]]
    rows = pd.DataFrame(data_facts(Inputs("s", "laptop", pd.DataFrame(), {}, datasets={"toy": found})))
    one = rows[(rows["statistic"] == "group_test_images") & (rows["partition"] == "hand")]
    assert dict(zip(one["level"], one["value"], strict=True)) == {"left": 1, "right": 0, "none": 0}


def test_no_row_of_real_data_is_in_it() -> None:
    found = summarize(dataset())
    assert found.points == {}
    held = [getattr(found, field.name) for field in fields(found)]
    assert all(value.ndim == 1 and len(value) == 3 for value in held if isinstance(value, np.ndarray))
    plane = replace(dataset("simulated"), features=dataset().features[:, :2], feature_names=("a", "b"))
    assert np.array_equal(summarize(plane).points["features"], plane.features)
    assert summarize(replace(plane, origin="twin")).points == {}


# A sweep's summary is the mean over repetitions of what is alike in everything else, and nothing besides.


FIGURE = Figure(statistic=("T_n",), x="audit.delta", lines="method", columns="dataset")


def rows(**more: list) -> pd.DataFrame:
    """T_n = 10 delta + r in repetition r = 0, 1, 2; with every combination of further columns."""
    names = ["dataset", "method", "delta", "repetition", *more]
    axes: list[list] = [["adult", "compas"], ["baseline", "sensr"], [0.0, 1.0, 2.0], [0, 1, 2], *more.values()]
    frame = pd.DataFrame(list(itertools.product(*axes)), columns=names)
    frame["value"] = 10 * frame["delta"] + frame["repetition"]
    constant = {"statistic": "T_n", "scale": "smoke", "origin": "official", "block": "b", "study": "w"}
    return frame.assign(**constant)


def picture_of(frame: pd.DataFrame, figure: Figure = FIGURE) -> Picture:
    """The sweep's figure of these rows."""
    with paper():
        return drawn(frame, figure, "a title")


def test_the_summary_is_mean_and_deviation_over_repetitions() -> None:
    table = summary(rows(), FIGURE)
    assert len(table) == 2 * 2 * 3
    assert np.allclose(table["mean"], 10 * table["delta"] + 1)
    assert np.allclose(table["std"], 1)
    assert set(table["n"]) == {3}
    # Student's quantile at .975 with two degrees of freedom.
    assert np.allclose(table["high"] - table["mean"], 4.302653 / np.sqrt(3))


def test_a_share_of_repetitions_has_wilson_s_interval() -> None:
    frame = rows().assign(value=lambda found: (found["repetition"] < found["delta"] + 1).astype(float))
    table = summary(frame, FIGURE).set_index("delta")
    # z^2 = 3.8415: of three of three the lower end is 3 / (3 + z^2).
    assert np.allclose(table.loc[2.0, "low"], 3 / (3 + 3.841459))
    assert np.allclose(table.loc[2.0, "high"], 1.0)
    for panel in picture_of(frame).figure.axes:
        bands = [np.asarray(band.get_paths()[0].vertices, float)[:, 1] for band in panel.collections]
        assert all(0 <= ends.min() <= ends.max() <= 1 for ends in bands)
        assert len({line.get_linewidth() for line in panel.lines}) == len(panel.lines)


def test_values_that_are_not_finite_are_left_out_and_counted() -> None:
    frame = rows()
    frame.loc[(frame["delta"] == 2) & (frame["repetition"] == 0), "value"] = np.inf
    table = summary(frame, FIGURE).set_index("delta")
    assert set(table.loc[2.0, "mean"]) == {21.5}
    assert set(table.loc[2.0, "n"]) == {2}
    assert table["not_finite"].sum() == 4
    assert picture_of(frame).notes == ("4 of 36 values are not finite and not drawn.",)


def test_rows_that_differ_in_a_column_without_a_name_are_not_averaged_and_a_filter_spares_others() -> None:
    mixed = rows(attribute=["sex", "race"])
    with invalid(column="attribute"):
        summary(mixed, FIGURE)
    kept = replace(FIGURE, where={"attribute": "sex"})
    assert len(chosen(mixed, kept)) == len(rows())
    plain = rows().assign(statistic="ks", attribute=None)
    both = pd.concat([rows(attribute=["sex", "race"]), plain], ignore_index=True)
    figure = replace(kept, statistic=("T_n", "ks"))
    assert len(chosen(both, figure)) == 2 * len(rows())
    either = replace(
        figure, lines="attribute", columns="method", where={"attribute": ["sex", "race"], "dataset": "adult"}
    )
    assert len(chosen(both, either)) == 3 * len(rows()) // 2


@pytest.mark.parametrize(
    ("figure", "fields"),
    [
        (Figure(("T_m",), "audit.delta"), {"option": "figure.statistic"}),
        (Figure(("T_n",), "dleta"), {"column": "dleta"}),
        (Figure(("T_n",), "delta", where={"method": "sensor"}), {"option": "figure.where", "column": "method"}),
        (
            Figure(("T_n",), "delta", where={"method": ["baseline", "sensor"]}),
            {"option": "figure.where", "column": "method"},
        ),
        (Figure(("T_n", "ks"), "delta", where={"method": "sensr"}), {"option": "figure.where", "column": None}),
    ],
)
def test_what_the_rows_do_not_have_is_refused(figure: Figure, fields: dict[str, str | None]) -> None:
    other = [rows().query("method == 'baseline'").assign(statistic="ks")] if "ks" in figure.statistic else []
    with invalid(**fields):
        summary(pd.concat([rows(), *other]), figure)


def test_panels_lines_and_points_are_those_of_the_rows() -> None:
    picture = picture_of(rows())
    panels = picture.figure.axes
    assert [axes.get_title() for axes in panels] == ["Adult", "COMPAS"]
    for axes in panels:
        lines = {line.get_label(): line for line in axes.get_lines()}
        assert set(lines) == {"Baseline", "SenSR"}
        assert all(np.allclose(line.get_ydata(), [1, 11, 21]) for line in lines.values())


def test_a_logarithmic_axis_keeps_its_zero() -> None:
    figure = replace(FIGURE, log=("x",))
    assert picture_of(rows(), figure).figure.axes[0].get_xscale() == "symlog"
    positive = rows()[lambda frame: frame["delta"] > 0]
    assert picture_of(positive, figure).figure.axes[0].get_xscale() == "log"


def test_a_statistic_that_the_lines_do_not_tell_apart_is_one_line() -> None:
    plain = rows().query("method == 'sensr'").assign(statistic="ks", method=None)
    both = pd.concat([rows(), plain], ignore_index=True)
    for statistics, lines in ((("T_n", "ks"), [2, 2, 1, 1]), (("ks", "T_n"), [1, 1, 2, 2])):
        picture = picture_of(both, replace(FIGURE, statistic=statistics)).figure
        assert [len(axes.get_lines()) for axes in picture.axes] == lines
        assert [text.get_text() for text in picture.legends[0].get_texts()] == ["Baseline", "SenSR"]


def test_a_trade_off_marks_the_settings_that_no_other_one_beats_in_both() -> None:
    gain, loss = np.array([0.9, 0.8, 0.8, 0.7, np.nan]), np.array([3.0, 1.0, 2.0, 1.5, 0.0])
    assert undominated(gain, loss).tolist() == [True, True, False, False, False]
    assert undominated(np.ones(2), np.ones(2)).tolist() == [True, True]
    accuracy = rows().assign(statistic="accuracy", value=lambda frame: -frame["delta"], block="c")
    both = pd.concat([rows(), accuracy, accuracy.assign(block="d")], ignore_index=True)
    figure = replace(FIGURE, against="accuracy")
    table = summary(both, figure)
    assert set(table["statistic"]) == {"T_n"}
    assert np.allclose(table["accuracy"], -table["delta"])
    # The larger delta, the less accurate and the less fair.
    assert (table["undominated"] == (table["delta"] == 0)).all()
    picture = picture_of(both, figure)
    (line, *_), rings = picture.figure.axes[0].get_lines()[::2], picture.figure.axes[0].get_lines()[1::2]
    assert np.allclose(line.get_xdata(), [0, -1, -2])
    assert [np.size(ring.get_xdata()) for ring in rings] == [1, 1]
    assert picture.notes == (
        "Ringed: no other setting of the panel has both a larger value across and a smaller size.",
    )


def test_lines_may_have_keys_of_their_own_for_x() -> None:
    frame = rows()
    other = frame["method"] == "sensr"
    frame = frame.assign(bound=frame["delta"].where(other), delta=frame["delta"].where(~other))
    table = summary(frame, replace(FIGURE, along=("method.bound",)))
    assert len(table) == 2 * 2 * 3
    assert np.allclose(table["mean"], 10 * table["delta"] + 1)


def test_powers_of_ten_are_set_as_formulas() -> None:
    tiny = rows().assign(method=lambda frame: frame["method"].map({"baseline": 1e-5, "sensr": 1e-4}))
    legend = picture_of(tiny).figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["10$^{-5}$", "10$^{-4}$"]
