"""Figures 4 and 5 of Nanda et al. (2021): exact distances of logistic regressions, by class and by attribute."""

from __future__ import annotations

from matplotlib.lines import Line2D

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.picture import Picture
from pipeline.report.robustness_bias import curves, study, used
from pipeline.report.robustness_bias.distance_figures import nothing, panels

SENSITIVE = ((w.ADIENCE, w.GENDER), (w.UTKFACE, w.GENDER), (w.UTKFACE, w.RACE))


@registry.figure()
def figure_4(inputs: Inputs) -> Picture:
    """The share of each class whose exact distance to the boundary of a multinomial logistic regression exceeds a
    budget, for each data set. One thin line is one class, the dashed line is their mean.
    """
    found = study.audited(inputs, study.LINEAR)
    title = "Robustness of every class under logistic regression."
    shown = study.run(found)
    if not shown:
        return nothing(inputs, found, title)
    figure, grid = panels(len(shown))
    for axes, one in zip(grid, shown, strict=True):
        axes.set_title(w.dataset_label(one.dataset))
        points = study.at_points(inputs, one)
        group = curves.group(points, w.EXACT, next(iter(points.levels)))
        curves.draw_crowd(axes, group, curves.budgets([group]))
    grid[0].set_ylabel(r"$\widehat{I}_c(\tau)$")
    handles = [
        Line2D([], [], color="#0072B2", linewidth=0.9),
        Line2D([], [], color=curves.MEAN, linestyle=(0, (4, 1.2))),
    ]
    figure.legend(handles, ["one class", "mean of the classes"], loc="outside upper center", ncols=2)
    return Picture.stamped(
        figure,
        title,
        used.stamp(inputs, study.LINEAR, distances=[w.EXACT]),
        "For each data set, one falling curve for each class: the share of its points that are further than a budget "
        "from the boundary, and the mean of these curves.",
        notes=("Shares of all members of a class; axes end where nearly all distances do.", *study.not_run(found)),
    )


@registry.figure()
def figure_5(inputs: Inputs) -> Picture:
    """The same by sensitive attribute, for the data sets that have one."""
    found = {one.dataset: one for one in study.audited(inputs, study.LINEAR)}
    every = [found[dataset] for dataset in dict.fromkeys(dataset for dataset, _ in SENSITIVE)]
    title = "Robustness by sensitive attribute under logistic regression."
    shown = [(found[dataset], partition) for dataset, partition in SENSITIVE if not found[dataset].absent]
    if not shown:
        return nothing(inputs, every, title)
    figure, grid = panels(len(shown))
    for axes, (one, partition) in zip(grid, shown, strict=True):
        axes.set_title(f"{w.dataset_label(one.dataset)}, by {partition}")
        group = curves.group(study.at_points(inputs, one), w.EXACT, partition)
        curves.draw_levels(axes, group, curves.budgets([group]))
        axes.legend(loc="upper right", handlelength=2.0)
    grid[0].set_ylabel(r"$\widehat{I}_s(\tau)$")
    return Picture.stamped(
        figure,
        title,
        used.stamp(inputs, study.LINEAR, [one.dataset for one in every], [w.EXACT]),
        "Falling curves, one for each gender or race: the share that is further than a budget from the boundary.",
        notes=("Faces of unknown gender or race are left out.", *study.not_run(every)),
    )
