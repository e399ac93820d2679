"""How often a watch errs in six years, and how many more rows it needs than a single test.

    python benchmarks/watch.py                        # 2,000 watches of 312 weeks: one to two minutes
    python benchmarks/watch.py --watches 200          # a rough answer in seconds

Each watch has 312 weekly batches of 500 people, 30 % of them women, and compares selection rates at level 0.05. The
first table holds the shares of watches of a fair model that ever go wrong: a normal test of each week's rows, a normal
test of all rows so far in each week, the e-value, and the confidence sequences of the difference and of both rates.
In the second row of the table, the rates and the share of women change over time; the rates of both groups stay equal
in each week.

The second table is about an unfair model. The single test is the two-sided normal test of equal rates, planned for a
power of 80 %. The watch stops in the first week in which it shows the difference. Beside it stands the safe test for
2x2 tables of Turner, Ly and Grünwald (2024), which bets on the rates of the earlier weeks. The tables are Markdown, and
the same seed gives the same numbers.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri

from fairness_audits.audits.watch.core import contrasted, log_gains, log_mean, watched

Array = np.ndarray
WEEKS, PEOPLE, WOMEN, RATE, ALPHA, POWER = 312, 500, 0.3, 0.25, 0.05, 0.8
AT_ONCE = 100


def simulated(watches: int, rates: Array, share: Array, seed: int) -> Iterator[tuple[Array, Array]]:
    """Yield events and trials (watches, weeks, 2) of women and men from rates (weeks, 2) and shares (weeks,)."""
    rng = np.random.default_rng(seed)
    for first in range(0, watches, AT_ONCE):
        women = rng.binomial(PEOPLE, share, (min(AT_ONCE, watches - first), WEEKS))
        trials = np.stack([women, PEOPLE - women], axis=-1)
        yield rng.binomial(trials, rates), trials


def z_test(events: Array, trials: Array) -> Array:
    """Return whether the normal test of equal rates (..., 2) rejects."""
    rate, pooled = events / trials, events.sum(axis=-1) / trials.sum(axis=-1)
    variance = pooled * (1 - pooled) * (1 / trials).sum(axis=-1)
    return np.abs(rate[..., 0] - rate[..., 1]) > -ndtri(ALPHA / 2) * np.sqrt(variance)


def ever(events: Array, trials: Array, rates: Array) -> Array:
    """Return for each error (rows) and watch whether it ever occurs."""
    found = watched(events, trials, ALPHA)
    weight = trials.prod(axis=-1) / trials.sum(axis=-1)
    truth = np.cumsum(weight[..., None] * rates, axis=1) / np.cumsum(weight, axis=1)[..., None]
    outside = [(one < s.low) | (one > s.high) for one, s in ((truth, found.rates), (0.0, found.difference))]
    wrong = [
        z_test(events, trials),
        z_test(np.cumsum(events, axis=1), np.cumsum(trials, axis=1)),
        found.log_e >= -np.log(ALPHA),
        outside[1],
        outside[0][..., 0],
        outside[0][..., 1],
    ]
    return np.stack([one.any(axis=1) for one in wrong])


def errors(watches: int, rates: Array, share: Array) -> str:
    """Return the shares of watches of a fair model with each error, as cells of a table."""
    each = [ever(events, trials, rates) for events, trials in simulated(watches, rates, share, seed=1)]
    return " | ".join(f"{100 * one:.1f} %" for one in np.concatenate(each, axis=1).mean(axis=1))


def safe_test(events: Array, trials: Array) -> Array:
    """Return the logarithm of the safe test with a block for each week and the beta prior that its authors advise."""
    before, of = np.cumsum(events, axis=1) - events, np.cumsum(trials, axis=1) - trials
    rate = (before + 0.18) / (of + 0.36)
    both = (trials * rate).sum(axis=-1, keepdims=True) / trials.sum(axis=-1, keepdims=True)
    block = events * np.log(rate / both) + (trials - events) * np.log((1 - rate) / (1 - both))
    return np.cumsum(block.sum(axis=-1), axis=1)


def stopped(watches: int, gap: float) -> Array:
    """Return the weeks in which the watch and the safe test show a gap (2, watches); infinite if they do not."""
    rates = np.tile([RATE - gap, RATE], (WEEKS, 1))
    weeks = []
    for events, trials in simulated(watches, rates, np.full(WEEKS, WOMEN), seed=2):
        evidence = np.stack([log_mean(contrasted(log_gains(events, trials))), safe_test(events, trials)])
        over = evidence >= -np.log(ALPHA)
        weeks.append(np.where(over.any(axis=-1), over.argmax(axis=-1) + 1.0, np.inf))
    return np.concatenate(weeks, axis=1)


def single_test(gap: float) -> float:
    """Return the rows that the single test needs."""
    rate, share = np.array([RATE - gap, RATE]), np.array([WOMEN, 1 - WOMEN])
    return float((ndtri(1 - ALPHA / 2) + ndtri(POWER)) ** 2 * (rate * (1 - rate) / share).sum() / gap**2)


def level(watches: int) -> None:
    """Print the errors of watches of a fair model."""
    year = 0.1 * (1 + np.sin(np.arange(WEEKS) * 2 * np.pi / 52))
    constant, season = np.full((WEEKS, 2), RATE), np.stack([0.15 + year] * 2, axis=-1)
    print("| fair model | test of each week | test of all rows so far | e-value | difference | women | men |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    print(f"| constant rates | {errors(watches, constant, np.full(WEEKS, WOMEN))} |")
    print(f"| rates and shares change | {errors(watches, season, 0.2 + year)} |")


def power(watches: int) -> None:
    """Print the rows until watches of an unfair model show its difference."""
    heads = ("difference", "single test", "mean rows", "ratio", "safe test", "rows for 80 %", "ratio", "safe test")
    print(f"\n| {' | '.join(heads)} |\n|{'--:|' * len(heads)}")
    for gap in (0.1, 0.05, 0.03, 0.02):
        weeks, single = stopped(watches, gap), single_test(gap)
        mean, other = PEOPLE * np.minimum(weeks, WEEKS).mean(axis=1)
        most, safe = PEOPLE * np.quantile(weeks, POWER, axis=1, method="higher")
        first = f"| {100 * gap:.0f} points | {single:,.0f} | {mean:,.0f} | {mean / single:.2f} | {other / single:.2f} "
        print(f"{first}| {most:,.0f} | {most / single:.2f} | {safe / single:.2f} |")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--watches", type=int, default=2000)
    watches = parser.parse_args().watches
    level(watches)
    power(watches)


if __name__ == "__main__":
    main()
