"""A user's images as pixels in [0, 1], loaded on demand, and the normalisation in front of the model.

Images come from an array, or from a folder whose files are named in the rows of a table. Normalisation is a part of the
network, so gradients and distances refer to pixels in [0, 1].
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.answers import Form, tensor_of
from fairness_audits.inputs.model import Model, no_gradient
from fairness_audits.inputs.table import Source
from fairness_audits.messages import SHOWN, check_columns, listed, nearest, reason
from fairness_audits.results.formats import plural
from fairness_audits.tables.rows import Values
from fairness_audits.values import Array

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("PNG", "JPEG")
GREY = ("1", "L", "LA")
HIGHEST = 255
UPRIGHT = 1
ON_THEIR_SIDE = (5, 6, 7, 8)
"""EXIF orientations that swap height and width."""
COLOURS = (1, 3)
COLUMNS = ("file", "filename", "file_name", "image", "path")
"""Default column names for file names."""
FORMS = "(n, c, h, w), (n, h, w, c) or (n, h, w) with 1 or 3 channels, of uint8 or of floating-point numbers in [0, 1]"
LARGEST_STD = 2.0
"""Largest standard deviation of pixels in [0, 1]."""
Shape = tuple[int, int, int]
Channels = float | Sequence[float]


class Unreadable(Exception):
    """An image that cannot be read; the text gives the reason."""


@dataclass(frozen=True)
class Images:
    """n images of one ``shape`` (c, h, w) with ``names`` (n,).

    ``raw`` returns one image, (c, h', w') float32 in [0, 1], or raises :class:`Unreadable`. ``unreadable`` are images
    known in advance to be unreadable, with reasons. ``turned`` are images rotated by their EXIF orientation.
    """

    names: tuple[str, ...]
    shape: Shape
    raw: Callable[[int], Array]
    unreadable: dict[int, str]
    turned: frozenset[int] = frozenset()

    def one(self, point: int) -> Array:
        """Return the image with this number, (c, h, w) float32 in [0, 1]. Raises Unreadable.

        Resizing is bilinear, with averaging when the image shrinks.
        """
        pixels = self.raw(point)
        if pixels.shape == self.shape:
            return pixels
        made = torch.nn.functional.interpolate(
            torch.from_numpy(pixels)[None], self.shape[1:], mode="bilinear", align_corners=False, antialias=True
        )
        return made[0].clamp(0, 1).numpy()

    def pixels(self, points: Array) -> Array:
        """Return the images with these numbers, (m, c, h, w). Raises Unreadable."""
        return np.stack([self.one(int(point)) for point in points])


def in_array(source: Source, path: str, array: Array, resize: Sequence[int] | None) -> Images:
    """Return the images in an ``array``, in the order of the table's rows.

    In an array with four axes, the second axis is the channels if its size allows, otherwise the last axis. Raises
    InvalidInput for another shape, numbers that are not pixels, and another number of rows or channels.
    """
    pixels = np.asarray(array)
    if pixels.ndim == 4 and pixels.shape[1] in COLOURS and pixels.shape[3] in COLOURS:
        raise _refused(
            path,
            f"shape {np.shape(array)} is ambiguous: the channels can be the second or the last axis",
            "Pass grey images as (n, h, w). Other images need a height and width other than 1 and 3",
        )
    if pixels.ndim == 3:
        pixels = pixels[:, None]
    elif pixels.ndim == 4 and pixels.shape[1] not in COLOURS:
        pixels = pixels.transpose(0, 3, 1, 2)
    if pixels.ndim != 4 or pixels.shape[1] not in COLOURS or not len(pixels):
        raise _refused(path, f"expected images of shape {FORMS}; found shape {np.shape(array)}")
    if pixels.dtype != np.uint8 and pixels.dtype.kind != "f":
        problem = f"expected images of uint8 or floating-point numbers, found {pixels.dtype}"
        raise _refused(path, problem, "Convert them")
    scale = np.float32(HIGHEST if pixels.dtype == np.uint8 else 1)
    if pixels.dtype == np.uint8 and pixels.max() == 1:
        problem = f"expected uint8 pixels from 0 to {HIGHEST}, found 0 and 1 only"
        raise _refused(path, problem, "Convert them to floating-point numbers")
    if pixels.dtype.kind == "f":
        low, high = float(pixels.min()), float(pixels.max())
        if not np.isfinite([low, high]).all():
            first = next(place for place, one in enumerate(pixels) if not np.isfinite(one).all())
            problem = f"image {first} (counted from 0) has pixels that are missing or infinite"
            raise _refused(path, problem, "Correct or remove these images", first)
        if not (low >= 0 and high <= 1):
            remedy = "Undo the normalisation, and pass it as mean and std"
            if low >= 0 and high <= HIGHEST:
                remedy = f"Divide them by {HIGHEST}"
            problem = f"expected floating-point pixels in [0, 1], found values from {low:g} to {high:g}"
            raise _refused(path, problem, remedy)
        if 0 < high <= 1 / HIGHEST:
            raise _refused(
                path,
                f"expected floating-point pixels in [0, 1], found values from {low:g} to {high:g}, less than one grey "
                f"level of {HIGHEST}",
                f"Multiply them by {HIGHEST} if they were divided by it twice",
            )
    if len(pixels) != len(source.table):
        raise InvalidInput(
            f"expected a row of {source.name} for each image of {path}, in the same order; found "
            f"{len(source.table):,} rows and {len(pixels):,} images",
            source=source.name,
            option="images",
        )
    height, width = resize or pixels.shape[2:]
    return Images(
        names=tuple(str(row) for row in range(len(pixels))),
        shape=(int(pixels.shape[1]), int(height), int(width)),
        raw=lambda point: np.ascontiguousarray(pixels[point], dtype=np.float32) / scale,
        unreadable={},
    )


def _refused(path: str, problem: str, remedy: str = "", row: int | None = None) -> InvalidInput:
    """Return the error for images that cannot be audited."""
    return InvalidInput(f"{path}: {problem}", source=path, option="images", row=row, remedy=remedy)


def in_folder(
    source: Source, path: Path | None, file: str | None, resize: Sequence[int] | None, channels: int | None
) -> tuple[str, Images]:
    """Return the column of file names, and the images in the order of the table's rows.

    This reads only the headers of the files. A file with an unreadable header is recorded as unreadable. Raises
    InvalidInput if no header is readable, or if sizes differ without ``resize``.
    """
    table = source.table
    if path is None or not path.is_dir():
        problem = f"there is no folder {path}; images takes a folder of PNG and JPEG files"
        raise InvalidInput(problem, source=path, option="images")
    if file is not None:
        check_columns(table, [file], "file", source.name)
    column = file or next((str(name) for name in table if str(name).lower() in COLUMNS), str(table.columns[0]))
    names = [str(value) for value in table[column]]
    files = named_files(source, column, path)
    unreadable: dict[int, str] = {}
    turned: set[int] = set()
    known: list[tuple[str, str, tuple[int, int]]] = []
    for point, name in enumerate(names):
        try:
            with _opened(files[point]) as image:
                orientation = _orientation(image)
                size = (image.height, image.width)
                known.append((name, image.mode, size[::-1] if orientation in ON_THEIR_SIDE else size))
                if orientation != UPRIGHT:
                    turned.add(point)
        except Unreadable as error:
            unreadable[point] = str(error)
    if not known:
        failures = listed([f"{names[point]} ({why})" for point, why in unreadable.items()], SHOWN)
        problem = f"none of the {len(names)} images in {path} can be read: {failures}"
        raise InvalidInput(problem, source=path, option="images", remedy="Save them again")
    first, _, (height, width) = known[0]
    if resize is not None:
        height, width = resize
    elif other := next(((name, size) for name, _, size in known if size != (height, width)), None):
        raise InvalidInput(
            f"expected images of one size, found {height} x {width} ({first}) and {other[1][0]} x {other[1][1]} "
            f"({other[0]})",
            source=path,
            option="resize",
            remedy=f"Resize all, as with resize={height},{width}; distances then refer to the resized images",
        )
    count = channels or (1 if all(mode in GREY for _, mode, _ in known) else 3)
    return column, Images(
        names=tuple(names),
        shape=(count, height, width),
        raw=lambda point: _decoded(files[point], count),
        unreadable=unreadable,
        turned=frozenset(turned),
    )


def _orientation(image: Image.Image) -> int:
    """Return the image's EXIF orientation, 1 to 8, without decoding the pixels; 1 is upright and the default."""
    from PIL import ExifTags

    if image.format == "PNG" and "exif" not in image.info:
        return UPRIGHT
    try:
        orientation = image.getexif().get(ExifTags.Base.Orientation, UPRIGHT)
    except (OSError, ValueError, SyntaxError, EOFError):
        return UPRIGHT
    return orientation if orientation in range(1, 9) else UPRIGHT


