"""Files are whole or absent, come back as they were saved, and are the same bytes each time."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline import io
from pipeline.types import Absent, AuditResult, Classifier, Dataset


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


def test_a_classifier_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    io.save_classifier(classifier(), tmp_path / "deep" / "model.npz")
    loaded = io.load_classifier(tmp_path / "deep" / "model.npz")
    assert (loaded.method, loaded.architecture, loaded.origin) == ("baseline", "mlp", "twin")
    for name, expected in classifier().parameters.items():
        np.testing.assert_array_equal(loaded.parameters[name], expected)
    np.testing.assert_array_equal(loaded.history["loss"], classifier().history["loss"])
    assert loaded.facts == {}


def test_a_dataset_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    data = Dataset(
        name="toy",
        origin="official",
        features=np.eye(3),
        feature_names=("a", "b", "c"),
        continuous=(),
        label=np.array([0, 1, 1]),
        label_name="paid",
        protected={"sex": np.array([1, 0, 1])},
        levels={"sex": ("female", "male")},
        train=np.array([[0, 1]]),
        test=np.array([[2]]),
        dropped={"missing occupation": 7},
        checksums={"toy.csv": "ab"},
    )
    io.save_dataset(data, tmp_path / "toy.npz")
    loaded = io.load_dataset(tmp_path / "toy.npz")
    assert loaded.feature_names == data.feature_names
    assert loaded.continuous == ()
    assert loaded.levels == data.levels
    assert (loaded.dropped, loaded.checksums) == (data.dropped, data.checksums)
    np.testing.assert_array_equal(loaded.batch("test").protected["sex"], [[1]])


def test_audit_rows_and_arrays_come_back_as_they_were_saved(tmp_path: Path) -> None:
    io.save_audit(audit(), tmp_path / "audit.npz")
    loaded = io.load_audit(tmp_path / "audit.npz")
    pd.testing.assert_frame_equal(loaded.rows, audit().rows, check_dtype=False)
    assert loaded.arrays["loss"].dtype == np.float32


def test_the_same_value_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.npz", "two.npz"):
        io.save_classifier(classifier(), tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    io.save_text("old", path)

    def interrupted() -> None:
        with io.written(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError, match="interrupted"):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_json_without_a_number_for_nan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        io.save_json({"T_n": float("nan")}, tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


def test_a_truncated_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    io.save_classifier(classifier(), path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match=r"model\.npz cannot be read as a Classifier.*Delete it"):
        io.load_classifier(path)


def test_a_file_of_another_type_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    io.save_classifier(classifier(), path)
    with pytest.raises(ValueError, match="holds a Classifier of format 1, expected a AuditResult"):
        io.load_audit(path)


def test_json_is_sorted_and_ends_with_a_line_break(tmp_path: Path) -> None:
    io.save_json({"b": 1, "a": [1.5]}, tmp_path / "x.json")
    text = (tmp_path / "x.json").read_text()
    assert text.index('"a"') < text.index('"b"')
    assert text.endswith("}\n")
    assert json.loads(text) == {"a": [1.5], "b": 1}


def test_a_network_comes_without_its_weights_where_they_are_not_asked_for(tmp_path: Path) -> None:
    parameters = {"w": np.ones((2, 3), np.float32)}
    facts = {"test_accuracy": np.array([0.5, 0.75])}
    for architecture, kept in (("networks.vgg19", []), ("linear", ["w"])):
        whole = Classifier("m", "d", "official", architecture, parameters, {}, facts, {"epoch": np.array([1, 2])})
        io.save_classifier(whole, tmp_path / "c.npz")
        found = io.load_without_weights(tmp_path / "c.npz")
        assert isinstance(found, Classifier)
        assert list(found.parameters) == kept
        np.testing.assert_array_equal(found.facts["test_accuracy"], facts["test_accuracy"])
        np.testing.assert_array_equal(found.index["epoch"], [1, 2])
        np.testing.assert_array_equal(io.load_classifier(tmp_path / "c.npz").parameters["w"], parameters["w"])


def test_an_audit_of_absent_data_is_one_row_that_says_why(tmp_path: Path) -> None:
    io.save_absent(Absent("faces", "nobody has them", "standard", "robustness_bias"), tmp_path / "a.npz")
    found = io.load_audit(tmp_path / "a.npz")
    place = found.audit, found.dataset, found.method, found.origin
    assert place == ("robustness_bias", "faces", "standard", "absent")
    assert found.rows.to_dict("records") == [
        {"repetition": 0, "statistic": "absent", "value": 1.0, "reason": "nobody has them"}
    ]
