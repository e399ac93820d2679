"""Join the JSONs of the parts of a loss-ratio audit into the result of an audit of all their rows."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairness_audits.audits.join.settings import Settings
from fairness_audits.audits.loss_ratio.ratio_tests import (
    RatioTest,
    error_rate_ratio_test_of_counts,
    joined_loss_ratio_test,
)
from fairness_audits.audits.loss_ratio.result import STATISTICS, measured, result_of, statistics
from fairness_audits.errors import InvalidInput
from fairness_audits.messages import listed, reason
from fairness_audits.results.document import Document
from fairness_audits.results.result import Result

Part = Mapping[str, Any]
AGREE: Mapping[str, tuple[str, ...]] = {
    "versions": ("fairness_audits",),
    "data": ("sha256", "rows", "features", "label", "label_levels"),
    "model": ("sha256", "output_kind"),
    "options": (
        "regularization", "step_size", "steps", "delta", "alpha", "dtype", "points", "seed", "examples", "one_hot",
        "least_share", "placebo",
    ),
    "fair_metric": ("units", "directions"),
    "bounds": ("range",),
    "search": ("engine", "permitted", "reference_sha256"),
}  # fmt: skip
"""Entries that must be the same in the JSONs of all parts."""
ROUNDING = 1e-8
"""Largest difference between machines in what they learn from the same rows."""
MOMENTS = {"S_n": float, "V_n": float, **dict.fromkeys(("n", "non_finite", "clipped", "below_one"), int)}
"""The pooled fields of a loss-ratio test. A null, where a part has no number, becomes NaN."""
WRITTEN = "Pass the JSON files or the folders that the audits of the parts have written"
"""Remedy for a file that is not a result."""
ERROR_COUNTS = ("n", "wrong_before", "wrong_after", "below_one", "non_finite")


def from_files(settings: Settings) -> Result:
    """Read, check and join. Raises InvalidInput if a file is not a result or the parts do not belong together."""
    return joined(settings.parts)


def joined(results: Iterable[Result | Part | str | Path]) -> Result:
    """Return one test of all rows from the ``results`` of the parts: Results, dictionaries, files or folders."""
    if isinstance(results, Result | Mapping | str | Path):
        raise InvalidInput("expected a list of the parts' results, found one", option="parts", remedy="Pass a list")
    named = [_read(one, number) for number, one in enumerate(results, start=1)]
    if not named:
        raise InvalidInput("expected the results of the parts of an audit, found none", option="parts")
    for name, part in named:
        if part["audit"] != "loss-ratio":
            problem = f"{name} is a result of the audit {part['audit']}. Only parts of a loss-ratio audit can be joined"
            raise InvalidInput(problem, source=name, option="parts")
        if part.get("schema") != Document.schema:
            problem = f"{name} has the schema {part.get('schema')}, expected {Document.schema}"
            raise InvalidInput(problem, source=name, option="parts", remedy="Repeat the audit with this version")
        if part.get("data", {}).get("part") is None:
            raise InvalidInput(
                f"{name} does not state its part of the rows", source=name, option="parts", remedy=WRITTEN
            )
        for group, keys in AGREE.items():
            for key in keys:
                if not _alike(part.get(group, {}).get(key), named[0][1].get(group, {}).get(key)):
                    raise InvalidInput(
                        f"{name} and {named[0][0]} have different values of {group}.{key}",
                        source=name,
                        option="parts",
                        remedy="Join the parts of one file, audited with the same options",
                    )
    wanted = [f"{place}/{len(named)}" for place in range(1, len(named) + 1)]
    found = [str(part["data"]["part"]) for _, part in named]
    if len(sizes := {text.partition("/")[2] for text in found}) == 1 and (of := sizes.pop()).isdigit():
        wanted = [f"{place}/{of}" for place in range(1, int(of) + 1)]
    if sorted(found) != sorted(wanted):
        problem = f"expected the parts {listed(wanted)}, each once; found {listed(found)}"
        raise InvalidInput(problem, option="parts")
    return _pooled([part for _, part in named])


def _pooled(parts: Sequence[Part]) -> Result:
    """Return the result of the parts of a file."""
    first, found, bounds = parts[0], [part["results"] for part in parts], [part["bounds"] for part in parts]
    options, steps = {key: value for key, value in first["options"].items() if key != "part"}, first["course"]["steps"]
    limits = {key: options[key] for key in ("delta", "alpha")}
    test = _loss_ratio_test([part["course"]["loss_ratio"] for part in parts], **limits)
    errors = [part["course"]["error_rate_ratio"] for part in parts]
    error_counts = {key: np.sum([one[key] for one in errors], axis=0) for key in ERROR_COUNTS}
    tests = (test, error_rate_ratio_test_of_counts(**error_counts, **limits))
    classes = [
        {**ones[0], **{key: sum(one[key] for one in ones) for key in ("rows", "right")}}
        for ones in zip(*(one["classes"] for one in found), strict=True)
    ]
    counts = {
        "saturated": sum(one["saturated"] for one in found),
        "largest_ratio": max(one["largest_ratio"] for one in found),
    }
    placebos = [part["placebo"] for part in parts if part.get("placebo")]
    within = None if bounds[0]["within"] is None else _loss_ratio_test([one["within"] for one in bounds], **limits)
    # Each example has three lines, which must stay together.
    examples = sorted(
        (one for part in parts for one in part["examples"]),
        key=lambda one: (-one["audit_loss_ratio"], one["audit_row"]),
    )[: 3 * options["examples"]]
    facts = {
        **measured(steps, tests, classes, counts),
        "data": {**first["data"], "part": None, "audited": sum(part["data"]["audited"] for part in parts)},
        "options": options,
        "model": {**first["model"], "device": listed(sorted({part["model"]["device"] for part in parts}))},
        "fair_metric": first["fair_metric"],
        "search": _joined_search([part["search"] for part in parts]),
        "placebo": (
            placebos
            and {
                "rows": sum(one["rows"] for one in placebos),
                "directions": placebos[0]["directions"],
                **statistics(_loss_ratio_test(placebos, **limits)),
            }
        )
        or None,
        "bounds": {
            **bounds[0],
            "outside": sum(one["outside"] for one in bounds),
            "pinned": float(
                np.average([one["pinned"] for one in bounds], weights=[part["data"]["audited"] for part in parts])
            ),
            "within": None if within is None else statistics(within),
        },
        "examples": [{**one, "audit_rank": 1 + place // 3} for place, one in enumerate(examples)],
    }
    return result_of(facts, options, test)


def _joined_search(parts: Sequence[Part]) -> Part:
    """Return the search of all parts, without the policy, which each part chooses from its own rows."""
    found = dict(parts[0])
    if found["engine"] == "people":
        found |= {"policy": None, "evaluations": sum(part["evaluations"] for part in parts)}
    return found


def _loss_ratio_test(tests: Sequence[Part], delta: float, alpha: float) -> RatioTest:
    """Return the test of all rows from the numbers in the JSON of each part's test."""
    arrays: dict[str, Any] = {
        STATISTICS[key]: np.array([one[key] for one in tests], dtype=kind) for key, kind in MOMENTS.items()
    }
    return joined_loss_ratio_test(**arrays, delta=delta, alpha=alpha)


