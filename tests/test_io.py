"""Files are whole or absent, come back as they were saved, and are the same bytes each time."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairness_audits.files import save_json, save_text, written
from fairness_audits.values import Classifier, Dataset
from pipeline import io, software
from pipeline.values import AuditResult, MissingData
from pipeline.workflow.launch import Task
from tests.builders import dataset as toy


def classifier() -> Classifier:
    rng = np.random.default_rng(1)
    return Classifier(
        method="baseline",
        dataset="toy",
        origin="twin",
        architecture="mlp",
        parameters={"w1": rng.normal(size=(2, 3, 4)), "b1": rng.normal(size=(2, 4))},
        history={"step": np.arange(3), "loss": rng.random((2, 3))},
    )


def audit() -> AuditResult:
    rows = pd.DataFrame(
        {"repetition": [0, 1], "statistic": ["T_n", "T_n"], "value": [1.5, float("nan")], "steps": [200.0, 500.0]}
    )
    return AuditResult("loss_ratio", "toy", "baseline", "official", rows, {"loss": np.eye(2, dtype=np.float32)})


def dataset() -> Dataset:
    named: dict[str, Any] = {"feature_names": ("a", "b", "c"), "levels": {"sex": ("female", "male")}}
    facts: dict[str, Any] = {"dropped": {"missing occupation": 7}, "checksums": {"toy.csv": "ab"}}
    groups, train, test = {"sex": np.array([1, 0, 1])}, np.array([[0, 1]]), np.array([[2]])
    return toy(np.eye(3), np.array([0, 1, 1]), groups, train, test, origin="official", **named, **facts)


def test_a_result_records_the_software_that_computed_it_and_its_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, plain = (str(tmp_path / f"{name}.npz") for name in ("one", "two", "plain"))
    old, now = {"numpy": "1"}, software.installed()

    def made(value: Any, output: str, *inputs: str) -> Task:
        monkeypatch.setitem(sys.modules, "pipeline.stages.echo", SimpleNamespace(make=lambda *_: value))
        task = Task("echo", output, {"classifier": inputs}, "{}", "0123", 1, "")
        task.run()
        return task

    io.save(dataset(), one, [old])
    assert made(classifier(), two, one).identity() == io.made_by(two)
    io.save(dataset(), plain)
    assert io.made_by(one) == io.made_by(plain) == ""
    assert io.software(one) == [old]
    assert io.software(two) == [now, old]
    made(audit(), str(tmp_path / "three.npz"), one, two)
    assert io.software(tmp_path / "three.npz") == [now, old]
    io.save(audit(), plain)
    assert io.software(plain) == [{}], "of an earlier version of this project"
    assert software.described({}, now) == "not recorded"
    made(classifier(), two, plain)
    assert io.software(two) == [now, {}]
    io.save(MissingData("faces", "nobody has them"), plain)
    assert io.software(plain) == []


@pytest.mark.parametrize("value", [classifier(), dataset(), audit()], ids=lambda value: type(value).__name__)
def test_a_value_comes_back_as_it_was_saved_and_gives_the_same_bytes(value: Any, tmp_path: Path) -> None:
    one, two = tmp_path / "deep" / "one.npz", tmp_path / "two.npz"
    io.save(value, one)
    io.save(value, two)
    assert one.read_bytes() == two.read_bytes()
    loaded = io.load(one, type(value))
    for name, expected in vars(value).items():
        found = getattr(loaded, name)
        if isinstance(expected, pd.DataFrame):
            pd.testing.assert_frame_equal(found, expected, check_dtype=False)
            continue
        assert type(found) is type(expected)
        for ours, theirs in zip(*(_leaves(both) for both in (found, expected)), strict=True):
            assert getattr(ours, "dtype", None) == getattr(theirs, "dtype", None), name
            np.testing.assert_array_equal(ours, theirs)


def _leaves(value: object) -> list[Any]:
    """The keys and values of a mapping, or the value itself."""
    return [*value.keys(), *value.values()] if isinstance(value, dict) else [value]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    save_text("old", path)

    def interrupted() -> None:
        with written(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError, match="interrupted"):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_truncated_file_is_named_with_what_to_do_and_one_of_another_type_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    io.save(classifier(), path)
    with pytest.raises(ValueError, match="holds a Classifier of format 1, expected a AuditResult"):
        io.load_audit(path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match=r"model\.npz cannot be read as a Classifier.*Delete it"):
        io.load(path, Classifier)


def test_json_is_sorted_ends_with_a_line_break_and_has_no_nan(tmp_path: Path) -> None:
    save_json({"b": 1, "a": [1.5]}, tmp_path / "x.json")
    text = (tmp_path / "x.json").read_text()
    assert text.index('"a"') < text.index('"b"')
    assert text.endswith("}\n")
    assert json.loads(text) == {"a": [1.5], "b": 1}
    with pytest.raises(ValueError, match="not JSON compliant"):
        save_json({"T_n": float("nan")}, tmp_path / "y.json")
    assert not (tmp_path / "y.json").exists()


def test_a_network_comes_without_its_weights_where_they_are_not_asked_for(tmp_path: Path) -> None:
    parameters = {"w": np.ones((2, 3), np.float32)}
    facts = {"test_accuracy": np.array([0.5, 0.75])}
    for architecture, kept in (("networks.vgg19", []), ("linear", ["w"])):
        whole = Classifier("m", "d", "official", architecture, parameters, {}, facts, {"epoch": np.array([1, 2])})
        io.save(whole, tmp_path / "c.npz")
        found = io.load_without_weights(tmp_path / "c.npz")
        assert isinstance(found, Classifier)
        assert list(found.parameters) == kept
        np.testing.assert_array_equal(found.facts["test_accuracy"], facts["test_accuracy"])
        np.testing.assert_array_equal(found.index["epoch"], [1, 2])
        np.testing.assert_array_equal(io.load(tmp_path / "c.npz", Classifier).parameters["w"], parameters["w"])


def test_an_audit_of_absent_data_is_one_row_that_says_why(tmp_path: Path) -> None:
    io.save(MissingData("faces", "nobody has them", "standard", "robustness_bias"), tmp_path / "a.npz")
    found = io.load_audit(tmp_path / "a.npz")
    place = found.audit, found.dataset, found.method, found.origin
    assert place == ("robustness_bias", "faces", "standard", "absent")
    row = {"repetition": 0, "statistic": "absent", "value": 1.0, "reason": "nobody has them"}
    assert found.rows.to_dict("records") == [row]


def test_a_text_that_a_row_lacks_comes_back_empty_and_not_as_a_name(tmp_path: Path) -> None:
    rows = pd.DataFrame([{"repetition": 0, "statistic": "raw", "other": "tpr", "value": 1.0}])
    rows = pd.concat([rows, rows.drop(columns="other")], ignore_index=True)
    io.save(AuditResult("a", "toy", "baseline", "official", rows, {}), tmp_path / "a.npz")
    assert io.load_audit(tmp_path / "a.npz").rows["other"].tolist() == ["tpr", ""]


def test_a_checkpoint_of_other_code_is_not_continued(tmp_path: Path) -> None:
    mark, output = np.array("work"), tmp_path / "made.npz"
    io.CheckpointFile(output, "code").save(mark, {"step": np.array(3)})
    kept = io.CheckpointFile(output, "code").load(mark)
    assert kept is not None
    assert kept["step"] == 3
    assert io.CheckpointFile(output, "code").load(np.array("other work")) is None
    assert io.CheckpointFile(output, "other code").load(mark) is None
    io.CheckpointFile(output, "").save(mark, {"step": np.array(3)})
    assert io.CheckpointFile(output, "").load(mark) is None
