"""One-sentence explanations of the terms on a page, from ``texts/glossary.yaml``."""

import re
from html import escape

from markupsafe import Markup

from fairness_audits.text_files import texts_of

TERMS: dict[str, str] = texts_of("glossary")["pages"]
"""The meaning of each term, by the form that sentences use."""
PATTERN = re.compile(
    r"(?<![\w-])(" + "|".join(re.escape(term) for term in sorted(TERMS, key=len, reverse=True)) + r")(?=s?\b(?!-))",
    re.IGNORECASE,
)
NAMES = {term.lower(): term for term in TERMS}


def explained(html: str, seen: set[str]) -> Markup:
    """Escape the text, and explain each term that is not among those ``seen``, to which it is added.

    The explanation shows on hover, and at the foot of the screen while the term has the focus, which a tap gives it.
    """

    def tooltip(found: re.Match[str]) -> str:
        term = NAMES[found[0].lower()]
        if term in seen:
            return found[0]
        seen.add(term)
        return f'<abbr tabindex="0" title="{escape(TERMS[term])}">{found[0]}</abbr>'

    return Markup(PATTERN.sub(tooltip, str(html)))
