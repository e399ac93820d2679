"""Adult: does a person of the 1994 US census earn more than 50,000 dollars a year?

Rows: the rows of ``adult.data`` and ``adult.test`` with known occupation and native country, 45,222 of 48,842.
Inputs, d = 39: age, education-num, capital-gain, capital-loss, hours-per-week (standardised on the training rows), then
one-hot workclass (7), marital-status (7), occupation (14) and relationship (6), each in alphabetical order.
Sex (Male = 1) and race (White = 1) are protected and not inputs. Each repetition permutes the rows and trains on the
first 80 %: 36,177 to train, 9,045 to test.

With ``rows: all`` every row is kept, with "unknown" as a category, and every column except sex, race and the survey
weight is an input. Then d = 100: the one-hot columns include the categories that were left out, and education (16) and
native country (42) are added. These are the data of DiCiccio et al. (2020).

Source: Dua and Graff (2017), UCI Machine Learning Repository; preprocessing of Maity et al. (2021), appendix F.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd

from fairness_audits.validation import one_of
from fairness_audits.values import Dataset, Generators, Provenance
from pipeline.raw_data import tabular
from pipeline.raw_data.raw_table import category, parsed, whole
from pipeline.raw_data.source import Source
from pipeline.raw_data.tabular import SplitConfig, random_split

HOME = "https://archive.ics.uci.edu/dataset/2/adult"
SOURCES = tuple(
    Source(
        filename=filename,
        urls=(f"https://archive.ics.uci.edu/ml/machine-learning-databases/adult/{filename}",),
        sha256=sha256,
        size=size,
        licence="CC BY 4.0",
        home=HOME,
    )
    for filename, size, sha256 in (
        ("adult.data", 3_974_305, "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
        ("adult.test", 2_003_153, "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
    )
)
TWINS = {"complete": ("adult.parquet",), "all": ("adult_all.parquet",)}
"""The synthetic twin for each value of ``rows``."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIELDS = _words(
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country income"
)
"""The fields of a raw row, in order."""

NUMBERS = {
    "age": (0, 120),
    "fnlwgt": (0, 10_000_000),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 99_999),
    "hours-per-week": (0, 99),
}
"""Numeric fields and their valid ranges; 99 and 99,999 are the census's top codes."""

ENCODED = {
    "workclass": _words("Federal-gov Local-gov Private Self-emp-inc Self-emp-not-inc State-gov Without-pay"),
    "marital-status": _words(
        "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married Separated Widowed"
    ),
    "occupation": _words(
        "Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners Machine-op-inspct "
        "Other-service Priv-house-serv Prof-specialty Protective-serv Sales Tech-support Transport-moving"
    ),
    "relationship": _words("Husband Not-in-family Other-relative Own-child Unmarried Wife"),
}
"""The categories that become one-hot inputs. Nobody with a known occupation has "Never-worked"."""

UNKNOWN = "?"
CATEGORIES = {
    **ENCODED,
    "workclass": (*ENCODED["workclass"], "Never-worked", UNKNOWN),
    "occupation": (*ENCODED["occupation"], UNKNOWN),
    "education": _words(
        "Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Some-college Assoc-voc Assoc-acdm Bachelors "
        "Masters Prof-school Doctorate"
    ),
    "race": _words("Amer-Indian-Eskimo Asian-Pac-Islander Black Other White"),
    "sex": _words("Female Male"),
    "native-country": _words(
        "? Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England France Germany Greece "
        "Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran Ireland Italy Jamaica Japan Laos Mexico "
        "Nicaragua Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal Puerto-Rico Scotland South Taiwan "
        "Thailand Trinadad&Tobago United-States Vietnam Yugoslavia"
    ),
}
"""Every category of the raw files, in their spelling."""

EVERYTHING = {name: CATEGORIES[name] for name in (*ENCODED, "education", "native-country")}
"""The categories that become one-hot inputs with ``rows: all``."""

LABELS = {"adult.data": ("<=50K", ">50K"), "adult.test": ("<=50K.", ">50K.")}
CONTINUOUS = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
LEFT_OUT = ("fnlwgt", "education")
"""Columns that are read and checked but not used: a survey weight, and education-num as text."""


@dataclass(frozen=True)
class Config(SplitConfig):
    """``rows``: "complete", the rows without unknown values and the published inputs; "all", every row and column."""

    rows: Annotated[str, one_of(TWINS)]


def parse(folder: Path) -> pd.DataFrame:
    """Return the rows of ``adult.data``, then of ``adult.test``.

    Raises ValueError with the file, row and column of an unexpected value.
    """
    parts = []
    for filename, labels in LABELS.items():
        known = {**CATEGORIES, "income": labels}
        columns = {name: whole(*NUMBERS[name]) if name in NUMBERS else category(known[name]) for name in FIELDS}
        parts.append(parsed(folder / filename, columns, header=False, comment="|").drop(columns=list(LEFT_OUT)))
        parts[-1]["income"] = parts[-1]["income"].str.rstrip(".")
    return pd.concat(parts, ignore_index=True)


def filtered(rows: pd.DataFrame, which: str = "complete") -> tuple[pd.DataFrame, Mapping[str, int]]:
    """Return the rows with known occupation and native country, and the number dropped for each, in that order.

    With ``which="all"``, return every row and drop none.
    """
    if which == "all":
        return tabular.filtered(rows, {})
    rules = {f"{name} unknown": lambda r, name=name: r[name] != UNKNOWN for name in ("occupation", "native-country")}
    return tabular.filtered(rows, rules)


def prepare(rows: pd.DataFrame, config: Config, rngs: Generators, origin: Provenance) -> Dataset:
    """Encode the rows of :func:`filtered`, (n, 39) or (n, 100), and split them once for each generator."""
    kept, dropped = filtered(rows, config.rows)
    # education-num counts these from 1.
    kept = kept.assign(education=np.array(CATEGORIES["education"], dtype=object)[kept["education-num"] - 1])
    inputs = {name: kept[name] for name in CONTINUOUS}
    for name, categories in (ENCODED if config.rows == "complete" else EVERYTHING).items():
        inputs |= tabular.indicators(kept[name], categories)
    return tabular.dataset(
        "adult",
        origin,
        inputs,
        [random_split(len(kept), config.train_fraction, rng) for rng in rngs],
        continuous=CONTINUOUS,
        label=kept["income"] == ">50K",
        label_name="income>50K",
        protected={"sex": kept["sex"] == "Male", "race": kept["race"] == "White"},
        levels={"sex": ("Female", "Male"), "race": ("non-White", "White")},
        dropped=dropped,
    )
