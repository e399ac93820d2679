"""Progress is drawn where a person watches, and nowhere else."""

from __future__ import annotations

import logging
import sys

import pytest

from pipeline.cli.progress import followed, narrated

LOG = logging.getLogger("pipeline.toy_fit")


def test_a_fits_own_words_stand_beside_the_title(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with narrated("pipeline.toy_fit", "fitting"):
        assert len(LOG.handlers) == 1
        LOG.info("step %d of 9", 4)
    assert LOG.handlers == []
    assert LOG.level == logging.NOTSET
    assert "fitting: step 4 of 9" in capsys.readouterr().err


def test_nothing_is_drawn_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with narrated("pipeline.toy_fit", "fitting"), followed(len, 1, "counting") as counted:
        LOG.info("step")
        assert counted("abc") == 3
    assert capsys.readouterr() == ("", "")
