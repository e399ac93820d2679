"""Tables of networks: Table 2 of Nanda et al. (2021), the cost of each network, and the tightness of the distances."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import spearmanr

from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import number
from fairness_audits.results.table import Cell, Column, Row
from fairness_audits.values import Array
from pipeline.report import labels as w
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.robustness_bias import stamps, study
from pipeline.report.robustness_bias.sign_agreement import TABLE_1
from pipeline.report.robustness_bias.study import NOT_RUN, Audited
from pipeline.report.table import StampedTable, labels

TABLE_2 = {
    "Deep CNN (CIFAR100)": ("deep_cnn", "deep_cnn_cifar100"),
    "PyramidNet": ("pyramidnet", "pyramidnet_bottleneck"),
    "Adience Classifier": ("adience_classifier",),
    "UTK Classifier": ("utk_classifier",),
    "Resnet50": ("resnet50",),
    "Alexnet": ("alexnet",),
    "VGG": ("vgg19",),
    "Densenet": ("densenet121",),
    "Squeezenet": ("squeezenet1_0",),
}
"""Columns of Table 2. The first two are different networks on CIFAR-10 and on CIFAR-100."""
SHORT = {"Deep CNN (CIFAR100)": "Deep CNN"}
FROM_SCRATCH, NOT_LEARNED = "*", "\u00a7"


@artefact("Deep CNN and PyramidNet are different networks on CIFAR-10 and on CIFAR-100.")
def table_2(inputs: Inputs) -> StampedTable:
    found = study.audited(inputs, study.NETWORKS)
    missing = study.absences(found)
    body, scratch = [], False
    for dataset, printed in TABLE_1.items():
        cells: list[Cell] = []
        for networks in TABLE_2.values():
            one = next((one for one in found if one.dataset == dataset and one.network in networks), None)
            if one is None or not math.isfinite(one.accuracy):
                cells.append(None)
                continue
            begun = one.network in w.CONVOLUTIONAL and one.pretrained is False
            scratch |= begun
            marks = FROM_SCRATCH * begun + NOT_LEARNED * (not one.learned)
            text = f"{number(one.accuracy, 4)}{marks}" if marks else ""
            cells.append(Estimate(one.accuracy, text=text))
        body.append(Row((printed, *cells, NOT_RUN if dataset in missing else "")))
    mark = (
        f"{FROM_SCRATCH}: starts from random weights, because ImageNet weights were missing; pretrained in the paper."
    )
    return StampedTable(
        title="Test accuracy of all networks.",
        columns=(
            *labels("Data"),
            *(Column(name, decimals=4, name=SHORT.get(name, "")) for name in TABLE_2),
            Column("note", "text", name=""),
        ),
        rows=tuple(body),
        stamp=stamps.stamp(inputs, study.NETWORKS),
        notes=(
            "Accuracy after the last epoch, on all prepared test images, in evaluation mode.",
            "The released code measures accuracy in training mode, and its ResNet50 is a ResNet18. Ours has 50 layers, "
            "as in the paper.",
            *([mark] if scratch else []),
            *engines(found),
            f"{NOT_LEARNED}: did not learn. A network has learned if the 95 % interval of its accuracy lies above the "
            f"share of the largest class plus {study.MARGIN:g}, and not entirely below the accuracy of logistic "
            f"regression on the same data minus {study.MARGIN:g}.",
            *study.not_run(found),
        ),
    )


def engines(found: Sequence[Audited]) -> tuple[str, ...]:
    """Return a note on the device and precision of the training, or no note if the files do not record them."""
    descriptions = {
        f"{'a GPU' if of['on_gpu'] else 'a processor'} in {'bfloat16' if of['bfloat16'] else 'float32'}"
        for one in study.trained(found)
        if {"on_gpu", "bfloat16"} <= (of := one.facts).keys()
    }
    return (f"Trained on {' and on '.join(sorted(descriptions))}; audited in float32.",) if descriptions else ()


BACKWARD = 3
"""Cost of a training step in forward passes: one forward pass, and a backward pass that costs two."""
GIGA, TERA = 1e9, 1e12


@artefact(
    "Cost of training and audit in multiply-adds, which do not depend on the machine. Means over training runs of the "
    "same network.",
)
def table_costs(inputs: Inputs) -> StampedTable:
    found = [one for one in study.trained(study.audited(inputs)) if one.block not in study.REPEATED and one.classifier]
    kinds: dict[tuple[str, ...], list[tuple[float, ...]]] = {}
    for one in found:
        facts = one.facts
        size, seen = facts["multiply_adds"], facts["epochs"] * facts["train_rows"]
        passes = sum(one.overall(attack, "forward_passes") for attack in one.attacks)
        network = f"{w.NETWORKS[one.network]}{'' if one.learned else NOT_LEARNED}"
        cells = (
            facts["parameters"] / 1e6, size / GIGA, facts["epochs"], seen, BACKWARD * seen * size / TERA,
            passes, passes * size / TERA,
        )  # fmt: skip
        kinds.setdefault((w.dataset_label(one.dataset), network, study.penalty(one)), []).append(cells)
    body = [Row((*kind, len(cells), *np.mean(cells, axis=0).tolist())) for kind, cells in kinds.items()]
    return StampedTable(
        title="Cost of each network.",
        columns=(
            *labels("Data", "Network", "Training"),
            Column("trainings", decimals=0, name="training runs"),
            Column("parameters", group="Size", decimals=2, name="parameters, 10\u2076"),
            Column("pass", group="Size", decimals=3, name="multiply-adds per image, 10\u2079"),
            Column("epochs", group="Training", decimals=0),
            Column("images", group="Training", decimals=0, name="images seen"),
            Column("training", group="Training", decimals=1, name="multiply-adds, 10\u00b9\u00b2"),
            Column("passes", group="Audit", decimals=0, name="forward passes"),
            Column("audit", group="Audit", decimals=1, name="multiply-adds, 10\u00b9\u00b2"),
        ),
        rows=tuple(body) or (Row(("none", "", NOT_RUN, *[None] * 8)),),
        stamp=stamps.stamp(inputs, sorted({one.block for one in found})),
        notes=(
            "Multiply-adds of convolutions and matrix products. A training step counts as three forward passes.",
            "The audit counts the forward passes of all attacks and of smoothing at the last epoch, without gradients. "
            "docs/scale.md lists times by network.",
            *engines(found),
            *study.not_run(found),
        ),
    )


@artefact(
    "Median distance of test points from the boundary by each method, how far it is from the best known distance, how "
    "often the method fails, and how many forward passes it takes. Attacks give upper bounds, smoothing gives lower "
    "bounds.",
)
def table_bounds(inputs: Inputs) -> StampedTable:
    found = study.audited(inputs)
    shown = [one for one in study.run(found) if one.block in (study.LINEAR, study.NETWORKS)]
    body = []
    for one in shown:
        points = one.points
        bounds = np.array([points.distance[name] for name in one.attacks if name != w.SMOOTHING])
        common, best = np.isfinite(bounds).all(axis=0) & points.correct, bounds.min(axis=0)
        for attack in one.attacks:
            here = common & np.isfinite(points.distance[attack])
            own, nearest = points.distance[attack][here], best[here]
            ratio = own[nearest > 0] / nearest[nearest > 0]
            # Misclassified points belong to the sample but need no attack.
            attacked = int((points.tried[attack] & points.correct).sum())
            cells: list[Cell] = [
                100 * one.overall(attack, "accuracy"),
                one.overall(attack, "points"),
                attacked,
                one.overall(attack, "failed"),
                one.overall(attack, "median_distance"),
                float(np.median(own)) if len(own) else None,
                100 * float(np.median(ratio) - 1) if len(ratio) else math.nan,
                rank_correlation(own, nearest),
                one.overall(attack, "forward_passes") / attacked if attacked else math.nan,
            ]
            names = (w.dataset_label(one.dataset), w.NETWORKS[one.network], w.DISTANCES[attack].label)
            body.append(Row((*names, *cells)))
    return StampedTable(
        title="Tightness and cost of each distance.",
        columns=(
            *labels("Data", "Network", "Distance"),
            Column("accuracy", decimals=1, name="accuracy, %"),
            Column("points", decimals=0),
            Column("attacked", decimals=0),
            Column("failed", decimals=0),
            Column("own median", group="Median", name="own points"),
            Column("median", group="Median", name="shared points"),
            Column("above best", decimals=1, name="above best, %"),
            Column("rank correlation", decimals=3),
            Column("forward passes", decimals=0, name="passes per point"),
        ),
        rows=tuple(body) or (Row(("none", "", NOT_RUN, *[None] * 9)),),
        stamp=stamps.stamp(inputs, [study.LINEAR, study.NETWORKS]),
        notes=(
            f"Last epoch. Medians are in {w.UNITS}.",
            "Points: each distance has its own sample of test points, and the accuracy is for this sample. Attacked: "
            "the correctly classified points. Failed: an attack found nothing, or smoothing could not certify a "
            "radius. Failed points are left out. They are probably far from the boundary, so sigma is biased towards "
            "0.",
            "Shared points: every attack found a distance; for smoothing, those that it also certifies. The column "
            "above best and Spearman's rank correlation are for shared points. Best: the smallest distance of each "
            "point. Smoothing is a lower bound, and for the smoothed classifier.",
            "The exact distance has no bounds on pixels, as published. Attacks stay in the box [0, 1]. Distances of "
            "the digits are in the enlarged image. Passes: images that the network classified for each attacked point.",
            *study.not_run(found),
        ),
    )


def rank_correlation(one: Array, other: Array) -> float:
    """Compute Spearman's rank correlation; NaN for fewer than three points or constant values."""
    if len(one) < 3 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return math.nan
    return float(spearmanr(one, other).statistic)
