"""Law school: does a student's first-year average lie above the median of all students'?

Rows: the 21,791 students of the Law School Admission Council's survey whom Kusner et al. (2017) use, 1,282 of them
black. Inputs, d = 12, not standardised: LSAT, UGPA (the undergraduate grade average), and one column for each of eight
races and of two sexes, which are protected attributes themselves. Outcome: ZFYA, the first-year average standardised by
school. The label is 1 if ZFYA is above its median, .09 in the official file. Protected: sex, and race as Black, White
or -1 for all others. The others stay because regressions and causal models learn from them too. Each repetition
permutes the rows and trains on the first 80 %: 17,432 to train, 4,359 to test.

Kusner et al. leave out students of one region (``PO``) and round LSAT. Black et al. (2020), section 5.4, count 21,791
students, so nobody is left out here. A model that needs whole LSAT scores rounds them itself.

Source: Wightman and Ramsey (1998), as prepared by Kusner et al. (2017).
"""

from pathlib import Path

import numpy as np
import pandas as pd

from fairness_audits.values import Dataset, Generators, Provenance
from pipeline.raw_data import tabular
from pipeline.raw_data.raw_table import category, decimal, parsed
from pipeline.raw_data.source import Source
from pipeline.raw_data.tabular import SplitConfig, random_split

FILE = "law_data.csv"
SOURCES = (
    Source(
        filename=FILE,
        # The address in the README of the authors' repository, which does not hold the file itself.
        urls=("https://www.dropbox.com/s/ca74he84aw6ed3z/law_data.csv?dl=1",),
        sha256="cbf494af5e0ac317015cf64945a20587c08ec77118e183d3ddb0026719956d88",
        size=1_087_804,
        licence="none stated; published by Kusner et al. with their analysis",
        home="https://github.com/mkusner/counterfactual-fairness",
    ),
)
TWINS = {"": ("law.parquet",)}

RACES = ("Amerindian", "Asian", "Black", "Hispanic", "Mexican", "Other", "Puertorican", "White")
SEXES = ("Female", "Male")
SEX_CODES = {"1": "Female", "2": "Male"}
"""The columns that the authors' program reads."""
NUMBERS = {"LSAT": (10.0, 48.0), "UGPA": (0.0, 4.3), "ZFYA": (-6.0, 6.0)}
"""Valid ranges: the scale of the LSAT until 1991, grades up to 4.3 (A+), and six standard deviations."""
PAIR = ("Black", "White")

Config = SplitConfig


def parse(folder: Path) -> pd.DataFrame:
    """Return the columns race, sex, LSAT, UGPA and ZFYA of the file.

    Raises ValueError with the file, row and column of an unexpected value.
    """
    numbers = {name: decimal(*limits) for name, limits in NUMBERS.items()}
    return parsed(folder / FILE, {"race": category(RACES), "sex": category(SEX_CODES), **numbers})


def prepare(rows: pd.DataFrame, config: Config, rngs: Generators, origin: Provenance) -> Dataset:
    """Encode the rows, (n, 12), and split them once for each generator."""
    race, sex, zfya = rows["race"], rows["sex"], rows["ZFYA"].to_numpy(dtype=float)
    dummies = tabular.indicators(race, RACES) | tabular.indicators(sex, SEXES)
    return tabular.dataset(
        "law",
        origin,
        {"LSAT": rows["LSAT"], "UGPA": rows["UGPA"], **dummies},
        [random_split(len(rows), config.train_fraction, rng) for rng in rngs],
        label=zfya > np.median(zfya),
        label_name="ZFYA>median",
        protected={"race": np.select([race == value for value in PAIR], [0, 1], default=-1), "sex": sex == "Male"},
        levels={"race": PAIR, "sex": SEXES},
        sensitive_inputs=tuple(dummies),
        outcomes={"ZFYA": zfya},
    )
