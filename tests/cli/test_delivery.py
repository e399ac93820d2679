"""Files arrive whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.cli.delivery import check_destination, folder_written


def test_a_new_folder_appears_with_all_its_files(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "out"
    with folder_written(target) as temporary:
        (temporary / "a").write_text("1")
        (temporary / "b").write_text("2")
        assert not target.exists()
    assert sorted(path.name for path in target.iterdir()) == ["a", "b"]
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]


def test_a_failure_leaves_nothing_and_touches_nothing(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "a").write_text("old")

    def fail(folder: Path) -> None:
        with folder_written(folder) as temporary:
            (temporary / "a").write_text("new")
            raise RuntimeError("disk full")

    for folder in (target, tmp_path / "fresh" / "deep"):
        with pytest.raises(RuntimeError, match="disk full"):
            fail(folder)
    assert (target / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_existing_folder_keeps_its_other_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "mine").write_text("mine")
    with folder_written(tmp_path) as temporary:
        (temporary / "a").write_text("new")
    assert (tmp_path / "a").read_text() == "new"
    assert (tmp_path / "mine").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_destination_of_the_wrong_kind_is_refused_beforehand(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="to be a folder, found a file"):
        check_destination(tmp_path / "file", folder=True)
    with pytest.raises(ValueError, match="to be a file, found a folder"):
        check_destination(tmp_path, folder=False)
    with pytest.raises(ValueError, match=r"nothing can be written to .*file: give another place for x"):
        check_destination(tmp_path / "file" / "x", folder=False)
    check_destination(tmp_path / "new" / "x.json", folder=False)
