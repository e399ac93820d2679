"""Files that are written whole or not at all.

Each file is written under a temporary name beside its destination and renamed when it is complete. A reader never sees
half a file, and a killed process leaves none under the final name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairness_audits.process import Process

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@contextmanager
def written(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` when the block ends well, remove it when not."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # The suffix stays last: writers such as matplotlib and pandas choose the format by it.
    temporary = path.with_name(f".{path.stem}.{Process.this().name}.part{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def save_text(text: str, path: Path | str) -> None:
    """Write ``text`` as UTF-8."""
    with written(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def save_json(value: Any, path: Path | str) -> None:
    """Write ``value`` as indented JSON; NaN and infinities are refused, since JSON has none."""
    save_text(json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n", path)


def load_json(path: Path | str) -> Any:
    """Read a JSON file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def save_figure(figure: Figure, stem: Path | str) -> tuple[Path, ...]:
    """Write a figure as ``stem``.pdf and .png, without dates, so that the same figure gives the same bytes."""
    paths = Path(f"{stem}.pdf"), Path(f"{stem}.png")
    for path, metadata in zip(paths, ({"CreationDate": None, "ModDate": None}, {"Software": None}), strict=True):
        with written(path) as temporary:
            figure.savefig(temporary, metadata=metadata)
    return paths
