"""What the networks and audits were set to, and where a run departs from the published one: for the stamps."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.report import settings
from pipeline.report import words as w
from pipeline.report.inputs import Inputs, points
from pipeline.report.robustness_bias import study
from pipeline.report.settings import Reduction
from pipeline.report.stamp import Stamp

STANDARD = "standard"


def stamp(
    inputs: Inputs, blocks: str | Sequence[str], datasets: Sequence[str] = (), distances: Sequence[str] = ()
) -> Stamp:
    """The stamp of what is made from blocks, data sets and distances (all of them by default): from what was run.

    Of what was not run there is nothing to say but the scale.
    """
    wanted = [blocks] if isinstance(blocks, str) else list(blocks)
    rows = inputs.rows[inputs.rows["block"].map(study.block_of).isin(wanted)]
    rows = rows[rows["dataset"].isin(datasets)] if datasets else rows
    present = rows[rows["statistic"] != study.ABSENT]
    if rows.empty:
        return Stamp(inputs.scale, ())
    if present.empty:
        return replace(Stamp.of(rows, inputs.scale), repetitions=())
    if distances and present["attack"].isin(distances).any():
        present = present[present["attack"].isin(distances)]
    here, made = set(present["dataset"]), set(present["attack"].dropna())
    places = {
        (point["block"], point["dataset"]["name"], point["method"]["name"])
        for point in as_networks(inputs.points)
        if point["block"] in wanted and point["dataset"]["name"] in here
    }
    reduced = [r for r in reductions(inputs) if (r.block, r.dataset, r.method) in places and _concerns(r.key, made)]
    tried = present.loc[present["statistic"] == "points", "value"]
    points_tried = (int(tried.max()),) if len(tried) else ()
    return replace(Stamp.of(present, inputs.scale, reduced), points=points_tried)


def of_training(stamp: Stamp, *parts: str) -> Stamp:
    """The stamp of what no audit has a part in: without points, and of the departures those of data and training.

    ``parts``: of these alone, ``dataset`` or ``method``.
    """
    kept = tuple(f"{part}." for part in parts or ("dataset", "method"))
    return replace(stamp, points=(), reductions=tuple(r for r in stamp.reductions if r.key.startswith(kept)))


def _concerns(key: str, made: Iterable[str]) -> bool:
    """Whether a setting can have had an effect where these distances were measured."""
    of = [name for name in (w.EXACT_IN_BOX, *w.DISTANCES, *w.ABBREVIATED) if key.startswith(f"audit.{name}_")]
    return not of or of[0] in made


def reductions(inputs: Inputs) -> tuple[Reduction, ...]:
    """Where the run departs from the published one, by network; weights from scratch for pretrained ones among it."""
    sides = (as_networks(inputs.points), as_networks(points(inputs.config["published"])))
    return (*settings.reductions(*sides), *_from_scratch(inputs))


def as_networks(found: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Points with the network for a method, and the study's blocks."""
    named = []
    for point in found:
        method = point["method"]
        network = str(method.get("model", method["name"]))
        name = network if method["name"] == STANDARD else f"{method['name']} {network}"
        named.append({**point, "block": study.block_of(point["block"]), "method": {**method, "name": name}})
    return named


def pretrained(inputs: Inputs, one: study.Audited) -> bool | None:
    """Whether a network began from ImageNet weights; None where its classifier is not at hand."""
    classifier = inputs.classifiers.get(one.model)
    return None if classifier is None else bool(classifier.facts["pretrained"][-1])


def _from_scratch(inputs: Inputs) -> Iterator[Reduction]:
    """The networks of torchvision that did not begin from ImageNet weights, as all of them did in the paper."""
    for one in study.run(study.audited(inputs, study.NETWORKS)):
        if one.network in w.CONVOLUTIONAL and pretrained(inputs, one) is False:
            yield Reduction(study.NETWORKS, one.dataset, one.network, "method.weights", "from scratch", "of ImageNet")
