"""The code behind a job is what its modules import at any depth. Its hash changes with what it computes alone."""

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline.workflow import code_hash as hashing
from pipeline.workflow.code_hash import code_hash, modules_behind


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count the code of the packages ``house`` and ``other`` of the last tree."""
    monkeypatch.setattr(hashing, "PACKAGES", ("house", "other"))
    monkeypatch.setattr(sys, "path", sys.path.copy())


def tree(root: Path, files: Mapping[str, str]) -> Path:
    """Write modules of the package ``house``; ``pack/__init__`` makes the folder ``pack`` a package."""
    for name, text in {"__init__": "", "../other/__init__": "", **files}.items():
        path = root / "house" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    hashing._graph.cache_clear()
    return root


def behind(folder: Path, importing: str, **others: str) -> list[str]:
    """The modules of ``house`` behind ``house.a``, which has these imports, beside ``others``."""
    root = tree(folder, {"a": importing, **others})
    return [path.relative_to(root / "house").with_suffix("").as_posix() for path in modules_behind(["house.a"], root)]


def test_imports_are_followed_at_any_depth_and_inside_functions_but_not_for_type_checkers(tmp_path: Path) -> None:
    found = behind(
        tmp_path,
        "import numpy\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import house.e\nfrom house import b\n",
        b="def late():\n    from .c import thing\n    return thing\n",
        c="from . import d as other\n",
        d="thing = 1\n",
        e="x = 1\n",
        unrelated="import house.a\n",
    )
    assert found == ["a", "b", "c", "d"]


def test_packages_and_cycles_are_closed(tmp_path: Path) -> None:
    found = behind(tmp_path, "import house.pack\nx = 1\n", **{"pack/__init__": "from house.a import x\n"})
    assert found == ["a", "pack/__init__"]


def test_a_module_of_another_package_here_counts_and_one_from_elsewhere_does_not(tmp_path: Path) -> None:
    tree(tmp_path, {"a": "import torch\nimport other.a\n", "../other/a": "x = 1\n"})
    assert [*modules_behind(["house.a"], tmp_path)] == [tmp_path / "house" / "a.py", tmp_path / "other" / "a.py"]


@pytest.mark.parametrize(
    ("init", "importing", "counts"),
    [
        ("LIMIT = 1", "from house.pack.mod import x", ["mod"]),
        ("LIMIT = 1", "from house.pack import mod", ["mod"]),
        ("LIMIT = 1", "from house.pack import LIMIT", ["__init__"]),
        ("LIMIT = 1", "import house.pack.mod", ["mod"]),
        ("from house.pack import own", "from house.pack.mod import x", ["mod"]),
        ("def z():\n    from house.pack import own", "from house.pack import z", ["__init__", "own"]),
    ],
)  # fmt: skip
def test_a_package_counts_if_it_is_used(init: str, importing: str, counts: list[str], tmp_path: Path) -> None:
    package = {"__init__": init, "mod": "x = 1\n", "own": "y = 1\n"}
    found = behind(tmp_path, importing, **{f"pack/{name}": text for name, text in package.items()})
    assert found == ["a", *(f"pack/{name}" for name in counts)]


SOURCE = """
import json
import os
from dataclasses import dataclass

LIMIT = 3
NAMES = {"a": None}


@dataclass(frozen=True)
class Config:
    steps: int
    rate: float = 0.5


def computed(x, low=1, *, high=2):
    total = x + low
    return f"{total:.2f} of {high!r}", json, os
"""


def hashed(folder: Path, text: str) -> str:
    return code_hash(("house.a",), tree(folder, {"a": text}))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import json\n", '"""A module."""\nimport json\n'),
        ("LIMIT = 3\n", 'LIMIT = 3\n"""How many."""\n'),
        ("LIMIT = 3\n", "LIMIT: int = 3\n"),
        ("class Config:\n", 'class Config:\n    """Settings."""\n'),
        ("    total = x", '    """The sum."""\n    total = x'),
        ("    total = x", "    # A remark.\n    total: float = x"),
        ("    total = x", "    total: float\n    total = x"),
        ("(x, low=1, *, high=2)", "(x: int, low: int = 1, *, high: int = 2) -> str"),
        ("(x, low=1, *, high=2)", "(\n    x,\n    low=1,\n    *,\n    high=2,\n)"),
        ('{"a": None}', "{'a': None}"),
        ("import json\nimport os\n", "import os, json\n"),
        ("import os\nfrom dataclasses import dataclass", "from dataclasses import dataclass\nimport os"),
        ("import json\n", "from __future__ import annotations\nimport json\n"),
        ("import json\n", "import json\nfrom typing import Any\nfrom collections.abc import Mapping\n"),
        ("LIMIT = 3\n", "if TYPE_CHECKING:\n    import torch\nLIMIT = 3\n"),
        ("LIMIT = 3\n", "if typing.TYPE_CHECKING:\n    import torch\nLIMIT = 3\n"),
    ],
)  # fmt: skip
def test_what_computes_nothing_leaves_the_hash_as_it_is(old: str, new: str, tmp_path: Path) -> None:
    assert old in SOURCE
    assert hashed(tmp_path / "one", SOURCE) == hashed(tmp_path / "other", SOURCE.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("LIMIT = 3", "LIMIT = 3.0"),
        ("None", "True"),
        ("None", "'None'"),
        ("low=1", "low=2"),
        ("high=2", "high=3"),
        ("frozen=True", "frozen=False"),
        ("steps: int", "steps: float"),
        ("    rate: float = 0.5", "    rate = 0.5"),
        (":.2f", ":.3f"),
        ("!r", "!s"),
        ("x + low", "low + x"),
        ("    total = x + low\n", "    total = x + low\n    total += 1\n"),
        ("import os\n", "import os.path as os\n"),
        ("import os\n", "import os\nimport posixpath as json\n"),
        ("LIMIT = 3\n", "if TYPE_CHECKING:\n    pass\nelse:\n    import torch\nLIMIT = 3\n"),
    ],
)
def test_what_computes_something_else_changes_the_hash(old: str, new: str, tmp_path: Path) -> None:
    assert old in SOURCE
    assert hashed(tmp_path / "one", SOURCE) != hashed(tmp_path / "other", SOURCE.replace(old, new, 1))


@pytest.mark.parametrize("name", ["x", "*"])
def test_the_order_of_imports_counts_where_one_hides_another(name: str, tmp_path: Path) -> None:
    one, other = f"from m import {name}\n", "from n import x\n"
    assert hashed(tmp_path / "one", one + other) != hashed(tmp_path / "other", other + one)


def test_a_template_counts_for_what_loads_it_and_a_moved_module_is_another(tmp_path: Path) -> None:
    loading = "import jinja2\nloader = jinja2.PackageLoader('house.pack')\n"
    found = []
    for number, text in enumerate(("<p>", "<p>", "<b>")):
        root = tree(tmp_path / str(number), {"a": "import house.pack.b", "pack/__init__": "", "pack/b": loading})
        (root / "house" / "pack" / "templates").mkdir()
        (root / "house" / "pack" / "templates" / "page.html").write_text(text)
        found.append(code_hash(("house.a",), root))
    assert found[0] == found[1] != found[2]
    root = tree(tmp_path, {"b": "x = 1", "c": "x = 1"})
    assert code_hash(("house.b",), root) != code_hash(("house.c",), root)


def test_the_hash_does_not_depend_on_the_version_of_python(tmp_path: Path) -> None:
    """A value that was computed once, by Python 3.11."""
    assert hashed(tmp_path, SOURCE) == "6fb67290da6c730e"
