"""Figures 1 to 3 of Nanda et al. (2021): examples of robustness bias and of its measurement."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from fairness_audits.audits.robustness_bias.measures import counted, survival
from fairness_audits.results.formats import number
from fairness_audits.results.style import INK, finish, new_figure, new_panels, ordered
from fairness_audits.values import Array
from pipeline.example_pairs import ENOUGH
from pipeline.report import labels as w
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.robustness_bias import curves, illustrations, stamps, study
from pipeline.report.robustness_bias.curves import nothing
from pipeline.report.stamp import Picture, Stamp

SIDES = ("#00875F", "#0072B2")
"""Colours of the classes 0 and 1 in Figure 1."""
MARKERS = {illustrations.ROUND: ("o", "round"), illustrations.CROSS: ("X", "cross")}
NAMES = ("left class", "middle class", "right class")
LOOKS = (("#0072B2", "o", "-"), ("#8C5A2B", "s", (0, (5, 1.5))), ("#D98E04", "^", (0, (1, 1.2))))
MARGIN = 0.4
MESH = 300


@artefact(
    "Two decision boundaries without errors, and a budget of perturbation. Left: most round points lie within the "
    "budget. Right: as few round points as crosses lie within it. The accuracy is the same, but the robustness bias is "
    "smaller.",
)
def figure_1(inputs: Inputs) -> Picture:
    world = illustrations.two_boundaries()
    figure, (panels,) = new_panels(3.1, 1, 2, sharex=True, sharey=True)
    for axes, boundary in zip(panels, world.boundaries, strict=True):
        _world(axes, world, boundary)
        round_share, cross_share = (number(100 * share, 0) for share in world.attacked(boundary))
        axes.set_title(f"attacked: {round_share} % of round, {cross_share} % of cross", fontsize=8)
    finish(figure, panels, "$x_1$", "$x_2$")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=6, handletextpad=0.3, columnspacing=1.2)
    accuracies = [number(100 * world.accuracy(boundary), 0) for boundary in world.boundaries]
    return Picture(
        figure,
        "Two boundaries of equal accuracy and unequal distances.",
        Stamp(inputs.scale, ("simulated",)),
        "Two panels with forty points of two classes, a straight boundary and a band around it. The first band holds "
        "most of the round points, the second as few round points as crosses.",
        notes=(
            f"The accuracies are {accuracies[0]} % and {accuracies[1]} %. Dotted: the budget of "
            f"{number(world.budget, 2)} on both sides of the boundary. Filled: points that an attack within the budget "
            "can change. We chose points, boundaries and budget to match the published shares, and then counted the "
            "shares.",
        ),
    )


@artefact(
    "Left: three classes and the regions of a multinomial logistic regression. Right: share of each class that is "
    "farther than a budget from the boundary. The middle class has two neighbours, so its share falls fastest, "
    "although all classes have the same accuracy.",
)
def figure_2(inputs: Inputs) -> Picture:
    world = illustrations.three_classes()
    figure, ((plane, shares),) = new_panels(2.8, 1, 2)
    _classes(plane, world)
    lengths = counted(world.distance, world.correct, w.PAPER)
    tau = np.unique(np.append(lengths.length, (0, 1.02 * lengths.longest)))
    for place, (color, _, line) in enumerate(LOOKS):
        own = survival(lengths, world.label == place, tau)
        shares.step(tau, own, where="post", color=color, linestyle=line, label=NAMES[place])
    curves.finish(shares, tau)
    shares.set(xlabel=r"$\tau$", ylabel=r"$\widehat{I}_c(\tau)$")
    shares.legend(loc="upper right")
    finish(figure, (plane, shares))
    accuracies = [100 * world.correct[world.label == place].mean() for place in range(illustrations.CLASSES)]
    said = ", ".join(f"{name} {number(value, 0)} %" for name, value in zip(NAMES, accuracies, strict=True))
    return Picture(
        figure,
        "A multinomial logistic regression on three classes.",
        Stamp(inputs.scale, ("simulated",)),
        "Left: points of three classes with the regions of the classifier. Right: share of each class that is farther "
        "than a budget from the boundary. The share of the middle class falls fastest.",
        notes=(f"Accuracies: {said}. Distances are exact.",),
    )


def _world(axes: Axes, world: illustrations.TwoBoundaries, boundary: Array) -> None:
    near = np.abs(world.signed(boundary)) <= world.budget
    for side, color in enumerate(SIDES):
        for kind, (marker, name) in MARKERS.items():
            members = (world.label == side) & (world.subclass == kind)
            look: Any = {"marker": marker, "s": 22, "linewidths": 0.8, "edgecolors": color, "zorder": 3}
            label = f"class {side}, {name}"
            axes.scatter(*world.points[members & near].T, facecolors=color, label=label, **look)
            axes.scatter(*world.points[members & ~near].T, facecolors="white", **look)
    across = np.array([world.points[:, 0].min() - MARGIN, world.points[:, 0].max() + MARGIN])
    slope, level = -boundary[0] / boundary[1], world.budget / boundary[1]
    axes.plot(across, slope * across, color=INK, label="boundary")
    for side in (-1, 1):
        axes.plot(across, slope * across + side * level, color=INK, linestyle=(0, (1, 1.5)), linewidth=0.9)
    axes.plot([], [], color=INK, linestyle=(0, (1, 1.5)), linewidth=0.9, label="budget")
    axes.set_xlim(*across)
    axes.set_aspect("equal", adjustable="box")


def _classes(axes: Axes, world: illustrations.ThreeClasses) -> None:
    low, high = world.points.min(axis=0) - MARGIN, world.points.max(axis=0) + MARGIN
    x, y = np.meshgrid(np.linspace(low[0], high[0], MESH), np.linspace(low[1], high[1], MESH))
    logits = world.logits(np.column_stack([x.ravel(), y.ravel()]))
    for place, (color, marker, _) in enumerate(LOOKS):
        # The margin of a class is above 0 where the class wins. Its zero line is the boundary, which is straight.
        ahead = (logits[:, place] - np.delete(logits, place, axis=1).max(axis=1)).reshape(x.shape)
        axes.contourf(x, y, ahead, levels=[0, max(0.0, ahead.max()) + 1], colors=[color], alpha=0.12)
        axes.contour(x, y, ahead, levels=[0], colors=INK, linewidths=0.8)
        points = world.points[world.label == place]
        axes.scatter(points[:, 0], points[:, 1], s=9, marker=marker, color=color, linewidths=0, label=NAMES[place])
    axes.set_aspect("equal", adjustable="box")
    axes.set(xlabel="$x_1$", ylabel="$x_2$")


EXAMPLES = "example_images"
OUTCOMES = ("fooled", "not fooled")
STRETCH = 0.5
"""Distance from grey at which the largest pixel of the change is drawn."""


@artefact(
    "Two inputs of different classes and the same budget. A change within the budget moves the first input to another "
    "class. The second input keeps its class, even if it moves by the full budget in the direction of the attack.",
)
def figure_3(inputs: Inputs) -> Picture:
    title = "Two inputs and the same budget."
    found = study.audited(inputs, study.NETWORKS)
    of_things = [one for one in study.run(found) if one.dataset in w.OF_THINGS]
    having = [one for one in of_things if EXAMPLES in one.result.arrays]
    order = ordered((one.dataset for one in having), w.OF_THINGS)
    # Prefer the data set's own network; otherwise take the first with an example.
    one = min(having, key=lambda one: (order.index(one.dataset), one.network != w.OWN.get(one.dataset)), default=None)
    if one is None:
        return nothing(inputs, found, title, "The rule of the audit found no pair." if of_things else "")
    arrays, dataset = one.result.arrays, inputs.datasets[one.data]
    figure = new_figure(2.9, width=4.6)
    grid = figure.subplots(2, 3, squeeze=False)
    for row, side in enumerate(OUTCOMES):
        before, after = (np.asarray(arrays[name][row], float) for name in (EXAMPLES, "example_perturbed"))
        change = after - before
        # Both unperturbed images are classified correctly.
        said = [w.plainly(dataset.classes[int(arrays[name][row])]) for name in ("example_label", "example_prediction")]
        _show(grid[row, 0], before, f"predicted: {said[0]}")
        _show(grid[row, 1], 0.5 + STRETCH * change / max(float(np.abs(change).max()), 1e-12), "change, enlarged")
        _show(grid[row, 2], after, f"predicted: {said[1]}")
        own = w.plainly(dataset.classes[int(arrays["example_label"][row])])
        grid[row, 0].set_ylabel(f"{side}\n{dataset.label_name} {own}", fontsize=7.5)
    lengths = [number(float(value), 2) for value in arrays["example_distance"]]
    budget = number(float(arrays["example_budget"][0]), 2)
    return Picture(
        figure,
        title,
        stamps.stamp(inputs, study.NETWORKS, [one.dataset]),
        "Two pictures, each with a change within the budget and the changed picture. The prediction changes for the "
        "first picture, but not for the second.",
        notes=(
            f"{w.dataset_label(one.dataset)}, {w.NETWORKS[one.network]}, last epoch.",
            f"The budget is {budget} ({w.UNITS}). By the attack, the inputs are {lengths[0]} and {lengths[1]} from the "
            "boundary.",
            f"A rule selects the inputs. Among classes with at least {ENOUGH} measured points (if there are too few, "
            "among the largest classes), it takes the two whose median distances differ most, and from each the "
            "correctly classified test point closest to the median. The budget is halfway between the two distances. "
            "This most extreme pair only illustrates the idea. The paper shows two faces. We show no people.",
        ),
    )


def _show(axes: Axes, image: Array, words: str) -> None:
    """Draw an image (c, h, w) in [0, 1], grey or in colour."""
    clipped = np.clip(image, 0, 1)
    picture = clipped[0] if len(clipped) == 1 else clipped.transpose(1, 2, 0)
    axes.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.set_title(words, fontsize=7.5)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
