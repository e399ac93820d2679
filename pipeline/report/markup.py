"""The same plain text in Markdown, LaTeX and HTML: special characters escaped, the letters of formulas set as such."""

import re
from typing import Any

from fairness_audits.results.numbers import SUPERSCRIPTS

LATEX_CHARACTERS: dict[str, Any] = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
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


def latex(text: str) -> str:
    """Text for LaTeX. Every character that LaTeX would read as a command is escaped."""
    text = text.translate(str.maketrans(LATEX_CHARACTERS))
    # A letter and its index are one formula.
    text = re.sub("([A-Z])(\u0303?)\\$_n\\$", lambda m: f"$\\tilde{{{m[1]}}}_n$" if m[2] else f"${m[1]}_n$", text)
    # Neighbouring formulas are one formula: 10^{-}$ $^{4} would be set with a gap.
    return re.sub(r"(?<!\\)\$\$", "", text).replace("}^{", "")


def markdown(text: str) -> str:
    """Text for a Markdown table: what would open a cell, emphasis or a tag is escaped."""
    return re.sub(r"([\\|*_`<>])", r"\\\1", text).replace("\n", " ")


def rst(text: str) -> str:
    """Text for reStructuredText that Jinja reads first: what would open a reference or an expression is escaped."""
    return re.sub(r"([\\*_`|{])", r"\\\1", text)
