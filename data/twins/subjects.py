r"""Twin of the Strategic Subject List, from its official counts and a model of the features without published tables.

The twin has exactly the published number of people of each score, race, sex and age band, 398,531 in all. The 153
people whose age group is unknown are in no count, and therefore not in the twin.

The other seven features are drawn independently and assigned by score:

.. math::
    x_k \sim F_k, \qquad L = \sum_k w_k \frac{x_k - m_k}{s_k} + \tau \eta, \qquad \eta \sim N(0, 1)

Within an age band, the person with the r-th highest score gets the features with the r-th highest L. Narcotic arrests
are then exchanged between pairs of neighbours in score in which one person is black (BLK) and the other is not and has
more of these arrests. Pairs are exchanged in random order until the correlation between narcotic arrests and being
black, among BLK and WHI, reaches the published value.

Assumptions:

1. The age band of the counts is the age at the latest arrest. (The list has several age columns. The column of the
   counts is missing for 153 people, the age at the latest arrest for 102.)
2. The groups Black, White, Hispanic, Asian and unknown of the counts are the codes BLK, WHI, WWH, API and U. The counts
   do not distinguish black Hispanics (WBH) from white ones, or American Indians (I) from people of unknown race.
3. F_k has the published mean m_k and standard deviation s_k of the whole list. It is negative binomial for counts of
   events, Bernoulli for gang affiliation, and normal, rounded to tenths, for the trend.
4. Before the assignment, the features depend neither on each other nor on age, race or sex. The list states that race
   and sex are not used in the score. Except for 6, features depend on race and sex only through the score and age.
5. A public analysis measured how much a random forest's prediction of the score changes, on average, when one feature
   is replaced by another person's. The prediction of a linear model changes by |w_k| E|x_k - x_k'| / s_k. The measured
   ratio to age and the published weight of age, 50, therefore give w_k. tau is chosen to make the variance of L equal
   to the variance of the score within age bands.
6. Narcotic arrests depend on race beyond what the score explains, r = .12 in the paper; no other feature does.

The twin therefore reproduces by construction all counts, each feature's mean and spread, r, and weights of about the
sizes in 5. The least-squares weights themselves are outcomes, including the weight of age, which follows from the
counts.

Sources:

- The counts of people by score, race, sex and age band: a file of the city's list behind a visualisation of it,
  :data:`COUNTS`.
- Mean and standard deviation of every feature over all 398,684 people, and each feature's share in the changes of a
  random forest's predictions: two notebooks of the same author, https://github.com/pjsier/strategic-subject-list,
  "SSL Data Overview" and "SSL Skater Model Interpretation".
- Age's least-squares weight and the correlation of narcotic arrests with race: Black et al. (2020), section 5.2.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from fairness_audits.values import Array
from pipeline.raw_data.raw_table import category, parsed, whole
from pipeline.raw_data.source import Source

BLACK, WHITE = "BLK", "WHI"
EXCHANGED = "narcotic_arrests"
TENTHS = 1
"""Decimals of the trend."""

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
AGES = {"<20": "less than 20"} | {band: band for band in (f"{low}-{low + 10}" for low in range(20, 80, 10))}
"""Codes of the list by the labels of the counts."""
AGE_BAND = 10
"""Width of the age bands in years, also of the lowest band when it is converted to a number."""

FEATURES = {
    "shooting_victim": ("times", 0.020227, 0.152919, 0.008316),
    "battery_victim": ("times", 0.035916, 0.210601, 0.042538),
    "violent_arrests": ("times", 0.114988, 0.405583, 0.050046),
    "gang_affiliation": ("flag", 0.162903, 0.369278, 0.013652),
    "narcotic_arrests": ("times", 0.335752, 0.837828, 0.041557),
    "trend": ("tenths", -0.049534, 0.404900, 0.095610),
    "weapon_arrests": ("times", 0.033297, 0.193237, 0.006408),
}
"""Distribution, mean and standard deviation of each feature except age, and its share in the mean absolute change of
predictions when one feature is replaced by another person's."""
AGE_CHANGE = 0.741873
"""Share of age in this change."""
AGE_WEIGHT = 50.0
"""Absolute weight of age, in points of the score per standard deviation."""
CORRELATION = 0.12
MANY_TIMES = 1_000
"""Count from which on the negative binomial distributions have negligible mass."""


