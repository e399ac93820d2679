"""From the JSONs of the parts of a loss-ratio audit to the result that an audit of all their rows has."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.audits.loss_ratio.ratio_tests import RatioTest, error_rate_ratio_test_of_counts, joined_loss_ratio_test
from pipeline.cli.audit.join import Settings
from pipeline.cli.audit.loss_ratio.document import STATISTICS, measured, result_of, statistics
from pipeline.cli.result import Result
from pipeline.cli.settings import flag
from pipeline.messages import SHOWN, listed, reason

Part = Mapping[str, Any]
PARAMETERS = ("regularization", "step_size", "steps", "delta", "alpha", "dtype", "points", "seed", "examples")
AGREE = {
    "versions.pipeline": "version of this program",
    "data.features": "--features",
    "data.label": "--label",
    "data.label_levels": "--positive or --classes",
    "model.sha256": "--model",
    "model.output_kind": "--output-kind",
    **{f"parameters.{name}": flag(name) for name in PARAMETERS},
    "fair_metric.units": "units, by --standardize none, or cut one file with --part",
    "fair_metric.directions": "--directions, or the same --metric-data to learn them from, or cut one file with --part",
    "bounds.range": "--bounds FILE or none, or cut one file with --part",
    "bounds.one_hot": "--one-hot",
}
"""What the JSONs of all parts have alike, and what gives it to them."""
ROUNDING = 1e-8
"""What machines learn from the same rows differs by less."""
MOMENTS = {"S_n": float, "V_n": float, **dict.fromkeys(("n", "non_finite", "clipped", "below_one"), int)}
"""Of a loss-ratio test, what is pooled; null, where a part has no number, is NaN."""
ERROR_COUNTS = ("n", "wrong_before", "wrong_after", "below_one", "non_finite")
SOURCE = ("path", "sha256", "part", "rows", "audited")


def from_files(asked: Settings) -> Result:
    """Read, check and join. Raises ValueError for what is no result, and for parts that do not belong together."""
    return joined(asked.parts)


def joined(results: Iterable[Result | Part | str | Path]) -> Result:
    """One test of all rows from the ``results`` of their parts: Results, their dictionaries, files or folders."""
    named = [_read(one, number) for number, one in enumerate(results, start=1)]
    if not named:
        raise ValueError("expected the results of the parts of an audit, found none")
    for name, part in named:
        if part["audit"] != "loss-ratio":
            raise ValueError(f"{name} is of the audit {part['audit']}: only parts of a loss-ratio audit can be joined")
        for key, what in AGREE.items():
            found, wanted = _at(key, name, part), _at(key, *named[0])
            if not _alike(found, wanted):
                long = isinstance(found, Mapping | list) or isinstance(wanted, Mapping | list)
                values = "" if long else f" ({found} and {wanted})"
                raise ValueError(f"{name} and {named[0][0]} differ in {key}{values}: give all parts the same {what}")
    sources = [
        # Rows that were given from Python have no checksum: those of the same numbers are the same.
        (name, one["sha256"] or (one["path"] if one["part"] else f"{place} {part['results']}"), one)
        for name, part in named
        for place, one in enumerate(part["data"].get("parts", [part["data"]]))
    ]
    return _pooled([part for _, part in named], [one for *_, one in sources], _files(sources))


def _pooled(parts: Sequence[Part], sources: Sequence[Part], files: Sequence[Part]) -> Result:
    """The result of parts that belong together, made of ``sources``, each some rows of one of the ``files``."""
    first, of_one_file = parts[0], len(files) == 1
    limits = {key: first["parameters"][key] for key in ("delta", "alpha")}
    steps = first["course"]["steps"]
    test = _loss_ratio_test([part["course"]["loss_ratio"] for part in parts], **limits)
    errors = [part["course"]["error_rate_ratio"] for part in parts]
    error_counts = {key: np.sum([one[key] for one in errors], axis=0) for key in ERROR_COUNTS}
    tests = (test, error_rate_ratio_test_of_counts(**error_counts, **limits))
    found = [part["results"] for part in parts]
    classes = [
        {**ones[0], **{key: sum(one[key] for one in ones) for key in ("rows", "right")}}
        for ones in zip(*(one["classes"] for one in found), strict=True)
    ]
    counts = {
        "saturated": sum(one["saturated"] for one in found),
        "largest_ratio": max(one["largest_ratio"] for one in found),
    }
    data = {
        "path": listed([one["path"] for one in files], 3),
        "sha256": files[0]["sha256"] if of_one_file else None,
        "part": None,
        "rows": sum(one["rows"] for one in files),
        "audited": sum(one["audited"] for one in sources),
        "parts": [{key: one[key] for key in SOURCE} for one in sources],
    }
    every = [part["bounds"] for part in parts]
    # What is said of the range of the data is of all rows only where the parts are of one file.
    known = of_one_file and every[0]["within"] is not None
    bounds = {
        "whole": [name for name in every[0]["whole"] if all(name in one["whole"] for one in every)],
        "outside": sum(one["outside"] for one in every) if of_one_file else None,
        "within": statistics(_loss_ratio_test([one["within"] for one in every], **limits)) if known else None,
    }
    examples = [
        one if of_one_file else {"data": part["data"]["path"], **one} for part in parts for one in part["examples"]
    ]
    examples.sort(key=lambda one: (-one["loss_ratio"], one["row"]))
    devices = sorted({part["parameters"]["device"] for part in parts})
    facts = {
        **measured(steps, tests, classes, counts),
        "data": {**first["data"], **data},
        "model": first["model"],
        "parameters": {**first["parameters"], "device": listed(devices)},
        "fair_metric": first["fair_metric"],
        "bounds": {**every[0], **bounds},
        "examples": examples[: first["parameters"]["examples"]],
    }
    return result_of(facts, (steps, test, None), {})


def _loss_ratio_test(tests: Sequence[Part], delta: float, alpha: float) -> RatioTest:
    """The test of all rows from the JSON's numbers of the tests of the parts."""
    arrays: dict[str, Any] = {
        STATISTICS[key]: np.array([one[key] for one in tests], dtype=kind) for key, kind in MOMENTS.items()
    }
    return joined_loss_ratio_test(**arrays, delta=delta, alpha=alpha)


