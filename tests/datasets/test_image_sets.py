"""What image datasets share: settings, stratified subsets that grow, nothing dropped in silence; and the digits."""

import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairness_audits.sampling import stratified_order
from fairness_audits.values import Array, ImageDataset
from pipeline.datasets import digits
from pipeline.raw_data import image_files, image_sets
from pipeline.raw_data.image_files import Decoded, Held, ImageFiles
from tests.datasets.builders import prepared
from tests.errors import invalid
from tests.files import encoded, jpeg

CONFIG: dict[str, Any] = {"image_size": 4, "train_points": None, "test_points": None, "mean": [0.5], "std": [0.5]}


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(0, 10))
@settings(max_examples=50, deadline=None)
def test_every_beginning_of_the_order_has_each_class_in_proportion(counts: list[int], seed: int) -> None:
    label = np.repeat(np.arange(len(counts)), counts)
    order = stratified_order(label, np.random.default_rng(seed))
    n, classes = len(label), len(counts)
    assert sorted(order) == list(range(n))
    seen = np.cumsum(label[order][:, None] == np.arange(classes), axis=0)
    share = np.array(counts) / n
    expected = np.arange(1, n + 1)[:, None] * share
    assert (np.abs(seen - expected) <= 0.5 + classes / 2 * share + 1e-9).all()


def test_of_equal_classes_each_block_has_every_one_and_which_rows_come_is_random() -> None:
    label = np.repeat(np.arange(5), 40)
    orders = [stratified_order(label, np.random.default_rng(seed)) for seed in range(200)]
    for order in orders[:5]:
        assert all(len(set(block)) == 5 for block in label[order].reshape(-1, 5))
    first = [order[0] for order in orders]
    assert len(set(first)) > 100
    assert set(label[first]) == set(range(5))


@dataclass(frozen=True)
class Broken:
    """Images 0 to n - 1, of which some cannot be decoded."""

    n: int
    broken: tuple[int, ...]

    def decoded(self, rows: Array, size: int) -> Decoded:
        images = np.broadcast_to(rows[:, None, None, None], (len(rows), 1, size, size)).astype(np.uint8)
        faults = tuple(f"{row}.jpg: broken" for row in sorted(rows) if row in self.broken)
        return Decoded(images, ~np.isin(rows, self.broken), faults)


