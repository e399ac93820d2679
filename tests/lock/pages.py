"""The examples of the documentation, each followed by what it prints.

An example is a code block of the language ``python`` or ``sh``. A ``text`` block right after it holds its output, with
long lines wrapped. The examples of a page run in order, in a folder with ``people.csv``. A block that names a file in
its first line is left alone. ``python -m tests.lock.pages [FILE ...]`` writes the outputs anew.
"""

import ast
import os
import re
import shlex
import sys
import textwrap
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import fairness_audits as fa
from fairness_audits.cli.entry import main as command

DOCS = Path(__file__).resolve().parents[2] / "docs"
WIDTH = 110
EXAMPLE = re.compile(r"^```(python|sh)\n(?!# \S+/)(.*?)^```\n(\n```text\n.*?^```\n)?", re.MULTILINE | re.DOTALL)
TESTED = (
    DOCS.parent / "README.md",
    *(DOCS / f"{name}.md" for name in ("index", "getting_started", "tutorial")),
    *(DOCS / "guide" / f"{name}.md" for name in ("permutation", "margins", "subgroups", "compare", "plan")),
    *sorted((DOCS / "recipes").glob("*.md")),
)
FINISHED = (0, 3, 4)
"""Exit statuses of an audit that ran."""


def rewritten(page: str) -> str:
    """Return a page with what its examples print now."""
    names: dict[str, Any] = {}

    def again(found: re.Match[str]) -> str:
        language, code, output = found.groups()
        shown = python(code, names) if language == "python" else shell(code)
        lines = [line for one in shown.rstrip().split("\n") for line in textwrap.wrap(one, WIDTH) or [""]]
        printed = "\n".join(["", "```text", *lines, "```", ""]) if output else ""
        return f"```{language}\n{code}```\n{printed}"

    return EXAMPLE.sub(again, page)


def python(code: str, names: dict[str, Any]) -> str:
    """Run a block and return what it prints, and the value of its last line, as a notebook shows them."""
    *body, end = ast.parse(code).body
    last = ast.Expression(end.value) if isinstance(end, ast.Expr) else None
    with redirect_stdout(StringIO()) as shown, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(ast.Module(body if last else [*body, end], []), "<page>", "exec"), names)
        value = None if last is None else eval(compile(last, "<page>", "eval"), names)
        if value is not None:
            print(repr(value))
    return shown.getvalue()


def shell(code: str) -> str:
    """Run the lines of a block that start an audit, and return what they print."""
    with redirect_stdout(StringIO()) as shown:
        for line in re.findall(r"^fairness-audits (.*)$", code.replace("\\\n", " "), re.MULTILINE):
            words, _, place = line.partition(" > ")
            with redirect_stdout(StringIO()) as printed:
                if (status := command(shlex.split(words))) not in FINISHED:
                    raise ValueError(f"exit status {status}: {line}")
            if place:
                Path(place).write_text(printed.getvalue(), encoding="utf-8")
            else:
                print(printed.getvalue(), end="")
    return shown.getvalue()


def in_a_folder(page: str) -> str:
    """Return a page with what its examples print in a new folder."""
    home = Path.cwd()
    os.environ["WANDB_MODE"] = "disabled"
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            fa.example_data().to_csv("people.csv", index=False)
            return rewritten(page)
        finally:
            os.chdir(home)


if __name__ == "__main__":
    for path in [Path(name).resolve() for name in sys.argv[1:]] or TESTED:
        print(path)
        path.write_text(in_a_folder(path.read_text(encoding="utf-8")), encoding="utf-8")