def _read(result: Result | Part | str | Path, number: int) -> tuple[str, Part]:
    """Return a part's name in messages, and its result."""
    if isinstance(result, Result):
        return f"result {number}", result.to_dict()
    if isinstance(result, Mapping):
        name, found = f"result {number}", result
    elif not isinstance(result, str | Path):
        problem = f"result {number} is an object of type {type(result).__name__}"
        raise InvalidInput(problem, option="parts", remedy=WRITTEN)
    else:
        path = Path(result)
        name, path = str(result), path / "audit.json" if path.is_dir() else path
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            problem = f"{name} cannot be read ({reason(error)})"
            raise InvalidInput(problem, source=name, option="parts", remedy=WRITTEN) from error
    if not isinstance(found, Mapping) or "audit" not in found:
        raise InvalidInput(f"{name} is not the result of an audit", source=name, option="parts", remedy=WRITTEN)
    return name, found


def _alike(found: Any, wanted: Any) -> bool:
    """Return whether two entries are equal, numbers up to rounding."""
    if isinstance(found, Mapping) and isinstance(wanted, Mapping):
        return found.keys() == wanted.keys() and all(_alike(found[key], wanted[key]) for key in wanted)
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(_alike, found, wanted))
    if isinstance(found, float) and isinstance(wanted, float):
        return math.isclose(found, wanted, rel_tol=ROUNDING, abs_tol=ROUNDING)
    return bool(found == wanted)
