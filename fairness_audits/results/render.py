"""Renderings of a result: text for the terminal, a self-contained page, JSON, CSV, and a folder of files."""

from __future__ import annotations

import base64
import json
import platform
import textwrap
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

from fairness_audits.files import folder_written, save_figure, save_text
from fairness_audits.messages import shown
from fairness_audits.results import markup, typeset
from fairness_audits.results.document import UNNAMED, Document, Facts, Heading, Part, Section, Text, can_draw
from fairness_audits.results.formats import DASH
from fairness_audits.results.glossary import TERMS, explained
from fairness_audits.results.table import Table
from fairness_audits.results.typeset import WIDTH
from fairness_audits.text_files import texts_of
from fairness_audits.version import DOCUMENTATION, __version__

if TYPE_CHECKING:
    from jinja2 import Template


LEGAL = texts_of("shared")["legal"]
"""What an outcome does not mean legally."""
KNOWN_AS = {"sklearn": "scikit-learn"}
"""The names of packages that are imported under another one."""


def terminal(document: Document) -> str:
    """Return the verdict, its evidence and the caveats as text."""
    verdict = document.verdict
    parts = [
        f"{document.title} of {document.subject}",
        paragraph(f"{verdict.headline}. {verdict.sentence}"),
        *map(_section, document.sections),
        "\n".join(["Keep in mind", *(paragraph(caveat.text, "  - ", "    ") for caveat in document.caveats)]),
    ]
    return shown("\n\n".join(part for part in parts if part)) + "\n"


def model_card(document: Document) -> str:
    """Return the verdict, the answers in plain words and the caveats as a section of Markdown."""
    answers = document.brief.lines if document.brief else ()
    stated = ((f"{document.verdict.headline.capitalize()}.", document.verdict.sentence), *answers)
    parts = (
        markup.markdown(f"## {document.title} of {document.subject}"),
        *(f"**{markup.markdown(name)}** {markup.markdown(text)}" for name, text in stated),
        "\n".join(f"- {markup.markdown(caveat.text)}" for caveat in document.caveats),
        *([f"This result decides no legal question. {LEGAL[document.verdict.outcome]}"] if document.brief else []),
    )
    return "\n\n".join(parts) + "\n"


def paragraph(text: str, first: str = "  ", later: str | None = None) -> str:
    """Wrap text without breaking at hyphens, because column names may contain them."""
    return textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=first if later is None else later, break_on_hyphens=False
    )


def _section(section: Section) -> str:
    """Return a title and its parts, with empty lines around tables; nothing if there are no parts."""
    lines: list[str] = []
    for kind, parts in groupby(section.parts, key=lambda part: isinstance(part, Table)):
        for part in parts:
            shown = list(_lines(part))
            lines += ["", *shown] if shown and lines and kind else shown
        lines += [""] if lines and kind else []
    return "\n".join([section.title, *lines]).rstrip() if lines else ""


def _lines(part: Part) -> Iterator[str]:
    if isinstance(part, Facts):
        yield from (paragraph(text, f"  {name:7} ", " " * 10) for name, text in part.lines)
    elif isinstance(part, Text):
        yield paragraph(part.text, "  ", "      " if part.item else "  ")
    elif isinstance(part, Table):
        yield from typeset.terminal(part)


def page(document: Document, pictures: Mapping[str, bytes], heading: Heading = UNNAMED) -> str:
    """Return the page; ``pictures`` holds the PNG of each figure by its stem, or nothing without Matplotlib."""
    data, seen = document.facts.get("data", {}), set[str]()
    return template(
        "audit.html",
        typeset=markup.typeset,
        explained=lambda text: explained(markup.typeset(text), seen),
        head=lambda columns: Markup(typeset.html_head(columns, markup.typeset)),
        row=lambda cells, columns: Markup(typeset.html_row(columns, cells, _cell)),
    ).render(
        document=document,
        heading=heading,
        terms=lambda: sorted(((term, TERMS[term]) for term in seen), key=lambda term: term[0].lower()),
        rows=data.get("rows", document.facts.get("rows")),
        audited=data.get("audited"),
        documentation=DOCUMENTATION,
        legal=LEGAL,
        kind=lambda part: type(part).__name__,
        groups=typeset.groups_of,
        options="" if document.settings is None else document.settings.as_yaml(document.audit),
        versions=", ".join(f"{name} {version}" for name, version in versions(document).items()),
        files=", ".join(document.files().values()),
        install="pip install 'fairness-audits[figures]'",
        pictures={stem: base64.b64encode(png).decode("ascii") for stem, png in pictures.items()},
    )


