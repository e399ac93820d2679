"""Distances of a user's images: which attacks there are, with which settings, made part by part and kept on the way.

A kept distance belongs to an image (by its pixels), the class that it is to leave, the network with its normalisation,
and the attack with its settings. Where all of these are the same it is taken from the file.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch

from pipeline.attacks.carlini_wagner import carlini_wagner
from pipeline.attacks.deepfool import deepfool
from pipeline.attacks.distances import CPU_BATCH, GPU_BATCH, Distances, Execution
from pipeline.attacks.fmn import fmn
from pipeline.attacks.linear_distance import linear_distance
from pipeline.attacks.smoothing import certify
from pipeline.cli.audit.robustness_bias.subjects import Subjects
from pipeline.cli.progress import followed
from pipeline.io import written
from pipeline.messages import listed
from pipeline.types import Array

EXACT, SMOOTHING = "exact", "smoothing"
FUNCTIONS: Mapping[str, Callable[..., Distances]] = {
    "deepfool": deepfool,
    "carlini_wagner": carlini_wagner,
    "fmn": fmn,
    SMOOTHING: certify,
}
BOUNDS = {EXACT: "exact", SMOOTHING: "lower"}
"""What the distances are: exact, lower bounds, or else upper bounds."""
OURS = ("execution", "seed", "rows", "channel_scale", "radius_of")
"""Arguments of the attacks that the audit sets itself."""
CERTIFIED_TOGETHER = 16
"""Images that are certified between two looks at the clock: each may take thousands of samples."""
LINEARITY = 1e-3
"""A network whose margins differ from an affine map by more than this share of their size is not linear."""
FORMAT = 1
SECONDS = 5.0
"""The file is written at most so often, and at the end: a killed run loses no more than that."""

Attack = Callable[[Array, Array, Array], Distances]
"""Images (m, c, h, w), their classes (m,) and their streams of noise (m,) -> distances."""


@dataclass(frozen=True)
class Chosen:
    """An attack by ``name`` with all its ``settings``."""

    name: str
    settings: Mapping[str, Any]

    @property
    def bound(self) -> str:
        """``exact``, ``lower`` or ``upper``."""
        return BOUNDS.get(self.name, "upper")


def chosen_attacks(names: Sequence[str], given: Sequence[str] | Mapping[str, Any]) -> list[Chosen]:
    """The attacks with their settings: those of the functions in ``pipeline.attacks`` but for ``ATTACK.KEY=VALUE``.

    Raises ValueError for settings that do not exist, are no numbers, or belong to an attack that is not made.
    """
    every = {name: _defaults(name) for name in dict.fromkeys(names)}
    texts = [f"{key}={value}" for key, value in given.items()] if isinstance(given, Mapping) else given
    for text in texts:
        where, equals, value = text.partition("=")
        name, dot, key = where.partition(".")
        if not (equals and dot):
            raise ValueError(f"expected --attack-setting ATTACK.KEY=VALUE, found {text!r}: such as deepfool.steps=50")
        if name not in every:
            raise ValueError(f"--attack-setting {text}: {name} is not asked for; --attack names {listed(list(every))}")
        if key not in every[name]:
            known = listed(list(every[name])) or "none"
            raise ValueError(f"--attack-setting {text}: {name} has no setting {key!r}. It has: {known}")
        every[name][key] = _number(value, type(every[name][key]), text)
    return [Chosen(name, settings) for name, settings in every.items()]


def _defaults(name: str) -> dict[str, Any]:
    if name == EXACT:
        return {}
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    return {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY and one.name not in OURS}


def _number(text: str, kind: type, given: str) -> int | float:
    try:
        number = float(text)
        if kind is float:
            return number
        if number.is_integer():
            return int(number)
    except (ValueError, OverflowError):
        pass
    wanted = "a number" if kind is float else "a whole number"
    raise ValueError(f"--attack-setting {given}: expected {wanted}, found {text!r}")


def distances(chosen: Chosen, subjects: Subjects, kept: Kept, batch_size: int | None, seed: int) -> Array:
    """The distances (n,) of the points that are classified correctly; NaN for others, and where the attack fails.

    Those that ``kept`` holds are taken from it; others are kept there, part by part.
    """
    attack, size = _made(chosen, subjects, batch_size, seed)
    distance = np.full(len(subjects.prediction), np.nan)
    right = np.flatnonzero(subjects.correct)
    keys = [_key(subjects.digests[point], int(subjects.prediction[point])) for point in range(len(distance))]
    known = kept.known(chosen.name)
    parts = [right[start : start + size] for start in range(0, len(right), size)]

    def attacked(part: Array) -> None:
        missing = np.array([point for point in part if keys[point] not in known], dtype=np.int64)
        if len(missing):
            pixels = subjects.points.images.pixels(subjects.points.rows[missing])
            streams = np.array([int(keys[point], 16) >> 66 for point in missing])
            found = attack(pixels, subjects.prediction[missing], streams)
            new = np.where(found.failed, np.nan, found.distance)
            kept.add(chosen.name, {keys[point]: float(value) for point, value in zip(missing, new, strict=True)})
        for point in part:
            distance[point] = known[keys[point]]

    try:
        with followed(attacked, len(parts), chosen.name) as one_part:
            for part in parts:
                one_part(part)
    finally:
        kept.save()
    return distance


def _key(digest: bytes, label: int) -> str:
    """What identifies an image and the class that it is to leave: 32 hexadecimal digits."""
    return hashlib.sha256(digest + label.to_bytes(8, "big")).hexdigest()[:32]


def _made(chosen: Chosen, subjects: Subjects, batch_size: int | None, seed: int) -> tuple[Attack, int]:
    """The attack on this network, and how many images it is made on at a time.

    Raises ValueError for settings out of range, before anything is computed.
    """
    usual = CPU_BATCH if subjects.device.type == "cpu" else GPU_BATCH
    if chosen.name == EXACT:
        return _exact(subjects), batch_size or usual
    how = Execution(batch_size=batch_size, device=subjects.device, keep_adversarial=False)
    function = partial(FUNCTIONS[chosen.name], subjects.classifier.evaluate, **chosen.settings, execution=how)
    attack: Attack = lambda images, label, streams: function(images, label)  # noqa: E731
    size = batch_size or usual
    if chosen.name == SMOOTHING:
        attack = lambda images, label, streams: function(images, label, seed=seed, rows=streams)  # noqa: E731
        size = CERTIFIED_TOGETHER
    nothing = np.zeros(0, dtype=np.int64)
    try:
        attack(np.zeros((0, *subjects.points.images.shape), dtype=np.float32), nothing, nothing)
    except ValueError as error:
        raise ValueError(f"--attack-setting of {chosen.name}: {error}") from error
    return attack, size


def _exact(subjects: Subjects) -> Attack:
    """The closed form, after a check that the network is affine in the pixels."""
    weight, bias = affine(subjects)
    return lambda images, label, streams: linear_distance(weight, bias, images, label)


def affine(subjects: Subjects) -> tuple[Array, Array]:
    """W (K, d) and b (K,) of f(x) = W x + b: b is f(0), and row k of W the gradient of the k-th score.

    Raises ValueError where the scores of the audited images show that the network is something else.
    """
    classifier, points = subjects.classifier, subjects.points
    nothing = torch.zeros((1, *points.images.shape), device=subjects.device, requires_grad=True)
    with torch.enable_grad():
        (logits,) = classifier.evaluate(nothing)
        slopes = [torch.autograd.grad(logit, nothing, retain_graph=True, allow_unused=True)[0] for logit in logits]
    rows = [torch.zeros_like(nothing) if slope is None else slope for slope in slopes]
    weight = torch.stack([row.flatten() for row in rows]).double().cpu().numpy()
    bias = logits.detach().double().cpu().numpy()
    some = points.images.pixels(points.rows[:CPU_BATCH])
    with torch.no_grad():
        there = classifier.evaluate(torch.from_numpy(some).to(subjects.device)).double().cpu().numpy()
    expected = some.reshape(len(some), -1).astype(np.float64) @ weight.T + bias
    gaps, wanted = (values - values[:, :1] for values in (there, expected))
    worst = float(np.abs(gaps - wanted).max() / max(float(np.abs(gaps).max()), 1e-12))
    if worst > LINEARITY:
        raise ValueError(
            f"--attack exact is for linear models, expected scores W x + b; found scores that differ from it by "
            f"{100 * worst:.2g} % of their size: take --attack deepfool (an upper bound), or smoothing"
        )
    return weight, bias


class Kept:
    """``what`` says of which network the distances are; ``settings`` are those of each attack that is to be made."""

    def __init__(self, path: Path | None, what: Mapping[str, Any], settings: Mapping[str, Mapping[str, Any]]) -> None:
        self.path = path
        self.what = dict(what)
        self.settings: dict[str, Any] = {name: dict(values) for name, values in settings.items()}
        self.found: dict[str, dict[str, float]] = {name: {} for name in settings}
        self.taken = 0
        self.unsaved = 0
        self.saved_at = time.monotonic()
        if path is not None and path.exists():
            self._load(path)

    def known(self, attack: str) -> dict[str, float]:
        """Distances of the attack by the key of the image, NaN where it failed."""
        return self.found[attack]

    def add(self, attack: str, distances: Mapping[str, float]) -> None:
        """Take up new distances, and write the file now and then."""
        self.found[attack].update(distances)
        self.unsaved += len(distances)
        if time.monotonic() - self.saved_at > SECONDS:
            self.save()

    def save(self) -> None:
        """Write what is not written yet, whole or not at all."""
        if self.path is None or not self.unsaved:
            return
        header = {"format": FORMAT, "what": self.what, "settings": self.settings}
        arrays = {"header": np.frombuffer(json.dumps(header, sort_keys=True).encode(), dtype=np.uint8)}
        for name, distances in self.found.items():
            arrays[f"key_{name}"] = np.array(list(distances), dtype="U32")
            arrays[f"distance_{name}"] = np.array(list(distances.values()), dtype=np.float64)
        with written(self.path) as temporary, temporary.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        self.unsaved, self.saved_at = 0, time.monotonic()

    def interrupted(self) -> None:
        """Say on stderr what was kept."""
        if self.path is not None and self.path.exists():
            kept = sum(map(len, self.found.values()))
            print(f"{kept:,} distances are kept in {self.path}: the same command continues there", file=sys.stderr)

    def _load(self, path: Path) -> None:
        """Take up the file. Raises ValueError for a file of something else, of another network or of other settings."""
        try:
            stored = np.load(path, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                raise ValueError("one array")
            with stored:
                header = json.loads(stored["header"].tobytes())
                arrays = {name: stored[name] for name in stored.files}
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise ValueError(
                f"--checkpoint {path} holds something else than distances of this audit: give the name of a new file"
            ) from error
        if header.get("format") != FORMAT:
            raise ValueError(f"--checkpoint {path} is of another version of this program: give the name of a new file")
        self._check(path, header)
        for name, settings in header["settings"].items():
            keys, values = arrays[f"key_{name}"].tolist(), arrays[f"distance_{name}"].tolist()
            self.found[name] = dict(zip(keys, values, strict=True))
            self.settings[name] = settings
        self.taken = sum(map(len, self.found.values()))

    def _check(self, path: Path, header: Mapping[str, Any]) -> None:
        other = [name for name, value in self.what.items() if header["what"].get(name) != value]
        for name, settings in header["settings"].items():
            mine = self.settings.get(name, settings)
            other += [f"{name}.{key}" for key in mine if settings.get(key) != mine[key]]
        if other:
            raise ValueError(
                f"--checkpoint {path} was made with another {', '.join(other)}: give the name of a new file, or the "
                "arguments that it was made with"
            )
