"""Figures of the Strategic Subject List: 3, 4 and 8 to 11 of Black et al. (2020)."""

from __future__ import annotations

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


def figure_3(inputs: Inputs) -> Picture:
    """Figure 3: the positive flipset beside all black subjects, three features."""
    return _selected(inputs, w.EVERYONE, SELECTED)


def figure_4(inputs: Inputs) -> Picture:
    """Figure 4: the same among ground-truth negatives."""
    return _selected(inputs, w.NEGATIVES, OF_NEGATIVES)


def figure_8(inputs: Inputs) -> Picture:
    """Figure 8: all marginals and the transparency report of the positive flipset."""
    return _whole(inputs, w.EVERYONE, (w.POSITIVE,))


def figure_9(inputs: Inputs) -> Picture:
    """Figure 9: a model that discriminates by a proxy of several correlated features."""
    found = trials.places(inputs, block="ssl_proxy", transport=w.WGAN)
    return pages.drawn(
        inputs,
        Page(found[0], (w.POSITIVE,), own_axis=True),
        "A model that discriminates by a proxy of several correlated features.",
        notes=(
            "The model of appendix F is lost with the supplement. This one is the project's own: it stands for the "
            "kind of model that the appendix describes, not for its numbers.",
        ),
    )


def figure_10(inputs: Inputs) -> Picture:
    """Figure 10: equalized odds, the map between ground-truth negatives."""
    return _whole(inputs, w.NEGATIVES, (w.POSITIVE,))


def figure_11(inputs: Inputs) -> Picture:
    """Figure 11: equalized odds, the map between ground-truth positives."""
    return _whole(inputs, w.POSITIVES, (w.POSITIVE, w.NEGATIVE))


def _selected(inputs: Inputs, given: str, labels: tuple[str, ...]) -> Picture:
    where = place(inputs, given)
    names = trials.first_trial(inputs, where).names
    features = tuple(w.feature_named(label, names, w.SSL) for label in labels)
    return pages.drawn(
        inputs,
        Page(where, (w.POSITIVE,), features, reports=False, own_axis=True),
        f"The positive flipset of the black-to-white map{_among(given)}.",
    )


def _whole(inputs: Inputs, given: str, flipsets: tuple[str, ...]) -> Picture:
    return pages.drawn(
        inputs,
        Page(place(inputs, given), flipsets, own_axis=True),
        f"All features and transparency reports of the black-to-white map{_among(given)}.",
    )


def _among(given: str) -> str:
    return f" among {w.GIVEN[given]}" if w.GIVEN[given] else ""
