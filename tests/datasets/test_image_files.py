"""Images out of archives and folders: read where they are, when asked for, and nothing damaged passes for whole."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipeline.datasets import image_files
from pipeline.datasets.image_files import Held, ImageFiles, Undecodable

Packed = Callable[[Path, Mapping[str, bytes]], Path]
Jpeg = Callable[..., bytes]


def encoded(image: np.ndarray, kind: str, **settings: Any) -> bytes:
    """An image (h, w, 3) as a file."""
    content = io.BytesIO()
    Image.fromarray(image).save(content, kind, **settings)
    return content.getvalue()


KINDS = ("a.tar", "a.tar.gz", "a.zip", "folder")


@pytest.mark.parametrize("name", KINDS)
def test_images_come_in_the_order_asked_for_whatever_the_archives_order(
    tmp_path: Path, packed: Packed, jpeg: Jpeg, name: str
) -> None:
    path = packed(tmp_path / name, {f"x/{grey}.jpg": jpeg(grey) for grey in (200, 10, 90)})
    assert image_files.names(path) == ("x/10.jpg", "x/200.jpg", "x/90.jpg")
    found = ImageFiles(path, image_files.names(path)).decoded(np.array([2, 0]), 40)
    assert (found.images.shape, found.images.dtype) == ((2, 3, 40, 40), np.uint8)
    np.testing.assert_array_equal(found.images.mean(axis=(1, 2, 3)), [90, 10])
    assert found.readable.all()
    assert found.faults == ()


def test_only_what_is_asked_for_is_decoded(tmp_path: Path, packed: Packed, jpeg: Jpeg) -> None:
    path = packed(tmp_path / "a.tar", {"a.jpg": b"broken", "b.jpg": jpeg(7)})
    assert ImageFiles(path, ("a.jpg", "b.jpg")).decoded(np.array([1]), 8).readable.all()


def test_a_name_listed_twice_gives_its_image_twice_and_a_leading_dot_is_no_part_of_it(
    tmp_path: Path, packed: Packed, jpeg: Jpeg
) -> None:
    path = packed(tmp_path / "a.tar", {"./a.jpg": jpeg(7)})
    found = ImageFiles(path, ("a.jpg", "a.jpg")).decoded(np.array([0, 1]), 8)
    np.testing.assert_array_equal(found.images, 7)
    assert found.readable.all()


def test_images_that_cannot_be_had_are_named_with_what_is_wrong_and_the_others_come_all_the_same(
    tmp_path: Path, packed: Packed, jpeg: Jpeg
) -> None:
    rng = np.random.default_rng(0)
    whole = encoded(rng.integers(0, 256, (40, 40, 3), dtype=np.uint8), "JPEG")
    contents = {
        "cut.jpg": whole[: len(whole) // 2],
        "empty.jpg": b"",
        "good.jpg": jpeg(50),
        "text.jpg": b"<html>sign in</html>",
        "wide.jpg": jpeg(50, width=60),
    }
    names = (*contents, "gone.jpg")
    found = ImageFiles(packed(tmp_path / "a.tar", contents), names).decoded(np.arange(6), 40)
    np.testing.assert_array_equal(found.readable, [name == "good.jpg" for name in names])
    assert [fault.split(":")[0] for fault in found.faults] == sorted(set(names) - {"good.jpg"})
    for part in (
        "cut.jpg: image file is truncated",
        "empty.jpg: no image (0 bytes)",
        "gone.jpg: not in a.tar",
        "text.jpg: no image (20 bytes)",
        "wide.jpg: 60 x 40 pixels, expected a square",
    ):
        assert part in "\n".join(found.faults)


@pytest.mark.parametrize("name", KINDS[:3])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.97])
def test_an_archive_that_was_cut_is_refused_wherever_it_was_cut(
    tmp_path: Path, packed: Packed, jpeg: Jpeg, name: str, share: float
) -> None:
    path = packed(tmp_path / name, {f"{grey}.jpg": jpeg(grey, 200, 200) for grey in range(40)})
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content.rstrip(b"\0")))])
    with pytest.raises(ValueError, match=rf"{name} is not a whole archive .*delete it and fetch it again"):
        image_files.names(path)


def test_an_archive_cut_exactly_between_two_files_is_refused_too(tmp_path: Path, packed: Packed, jpeg: Jpeg) -> None:
    path = packed(tmp_path / "a.tar", {"a.jpg": jpeg(1), "b.jpg": jpeg(2)})
    with tarfile.open(path) as archive:
        end = archive.getmember("b.jpg").offset
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(ValueError, match="not a whole archive \\(unexpected end of data\\)"):
        image_files.names(path)


def test_a_damaged_header_is_no_end_of_the_archive(tmp_path: Path, packed: Packed, jpeg: Jpeg) -> None:
    path = packed(tmp_path / "a.tar", {"a.jpg": jpeg(1), "b.jpg": jpeg(2)})
    content = bytearray(path.read_bytes())
    with tarfile.open(path) as archive:
        content[archive.getmember("b.jpg").offset + 100] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a whole archive \\(a damaged header\\)"):
        image_files.names(path)


@pytest.mark.parametrize("content", [b"", b"<!DOCTYPE html><html>sign in</html>", bytes(range(256)) * 8])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a whole archive"):
        image_files.names(path)


def test_a_missing_archive_and_missing_or_double_members_are_named(tmp_path: Path, packed: Packed) -> None:
    with pytest.raises(ValueError, match=r"a\.tar is missing: run the fetch stage"):
        image_files.names(tmp_path / "a.tar")
    path = packed(tmp_path / "a.tar", {"one": b"1"})
    assert image_files.contents(path, ["one"]) == {"one": b"1"}
    with pytest.raises(ValueError, match=r"a\.tar lacks two, three: delete it"):
        image_files.contents(path, ["one", "two", "three"])
    with tarfile.open(path, "w") as archive:
        for _ in range(2):
            archive.addfile(tarfile.TarInfo("one"))
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


def test_a_jpeg_that_is_reduced_while_it_is_decoded_is_the_image_resized(jpeg: Jpeg) -> None:
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


def test_other_formats_are_not_decoded() -> None:
    with pytest.raises(Undecodable, match="no image"):
        image_files.decode(encoded(np.zeros((8, 8, 3), dtype=np.uint8), "BMP"), 8)


@pytest.mark.parametrize("name", ["a.tar", "a.zip"])
def test_an_archive_writes_nothing_whatever_its_names_and_links_say(
    tmp_path: Path, packed: Packed, jpeg: Jpeg, name: str
) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside.jpg"
    hostile = ("../outside.jpg", str(tmp_path / "absolute.jpg"), "good.jpg")
    path = packed(inside / name, dict.fromkeys(hostile, jpeg(7)))
    if name == "a.tar":
        with tarfile.open(path, "a") as archive:
            link = tarfile.TarInfo("link.jpg")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
            archive.addfile(link)
    before = sorted(tmp_path.rglob("*"))
    assert image_files.names(path) == tuple(sorted(hostile))
    assert ImageFiles(path, image_files.names(path)).decoded(np.arange(3), 8).readable.all()
    assert sorted(tmp_path.rglob("*")) == before
    assert not outside.exists()


def test_a_link_in_a_folder_is_no_file_of_it(tmp_path: Path, packed: Packed, jpeg: Jpeg) -> None:
    folder = packed(tmp_path / "folder", {"a/good.jpg": jpeg(7)})
    (folder / "a" / "link.jpg").symlink_to("/etc/hostname")
    assert image_files.names(folder) == ("a/good.jpg",)
