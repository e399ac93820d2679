"""Points are the product of a grid; a wrong key or name is refused with the nearest right one."""

from pathlib import Path

import pytest

from pipeline.workflow.composition import Point, composed, points
from pipeline.workflow.config import CONF
from pipeline.workflow.resolution import of_scale
from pipeline.workflow.settings import of_user


def test_a_list_is_swept_and_a_list_in_a_list_is_one_value(conf: Path) -> None:
    found = points(conf, "s")
    assert len(found) == 2 * 2 + 1
    assert found[-1].settings == (("audit.delta", (1, 2, 3)),)
    assert found[-1].name("audit") == "a"
    assert {point.name("audit") for point in found[:-1]} == {"a@delta=1.1", "a@delta=1.25"}
    assert found[0].columns() == {"delta": 1.1}


def test_every_point_of_the_shipped_study_has_its_own_file_name() -> None:
    found = points(CONF, "individual_fairness")
    names = {(p.block, p.name("dataset"), p.name("method"), p.name("audit")) for p in found}
    assert len(names) == len(found) > 0


def test_a_model_is_named_by_the_settings_that_it_was_trained_with() -> None:
    point = Point("s", "b", "d", "m", "a", (("method.rate", 0.5), ("audit.delta", 2)))
    assert (point.name("dataset"), point.name("method"), point.name("audit")) == ("d", "m@rate=0.5", "a")


def test_a_point_with_a_transport_map_names_it_and_one_without_has_none() -> None:
    mapped = Point("s", "b", "d", "m", "a", (("transport.source", "women"), ("transport.steps", 9)), transport="t")
    assert mapped.name("transport") == "t@source=women@steps=9"
    assert mapped.columns() == {"steps": 9, "transport": "t"}
    assert Point("s", "b", "d", "m", "a").columns() == {}


def test_an_unknown_study_or_file_is_refused_with_the_nearest(conf: Path) -> None:
    with pytest.raises(ValueError, match=r"no study 'individual_fairnes' \(did you mean 'individual_fairness'"):
        points(CONF, "individual_fairnes")
    with pytest.raises(ValueError, match=r"no conf/method/othr\.yaml \(did you mean 'other'"):
        composed(conf, ("method=othr",))


def test_a_block_without_a_method_is_refused(conf: Path) -> None:
    (conf / "experiment" / "broken.yaml").write_text("grid:\n  main: {dataset: d, audit: a}\n")
    with pytest.raises(ValueError, match="study 'broken', block 'main': method is not given"):
        points(conf, "broken")


def test_a_block_without_a_dataset_and_a_method_is_of_an_audit_that_looks_at_neither(conf: Path) -> None:
    (conf / "experiment" / "drawn.yaml").write_text("grid:\n  main: {audit: a}\n")
    assert points(conf, "drawn") == (Point("drawn", "main", "none", "none", "a"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "settings:\n  - {where: {metod: m}, set: {repetitions: 2}}\n",
            r"where 'metod' is unknown \(did you mean 'method'",
        ),
        (
            "settings:\n  - {where: {block: main}, set: {repetitions: 2}}\n",
            "repetitions may be set by dataset, method and transport only",
        ),
        ("settings:\n  - {where: {audit: a}, set: {method.rate: 2}}\n", "method may be set by dataset and method only"),
        ("settings:\n  - {where: {method: m}, set: {dataset.rows: 2}}\n", "dataset may be set by dataset only"),
    ],
)
def test_a_scale_may_not_train_one_model_in_two_ways(conf: Path, text: str, message: str) -> None:
    (conf / "scale" / "wrong.yaml").write_text(text)
    with pytest.raises(ValueError, match=message):
        of_scale(conf, "wrong")


def test_overrides_are_typed_as_yaml_is() -> None:
    assert of_user("method.sensr.learning_rate=2e-5").values == {"method.learning_rate": 2e-5}
    assert of_user("audit.loss_ratio.record=[1, 2]").values == {"audit.record": [1, 2]}
    for wrong in ("sensr.learning_rate=2e-5", "metod.sensr.learning_rate=2e-5", "method.sensr.rate=1,2", "=2"):
        with pytest.raises(ValueError, match=r"write group\.name\.key=value"):
            of_user(wrong)
