"""The sentences of the audits: every template compiles, and uses only facts that its audit has."""

from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from tempfile import mkdtemp
from typing import Any

import jinja2.meta
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fairness_audits as fa
from fairness_audits import texts
from fairness_audits.results.document import Caveat
from fairness_audits.text_files import texts_of

ROWS = pd.DataFrame({"sex": np.arange(400) % 2, "town": np.arange(400) // 2 % 2})
DECISION = np.arange(400) // 4 % 2
RUNS: dict[str, Callable[[], object]] = {
    "compare": lambda: fa.compare(
        first=DECISION, second=1 - DECISION, group=ROWS["sex"], metric="selection_rate", no_worse_than=0.1
    ),
    "fliptest": lambda: fa.fliptest(
        lambda rows: rows["sex"] + rows["town"] > 1, ROWS, DECISION, source="0", target="1", map="exact", null_draws=1
    ),
    "loss_ratio": lambda: fa.loss_ratio(
        LogisticRegression().fit(ROWS, ROWS["sex"]), ROWS, DECISION, directions=[1, 0], steps=1
    ),
    "plan": lambda: fa.plan(value=0.5, gap=0.1),
    "permutation": lambda: fa.permutation_test(
        prediction=DECISION, group=ROWS["sex"], within=ROWS["town"], metric="selection_rate"
    ),
    "robustness_bias": lambda: fa.robustness_bias(
        lambda frame: frame["sex"] + frame["town"] - 1, ROWS, groups=ROWS["sex"], permutations=19, bootstraps=9
    ),
    "subgroups": lambda: fa.worst_subgroups(ROWS, prediction=DECISION, draws=19),
    "watch": lambda: fa.watch(
        prediction=DECISION, group=ROWS["sex"], metric="selection_rate", state=f"{mkdtemp()}/watch.json", batch="1"
    ),
}
"""A short run of each audit."""
AUDITS = sorted(path.name.removesuffix(".yaml") for path in files(texts).iterdir() if path.name.endswith(".yaml"))
OWN = {"rejected", "verdict", *texts.ENVIRONMENT.globals}
"""Names that the interpreter adds to the facts."""


def templates(audit: str) -> Iterator[tuple[str, set[str]]]:
    """Yield each template and condition of an audit, with the names that it may use besides the facts."""
    content = texts_of(audit)
    yield from ((content[name], set()) for name in ("sentence",) if name in content)
    yield from (
        (text, set()) for part in ("headlines", "brief", "tested", "texts") for text in content.get(part, {}).values()
    )
    for one in (*content.get("inconclusive", ()), *content["caveats"].values()):
        entry: Mapping[str, str] = {"text": one} if isinstance(one, str) else one
        own = {"entry"} if "each" in entry else set()
        yield from ((f"{{{{ {entry[name]} }}}}", set()) for name in ("each", "shared") if name in entry)
        yield f"{{{{ {entry.get('when', 'true')} }}}}", own
        yield entry.get("text", ""), own


def test_every_audit_with_texts_has_a_run() -> None:
    assert set(AUDITS) - {"glossary", "shared"} == set(RUNS)


@pytest.mark.parametrize("audit", RUNS)
def test_templates_use_only_facts_of_their_audit(audit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known: set[str] = set()
    caveats, named = texts.caveats, texts.named

    def recorded(name: str, facts: Mapping[str, Any]) -> Iterator[Caveat]:
        known.update(facts if name == audit else ())
        yield from caveats(name, facts)

    def recorded_text(name: str, text: str, facts: Mapping[str, Any]) -> str:
        known.update(facts if name == audit else ())
        return named(name, text, facts)

    monkeypatch.setattr(texts, "caveats", recorded)
    monkeypatch.setattr(texts, "named", recorded_text)
    RUNS[audit]()
    for text, own in templates(audit):
        used = jinja2.meta.find_undeclared_variables(texts.ENVIRONMENT.parse(text))
        assert "entry" in own or used <= known | OWN, text


def test_shared_caveats_compile() -> None:
    for part in texts_of("shared").values():
        for text in part.values():
            texts.template(text)
