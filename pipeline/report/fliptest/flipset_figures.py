"""Figures of the hiring data and the Strategic Subject List: 1, 3 to 5 and 8 to 11 of Black et al. (2020)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from fairness_audits.audits.fliptest import bars
from fairness_audits.results.formats import number
from fairness_audits.results.style import DASHED, INK, finish, new_panels
from fairness_audits.values import Array
from pipeline.report import labels as w
from pipeline.report.fliptest import flipset_panels, trials
from pipeline.report.fliptest.trials import BOTH, AuditedMap, FirstTrial
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.stamp import Picture

FEATURES = ("hair length", "work experience")
"""Features on the horizontal and the vertical axis."""
ARROWS, FLIPSET_ARROWS = 140, 40
"""Number of arrows from people to their counterparts: from everyone, and from each flipset."""
CROWD = 1500
"""Number of points of each group behind the arrows."""
SOURCE, TARGET = "#b8860b", "#56B4E9"


def hiring(inputs: Inputs, direction: str = w.FORWARD) -> AuditedMap:
    """Return the paper's map of the hiring data."""
    return AuditedMap(inputs, w.HIRING, w.HIRING, "given", w.WGAN, direction=direction)


@artefact(
    "Left: the map from women to men, approximated by a GAN. Right: the women whose decision differs from that of "
    "their counterpart. Women in F+ are hired and their counterparts are not. F− is the reverse.",
)
def figure_1(inputs: Inputs) -> Picture:
    place, first = hiring(inputs), hiring(inputs).first
    columns = [first.column(w.feature_named(label, first.names, w.HIRING)) for label in FEATURES]
    figure, (panels,) = new_panels(3.6, 1, 2, sharex=True, sharey=True)
    for axes in panels:
        sides = zip((first.features, first.target_features), (SOURCE, TARGET), place.groups, strict=True)
        for people, color, label in sides:
            axes.scatter(*people[:CROWD, columns].T, s=2, color=color, alpha=0.3, linewidths=0, label=label)
        axes.set_xlabel(f"{FEATURES[0]}, standardised")
    _arrows(panels[0], first, np.arange(len(first.decision))[:ARROWS], columns, INK, "the map")
    for flipset in BOTH:
        members = np.flatnonzero(first.members(flipset))
        label = f"{w.FLIPSETS_DRAWN[flipset]}, {len(members):,}"
        _arrows(panels[1], first, members[:FLIPSET_ARROWS], columns, bars.FLIPSET_COLORS[flipset], label)
    rule = next(p["method"] for p in inputs.points if (p["block"], p["method"]["name"]) == (w.HIRING, place.method))
    weights, threshold = [rule["weights"][first.names[column]] for column in columns], rule["threshold"]
    ends = np.array(panels[1].get_ylim())
    across = (threshold - weights[1] * ends) / weights[0]
    panels[1].plot(across, ends, color=INK, linestyle=DASHED, linewidth=1.3, zorder=5, label="decision boundary")
    panels[1].set_ylim(ends)
    panels[0].set_ylabel(f"{FEATURES[1]}, standardised")
    finish(figure, panels, titles=("the map", "flipsets"))
    for axes in panels:
        # Cut the axes at quantiles: a few outliers would compress all other points.
        both = np.vstack([first.features, first.target_features])[:, columns]
        x, y = np.quantile(both, [0.002, 0.998], axis=0).T
        axes.set(xlim=x, ylim=y)
        axes.legend(loc="upper right", markerscale=4, handlelength=1.6, frameon=True, edgecolor="none", framealpha=0.85)
    return Picture(
        figure,
        "Map from women to men in the hiring data, and flipsets of the group-fair model.",
        inputs.stamp(w.HIRING, maps=[place.transport]),
        "Left: points of both groups, and arrows from women to their counterparts among men. Right: arrows of the "
        "members of both flipsets, which cross the decision boundary.",
        notes=(
            f"Arrows point from a person to the counterpart, for {ARROWS} people and up to {FLIPSET_ARROWS} of each "
            f"flipset. Boundary: {number(weights[0], 2)} {FEATURES[0]} + {number(weights[1], 2)} {FEATURES[1]} = "
            f"{number(threshold, 2)}.",
            *flipset_panels.shown(place, BOTH),
        ),
    )


