"""The source files behind a job are exactly those that its modules import, at any depth."""

from pathlib import Path

from pipeline.workflow.code_closure import modules_behind


def tree(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root.joinpath(*name.split("__"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(text)
    return root


def names(root: Path, module: str) -> list[str]:
    return [str(path.relative_to(root)) for path in modules_behind([module], root)]


def test_imports_are_followed_at_any_depth_and_inside_functions(tmp_path: Path) -> None:
    tree(
        tmp_path,
        house__a="import numpy\nfrom house import b\n",
        house__b="def late():\n    from house.c import thing\n    return thing\n",
        house__c="thing = 1\n",
        house__unrelated="import house.a\n",
    )
    assert names(tmp_path, "house.a") == ["house/a.py", "house/b.py", "house/c.py"]


def test_packages_and_cycles_are_closed(tmp_path: Path) -> None:
    tree(tmp_path, house__pack____init__="from house.d import x\n", house__d="import house.pack\nx = 1\n")
    (tmp_path / "house" / "pack").mkdir(exist_ok=True)
    (tmp_path / "house" / "pack" / "__init__.py").write_text("from house.d import x\n")
    assert names(tmp_path, "house.d") == ["house/d.py", "house/pack/__init__.py"]


def test_foreign_packages_are_left_out(tmp_path: Path) -> None:
    tree(tmp_path, house__a="import torch\nimport other.a\n", other__a="x = 1\n")
    assert names(tmp_path, "house.a") == ["house/a.py"]


def test_imports_for_type_checkers_alone_are_left_out(tmp_path: Path) -> None:
    tree(
        tmp_path,
        house__a="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.b import x\nimport house.c\n",
        house__b="x = 1\n",
        house__c="",
    )
    assert names(tmp_path, "house.a") == ["house/a.py", "house/c.py"]
