"""What several test modules share."""

import io
import os
import pickle
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import settings

# Tests compile parts of the kernels by themselves, and what is compiled after them can round otherwise than in a job of
# its own. Their machine code is kept apart: a run of the workflow does not depend on whether the tests ran before.
os.environ["NUMBA_CACHE_DIR"] = str(Path(__file__).resolve().parent.parent / ".pytest_cache" / "numba")

# Tests share a process: POT shall know torch whichever of its users comes first.
os.environ["POT_BACKEND_DISABLE_PYTORCH"] = ""


# How long an example takes says nothing of what it shows.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """A small configuration tree of its own: one dataset, two methods, one audit, one study."""
    texts = {
        "config.yaml": (
            "defaults: [scale: small, tracker: none, dataset: d, method: m, audit: a, _self_]\nrepetitions: 10\n"
        ),
        "scale/small.yaml": "settings:\n  - {where: {method: m}, set: {repetitions: 2, method.rate: 5}}\n",
        "tracker/none.yaml": "mode: disabled\n",
        "dataset/d.yaml": "rows: 4\n",
        "method/m.yaml": "rate: 1\nper_dataset: {d: {rate: 3}}\n",
        "method/other.yaml": "depth: 1\n",
        "audit/a.yaml": "delta: 1.25\n",
        "experiment/s.yaml": (
            "grid:\n"
            "  main: {dataset: d, method: [m, other], audit: a, audit.delta: [1.1, 1.25]}\n"
            "  axis: {dataset: d, method: m, audit: a, audit.delta: [[1, 2, 3]]}\n"
        ),
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.fixture(scope="session")
def packed() -> Callable[[Path, Mapping[str, bytes]], Path]:
    """A function that writes files, by name, into an archive, tar, gzipped tar or zip by its name, or into a folder."""

    def pack(path: Path, files: Mapping[str, bytes]) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".zip":
            with zipfile.ZipFile(path, "w") as archive:
                for name, content in files.items():
                    archive.writestr(name, content)
        elif path.suffix in (".tar", ".gz"):
            with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as tar:
                for name, content in files.items():
                    member = tarfile.TarInfo(name)
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
        else:
            for name, content in files.items():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                (path / name).write_bytes(content)
        return path

    return pack


@pytest.fixture(scope="session")
def jpeg() -> Callable[..., bytes]:
    """A function that makes a JPEG file of one grey."""
    from PIL import Image

    def encode(grey: int, width: int = 40, height: int = 40) -> bytes:
        content = io.BytesIO()
        Image.new("RGB", (width, height), (grey,) * 3).save(content, "JPEG", quality=95)
        return content.getvalue()

    return encode


class _Python2(pickle._Pickler):
    """Writes text and bytes alike as the byte strings of Python 2."""

    dispatch: ClassVar[Any] = dict(pickle._Pickler.dispatch)
    write: Any
    memoize: Any

    def save_text(self, value: str | bytes) -> None:
        content = value.encode("latin-1") if isinstance(value, str) else value
        self.write(pickle.BINSTRING + len(content).to_bytes(4, "little") + content)
        self.memoize(value)

    dispatch[str] = save_text
    dispatch[bytes] = save_text


@pytest.fixture(scope="session")
def python2() -> Callable[[Any], bytes]:
    """A function that pickles as Python 2 and the NumPy of its time did."""

    def dump(value: Any) -> bytes:
        content = io.BytesIO()
        _Python2(content, protocol=2).dump(value)
        return content.getvalue().replace(b"numpy._core", b"numpy.core")

    return dump
