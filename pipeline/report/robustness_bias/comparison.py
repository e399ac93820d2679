"""The comparison with the published numbers of Nanda et al. (2021), and the settings as configured here."""

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from pipeline.report import comparison as rules
from pipeline.report import labels as w
from pipeline.report.comparison_table import as_table
from pipeline.report.facts import DATA
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.robustness_bias import stamps, study
from pipeline.report.robustness_bias.facts import measurements as measurements
from pipeline.report.selection import parse_setting, select
from pipeline.report.settings_table import settings_table
from pipeline.report.table import StampedTable

SIZES = ("dataset.train_points", "dataset.test_points", "dataset.train_fraction")
"""Settings that determine the number of images."""

NOTEBOOKS = "notebooks"
"""Artefact of the numbers that the notebooks in the authors' repository print."""
NOTEBOOKS_NOTE = (
    "Notebooks: the notebooks in the authors' repository print sigma by smoothing of the classes of CIFAR-10, the "
    "superclasses of CIFAR-100 and the groups of Adience, among correctly classified points, for six networks each. "
    "On CIFAR-10, sigma of a network is compared with the mean sigma of the authors' "
    "other networks, class by class. Rank: Spearman's correlation. Sign: the share of classes with the same sign. The "
    "published values show how well the authors' own networks agree. We cannot expect better agreement. These values "
    "share networks, so their spread is too small."
)


def compared(inputs: Inputs, published: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """Compare the published numbers with ours, see :mod:`pipeline.report.comparison`."""
    reduced = stamps.reductions(inputs)
    # Reduced sizes also affect the facts about the data set.
    of_data = (replace(r, block=DATA, method=w.NO_METHOD) for r in reduced if r.key in SIZES)
    measured = beside_notebooks(measured, published)
    return rules.compared(inputs, published, measured, (*reduced, *dict.fromkeys(of_data)))


def beside_notebooks(measured: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Add ``rank_with_notebooks`` and ``sign_with_notebooks`` for each of our networks on CIFAR-10.

    They are Spearman's correlation and the share of equal signs, over the classes, of sigma by smoothing with the mean
    of the authors' networks. A network without sigma for some class is excluded.
    """
    own = {"block": study.NETWORKS, "dataset": w.CIFAR10, "statistic": "sigma", "attack": w.SMOOTHING}
    rows = select(measured, {**own, "denominator": w.CORRECT})
    printed = published[published["artefact"] == NOTEBOOKS]
    settings = map(parse_setting, printed["setting"])
    theirs = {
        of["level"]: mean
        for of, mean in zip(settings, printed["value"], strict=True)
        if "level" in of and of["dataset"] == w.CIFAR10
    }
    found = []
    for network, part in rows.groupby("method"):
        ours = part.set_index("level")["value"].reindex(theirs)
        if len(theirs) and ours.notna().all():
            means = np.array([*theirs.values()], float)
            agree = {"rank": spearmanr(ours, means).statistic, "sign": (np.sign(ours) == np.sign(means)).mean()}
            place = part.iloc[0].drop(["partition", "level"]).to_dict() | {"method": network}
            found += [{**place, "statistic": f"{name}_with_notebooks", "value": x} for name, x in agree.items()]
    return pd.concat([measured, pd.DataFrame(found)], ignore_index=True) if found else measured


@artefact("Each published number beside ours. Numbers with matching settings have a verdict.")
def comparison(inputs: Inputs, found: pd.DataFrame) -> StampedTable:
    audited = study.audited(inputs)
    return as_table(
        found,
        stamps.stamp(inputs, sorted({one.block for one in audited})),
        notes=(
            "A share of agreeing signs is over groups that have points in common, and both sides measure accuracy on "
            "the same test images. The predictive check treats groups and images as independent and ignores the "
            "variation between training runs. "
            "Differences of sigma: Welch's test over the groups. Medians of one training run have no spread.",
            NOTEBOOKS_NOTE,
            *study.not_run(audited),
        ),
    )


@artefact("The paper does not state most settings. We take them from the authors' program.")
def table_settings(inputs: Inputs) -> StampedTable:
    return settings_table(inputs, stamps.stamp(inputs, stamps.blocks(inputs)), left_out(inputs))


def left_out(inputs: Inputs) -> tuple[str, ...]:
    """Return a note on the networks that the scale does not run, or no note if it runs all."""
    omitted: dict[str, list[str]] = {}
    for place in inputs.config.get("left_out", ()):
        block = study.block_of(place["block"])
        if block in (study.TRAININGS, *study.REPEATED):
            continue
        penalised = " with a penalty" * (block == study.REGULARIZER)
        network = f"{w.NETWORKS[str(place.get('method.model', place['method']))]}{penalised}"
        omitted.setdefault(str(place["dataset"]), []).append(network)
    texts = (f"{w.dataset_label(name)}: {', '.join(dict.fromkeys(omitted[name]))}" for name in w.datasets_in(omitted))
    return (f"Not run at the {w.scales(inputs.scale)}. {'; '.join(texts)}.",) if omitted else ()
