"""The CIFAR images from the official archives or from image files, identified by their pixels.

The official archives hold *batches*: pickled dictionaries of an array of images and lists of labels and names. Loading
a pickle can run any program. We use a loader that builds only arrays, lists, dictionaries, numbers and texts and
refuses everything else, so a wrong file can do no harm.

An archive or a folder of image files holds ``{train,test}/<class>/<name>.{png,webp}``, possibly below other folders.
Images are ordered by their paths, ``train/<class>/<name>.png``, for one digest of each split,

    sha256( path_1 pixels_1 path_2 pixels_2 ... )        with paths in UTF-8 and 32 x 32 x 3 bytes of RGB

Image files with the digests of the published images are ``official``. Other files with the same number of images in
every class are ``re-encoded``, so distances measured on them differ from those of the published images.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array, Provenance
from pipeline.raw_data import image_files
from pipeline.raw_data.image_files import Held, ImageFiles, Pictures
from pipeline.raw_data.image_sets import Labelled
from pipeline.raw_data.source import Source

SIDE = 32
CHANNELS = 3
SUFFIXES = (".png", ".webp")
SPLITS = ("train", "test")
SITE = "https://www.cs.toronto.edu/~kriz"

ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}
"""The only names allowed in a batch: the constructors of an array. The first has moved within NumPy."""


@dataclass(frozen=True)
class Published:
    """A published data set: its ``archive``, and the names of its ``classes`` in the order of their numbers.

    ``batches`` are the archive's members by split; ``labels`` is the key of the labels in a batch. ``images`` is the
    number of images of a class and ``digests`` the digest of the content, by split; None if it is not recorded.
    """

    archive: str
    batches: Mapping[str, tuple[str, ...]]
    labels: str
    classes: tuple[str, ...]
    images: Mapping[str, int]
    digests: Mapping[str, str | None]

    def source(self, sha256: str, size: int) -> Source:
        """Return the archive as a file to fetch."""
        licence = "none stated; cite Krizhevsky (2009)"
        return Source(self.archive, (f"{SITE}/{self.archive}",), sha256, size, licence, f"{SITE}/cifar.html")

    def photographs(self, path: Path) -> dict[str, Array]:
        """Return the images (3, 32, 32) uint8 of an archive or a folder, sorted by their paths.

        Raises ValueError for damaged, missing, duplicate or unexpected content.
        """
        images = _of_batches(path, self) if path.name == self.archive else _of_image_files(path, self)
        found = dict(images)
        if len(found) < len(images):
            twice = next(place for n, (place, _) in enumerate(images) if place in dict(images[:n]))
            problem = f"{path} holds {twice} twice: expected each image once"
            raise InvalidInput(problem, source=path, remedy="Get the images again")
        return {place: found[place] for place in sorted(found)}

    def recognised(self, path: Path) -> tuple[Provenance, dict[str, str]] | None:
        """Return the provenance and digests of the images in an archive or a folder, or None without such files.

        Raises ValueError for incomplete or damaged files.
        """
        if path.name != self.archive and not any(_place(name) for name, _ in image_files.files(path)):
            return None
        found = digests(self.photographs(path))
        return "official" if path.name == self.archive or found == self.digests else "re-encoded", found

    def parse(self, folder: Path, filename: str | None = None) -> Labelled:
        """Return the images in ``filename``, an archive or a folder, by default the official archive.

        Image files, which :meth:`recognised` has checked, are decoded when they are needed.
        """
        path = folder / (filename or self.archive)
        if path.name == self.archive:
            return labelled(self.photographs(path), self.classes)
        named = {place: name for name in image_files.names(path) if (place := _place(name))}
        return _labelled(sorted(named), ImageFiles(path, tuple(named[place] for place in sorted(named))), self.classes)


def digests(photographs: Mapping[str, Array]) -> dict[str, str]:
    """Return the digest of each split's content."""
    found = {split: hashlib.sha256() for split in SPLITS}
    for path, image in photographs.items():
        found[path.partition("/")[0]].update(path.encode() + image.transpose(1, 2, 0).tobytes())
    return {split: digest.hexdigest() for split, digest in found.items()}