def template(name: str, package: str = "fairness_audits.results", **filters: Callable[..., Any]) -> Template:
    """Load the template of a page from a package; it may include templates of this package, such as the style sheet."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("fairness_audits.results")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    return environment.get_template(name)


def _cell(text: str) -> str:
    return DASH if text == "-" else markup.typeset(text)


def content(document: Document, in_folder: bool) -> dict[str, Any]:
    """Return the content of the JSON in reading order.

    If ``in_folder`` is true, the JSON names the files of the folder.
    """
    verdict = document.verdict
    return {
        "audit": document.audit,
        "schema": document.schema,
        "verdict": {
            "outcome": verdict.outcome,
            "reason": verdict.reason,
            **verdict.facts,
            "sentence": verdict.sentence,
        },
        "caveats": [caveat.text for caveat in document.caveats],
        "options": {} if document.settings is None else document.settings.stated,
        **document.facts,
        "files": document.files() if in_folder else None,
        "versions": versions(document),
    }


def json_text(document: Document, in_folder: bool) -> str:
    """Return the JSON. Raises ValueError for NaN and infinity, which JSON does not support."""
    return json.dumps(content(document, in_folder), indent=2, allow_nan=False) + "\n"


def csv_texts(document: Document) -> dict[str, str]:
    return {name: table.to_csv(index=False, lineterminator="\n") for name, table in document.tables.items()}


def versions(document: Document) -> dict[str, str]:
    """Return the versions of this program, of Python and of the result's libraries, by the names people know."""
    libraries = {KNOWN_AS.get(name, name): str(import_module(name).__version__) for name in document.libraries}
    return {"fairness_audits": __version__, "python": platform.python_version(), **libraries}


def junit_text(document: Document) -> str:
    """Return the verdict as JUnit XML: one test case, which fails unless the outcome is "not rejected"."""
    verdict = document.verdict
    failed = verdict.outcome != "not rejected"
    suite = Element("testsuite", name="fairness-audits", tests="1", failures=str(int(failed)), errors="0")
    case = SubElement(suite, "testcase", classname=f"fairness-audits.{document.audit}", name=shown(document.subject))
    if failed:
        failure = SubElement(case, "failure", type=verdict.outcome, message=shown(verdict.headline))
        failure.text = shown(verdict.sentence)
    else:
        SubElement(case, "system-out").text = shown(verdict.sentence)
    return tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def deliver(
    document: Document,
    folder: Path | None,
    json_file: Path | None,
    junit_file: Path | None = None,
    heading: Heading = UNNAMED,
) -> list[Path]:
    """Write a folder, a JSON file, a JUnit file or several of these, and return the paths.

    The folder gets the JSON, the page, tables, figures (if Matplotlib is installed), and the options as YAML. Other
    files of an earlier audit are removed from it.
    """
    written = []
    text = json_text(document, folder is not None)
    if folder is not None:
        files = document.files()
        stale = left_by(folder) - set(files.values())
        with folder_written(folder) as temporary:
            save_text(text, temporary / files["result"])
            if document.settings is not None:
                save_text(document.settings.as_yaml(document.audit), temporary / files["options"])
            for name, table in csv_texts(document).items():
                save_text(table, temporary / files[name])
            pictures = _drawn(document, temporary) if can_draw() else {}
            save_text(page(document, pictures, heading), temporary / files["page"])
        for name in stale:
            (folder / name).unlink(missing_ok=True)
        written += [folder / name for name in files.values()]
    for path, made in ((json_file, text), (junit_file, junit_text(document))):
        if path is not None:
            save_text(made, path)
            written.append(path)
    return written


def _drawn(document: Document, folder: Path) -> dict[str, bytes]:
    """Save the figures in the folder, and return the PNG of each by its stem."""
    from fairness_audits.results.style import fix_layout, paper

    with paper():
        for figure in document.figures():
            drawn = figure.draw()
            fix_layout(drawn)
            save_figure(drawn, folder / figure.stem)
    return {figure.stem: (folder / f"{figure.stem}.png").read_bytes() for figure in document.figures()}


def left_by(folder: Path) -> set[str]:
    """Return the names of the files that an earlier audit wrote into the folder, as its JSON lists them."""
    try:
        files = json.loads((folder / "audit.json").read_text(encoding="utf-8"))["files"]
        return {str(name) for name in files.values() if Path(name).name == name}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()
