"""The settings that trainings by stochastic gradient descent share, and how one architecture departs from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from pipeline.models import networks, per_model

CHECKPOINTS = ("first", "middle", "last")
PRECISIONS = ("auto", "float32", "bfloat16")
ONE_MODEL = ("width", "input_size", "pretrained", "epochs", "learning_rate", "momentum", "batch_size", "train_points")
"""What ``per_model`` may set."""
Settings = TypeVar("Settings", bound="SgdSettings")


@dataclass(frozen=True)
class SgdSettings:
    """What is trained, and how.

    ``model``: an architecture of ``pipeline.models.networks``. ``width`` multiplies its channels, 1 as published.
    ``input_size``: side that pictures are resized to inside the network, None for their own. ``pretrained``: ImageNet
    weights where they can be had (``auto``), ``never``, or not without (``required``). ``epochs``, ``learning_rate``,
    ``momentum``, ``batch_size``. ``train_points``: at most so many training rows, the first; None for all.
    ``checkpoints``: which are kept of ``first``, ``middle`` (epoch (1 + epochs) // 2) and ``last``.

    ``precision``: ``bfloat16`` multiplies and convolves in it, ``float32``, or ``auto``: bfloat16 on a GPU made for it,
    float32 elsewhere. ``deterministic``: the same numbers to the last bit from the same machine; on a GPU at some cost,
    and an operation that has no such form there is named in a warning. ``threads`` of the CPU. ``per_model``: values
    for single architectures, each ``model.key=value``, which win over those above.
    """

    model: str
    width: float
    input_size: int | None
    pretrained: str
    epochs: int
    learning_rate: float
    momentum: float
    batch_size: int
    train_points: int | None
    checkpoints: Sequence[str]
    precision: str
    deterministic: bool
    threads: int
    per_model: Sequence[str]

    def __post_init__(self) -> None:
        for name in ("width", "epochs", "learning_rate", "threads"):
            if not getattr(self, name) > 0:
                raise ValueError(f"expected a positive method.{name}, found {getattr(self, name)!r}")
        # One image has no spread to normalise a batch by.
        if self.batch_size < 2:
            raise ValueError(f"expected method.batch_size at least 2, found {self.batch_size}")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"expected method.momentum in [0, 1), found {self.momentum}")
        for name, least in (("input_size", 1), ("train_points", 2)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"expected method.{name} null or at least {least}, found {value}")
        for name, known in (("pretrained", networks.PRETRAINED), ("precision", PRECISIONS)):
            if getattr(self, name) not in known:
                raise ValueError(f"expected method.{name} among {', '.join(known)}; found {getattr(self, name)!r}")
        if not self.checkpoints or not set(self.checkpoints) <= set(CHECKPOINTS):
            raise ValueError(
                f"expected method.checkpoints to be some of {', '.join(CHECKPOINTS)}; found {list(self.checkpoints)}"
            )
        for entry in self.per_model:
            _parsed(entry)

    def kept_epochs(self) -> tuple[int, ...]:
        """The epochs after which a checkpoint is kept, counted from 1 and rising."""
        places = {"first": 1, "middle": (1 + self.epochs) // 2, "last": self.epochs}
        return tuple(sorted({places[name] for name in self.checkpoints}))


def for_its_model(settings: Settings) -> Settings:
    """The settings with those of ``per_model`` that are for their ``model``, checked again; ``per_model`` empty."""
    entries = [_parsed(entry) for entry in settings.per_model]
    known = networks.architectures()
    if unknown := sorted({model for model, _, _ in entries} - set(known)):
        raise ValueError(f"expected method.per_model to name models among {', '.join(known)}; found {unknown}")
    special: dict[str, Any] = {key: value for model, key, value in entries if model == settings.model}
    return replace(settings, **special, per_model=())


def _parsed(entry: str) -> tuple[str, str, object]:
    """``"alexnet.input_size=224"`` as model, key and value."""
    model, key, value = per_model.entry(entry)
    if key not in ONE_MODEL:
        raise ValueError(
            f"expected method.per_model to hold entries model.key=value with a key among {', '.join(ONE_MODEL)}; "
            f"found {entry!r}"
        )
    wanted = {field.name: str(field.type) for field in fields(SgdSettings)}[key]
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    whole = numeric and value == int(value)
    fits = {"str": isinstance(value, str), "float": numeric, "int": whole, "int | None": whole or value is None}[wanted]
    if not fits:
        raise ValueError(f"method.per_model: {entry!r} needs a value that is {wanted.replace('None', 'null')}")
    return model, key, int(value) if whole and wanted != "float" else value
