"""Permutation tests beside their peers, from ten thousand rows to ten million: processor time, memory, slope in n.

    python benchmarks/permutation.py                  # B = 10,000, up to 1e7 rows, 1e8 from Parquet: about half an hour
    python benchmarks/permutation.py --quick          # up to 1e6 rows, 1e7 from Parquet: a few minutes
    python benchmarks/permutation.py --only parquet --parquet 100000000

Every method tests two groups of the same simulated predictions with B permutations, on one thread, in a process of its
own. A method that would take longer than the budget runs as many permutations k as fit (at least four) and its time is
extrapolated from them, in proportion to B; such numbers say "from k". Time includes the counting or ranking of the
rows; memory is what the process grew by. The slope is that of log time against log n. The tables are Markdown.

SciPy first computes the number of all permutations as one exact integer, in 4 seconds at a million rows and some
minutes at ten million. Beyond a million rows it is spared that, so what stands there is a little less than it takes.

In the second part rows lie in a Parquet file (label, decision, score, group); the time to count them there with DuckDB
stands beside the time of the tests of the counts.
"""

from __future__ import annotations

import argparse
import csv
import math
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import psutil

from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.outcomes import Counts, Predictions, decided

Array = np.ndarray
COUNTABLE = 10**6
"""Number of rows beyond which SciPy skips the exact number of all permutations."""
RATES = ("tpr", "fpr", "precision", "accuracy", "selection_rate")


@dataclass(frozen=True)
class Rows:
    """Simulated predictions of two groups with different prevalences, and a random generator."""

    data: Predictions
    rng: np.random.Generator

    @classmethod
    def of(cls, n: int) -> Rows:
        """Simulate n rows, 40 % of them in group b."""
        rng = np.random.default_rng(1)
        group = (rng.random(n) < 0.4).astype(np.int64)
        label = (rng.random(n) < np.where(group == 0, 0.5, 0.3)).astype(np.int64)
        score = rng.normal(size=n) + label
        return cls(Predictions(label, score, group, ("a", "b"), prediction=decided(score, 0.5)), rng)


Method = Callable[[Rows, int], object]
"""A function that runs a test on rows with a number of permutations."""


def exact_rates(rows: Rows, draws: int) -> None:
    """Test five rates by enumeration, without random permutations."""
    counts = rows.data.counted()
    for metric in RATES:
        permutation_test(counts, metric, rng=rows.rng)


def drawn_rates(rows: Rows, draws: int) -> None:
    """Test five studentised rates by random draws of counts."""
    counts = rows.data.counted()
    for metric in RATES:
        permutation_test(counts, metric, rng=rows.rng, draws=draws, method="studentized")


def ranked_auc(rows: Rows, draws: int) -> None:
    """Test the AUC of untied scores with DeLong's variance in every permutation."""
    permutation_test(rows.data, "auc", rng=rows.rng, draws=draws)


def binned_auc(rows: Rows, draws: int) -> None:
    """Test the AUC of a hundred distinct scores by random draws of counts."""
    edges = np.linspace(-4, 5, 101)
    cell = np.clip(np.searchsorted(edges, rows.data.score, "right") - 1, 0, 99)
    flat = (rows.data.group * 2 + rows.data.label) * 100 + cell
    table = np.bincount(flat, minlength=400).reshape(2, 2, 100)
    permutation_test(Counts(table, ("a", "b"), edges[:-1]), "auc", rng=rows.rng, draws=draws)


def scipy_rate(rows: Rows, draws: int) -> float:
    """Test one rate with scipy.stats.permutation_test, vectorised, in batches of 2^24 numbers."""
    data = rows.data
    assert data.prediction is not None
    code = (2 * data.label + data.prediction).astype(np.int8)

    def difference(a: Array, b: Array, axis: int) -> Array:
        rates = [(part == 3).sum(axis=axis) / (part >= 2).sum(axis=axis) for part in (a, b)]
        return np.asarray(rates[0] - rates[1])

    return _scipy(code, data.group, difference, draws)


