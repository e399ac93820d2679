"""Stamps of the study's artefacts, and differences between a run and the published configuration."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.report import labels as w
from pipeline.report import reduction
from pipeline.report.inputs import Inputs, points
from pipeline.report.reduction import Reduction
from pipeline.report.robustness_bias import study
from pipeline.report.stamp import Stamp


def stamp(inputs: Inputs, blocks: str | Sequence[str], datasets: Sequence[str] = ()) -> Stamp:
    """Return the stamp of an artefact made from blocks and data sets (all by default) that were run.

    If none was run, the stamp has the scale, but no repetitions. It has none either if the blocks have several training
    runs or folds, because their tables tell the number.
    """
    wanted = [blocks] if isinstance(blocks, str) else list(blocks)
    rows = inputs.rows[inputs.rows["block"].map(study.block_of).isin(wanted)]
    rows = rows[rows["dataset"].isin(datasets)] if datasets else rows
    present = rows[rows["statistic"] != study.ABSENT]
    if rows.empty:
        return Stamp(inputs.scale, ())
    if present.empty:
        return replace(Stamp.of(rows), repetitions=())
    here = set(present["dataset"].unique())
    reduced = [one for one in reductions(inputs) if one.block in wanted and one.dataset in here]
    made = Stamp.of(present, reduced)
    return replace(made, repetitions=()) if set(wanted) <= set(study.REPEATED) else made


def blocks(inputs: Inputs) -> list[str]:
    """Return the blocks of the grid, whether they were run or not."""
    return sorted({study.block_of(name) for name in inputs.config["experiment"]["grid"]})


def reductions(inputs: Inputs) -> tuple[Reduction, ...]:
    """Return the differences from the published configuration by network, including missing pretrained weights."""

    def found() -> tuple[Reduction, ...]:
        sides = (as_networks(inputs.points), as_networks(points(inputs.config["published"])))
        return (*reduction.reductions(*sides), *_from_scratch(inputs))

    return inputs.once("reductions of the networks", found, inputs.audits)


def as_networks(found: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the points with the network as the method name and the study's blocks."""
    named = []
    for point in found:
        method = point["method"]
        network = str(method.get("model", method["name"]))
        name = network if method["name"] == study.STANDARD else f"{method['name']} {network}"
        named.append({**point, "block": study.block_of(point["block"]), "method": {**method, "name": name}})
    return named


def _from_scratch(inputs: Inputs) -> Iterator[Reduction]:
    """Yield the torchvision networks that did not start from the complete ImageNet weights, as in the paper."""
    for one in study.trained(study.audited(inputs, study.NETWORKS)):
        if one.network in w.CONVOLUTIONAL and one.classifier is not None:
            zeros = one.facts.get("pruned", 0.0)
            weights = "from scratch" if not one.pretrained else f"{zeros:.0%} pruned" if zeros else ""
            if weights:
                yield Reduction(study.NETWORKS, one.dataset, one.network, "method.weights", weights, "of ImageNet")
