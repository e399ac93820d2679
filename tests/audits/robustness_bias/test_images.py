"""A user's images and networks of images: what is read, and what is refused."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

import fairness_audits as fa
from fairness_audits.errors import ModelFailed
from fairness_audits.inputs.images import Unreadable, _decoded


def png(pixels: np.ndarray, colour: int) -> bytes:
    """A PNG file of (h, w, c) pixels, uint8 or uint16, of this colour type."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    height, width, _ = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8 * pixels.itemsize, colour, 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(pixels.dtype.newbyteorder(">")).tobytes() for row in pixels)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("colour", "channels"), [(0, 1), (2, 3), (4, 2), (6, 4)], ids=["grey", "RGB", "LA", "RGBA"])
def test_images_of_8_bits_are_read_and_those_of_16_refused(colour: int, channels: int, tmp_path: Path) -> None:
    pixels = np.full((3, 2, channels), 51, dtype=np.uint8)
    (tmp_path / "8.png").write_bytes(png(pixels, colour))
    (tmp_path / "16.png").write_bytes(png(pixels.astype(np.uint16) * 257, colour))
    np.testing.assert_allclose(_decoded(tmp_path / "8.png", 1), np.full((1, 3, 2), 0.2), rtol=1e-6)
    with pytest.raises(Unreadable, match="16 bits"):
        _decoded(tmp_path / "16.png", 1)


@pytest.mark.parametrize("size", [1, 4])
def test_a_network_that_was_exported_for_one_size_of_batch_is_not_told_to_resize_images(size: int) -> None:
    images = torch.rand(20, 1, 4, 4)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3)).eval()
    exported = torch.export.export(network, (images[:size],)).module()
    with pytest.raises(ModelFailed, match="batches of one size") as caught:
        fa.robustness_bias(exported, images.numpy(), groups=np.arange(20) % 2, attack="deepfool")
    assert caught.value.option == "model"
    assert "resize" not in str(caught.value)
