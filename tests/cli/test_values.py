"""Values as callers have them: numbers in columns of objects, classes and groups by value, advice in a call's words."""

import inspect
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

import fairness_audits as fa
from fairness_audits.arguments import Given, settled
from fairness_audits.cli.commands import COMMANDS
from fairness_audits.cli.options_file import read_options
from fairness_audits.tables.typed import typed
from tests.cli.places import ended
from tests.errors import invalid

N = 120
RNG = np.random.default_rng(4)
X = pd.DataFrame({"age": RNG.integers(18, 60, N), "income": RNG.normal(size=N), "member": RNG.integers(0, 2, N)})
Y, D, G = RNG.integers(0, 2, N), RNG.integers(0, 2, N), RNG.integers(0, 2, N)
IMAGES = RNG.random((N, 3, 3))
TOWNS = pd.Series(RNG.choice(["A", "B", "C"], N), name="town")
WEALTH = pd.Series(RNG.normal(size=N), name="wealth")


def decide(frame: pd.DataFrame) -> Any:
    age, income = (frame.iloc[:, place].astype(float) for place in (0, 1))
    return income + age / 40 > 1


def network(x: torch.Tensor) -> torch.Tensor:
    return x.flatten(1).sum(dim=1) - 4


def flipped(inputs: Any = X, group: Any = G, **given: Any) -> fa.Result:
    call: dict[str, Any] = {"source": 0, "target": 1, "map": "exact", "null_draws": 0} | given
    return fa.fliptest(decide, inputs, group, **call)


def rates(y: Any = Y, **given: Any) -> fa.Result:
    return fa.permutation_test(y, **{"prediction": D, "group": G, "metric": "tpr", **given})


def ratio(y: Any = Y, inputs: Any = X[["income", "member"]], **given: Any) -> fa.Result:
    return fa.loss_ratio(network, inputs, y, **{"sensitive": G, "steps": 2, **given})


def robust(y: Any = Y, groups: Any = G, **given: Any) -> fa.Result:
    return fa.robustness_bias(network, IMAGES, y, groups=groups, **{"attack": "exact", **given})


FRAMES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "objects": lambda frame: frame.astype(object),
    "decimals": lambda frame: frame.map(lambda value: Decimal(repr(value))),
    "NumPy's scalars": lambda frame: frame.astype(object).map(np.float64),
    "truth": lambda frame: frame.assign(member=frame["member"].astype(bool).astype(object)),
    "nullable": lambda frame: frame.convert_dtypes().astype(object),
    "an array": lambda frame: frame.astype(object).to_numpy(),
    "text beside": lambda frame: frame.assign(town="x").to_numpy()[:, :3],
}


@pytest.mark.parametrize("kind", FRAMES)
def test_numbers_in_a_column_of_objects_are_numbers(kind: str) -> None:
    known, found = flipped(), flipped(FRAMES[kind](X))
    assert found.facts["results"][0]["flipsets"]["positive"]["size"] > 0
    for side in ("positive", "negative"):
        sizes = [one.facts["results"][0]["flipsets"][side]["size"] for one in (known, found)]
        assert sizes[0] == sizes[1]
    ratios = [ratio(inputs=inputs, standardize="continuous").facts["results"] for inputs in (X, FRAMES[kind](X))]
    assert ratios[0] == ratios[1]


@pytest.mark.parametrize("kind", [object, Decimal, np.int64, float])
def test_labels_groups_scores_and_attributes_of_objects_are_those_of_numbers(kind: Any) -> None:
    def objects(values: Any) -> pd.Series:
        return pd.Series(values).map(lambda value: value if kind is object else kind(int(value))).astype(object)

    asked: dict[str, Any] = {"metric": ["tpr", "auc", "correlation"], "draws": 199}
    given = {"prediction": D, "group": G, "score": D, "attribute": Y + D}
    found = rates(objects(Y), **{name: objects(values) for name, values in given.items()}, **asked)
    assert found.facts["results"] == rates(**given, **asked).facts["results"]


MIXED: dict[str, Callable[[Any], fa.Result]] = {
    "age": lambda mixed: flipped(X.assign(age=mixed(X["age"]))),
    "group": lambda mixed: flipped(group=mixed(G)),
    "y": lambda mixed: rates(mixed(Y)),
    "score": lambda mixed: rates(score=mixed(D), metric="auc"),
    "attribute": lambda mixed: fa.permutation_test(Y, D, attribute=mixed(Y), metric="correlation"),
    "ids": lambda mixed: flipped(ids=mixed(np.arange(N))),
    "member": lambda mixed: ratio(inputs=X[["income", "member"]].assign(member=mixed(X["member"]))),
    "sensitive": lambda mixed: ratio(sensitive=mixed(G)),
    "groups": lambda mixed: robust(groups=pd.DataFrame({"groups": mixed(G)})),
}


