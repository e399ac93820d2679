"""Numbers as they are printed: an estimate with its spread, and the text of each."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import binom
from scipy.stats import t as student

MINUS = "\u2212"
DASH = "\u2014"
RAISED = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
SUPERSCRIPTS = {chr(letter): chr(digit) for digit, letter in RAISED.items()}
"""The digit behind each raised character."""

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


@dataclass(frozen=True)
class Estimate:
    """A mean or median over ``n`` repetitions with their spread, a share of ``n``, or an interval's ends.

    What an estimate lacks is NaN (``n`` is 0). ``std`` is the sample standard deviation, with n - 1. A ``text`` is
    printed as it is, in place of the numbers.
    """

    value: float
    std: float = math.nan
    n: int = 0
    low: float = math.nan
    high: float = math.nan
    text: str = ""

    @classmethod
    def mean(cls, values: np.ndarray) -> Estimate:
        """Mean and sample standard deviation of finite values; NaN where there is none."""
        kept = np.asarray(values, float)
        kept = kept[np.isfinite(kept)]
        if not len(kept):
            return cls(math.nan)
        spread = float(kept.std(ddof=1)) if len(kept) > 1 else math.nan
        return cls(float(kept.mean()), spread, len(kept))

    @classmethod
    def median(cls, values: np.ndarray, level: float = 0.95) -> Estimate:
        """Median of the n finite values, with the interval that the sign test keeps; NaN ends for n < 6 at level .95.

        Its ends are the j-th smallest and the j-th largest value, j the most with P(Binomial(n, 1/2) < j) <=
        (1 - level) / 2, so it holds for any distribution.
        """
        kept = np.sort(np.asarray(values, float)[np.isfinite(values)])
        if not len(kept):
            return cls(math.nan)
        j = int(binom.ppf((1 - level) / 2, len(kept), 0.5))
        low, high = (float(kept[j - 1]), float(kept[-j])) if j else (math.nan, math.nan)
        return cls(float(np.median(kept)), n=len(kept), low=low, high=high)

    @classmethod
    def share(cls, values: np.ndarray) -> Estimate:
        """The share of ones among the finite values; a share has no spread of its own."""
        return replace(cls.mean(values), std=math.nan)

    def with_t_interval(self, level: float = 0.95, least: float = -math.inf, most: float = math.inf) -> Estimate:
        """value -+ t_{(1 + level)/2, n-1} std / sqrt(n): the interval for the mean over repetitions; NaN for n < 2.

        What no mean can be, below ``least`` and above ``most``, is left out of it.
        """
        if self.n < 2:
            return self
        half = float(student.ppf((1 + level) / 2, self.n - 1)) * self.std / math.sqrt(self.n)
        return Estimate(self.value, self.std, self.n, max(self.value - half, least), min(self.value + half, most))


def symbols(text: str) -> str:
    """Spell out ``T_n``, ``T~_n``, ``lambda`` and the like with their letters."""
    for pattern, replacement in SYMBOLS:
        text = re.sub(pattern, replacement, text)
    return text


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


def plain(value: float) -> str:
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