def labelled(photographs: Mapping[str, Array], classes: Sequence[str]) -> Labelled:
    """Return the images with their classes and the published split."""
    return _labelled(list(photographs), Held(np.stack(list(photographs.values()))), classes)


def _labelled(paths: Sequence[str], pictures: Pictures, classes: Sequence[str]) -> Labelled:
    """Return the images with these paths, with their classes and the published split."""
    parts = [path.split("/") for path in paths]
    code = {name: number for number, name in enumerate(classes)}
    label = np.array([code[name] for _, name, _ in parts], dtype=np.int64)
    held_out = np.array([split == "test" for split, _, _ in parts])
    return Labelled(pictures, label, "class", tuple(classes), held_out=held_out)


def _place(name: str) -> str | None:
    """Return split, class and file name of an image in an archive or a folder, or None for other files."""
    *_, split, label, file = ("", "", *PurePosixPath(name).parts)
    if split not in SPLITS or not file.endswith(SUFFIXES) or file.startswith("."):
        return None
    return f"{split}/{label}/{PurePosixPath(file).stem}.png"


def _of_image_files(path: Path, published: Published) -> list[tuple[str, Array]]:
    images = []
    folders = {f"{split}/{label}": published.images[split] for split in SPLITS for label in published.classes}
    for name, content in image_files.files(path):
        if (place := _place(name)) is None:
            continue
        try:
            image = image_files.decode(content())
        except image_files.Undecodable as fault:
            raise InvalidInput(f"{path}, {name}: {fault}", source=path, remedy="Get the images again") from fault
        folder = place.rpartition("/")[0]
        if image.shape != (CHANNELS, SIDE, SIDE) or folder not in folders:
            raise InvalidInput(
                f"{path}, {name}: expected images of {SIDE} pixels a side in the published classes, found one of "
                f"{image.shape[-1]} pixels in {folder}",
                source=path,
            )
        images.append((place, image))
    counts = Counter(place.rpartition("/")[0] for place in dict(images))
    for folder, expected in folders.items():
        if (found := counts[folder]) != expected:
            problem = f"{path}: expected {expected:,} images in {folder}, found {found:,}"
            raise InvalidInput(problem, source=path, remedy="Get the images again")
    return images


def _of_batches(path: Path, published: Published) -> list[tuple[str, Array]]:
    """Return the images of the official archive. Its checksum was verified before."""
    batches = read(path, [name for names in published.batches.values() for name in names])
    found: list[tuple[str, Array]] = []
    for split, names in published.batches.items():
        for batch in (batches[name] for name in names):
            files = zip(batch[published.labels.encode()], batch[b"filenames"], strict=True)
            places = [f"{split}/{published.classes[code]}/{file.decode()}" for code, file in files]
            found += zip(places, batch[b"data"].reshape(-1, CHANNELS, SIDE, SIDE), strict=True)
    return found


def read(path: Path, names: Sequence[str]) -> dict[str, Mapping[bytes, Any]]:
    """Read the pickled dictionaries with these names from the archive at ``path``.

    Raises ValueError for a damaged archive, a missing member, and a pickle that holds more than data.
    """
    members = image_files.contents(path, names)
    batches: dict[str, Mapping[bytes, Any]] = {}
    for name in names:
        try:
            # Python 2 pickled the batches, so their texts are bytes.
            batches[name] = _Loader(io.BytesIO(members[name]), encoding="bytes").load()
        except Exception as error:
            remedy = "Delete the archive and fetch it again"
            raise InvalidInput(f"{path}, {name}: {error}", source=path, remedy=remedy) from error
    return batches


class _Loader(pickle.Unpickler):
    """An unpickler that builds only data."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return ALLOWED[module.replace("numpy._core", "numpy.core"), name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"names {module}.{name}, which is not data, so it is not the published file"
            ) from None
