"""Make the twin of the Strategic Subject List of what is published about it.

- The counts of people by score, race, sex and age band: a file of the city's list that a visualisation of it is drawn
  from, :data:`COUNTS`.
- Mean and standard deviation of every feature over all 398,684 people, and each feature's share in the changes of a
  random forest's predictions: two notebooks of the same author, https://github.com/pjsier/strategic-subject-list,
  "SSL Data Overview" and "SSL Skater Model Interpretation".
- Age's least-squares weight and the correlation of narcotic arrests with race: Black et al. (2020), section 5.2.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.datasets.raw_table import category, parsed, whole
from pipeline.datasets.source import Source
from pipeline.datasets.twins.subjects import Feature, SubjectTwin, grouped
from pipeline.types import Array

FILE = "treemap_ssl_groups.csv"
REPOSITORY = "pjsier/strategic-subject-list-viz"
COUNTS = Source(
    filename=FILE,
    urls=(f"https://raw.githubusercontent.com/{REPOSITORY}/ed2a0113062b16c226881af302f9b00d56a2c38d/data/{FILE}",),
    sha256="1e3d99e4e51354bc1e5264ca3d30d5c8542f750c1130c50c27ecc9bd787b503f",
    size=152_042,
    licence="none stated; counts of a public list of the City of Chicago",
    home=f"https://github.com/{REPOSITORY}",
)

RACES = {"Black": "BLK", "White": "WHI", "Hispanic": "WWH", "Asian": "API", "Unknown-Not-Listed": "U"}
SEXES = {"Men": "M", "Women": "F", "Other": "X"}
DECADES = tuple(f"{low}-{low + 10}" for low in range(20, 80, 10))
AGES = {"<20": "less than 20"} | {band: band for band in DECADES}
"""The words of the counts, and those of the list."""
AGE_BAND = 10
"""The bands are ten years wide, the lowest too where it becomes a number."""

MOMENTS = {
    "shooting_victim": ("times", 0.020227, 0.152919),
    "battery_victim": ("times", 0.035916, 0.210601),
    "violent_arrests": ("times", 0.114988, 0.405583),
    "gang_affiliation": ("flag", 0.162903, 0.369278),
    "narcotic_arrests": ("times", 0.335752, 0.837828),
    "trend": ("tenths", -0.049534, 0.404900),
    "weapon_arrests": ("times", 0.033297, 0.193237),
}
"""Law, mean and standard deviation of each feature but age."""
CHANGES = {
    "age": 0.741873,
    "shooting_victim": 0.008316,
    "battery_victim": 0.042538,
    "violent_arrests": 0.050046,
    "gang_affiliation": 0.013652,
    "narcotic_arrests": 0.041557,
    "trend": 0.095610,
    "weapon_arrests": 0.006408,
}
"""Shares in the mean absolute change of predictions when one feature is replaced by another person's."""
AGE_WEIGHT = 50.0
"""Magnitude, in points of the score for one standard deviation."""
CORRELATION = 0.12
MANY_TIMES = 1_000
"""Beyond that many times a negative binomial law has no mass that counts."""


def counts(folder: Path) -> pd.DataFrame:
    """The file's columns, score, race, sex, age and count, in the words of the list."""
    words = {"race": RACES, "sex": SEXES, "age": AGES}
    columns = {"ssl_score": whole(0, 500), **{name: category(known) for name, known in words.items()}}
    return parsed(folder / FILE, {**columns, "count": whole(1, 1_000_000)}).rename(columns={"ssl_score": "score"})


def made(people: pd.DataFrame, order: tuple[str, ...]) -> SubjectTwin:
    """The twin of the counts ``people``; ``order`` are the columns of the parsed list."""
    number = people["count"].to_numpy()
    age = people["age"].map({band: AGE_BAND * position for position, band in enumerate(AGES.values(), 1)}).to_numpy()
    mean = np.average(age, weights=number)
    spread = np.sqrt(np.average((age - mean) ** 2, weights=number))
    difference = _mean_difference(np.unique(age), np.bincount(age, weights=number)[np.unique(age)])
    per_change = AGE_WEIGHT * difference / spread / CHANGES["age"]
    weights = {
        name: per_change * CHANGES[name] * sd / mean_difference(law, m, sd) for name, (law, m, sd) in MOMENTS.items()
    }
    score = people["score"].to_numpy(dtype=float)
    in_band = people.assign(total=score * number).groupby("age")[["total", "count"]].transform("sum")
    left = np.average((score - in_band["total"] / in_band["count"]) ** 2, weights=number)
    return SubjectTwin(
        dataset="ssl",
        order=order,
        people=grouped(people),
        features=tuple(Feature(name, *law, round(float(weights[name]), 2)) for name, law in MOMENTS.items()),
        noise=round(float(np.sqrt(left - sum(weight**2 for weight in weights.values()))), 2),
        correlation=CORRELATION,
    )


def mean_difference(law: str, mean: float, sd: float) -> float:
    """E|x - x'| of two independent draws."""
    if law == "flag":
        return 2 * mean * (1 - mean)
    if law == "tenths":
        return float(2 * sd / np.sqrt(np.pi))
    from scipy.stats import nbinom

    size = mean**2 / (sd**2 - mean)
    times = np.arange(MANY_TIMES)
    return _mean_difference(times, nbinom.pmf(times, size, size / (size + mean)))


def _mean_difference(values: Array, mass: Array) -> float:
    """E|x - x'| = 2 sum F (1 - F) over the steps from one value (K,) to the next; ``mass`` (K,) need not sum to 1."""
    below = np.cumsum(mass)[:-1] / mass.sum()
    return float(2 * np.sum(below * (1 - below) * np.diff(values)))
