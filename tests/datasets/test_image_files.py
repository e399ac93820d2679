"""Images out of archives and folders: read where they are, when asked for, and nothing damaged passes for whole."""

import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.datasets import image_files
from pipeline.datasets.image_files import Held, ImageFiles
from tests.files import encoded, jpeg

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


@pytest.mark.parametrize("name", KINDS[:3])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.97])
def test_an_archive_that_was_cut_is_refused_wherever_it_was_cut(archive: Archive, name: str, share: float) -> None:
    path = archive({f"{grey}.jpg": jpeg(grey, 200, 200) for grey in range(40)}, name)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content.rstrip(b"\0")))])
    with pytest.raises(ValueError, match=rf"{name} is not a whole archive .*delete it and fetch it again"):
        image_files.names(path)


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content, second: content[:second], r"\(unexpected end of data\)"),
        (lambda content, second: flipped(content, second + 100), r"\(a damaged header\)"),
        (lambda content, second: b"", ""),
        (lambda content, second: b"<!DOCTYPE html><html>sign in</html>", ""),
        (lambda content, second: bytes(range(256)) * 8, ""),
    ],
    ids=["cut between two files", "damaged header", "empty", "page", "other bytes"],
)
def test_what_is_no_whole_archive_is_refused(archive: Archive, damage: Any, message: str) -> None:
    path = archive({"a.jpg": jpeg(1), "b.jpg": jpeg(2)})
    with tarfile.open(path) as tar:
        second = tar.getmember("b.jpg").offset
    path.write_bytes(damage(path.read_bytes(), second))
    with pytest.raises(ValueError, match=f"not a whole archive {message}"):
        image_files.names(path)


def test_a_missing_archive_and_missing_or_double_members_are_named(tmp_path: Path, archive: Archive) -> None:
    with pytest.raises(ValueError, match=r"a\.tar is missing: run the fetch stage"):
        image_files.names(tmp_path / "a.tar")
    path = archive({"one": b"1"})
    assert image_files.contents(path, ["one"]) == {"one": b"1"}
    with pytest.raises(ValueError, match=r"a\.tar lacks two, three: delete it"):
        image_files.contents(path, ["one", "two", "three"])
    with tarfile.open(path, "w") as tar:
        for _ in range(2):
            tar.addfile(tarfile.TarInfo("one"))
    with pytest.raises(ValueError, match="holds 'one' twice"):
        image_files.names(path)


def test_a_smaller_image_averages_and_does_not_pick_pixels() -> None:
    # Stripes one pixel wide, black and white: picked pixels would be either, averaged ones are all about half.
    stripes = np.tile(np.array([0, 255], dtype=np.uint8), (64, 32))
    assert np.ptp(image_files.decode(encoded(np.stack([stripes] * 3, axis=-1), "PNG"), 16)) < 40
    small = Held(stripes[None, None]).decoded(np.array([0]), 16).images
    assert small.shape == (1, 1, 16, 16)
    assert np.ptp(small) < 40
    assert abs(small.mean() - 127.5) < 2


def test_a_jpeg_that_is_reduced_while_it_is_decoded_is_the_image_resized() -> None:
    smooth = np.add.outer(np.arange(200), np.arange(200)) * 255 / 398
    content = encoded(np.stack([smooth.astype(np.uint8)] * 3, axis=-1), "JPEG", quality=95)
    whole = image_files.decode(content)
    assert whole.shape == (3, 200, 200)
    for size in (100, 64, 20):
        reduced = image_files.decode(content, size)
        assert reduced.shape == (3, size, size)
        expected = image_files.resized(whole[None], size)[0]
        assert np.abs(reduced.astype(float) - expected).mean() < 1.5


def test_an_image_keeps_its_channels_and_its_orientation() -> None:
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