def scipy_auc(rows: Rows, draws: int) -> float:
    """Test the AUC with scipy.stats.permutation_test, vectorised, with a sort in every permutation."""
    rank = np.argsort(np.argsort(rows.data.score))

    def auc(part: Array, axis: int) -> Array:
        ranked = np.sort(part, axis=axis)
        positive = ranked % 2
        m, n = positive.sum(axis=axis), (1 - positive).sum(axis=axis)
        return np.asarray((positive * np.cumsum(1 - positive, axis=axis)).sum(axis=axis) / (m * n))

    def difference(a: Array, b: Array, axis: int) -> Array:
        return np.asarray(auc(a, axis) - auc(b, axis))

    return _scipy(2 * rank + rows.data.label, rows.data.group, difference, draws)


def _scipy(values: Array, group: Array, statistic: Callable[..., Array], draws: int) -> float:
    """Return the p-value."""
    from scipy.stats import permutation_test as peer

    samples = values[group == 0], values[group == 1]
    batch = max(1, 2**24 // len(values))
    settings: dict[str, Any] = {"n_resamples": draws, "vectorized": True, "axis": -1, "batch": batch}
    spared = SimpleNamespace(**{**vars(math), "comb": lambda n, k: 2**64})
    with patch("scipy.stats._resampling.math", spared) if len(values) > COUNTABLE else nullcontext():
        return float(peer(samples, statistic, **settings, rng=np.random.default_rng(1)).pvalue)


def loop_rates(rows: Rows, draws: int) -> None:
    """Compute TPR and FPR of both groups, not studentised, in a NumPy loop over shuffles of the group."""
    data = rows.data
    assert data.prediction is not None
    cell = 2 * data.label + data.prediction
    for _ in range(draws):
        table = np.bincount(4 * rows.rng.permutation(data.group) + cell, minlength=8).reshape(2, 2, 2)
        np.stack([table[:, 1, 1] / table[:, 1].sum(axis=1), table[:, 0, 1] / table[:, 0].sum(axis=1)])


def loop_auc(rows: Rows, draws: int) -> None:
    """Compute the AUC of both groups, not studentised, in a NumPy loop over shuffles, with scores ranked once."""
    order = np.argsort(rows.data.score)
    label, group = rows.data.label[order], rows.data.group
    for _ in range(draws):
        shuffled = rows.rng.permutation(group)
        for g in (0, 1):
            positive = label[shuffled == g]
            float((positive * np.cumsum(1 - positive)).sum() / (positive.sum() * (len(positive) - positive.sum())))


METHODS: dict[str, Method] = {
    "five rates, exact": exact_rates,
    "five rates, count draws": drawn_rates,
    "one rate, scipy": scipy_rate,
    "two rates, NumPy loop": loop_rates,
    "AUC, compiled": ranked_auc,
    "AUC, 100 scores, count draws": binned_auc,
    "AUC, scipy": scipy_auc,
    "AUC, NumPy loop": loop_auc,
}
PEERS = {
    "five rates, exact": ("one rate, scipy", "two rates, NumPy loop"),
    "five rates, count draws": ("one rate, scipy", "two rates, NumPy loop"),
    "AUC, compiled": ("AUC, scipy", "AUC, NumPy loop"),
    "AUC, 100 scores, count draws": ("AUC, scipy", "AUC, NumPy loop"),
}
"""The peers of each of our methods."""
AIMS = {"five rates, exact": 100, "five rates, count draws": 100, "AUC, compiled": 10}
AIMED_AT = 10**6
"""Number of rows at which our methods should be faster than SciPy by the factors in AIMS."""
FEWEST = 4
"""Minimum number of timed permutations."""


@dataclass(frozen=True)
class Measured:
    """Processor seconds for all B permutations, megabytes, and the number of permutations actually run."""

    method: str
    rows: int
    seconds: float
    megabytes: float
    ran: int
    draws: int

    @property
    def text(self) -> str:
        """Return the seconds, and the number of permutations if they are extrapolated."""
        return f"{self.seconds:,.3g}" + (f" (from {self.ran:,})" if self.ran < self.draws else "")


def measured(name: str, n: int, draws: int, budget: float) -> Measured:
    """Measure one method at one size, after compilation."""
    method = METHODS[name]
    method(Rows.of(1000), 2)
    rows = Rows.of(n)
    before = psutil.Process().memory_info().rss
    base = seconds = _seconds(method, rows, 1)
    ran = 1
    while ran < draws and (ran < FEWEST or seconds - base < budget / 2):
        each = max(seconds - base, 1e-3) / max(ran - 1, 1)
        ran = min(draws, max(FEWEST, 2 * ran, int(budget / each)), 30 * ran)
        seconds = _seconds(method, rows, ran)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    # Extrapolate only the part that grows with B, not counting, ranking or the number of all permutations.
    total = seconds if ran >= draws else base + (seconds - base) * (draws - 1) / (ran - 1)
    return Measured(name, n, total, max(0.0, peak - before) / 2**20, ran, draws)


def _seconds(method: Method, rows: Rows, draws: int) -> float:
    start = time.process_time()
    method(rows, draws)
    return time.process_time() - start


def check_agreement() -> None:
    """Check that the peers test the same hypothesis: p-values agree for statistics that are not studentised."""
    rows = Rows.of(2000)
    for metric, peer in (("tpr", scipy_rate), ("auc", scipy_auc)):
        ours = permutation_test(rows.data, metric, rng=rows.rng, draws=4000, method="unstudentized").p_value
        theirs = peer(rows, 4000)
        if ours is None or abs(ours - theirs) > 0.04:
            raise ValueError(f"the p-values of {metric} differ: {ours} here, {theirs} by scipy")


def written(path: Path, n: int) -> None:
    """Write a Parquet file of n rows with label y, decision d, score p and group g."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, at_once = np.random.default_rng(1), 5_000_000
    schema = pa.schema([("y", pa.int8()), ("d", pa.int8()), ("p", pa.float32()), ("g", pa.int8())])
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, n, at_once):
            size = min(at_once, n - first)
            group = rng.random(size) < 0.4
            label = rng.random(size) < np.where(group, 0.3, 0.5)
            score = np.clip(0.2 * rng.standard_normal(size, dtype=np.float32) + 0.4 + 0.2 * label, 0, 1)
            columns = {"y": label, "d": score >= 0.5, "p": score, "g": group}
            writer.write_table(pa.table([pa.array(columns[f.name]).cast(f.type) for f in schema], schema=schema))


def from_parquet(path: str, draws: int) -> list[tuple[str, float, float, float]]:
    """Return each test's name, seconds to count the rows on one thread, seconds to test the counts, and megabytes."""
    from fairness_audits.tables import contingency

    rng, found = np.random.default_rng(1), []
    tests: dict[str, tuple[dict[str, Any], tuple[str, ...], Any]] = {
        "five rates, exact": ({"prediction": "d"}, RATES, "exact"),
        f"five rates, {draws:,} draws, studentised": ({"prediction": "d"}, RATES, "studentized"),
        f"AUC, 1,000 scores, {draws:,} draws": ({"score": "p"}, ("auc",), "studentized"),
    }
    before = psutil.Process().memory_info().rss
    for title, (asked, metrics, method) in tests.items():
        start = time.process_time()
        counts = contingency(path, label="y", group="g", threads=1, **asked)
        scanned = time.process_time()
        for metric in metrics:
            permutation_test(counts, metric, rng=rng, draws=draws, method=method)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        found.append((title, scanned - start, time.process_time() - scanned, (peak - before) / 2**20))
    return found


def slope(results: Sequence[Measured]) -> float:
    """Return the least-squares slope of log seconds against log rows."""
    x, y = np.log([r.rows for r in results]), np.log([max(r.seconds, 1e-6) for r in results])
    return float(np.polyfit(x, y, 1)[0]) if len(results) > 1 else float("nan")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose first column is text and whose other columns are numbers."""
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def report(results: Sequence[Measured], sizes: Sequence[int]) -> str:
    """Return tables of seconds with their slope, of megabytes, and of speed ratios to each peer."""
    found = {(r.method, r.rows): r for r in results}
    head = ["", *(f"n = {n:,}" for n in sizes)]
    cells = {name: [found[name, n] for n in sizes] for name in METHODS}
    times = [[name, *(r.text for r in own), f"{slope(own):.2f}"] for name, own in cells.items()]
    memory = [[name, *(f"{r.megabytes:,.0f}" for r in own)] for name, own in cells.items()]
    ratios = [
        [f"{name} : {peer}", *(f"{found[peer, n].seconds / max(found[name, n].seconds, 1e-6):,.0f}" for n in sizes)]
        for name, peers in PEERS.items()
        for peer in peers
    ]
    parts = [f"CPU-seconds for B = {results[0].draws:,}", table([*head, "slope"], times)]
    parts += ["Megabytes", table(head, memory), "Times faster than the peer", table(head, ratios)]
    for name, aim in AIMS.items() if AIMED_AT in sizes else ():
        ratio = found[PEERS[name][0], AIMED_AT].seconds / max(found[name, AIMED_AT].seconds, 1e-6)
        met = "met" if ratio >= aim else "missed"
        parts.append(f"{name} at n = {AIMED_AT:,}: {ratio:,.0f} times SciPy; the aim of {aim} is {met}")
    return "\n".join(parts)


def scan_report(n: int, size: int, found: Sequence[tuple[str, float, float, float]]) -> str:
    """Return a table with the scan's share of the total time."""
    head = ["", "scan, CPU-s", "tests, CPU-s", "the scan's share", "megabytes"]
    rows = [
        [title, f"{scan:.2f}", f"{test:.3f}", f"{100 * scan / (scan + test):.0f} %", f"{memory:,.0f}"]
        for title, scan, test, memory in found
    ]
    return f"{n:,} rows from a Parquet file of {size / 2**20:,.0f} MB, one thread\n{table(head, rows)}"


def methods_compared(options: argparse.Namespace) -> list[Measured]:
    """Measure every method at every size, each in a new process, because peak memory is inherited from the parent.

    Measurements in the file ``--csv`` with the same number of permutations are not repeated.
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as alone:
        alone.apply(check_agreement)
    known = {(one.method, one.rows): one for one in _read(options.csv) if one.draws == options.draws}
    results: list[Measured] = []
    for n in options.rows:
        for name in METHODS:
            if (name, n) not in known:
                with context.Pool(1) as alone:
                    known[name, n] = alone.apply(measured, (name, n, options.draws, options.budget))
                print(f"  {name}, n = {n:,}: {known[name, n].text} s", file=sys.stderr, flush=True)
            results.append(known[name, n])
            _write(results, options.csv)
    return results


def _read(path: Path | None) -> list[Measured]:
    if path is None or not path.is_file():
        return []
    with path.open(newline="") as file:
        return [
            Measured(method, int(rows), float(seconds), float(megabytes), int(ran), int(draws))
            for method, rows, seconds, megabytes, ran, draws in list(csv.reader(file))[1:]
        ]


def _write(results: Sequence[Measured], path: Path | None) -> None:
    if path is None:
        return
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["method", "rows", "cpu_seconds", "megabytes", "permutations_run", "permutations"])
        writer.writerows([r.method, r.rows, r.seconds, r.megabytes, r.ran, r.draws] for r in results)


def main() -> None:
    """Measure and print, and write the numbers if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 1e6 rows, 1e7 from Parquet, a budget of 2 seconds")
    parser.add_argument("--rows", type=int, nargs="+", help="numbers of rows (1e4, 1e5, 1e6 and 1e7)")
    parser.add_argument("--draws", type=int, default=10_000, help="permutations B (%(default)s)")
    parser.add_argument("--budget", type=float, help="CPU-seconds that a measurement may take (100)")
    parser.add_argument("--parquet", type=int, metavar="N", help="rows of the Parquet file (1e8)")
    parser.add_argument("--only", choices=("methods", "parquet"), help="one of the two parts")
    parser.add_argument("--csv", type=Path, help="keep the numbers of the methods there, and go on from it")
    options = parser.parse_args()
    options.rows = options.rows or [10**k for k in ((4, 5, 6) if options.quick else (4, 5, 6, 7))]
    options.budget = options.budget or (2.0 if options.quick else 100.0)
    options.parquet = options.parquet or (10**7 if options.quick else 10**8)
    if options.only != "parquet":
        results = methods_compared(options)
        print(report(results, options.rows), flush=True)
    if options.only != "methods":
        with tempfile.TemporaryDirectory() as folder, multiprocessing.get_context("spawn").Pool(1) as alone:
            path = Path(folder) / "rows.parquet"
            written(path, options.parquet)
            found = alone.apply(from_parquet, (str(path), options.draws))
            print(f"\n{scan_report(options.parquet, path.stat().st_size, found)}")


if __name__ == "__main__":
    main()
