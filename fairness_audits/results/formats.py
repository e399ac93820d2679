"""Numbers as audits say them in the terminal, on the page and in sentences; and as JSON takes them."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

LEAST_P = 1e-16
"""Smaller p-values are only said to be so."""


def plain(value: Any) -> Any:
    """The value as JSON takes it: arrays as lists, and None where a number is NaN or infinite, which JSON has not."""
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def fixed(decimals: int, sign: str = "") -> Callable[[float], str]:
    """A format with so many decimals; what rounds to nought has no minus sign. ``sign`` as in format strings."""
    return lambda value: f"{round(value, decimals) + 0.0:{sign},.{decimals}f}"


def decimal(value: float) -> str:
    """Four decimals; fewer digits of a number that is large or tiny."""
    return f"{value:.4g}" if abs(value) >= 10 else f"{value:.1e}" if 0 < abs(value) < 5e-5 else f"{value:.4f}"


def factor(value: float | None) -> str:
    """A ratio with three decimals, or as a power of ten where it is huge."""
    if value is None:
        return "undefined"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}" if abs(value) < 1e5 else f"{value:.2e}"


def percent(share: float, decimals: int = 1) -> str:
    """``12.5 %``."""
    return f"{100 * share:.{decimals}f} %"


def level(alpha: float) -> str:
    """``95 %``, the level of an interval."""
    return f"{100 * (1 - alpha):g} %"


def p_text(p: float | None) -> str:
    """A p-value with two significant digits; none is 0, though the smallest are in floating point."""
    if p is None:
        return "-"
    return "< 1e-16" if p < LEAST_P else f"{p:.2g}" if p >= 1e-4 else f"{p:.1e}"


def span(
    ends: Sequence[float | None], text: Callable[[float], str] = decimal, without_ends: str = "no interval"
) -> str:
    """An interval in words: ``0.1000 to 0.2000``; None is an end without a bound."""
    low, high = ends
    if low is None:
        return without_ends if high is None else f"at most {text(high)}"
    return f"at least {text(low)}" if high is None else f"{text(low)} to {text(high)}"


def plural(count: int, what: str) -> str:
    """``1 test``, ``1,200 tests``."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def label_text(name: str, letters: int) -> str:
    """A name of at most so many letters for a figure, where a dollar sign would begin a formula."""
    return (name if len(name) <= letters else f"{name[: letters - 1]}\u2026").replace("$", r"\$")
