"""CIFAR-10 and CIFAR-100: official batches or image files, recognised by content, and the same arrays from either."""

import json
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fairness_audits.seeds import generators
from fairness_audits.values import ImageDataset
from pipeline.datasets import cifar10, cifar100
from pipeline.raw_data import cifar
from pipeline.raw_data.source import fingerprint
from pipeline.stages import prepare
from tests.datasets.builders import staged
from tests.errors import invalid
from tests.files import Harm, encoded, packed, python2

Archive = Callable[..., Path]
CONFIG: dict[str, Any] = {
    "image_size": 32, "train_points": None, "test_points": None, "mean": [0.5] * 3, "std": [0.5] * 3,
}  # fmt: skip
NAMES = [(split, name, f"{name}_s_{n}.png") for split in cifar.SPLITS for name in cifar10.CLASSES for n in (7, 2)]
"""Two images of each class in each split."""


def pixels(number: int) -> np.ndarray:
    """A photograph of its own for each number, (32, 32, 3)."""
    return np.random.default_rng(number).integers(0, 256, (32, 32, 3), dtype=np.uint8)


def image_files(suffix: str = ".png", top: str = "", **settings: Any) -> dict[str, bytes]:
    kind = {".png": "PNG", ".webp": "WEBP"}[suffix]
    return {
        f"{top}{split}/{name}/{Path(file).stem}{suffix}": encoded(pixels(n), kind, **settings)
        for n, (split, name, file) in enumerate(NAMES)
    }


@pytest.fixture
def batches() -> dict[str, bytes]:
    """The same images as batches, the training images in five parts and not by class."""
    published = cifar10.PUBLISHED
    places = {split: [n for n, place in enumerate(NAMES) if place[0] == split] for split in cifar.SPLITS}
    files = {}
    for split, names in published.batches.items():
        for part, name in enumerate(names):
            own = places[split][part :: len(names)]
            files[name] = python2(
                {
                    "data": np.stack([pixels(n).transpose(2, 0, 1).reshape(-1) for n in own]),
                    "labels": [cifar10.CLASSES.index(NAMES[n][1]) for n in own],
                    "filenames": [NAMES[n][2] for n in own],
                }
            )
    return files


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, batches: dict[str, bytes]) -> Path:
    """The batches as an archive; what is published of CIFAR-10 is set to their content."""
    path = packed(tmp_path / "official" / cifar10.PUBLISHED.archive, batches)
    digests = cifar.digests(cifar10.PUBLISHED.photographs(path))
    published = replace(cifar10.PUBLISHED, images={"train": 2, "test": 2}, digests=digests)
    monkeypatch.setattr(cifar10, "PUBLISHED", published)
    monkeypatch.setattr(cifar10, "recognised", published.recognised)
    monkeypatch.setattr(cifar10, "parse", published.parse)
    return path


def prepared(path: Path, size: int = 32) -> ImageDataset:
    rows = cifar10.parse(path.parent, path.name)
    config = cifar10.Config(**CONFIG | {"image_size": size})
    return cifar10.prepare(rows, config, generators("t", repetitions=1), "official")


WAYS = [
    ("a.tar", ".webp", ""), ("a.tar.gz", ".png", "cifar/"), ("a.zip", ".png", ""), ("folder", ".webp", "x/y/"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "suffix", "top"), WAYS)
def test_the_same_images_are_official_in_any_file_and_give_the_same_arrays(
    small: Path, archive: Archive, name: str, suffix: str, top: str
) -> None:
    lossless = {"lossless": True, "exact": True} if suffix == ".webp" else {}
    files = {"labels.txt": b"cat", **image_files(suffix, top, **lossless)}
    path = archive(dict(reversed(files.items())), name)
    assert cifar10.recognised(path) == cifar10.recognised(small) == ("official", cifar10.PUBLISHED.digests)
    for size in (20, 32, 48):
        found, official = prepared(path, size), prepared(small, size)
        np.testing.assert_array_equal(found.images, official.images)
        np.testing.assert_array_equal(found.label, official.label)
    assert (found.train.shape, found.test.shape) == ((1, 20), (1, 20))
    # By class and name, whatever the order in the file.
    first = cifar10.PUBLISHED.photographs(path)
    assert list(first)[:2] == ["test/airplane/airplane_s_2.png", "test/airplane/airplane_s_7.png"]
    np.testing.assert_array_equal(first["test/airplane/airplane_s_2.png"], pixels(21).transpose(2, 0, 1))


