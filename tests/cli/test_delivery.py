"""Files arrive whole or not at all, and progress is drawn where a person watches."""

import logging
import sys
from pathlib import Path

import pytest

from pipeline.cli.delivery import check_destination, folder_written
from pipeline.cli.progress import followed

LOG = logging.getLogger("pipeline.toy_fit")


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


def test_a_destination_that_cannot_be_written_is_refused_beforehand(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"nothing can be written to .*file: give another place for x"):
        check_destination(tmp_path / "file" / "x", folder=False)
    check_destination(tmp_path / "new" / "x.json", folder=False)


def test_a_fits_own_words_stand_beside_the_title(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with followed(len, 1, "fitting", LOG.name):
        assert len(LOG.handlers) == 1
        LOG.info("step %d of 9", 4)
    assert LOG.handlers == []
    assert LOG.level == logging.NOTSET
    assert "fitting: step 4 of 9" in capsys.readouterr().err


def test_nothing_is_drawn_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with followed(len, 1, "counting", LOG.name) as counted:
        LOG.info("step")
        assert counted("abc") == 3
    assert capsys.readouterr() == ("", "")
