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


@artefact("How well the networks classify. Deep CNN and PyramidNet are others on CIFAR-10 than on CIFAR-100.")
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
            begun = one.network in w.CONVOLUTIONAL and stamps.pretrained(inputs, one) is False
            scratch |= begun
            marks = FROM_SCRATCH * begun + NOT_LEARNED * (not one.learned)
            text = f"{number(one.accuracy, 4)}{marks}" if marks else ""
            cells.append(Estimate(one.accuracy, text=text))
        body.append(Row((printed, *cells, NOT_RUN if dataset in missing else "")))
    mark = f"{FROM_SCRATCH}: from random weights, as no ImageNet weights could be had; pretrained in the paper."
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
            "After the last epoch, on all test images that were prepared, in evaluation mode; the released code "
            "measures accuracy in training mode. Its ResNet50 is a ResNet18; ours has 50 layers, as in the paper. Deep "
            "CNN and PyramidNet are the networks of CIFAR-10 there and on the digits, those of CIFAR-100 on it and its "
            "superclasses.",
            *([mark] if scratch else []),
            *engines(inputs, found),
            f"{NOT_LEARNED}: did not learn. A network has learned where the 95 % interval of its accuracy lies above "
            f"the share of the largest class plus {study.MARGIN:g}, and not below the accuracy of the logistic "
            f"regression on the same data less {study.MARGIN:g}.",
            *study.not_run(found),
        ),
    )


def engines(inputs: Inputs, found: Sequence[Audited]) -> tuple[str, ...]:
    """Return a note on the device and precision of the training, or no note if the files do not record them."""
    facts = [inputs.classifiers[one.model].facts for one in study.trained(found) if one.model in inputs.classifiers]
    descriptions = {
        f"{'a GPU' if of['on_gpu'][-1] else 'a processor'} in {'bfloat16' if of['bfloat16'][-1] else 'float32'}"
        for of in facts
        if {"on_gpu", "bfloat16"} <= of.keys()
    }
    return (f"Trained on {' and on '.join(sorted(descriptions))}; audited in float32.",) if descriptions else ()


BACKWARD = 3
"""Cost of a training step in forward passes: one forward pass, and a backward pass that costs two."""
GIGA, TERA = 1e9, 1e12


@artefact(
    "What each network cost in multiply-adds, which are the same on every machine: its training, and the passes of "
    "all attacks and of smoothing. Means over the trainings of one kind.",
)
def table_costs(inputs: Inputs) -> StampedTable:
    found = [one for one in study.trained(study.audited(inputs)) if one.block != study.FOLDS]
    found = [one for one in found if one.model in inputs.classifiers]
    kinds: dict[tuple[str, ...], list[tuple[float, ...]]] = {}
    for one in found:
        facts = {name: float(values[-1]) for name, values in inputs.classifiers[one.model].facts.items()}
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
        title="What each network cost.",
        columns=(
            *labels("Data", "Network", "Trained"),
            Column("trainings", decimals=0),
            Column("parameters", group="Size", decimals=2, name="parameters, 10\u2076"),
            Column("pass", group="Size", decimals=3, name="multiply-adds an image, 10\u2079"),
            Column("epochs", group="Training", decimals=0),
            Column("images", group="Training", decimals=0, name="images seen"),
            Column("training", group="Training", decimals=1, name="multiply-adds, 10\u00b9\u00b2"),
            Column("passes", group="Audit", decimals=0, name="forward passes"),
            Column("audit", group="Audit", decimals=1, name="multiply-adds, 10\u00b9\u00b2"),
        ),
        rows=tuple(body) or (Row(("none", "", NOT_RUN, *[None] * 8)),),
        stamp=stamps.stamp(inputs, sorted({one.block for one in found})),
        notes=(
            "Multiply-adds of convolutions and products. A step of training counts as three forward passes; those of "
            "an audit are of all distances at the last epoch, without their gradients. Times by network stand in "
            "docs/scale.md.",
            *engines(inputs, found),
            *study.not_run(found),
        ),
    )


@artefact(
    "How far a test point typically is from the boundary. Attacks bound the distance from above and smoothing from "
    "below: how far they are from the best that is known, how often they fail, and how many passes they take.",
)
def table_bounds(inputs: Inputs) -> StampedTable:
    found = study.audited(inputs)
    shown = [one for one in study.run(found) if one.block in (study.LINEAR, study.NETWORKS)]
    body = []
    for one in shown:
        points = study.at_points(inputs, one)
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
        title="How tight each distance is, and what it costs.",
        columns=(
            *labels("Data", "Network", "Distance"),
            Column("accuracy", decimals=1, name="accuracy, %"),
            Column("points", decimals=0),
            Column("attacked", decimals=0),
            Column("failed", decimals=0),
            Column("own median", group="Median", name="of its own points"),
            Column("median", group="Median", name="of shared points"),
            Column("above best", decimals=1, name="above the best, %"),
            Column("rank correlation", decimals=3),
            Column("forward passes", decimals=0, name="passes a point"),
        ),
        rows=tuple(body) or (Row(("none", "", NOT_RUN, *[None] * 9)),),
        stamp=stamps.stamp(inputs, [study.LINEAR, study.NETWORKS]),
        notes=(
            f"Last epoch; medians in {w.UNITS}. Each distance has its own sample of the test points; accuracy is that "
            "of these. Attacked: the correctly classified points. Failed: those of them for which an attack found "
            "nothing; they are left out, and are probably far from the boundary: sigma is drawn towards 0. Of "
            "smoothing: for which nothing could be certified. Shared points, also of excess and rank correlation "
            "(Spearman's): those for which every attack found a distance, of smoothing those among them that it "
            "certifies. The best: the smallest distance at each point; smoothing is a bound from below, and of another "
            "classifier. The exact distance is as published, of all of space; attacks stay among the images, in the "
            "box [0, 1]. The digits are enlarged: their distances are lengths in the enlarged image. Passes: images "
            "put through the network for each point attacked.",
            *study.not_run(found),
        ),
    )


def rank_correlation(one: Array, other: Array) -> float:
    """Compute Spearman's rank correlation; NaN for fewer than three points or constant values."""
    if len(one) < 3 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return math.nan
    return float(spearmanr(one, other).statistic)