@pytest.mark.parametrize("change", ["re-encoded", "one pixel", "exchanged names"])
def test_other_images_of_the_published_classes_count_as_re_encoded(small: Path, archive: Archive, change: str) -> None:
    files = image_files()
    name, other = list(files)[:2]
    if change == "re-encoded":
        files = image_files(".webp", quality=50)
    elif change == "one pixel":
        image = pixels(0)
        image[3, 4, 1] ^= 1
        files[name] = encoded(image, "PNG")
    else:
        files[name], files[other] = files[other], files[name]
    recognised = cifar10.recognised(archive(files))
    assert recognised is not None
    assert recognised[0] == "re-encoded"
    assert recognised[1] != cifar10.PUBLISHED.digests
    assert (recognised[1]["test"] == cifar10.PUBLISHED.digests["test"]) == (change != "re-encoded")


def test_files_that_hold_no_such_images_are_not_recognised(small: Path, archive: Archive) -> None:
    for files in ({}, {"train/cat/0.jpg": b""}, {"cat/0.png": b""}, {"train/cat/._0.png": b""}):
        assert cifar10.recognised(archive({"readme": b"", **files})) is None


WRONG: dict[str, Callable[[dict[str, bytes], str], Any]] = {
    "gone": lambda files, name: files.pop(name),
    "broken": lambda files, name: files.update({name: b"text"}),
    "large": lambda files, name: files.update({name: encoded(np.zeros((64, 64, 3), np.uint8), "PNG")}),
    "unicorn": lambda files, name: files.update({"train/unicorn/0.png": files[name]}),
    "twice": lambda files, name: files.update({f"x/{name}": files[name]}),
}


@pytest.mark.parametrize("what", WRONG)
def test_images_that_are_missing_damaged_or_odd_are_named(small: Path, archive: Archive, what: str) -> None:
    files = image_files()
    WRONG[what](files, next(iter(files)))
    with invalid(source="a.tar"):
        cifar10.recognised(archive(files))


def stages(folder: Path) -> tuple[dict[str, Any], bytes]:
    """The manifest and the prepared bytes of CIFAR-10 with ``folder`` / raw as its raw folder."""
    (folder / "raw" / "manifest.json").unlink(missing_ok=True)
    output = staged(folder / "raw", {"name": "cifar10", "kind": "cifar10", **CONFIG}, 1, "official")
    return json.loads(output.with_name("manifest.json").read_text()), output.read_bytes()


def test_a_copy_is_found_beside_the_official_archive_and_prepared_to_the_same_bytes(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,) = cifar10.SOURCES
    sha256, size = fingerprint(small)
    monkeypatch.setattr(cifar10, "SOURCES", (replace(source, sha256=sha256, size=size, urls=()),))
    mirror = tmp_path / "mirror"
    monkeypatch.setenv("DATA_MIRROR", str(mirror))
    places = {
        "raw archive": lambda: packed(tmp_path / "raw/cifar10/pictures.zip", image_files()),
        "raw folder": lambda: packed(tmp_path / "raw/cifar10", image_files()),
        "mirror": lambda: packed(mirror / "CIFAR-10_images.tar", image_files()),
        "mirror's folder": lambda: packed(mirror / "cifar10/any", image_files()),
        "official": lambda: shutil.copy(small, tmp_path / "raw/cifar10"),
    }
    found = {}
    for place, put in places.items():
        for folder in (tmp_path / "raw", mirror):
            shutil.rmtree(folder, ignore_errors=True)
            (folder / "cifar10").mkdir(parents=True)
        # Other sets and other kinds of files are passed over.
        packed(mirror / "cifar100.tar", image_files())
        packed(mirror / "cifar10-jpeg.tar", {"train/cat/0.jpg": b""})
        path = put()
        manifest, found[place] = stages(tmp_path)
        assert (manifest["origin"], manifest["reason"]) == ("official", None)
        assert manifest["content"] == cifar10.PUBLISHED.digests
        (file,) = manifest["files"]
        if place != "official":
            assert (file["path"], file["sha256"]) == (str(path), fingerprint(Path(path))[0])
    assert len(set(found.values())) == 1
    # What changed since it was fetched is refused, in a folder too.
    shutil.rmtree(tmp_path / "raw")
    folder = packed(mirror / "cifar10/any", image_files())
    manifest, _ = stages(tmp_path)
    (folder / "train/cat/cat_s_7.png").write_bytes(b"1")
    with invalid(source="any"):
        prepare.prepared({"name": "cifar10", **CONFIG}, 1, manifest)


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_pickle_that_would_run_something_is_refused_before_it_does(tmp_path: Path, protocol: int) -> None:
    evidence = tmp_path / "evidence"
    harm = pickle.dumps({b"data": Harm(evidence)}, protocol=protocol)
    with invalid(source="a.tar.gz"):
        cifar.read(packed(tmp_path / "a.tar.gz", {"f/b": harm}), ["f/b"])
    assert not evidence.exists()
    pickle.loads(harm)
    assert evidence.exists()


