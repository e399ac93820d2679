"""A user's Python file is run under a name that takes no other module's place."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from pipeline.cli.user_code import MODULE_NAME, named_object, run_file


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a file that is called like a library and needs its neighbour."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in (MODULE_NAME, "beside_it"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "numpy.py").write_text(
        "from dataclasses import dataclass\nfrom beside_it import number\n"
        "@dataclass\nclass Box:\n    content: int = number\n"
    )
    (tmp_path / "beside_it.py").write_text("number = 7\n")
    return tmp_path


def test_a_file_called_like_a_library_is_itself_and_finds_its_neighbour(folder: Path) -> None:
    module = run_file(folder / "numpy.py")
    assert module.Box().content == 7
    assert module.__name__ == MODULE_NAME
    assert sys.modules["numpy"] is np
    named = named_object("--metric", "numpy.py:Box")
    assert (named.value().content, named.name, named.where, named.file) == (7, "Box", "numpy.py", Path("numpy.py"))


@pytest.mark.usefixtures("folder")
def test_a_module_is_found_in_the_current_folder() -> None:
    named = named_object("--model", "beside_it:number")
    assert (named.value, named.name, named.where, named.file) == (7, "number", "beside_it", None)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("option", ["--model", "--metric"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("absent.py:x", r"importing 'absent\.py' failed with FileNotFoundError: there is no file absent\.py"),
        ("no.such:x", r"importing 'no\.such' failed with ModuleNotFoundError"),
        ("numpy.py:absent", r"'numpy\.py' has no 'absent'\. It has: dataclass, Box"),
        ("beside_it:absent", r"'beside_it' has no 'absent'\. It has: nothing"),
    ],
)
def test_what_is_not_there_is_said_of_the_option_that_asked(option: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^{option} {text}: {message}"):
        named_object(option, text)