def made(n: int = 20, broken: tuple[int, ...] = (), **changes: Any) -> ImageDataset:
    labelled = image_sets.Labelled(
        Broken(n, broken),
        np.arange(n) % 2,
        "parity",
        ("even", "odd"),
        {"size": np.where(np.arange(n) < 5, -1, np.arange(n) // 10)},
        {"size": ("small", "large")},
        dropped={"odd names": 1},
        unreadable=("x.jpg: odd name",),
    )
    split = np.arange(n - 6), np.arange(n - 6, n)
    config = image_sets.ImageConfig(**(CONFIG | changes))
    return image_sets.assembled("toy", "official", labelled, split, config, np.random.default_rng(0))


def test_rows_keep_their_image_label_and_groups_together() -> None:
    data = made()
    number = data.images[:, 0, 0, 0].astype(int)
    assert (data.train.shape, data.test.shape, data.repetitions) == ((1, 14), (1, 6), 1)
    assert set(number[data.train[0]]) == set(range(14))
    assert set(number[data.test[0]]) == set(range(14, 20))
    np.testing.assert_array_equal(data.label, number % 2)
    np.testing.assert_array_equal(data.partitions["parity"], data.label)
    np.testing.assert_array_equal(data.partitions["size"], np.where(number < 5, -1, number // 10))
    assert data.levels == {"parity": ("even", "odd"), "size": ("small", "large")}
    assert (data.dropped, data.unreadable) == ({"odd names": 1}, ("x.jpg: odd name",))
    assert data.pixels(np.array([0])).max() <= 1


def test_a_subset_is_stratified_and_part_of_a_larger_one() -> None:
    whole, small = made(n=60), made(n=60, train_points=10, test_points=4)
    few = made(n=60, train_points=6)
    assert (small.train.shape, small.test.shape) == ((1, 10), (1, 4))
    assert (np.bincount(small.label[small.train[0]]) == 5).all()
    assert (np.bincount(small.label[small.test[0]]) == 2).all()
    numbers = [data.images[data.train[0], 0, 0, 0] for data in (few, small, whole)]
    np.testing.assert_array_equal(numbers[0], numbers[1][:6])
    np.testing.assert_array_equal(numbers[1], numbers[2][:10])


def test_images_that_cannot_be_decoded_are_left_out_counted_and_named_and_one_to_test_is_needed() -> None:
    data = made(broken=(3, 17))
    number = data.images[:, 0, 0, 0].astype(int)
    assert set(number[data.train[0]]) == set(range(14)) - {3}
    assert set(number[data.test[0]]) == set(range(14, 20)) - {17}
    np.testing.assert_array_equal(data.label, number % 2)
    assert data.dropped == {"odd names": 1, image_sets.UNREADABLE: 2}
    assert data.unreadable == ("x.jpg: odd name", "3.jpg: broken", "17.jpg: broken")
    with invalid(source="toy"):
        made(broken=tuple(range(14, 20)))


@pytest.mark.parametrize(
    ("changes", "option"),
    [({"train_points": 15}, "train_points"), ({"mean": [0.5] * 3, "std": [1.0] * 3}, "mean")],
)
def test_a_bad_setting_is_named(changes: dict[str, Any], option: str) -> None:
    with invalid(option=option):
        made(**changes)


# Handwritten digits: always there, and enlarged as the docstring says.


def enlarged(size: int = 8, test_points: int | None = None) -> ImageDataset:
    points: dict[str, Any] = {"train_points": None, "test_points": test_points}
    data: ImageDataset = prepared("digits", digits.parse(), image_size=size, **points)
    return data


def test_the_digits_are_there_as_published() -> None:
    data = enlarged()
    assert (data.images.shape, data.maximum, digits.ORIGIN) == ((1_797, 1, 8, 8), 16, "bundled")
    assert (data.train.shape, data.test.shape) == ((1, 1_437), (1, 360))
    np.testing.assert_array_equal(np.bincount(data.label), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180])
    assert (data.classes, list(data.partitions)) == (tuple("0123456789"), ["digit"])
    pixels = data.pixels(np.arange(1_797))
    assert (pixels.min(), pixels.max()) == (0, 1)
    # The whole set, whatever its order.
    published = digits.parse().pictures.decoded(np.arange(1_797), 8).images
    assert sorted(image.tobytes() for image in data.images) == sorted(image.tobytes() for image in published)


def test_by_the_nearest_pixel_a_change_is_as_many_times_longer_as_the_image_is_wider() -> None:
    small, large = enlarged(test_points=20), enlarged(32, test_points=20)
    np.testing.assert_array_equal(large.images, small.images.repeat(4, axis=2).repeat(4, axis=3))
    a, b = (np.linalg.norm(np.diff(data.pixels(data.test[0][:2]), axis=0)) for data in (small, large))
    assert b == pytest.approx(4 * a)


# Images out of archives and folders: read where they are, when asked for, and nothing damaged passes for whole.


Archive = Callable[..., Path]
KINDS = ("a.tar", "a.tar.gz", "a.zip", "folder")


@pytest.mark.parametrize("name", KINDS)
def test_the_images_asked_for_come_as_often_and_in_the_order_asked_for(archive: Archive, name: str) -> None:
    files = {f"x/{grey}.jpg": jpeg(grey) for grey in (200, 10, 90)} | {"x/1.jpg": b"broken and not asked for"}
    path = archive({f"./{key}" if name == "a.tar" else key: content for key, content in files.items()}, name)
    assert image_files.names(path) == ("x/1.jpg", "x/10.jpg", "x/200.jpg", "x/90.jpg")
    found = ImageFiles(path, image_files.names(path)).decoded(np.array([3, 1, 3]), 40)
    assert (found.images.shape, found.images.dtype) == ((3, 3, 40, 40), np.uint8)
    np.testing.assert_array_equal(found.images.mean(axis=(1, 2, 3)), [90, 10, 90])
    assert found.readable.all()
    assert found.faults == ()


def test_images_that_cannot_be_had_are_named_and_the_others_come_all_the_same(archive: Archive) -> None:
    rng = np.random.default_rng(0)
    whole = encoded(rng.integers(0, 256, (40, 40, 3), dtype=np.uint8), "JPEG")
    files = {
        "cut.jpg": (whole[: len(whole) // 2], "image file is truncated"),
        "empty.jpg": (b"", "no image (0 bytes)"),
        "other.jpg": (encoded(np.zeros((8, 8, 3), dtype=np.uint8), "BMP"), "no image"),
        "text.jpg": (b"<html>sign in</html>", "no image (20 bytes)"),
        "wide.jpg": (jpeg(50, width=60), "60 x 40 pixels, expected a square"),
    }
    path = archive({"good.jpg": jpeg(50)} | {name: content for name, (content, _) in files.items()})
    found = ImageFiles(path, ("good.jpg", *files, "gone.jpg")).decoded(np.arange(7), 40)
    np.testing.assert_array_equal(found.readable, [True] + [False] * 6)
    faults = {name: fault for name, (_, fault) in files.items()} | {"gone.jpg": "not in a.tar"}
    for said, (name, fault) in zip(found.faults, sorted(faults.items()), strict=True):
        assert said.startswith(f"{name}: {fault}")


@pytest.mark.parametrize("name", KINDS[1:3])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.97])
def test_an_archive_that_was_cut_is_refused_wherever_it_was_cut(archive: Archive, name: str, share: float) -> None:
    path = archive({f"{grey}.jpg": jpeg(grey, 200, 200) for grey in range(40)}, name)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content.rstrip(b"\0")))])
    with invalid(source=name, remedy="Delete it and fetch it again"):
        image_files.names(path)


