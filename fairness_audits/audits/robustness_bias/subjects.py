"""The audited images, with their classes and groups, and the network's predictions for them.

Normalisation is a part of the network, so gradients and distances refer to pixels in [0, 1].
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairness_audits.audits.robustness_bias.images import HIGHEST, Images, Shape, Unreadable, in_array, in_folder
from fairness_audits.audits.robustness_bias.points import Points, Subjects, compared, partition_of, sampled
from fairness_audits.audits.robustness_bias.settings import Settings
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.answers import Form, check_alone, check_finite, tensor_of
from fairness_audits.inputs.model import Model, no_gradient
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.probe import Scores, check_gradient, read
from fairness_audits.inputs.table import Source, class_numbers
from fairness_audits.messages import SHOWN, check_columns, listed
from fairness_audits.progress import track
from fairness_audits.results.formats import plural
from fairness_audits.values import Array

LARGEST_STD = 2.0
"""Largest standard deviation of pixels in [0, 1]."""
TOGETHER = 128
"""Number of images classified together."""


def read_points(source: Source, options: Settings, array: Array | None = None) -> Points:
    """Return the audited images, from an ``array`` or from the folder in the options.

    Raises InvalidInput for everything about the images and the table that the user can correct.
    """
    table, column = source.table, None
    if options.label is not None:
        check_columns(table, [options.label], "--label", source.name)
    if array is None:
        column, images = in_folder(source, options)
    else:
        images = in_array(source, options, array)
    label = None if options.label is None else class_numbers(source, options.label, options.classes)
    partitions = tuple(partition_of(table[name]) for name in compared(source, options, column))
    everyone = Points(images, np.arange(len(table)), label, partitions, column)
    return sampled(everyone.only(~np.isin(everyone.rows, list(images.unreadable))), options)


@dataclass(frozen=True)
class Raw:
    """The model with its normalisation: ``output`` maps pixels (m, c, h, w) to the model's output.

    ``mean`` and ``std`` are one number for each channel, or one for all.
    """

    output: Callable[[Tensor], Tensor]
    device: torch.device
    form: Form
    mean: tuple[float, ...]
    std: tuple[float, ...]


@dataclass(frozen=True)
class Pictures(Subjects):
    """Subjects that are images, all of them readable, and the network that classifies them.

    ``digests`` (n,) identify the pixels. ``unreadable`` names the excluded images, with reasons.
    """

    classifier: Scores
    device: torch.device
    digests: tuple[bytes, ...]
    unreadable: dict[str, str]

    @property
    def shape(self) -> Shape:
        """Return the shape (c, h, w) of the images."""
        return self.source.shape

    @property
    def source(self) -> Images:
        """Return the images of all rows."""
        assert self.points.images is not None
        return self.points.images

    def pixels(self, points: Array) -> Array:
        """Return the images of these points, (m, c, h, w) float32 in [0, 1]."""
        images, rows = self.source, self.points.rows[points]
        return images.pixels(rows) if len(rows) else np.zeros((0, *images.shape), dtype=np.float32)


def normalised(model: Model, options: Settings, shape: Shape, with_gradient: bool) -> Raw:
    """Return the model with its normalisation in front; attacks need a gradient if ``with_gradient``.

    Raises InvalidInput if the model takes no images, has no gradient, or takes another normalisation.
    """
    if model.kind == "estimator":
        raise no_gradient(model)
    if model.kind in ("onnx", "quantised") and with_gradient:
        raise no_gradient(model, "use only --attack=smoothing, which needs none")
    device = Computing(options.device, "float32").device
    mean, std = (tuple(np.atleast_1d(values).tolist()) for values in (options.mean, options.std))
    for name, values in (("mean", mean), ("std", std)):
        if len(values) not in (1, shape[0]):
            problem = f"--{name} gives {len(values)} numbers, but the images have {plural(shape[0], 'channel')}"
            raise InvalidInput(problem, option=name, remedy="Pass one number for all channels, or one for each")
    check_normalisation(mean, std)
    centre, scale = (torch.tensor(values, device=device, dtype=torch.float32)[:, None, None] for values in (mean, std))
    channels, height, width = shape
    form = Form(
        unit="image",
        inputs=f"images of shape {shape}",
        remedy=(
            f"Its input has {plural(channels, 'channel')} of {height} x {width} pixels. For another size, use "
            f"--resize=H,W; for {plural(4 - channels, 'channel')}, use --channels={4 - channels}"
        ),
        precision="images are float32, so convert the model to float32",
        without_gradient="; --attack=smoothing needs no gradient",
    )

    def output(x: Tensor) -> Tensor:
        return tensor_of(model.evaluate, (x - centre) / scale, form)

    return Raw(output, device, form, mean, std)


def check_normalisation(mean: Sequence[float], std: Sequence[float]) -> None:
    """Raise InvalidInput unless these can be the means and standard deviations of pixels in [0, 1]."""
    for value in std:
        if not value > 0:
            raise InvalidInput(f"--std={value:g} is not above 0", option="std")
    if min(mean) >= 0 and max(mean) <= 1 and max(std) <= LARGEST_STD:
        return
    if not (min(mean) >= 0 and max(mean) <= HIGHEST and max(std) <= HIGHEST):
        raise InvalidInput(
            f"--mean={_numbers(mean)} and --std={_numbers(std)} do not fit pixels in [0, 1]: expected a mean in [0, "
            f"1] and a standard deviation of at most {LARGEST_STD:g}",
            option="mean",
        )
    # The values fit pixels in [0, 1], but a std of 1 also occurs with means of pixels up to 255.
    means = [value / HIGHEST for value in mean] if max(mean) > 1 else mean
    stds = [value / HIGHEST for value in std] if max(std) > LARGEST_STD or min(std) >= 1 else std
    raise InvalidInput(
        f"--mean={_numbers(mean)} and --std={_numbers(std)} are for pixels from 0 to {HIGHEST}, but the audit uses "
        "pixels in [0, 1]",
        option="mean",
        remedy=f"Use --mean={_numbers(means)} --std={_numbers(stds)}",
    )


def _numbers(values: Sequence[float]) -> str:
    return ",".join(f"{value:.4g}" for value in values)


def classified(points: Points, raw: Raw, kind: Any, with_gradient: bool) -> Pictures:
    """Read, classify and identify all points; attacks need a gradient if ``with_gradient``.

    Raises InvalidInput if the network fails or no image can be read.
    """
    n, images = len(points.rows), points.images
    assert images is not None
    outputs: list[Tensor] = []
    readable = np.ones(n, dtype=bool)
    digests: list[bytes] = []
    reasons = {images.names[row]: why for row, why in images.unreadable.items()}
    first: Tensor | None = None
    parts = [np.arange(start, min(start + TOGETHER, n)) for start in range(0, n, TOGETHER)]
    for part in track("reading and classifying", parts):
        pixels = []
        for point in part:
            try:
                pixels.append(images.one(int(points.rows[point])))
            except Unreadable as error:
                readable[point] = False
                reasons[images.names[points.rows[point]]] = str(error)
        if not pixels:
            continue
        digests.extend(hashlib.sha256(one.tobytes()).digest() for one in pixels)
        x = torch.from_numpy(np.stack(pixels)).to(raw.device)
        with torch.no_grad():
            outputs.append(raw.output(x).cpu())
            if first is None:
                first = x
                check_alone(lambda some: raw.output(some).cpu().numpy(), x, outputs[0].numpy(), raw.form)
    if first is None:
        raise InvalidInput(
            f"none of the {n:,} audited images could be read: "
            f"{listed([f'{name} ({why})' for name, why in reasons.items()], SHOWN)}",
            option="images",
            remedy="Save them again",
        )
    some = points.only(readable)
    output = torch.cat(outputs)
    check_finite(output.numpy(), some.names, raw.form)
    classifier = read(output, raw.output, kind, finite=True)
    if with_gradient:
        check_gradient(classifier.evaluate, [first], raw.form)
    return Pictures(some, classifier, raw.device, tuple(digests), reasons)
