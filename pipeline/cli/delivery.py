"""An audit from its arguments to what it leaves: words in the terminal, and files that are whole or absent."""

from __future__ import annotations

import os
import shutil
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.cli.document import AuditDocument
from pipeline.cli.render.data import csv_texts, json_text
from pipeline.cli.render.terminal import terminal
from pipeline.cli.verdict import STATUS
from pipeline.io import save_figure, save_text

WRITTEN = {"output": True, "json": False, "checkpoint": False}
"""The options that name what is written, those of some audits alone too; whether it is a folder."""


def carried_out(arguments: Namespace, audited: Callable[[Namespace], AuditDocument]) -> int:
    """Audit, write what was asked for and print the verdict; the exit status is 0, or that of the outcome (--gate)."""
    for name, folder in WRITTEN.items():
        if (path := getattr(arguments, name, None)) is not None:
            check_destination(path, folder)
    document = audited(arguments)
    # Written before it is printed: whoever cuts the page short (`| head`) still gets the files.
    written = deliver(document, arguments.output, arguments.json)
    print(terminal(document))
    for path in written:
        print(f"written: {path}")
    return STATUS[document.verdict.outcome] if arguments.gate else 0


def deliver(document: AuditDocument, folder: Path | None, json_file: Path | None) -> list[Path]:
    """Write the folder (JSON, page, tables, figures) and the JSON file, those that are asked for; the paths written."""
    written = []
    text = json_text(document, folder is not None)
    if folder is not None:
        from pipeline.cli.render.page import page
        from pipeline.report.style import paper

        files = document.files()
        with folder_written(folder) as temporary:
            save_text(text, temporary / files["result"])
            for name, table in csv_texts(document).items():
                save_text(table, temporary / files[name])
            pictures = {}
            with paper():
                for figure in document.figures():
                    save_figure(figure.draw(), temporary / figure.stem)
                    pictures[figure.stem] = (temporary / f"{figure.stem}.png").read_bytes()
            save_text(page(document, pictures), temporary / files["page"])
        written += [folder / name for name in files.values()]
    if json_file is not None:
        save_text(text, json_file)
        written.append(json_file)
    return written


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

    A new folder appears with all its files at once. In a folder that exists, files of the same name are replaced and
    all others are left alone.
    """
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=_existing_parent(path)))
    try:
        yield temporary
        if path.is_dir():
            for file in sorted(temporary.iterdir()):
                file.replace(path / file.name)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.chmod(0o777 & ~_umask())
            temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _existing_parent(path: Path) -> Path:
    return next(parent for parent in path.absolute().parents if parent.exists())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