@pytest.mark.parametrize(
    ("content", "remedy"),
    [(b"\x80\x02}", "Delete the archive and fetch it again"), (None, "Delete it and fetch it again")],
)
def test_a_damaged_or_missing_batch_is_named(archive: Archive, content: bytes | None, remedy: str) -> None:
    with invalid(source="a.tar", remedy=remedy):
        cifar.read(archive({"other": b""} if content is None else {"f/b": content}), ["f/b"])


@pytest.mark.parametrize(("rows", "name", "count"), [("fine", "class", 100), ("coarse", "superclass", 20)])
def test_either_labels_of_the_same_images(tmp_path: Path, rows: str, name: str, count: int) -> None:
    images = np.repeat(np.arange(100, dtype=np.uint8), 3 * 32 * 32).reshape(-1, 3, 32, 32)
    places = {f"{split}/{cifar100.CLASSES[n]}/0.png": images[n] for split in cifar.SPLITS for n in range(100)}
    photographs = cifar.labelled(places, cifar100.CLASSES)
    config = cifar100.Config(**CONFIG, rows=rows)
    data = cifar100.prepare(photographs, config, generators("t", repetitions=1), "official")
    assert (data.label_name, list(data.partitions), len(data.classes)) == (name, [name], count)
    fine = data.images[:, 1, 3, 3].astype(int)
    for code, number in zip(data.label, fine, strict=True):
        own = cifar100.CLASSES[number]
        assert data.classes[code] == own if rows == "fine" else own in cifar100.SUPERCLASSES[data.classes[code]]
    np.testing.assert_array_equal(np.bincount(data.label[data.test[0]]), [100 // count] * count)


def test_each_of_100_classes_is_in_one_of_20_superclasses_of_five() -> None:
    assert len(cifar100.CLASSES) == len(set(cifar100.CLASSES)) == 100
    assert [len(classes) for classes in cifar100.SUPERCLASSES.values()] == [5] * 20
    assert list(cifar100.SUPERCLASSES) == sorted(cifar100.SUPERCLASSES)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "means"),
    [(cifar10, [125.30691805, 122.95039414, 113.86538318]), (cifar100, [129.30416561, 124.0699627, 112.43405006])],
)
def test_the_images_at_hand(module: ModuleType, means: list[float], at_hand: Callable[[str], Path]) -> None:
    kind = module.__name__.rpartition(".")[2]
    path = at_hand(kind)
    found = module.PUBLISHED.photographs(path)
    assert cifar.digests(found)["test"] == module.PUBLISHED.digests["test"]
    rows = cifar.labelled(found, module.CLASSES)
    assert rows.held_out is not None
    for part, count in ((~rows.held_out, 50_000), (rows.held_out, 10_000)):
        np.testing.assert_array_equal(np.bincount(rows.label[part]), count // len(module.CLASSES))
    train = np.stack(list(found.values()))[~rows.held_out]
    exact = path.name == module.PUBLISHED.archive or cifar.digests(found) == module.PUBLISHED.digests
    np.testing.assert_allclose(train.mean(axis=(0, 2, 3)), means, atol=5e-9 if exact else 0.2)
