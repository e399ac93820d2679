"""Write the words anew: ``python -m tests.lock.words [FILE ...]``, when words are meant to change."""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.lock.words import rendering, world


def main(names: list[str]) -> None:
    """Write what each call returns into its file."""
    home = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        world.write_files()
        for path in rendering.files():
            if not names or path.name in names:
                path.write_text(rendering.rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
        os.chdir(home)


if __name__ == "__main__":
    main(sys.argv[1:])
