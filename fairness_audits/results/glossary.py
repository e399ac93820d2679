"""One-sentence explanations of the pages' terms, shown as tooltips."""

import re
from html import escape

from markupsafe import Markup

TERMS = {
    "adjusted p": (
        "A p-value that is corrected for the number of tests. With the default correction and level 0.05, the chance "
        "of any false rejection is at most 5 %."
    ),
    "p-value": "The probability of a result at least this extreme if the null hypothesis were true.",
    "interval": (
        "The range of values that are consistent with the data. A 95 % interval misses the true value in 5 % of "
        "samples."
    ),
    "confidence sequence": (
        "The range of values that are consistent with the data so far. With probability 95 %, a 95 % sequence contains "
        "the true value at all times, however often one looks."
    ),
    "e-value": (
        "The evidence against a null hypothesis. If it were true, the e-value would ever reach 20 in at most 5 % of "
        "cases."
    ),
    "noise floor": "The result for groups that are alike because people were assigned to them at random.",
    "flipset": "The people whose decision differs from that of their counterparts.",
    "counterpart": (
        "The point or person of the other group that corresponds to this person: it holds the same place in its own "
        "group."
    ),
    "standard deviation": "The typical distance of a value from the average of all people.",
    "transparency report": "The list of features in which people who flip differ from their counterparts.",
    "Kolmogorov-Smirnov distance": (
        "The largest difference between two distribution functions: 0 for equal distributions, 1 for distributions "
        "without overlap."
    ),
    "balanced accuracy": (
        "The share of correct decisions, averaged over the true classes. Guessing between two classes scores one half."
    ),
    "null hypothesis": "The statement that a test assumes until the data contradict it.",
    "AUC": (
        "The probability that a random positive has a higher score than a random negative. Guessing scores one half."
    ),
    "true positive rate": "The share of positives (true class 1) who get a positive decision.",
    "false positive rate": "The share of negatives (true class 0) who get a positive decision.",
    "selection rate": "The share of people who get a positive decision.",
    "permutation": "Random reassignment of people to groups, which shows the differences that arise by chance.",
    "bootstrap": (
        "Resampling of the people with replacement, which shows how much a number varies from sample to sample."
    ),
    "decision boundary": "The set of points where the model's decision changes.",
    "loss ratio": "The model's loss on a comparable individual, divided by its loss on the person.",
    "fair metric": "The distance that defines which people are alike for this decision.",
}
"""The meaning of each term, by the form that sentences use."""
PATTERN = re.compile(
    r"(?<![\w-])(" + "|".join(re.escape(term) for term in sorted(TERMS, key=len, reverse=True)) + r")(?=s?\b(?!-))",
    re.IGNORECASE,
)
LOWER = {term.lower(): meaning for term, meaning in TERMS.items()}


def explained(html: str) -> Markup:
    """Escape the text and show the meaning of each term on hover at its first occurrence."""
    seen: set[str] = set()

    def tooltip(found: re.Match[str]) -> str:
        term = found[0].lower()
        if term in seen:
            return found[0]
        seen.add(term)
        return f'<abbr title="{escape(LOWER[term])}">{found[0]}</abbr>'

    return Markup(PATTERN.sub(tooltip, str(html)))
