"""Distances of a user's images: the attacks and their settings, computed in parts and cached.

The key of a cached distance consists of the image (its pixels), the class to leave, the model with its normalisation,
and the attack with its settings. If all of these match, the distance is read from the file. A network is identified by
its parameters, buffers and description, a file by its bytes, and a function by the caller's key.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch

from fairness_audits.attacks import Distances, Execution
from fairness_audits.attacks.distances import CPU_BATCH, affine, batch_of, misfit
from fairness_audits.attacks.linear_distance import crossing
from fairness_audits.audits.robustness_bias.distances import (
    EXACT,
    SMOOTHING,
    Attack,
    Known,
    attack_function,
    attack_on,
    exact_attack,
    find_distances,
)
from fairness_audits.audits.robustness_bias.measured import Chosen
from fairness_audits.audits.robustness_bias.subjects import Pictures
from fairness_audits.errors import InvalidInput
from fairness_audits.files import written
from fairness_audits.inputs.model import Model
from fairness_audits.inputs.table import sha256
from fairness_audits.messages import advised, listed
from fairness_audits.values import Array

OURS = ("execution", "seed", "rows", "channel_scale")
"""Arguments of the attacks that the audit sets itself."""
CERTIFIED_TOGETHER = 16
"""Number of images certified between two checks of the clock. Each image may take thousands of samples."""
LINEARITY = 1e-3
"""Largest relative difference between a linear network's margins and an affine map."""
FORMAT = 4
SECONDS = 5.0
"""Shortest time between two writes of the file. It is also written at the end."""


def chosen_attacks(names: Sequence[str], changes: Sequence[str] | Mapping[str, Any]) -> list[Chosen]:
    """Return the attacks with their settings: the functions' defaults, overridden by ``ATTACK.KEY=VALUE``.

    Raises InvalidInput if a setting does not exist, is not a number, or belongs to an attack that was not requested.
    """
    every: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(names):
        parameters = [] if name == EXACT else inspect.signature(attack_function(name)).parameters.values()
        own = [one for one in parameters if one.kind is one.KEYWORD_ONLY and one.name not in OURS]
        every[name] = {one.name: one.default for one in own}
    for text in [f"{key}={value}" for key, value in changes.items()] if isinstance(changes, Mapping) else changes:
        where, equals, value = text.partition("=")
        attack, dot, key = where.partition(".")
        if not (equals and dot):
            problem = f"expected attack_setting=ATTACK.KEY=VALUE, found {text!r}"
            raise InvalidInput(problem, option="attack_setting", remedy="An example is deepfool.steps=50")
        place = advised("attack_setting", text)
        if attack not in every:
            problem = f"{place}: {attack} is not one of the attacks of this audit, {listed(list(every))}"
            raise InvalidInput(problem, option="attack_setting", remedy="Add it to the attacks")
        if key not in every[attack]:
            remedy = f"It has: {listed(list(every[attack])) or 'none'}"
            raise InvalidInput(f"{place}: {attack} has no setting {key!r}", option="attack_setting", remedy=remedy)
        kind = type(every[attack][key])
        try:
            number = float(value)
            every[attack][key] = kind(number)
        except (ValueError, OverflowError):
            number = every[attack][key] = float("nan")
        if every[attack][key] != number:
            wanted = "a number" if kind is float else "a whole number"
            raise InvalidInput(f"{place}: expected {wanted}, found {value!r}", option="attack_setting")
    return [Chosen(name, settings) for name, settings in every.items()]


def attacked(chosen: Chosen, subjects: Pictures, cache: DistanceCache, seed: int) -> Array:
    """Return the distances (n,) of correctly classified points; NaN for other points and failed attacks.

    Distances in the ``cache`` are reused. New distances are added to it, part by part.
    """
    attack, size = _made(chosen, subjects, seed)
    # 32 hexadecimal digits identify an image and the class to leave.
    keys = np.array(
        [
            hashlib.sha256(digest + int(label).to_bytes(8, "big")).hexdigest()[:32]
            for digest, label in zip(subjects.digests, subjects.prediction, strict=True)
        ]
    )
    streams, known = np.array([int(key, 16) >> 66 for key in keys]), cache.of(chosen.name, keys)
    right = np.flatnonzero(subjects.correct)
    # An image may occur twice.
    once = np.isin(right, right[np.unique(keys[right], return_index=True)[1]])
    parts = [right[start : start + size][once[start : start + size]] for start in range(0, len(right), size)]
    try:
        find_distances(chosen.name, attack, subjects.pixels, subjects.prediction, streams, parts, known)
    finally:
        cache.save()
    distance = np.full(len(keys), np.nan)
    distance[right] = [cache.found[chosen.name][key] for key in keys[right]]
    return distance


def _made(chosen: Chosen, subjects: Pictures, seed: int) -> tuple[Attack, int]:
    """Return the attack on this network, with valid settings, and the number of images attacked at a time."""
    size = batch_of(subjects.device)
    if chosen.name == EXACT:
        return _exact(subjects), size
    how, settings = Execution(device=subjects.device, keep_adversarial=False), chosen.settings
    if chosen.name == SMOOTHING:
        settings, size = {**settings, "seed": seed}, CERTIFIED_TOGETHER
    attack = attack_on(subjects.classifier.evaluate, chosen.name, settings, how)
    nothing = np.zeros(0, dtype=np.int64)
    try:
        attack(np.zeros((0, *subjects.source.shape), dtype=np.float32), nothing, nothing)
    except ValueError as error:
        raise InvalidInput.within(f"attack_setting of {chosen.name}", error, option="attack_setting") from error
    return attack, size


