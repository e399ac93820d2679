"""What an audit leaves: words in the terminal, and files that are whole or absent."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.cli.render import csv_texts, json_text, page
from pipeline.cli.result import Result
from pipeline.cli.settings import as_yaml
from pipeline.io import save_figure, save_text


def deliver(document: Result, folder: Path | None, json_file: Path | None) -> list[Path]:
    """Write the folder and the JSON file, those that are asked for; the paths written.

    The folder gets the JSON, the page, tables, figures, and the options as YAML; what an audit left there before, and
    this one does not, is removed.
    """
    written = []
    text = json_text(document, folder is not None)
    if folder is not None:
        from pipeline.report.style import paper

        files = document.files()
        stale = left_by(folder) - set(files.values())
        with folder_written(folder) as temporary:
            save_text(text, temporary / files["result"])
            if document.settings is not None:
                save_text(as_yaml(document.settings, document.audit, document.called), temporary / files["options"])
            for name, table in csv_texts(document).items():
                save_text(table, temporary / files[name])
            pictures = {}
            with paper():
                for figure in document.figures():
                    save_figure(figure.draw(), temporary / figure.stem)
                    pictures[figure.stem] = (temporary / f"{figure.stem}.png").read_bytes()
            save_text(page(document, pictures), temporary / files["page"])
        for name in stale:
            (folder / name).unlink(missing_ok=True)
        written += [folder / name for name in files.values()]
    if json_file is not None:
        save_text(text, json_file)
        written.append(json_file)
    return written


def left_by(folder: Path) -> set[str]:
    """The names of the files that an audit before this one wrote into the folder, as its JSON lists them."""
    try:
        files = json.loads((folder / "audit.json").read_text(encoding="utf-8"))["files"]
        return {str(name) for name in files.values() if Path(name).name == name}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()


def check_destination(path: Path, folder: bool) -> None:
    """ValueError where ``path`` cannot become a folder (or a file) of ours; asked before the work, not after it."""
    if folder and path.exists() and not path.is_dir():
        raise ValueError(f"expected {path} to be a folder, found a file: give another name")
    if not folder and path.is_dir():
        raise ValueError(f"expected {path} to be a file, found a folder: give the name of a file in it")
    home = path if folder and path.is_dir() else _existing_parent(path)
    if not (home.is_dir() and os.access(home, os.W_OK | os.X_OK)):
        raise ValueError(f"nothing can be written to {home}: give another place for {path.name}")


@contextmanager
def folder_written(path: Path) -> Iterator[Path]:
    """Yield a temporary folder; when the block ends well its files are in ``path``, when not nothing is anywhere.

    A new folder appears with all its files at once. In a folder that exists, files of the same name are replaced.
    """
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=_existing_parent(path)))
    try:
        yield temporary
        if path.is_dir():
            for file in sorted(temporary.iterdir()):
                file.replace(path / file.name)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            mask = os.umask(0)
            os.umask(mask)
            temporary.chmod(0o777 & ~mask)
            temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _existing_parent(path: Path) -> Path:
    return next(parent for parent in path.absolute().parents if parent.exists())
