"""One-sentence explanations of the pages' terms, shown as tooltips."""

import re
from html import escape

from markupsafe import Markup

TERMS = {
    "adjusted p": "A p-value made larger because several questions were asked: the chance of at least one false alarm.",
    "p-value": "How often chance alone would make a difference as large as this, if in truth there were none.",
    "interval": "The range of values that the data do not contradict; it misses the truth as often as its level says.",
    "noise floor": "How much of the same appears between groups that are alike, because people were dealt at random.",
    "flipset": "The people who are decided otherwise than their counterparts.",
    "counterpart": "The point or person of the other group that stands where this person stands in their own group.",
    "standard deviation": "The usual distance of a value from the average of all people.",
    "transparency report": "In which features the people who flip differ from their counterparts.",
    "Kolmogorov-Smirnov distance": "The largest difference of two distributions: 0 if they are alike, 1 if apart.",
    "balanced accuracy": "The share of right decisions, averaged over the true classes; guessing has one half of two.",
    "null hypothesis": "What a test assumes until the data speak against it.",
    "AUC": "The chance that the score of a positive person is above that of a negative one; guessing has one half.",
    "true positive rate": "The share of truly positive people who are decided positively.",
    "false positive rate": "The share of truly negative people who are decided positively.",
    "selection rate": "The share of people who are decided positively.",
    "permutation": "Dealing people into groups at random, to see which differences chance makes.",
    "bootstrap": "Drawing people again from those that there are, to see how much a number depends on who they are.",
    "decision boundary": "Where the model changes its decision.",
    "loss ratio": "How many times larger the model's error is after permitted changes of a person.",
    "fair metric": "The rule that says which people are alike for this decision.",
}
"""The meaning of each term, by the form that sentences use."""
PATTERN = re.compile(
    r"(?<![\w-])(" + "|".join(re.escape(term) for term in sorted(TERMS, key=len, reverse=True)) + r")(?=s?\b(?!-))",
    re.IGNORECASE,
)
LOWER = {term.lower(): meaning for term, meaning in TERMS.items()}


def explained(html: str) -> Markup:
    """Escape the text and show the meaning of each term on hover at its first occurrence."""
    said: set[str] = set()

    def marked(found: re.Match[str]) -> str:
        term = found[0].lower()
        if term in said:
            return found[0]
        said.add(term)
        return f'<abbr title="{escape(LOWER[term])}">{found[0]}</abbr>'

    return Markup(PATTERN.sub(marked, str(html)))
