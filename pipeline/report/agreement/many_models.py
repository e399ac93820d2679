"""Whether the audits agree on many equally accurate models, and what a choice by one audit does to the others."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import number
from fairness_audits.results.style import finish, ink_on, new_panels, ordered
from fairness_audits.results.table import Column
from pipeline.report import labels as w
from pipeline.report.agreement.figures import SHORT
from pipeline.report.agreement.measures import MEASURES, audited
from pipeline.report.estimators import estimate
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.stamp import Picture
from pipeline.report.table import StampedTable, tabulated

AUDIT = "model_agreement"
EQUAL = "equal"
POOLS = {"regressions": "regressions", "networks": "networks"}
AUDITS = ("loss_ratio", "selection_rate", "tpr", "fpr", "fliptest", "robustness")
CHOICES = {"accuracy": "accuracy", "random": "none of them (random)"}
"""Printed names of the choices that no audit makes."""
COLORS = "RdBu_r"
EMPTY = "#ececec"


class Pool(NamedTuple):
    """Equally accurate models of one kind on a data set."""

    dataset: str
    pool: str

    @property
    def title(self) -> str:
        """Return the printed name."""
        return f"{w.dataset_label(self.dataset)}, {POOLS[self.pool]}"


class Models(NamedTuple):
    """Equally accurate models: ``blocks`` of their rows, and the rows by pool, statistic, measure and other."""

    blocks: set[str]
    numbers: Mapping[tuple[Pool, str, str, str], pd.DataFrame]

    @property
    def pools(self) -> list[Pool]:
        """Return the pools in order."""
        return sorted(
            {pool for pool, *_ in self.numbers}, key=lambda pool: (pool.dataset, list(POOLS).index(pool.pool))
        )

    def measures(self, pool: Pool) -> list[str]:
        """Return the names of the audits of a pool, those of an attribute together."""
        own = {measure for one, statistic, measure, _ in self.numbers if (one, statistic) == (pool, "reliability")}
        return ordered(own, [AUDITS[0], *(f"{audit} {name}" for name in w.ATTRIBUTES for audit in AUDITS[1:])])

    def mean(self, pool: Pool, statistic: str, measure: str, other: str = "") -> Estimate:
        """Return the mean of a number over the splits with Student's interval; NaN if the pool lacks it."""
        found = self.numbers.get((pool, statistic, measure, other))
        return Estimate(float("nan")) if found is None else estimate("mean", found)


def compared(inputs: Inputs) -> Models:
    """Return the numbers of equally accurate models. Raises NotRun if there are none."""
    found = audited(inputs, AUDIT, "audit many models of one split")
    names = ["dataset", "pool", "statistic", "measure", "other"]
    equal = found[found["band"] == EQUAL].fillna({"measure": "", "other": ""})
    grouped = equal[equal["measure"] != ""].groupby(names, sort=False)
    return Models(set(found["block"]), {(Pool(*key[:2]), *key[2:]): part for key, part in grouped})


def named(measure: str) -> str:
    """Return the printed name of an audit or of another choice."""
    audit, _, attribute = measure.partition(" ")
    name = SHORT.get(audit) or MEASURES.get(audit) or CHOICES[audit]
    return f"{name}, {w.ATTRIBUTES[attribute]}" if attribute else name


def cells(models: Models, pool: Pool) -> Iterator[tuple[int, int, Estimate]]:
    """Yield the reliabilities on the diagonal, and the corrected correlations below it."""
    names = models.measures(pool)
    for i, measure in enumerate(names):
        yield i, i, models.mean(pool, "reliability", measure)
        for j, other in enumerate(names[:i]):
            # A pair has one row, in the order of the audit.
            pairs = [
                pair for pair in ((measure, other), (other, measure)) if (pool, "corrected", *pair) in models.numbers
            ]
            yield i, j, models.mean(pool, "corrected", *pairs[0])


