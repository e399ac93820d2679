"""Conversion of plain text to Markdown, LaTeX, HTML, reStructuredText and matplotlib, with escapes and formulas."""

import re
from html import escape
from typing import Any

from markupsafe import Markup

from fairness_audits.results.formats import MINUS, SUPERSCRIPTS

SYMBOLS = (
    (r"\b([A-Z])~_n\b", "\\1\u0303\u2099"),
    (r"\b([A-Z])_n\b", "\\1\u2099"),
    (r"\btheta_1\b", "\u03b8\u2081"),
    (r"\btheta_2\b", "\u03b8\u2082"),
    (r"(?<![.\w])lambda\b", "\u03bb"),
    (r"(?<![.\w])delta\b", "\u03b4"),
    (r"(?<![.\w])alpha\b", "\u03b1"),
    (r"\beta_t\b", "\u03b7\u209c"),
    (r"(?<![.\w])eta\b", "\u03b7"),
    (r"(?<![.\w])epsilon\b", "\u03b5"),
)
NEGATIVE = re.compile(r"(?<![\w.)-])-(?=[\d.])")
"""Pattern of a minus sign, as opposed to a hyphen within a word or between numbers."""
STATISTIC = re.compile(r"\b([A-Z])_([nP])\b")
LATEX_CHARACTERS: dict[str, Any] = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\u00b1": r"$\pm$",
    "\u2212": r"$-$",
    "\u2013": "--",
    "\u2014": "---",
    "\u00d7": r"$\times$",
    "\u00b7": r"$\cdot$",
    "\u00b0": r"$^\circ$",
    "\u221e": r"$\infty$",
    "\u2264": r"$\le$",
    "\u2265": r"$\ge$",
    "\u2192": r"$\to$",
    "\u2026": r"\dots{}",
    "\u221a": r"$\surd$",
    "\u2099": r"$_n$",
    "\u209c": r"$_t$",
}
GREEK = {
    "\u03b1": "alpha",
    "\u03b4": "delta",
    "\u03b5": "epsilon",
    "\u03b7": "eta",
    "\u03b8": "theta",
    "\u03bb": "lambda",
    "\u03c3": "sigma",
}
SUBSCRIPTS = {chr(0x2080 + digit): str(digit) for digit in range(10)}
LATEX_CHARACTERS |= {letter: f"$\\{name}$" for letter, name in GREEK.items()}
LATEX_CHARACTERS |= {letter: f"$_{digit}$" for letter, digit in SUBSCRIPTS.items()}
LATEX_CHARACTERS |= {letter: f"$^{{{digit}}}$" for letter, digit in SUPERSCRIPTS.items()}


def symbols(text: str) -> str:
    """Replace names such as ``T_n``, ``T~_n`` and ``lambda`` by their symbols."""
    for pattern, replacement in SYMBOLS:
        text = re.sub(pattern, replacement, text)
    return text


def latex(text: str) -> str:
    """Return text for LaTeX, with all special characters escaped."""
    text = text.translate(str.maketrans(LATEX_CHARACTERS))
    # Put a letter and its index into one formula.
    text = re.sub("([A-Z])(\u0303?)\\$_n\\$", lambda m: f"$\\tilde{{{m[1]}}}_n$" if m[2] else f"${m[1]}_n$", text)
    # Merge adjacent formulas: LaTeX would set 10^{-}$ $^{4} with a gap.
    return re.sub(r"(?<!\\)\$\$", "", text).replace("}^{", "")


def markdown(text: str) -> str:
    """Return text for a Markdown table, with the characters of cells, emphasis and tags escaped."""
    return re.sub(r"([\\|*_`<>])", r"\\\1", text).replace("\n", " ")


def rst(text: str) -> str:
    """Return text for reStructuredText rendered by Jinja, with the characters of both markups escaped."""
    return re.sub(r"([\\*_`|{])", r"\\\1", text)


def typeset(text: str) -> Markup:
    """Return escaped HTML with minus signs and the indices of statistics."""
    safe = NEGATIVE.sub(MINUS, escape(str(text)))
    return Markup(STATISTIC.sub(r"\1<sub>\2</sub>", safe))


def raised(text: str) -> str:
    """Write superscripts as formulas, because the font has no superscript characters."""
    runs = re.compile("[" + "".join(SUPERSCRIPTS) + "]+")
    return runs.sub(lambda run: "$^{" + "".join(SUPERSCRIPTS[character] for character in run[0]) + "}$", text)


def label_text(name: str, letters: int) -> str:
    """Wrap a name for a figure at this number of letters, if possible after a space or a mark as in ``race=White``.

    Dollar signs are escaped, because they would start a formula.
    """
    pieces = [name]
    for breaks in (r"(?<=[\s=])", r"(?<=[_/-])", r"(?<=.)"):
        pieces = [
            part for piece in pieces for part in (re.split(breaks, piece) if len(piece.rstrip()) > letters else [piece])
        ]
    lines = [""]
    for piece in pieces:
        if len(lines[-1]) + len(piece.rstrip()) > letters:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.strip() for line in lines if line.strip()).replace("$", r"\$")