def _decoded(file: Path, channels: int) -> Array:
    from PIL import ImageOps

    with _opened(file) as image:
        try:
            turned = image if _orientation(image) == UPRIGHT else ImageOps.exif_transpose(image)
            values = np.asarray(turned.convert("L" if channels == 1 else "RGB"), dtype=np.float32) / np.float32(HIGHEST)
        except (OSError, ValueError, SyntaxError, EOFError) as error:
            raise Unreadable(f"damaged: {reason(error)}") from error
    return values[None] if channels == 1 else np.ascontiguousarray(values.transpose(2, 0, 1))


def _opened(file: Path) -> Image.Image:
    from PIL import Image, UnidentifiedImageError

    try:
        image = Image.open(file, formats=FORMATS)
    except UnidentifiedImageError as error:
        # Pillow's message for bytes of an unknown format would only repeat the path.
        raise Unreadable("neither PNG nor JPEG inside") from error
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise Unreadable(reason(error)) from error
    # Pillow cuts colours of 16 bits to 8, and its mode does not tell.
    if image.format == "PNG" and _bit_depth(file) > 8:
        raise Unreadable("16 bits per channel: save it with 8")
    return image


def _bit_depth(file: Path) -> int:
    """Return the bits per channel of a PNG file, which are the byte after its height."""
    with file.open("rb") as content:
        return content.read(25)[24]


