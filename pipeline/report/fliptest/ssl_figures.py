"""Figures of the Strategic Subject List: 3, 4 and 8 to 11 of Black et al. (2020)."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.fliptest import pages, trials
from pipeline.report.fliptest.pages import Page
from pipeline.report.fliptest.trials import Place
from pipeline.report.inputs import Inputs
from pipeline.report.picture import Picture

SELECTED = ("age at latest arrest", "narcotic arrests", "gang affiliation")
OF_NEGATIVES = (*SELECTED, "trend in activity")


def place(inputs: Inputs, given: str = w.EVERYONE, method: str = "given") -> Place:
    """Where the map of the paper was audited on these data, with the given true labels.

    Raises ValueError where it was not.
    """
    found = trials.places(inputs, dataset=w.SSL, transport=w.WGAN, given=given, method=method)
    if len(found) != 1:
        raise ValueError(f"expected one audit of {method!r} on {w.SSL!r} for {given}, found {found}")
    return found[0]


@registry.figure(
    "figure_3",
    "Black people called high risk whose white counterparts are called low risk, beside all black people, in three "
    "features: age, narcotic arrests, which the model was biased towards, and gang affiliation, which it does not "
    "use.",
    given=w.EVERYONE,
    labels=SELECTED,
)
@registry.figure(
    "figure_4",
    "As Figure 3, with the map between the people of either group whose score is below the threshold.",
    given=w.NEGATIVES,
    labels=OF_NEGATIVES,
)
@registry.figure(
    "figure_8",
    "All eight features of the flipset of Figure 3 and its transparency report: how its members differ from their "
    "counterparts, ranked by the mean shift and by the mean sign. Hatched bars are noise, pale ones shift as the "
    "whole group, full ones stand out.",
    given=w.EVERYONE,
)
@registry.figure("figure_10", "As Figure 8, with the map between ground-truth negatives.", given=w.NEGATIVES)
@registry.figure(
    "figure_11",
    "As Figure 8, with the map between ground-truth positives, for both flipsets.",
    given=w.POSITIVES,
    flipsets=(w.POSITIVE, w.NEGATIVE),
)
def flipsets_of(
    inputs: Inputs, given: str, labels: Sequence[str] = (), flipsets: tuple[str, ...] = (w.POSITIVE,)
) -> Picture:
    """Marginals of the features with these labels; of all, with their transparency reports, where none are named."""
    where = place(inputs, given)
    names = trials.first_trial(inputs, where).names
    features = tuple(w.feature_named(label, names, w.SSL) for label in labels)
    shown = "The positive flipset" if labels else "All features and transparency reports"
    among = f" among {w.GIVEN[given]}" if w.GIVEN[given] else ""
    return pages.drawn(
        inputs,
        Page(where, flipsets, features, reports=not labels, own_axis=True),
        f"{shown} of the black-to-white map{among}.",
    )


@registry.figure()
def figure_9(inputs: Inputs) -> Picture:
    """As Figure 8, for a model that does not lean on one feature but on several that go together with race."""
    return pages.drawn(
        inputs,
        Page(trials.places(inputs, block="ssl_proxy", transport=w.WGAN)[0], (w.POSITIVE,), own_axis=True),
        "A model that discriminates by a proxy of several correlated features.",
        notes=(
            "The model of appendix F is lost with the supplement. This one is the project's own: it stands for the "
            "kind of model that the appendix describes, not for its numbers.",
        ),
    )
