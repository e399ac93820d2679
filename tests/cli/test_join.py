"""Parts of a loss-ratio audit, joined, are the audit of all rows; what does not belong together is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairness_audits as fa
from tests.cli.places import APPLICANTS, FEATURES, ended, json_of, linear_network, run
from tests.errors import invalid

pytestmark = pytest.mark.usefixtures("desk")
LEARNED = "--sensitive sex --standardize continuous"
GIVEN = "--directions directions.npy"
APART = {
    "data.sha256": f"{GIVEN} --data rows.csv",
    "model.sha256": f"{GIVEN} --model fair.pt",
    "data.features": f"{GIVEN} --features proxy,merit,member",
    "data.label_levels": f"{GIVEN} --positive 0",
    "fair_metric.units": f"{GIVEN} --standardize continuous",
    "fair_metric.directions": "--sensitive sex",
    "bounds.range": f"{GIVEN} --bounds none",
    "options.steps": f"{GIVEN} --steps 50",
}
"""What a part differs in, and how it was audited."""
COMPARED = "results course verdict bounds examples fair_metric options model placebo search"


def part(name: str, arguments: str) -> str:
    """The file that a part's result is in."""
    Path(f"{name}.json").write_text(json.dumps(json_of("loss-ratio", *arguments.split())))
    return f"{name}.json"


def joined(*results: str) -> dict[str, Any]:
    status, _, err = ended(["join", "--parts", *results, "--json", "joined.json"])
    assert (status, err) == (0, "")
    return dict(json.loads(Path("joined.json").read_text()))


def refused(*results: str) -> str:
    """What is said of results that cannot be joined."""
    status, out, err = ended(["join", "--parts", *results])
    assert (status, out, err.count("\n"), err[:7]) == (2, "", 1, "error: ")
    return err


def near(found: Any, wanted: Any) -> None:
    """The same, numbers to a part in a thousand million."""
    if isinstance(wanted, dict | list):
        assert len(found) == len(wanted)
        for key in wanted if isinstance(wanted, dict) else range(len(wanted)):
            near(found[key], wanted[key])
    else:
        assert found == (pytest.approx(wanted, rel=1e-9) if isinstance(wanted, float) else wanted)


@pytest.mark.parametrize("given", [LEARNED, f"{GIVEN} --bounds none", f"{LEARNED} --points 200"])
def test_parts_of_a_file_joined_are_its_audit(given: str) -> None:
    whole, made = json_of("loss-ratio", *given.split()), joined(*(part(k, f"{given} --part {k}/3") for k in "123"))
    for key in COMPARED.split():
        near(made[key], whole[key])
    assert (made["caveats"], made["data"]) == (whole["caveats"], whole["data"])


def test_a_joined_audit_is_shown_and_written_as_one_and_folders_are_read() -> None:
    for k in "12":
        assert run("loss-ratio", *LEARNED.split(), "--part", f"{k}/2", "--output", k)[0] == 0
    said = ended(["join", "--parts", "1", "2", "--output", "out"])[1]
    assert said.partition("Most unfair")[0] == run("loss-ratio", *LEARNED.split())[1].partition("Most unfair")[0]
    files = ["audit.json", "examples.csv", "loss_ratio.html", "loss_ratio.pdf", "loss_ratio.png", "tests.csv"]
    assert sorted(one.name for one in Path("out").iterdir()) == files


def test_results_of_calls_are_joined_of_three_classes_too() -> None:
    network, call = linear_network(1.0, 1.0, 0.0).double(), dict[str, Any](directions=[0, 1, 0], steps=20)

    def audited(**given: Any) -> fa.Result:
        X, y = APPLICANTS[list(FEATURES)], [row % 3 for row in range(300)]
        return fa.loss_ratio(lambda x: network(x)[:, [0, 1, 0]], X, y, **call, **given)

    parts: list[Any] = [audited(part="1/2"), audited(part="2/2").to_dict()]
    together = fa.join(parts)
    near(together.facts["course"], audited().facts["course"])
    assert "--" not in together.summary()
    with invalid(option="results"):
        fa.join([parts[0], audited(bounds="none", part="2/2")])
    with invalid(option="results"):
        fa.join([])
    for strange in ("part.json", parts[0], parts[1]):
        with invalid(option="results"):
            fa.join(strange)
    for other in ({**parts[1], "schema": 3}, {**parts[1], "data": {}}, "nowhere.json"):
        with invalid(option="results") as raised:
            fa.join([parts[0], other])
        assert "--" not in str(raised.value)


def test_parts_of_a_search_among_people_have_no_policy_and_the_same_reference() -> None:
    """Each part chooses its policy from its own rows, so the policy of one part is not that of all rows."""
    rng = np.random.default_rng(0)

    def rows(n: int) -> pd.DataFrame:
        title = rng.choice(["Ms", "Mr"], n)
        merit, sex = rng.normal(size=n), np.where(rng.random(n) < 0.1, rng.choice(["Ms", "Mr"], n), title)
        return pd.DataFrame({"title": title, "merit": merit, "sex": sex, "y": (merit > 0).astype(int)})

    def tree(frame: pd.DataFrame) -> np.ndarray:
        one = np.where(frame["merit"] + 0.5 * (frame["title"] == "Mr") > 0.2, 0.9, 0.1)
        return np.column_stack([1 - one, one])

    here, others = rows(400), [rows(200), rows(200)]

    def audit(**settings: Any) -> fa.Result:
        inputs = here[["title", "merit"]]
        return fa.loss_ratio(tree, inputs, here["y"], sensitive=here[["sex"]], **{"least_share": 0.2, **settings})

    whole = audit(reference=others[0])
    parts = [audit(reference=others[0], part=f"{k}/2") for k in (1, 2)]
    found = fa.join(parts)
    near(found.facts["results"]["loss_ratio"]["S_n"], whole.facts["results"]["loss_ratio"]["S_n"])
    assert found.facts["search"]["policy"] is None
    assert found.facts["search"]["evaluations"] == sum(one.facts["search"]["evaluations"] for one in parts)
    assert "policy" not in found.summary()
    for changed in (audit(reference=others[1], part="2/2"), audit(reference=others[0], part="2/2", least_share=0.3)):
        with invalid(option="results"):
            fa.join([parts[0], changed])


def test_parts_of_different_audits_are_refused() -> None:
    first = part("0", f"{GIVEN} --part 1/2")
    for key, given in APART.items():
        other = part("1", f"{given} --part 2/2")
        assert f"1.json and 0.json have different values of {key}." in refused(first, other)


def test_parts_of_a_file_that_are_missing_or_double_are_refused() -> None:
    one, two = (part(f"{k}", f"{GIVEN} --part {k}/3") for k in (1, 2))
    for other in (one, two):
        with invalid(option="results"):
            fa.join([one, other])
    assert "300 rows are too few for 151 parts of at least 2" in run("loss-ratio", *f"{GIVEN} --part 1/151".split())[2]
    assert "expected a string such as 3/10, found '4/3'" in run("loss-ratio", *f"{GIVEN} --part 4/3".split())[2]
