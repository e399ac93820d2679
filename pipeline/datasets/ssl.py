"""Strategic Subject List of the Chicago police: does a person's risk score reach 345 of 500?

Rows: the black (BLK) and white (WHI) people of known age at the latest arrest, among 398,684 people arrested from
August 2012 to July 2016. Inputs, d = 8: age at the latest arrest (in bands: the first two digits, "less than 20" is
10), number of times a victim of a shooting and of battery or assault, arrests for violence, gang affiliation, arrests
for narcotics, trend in criminal activity, arrests for unlawful use of a weapon. As in Black et al., each input is
scaled to mean 0 and variance 1 over people of *all* races before other races are left out. Inputs are not standardised
again. Race is protected and not an input. Outcome: the score, 0 to 500; the label is 1 for a score of at least
``threshold``. Each repetition permutes the rows and trains on the first 80 %.

The sha256 of the official file is not recorded, because the file was not available to us. Column names, numbers and
ranges come from published analyses. :func:`check` compares a downloaded file with the published counts, and the
manifest records its sha256. Without the file, a synthetic twin is used. It is made from public counts and assumptions,
all listed in ``data/twins/subjects.py``.

Source: City of Chicago (2017), data set 4aki-r3np; preprocessing of Black et al. (2020), section 5.2.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd

from fairness_audits.validation import interval
from fairness_audits.values import Dataset, Generators, Provenance
from pipeline.raw_data import tabular
from pipeline.raw_data.raw_table import category, code, decimal, parsed, whole
from pipeline.raw_data.source import Source
from pipeline.raw_data.tabular import SplitConfig, random_split

FILE = "Strategic_Subject_List.csv"
TWINS = {"": ("ssl_1.parquet", "ssl_2.parquet")}

UNKNOWN = ""
AGES = {"less than 20": 10, "20-30": 20, "30-40": 30, "40-50": 40, "50-60": 50, "60-70": 60, "70-80": 70}
HIGHEST_SCORE = 500
TIMES = whole(0, 200)
COLUMNS = {
    "score": ("SSL SCORE", whole(0, HIGHEST_SCORE)),
    "age": ("PREDICTOR RAT AGE AT LATEST ARREST", category((*AGES, UNKNOWN))),
    "shooting_victim": ("PREDICTOR RAT VICTIM SHOOTING INCIDENTS", TIMES),
    "battery_victim": ("PREDICTOR RAT VICTIM BATTERY OR ASSAULT", TIMES),
    "violent_arrests": ("PREDICTOR RAT ARRESTS VIOLENT OFFENSES", TIMES),
    "gang_affiliation": ("PREDICTOR RAT GANG AFFILIATION", whole(0, 1)),
    "narcotic_arrests": ("PREDICTOR RAT NARCOTIC ARRESTS", TIMES),
    "trend": ("PREDICTOR RAT TREND IN CRIMINAL ACTIVITY", decimal(-100.0, 100.0)),
    "weapon_arrests": ("PREDICTOR RAT UUW ARRESTS", TIMES),
    "sex": ("SEX CODE CD", code("[A-Z]", "one capital letter")),
    "race": ("RACE CODE CD", code("[A-Z]{1,3}", "one to three capital letters")),
}
"""The columns of the parsed list, in this order: our name, the city's name, and the valid values."""
FEATURES = tuple(name for name in COLUMNS if name not in ("score", "sex", "race"))
LEVELS = ("BLK", "WHI")

PEOPLE = 398_684
HIGH = 345
OF_RACE = {"BLK": (207_760, 26_785), "WHI": (82_317, 3_082)}
"""Published numbers of people, and of people with a score of at least :data:`HIGH`."""
UNCOUNTED = 153
"""People of unknown age group are missing from the published counts by race, so a count may be off by this many."""


@dataclass(frozen=True)
class Config(SplitConfig):
    """``threshold``: scores from this value on are high risk."""

    threshold: Annotated[float, interval(f"(0, {HIGHEST_SCORE}]")]


def parse(folder: Path) -> pd.DataFrame:
    """Return the columns :data:`COLUMNS` of the city's list.

    An unknown age is ``""``; :func:`prepare` drops and counts these rows. Raises ValueError with the file, row and
    column of an unexpected value.
    """
    return _read(folder / FILE)


def check(path: Path) -> None:
    """Raise ValueError unless the file at ``path`` has the published properties of the list."""
    rows = _read(path)
    published = {"people": (PEOPLE, rows)}
    for race, (people, high) in OF_RACE.items():
        own = rows[rows["race"] == race]
        published[f"people of race {race}"] = people, own
        published[f"people of race {race} with a score of {HIGH} or more"] = high, own[own["score"] >= HIGH]
    for what, (count, found) in published.items():
        if abs(len(found) - count) > UNCOUNTED:
            raise ValueError(f"expected {count:,} {what}, give or take {UNCOUNTED}, found {len(found):,}")


def _read(path: Path) -> pd.DataFrame:
    # Older copies of the file have underscores in the column names where the city now has blanks.
    rows = parsed(path, dict(COLUMNS.values()), spelled=lambda name: name.replace("_", " "))
    return rows.set_axis(list(COLUMNS), axis="columns")


def filtered(rows: pd.DataFrame) -> tuple[pd.DataFrame, Mapping[str, int]]:
    """Return the black and white people of known age with scaled inputs, and the number dropped by each rule.

    Raises ValueError for an input that is the same for everybody.
    """
    known, unknown = tabular.filtered(rows, {"age at latest arrest unknown": lambda r: r["age"] != UNKNOWN})
    inputs = known[list(FEATURES)].assign(age=known["age"].map(AGES)).astype(float)
    constant = inputs.max() == inputs.min()
    if constant.any():
        raise ValueError(f"ssl: inputs {list(inputs.columns[constant])} are the same for everybody")
    scaled = known.assign(**((inputs - inputs.mean()) / inputs.std(ddof=0)))
    kept, others = tabular.filtered(scaled, {"race neither BLK nor WHI": lambda r: r["race"].isin(LEVELS)})
    return kept, {**unknown, **others}


def prepare(rows: pd.DataFrame, config: Config, rngs: Generators, origin: Provenance) -> Dataset:
    """Encode the rows of :func:`filtered`, (n, 8), and split them once for each generator."""
    kept, dropped = filtered(rows)
    score = kept["score"].to_numpy(dtype=float)
    prepared = tabular.dataset(
        "ssl",
        origin,
        {name: kept[name] for name in FEATURES},
        [random_split(len(kept), config.train_fraction, rng) for rng in rngs],
        label=score >= config.threshold,
        label_name="high_risk",
        protected={"race": kept["race"] == LEVELS[1]},
        levels={"race": LEVELS},
        outcomes={"score": score},
        dropped=dropped,
    )
    # Column-major order: the last digits of sums over many rows depend on the memory layout.
    return replace(prepared, features=np.asfortranarray(prepared.features))


SOURCES = (
    Source(
        filename=FILE,
        urls=("https://data.cityofchicago.org/api/views/4aki-r3np/rows.csv?accessType=DOWNLOAD",),
        sha256=None,
        size=500_000_000,
        licence="terms of use of the Chicago Data Portal",
        home="https://data.cityofchicago.org/Public-Safety/Strategic-Subject-List-Historical/4aki-r3np",
        check=check,
    ),
)