@pytest.mark.parametrize("content", [b"", b"<!DOCTYPE html><html>sign in</html>"], ids=["empty", "page"])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tar").write_bytes(content)
    with invalid(source="a.tar", remedy="Delete it and fetch it again"):
        image_files.names(tmp_path / "a.tar")


def test_a_missing_archive_and_missing_or_double_members_are_named(tmp_path: Path, archive: Archive) -> None:
    with invalid(source="a.tar"):
        image_files.names(tmp_path / "a.tar")
    path = archive({"one": b"1"})
    assert image_files.contents(path, ["one"]) == {"one": b"1"}
    with invalid(source="a.tar", remedy="Delete it and fetch it again"):
        image_files.contents(path, ["one", "two", "three"])
    with tarfile.open(path, "w") as tar:
        for _ in range(2):
            tar.addfile(tarfile.TarInfo("one"))
    with invalid(source="a.tar", remedy="Fetch the archive again"):
        image_files.names(path)


def test_a_smaller_image_averages_its_pixels_be_it_reduced_while_it_is_decoded() -> None:
    # Stripes one pixel wide, black and white: picked pixels would be either, averaged ones are all about half.
    stripes = np.tile(np.array([0, 255], dtype=np.uint8), (64, 32))
    assert np.ptp(image_files.decode(encoded(np.stack([stripes] * 3, axis=-1), "PNG"), 16)) < 40
    small = Held(stripes[None, None]).decoded(np.array([0]), 16).images
    assert small.shape == (1, 1, 16, 16)
    assert np.ptp(small) < 40
    assert abs(small.mean() - 127.5) < 2
    smooth = np.add.outer(np.arange(200), np.arange(200)) * 255 / 398
    content = encoded(np.stack([smooth.astype(np.uint8)] * 3, axis=-1), "JPEG", quality=95)
    whole = image_files.decode(content)
    assert whole.shape == (3, 200, 200)
    for size in (100, 64, 20):
        reduced = image_files.decode(content, size)
        assert reduced.shape == (3, size, size)
        expected = image_files.resized(whole[None], size)[0]
        assert np.abs(reduced.astype(float) - expected).mean() < 1.5


def test_an_image_keeps_its_channels_and_its_orientation_and_its_pixels_where_it_has_the_size() -> None:
    images = np.arange(2 * 3 * 4 * 4, dtype=np.uint8).reshape(2, 3, 4, 4)
    np.testing.assert_array_equal(Held(images).decoded(np.array([1, 0]), 4).images, images[::-1])
    pixels = np.zeros((3, 8, 8), dtype=np.uint8)
    pixels[0, 0], pixels[2, :, 7] = 255, 100  # a red first row, a blue last column
    for kind, how in (("PNG", {}), ("WEBP", {"lossless": True})):
        np.testing.assert_array_equal(image_files.decode(encoded(pixels.transpose(1, 2, 0), kind, **how)), pixels)
    double = image_files.resized(pixels[None], 16, nearest=True)[0]
    np.testing.assert_array_equal(double, pixels.repeat(2, axis=1).repeat(2, axis=2))


@pytest.mark.parametrize("name", ["a.tar", "a.zip", "folder"])
def test_names_and_links_lead_nowhere_and_nothing_is_written(tmp_path: Path, archive: Archive, name: str) -> None:
    names = ("good.jpg",) if name == "folder" else ("../outside.jpg", str(tmp_path / "absolute.jpg"), "good.jpg")
    path = archive(dict.fromkeys(names, jpeg(7)), f"inside/{name}")
    if name == "a.tar":
        with tarfile.open(path, "a") as tar:
            link = tarfile.TarInfo("link.jpg")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
            tar.addfile(link)
    elif name == "folder":
        (path / "link.jpg").symlink_to("/etc/hostname")
    before = sorted(tmp_path.rglob("*"))
    assert image_files.names(path) == tuple(sorted(names))
    assert ImageFiles(path, image_files.names(path)).decoded(np.arange(len(names)), 8).readable.all()
    assert sorted(tmp_path.rglob("*")) == before
