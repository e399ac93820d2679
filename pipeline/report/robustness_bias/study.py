"""Where the study's numbers lie: every audit with its network, its rows as a wide table, its distances by point.

What the grid has as several blocks is one here: ``networks`` are all networks trained as usual, ``regularizer`` all
that were penalised. A network stands where other studies have a method.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from pipeline.report import settings
from pipeline.report.departures import NO_METHOD
from pipeline.report.inputs import Inputs, points
from pipeline.report.robustness_bias import words as w
from pipeline.report.settings import Reduction
from pipeline.report.stamp import Stamp
from pipeline.robustness.lengths import DENOMINATORS
from pipeline.types import Array, AuditResult, ImageDataset

LINEAR, NETWORKS, PRETRAINING, REGULARIZER = "linear", "networks", "pretraining", "regularizer"
STANDARD = "standard"
ABSENT = "absent"
ALL_NETWORKS = "all networks"
NOTHING = pd.DataFrame({"sigma": []}, index=pd.MultiIndex.from_arrays([[], []]))
"""The table of what was not measured."""


@dataclass(frozen=True)
class Audited:
    """One network on one data set, audited: the block it belongs to, what it is configured to be, what was found.

    ``key`` is its own, ``data`` and ``model`` those of its data set and its classifier in :class:`Inputs`.
    """

    key: str
    block: str
    dataset: str
    network: str
    data: str
    model: str
    method: Mapping[str, Any]
    result: AuditResult

    @cached_property
    def absent(self) -> str:
        """Why it could not be run; nothing where it was."""
        rows = self.result.rows
        return str(rows["reason"].iloc[0]) if (rows["statistic"] == ABSENT).any() else ""

    @cached_property
    def epochs(self) -> list[int]:
        """The epochs of its checkpoints, rising."""
        return sorted({int(epoch) for epoch in self.result.rows["epoch"].dropna()})

    @cached_property
    def attacks(self) -> list[str]:
        """The distances that were measured, in the study's order."""
        return w.distances_in(name for name in self.result.rows["attack"] if isinstance(name, str) and name)

    def epoch(self, moment: str) -> int | None:
        """The epoch of the ``first``, ``middle`` or ``last`` checkpoint; None for one that is the last as well."""
        last = self.epochs[-1]
        wanted = {w.FIRST: 1, w.MIDDLE: (1 + last) // 2, w.LAST: last}[moment]
        return wanted if wanted in self.epochs and (wanted < last or moment == w.LAST) else None

    @cached_property
    def groups(self) -> list[tuple[str, str]]:
        """Every (partition, level), in the order of the rows."""
        return list(next(iter(self._tables.values())).index)

    @cached_property
    def _tables(self) -> dict[tuple[str, float, str], pd.DataFrame]:
        """By distance, epoch and denominator: one line for each group, one column for each statistic."""
        rows = self.result.rows
        named = rows[rows["partition"].fillna("") != ""]
        where, groups = pd.factorize(pd.MultiIndex.from_frame(named[["partition", "level"]]))
        what, statistics = pd.factorize(named["statistic"])
        values = named["value"].to_numpy(float)
        tables: dict[tuple[str, float, str], Array] = {}
        for (attack, epoch, denominator), places in named.groupby(["attack", "epoch", "denominator"]).indices.items():
            # What is the same for both denominators is written once.
            for name in DENOMINATORS if denominator == "" else (denominator,):
                key = (attack, float(epoch), name)
                table = tables.setdefault(key, np.full((len(groups), len(statistics)), np.nan))
                table[where[places], what[places]] = values[places]
        return {key: pd.DataFrame(table, index=groups, columns=statistics) for key, table in tables.items()}

    def table(self, attack: str, moment: str = w.LAST, denominator: str = w.PAPER) -> pd.DataFrame:
        """One line for each group, one column for each statistic; without lines where it was not measured."""
        epoch = None if self.absent else self.epoch(moment)
        found = None if epoch is None else self._tables.get((attack, float(epoch), denominator))
        return NOTHING if found is None else found

    def sigmas(self, attack: str, moment: str = w.LAST, denominator: str = w.PAPER) -> pd.Series:
        """sigma(P) by (partition, level); empty where it was not measured."""
        return self.table(attack, moment, denominator)["sigma"]

    def overall(self, attack: str, statistic: str, moment: str = w.LAST) -> float:
        """A statistic of all points together; NaN where it was not measured."""
        rows = self.result.rows
        keep = (rows["statistic"] == statistic) & (rows["attack"] == attack) & (rows["partition"].fillna("") == "")
        found = rows[keep & (rows["epoch"] == self.epoch(moment))] if not self.absent else rows.iloc[:0]
        return float(found["value"].iloc[0]) if len(found) else float("nan")


@dataclass(frozen=True)
class Points:
    """The audited points of one network at its last checkpoint, n in all.

    ``correct`` (n,) says which are classified correctly, ``distance`` (n,) is NaN where none was found, ``tried`` (n,)
    which were attacked at all, ``codes`` (n,) the level of each in every partition, -1 unknown.
    """

    correct: Array
    distance: Mapping[str, Array]
    tried: Mapping[str, Array]
    codes: Mapping[str, Array]
    levels: Mapping[str, tuple[str, ...]]


def audited(inputs: Inputs, block: str = "", dataset: str = "") -> list[Audited]:
    """Every audited network of a block and a data set, data sets and networks in the study's order."""
    methods = {place(path): section["method"] for path, section in inputs.config["sections"].items()}
    found = []
    for key, result in inputs.audits.items():
        own, data, method, _ = key.split("/")
        configured = methods[key]
        name = str(configured.get("model", configured["name"]))
        found.append(
            Audited(key, block_of(own), data.partition("@")[0], name, data, f"{data}/{method}", configured, result)
        )
    chosen = [one for one in found if block in ("", one.block) and dataset in ("", one.dataset)]
    datasets, networks = w.datasets_in(a.dataset for a in chosen), w.networks_in(a.network for a in chosen)
    return sorted(chosen, key=lambda a: (datasets.index(a.dataset), a.block, networks.index(a.network)))


def place(path: str) -> str:
    """What an audit goes by: the last four parts of its file, without the suffix."""
    return "/".join(path.removesuffix(".npz").split("/")[-4:])


def block_of(name: str) -> str:
    """``networks_cifar10`` -> ``networks``."""
    return name.partition("_")[0]


def run(found: Iterable[Audited]) -> list[Audited]:
    """Those whose data were there."""
    return [one for one in found if not one.absent]


def together(datasets: Iterable[str]) -> str:
    """What the data sets of the paper are called together, when these are there."""
    return "all of the paper" if set(w.PUBLISHED) <= set(datasets) else "of the paper, those here"


def images(inputs: Inputs) -> dict[str, ImageDataset]:
    """The data sets that are there, by the key that they go by; all of this study's are of images."""
    return {key: data for key, data in inputs.datasets.items() if isinstance(data, ImageDataset)}


def at_points(inputs: Inputs, one: Audited) -> Points:
    """The points of a network. Raises ValueError where the audit kept no distances, or its data set is not there."""
    arrays = one.result.arrays
    kept = {name.removeprefix("distance_") for name in arrays if name.startswith("distance_")}
    if not kept or one.data not in inputs.datasets:
        raise ValueError(
            f"the audit of {one.network} on {one.data} has arrays {sorted(arrays)} and the data sets are "
            f"{sorted(inputs.datasets)}: expected distance_<attack> and {one.data}"
        )
    levels = inputs.datasets[one.data].levels
    return Points(
        correct=arrays["correct"][-1].astype(bool),
        distance={name: arrays[f"distance_{name}"][-1].astype(float) for name in w.distances_in(kept)},
        tried={name: arrays[f"tried_{name}"][-1].astype(bool) for name in w.distances_in(kept)},
        codes={name: arrays[name] for name in levels},
        levels={name: tuple(names) for name, names in levels.items()},
    )


def absences(found: Iterable[Audited]) -> dict[str, str]:
    """The data sets that could not be had, with what each is made of and where that is found."""
    return {one.dataset: remedy(one.absent) for one in found if one.absent}


def remedy(reason: str) -> str:
    """What a data set is made of and where to get it, from the long reason for its absence; else that as one line."""
    files, address = re.search(r"is made of (.+?)\.\s", f"{reason} "), re.search(r"get the file from (\S+)", reason)
    if not files:
        return " ".join(reason.split())
    return f"needs {files[1]}{f', from {address[1]}' if address else ''}"


def not_run(found: Iterable[Audited]) -> tuple[str, ...]:
    """A footnote on the data sets that could not be had; none where all could."""
    missing = absences(found)
    texts = (f"{w.dataset_label(name)} ({missing[name]})" for name in w.datasets_in(missing))
    return (f"Not run: data. {'; '.join(texts)}.",) if missing else ()


def failures(found: Iterable[Audited], attacks: Iterable[str] = ()) -> str:
    """How many attacks failed at the last epoch: at most, in a network, by each distance that ever failed.

    A failed point is in no share, so this says how much of a group may be missing. Of all distances, or of ``attacks``.
    """
    wanted = set(attacks)
    worst: dict[str, tuple[float, float]] = {}
    for one in run(found):
        for attack in one.attacks:
            failed, tried = one.overall(attack, "failed"), one.overall(attack, "points")
            if failed > 0 and (attack in wanted or not wanted):
                before = worst.get(attack, (failed, tried))
                worst[attack] = max(before, (failed, tried), key=lambda pair: pair[0] / pair[1])
    if not worst:
        return "No attack failed."
    told = [
        f"{w.distance_style(name).label} {worst[name][0]:,.0f} of {worst[name][1]:,.0f} points"
        for name in w.distances_in(worst)
    ]
    return (
        f"Failed attacks, at most in a network: {', '.join(told)}. They are left out, and are probably far from the "
        "boundary: sigma is drawn towards 0."
    )


def stamp(
    inputs: Inputs, blocks: str | Sequence[str], datasets: Sequence[str] = (), distances: Sequence[str] = ()
) -> Stamp:
    """The stamp of what is made from blocks, data sets and distances (all of them by default): from what was run.

    Of what was not run there is nothing to say but the scale.
    """
    wanted = [blocks] if isinstance(blocks, str) else list(blocks)
    rows = inputs.rows[inputs.rows["block"].map(block_of).isin(wanted)]
    rows = rows[rows["dataset"].isin(datasets)] if datasets else rows
    present = rows[rows["statistic"] != ABSENT]
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
    return replace(Stamp.of(present, inputs.scale, merged(reduced, places)), points=points_tried)


def _concerns(key: str, made: Iterable[str]) -> bool:
    """Whether a setting can have had an effect where these distances were measured."""
    of = [name for name in (*w.DISTANCES, *w.ABBREVIATED) if key.startswith(f"audit.{name}_")]
    return not of or of[0] in made


def merged(reduced: Sequence[Reduction], places: Iterable[tuple[str, str, str]]) -> list[Reduction]:
    """Reductions that hold for every one of the places (block, data set, network) said once, without a place.

    Those that hold for every network of a data set name the data set alone.
    """
    every = {(dataset, method) for _, dataset, method in places}
    found: dict[tuple[str, str], list[Reduction]] = {}
    for r in reduced:
        found.setdefault((r.key, repr((r.here, r.published))), []).append(r)
    texts: list[Reduction] = []
    for same in found.values():
        held = {(r.dataset, r.method) for r in same}
        if held == every:
            texts.append(replace(same[0], method=NO_METHOD))
            continue
        for dataset in dict.fromkeys(r.dataset for r in same):
            own = {place for place in every if place[0] == dataset}
            of = [r for r in same if r.dataset == dataset]
            whole = len(own) > 1 and {(r.dataset, r.method) for r in of} == own
            texts += [replace(of[0], method=ALL_NETWORKS)] if whole else of
    return [replace(r, method=_called(r.method)) for r in texts]


def _called(method: str) -> str:
    """``adverm vgg19`` -> ``AdvERM VGG19``."""
    network = method.partition(" ")[2]
    return f"AdvERM {w.network_label(network)}" if network in w.NETWORKS else w.NETWORKS.get(method, method)


def reductions(inputs: Inputs) -> tuple[Reduction, ...]:
    """Where the run departs from the published one, by network; weights from scratch for pretrained ones among it."""
    sides = (as_networks(inputs.points), as_networks(points(inputs.config["published"])))
    return (*settings.reductions(*sides), *_from_scratch(inputs))


def as_networks(found: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Points with the network for a method, what is special to it in its place, and the study's blocks."""
    named = []
    for point in found:
        method = own_settings(point["method"])
        network = str(method.get("model", method["name"]))
        name = network if method["name"] == STANDARD else f"{method['name']} {network}"
        named.append({**point, "block": block_of(point["block"]), "method": {**method, "name": name}})
    return named


def own_settings(method: Mapping[str, Any]) -> dict[str, Any]:
    """A method's settings with those of ``per_model`` that are for its model."""
    own = {key: value for key, value in method.items() if key != "per_model"}
    for entry in method.get("per_model", ()):
        name, _, text = str(entry).partition("=")
        model, _, key = name.strip().rpartition(".")
        if model == method.get("model"):
            try:
                own[key] = json.loads(text)
            except json.JSONDecodeError:
                own[key] = text.strip()
    return own


def pretrained(inputs: Inputs, one: Audited) -> bool | None:
    """Whether a network began from ImageNet weights; None where its classifier is not at hand."""
    classifier = inputs.classifiers.get(one.model)
    return None if classifier is None else bool(classifier.facts["pretrained"][-1])


def _from_scratch(inputs: Inputs) -> Iterator[Reduction]:
    """The networks of torchvision that did not begin from ImageNet weights, as all of them did in the paper."""
    for one in run(audited(inputs, NETWORKS)):
        if one.network in w.CONVOLUTIONAL and pretrained(inputs, one) is False:
            yield Reduction(NETWORKS, one.dataset, one.network, "method.weights", "from scratch", "of ImageNet")
