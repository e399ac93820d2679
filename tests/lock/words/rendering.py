"""The words that a person reads, call by call: each file of calls holds what every one of its calls returns.

A call is a code block of the language ``python``, an expression over :mod:`tests.lock.words.world`, or ``sh``, a
command. What follows, up to the next call or heading, is written by :func:`rewritten`. A call ``in full`` is followed
by its summary and the tables of its page as well.
"""

import re
import shlex
import warnings
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from unittest.mock import patch

from fairness_audits.cli.commands import Command
from fairness_audits.results.document import Document, Facts, Figure, Part, Text
from fairness_audits.results.render import page, terminal
from tests.cli.places import ended
from tests.lock.words import world

HERE = Path(__file__).parent
COMMAND = "python -m tests.lock.words"
CALL = re.compile(
    r"^```(python|sh)( in full)?\n(.*?)\n```\n.*?(?=^```(?:python|sh)|^##? |\Z)", re.MULTILINE | re.DOTALL
)

LABELLED = re.compile(r"(- \w[\w ]*: |(?:[TWH][\w ]+|Figure|Reason): )(.*)")
SHORT = 60
"""Length of the texts that are repeated wherever they occur."""


def files() -> list[Path]:
    """Return the files of calls."""
    return sorted(HERE.glob("*.md"))


def rewritten(text: str) -> str:
    """Return a file of calls with what they return now; the current folder holds the files of the world."""
    names, seen = world.names(), set[str]()

    def again(found: re.Match[str]) -> str:
        language, full, call = found.groups()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = command(call) if language == "sh" else python(call, names)
        parts = rendered(made, bool(full)) if isinstance(made, Document) else [f"> {made}"]
        return "\n\n".join([f"```{language}{full or ''}\n{call}\n```", *(_once(part, seen) for part in parts), ""])

    return CALL.sub(again, text).rstrip("\n") + "\n"


def _once(part: str, seen: set[str]) -> str:
    """Return a part with "as above" for each long text that stands above in the file already."""
    if part.startswith(("```", "|", "**", ">")):
        return part
    lines = []
    for line in part.split("\n"):
        label, text = found.groups() if (found := LABELLED.match(line)) else ("", line)
        lines.append(f"{label}(as above)" if text in seen and len(text) > SHORT else line)
        seen.add(text)
    return "\n".join(lines)


def python(call: str, names: dict[str, Any]) -> Document | str:
    """Return the result of an expression, or its error with its type."""
    try:
        return eval(compile(call, "<call>", "eval"), names)  # type: ignore[no-any-return]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def command(call: str) -> Document | str:
    """Return the result of a command, or the last line of its error output."""
    results: list[Document] = []
    run = Command.run

    def kept(*arguments: Any) -> Any:
        results.append(run(*arguments))
        return results[0]

    with patch.object(Command, "run", kept):
        _, _, err = ended(shlex.split(call.replace("\\\n", " "))[1:])
    return results[0] if results else err.rstrip("\n").rpartition("\n")[2]


def rendered(document: Document, full: bool) -> Iterator[str]:
    """Yield the paragraphs of a result."""
    verdict = document.verdict
    yield f"**{document.title} of {document.subject}: {verdict.headline}** ({verdict.outcome})"
    if verdict.reason is not None:
        yield f"Reason: {verdict.reason}"
    if finding := verdict.sentence.removeprefix(verdict.reason or "").strip():
        yield finding
    if document.brief is not None:
        yield "### In plain words"
        yield from (f"{question}: {answer}" for question, answer in document.brief.lines)
    for section in document.sections:
        yield f"### {section.title}"
        for part in section.parts:
            yield from _part(part)
    yield "### Keep in mind"
    yield "\n".join(f"- {caveat.condition}: {caveat.text}" for caveat in document.caveats)
    if full:
        yield "### The summary"
        yield f"```text\n{terminal(document).rstrip()}\n```"
        yield "### The tables of the page"
        yield from tables_of(page(document, {}))


def _part(part: Part) -> Iterator[str]:
    """Yield the texts of a part; of a table only what stands around its cells."""
    if isinstance(part, Facts):
        yield "\n".join(f"- {name}: {text}" for name, text in part.lines)
    elif isinstance(part, Text):
        yield f"{'- ' * part.item}{part.text}"
    elif isinstance(part, Figure):
        yield f"Figure: {part.title}. {part.caption}"
    else:
        heads = [f"{column.group} {column.head}".strip() or "(name)" for column in part.columns]
        groups = [group for group in dict.fromkeys(row.group for row in part.rows) if group]
        under = f"; under {', '.join(groups)}" if groups else ""
        yield "\n".join(filter(None, [part.title, f"Table: {' | '.join(heads)}{under}", part.caption, *part.notes]))


def tables_of(html: str) -> Iterator[str]:
    """Yield each table of a page, with a line for each row."""
    for table in re.findall(r"<table>(.*?)</table>", html, re.DOTALL):
        rows = re.findall(r"<tr.*?</tr>", table, re.DOTALL)
        yield "\n".join(
            "| " + " | ".join(text_of(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)) + " |"
            for row in rows
        )


def text_of(html: str) -> str:
    """Return the text of a page or of a part of one, without its tags."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", html))).strip()