def _heat_map(axes: Axes, models: Models, pool: Pool) -> None:
    """Draw the cells of a pool."""
    names = models.measures(pool)
    colors, scale = colormaps[COLORS], Normalize(-1, 1, clip=True)
    for i, j, found in cells(models, pool):
        known = np.isfinite(found.value)
        color = EMPTY if i == j or not known else colors(scale(found.value))
        axes.fill([j, j + 1, j + 1, j], [i, i, i + 1, i + 1], facecolor=color, edgecolor="white", linewidth=0.6)
        clear = found.low > 0 or found.high < 0
        axes.text(
            j + 0.5, i + 0.5, number(found.value, 2) if known else "?", ha="center", va="center", fontsize=4.6,
            fontweight="bold" if clear and i != j else "normal", fontstyle="italic" if i == j else "normal",
            color=ink_on(colors(scale(found.value))) if known and i != j else "#222222",
        )  # fmt: skip
    axes.set(xlim=(0, len(names)), ylim=(len(names), 0))
    axes.tick_params(length=0, pad=1)
    axes.spines[:].set_visible(False)
    labels = list(map(named, names))
    axes.set_xticks(np.arange(len(names)) + 0.5, labels, rotation=45, ha="right", rotation_mode="anchor", fontsize=5.5)
    axes.set_yticks(np.arange(len(names)) + 0.5, labels, fontsize=5.5)


@artefact(
    "Each cell compares two audits of equally accurate models. Near 1, both order the models alike. Near 0, one says "
    "nothing about the other. Below 0, the fairer model by one audit is the less fair one by the other.",
)
def figure_many_models(inputs: Inputs) -> Picture:
    models = compared(inputs)
    every = models.pools
    down = -(-len(every) // 2)
    figure, panels = new_panels(2.75 * down, down, 2)
    for axes in panels.flat[len(every) :]:
        axes.set_visible(False)
    for pool, axes in zip(every, panels.flat, strict=False):
        _heat_map(axes, models, pool)
    finish(figure, panels, titles=[pool.title for pool in every])
    return Picture(
        figure,
        "Do the audits order equally accurate models alike?",
        inputs.stamp(models.blocks),
        "For each data set, and for regressions and networks, a triangle of correlations between the audits of each "
        "attribute, coloured from blue (negative) to red (positive).",
        notes=(
            "Partial rank correlations given accuracy, corrected for noise; means over the splits. Bold: Student's "
            "95 % interval over the splits excludes 0. The correction can lead to values above 1.",
            "Diagonal, in italics: reliability, the correlation of an audit on one half of the held-out rows with the "
            "same audit on the other half. A question mark: in some split, a reliability is below .2.",
            *read_as(),
        ),
    )


def read_as() -> tuple[str, ...]:
    """Return the notes on the models and the units."""
    return (
        "Equally accurate: at most one standard error below the best regression, or the best network.",
        "Unfairness is in units of the tolerance: a ratio of 1.25 for losses and distances, and a difference of .05 "
        "for rates and for the share of flips beyond the noise floor.",
    )


@artefact(
    "What does the choice of a model by one audit do to the other audits? The unfairness of the chosen model, on rows "
    "that the choice did not use.",
)
def table_choices(inputs: Inputs) -> StampedTable:
    models = compared(inputs)
    every = models.pools
    audits = max((models.measures(pool) for pool in every), key=len)

    def unfairness(place: tuple[Pool, str], other: str) -> Estimate:
        return models.mean(place[0], "chosen", place[1], other)

    return tabulated(
        "Choices among equally accurate models.",
        ("Data set", "Models", "Chosen by"),
        [Column(name, cell=partial(unfairness, other=name), decimals=1, name=named(name)) for name in audits],
        [
            ((w.dataset_label(pool.dataset), POOLS[pool.pool], named(choice)), (pool, choice))
            for pool in every
            for choice in (*models.measures(pool), *CHOICES)
        ],
        inputs.stamp(models.blocks),
        (
            "Rows: the model that looks best by an audit on one half of the held-out rows. Columns: its unfairness by "
            "each audit on the other half, mean of both ways and of the splits; 1 is the tolerance.",
            *read_as(),
        ),
    )
