"""Figure 3 of Nanda et al. (2021): two inputs and one budget, within which one of them changes its class."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.described import Described
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import number
from pipeline.report.picture import Picture
from pipeline.report.robustness_bias import study, used
from pipeline.report.robustness_bias.distance_figures import nothing
from pipeline.report.robustness_bias.study import Audited
from pipeline.report.style import new_figure
from pipeline.types import Array

KEPT = "example_images"
PREFERRED = (w.UTKFACE, w.ADIENCE, w.CIFAR10, w.CIFAR100, w.SUPER, w.DIGITS)
"""The first data set that has an example is shown: the paper's first, those with sensitive attributes next."""
SIDES = ("fooled", "not fooled")
ENOUGH = 20
"""As in :mod:`pipeline.audits.robustness_bias.examples`, which makes the choice."""
STRETCH = 0.5
"""The change is drawn so that its largest pixel is this far from grey."""


@registry.figure()
def figure_3(inputs: Inputs) -> Picture:
    """Two inputs of different groups and one budget of change: a change within it takes the first to another class; the
    second keeps its class when moved by all of it towards the attack's result.
    """
    title = "Two inputs, the same budget."
    found = study.audited(inputs, study.NETWORKS)
    one = _chosen(found)
    if one is None:
        missing = study.absences(found)
        text = "not run: data" if missing and not study.run(found) else "the rule of the audit found no pair"
        return nothing(inputs, found, title, text)
    arrays, dataset = one.result.arrays, inputs.datasets[one.data]
    figure = new_figure(2.9, width=4.6)
    grid = figure.subplots(2, 3, squeeze=False)
    for row, side in enumerate(SIDES):
        before, after = (np.asarray(arrays[name][row], float) for name in (KEPT, "example_perturbed"))
        change = after - before
        # Both are classified correctly as they are.
        _show(grid[row, 0], before, _of(dataset, arrays["example_label"][row]))
        _show(grid[row, 1], 0.5 + STRETCH * change / max(float(np.abs(change).max()), 1e-12), "change, enlarged")
        _show(grid[row, 2], after, _of(dataset, arrays["example_prediction"][row]))
        grid[row, 0].set_ylabel(f"{side}\n{_group(dataset, arrays, row)}", fontsize=7.5)
    lengths = [number(float(value), 2) for value in arrays["example_distance"]]
    budget = number(float(arrays["example_budget"][0]), 2)
    return Picture.stamped(
        figure,
        title,
        used.stamp(inputs, study.NETWORKS, [one.dataset], [w.DEEPFOOL]),
        "Two pictures above each other, each with a change within one budget and what it becomes: the network changes "
        "its mind about the first and, with the whole budget spent, not about the second.",
        notes=(
            f"{w.dataset_label(one.dataset)}, {w.network_label(one.network)}, last epoch. The budget is {budget} "
            f"({w.UNITS}); by the attack the two are {lengths[0]} and {lengths[1]} from the boundary. The first is "
            "moved as far as fools the network, the second by the whole budget towards the attack's result.",
            f"Chosen by rule: the two {_kind(dataset, arrays)} whose median distances differ most, among those with "
            f"{ENOUGH} measured points or else the most, and of each the correctly classified test point that is "
            "nearest to its median; the budget lies halfway between. The most extreme of all pairs is an illustration, "
            "no finding.",
        ),
    )


def _chosen(found: list[Audited]) -> Audited | None:
    """The audit whose example is shown: the preferred data set's own network, or the first that has one."""
    having = [one for one in study.run(found) if KEPT in one.result.arrays]
    order = w.ordered((one.dataset for one in having), PREFERRED)
    having.sort(key=lambda one: (order.index(one.dataset), one.network != w.OWN.get(one.dataset)))
    return having[0] if having else None


def _of(dataset: Described, code: Array) -> str:
    return f"predicted: {w.plainly(dataset.classes[int(code)])}"


def _group(dataset: Described, arrays: Mapping[str, Array], row: int) -> str:
    """The groups that an input belongs to, without its class."""
    code = {name: int(arrays[name][arrays["example_points"][row]]) for name in dataset.levels}
    names = [
        w.plainly(dataset.levels[name][code[name]])
        for name in dataset.levels
        if name != dataset.label_name and code[name] >= 0
    ]
    own = w.plainly(dataset.classes[int(arrays["example_label"][row])])
    return ", ".join(names) or f"{dataset.label_name} {own}"


def _kind(dataset: Described, arrays: Mapping[str, Array]) -> str:
    """``groups by race within one class``, or ``classes``."""
    name = str(arrays["example_partition"][0])
    return "classes" if name == dataset.label_name else f"groups by {w.partition_label(name)} within one class"


def _show(axes: Axes, image: Array, words: str) -> None:
    """An image (c, h, w) in [0, 1], grey or in colour."""
    clipped = np.clip(image, 0, 1)
    picture = clipped[0] if len(clipped) == 1 else clipped.transpose(1, 2, 0)
    axes.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.set_title(words, fontsize=7.5)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
