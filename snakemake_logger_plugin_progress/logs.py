"""What the logs of jobs and the messages of Snakemake say about them."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

TAIL = 4096
"""Number of bytes at the end of a log that are read."""


def last_lines(path: str) -> list[str]:
    """Return the lines at the end of a log, none if the file cannot be read."""
    try:
        with Path(path).open("rb") as file:
            file.seek(max(file.seek(0, 2) - TAIL, 0))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    # A progress meter overwrites its line. Keep only the last state.
    return [line.rstrip().rsplit("\r", 1)[-1] for line in text.split("\n") if line.strip()]


def _texts(logs: Iterable[str]) -> dict[str, str]:
    return {path: Path(path).read_text(encoding="utf-8", errors="replace") for path in logs if Path(path).is_file()}


def warnings(logs: Iterable[str]) -> Iterator[str]:
    """Yield the paragraphs that start with ``WARNING`` in the logs of a job, each with the path of its log."""
    for path, text in _texts(logs).items():
        for paragraph in text.replace("\n=", "\n\n=").split("\n\n"):
            lines = [line for line in paragraph.splitlines() if line.strip("=-* ")]
            if lines and lines[0].startswith("WARNING"):
                yield "\n".join(f"        {line}" for line in (*lines, f"({path})"))


def killed(logs: Iterable[str]) -> str:
    """Return why Slurm ended a job, such as by its use of memory, from the logs; "" if they do not say it."""
    text = "\n".join(_texts(logs).values())
    found = re.findall(r"^slurm(?:step)?d(?:-\S+)?: error: (.+)$", text, re.MULTILINE)
    return "; ".join(dict.fromkeys(line.strip("* ") for line in found))


def command_ending(message: str) -> str:
    """Extract how a command ended (``returned non-zero exit status 1``) from Snakemake's report, or return ""."""
    ended = re.fullmatch(r"RuleException:\nCalledProcessError .*\nCommand '.*' ((?:returned|died) .*)", message, re.S)
    return f"the command {ended[1].rstrip('.')}" if ended else ""