@artefact(
    "Women in F+ are hired and their counterparts among men are not. F− is the reverse. The model hires both genders "
    "at about the same rate, but treats people with short and long hair differently. Bottom: how flipset members "
    "differ from their counterparts, in standard deviations.",
)
def figure_5(inputs: Inputs) -> Picture:
    title = "Women in the hiring data and both flipsets."
    return flipset_panels.drawn(hiring(inputs), BOTH, title, _features(inputs))


@artefact("The map from men to women (appendix D), with the transparency reports of both flipsets.")
def figure_5_opposite(inputs: Inputs) -> Picture:
    title = "Men in the hiring data and the flipsets of the opposite map."
    return flipset_panels.drawn(hiring(inputs, w.REVERSE), BOTH, title, _features(inputs))


def _arrows(axes: Axes, first: FirstTrial, members: Array, columns: list[int], color: str, label: str) -> None:
    start, end = first.features[members][:, columns], first.images[members][:, columns]
    axes.quiver(
        *start.T, *(end - start).T, angles="xy", scale_units="xy", scale=1, width=0.0028, headwidth=4.5, headlength=5,
        color=color, alpha=0.75, label=label, zorder=3,
    )  # fmt: skip


def _features(inputs: Inputs) -> tuple[str, ...]:
    names = hiring(inputs).first.names
    return tuple(w.feature_named(label, names, w.HIRING) for label in FEATURES[::-1])


SELECTED = ("age at latest arrest", "narcotic arrests", "gang affiliation")
OF_NEGATIVES = (*SELECTED, "trend in activity")


@artefact(
    "Black people with a high-risk decision whose white counterparts have a low-risk decision, compared with all black "
    "people in three features: age, narcotic arrests (on which the model was made to depend) and gang affiliation "
    "(which the model does not use).",
    "figure_3",
    condition=w.EVERYONE,
    labels=SELECTED,
)
@artefact(
    "As Figure 3, for the map between people of both groups whose score is below the threshold.",
    "figure_4",
    condition=w.NEGATIVES,
    labels=OF_NEGATIVES,
)
@artefact(
    "All eight features of the flipset of Figure 3, with its transparency report. The report ranks how members differ "
    "from their counterparts, by the mean shift and by the mean sign. Hatched bars are noise. Filled bars stand out.",
    "figure_8",
    condition=w.EVERYONE,
)
@artefact("As Figure 8, for the map between ground-truth negatives.", "figure_10", condition=w.NEGATIVES)
@artefact(
    "As Figure 8, for the map between ground-truth positives and both flipsets.",
    "figure_11",
    condition=w.POSITIVES,
    flipsets=(w.POSITIVE, w.NEGATIVE),
)
def flipsets_of(
    inputs: Inputs, condition: str, labels: Sequence[str] = (), flipsets: tuple[str, ...] = (w.POSITIVE,)
) -> Picture:
    """Draw the marginals of the labelled features, or of all features with transparency reports if none are named."""
    where = trials.only(inputs, dataset=w.SSL, transport=w.WGAN, given=condition, method="given")
    features = tuple(w.feature_named(label, where.first.names, w.SSL) for label in labels)
    shown = "The positive flipset" if labels else "All features and transparency reports"
    among = f" among {w.CONDITIONS[condition]}" if w.CONDITIONS[condition] else ""
    title = f"{shown} of the black-to-white map{among}."
    return flipset_panels.drawn(where, flipsets, title, features, reports=not labels, shares=True)


@artefact("As Figure 8, for a model that depends on several features that are correlated with race.")
def figure_9(inputs: Inputs) -> Picture:
    return flipset_panels.drawn(
        trials.only(inputs, block="ssl_proxy", transport=w.WGAN),
        (w.POSITIVE,),
        "A model that discriminates through several correlated features.",
        notes=(
            "We have no copy of the supplement with appendix F. We made a model of the kind that the paper mentions, "
            "so the numbers cannot be compared.",
        ),
        shares=True,
    )
