"""No word that a person reads changes by accident."""

from pathlib import Path

import pytest

from tests.lock.words import rendering, world


@pytest.mark.parametrize("path", rendering.files(), ids=lambda path: path.stem)
def test_the_words_are_the_locked_ones(path: Path, here: Path) -> None:
    world.write_files()
    text = path.read_text(encoding="utf-8")
    # If they should change, `python -m tests.lock.words` writes the files.
    assert rendering.rewritten(text) == text