def twin(people: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return all people of the counts ``people`` in random order, with the seven features."""
    weights, noise = fitted(people)
    people = people.sort_values(["race", "sex", "age", "score"], ignore_index=True)
    cell = rng.permutation(np.repeat(np.arange(len(people)), people["count"]))
    score = people["score"].to_numpy()[cell]
    band, race = (pd.factorize(people[name]) for name in ("age", "race"))
    # Sort by age band and score; people with equal values keep their order, which is random.
    place = np.lexsort((score, band[0][cell]))
    values = handed_out(drawn(len(cell), rng), weights, noise, band[0][cell][place], place, rng)
    black, white = (race[0][cell] == race[1].get_loc(code) for code in (BLACK, WHITE))
    exchanged = list(FEATURES).index(EXCHANGED)
    values[:, exchanged] = exchange(values[:, exchanged], place, band[0][cell], black, white, CORRELATION, rng)
    known = people[["score", "race", "sex", "age"]].iloc[cell].reset_index(drop=True)
    whole_numbers = {name: np.int64 for name, (law, *_) in FEATURES.items() if law != "tenths"}
    return known.join(pd.DataFrame(values, columns=list(FEATURES)).astype(whole_numbers))


def drawn(n: int, rng: np.random.Generator) -> Array:
    """Draw n independent values of each F_k: (n, K)."""
    columns = []
    for law, mean, sd, _ in FEATURES.values():
        if law == "times":
            # Mean m and variance m + m^2 / size.
            size = mean**2 / (sd**2 - mean)
            columns.append(rng.negative_binomial(size, size / (size + mean), n).astype(float))
        elif law == "flag":
            columns.append((rng.random(n) < mean).astype(float))
        else:
            columns.append(rng.normal(mean, sd, n).round(TENTHS))
    return np.column_stack(columns)


def handed_out(
    values: Array, weights: Array, noise: float, bands: Array, place: Array, rng: np.random.Generator
) -> Array:
    """Assign the draws (n, K) to people, within each age band in the order of the score.

    ``place`` (n,) are the people in ascending order of age band and score, ``bands`` (n,) their bands.
    """
    mean, sd = (np.array(published) for published in list(zip(*FEATURES.values(), strict=True))[1:3])
    index = ((values - mean) / sd) @ weights + noise * rng.standard_normal(len(values))
    # A band gets the draws at the positions of its people, which are as many as its people.
    result = np.empty_like(values)
    result[place] = values[np.lexsort((index, bands))]
    return result


def exchange(
    x: Array, place: Array, band: Array, black: Array, white: Array, correlation: float, rng: np.random.Generator
) -> Array:
    """Exchange values of x (n,) between neighbours in ``place`` until r(x, black) reaches ``correlation``.

    The correlation is among black and white people. ``band``, ``black`` and ``white`` (n,) describe the people. Raises
    ValueError if all exchanges together do not reach it.
    """
    first, second = place[: len(place) // 2 * 2].reshape(-1, 2).T
    mixed = (band[first] == band[second]) & (black[first] != black[second])
    gains, gives = (np.where(black[first] == side, first, second)[mixed] for side in (True, False))
    more = rng.permutation(np.flatnonzero(x[gives] > x[gains]))
    gains, gives = gains[more], gives[more]
    both = black | white
    n, share = both.sum(), black.sum() / both.sum()
    # Sums after 0, 1, 2, ... exchanges. An exchange with somebody who is neither changes the pooled sums.
    joins = np.where(white[gives], 0.0, 1.0)
    of_black, total, squares = (
        start + np.concatenate([[0.0], np.cumsum(change)])
        for start, change in (
            (x[black].sum(), x[gives] - x[gains]),
            (x[both].sum(), joins * (x[gives] - x[gains])),
            ((x[both] ** 2).sum(), joins * (x[gives] ** 2 - x[gains] ** 2)),
        )
    )
    covariance = of_black / n - share * total / n
    r = covariance / np.sqrt(share * (1 - share) * (squares / n - (total / n) ** 2))
    if r.max() < correlation:
        raise ValueError(f"exchanges between neighbours reach a correlation of {r.max():.3f}, expected {correlation}")
    count = int(np.argmax(r >= correlation))
    result = x.copy()
    result[gains[:count]], result[gives[:count]] = x[gives[:count]], x[gains[:count]]
    return result


def counts(folder: Path) -> pd.DataFrame:
    """Return the file's columns score, race, sex, age and count, with the codes of the list."""
    words = {"race": RACES, "sex": SEXES, "age": AGES}
    columns = {"ssl_score": whole(0, 500), **{name: category(known) for name, known in words.items()}}
    return parsed(folder / FILE, {**columns, "count": whole(1, 1_000_000)}).rename(columns={"ssl_score": "score"})


def fitted(people: pd.DataFrame) -> tuple[Array, float]:
    """Return the weights w_k (K,) and tau, rounded to hundredths of a point."""
    number = people["count"].to_numpy()
    age = people["age"].map({band: AGE_BAND * position for position, band in enumerate(AGES.values(), 1)}).to_numpy()
    mean = np.average(age, weights=number)
    spread = np.sqrt(np.average((age - mean) ** 2, weights=number))
    difference = _mean_difference(np.unique(age), np.bincount(age, weights=number)[np.unique(age)])
    per_change = AGE_WEIGHT * difference / spread / AGE_CHANGE
    weights = np.array(
        [per_change * change * sd / mean_difference(law, m, sd) for law, m, sd, change in FEATURES.values()]
    )
    score = people["score"].to_numpy(dtype=float)
    in_band = people.assign(total=score * number).groupby("age")[["total", "count"]].transform("sum")
    left = np.average((score - in_band["total"] / in_band["count"]) ** 2, weights=number)
    return weights.round(2), round(float(np.sqrt(left - (weights**2).sum())), 2)


def mean_difference(law: str, mean: float, sd: float) -> float:
    """Return E|x - x'| of two independent draws."""
    if law == "flag":
        return 2 * mean * (1 - mean)
    if law == "tenths":
        return float(2 * sd / np.sqrt(np.pi))
    from scipy.stats import nbinom

    size = mean**2 / (sd**2 - mean)
    times = np.arange(MANY_TIMES)
    return _mean_difference(times, nbinom.pmf(times, size, size / (size + mean)))


def _mean_difference(values: Array, mass: Array) -> float:
    """Return E|x - x'| = 2 sum F (1 - F) dx over the steps between values (K,); ``mass`` (K,) need not sum to 1."""
    below = np.cumsum(mass)[:-1] / mass.sum()
    return float(2 * np.sum(below * (1 - below) * np.diff(values)))
