"""Archives, images and pickles of small content, and a copy of the project."""

import io
import os
import pickle
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent


def project_copy(destination: Path, original: Path = ROOT) -> Path:
    """Copy what a run of the workflow needs, with the machine code that the project's own runs have left."""
    for name in ("Snakefile", "conf", "fairness_audits", "pipeline", "data/published", "data/twins"):
        source, target = original / name, destination / name
        target.parent.mkdir(parents=True, exist_ok=True)
        ignored = shutil.ignore_patterns("*.pyc")
        shutil.copytree(source, target, ignore=ignored) if source.is_dir() else shutil.copy2(source, target)
    return destination


def environment(project: Path, **own: str) -> dict[str, str]:
    """The variables of a run in a copy of the project: at smoke scale, on the twins, with nobody watching."""
    left_out = ("DATA_MIRROR", "SET", "NUMBA_CACHE_DIR")
    kept = {key: value for key, value in os.environ.items() if key not in left_out}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    asked = {"SCALE": "smoke", "TRACKER": "disabled", "DATA_SOURCE": "twin"}
    return {**kept, "PATH": path, "PYTHONPATH": str(project), **asked, **own}


def packed(path: Path, files: Mapping[str, bytes]) -> Path:
    """Write files, by name, into an archive, tar, gzipped tar or zip by its name, or into a folder."""
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


def encoded(image: np.ndarray, kind: str, **settings: Any) -> bytes:
    """An image (h, w, 3) as a file."""
    content = io.BytesIO()
    Image.fromarray(image).save(content, kind, **settings)
    return content.getvalue()


def jpeg(grey: int, width: int = 40, height: int = 40) -> bytes:
    """A JPEG file of one grey."""
    return encoded(np.full((height, width, 3), grey, dtype=np.uint8), "JPEG", quality=95)


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


def python2(value: Any) -> bytes:
    """A pickle as Python 2 and the NumPy of its time made them."""
    content = io.BytesIO()
    _Python2(content, protocol=2).dump(value)
    return content.getvalue().replace(b"numpy._core", b"numpy.core")


class Harm:
    """Pickled, it asks the loader to create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))