def named_files(source: Source, column: str, path: Path) -> list[Path]:
    """Return the file of each row, named by its path below the folder.

    If no file has exactly this name, use the only file that differs from it only in Unicode form, separators,
    surrounding spaces or, if there is no such file, in case. Raises InvalidInput for names that are missing, match no
    file or several, or are repeated.
    """
    Values.of(source, column, "file", source.table[column])
    names = [str(value) for value in source.table[column]]

    def unfit(row: int, problem: str, remedy: str) -> InvalidInput:
        problem = f"{source.name}: {problem}"
        return InvalidInput(problem, source=source.name, option="file", column=column, row=row, remedy=remedy)

    found = {name: path / name for name in names if (path / name).is_file()}
    absent = [name for name in dict.fromkeys(names) if name not in found]
    existing = [file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()] if absent else []
    for form in (_plain_name, lambda name: _plain_name(name).casefold()):
        by_form: dict[str, list[str]] = {}
        for file in existing:
            by_form.setdefault(form(file), []).append(file)
        for name in absent:
            fitting = by_form.get(form(name), []) if name not in found else []
            if len(fitting) > 1:
                several = listed(fitting, SHOWN)
                problem = f"column {column!r} names {name}, which matches several files in {path}: {several}"
                raise unfit(names.index(name), problem, "Spell the name exactly like the file")
            if fitting:
                found[name] = path / fitting[0]
    if absent := [name for name in absent if name not in found]:
        near = nearest(absent[0], existing)
        problem = f"column {column!r} names {listed(absent, SHOWN)}, but {path} has no such file{near}"
        remedy = f"The column that file names holds paths relative to {path}. Correct them, or remove these rows"
        raise unfit(names.index(absent[0]), problem, remedy)
    places = [posixpath.normpath(found[name].as_posix()) for name in names]
    if repeated := [place for place, count in Counter(places).items() if count > 1]:
        first = listed([posixpath.relpath(file, path.as_posix()) for file in repeated], SHOWN)
        row = places.index(repeated[0], places.index(repeated[0]) + 1)
        raise unfit(row, f"expected one row for each image, found several for {first}", "Keep one of them")
    return [found[name] for name in names]


