"""COMPAS: is a defendant in Broward County, Florida, charged again within two years?

Rows: African-American and Caucasian defendants who pass ProPublica's filter, 5,278 of 7,214.
Inputs, d = 7: sex (Female = 1), race (Caucasian = 1), priors_count (standardised on the training rows), age 25 to 45,
over 45, under 25, and whether the charge is a felony. Sex and race are protected *and* inputs.
Each repetition splits 80/20, stratified by the label: 4,222 to train, 1,056 to test.

With ``rows: all`` every row is kept. The inputs are the facts known at the screening, except sex and race, d = 10: age,
counts of juvenile felonies, misdemeanours and other offences, and of prior offences (standardised), three age bands,
felony or misdemeanour. COMPAS's own scores are left out, and so are the columns start, end and event, which reveal the
label. Race is African-American or not. These are the data of DiCiccio et al. (2020).

Source: Larson et al. (2016), ProPublica; preprocessing of Maity et al. (2021), appendix G.
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
from pipeline.raw_data.tabular import SplitConfig, stratified_split

FILE = "compas-scores-two-years.csv"
SOURCES = (
    Source(
        filename=FILE,
        urls=(f"https://raw.githubusercontent.com/propublica/compas-analysis/master/{FILE}",),
        sha256="c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
        size=2_546_489,
        licence="none stated; published by ProPublica with its analysis",
        home="https://github.com/propublica/compas-analysis",
    ),
)
TWINS = {"complete": ("compas.parquet",), "all": ("compas_all.parquet",)}
"""The synthetic twin for each value of ``rows``."""

AGES = ("25 - 45", "Greater than 45", "Less than 25")
TIMES = whole(0, 200)
JUVENILE = ("juv_fel_count", "juv_misd_count", "juv_other_count")
DAYS = "days_b_screening_arrest"
"""Days from arrest to screening: the only column with missing values."""
READERS = {
    "sex": category(("Female", "Male")),
    "race": category(("African-American", "Asian", "Caucasian", "Hispanic", "Native American", "Other")),
    "age_cat": category(AGES),
    "priors_count": TIMES,
    DAYS: whole(-10_000, 10_000, missing=True),
    "c_charge_degree": category(("F", "M", "O")),
    "is_recid": whole(-1, 1),
    "score_text": category(("Low", "Medium", "High", "N/A")),
    "two_year_recid": whole(0, 1),
    "age": whole(18, 120),
    **dict.fromkeys(JUVENILE, TIMES),
}
"""The parsed columns, in this order, and their valid values."""

COLUMNS = {
    "complete": tuple(name for name in READERS if name not in ("age", *JUVENILE)),
    "all": ("sex", "race", "age_cat", "age", *JUVENILE, "priors_count", "c_charge_degree", "two_year_recid"),
}
"""The columns needed for each value of ``rows``."""
CONTINUOUS = {"complete": ("priors_count",), "all": ("age", *JUVENILE, "priors_count")}
PROTECTED_INPUTS = {"complete": ("sex", "race"), "all": ()}
MAXIMUM_DAYS = 30


@dataclass(frozen=True)
class Config(SplitConfig):
    """``rows``: "complete", the rows of ProPublica's filter and the published inputs; "all", every row, more inputs."""

    rows: Annotated[str, one_of(TWINS)]


def parse(folder: Path) -> pd.DataFrame:
    """Return the columns :data:`READERS` of ProPublica's table.

    A missing number of days is NaN; :func:`filtered` drops and counts these rows. Raises ValueError with the file, row
    and column of an unexpected value.
    """
    return parsed(folder / FILE, READERS)


def filtered(rows: pd.DataFrame, which: str = "complete") -> tuple[pd.DataFrame, Mapping[str, int]]:
    """Return the rows of two races in ProPublica's analysis, and the number dropped by each rule, in this order.

    With ``which="all"``, return every row and drop none. The columns are :data:`COLUMNS`.
    """
    rows = rows[list(COLUMNS[which])]
    if which == "all":
        return tabular.filtered(rows, {})
    rules = {
        "days between arrest and screening unknown": lambda r: r[DAYS].notna(),
        f"arrest and screening more than {MAXIMUM_DAYS} days apart": lambda r: r[DAYS].abs() <= MAXIMUM_DAYS,
        "no recidivism record": lambda r: r["is_recid"] != -1,
        "ordinary traffic offence": lambda r: r["c_charge_degree"] != "O",
        "no COMPAS score": lambda r: r["score_text"] != "N/A",
        "race neither African-American nor Caucasian": lambda r: r["race"].isin(["African-American", "Caucasian"]),
    }
    return tabular.filtered(rows, rules)


def prepare(rows: pd.DataFrame, config: Config, rngs: Generators, origin: Provenance) -> Dataset:
    """Encode the rows of :func:`filtered`, (n, 7) or (n, 10), and split them once for each generator."""
    kept, dropped = filtered(rows, config.rows)
    label = kept["two_year_recid"].to_numpy(dtype=np.int64)
    complete = config.rows == "complete"
    protected = {"sex": kept["sex"] == "Female", "race": kept["race"] != "African-American"}
    inputs = {name: protected[name] for name in PROTECTED_INPUTS[config.rows]}
    inputs |= {name: kept[name] for name in CONTINUOUS[config.rows]}
    inputs |= tabular.indicators(kept["age_cat"], AGES)
    inputs |= {f"c_charge_degree={degree}": kept["c_charge_degree"] == degree for degree in ("F" if complete else "FM")}
    return tabular.dataset(
        "compas",
        origin,
        inputs,
        [stratified_split(label, config.train_fraction, rng) for rng in rngs],
        continuous=CONTINUOUS[config.rows],
        label=label,
        label_name="two_year_recid",
        protected=protected,
        levels={
            "sex": ("Male", "Female"),
            "race": ("African-American", "Caucasian" if complete else "not African-American"),
        },
        sensitive_inputs=PROTECTED_INPUTS[config.rows],
        dropped=dropped,
    )
