"""Law school: does a student's first-year average lie above the median of all students'?

Rows: the 21,791 students of the Law School Admission Council's survey whom Kusner et al. (2017) use, 1,282 of them
black. Inputs, d = 12, none of them standardised: LSAT, UGPA (the undergraduate grade average), and one column for each
of eight races and of two sexes, which are protected attributes themselves. Outcome: ZFYA, the first-year average
standardised by school; the label is ZFYA above its median, .09 in the official file.
Protected: race, Black or White and -1 for all others, who stay because regressions and causal models learn from them
too; and sex. Each repetition permutes the rows and trains on the first 80 %: 17,432 to train, 4,359 to test.

Kusner et al. leave out students of one region (``PO``) and round LSAT; Black et al. (2020), section 5.4, whose data
these are, count 21,791, so here nobody is left out. A model that needs whole LSAT scores rounds them itself.

Source: Wightman and Ramsey (1998), as prepared by Kusner et al. (2017).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.datasets import raw_table
from pipeline.datasets.download import Source
from pipeline.fields import Checked, Share
from pipeline.types import Dataset, Origin

FILE = "law_data.csv"
SOURCES = (
    Source(
        filename=FILE,
        # Where the README of the authors' repository sends its readers; the repository itself does not hold the file.
        urls=("https://www.dropbox.com/s/ca74he84aw6ed3z/law_data.csv?dl=1",),
        sha256="cbf494af5e0ac317015cf64945a20587c08ec77118e183d3ddb0026719956d88",
        size=1_087_804,
        licence="none stated; published by Kusner et al. with their analysis",
        home="https://github.com/mkusner/counterfactual-fairness",
    ),
)
TWIN = "law.json"
TWIN_KIND = "copula"
"""How the twin is modelled: :mod:`pipeline.datasets.twins.copula`."""
TWIN_ROOT = ("race", "sex")

RACES = ("Amerindian", "Asian", "Black", "Hispanic", "Mexican", "Other", "Puertorican", "White")
SEXES = ("Female", "Male")
SEX_CODES = {"1": "Female", "2": "Male"}
"""As the authors' program reads the file."""
NUMBERS = {"LSAT": (10.0, 48.0), "UGPA": (0.0, 4.3), "ZFYA": (-6.0, 6.0)}
"""The scale of the LSAT until 1991, of grades with 4.3 for an A+, and six standard deviations."""
PAIR = ("Black", "White")


@dataclass(frozen=True)
class Config(Checked, of="dataset"):
    """``train_fraction``: the share of rows that each repetition trains on, rounded down to whole rows."""

    train_fraction: Share


def parse(folder: Path) -> pd.DataFrame:
    """Columns race, sex, LSAT, UGPA and ZFYA of the file; ValueError naming file, row and column of anything odd."""
    table = raw_table.read(folder / FILE, ("race", "sex", *NUMBERS), header=True)
    columns = {
        "race": table.category("race", RACES),
        "sex": table.category("sex", SEX_CODES).map(SEX_CODES),
        **{name: table.decimal(name, *limits) for name, limits in NUMBERS.items()},
    }
    return pd.DataFrame(columns).astype({"race": "str", "sex": "str"})


def filtered(rows: pd.DataFrame) -> tuple[pd.DataFrame, Mapping[str, int]]:
    """Every row, and none dropped."""
    return rows.reset_index(drop=True), {}


def prepare(rows: pd.DataFrame | None, config: Config, rngs: Sequence[np.random.Generator], origin: Origin) -> Dataset:
    """Encode the rows, (n, 12), and split them once for each generator."""
    if rows is None:
        raise ValueError("law is made of rows: parse the raw file or sample the twin first")
    race, sex, zfya = rows["race"], rows["sex"], rows["ZFYA"].to_numpy(dtype=float)
    numbers = {name: rows[name] for name in ("LSAT", "UGPA")}
    dummies = {f"race={value}": race == value for value in RACES} | {f"sex={value}": sex == value for value in SEXES}
    orders = np.stack([rng.permutation(len(rows)) for rng in rngs])
    n_train = math.floor(Fraction(str(config.train_fraction)) * len(rows))
    return Dataset(
        name="law",
        origin=origin,
        features=np.column_stack([np.asarray(column, dtype=float) for column in (numbers | dummies).values()]),
        feature_names=(*numbers, *dummies),
        continuous=(),
        label=(zfya > np.median(zfya)).astype(np.int64),
        label_name="ZFYA>median",
        protected={
            "race": np.select([race == value for value in PAIR], [0, 1], default=-1).astype(np.int64),
            "sex": (sex == "Male").to_numpy(dtype=np.int64),
        },
        levels={"race": PAIR, "sex": SEXES},
        train=orders[:, :n_train],
        test=orders[:, n_train:],
        sensitive_inputs=tuple(dummies),
        outcomes={"ZFYA": zfya},
    )
