"""The audits run in folders of their own."""

import math
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fairness_audits.audits.robustness_bias import table_audit
from tests.cli.places import BUILDERS


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No search is long, however busy the machine is."""
    monkeypatch.setattr(table_audit, "LONG", math.inf)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder that an audit works in, made once: to be copied, or to be left as it is."""

    @cache
    def made(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        BUILDERS[name](folder)
        return folder

    return made


@pytest.fixture
def working(built: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Go to a copy of an audit's folder."""

    def to(name: str) -> Path:
        shutil.copytree(built(name), tmp_path, dirs_exist_ok=True)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", list(sys.path))
        return tmp_path

    return to


def folder_of(name: str) -> Any:
    """The fixture that is a copy of an audit's folder."""

    @pytest.fixture
    def folder(working: Callable[[str], Path]) -> Path:
        return working(name)

    return folder


desk, ledger, office, studio = map(folder_of, ("loss-ratio", "permutation", "fliptest", "robustness"))
