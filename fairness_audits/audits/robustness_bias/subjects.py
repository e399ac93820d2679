"""The audited images, with their classes and groups, and the network's predictions for them.

Normalisation is a part of the network, so gradients and distances refer to pixels in [0, 1].
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fairness_audits.audits.robustness_bias.images import HIGHEST, Images, Shape, Unreadable, in_array, in_folder
from fairness_audits.audits.robustness_bias.measures import Partition
from fairness_audits.audits.robustness_bias.settings import Settings
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.identity import Opaque, fingerprint
from fairness_audits.inputs.model import NETWORKS, Computing, Model, no_gradient
from fairness_audits.inputs.probe import Form, Scores, check_alone, check_finite, check_gradient, read, tensor_of
from fairness_audits.inputs.table import Source, class_numbers, sha256
from fairness_audits.messages import SHOWN, check_columns, listed
from fairness_audits.progress import track
from fairness_audits.results.formats import plural
from fairness_audits.sampling import stratified_order
from fairness_audits.seeds import generators
from fairness_audits.tables.levels import in_order, level_name
from fairness_audits.values import Array

FEW_LEVELS = 20
"""Largest number of levels of a column that is compared by default."""
MOST_LEVELS = 1000
WHOLE = (*NETWORKS, ".onnx")
"""Formats of files that contain the whole model."""
LOCATION = re.compile(rb"\n\x08location\x12([\x01-\x7f])(.{1,127})", re.DOTALL)
"""Length and name of an external weight file in an ONNX program."""
LARGEST_STD = 2.0
"""Largest standard deviation of pixels in [0, 1]."""
TOGETHER = 128
"""Number of images classified together."""


@dataclass(frozen=True)
class Points:
    """The audited ``rows`` (n,) of the table: row i holds the i-th image, with true class ``label`` (n,) or None.

    ``partitions`` are partitions of these n points. ``column`` is the column of file names.
    """

    images: Images
    rows: Array
    label: Array | None
    partitions: tuple[Partition, ...]
    column: str | None = None

    @property
    def names(self) -> list[str]:
        """Return the names of the audited images."""
        return [self.images.names[row] for row in self.rows]

    def only(self, chosen: Array) -> Points:
        """Return the points where ``chosen`` (n,) is true."""
        return replace(
            self,
            rows=self.rows[chosen],
            label=None if self.label is None else self.label[chosen],
            partitions=tuple(Partition(one.name, one.levels, one.codes[chosen]) for one in self.partitions),
        )


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
    partitions = tuple(partition_of(table[name]) for name in _chosen(source, options, column))
    everyone = Points(images, np.arange(len(table)), label, partitions, column)
    everyone = everyone.only(~np.isin(everyone.rows, list(images.unreadable)))
    n = len(everyone.rows)
    if options.points is None:
        return everyone
    if options.points > n:
        problem = f"--points asks for {options.points:,} images, but there are {n:,}"
        raise InvalidInput(problem, option="points", remedy="Leave it out to audit all of them")
    # Sample so that the shares of classes and groups are preserved.
    traits = [one.codes for one in everyone.partitions] + ([] if everyone.label is None else [everyone.label])
    _, cells = np.unique(np.stack(traits, axis=1), axis=0, return_inverse=True)
    (rng,) = generators("audit", "robustness", "points", str(options.seed), repetitions=1)
    return everyone.only(np.isin(np.arange(n), stratified_order(cells.ravel(), rng)[: options.points]))


def _chosen(source: Source, options: Settings, file: str | None) -> list[str]:
    """Return the columns to compare.

    Raises InvalidInput if a named column does not exist, or if a column has one level or too many.
    """
    table, path, most = source.table, source.name, MOST_LEVELS if options.group else FEW_LEVELS
    check_columns(table, options.group, "--group", path)
    if file in options.group:
        problem = f"--group names {file!r}, the column of file names"
        raise InvalidInput(problem, source=path, option="group", column=file, remedy="Name a column of groups")
    names = list(dict.fromkeys(options.group)) or [name for name in table if name not in (file, options.label)]
    if not names:
        remedy = "Add a column of groups, or name one with --group"
        raise InvalidInput(f"{path}: there is no column to compare by", source=path, option="group", remedy=remedy)
    for name in names:
        levels = table[name].nunique()
        if not 2 <= levels <= most:
            raise InvalidInput(
                f"{path}: expected 2 to {most:,} levels in every column that is compared, found {levels:,} in {name!r}",
                source=path,
                option="group",
                column=name,
                remedy="Name others with --group, or sort its values into classes",
            )
    return names


def partition_of(column: pd.Series) -> Partition:
    """Return the partition of all rows by a column; a missing value is an unknown level."""
    texts = column.map(level_name, na_action="ignore")
    levels = in_order(texts.dropna())
    codes = pd.Categorical(texts, categories=levels).codes.astype(np.int64)
    return Partition(str(column.name), tuple(levels), codes)


def check_sizes(partitions: Sequence[Partition], least: int) -> None:
    """Raise InvalidInput if a level has fewer than ``least`` audited images."""
    for partition in partitions:
        sizes = np.bincount(partition.codes[partition.codes >= 0], minlength=len(partition))
        if small := [f"{name} ({size})" for name, size in zip(partition.levels, sizes, strict=True) if size < least]:
            raise InvalidInput(
                f"expected at least {least} audited images in every group, found fewer in {partition.name}: "
                f"{listed(small, SHOWN)}",
                option="min_group",
                column=partition.name,
                remedy="Audit more images, merge these levels or empty their cells (unknown levels are left out), "
                "compare other columns with --group, or lower --min-group",
            )


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
class Subjects:
    """The n readable ``points``, with the ``classifier`` tried on them and digests of their pixels.

    ``digests`` (n,) identify the pixels. ``unreadable`` names the excluded images, with reasons.
    """

    points: Points
    classifier: Scores
    device: torch.device
    digests: tuple[bytes, ...]
    unreadable: dict[str, str]

    @property
    def prediction(self) -> Array:
        """Return the predicted class of each point, (n,)."""
        return self.classifier.prediction

    @property
    def classes(self) -> int:
        """Return the number of classes of the network."""
        return self.classifier.trial.shape[1]

    def pixels(self, points: Array) -> Array:
        """Return the images of these points, (m, c, h, w) float32 in [0, 1]."""
        images, rows = self.points.images, self.points.rows[points]
        return images.pixels(rows) if len(rows) else np.zeros((0, *images.shape), dtype=np.float32)

    @property
    def correct(self) -> Array:
        """Return which points are classified correctly, (n,); all points if there are no true classes."""
        return self.prediction == (self.prediction if self.points.label is None else self.points.label)


def normalised(model: Model, options: Settings, shape: Shape, with_gradient: bool) -> Raw:
    """Return the model with its normalisation in front; attacks need a gradient if ``with_gradient``.

    Raises InvalidInput if the model takes no images, has no gradient, or takes another normalisation.
    """
    if model.kind == "estimator":
        raise no_gradient(model)
    if model.kind in ("onnx", "quantised") and with_gradient:
        raise no_gradient(model, "use --attack=smoothing alone, which needs none")
    device = Computing(options.device, "float32").device
    mean, std = (tuple(np.atleast_1d(values).tolist()) for values in (options.mean, options.std))
    for name, values in (("mean", mean), ("std", std)):
        if len(values) not in (1, shape[0]):
            problem = f"--{name} gives {len(values)} numbers, but the images have {plural(shape[0], 'channel')}"
            raise InvalidInput(problem, option=name, remedy="Give one for all, or one for each")
    check_normalisation(mean, std)
    centre, scale = (torch.tensor(values, device=device, dtype=torch.float32)[:, None, None] for values in (mean, std))
    channels, height, width = shape
    form = Form(
        unit="image",
        given=f"images of shape {shape}",
        remedy=f"It was given {plural(channels, 'channel')} of {height} x {width} pixels: if it takes images "
        f"of another size, say --resize=H,W; if it takes {plural(4 - channels, 'channel')}, give "
        f"--channels={4 - channels}",
        precision="images are float32: let the model compute in it",
        without_gradient="; --attack=smoothing needs no gradient",
    )

    def output(x: Tensor) -> Tensor:
        return tensor_of(model.evaluate, (x - centre) / scale, form)

    return Raw(output, device, form, mean, std)


def identity(model: Model) -> str:
    """Return an identifier of the model: its file if this contains the whole model, otherwise its computation.

    Raises InvalidInput if part of the computation cannot be identified.
    """
    if model.file is not None and model.file.suffix in WHOLE:
        return " ".join(map(sha256, (model.file, *weight_files(model.file))))
    try:
        return fingerprint(model.evaluate)
    except Opaque as error:
        raise InvalidInput(
            f"the checkpoint cannot tell this model from another: {error}",
            option="checkpoint",
            remedy="Leave --checkpoint out, or give the model as a torch network or as a file that holds all of it "
            "(.pt, .pt2, .onnx)",
        ) from error


def weight_files(file: Path) -> list[Path]:
    """Return the external weight files of an ONNX program."""
    if file.suffix != ".onnx":
        return []
    places = {found[1][: found[0][0]].decode(errors="replace") for found in LOCATION.findall(file.read_bytes())}
    return [path for place in sorted(places) if (path := file.parent / place).is_file()]


def check_normalisation(mean: Sequence[float], std: Sequence[float]) -> None:
    """Raise InvalidInput unless these can be the means and standard deviations of pixels in [0, 1]."""
    for value in std:
        if not value > 0:
            raise InvalidInput(f"expected --std above 0, found {value:g}", option="std")
    if min(mean) >= 0 and max(mean) <= 1 and max(std) <= LARGEST_STD:
        return
    if not (min(mean) >= 0 and max(mean) <= HIGHEST and max(std) <= HIGHEST):
        raise InvalidInput(
            f"expected --mean in [0, 1] and --std of at most {LARGEST_STD:g}, as of pixels in [0, 1]; found --mean="
            f"{_numbers(mean)} and --std={_numbers(std)}",
            option="mean",
        )
    # The values fit pixels in [0, 1], but a std of 1 also occurs with means of pixels up to 255.
    means = [value / HIGHEST for value in mean] if max(mean) > 1 else mean
    stds = [value / HIGHEST for value in std] if max(std) > LARGEST_STD or min(std) >= 1 else std
    raise InvalidInput(
        f"--mean={_numbers(mean)} and --std={_numbers(std)} are of pixels from 0 to {HIGHEST}, but the model gets "
        "pixels in [0, 1]",
        option="mean",
        remedy=f"Give --mean={_numbers(means)} --std={_numbers(stds)}",
    )


def _numbers(values: Sequence[float]) -> str:
    return ",".join(f"{value:.4g}" for value in values)


def classified(points: Points, raw: Raw, kind: Any, with_gradient: bool) -> Subjects:
    """Read, classify and identify all points; attacks need a gradient if ``with_gradient``.

    Raises InvalidInput if the network fails or no image can be read.
    """
    n = len(points.rows)
    outputs: list[Tensor] = []
    readable = np.ones(n, dtype=bool)
    digests: list[bytes] = []
    reasons = {points.images.names[row]: why for row, why in points.images.unreadable.items()}
    first: Tensor | None = None
    parts = [np.arange(start, min(start + TOGETHER, n)) for start in range(0, n, TOGETHER)]
    for part in track("reading and classifying", parts):
        pixels = []
        for point in part:
            try:
                pixels.append(points.images.one(int(points.rows[point])))
            except Unreadable as error:
                readable[point] = False
                reasons[points.images.names[points.rows[point]]] = str(error)
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
            f"none of the {n:,} audited images can be read: "
            f"{listed([f'{name} ({why})' for name, why in reasons.items()], SHOWN)}",
            option="images",
            remedy="Write them again",
        )
    some = points.only(readable)
    output = torch.cat(outputs)
    check_finite(output.numpy(), some.names, raw.form)
    classifier = read(output, raw.output, kind, finite=True)
    if with_gradient:
        check_gradient(classifier.evaluate, [first], raw.form)
    return Subjects(some, classifier, raw.device, tuple(digests), reasons)
