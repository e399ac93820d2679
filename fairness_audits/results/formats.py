"""Formats of numbers as text.

Audits print ASCII characters, which every terminal shows and readers of the JSON can search. The tables of the studies
print a minus sign, a dash for NaN and superscript exponents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fairness_audits.results.estimate import Estimate

MINUS = "\u2212"
DASH = "\u2014"
RAISED = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
SUPERSCRIPTS = {chr(letter): chr(digit) for digit, letter in RAISED.items()}
"""The digit or sign of each superscript character."""
LEAST_P = 1e-16
"""Smaller p-values are printed as below this bound."""


def plain(value: Any) -> Any:
    """Convert a value for JSON: arrays become lists, and NaN and infinite numbers, which JSON lacks, become None."""
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def fixed(decimals: int, sign: str = "") -> Callable[[float], str]:
    """Return a format with fixed decimals; values that round to 0 have no sign. ``sign`` is as in format strings."""
    return lambda value: f"{round(value, decimals) + 0.0:{sign},.{decimals}f}"


def decimal(value: float) -> str:
    """Format a number with four decimals, or with fewer digits if it is large or tiny."""
    if abs(value) < 1e-300:  # the smallest double ends an interval that just excludes 0
        return "0.0000"
    return f"{value:.4g}" if abs(value) >= 10 else f"{value:.1e}" if abs(value) < 5e-5 else f"{value:.4f}"


def signed(value: float) -> str:
    """Format a number as :func:`decimal`, with its sign: ``+0.0606``."""
    return f"{'+' * (value > 0)}{decimal(value)}"


def factor(value: float | None) -> str:
    """Format a ratio with three decimals, one decimal if it is large, or as a power of ten if it is huge."""
    if value is None:
        return "undefined"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}" if abs(value) < 1e5 else f"{value:.2e}"


def size(value: float) -> str:
    """Format a length with three significant digits, or with two if it is small, so that it fits its column."""
    return f"{value:.3g}" if value >= 0.01 else f"{value:.2g}"


def percent(share: float, decimals: int = 1) -> str:
    """Format a share as a percentage: ``12.5 %``."""
    return f"{100 * share:.{decimals}f} %"


def points(difference: float) -> str:
    """Format a difference of rates in percentage points: ``-17.1``; small ones keep two significant digits."""
    number = 100 * difference
    return f"{number:.1f}" if abs(number) >= 0.95 or number == 0 else f"{number:.2g}"


def in_points(margin: float) -> str:
    """Format a margin of rates: ``2 points``, ``1 point``, ``0.5 points``."""
    number = f"{100 * margin:g}"
    return f"{number} point{'' if number == '1' else 's'}"


def level(alpha: float) -> str:
    """Format the level of an interval: ``95 %``."""
    return f"{100 * (1 - alpha):g} %"


def p_text(p: float | None) -> str:
    """Format a p-value with two significant digits; it is never printed as 0, even if it underflowed."""
    if p is None:
        return "-"
    return "< 1e-16" if p < LEAST_P else f"{p:.2g}" if p >= 1e-4 else f"{p:.1e}"


def p_is(p: float | None) -> str:
    """Format a p-value with its name: ``p = 0.031``, ``p < 1e-16``."""
    text = p_text(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def span(
    ends: Sequence[float | None], text: Callable[[float], str] = decimal, without_ends: str = "no interval"
) -> str:
    """Format an interval in words: ``0.1000 to 0.2000``; None is an unbounded end."""
    low, high = ends
    if low is None:
        return without_ends if high is None else f"at most {text(high)}"
    return f"at least {text(low)}" if high is None else f"{text(low)} to {text(high)}"


def as_typed(value: float) -> str:
    """Format a number as people type it, with all its digits: ``0.123456789``, ``1234567``."""
    return repr(float(value)).removesuffix(".0")


def plural(count: int, what: str, many: str = "") -> str:
    """Format a count with its noun: ``1 test``, ``1,200 tests``, and with ``many``: ``2 strata``."""
    return f"{count:,} {what if count == 1 else many or f'{what}s'}"


def sentence(text: str) -> str:
    """Capitalise the first letter: ``no gradient`` becomes ``No gradient``."""
    return text[:1].upper() + text[1:]


def number(value: float | None, decimals: int = 3) -> str:
    """Format ``-0.15149`` as ``\u22120.151``, with digit grouping, powers of ten for huge values and a dash for NaN.

    A value that rounds to zero has no sign.
    """
    if value is None or math.isnan(value):
        return DASH
    if math.isinf(value):
        return ("" if value > 0 else MINUS) + "\u221e"
    if abs(value) >= 1e6 and not float(value).is_integer():
        mantissa, exponent = f"{value:.2e}".split("e")
        return _signed(f"{mantissa} \u00d7 10{_superscript(exponent)}")
    text = f"{value:,.{decimals}f}"
    return _signed(text if float(text.replace(",", "")) != 0 else text.lstrip("-"))


def p_value(p: float) -> str:
    """Format a p-value with three decimals, or as below 0.001."""
    return DASH if math.isnan(p) else "< 0.001" if p < 0.0005 else f"{p:.3f}"


def spread(estimate: Estimate, decimals: int = 3) -> str:
    """Format a mean and its standard deviation with the same number of decimals: ``0.817 \u00b1 0.007``."""
    if math.isnan(estimate.value) or math.isnan(estimate.std):
        return number(estimate.value, decimals)
    return f"{number(estimate.value, decimals)} \u00b1 {number(estimate.std, decimals)}"


def interval(estimate: Estimate, decimals: int = 3) -> str:
    """Format an interval: ``[1.412, 1.908]``."""
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return DASH
    return f"[{number(estimate.low, decimals)}, {number(estimate.high, decimals)}]"


def parameter(value: float) -> str:
    """Format a parameter as people write it: ``0.005``, ``8,000`` for ``8000.0``, a power of ten for ``1e-05``."""
    if not math.isfinite(value):
        return number(value)
    if value != 0 and abs(value) < 1e-3:
        mantissa, exponent = f"{value:.6e}".split("e")
        power = f"10{_superscript(exponent)}"
        return power if float(mantissa) == 1 else f"{_signed(f'{float(mantissa):g}')} \u00d7 {power}"
    if float(value).is_integer():
        return _signed(f"{int(value):,}")
    return _signed(f"{value:.6g}")


def _signed(text: str) -> str:
    return text.replace("-", MINUS)


def _superscript(exponent: str) -> str:
    return str(int(exponent)).translate(RAISED)