def _plain_name(name: str) -> str:
    """Return a path in composed Unicode form, with forward slashes and without surrounding spaces."""
    return posixpath.normpath(unicodedata.normalize("NFC", name).strip().replace("\\", "/"))


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


def normalised(
    model: Model, shape: Shape, mean: Channels, std: Channels, device: torch.device, with_gradient: bool
) -> Raw:
    """Return the model with its normalisation in front; attacks need a gradient if ``with_gradient``.

    Raises InvalidInput if the model takes no images, has no gradient, or takes another normalisation.
    """
    if model.kind == "estimator":
        raise no_gradient(model)
    if model.kind in ("onnx", "quantised") and with_gradient:
        raise no_gradient(model, "use only attack='smoothing', which needs none")
    means, stds = (tuple(np.atleast_1d(values).tolist()) for values in (mean, std))
    for name, values in (("mean", means), ("std", stds)):
        if len(values) not in (1, shape[0]):
            problem = f"{name} gives {len(values)} numbers, but the images have {plural(shape[0], 'channel')}"
            raise InvalidInput(problem, option=name, remedy="Give one number for all channels, or one for each")
    check_normalisation(means, stds)
    centre, scale = (
        torch.tensor(values, device=device, dtype=torch.float32)[:, None, None] for values in (means, stds)
    )
    channels, height, width = shape
    form = Form(
        unit="image",
        inputs=f"images of shape {shape}",
        remedy=(
            f"Its input has {plural(channels, 'channel')} of {height} x {width} pixels. For another size, set "
            f"resize; for {plural(4 - channels, 'channel')}, read a folder with channels={4 - channels}"
        ),
        precision="images are float32, so convert the model to float32",
        without_gradient="; attack='smoothing' needs no gradient",
    )

    def output(x: Tensor) -> Tensor:
        return tensor_of(model.evaluate, (x - centre) / scale, form)

    return Raw(output, device, form, means, stds)


def check_normalisation(mean: Sequence[float], std: Sequence[float]) -> None:
    """Raise InvalidInput unless these can be the means and standard deviations of pixels in [0, 1]."""
    for value in std:
        if not value > 0:
            raise InvalidInput(f"std={value:g} is not above 0", option="std")
    if min(mean) >= 0 and max(mean) <= 1 and max(std) <= LARGEST_STD:
        return
    if not (min(mean) >= 0 and max(mean) <= HIGHEST and max(std) <= HIGHEST):
        raise InvalidInput(
            f"mean={_numbers(mean)} and std={_numbers(std)} do not fit pixels in [0, 1]: expected a mean in [0, "
            f"1] and a standard deviation of at most {LARGEST_STD:g}",
            option="mean",
        )
    # The values fit pixels in [0, 1], but a std of 1 also occurs with means of pixels up to 255.
    means = [value / HIGHEST for value in mean] if max(mean) > 1 else mean
    stds = [value / HIGHEST for value in std] if max(std) > LARGEST_STD or min(std) >= 1 else std
    raise InvalidInput(
        f"mean={_numbers(mean)} and std={_numbers(std)} are for pixels from 0 to {HIGHEST}, but the audit uses "
        "pixels in [0, 1]",
        option="mean",
        remedy=f"Use mean={_numbers(means)} and std={_numbers(stds)}",
    )


def _numbers(values: Sequence[float]) -> str:
    return ",".join(f"{value:.4g}" for value in values)