@pytest.mark.parametrize("column", MIXED)
def test_a_column_of_numbers_and_text_is_refused_with_examples(column: str) -> None:
    def mixed(values: Any) -> list[Any]:
        return [*np.asarray(values).tolist()[:-1], "?"]

    with invalid(column=column, row=N - 1):
        MIXED[column](mixed)


def test_types_are_found_without_loss() -> None:
    big = 2**60
    frame = pd.DataFrame(
        {
            "whole": [Decimal(1), 2, np.int8(3)],
            "gap": [1, None, 2.5],
            "truth": [True, np.False_, True],
            "open": [True, None, False],
            "big": [big, big + 1, 0],
            "unsigned": [2**63, 1, 2],
            "text": ["1", "x", None],
        },
        dtype=object,
    )
    found = typed(frame, "rows")
    assert [str(found[name].dtype) for name in frame] == [
        "int64", "float64", "bool", "object", "int64", "uint64", "object",
    ]  # fmt: skip
    assert found["big"].tolist() == [big, big + 1, 0]
    assert frame.dtypes.eq(object).all()
    with invalid(column="id"):
        typed(pd.DataFrame({"id": [big, big + 1, None]}, dtype=object), "rows")


def told(result: fa.Result, name: str) -> list[str]:
    return [caveat.text for caveat in result.caveats if caveat.condition == name]


def test_a_category_of_texts_that_are_numbers_is_pointed_out() -> None:
    codes = X.assign(member=X["member"].map({0: "0,75", 1: "1,5"}))
    assert "'member'" in told(flipped(codes), "numbers_as_text")[0]
    assert not told(flipped(codes, categorical=["member"]), "numbers_as_text")
    assert not told(flipped(codes.assign(member=codes["member"].astype("category"))), "numbers_as_text")
    assert not told(flipped(X.assign(town=TOWNS)), "numbers_as_text")


ONES: tuple[Any, ...] = (1, True, 1.0, np.int64(1), np.True_, np.float32(1), np.array(1), Decimal(1), "1")
ZEROS: tuple[Any, ...] = (0, False, 0.0, np.int8(0), np.False_, np.float64(0), np.array(0), Decimal(0), "0")


@pytest.mark.parametrize(("one", "zero"), list(zip(ONES, ZEROS, strict=True)), ids=map(repr, ONES))
def test_classes_and_groups_are_named_by_value(one: Any, zero: Any) -> None:
    known = rates().facts["results"]
    signs = {"prediction": 2 * D - 1}
    assert rates(positive=one).facts["results"] == rates(Y == 1, positive=one).facts["results"] == known
    assert rates(2 * Y - 1, positive=one, **signs).facts["results"] == known
    assert rates(positive=zero).facts["results"] == rates(1 - Y, prediction=1 - D).facts["results"]
    sizes = [
        flipped(group=group, source=zero, target=one).facts["results"][0]["flipsets"]
        for group in (G, G == 1, G.astype(float), G.astype(object))
    ]
    assert all(size == sizes[0] for size in sizes)
    assert ratio(positive=one).facts["results"] == ratio().facts["results"]


def test_true_and_false_are_one_value_each_however_they_are_written() -> None:
    def spelt(values: Any) -> Any:
        return np.array([["false", "FALSE", "False"], ["true", "TRUE", "True"]])[values, np.arange(N) % 3]

    def results(*found: fa.Result) -> list[Any]:
        return [one.facts["results"] for one in found]

    truth = {"prediction": D == 1, "group": G == 1}
    texts = {name: spelt(values * 1) for name, values in truth.items()}
    assert results(rates(spelt(Y), **texts), rates(spelt(Y), positive="TRUE", **texts)) == results(rates(**truth)) * 2
    found, same = results(*(flipped(group=one, source="true", target="FALSE") for one in (spelt(G), G == 1)))
    assert found == same
    for named in ({"positive": "true"}, {"classes": ["false", "true"]}):
        found, same = results(ratio(spelt(Y), sensitive=spelt(G), **named), ratio(Y == 1, sensitive=G == 1))
        assert found["loss_ratio"] == same["loss_ratio"]
    assert results(robust(spelt(Y), spelt(G), classes=["false", "true"])) == results(robust(groups=G == 1))


