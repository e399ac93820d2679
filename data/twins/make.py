"""Regeneration of the twins: ``python -m data.twins.make`` fits models to the official files and draws rows from them.

A twin has as many rows as the filtered official data, and the same columns. Twins of Adult and COMPAS are drawn by
levels (:mod:`data.twins.levels`), the twin of the law school data by a Gaussian copula (:mod:`data.twins.copula`). The
twin of the Strategic Subject List uses public counts and assumptions (:mod:`data.twins.subjects`).
:mod:`data.twins.preserved` states what a twin may reveal about the people in the official data.

A twin is drawn once, from the stream ``generators("twin", <dataset>)``. The same files give the same rows, unless the
last digit of a model parameter is on the boundary between two roundings.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from data.twins import copula, levels, preserved, subjects
from fairness_audits.files import load_json, save_text
from fairness_audits.seeds import generators
from pipeline.datasets import adult, compas, law, ssl
from pipeline.raw_data import download

HERE = Path(__file__).parent
STATISTICS = "preserved.json"
MODULES = {"adult": adult, "compas": compas, "law": law, "ssl": ssl}
TWINS: Mapping[str, tuple[Callable[..., pd.DataFrame], str, tuple[str, ...]]] = {
    "adult": (levels.twin, "complete", ("sex", "race", "income")),
    "adult_all": (levels.twin, "all", ("sex", "race", "income")),
    "compas": (levels.twin, "complete", ("sex", "race", "is_recid", "two_year_recid")),
    "compas_all": (levels.twin, "all", ("sex", "race", "two_year_recid")),
    "law": (copula.twin, "", ("race", "sex")),
    "ssl": (subjects.twin, "", ()),
}
"""Model, row filter and jointly drawn columns of each twin."""


def made(name: str, folder: Path) -> tuple[pd.DataFrame, dict[str, Any] | None]:
    """Return a twin's rows and the statistics of the official rows in ``folder`` (None for the Subject List)."""
    kind = name.partition("_")[0]
    model, _, root = TWINS[name]
    (rng,) = generators("twin", kind, repetitions=1)
    if kind == "ssl":
        return model(subjects.counts(folder), rng)[list(ssl.COLUMNS)], None
    rows = official(name, folder)
    return model(rows, root, rng), preserved.statistics(rows, root)


def official(name: str, folder: Path) -> pd.DataFrame:
    """Return the official rows after a dataset's filter."""
    module: Any = MODULES[name.partition("_")[0]]
    rows: pd.DataFrame = module.parse(folder)
    return module.filtered(rows, TWINS[name][1])[0] if TWINS[name][1] else rows


def save(name: str, rows: pd.DataFrame, folder: Path) -> None:
    """Write a twin's rows, in equal parts if it has several files."""
    files = MODULES[name.partition("_")[0]].TWINS[TWINS[name][1]]
    for file, part in zip(files, np.array_split(np.arange(len(rows)), len(files)), strict=True):
        rows.iloc[part].to_parquet(folder / file, index=False, compression="zstd")


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit and draw all twins, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m data.twins.make", description=main.__doc__)
    parser.add_argument("names", nargs="*", default=list(TWINS), help=f"of {', '.join(TWINS)}; default: all")
    parser.add_argument("--raw", type=Path, default=Path("data/raw"), help="folder of the folders of official files")
    parser.add_argument("--output", type=Path, default=HERE)
    options = parser.parse_args(arguments)
    path = options.output / STATISTICS
    known = load_json(path) if path.is_file() else {}
    for name in options.names:
        kind = name.partition("_")[0]
        sources = [subjects.COUNTS] if kind == "ssl" else MODULES[kind].SOURCES
        try:
            download.fetch(sources, options.raw / kind, os.environ.get("DATA_MIRROR"), dataset=kind)
            rows, statistics = made(name, options.raw / kind)
        except (ValueError, OSError) as error:
            sys.exit(f"make the twin {name}: {error}")
        save(name, rows, options.output)
        known |= {name: statistics} if statistics else {}
        print(f"{name}: {len(rows):,} rows")
    lines = (f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known))
    save_text("{\n" + ",\n".join(lines) + "\n}\n", path)


if __name__ == "__main__":
    main()
