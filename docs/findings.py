"""Tables of claims and published numbers for the documentation, made from data/reference when the site is built."""

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

from fairness_audits.results.estimate import Estimate
from fairness_audits.text_files import texts_of
from pipeline.report.claims import OUTCOMES
from pipeline.report.comparison import AS_STATED, LEVEL
from pipeline.report.rules import RULES

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "data" / "reference"
STUDIES = {
    "individual_fairness": "Individual fairness",
    "fliptest": "FlipTest",
    "permutation_tests": "Permutation tests",
    "robustness_bias": "Robustness bias",
    "agreement": "Do the audits agree?",
}
"""The headings of the page on findings."""
PLACEHOLDER = re.compile(r"^\{\{ (claims|counts|decided|numbers|terms) (\w+) \}\}$", re.MULTILINE)


def read(name: str, study: str) -> list[dict[str, str]]:
    """Return the rows of a list in data/reference that belong to a study."""
    with (REFERENCE / name).open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["study"] == study]


def table(head: str, lines: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table from its head and the cells of its lines."""
    return "\n".join([head, *(f"| {' | '.join(line)} |" for line in lines)])


def plain(text: str) -> str:
    """Return the text with Markdown's special characters escaped, and the statistic T_n as a formula."""
    return (
        re.sub(r"([\\`*_{}\[\]<>|$~#])", r"\\\1", text)
        .replace(r"T\~\_n", r"$\widetilde{T_n}$")
        .replace(r"T\_n", "$T_n$")
    )


def tally(study: str) -> str:
    """Return how many claims of a study have each outcome: "6 confirmed, 4 undecided"."""
    counts = Counter(row["outcome"] for row in read("claims.csv", study))
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])


def decided(_name: str) -> Iterator[str]:
    """Yield a table that counts the claims of each study by outcome."""
    lines = []
    for study, title in STUDIES.items():
        counts = Counter(row["outcome"] for row in read("claims.csv", study))
        lines.append(
            (f"[{title}](#{title.lower().replace(' ', '-').rstrip('?')})", *(str(counts[one]) for one in OUTCOMES))
        )
    yield table(f"| claims of | {' | '.join(OUTCOMES)} |\n|---|{'--:|' * len(OUTCOMES)}", lines)


def claims(study: str) -> Iterator[str]:
    """Yield the claims of a study, decided ones first, each with its source, its outcome and its numbers."""
    listed = yaml.safe_load((ROOT / "data" / "published" / "claims" / f"{study}.yaml").read_text(encoding="utf-8"))
    sources = {claim["says"]: claim["source"] for claim in listed}
    rows = sorted(read("claims.csv", study), key=lambda row: OUTCOMES.index(row["outcome"]))
    yield f"{tally(study)}.".capitalize()
    lines = [
        (plain(row["claim"]), plain(sources[row["claim"]]), "check: " * (row["of"] == "check") + row["outcome"])
        for row in rows
    ]
    yield table("| claim | source | outcome |\n|---|---|---|", lines)
    yield "<details>\n<summary>The numbers behind each outcome</summary>"
    for row in rows:
        parts = "\n".join(f"- {plain(part)}" for part in row["numbers"].split("; "))
        yield f"**{plain(row['claim'])}** *{row['outcome'].capitalize()}.*\n\n{said(row)}\n\n{parts}"
    yield "</details>"


def said(row: dict[str, str]) -> str:
    """Return what the intervals of a claim are for, the settings that are ours, and how its rule was changed."""
    text = "; ".join(filter(None, (row["about"], row["settings"], row["changed"])))
    return f"{plain(text[0].upper() + text[1:])}."


def counts(study: str) -> Iterator[str]:
    """Yield a table that counts the published numbers of each table and figure by verdict."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in sorted(read("verdicts.csv", study), key=natural):
        found[named(row["artefact"])][row["verdict"]] += 1
    lines = [
        (where, ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
        for where, verdicts in found.items()
    ]
    yield table("| where | numbers by verdict |\n|---|---|", lines)


def numbers(study: str) -> Iterator[str]:
    """Yield a table of all published numbers of a study, with our numbers."""
    lines = [
        (
            named(row["artefact"]),
            f"{plain(row['row'])}, {plain(row['column'])}" + f" *({row['reading']})*" * (row["reading"] != AS_STATED),
            spread(row["published"], row["published_std"]),
            spread(row["ours"], row["our_std"]),
            f"{row['verdict']}{detectable(row)}",
        )
        for row in sorted(read("verdicts.csv", study), key=natural)
    ]
    yield table("| where | number | published | ours | verdict |\n|---|---|--:|--:|---|", lines)


def detectable(row: dict[str, str]) -> str:
    """Return the smallest difference that the check of a consistent number would have detected: " (detects ±12)"."""
    if row["verdict"] != "consistent":
        return ""
    published, ours = (
        Estimate(float(row[side]), float(row[f"{its}_std"] or 0), int(float(row[f"{its}_n"] or 0)))
        for side, its in (("published", "published"), ("ours", "our"))
    )
    rule = RULES["proportion" if published.n else "run"]
    found = rule.detectable(published, ours, 0, 1 - LEVEL)
    return f" (detects ±{float(f'{found:.3g}'):g})"


def named(artefact: str) -> str:
    """Return the readable name of an artefact: "Table 1"."""
    return artefact.replace("_", " ").capitalize()


def natural(row: dict[str, str]) -> tuple[str, int]:
    """Return a key that sorts figure_2 before figure_10."""
    name, _, number = row["artefact"].partition("_")
    return name, int(number or 0)


def spread(value: str, std: str) -> str:
    """Return a number to four digits, with its standard deviation in brackets."""
    return " ".join(text.format(float(one)) for text, one in (("{:.4g}", value), ("({:.2g})", std)) if one)


def terms(_name: str) -> Iterator[str]:
    """Yield the glossary of the audits, which pages of results use as well."""
    found = {term: meaning for part in texts_of("glossary").values() for term, meaning in part.items()}
    entries = (f"{term}\n  {found[term]}" for term in sorted(found, key=str.lower))
    yield "```{glossary}\n" + "\n\n".join(entries) + "\n```"


MADE = {"claims": claims, "counts": counts, "decided": decided, "numbers": numbers, "terms": terms}


def filled(text: str) -> str:
    """Return the text with each placeholder line, such as ``{{ claims fliptest }}``, replaced by its content."""
    return PLACEHOLDER.sub(lambda match: "\n\n".join(MADE[match[1]](match[2])), text)
