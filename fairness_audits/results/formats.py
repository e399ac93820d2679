"""Numbers as text.

Audits print plain characters, which a terminal shows and JSON's readers search. The tables of the studies print a minus
sign, a dash for NaN and raised exponents.
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
"""The digit behind each raised character."""
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


def sentence(text: str) -> str:
    """``no gradient`` -> ``No gradient``."""
    return text[:1].upper() + text[1:]


def number(value: float | None, decimals: int = 3) -> str:
    """``-0.15149`` -> ``\u22120.151``. Whole numbers are grouped, very large ones get a power of ten, NaN is a dash.

    A value that rounds to zero loses its sign: there is no minus nought.
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
    """Three decimals; what is smaller than they can show is said to be."""
    return DASH if math.isnan(p) else "< 0.001" if p < 0.0005 else f"{p:.3f}"


def spread(estimate: Estimate, decimals: int = 3) -> str:
    """``0.817 \u00b1 0.007``: mean and standard deviation with the same number of decimals."""
    if math.isnan(estimate.value) or math.isnan(estimate.std):
        return number(estimate.value, decimals)
    return f"{number(estimate.value, decimals)} \u00b1 {number(estimate.std, decimals)}"


def interval(estimate: Estimate, decimals: int = 3) -> str:
    """``[1.412, 1.908]``."""
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return DASH
    return f"[{number(estimate.low, decimals)}, {number(estimate.high, decimals)}]"


def parameter(value: float) -> str:
    """A parameter as people write it: ``0.005``, ``8,000`` for ``8000.0``, a power of ten for ``1e-05``."""
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
