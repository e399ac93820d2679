"""Sphinx configuration of the documentation: `make docs` builds it into docs/_build/html."""

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from docs import findings  # noqa: E402
from fairness_audits import __version__  # noqa: E402

project = "fairness-audits"
author = "the project's authors"
version = release = __version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
exclude_patterns = ["_build"]
nitpicky = True

myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3

highlight_language = "none"

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "Fairness audits"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "header_links_before_dropdown": 5,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_end": [],
}
html_sidebars: dict[str, list[str]] = {page: [] for page in ("getting_started", "installation", "tutorial")}
html_show_sourcelink = False
html_math_renderer = "mathml"


def mathml(formula: str, as_block: bool = False) -> str:
    """Return a formula as MathML. Turn apostrophes into primes, and keep delimiters at the size of one letter."""
    found = str(tex2mathml(formula.replace("'", r"^\prime "), as_block=as_block))
    for pattern, attributes in (
        (r'<mo class="mathopen">([|‖])', 'form="prefix"'),
        (r"<mo>([|‖])", 'form="postfix"'),
        (r"<mo>([{}])", ""),
    ):
        found = re.sub(pattern, rf'<mo {attributes} stretchy="false">\1', found)
    return found


def inline_math(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula as MathML, which needs no scripts and no network access."""
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def display_math(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a displayed formula as MathML."""
    formula = mathml(node.astext(), as_block=True)
    translator.body.append(f'<div class="math notranslate nohighlight">{formula}</div>\n')
    raise nodes.SkipNode


def insert_findings(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace the placeholders of pages by tables made from data/reference and by the terms of the glossary."""
    if docname in ("findings", "glossary", "published_numbers"):
        source[0] = findings.filled(source[0])


def escape_help(_app: Sphinx, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    """Escape text such as ``|T|`` or ``race_,job_`` in options' help texts, which reStructuredText reads as markup."""
    for number, line in enumerate(lines):
        if "`" not in line and ">>>" not in line and ".. math" not in line:
            lines[number] = re.sub(r"(?<!\w)(\|)(?=\w+\|)|(?<=\w)(_)(?![\w{])", r"\\\1\2", line)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the MathML renderer and the generated parts of pages."""
    app.add_html_math_renderer("mathml", (inline_math, None), (display_math, None))
    app.connect("source-read", insert_findings)
    # Run before numpydoc, which processes the same lines at priority 500.
    app.connect("autodoc-process-docstring", escape_help, priority=400)
    return {"parallel_read_safe": True}