@pytest.mark.parametrize("codes", [(1, 2), (-1, 1), (0, 2)])
def test_two_classes_of_other_numbers_need_positive(codes: tuple[int, int], tmp_path: Path) -> None:
    labels = np.array(codes)[Y]
    for call in (rates, ratio, lambda y: flipped(y=y, given_label=1)):
        with invalid(option="positive", column="y"):
            call(labels)
    assert f"{codes[0]}, {codes[1]}" in told(flipped(y=labels), "unread_label")[0]
    path = tmp_path / "rows.csv"
    pd.DataFrame({"y": labels, "d": np.array(codes)[D], "g": G}).to_csv(path, index=False)
    given = ["audit", "permutation", "--predictions", str(path), *["--label", "y", "--prediction", "d", "--group", "g"]]
    status, _, err = ended([*given, "--metric", "tpr"])
    assert status == 2
    assert f"holds {codes[0]}, {codes[1]} instead" in err
    assert f"positive='{codes[1]}'" in err


TEXTS = "yes NO on Off 012 12:30 2020-01-01 1e3 ~ null 0x1F 1_000 true .5 -1"


@pytest.mark.parametrize("text", TEXTS.split())
def test_a_text_of_a_users_yaml_stays_as_it_is_written(text: str, tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    plain = text if text not in ("~", "null") else f"'{text}'"
    path.write_text(
        f"source: {plain}\ntarget: '{text}'\ncategorical: [{plain}, b]\nid: {plain}\nalpha: 0.1\nreverse: yes\n"
    )
    found = read_options(path, COMMANDS["fliptest"].options, "fliptest")
    assert [found[name] for name in ("source", "target", "id")] == [text] * 3
    assert found["categorical"] == (text, "b")
    assert (found["alpha"], found["reverse"]) == (0.1, True)


@pytest.mark.parametrize("text", TEXTS.split())
def test_the_file_that_repeats_an_audit_has_the_same_options(text: str, tmp_path: Path) -> None:
    one: dict[str, Any] = dict.fromkeys(("group", "source", "target", "predict", "positive"), text)
    network: dict[str, Any] = {"label": text, "model": text, "classes": (text, "b"), "sensitive": (text,)}
    path = tmp_path / "audit.yaml"
    for audit, function, named in (("fliptest", fa.fliptest, one), ("loss-ratio", fa.loss_ratio, network)):
        given = Given(function, named).but(data=Path(text), **named)
        path.write_text(given.as_yaml(audit))
        found = read_options(path, COMMANDS[audit].options, audit)
        assert given.but(**found) == given
        assert yaml.safe_load(path.read_text()) == {"audit": audit, **given.stated}
    outputs: dict[str, Any] = {"predictions": text, "label": text, "group": (text, "b"), "metric": (text,)}
    given = Given(fa.permutation_test, {"positive": text}).but(**outputs)
    path.write_text(given.as_yaml("permutation"))
    again = read_options(path, COMMANDS["permutation"].options, "permutation")
    assert Given(fa.permutation_test, again).but(**again) == given


# What a call refuses, and what it says in the end, is in its own words: no option of the command line, no argument that
# does not exist.

REFUSED: dict[str, tuple[Any, Callable[[], Any]]] = {
    "three levels": (fa.loss_ratio, lambda: ratio(sensitive=TOWNS)),
    "a continuous attribute": (fa.loss_ratio, lambda: ratio(sensitive=WEALTH)),
    "one level": (fa.loss_ratio, lambda: ratio(sensitive=np.zeros(N))),
    "units": (fa.loss_ratio, lambda: ratio(inputs=X)),
    "text": (fa.loss_ratio, lambda: ratio(inputs=X.assign(town=TOWNS))),
    "a gap": (fa.loss_ratio, lambda: ratio(inputs=X.mask(X > 50))),
    "other labels": (fa.loss_ratio, lambda: ratio(Y + 1)),
    "many labels": (fa.loss_ratio, lambda: ratio(TOWNS)),
    "points": (fa.loss_ratio, lambda: ratio(points=10 * N)),
    "one-hot": (fa.loss_ratio, lambda: ratio(one_hot=["race_"])),
    "bounds": (fa.loss_ratio, lambda: ratio(bounds="no.csv")),
    "both": (fa.loss_ratio, lambda: ratio(directions=[1, 0])),
    "many groups": (fa.permutation_test, lambda: rates(group=WEALTH)),
    "other classes": (fa.permutation_test, lambda: rates(2 * Y - 1)),
    "three classes": (fa.permutation_test, lambda: rates(TOWNS)),
    "no scores": (fa.permutation_test, lambda: rates(metric="auc")),
    "no decisions": (fa.permutation_test, lambda: rates(prediction=None, score=D)),
    "neither": (fa.permutation_test, lambda: rates(prediction=None)),
    "no groups": (fa.permutation_test, lambda: rates(group=None)),
    "unknown metric": (fa.permutation_test, lambda: rates(metric="tprr")),
    "an attribute too many": (fa.permutation_test, lambda: rates(attribute=Y)),
    "no attribute": (fa.permutation_test, lambda: rates(score=D, metric="correlation")),
    "scores beyond": (fa.permutation_test, lambda: rates(score=5 * D, metric="log_loss")),
    "few draws": (fa.permutation_test, lambda: rates(score=D, metric="auc", draws=9)),
    "a threshold": (fa.permutation_test, lambda: rates(threshold=0.5)),
    "an exact test": (fa.permutation_test, lambda: rates(score=WEALTH, metric="mean_score", method="exact")),
    "max-t": (fa.permutation_test, lambda: rates(correct="max-t", alternative="less")),
    "one-sided margin": (fa.permutation_test, lambda: rates(margin=0.1, alternative="less")),
    "one-sided ratio": (fa.permutation_test, lambda: rates(metric="tpr", ratio=True, alternative="greater")),
    "no such level": (fa.permutation_test, lambda: rates(positive=7)),
    "no such group": (fa.fliptest, lambda: flipped(source=7)),
    "the same group": (fa.fliptest, lambda: flipped(source=1)),
    "a small group": (fa.fliptest, lambda: flipped(limit=5)),
    "names": (fa.fliptest, lambda: flipped(X.assign(name=[f"n{row}" for row in range(N)]))),
    "numbers as text": (fa.fliptest, lambda: flipped(X.astype(str))),
    "no label": (fa.fliptest, lambda: flipped(given_label=1)),
    "a label's value": (fa.fliptest, lambda: flipped(positive=1)),
    "a map": (fa.fliptest, lambda: flipped(map="exakt")),
    "a setting": (fa.fliptest, lambda: flipped(map_setting=["coast=l1"])),
    "a setting of none": (fa.fliptest, lambda: flipped(map="auto", map_setting=["steps=7"])),
    "a category": (fa.fliptest, lambda: flipped(categorical=["towns"])),
    "ids": (fa.fliptest, lambda: flipped(ids=np.zeros(N))),
    "scores": (fa.fliptest, lambda: fa.fliptest(lambda f: f["income"], X, G, source="0", target="1")),
    "nothing moves": (fa.fliptest, lambda: flipped(X * 0)),
    "few images": (fa.robustness_bias, lambda: robust(groups=WEALTH)),
    "labels from 1": (fa.robustness_bias, lambda: robust(Y + 1)),
    "signs": (fa.robustness_bias, lambda: robust(2 * Y - 1)),
    "few classes": (fa.robustness_bias, lambda: robust(classes=["a", "b", "c"])),
    "a mean": (fa.robustness_bias, lambda: robust(mean=[0.5, 0.5])),
    "a std": (fa.robustness_bias, lambda: robust(std=[0])),
    "more images": (fa.robustness_bias, lambda: robust(points=10 * N)),
    "an attack's setting": (fa.robustness_bias, lambda: robust(attack_setting=["steps=3"])),
    "another attack's": (fa.robustness_bias, lambda: robust(attack_setting=["fmn.steps=3"])),
}
QUOTED = re.compile(r"'[^']*'")
NAMED = re.compile(r"(?<![\w.(])([a-z_]+)=(?!=)")
"""An argument with its value in a message, but for those of functions that it calls."""


def options_in(text: str) -> list[str]:
    """The options of the command line that a text names."""
    return re.findall(r"(?<!\w)--[a-z][a-z-]*", text)


@pytest.mark.parametrize("fault", REFUSED)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_a_call_refuses_is_said_in_its_own_words(fault: str) -> None:
    call, refused = REFUSED[fault]
    with invalid() as found:
        refused()
    message = re.sub(r"\S+ in a file", "", str(found.value))
    assert not options_in(message)
    assert set(NAMED.findall(QUOTED.sub("''", message))) <= set(inspect.signature(call).parameters), message


def test_advice_runs_as_it_is_written() -> None:
    with invalid(option="sensitive", column="town") as found:
        ratio(sensitive=TOWNS)
    advice = re.search(r"whether 'town' is '(\w)'", str(found.value))
    assert advice is not None
    assert ratio(sensitive=advice[1] == TOWNS).facts["fair_metric"]
    with invalid(option="X", column="town"):
        ratio(inputs=X[["income", "member"]].assign(town=TOWNS))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_result_of_a_call_is_in_its_own_words() -> None:
    for call, result in (
        (fa.permutation_test, rates(score=D, metric=["tpr", "auc"], draws=199)),
        (fa.loss_ratio, ratio()),
        (fa.fliptest, flipped(X.assign(member=X["member"].astype(str)), y=Y + 1)),
        (fa.robustness_bias, robust(bootstraps=50, permutations=99)),
    ):
        assert not options_in(result.summary())
        assert not options_in(inspect.getdoc(call) or "")


def test_a_path_may_be_a_text() -> None:
    assert settled("kept.npz", Path | None) == Path("kept.npz")
    assert settled("name", str | None) == "name"