def _exact(subjects: Pictures) -> Attack:
    """Return the closed form for a linear network; scores that are not affine near an image are an error."""
    evaluate = subjects.classifier.evaluate
    origin = torch.zeros((1, *subjects.source.shape), dtype=torch.float32, device=subjects.device)
    weight, bias = affine(evaluate, origin)

    def check(images: Array) -> None:
        wrong = misfit(evaluate, weight, bias, torch.from_numpy(images).to(subjects.device))
        if not wrong <= LINEARITY:
            raise InvalidInput(
                "attack='exact' needs a linear model with scores W x + b, but the scores differ from this by "
                f"{100 * wrong:.3g} % of their size",
                option="attack",
                remedy="Use attack='deepfool' (upper bounds) or attack='smoothing'",
            )

    closed_form = exact_attack(weight, bias)

    def attack(images: Array, label: Array, streams: Array) -> Distances:
        # Check both together: on the boundary itself, margins are 0 plus rounding.
        check(np.concatenate((images, crossing(weight, bias, images, label).clip(0, 1))))
        return closed_form(images, label, streams)

    check(np.random.default_rng(0).random((CPU_BATCH, *subjects.source.shape), dtype=np.float32))
    return attack


def identity_of(model: Model, key: str | None) -> str:
    """Return a digest of the model: its file, or a network's parameters, buffers and description; and of the ``key``.

    Raises InvalidInput for a function without a key, whose content is unknown.
    """
    parts = [(key or "").encode()]
    if model.file is not None and model.kind != "function":
        parts.append(sha256(model.file).encode())
    elif model.fitted is not None:
        parts.append(repr(model.fitted).encode())
        for tensor in (*model.fitted.parameters(), *model.fitted.buffers()):
            plain = tensor.detach().cpu()
            dense = plain if plain.layout == torch.strided else plain.to_dense()
            parts.append(dense.resolve_conj().reshape(-1).view(torch.uint8).numpy().tobytes())
    elif key is None:
        problem = f"the content of {model.name}, a function, is unknown, so checkpoint cannot tell it from another"
        remedy = "Name the model (checkpoint_key), and change the name whenever the model changes"
        raise InvalidInput(problem, option="checkpoint_key", remedy=remedy)
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


class DistanceCache:
    """Distances by attack and image key, NaN if an attack failed; stored in a file if there is a ``path``.

    ``what`` describes the model of the distances, ``settings`` are the settings of each requested attack.
    """

    def __init__(
        self,
        path: Path | None,
        what: Mapping[str, Any],
        settings: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self.path, self.what = path, dict(what)
        self.settings: dict[str, Any] = {name: dict(values) for name, values in settings.items()}
        self.found: dict[str, dict[str, float]] = {name: {} for name in settings}
        self.saved_at = time.monotonic()
        if path is not None and path.exists():
            self._load(path)

    def of(self, attack: str, keys: Array) -> Known:
        """Return the distances of an attack on points with these ``keys`` (n,), which join this cache when it is saved.

        They are saved every few seconds.
        """
        found = self.found[attack]
        distance, done = np.array([found.get(key, np.nan) for key in keys]), np.array([key in found for key in keys])
        self.latest = found, keys, Known(distance, done, np.zeros((), dtype=np.int64), self._save_in_time)
        return self.latest[-1]

    def _save_in_time(self) -> None:
        if time.monotonic() - self.saved_at > SECONDS:
            self.save()

    def save(self) -> None:
        """Add the latest distances, and write the file atomically if some of them are new."""
        found, keys, known = self.latest
        before = len(found)
        found |= dict(zip(keys[known.done].tolist(), known.distance[known.done].tolist(), strict=True))
        self.saved_at = time.monotonic()
        if self.path is None or len(found) == before:
            return
        header = {"format": FORMAT, "what": self.what, "settings": self.settings}
        arrays = {"header": np.frombuffer(json.dumps(header, sort_keys=True).encode(), dtype=np.uint8)}
        for name, distances in self.found.items():
            arrays[f"key_{name}"] = np.array(list(distances), dtype="U32")
            arrays[f"distance_{name}"] = np.array(list(distances.values()), dtype=np.float64)
        with written(self.path) as temporary, temporary.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    def interrupted(self) -> None:
        if self.path is not None and self.path.exists():
            count = sum(map(len, self.found.values()))
            print(
                f"{count:,} distances are saved in {self.path}; the same command continues from there", file=sys.stderr
            )

    def _load(self, path: Path) -> None:
        """Load the file. Raises InvalidInput if its content, network or settings are not those of this audit."""
        new = "Name a new file"

        def refused(problem: str, remedy: str = new) -> InvalidInput:
            place = advised("checkpoint", path)
            return InvalidInput(f"{place} {problem}", source=path, option="checkpoint", remedy=remedy)

        try:
            stored = np.load(path, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                raise ValueError("one array")
            with stored:
                header = json.loads(stored["header"].tobytes())
                arrays = {name: stored[name] for name in stored.files}
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise refused("does not hold distances of a robustness audit") from error
        if header.get("format") != FORMAT:
            raise refused("was written by another version of this program")
        other = [name for name, value in self.what.items() if header["what"].get(name) != value]
        for name, settings in header["settings"].items():
            mine = self.settings.get(name, settings)
            other += [f"{name}.{key}" for key in mine if settings.get(key) != mine[key]]
        if other:
            raise refused(
                f"was made with other values of {', '.join(other)}", f"{new}, or repeat the original arguments"
            )
        for name, settings in header["settings"].items():
            keys, values = arrays[f"key_{name}"].tolist(), arrays[f"distance_{name}"].tolist()
            self.found[name] = dict(zip(keys, values, strict=True))
            self.settings[name] = settings