def _read(result: Result | Part | str | Path, number: int) -> tuple[str, Part]:
    """A part's result by the name that messages call it by."""
    if isinstance(result, Result):
        return f"result {number}", result.to_dict()
    if isinstance(result, Mapping):
        name, found = f"result {number}", result
    else:
        path = Path(result)
        name, path = str(result), path / "audit.json" if path.is_dir() else path
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"{name} cannot be read ({reason(error)}): give what --json or --output wrote") from error
    if not isinstance(found, Mapping) or "audit" not in found:
        raise ValueError(f"{name} is no result of an audit: give what --json or --output wrote")
    return name, found


def _at(key: str, name: str, part: Part) -> Any:
    group, _, own = key.partition(".")
    if own not in part.get(group, ()):
        raise ValueError(f"{name} does not say {key}: an earlier version wrote it; audit that part again")
    return part[group][own]


def _alike(found: Any, wanted: Any) -> bool:
    """Whether two entries are the same, tables of numbers but for rounding."""
    if not (isinstance(found, Mapping) and isinstance(wanted, Mapping)) or found.keys() != wanted.keys():
        return bool(found == wanted)
    a, b = (pd.DataFrame(one).to_numpy(dtype=float) for one in (found, wanted))
    if a.shape != b.shape:
        return False
    room = ROUNDING * np.abs(b).max(axis=0, initial=0.0, where=np.isfinite(b))
    return bool(((np.abs(a - b) <= room) | (np.isnan(a) & np.isnan(b))).all())


def _files(sources: Sequence[tuple[str, str, Part]]) -> list[Part]:
    """One source of each file, by its name in messages and what tells files apart.

    Raises ValueError for rows that are there twice, and for parts that are missing.
    """
    files: dict[str, dict[str | None, tuple[str, Part]]] = {}
    for name, key, one in sources:
        file = files.setdefault(key, {})
        if one["part"] in file:
            part = f"part {one['part']} of {one['path']}" if one["part"] else one["path"]
            raise ValueError(f"{name} and {file[one['part']][0]} are of the same rows, {part}: leave one of them out")
        file[one["part"]] = name, one
    for file in files.values():
        names, (one, *_) = zip(*file.values(), strict=True)
        cuts = {(part or "/").partition("/")[2] for part in file}
        if len(cuts) > 1:
            raise ValueError(f"{listed(names, SHOWN)} cut {one['path']} in different ways: cut it once")
        cut = cuts.pop()
        if missing := [f"{k}/{cut}" for k in range(1, int(cut or 0) + 1) if f"{k}/{cut}" not in file]:
            raise ValueError(f"{one['path']} lacks part {listed(missing, SHOWN)}: audit that with --part, and join all")
    return [next(iter(file.values()))[1] for file in files.values()]
