"""Permutation tests beside their peers, from a thousand rows to ten million: processor time, memory, slope in n.

    python benchmarks/permutation.py [--rows 10000 100000 1000000 10000000] [--draws 10000] [--budget 5] [--csv FILE]
    python benchmarks/permutation.py --parquet 100000000

Every method tests two groups of the same simulated predictions with B permutations, on one thread, in a process of its
own. A method that would take longer than the budget runs as many permutations as fit (at least one) and its time is
extrapolated, in proportion to B (SciPy's beyond a million rows in proportion to n): such numbers have an x. Time
includes the counting or ranking of the rows; memory is what the process grew by. The slope is that of log time against
log n. With --parquet the rows are written to a file first, and the time to count them there and the time of the tests
stand side by side.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import psutil

from pipeline.permutation.outcomes import Counts, Predictions, decided
from pipeline.permutation.run import permutation_test

Array = np.ndarray
RATES = ("tpr", "fpr", "precision", "accuracy", "selection_rate")


@dataclass(frozen=True)
class Rows:
    """Simulated predictions of two groups with other prevalences, and what the peers make of them beforehand."""

    data: Predictions
    rng: np.random.Generator

    @classmethod
    def of(cls, n: int) -> Rows:
        """n rows, 40 % of them in group b."""
        rng = np.random.default_rng(1)
        group = (rng.random(n) < 0.4).astype(np.int64)
        label = (rng.random(n) < np.where(group == 0, 0.5, 0.3)).astype(np.int64)
        score = rng.normal(size=n) + label
        return cls(Predictions(label, score, group, ("a", "b"), prediction=decided(score, 0.5)), rng)


Method = Callable[[Rows, int], object]
"""Makes a test of so many permutations."""


def exact_rates(rows: Rows, draws: int) -> None:
    """Five rates by enumeration: no permutation is drawn."""
    counts = rows.data.counted()
    for metric in RATES:
        permutation_test(counts, metric, rng=rows.rng)


def drawn_rates(rows: Rows, draws: int) -> None:
    """Five rates, studentised, by draws of counts."""
    counts = rows.data.counted()
    for metric in RATES:
        permutation_test(counts, metric, rng=rows.rng, draws=draws, method="studentized")


def ranked_auc(rows: Rows, draws: int) -> None:
    """AUC of untied scores with DeLong's variance in every permutation."""
    permutation_test(rows.data, "auc", rng=rows.rng, draws=draws)


def binned_auc(rows: Rows, draws: int) -> None:
    """AUC of a hundred score bins by draws of counts."""
    edges = np.linspace(-4, 5, 101)
    cell = np.clip(np.searchsorted(edges, rows.data.score, "right") - 1, 0, 99)
    flat = (rows.data.group * 2 + rows.data.label) * 100 + cell
    table = np.bincount(flat, minlength=400).reshape(2, 2, 100)
    permutation_test(Counts(table, ("a", "b"), edges[:-1], edges[1:]), "auc", rng=rows.rng, draws=draws)


def scipy_rate(rows: Rows, draws: int) -> float:
    """scipy.stats.permutation_test of one rate, vectorised, in batches of 2^24 numbers."""
    data = rows.data
    assert data.prediction is not None
    code = (2 * data.label + data.prediction).astype(np.int8)

    def difference(a: Array, b: Array, axis: int) -> Array:
        rates = [(part == 3).sum(axis=axis) / (part >= 2).sum(axis=axis) for part in (a, b)]
        return np.asarray(rates[0] - rates[1])

    return _scipy(code, data.group, difference, draws)


def scipy_auc(rows: Rows, draws: int) -> float:
    """scipy.stats.permutation_test of the AUC, vectorised: a sort in every permutation."""
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
    """The p-value."""
    from scipy.stats import permutation_test as peer

    samples = values[group == 0], values[group == 1]
    batch = max(1, 2**24 // len(values))
    settings = {"n_resamples": draws, "vectorized": True, "axis": -1, "batch": batch}
    return float(peer(samples, statistic, **settings, rng=np.random.default_rng(1)).pvalue)


def loop_rates(rows: Rows, draws: int) -> None:
    """A NumPy loop over shuffles of the group: five rates of both groups, not studentised."""
    data = rows.data
    assert data.prediction is not None
    cell = 2 * data.label + data.prediction
    for _ in range(draws):
        table = np.bincount(4 * rows.rng.permutation(data.group) + cell, minlength=8).reshape(2, 2, 2)
        np.stack([table[:, 1, 1] / table[:, 1].sum(axis=1), table[:, 0, 1] / table[:, 0].sum(axis=1)])


def loop_auc(rows: Rows, draws: int) -> None:
    """A NumPy loop over shuffles of the group, ranked once: the AUC of both groups, not studentised."""
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
    "five rates, NumPy loop": loop_rates,
    "AUC, compiled": ranked_auc,
    "AUC, 100 bins, count draws": binned_auc,
    "AUC, scipy": scipy_auc,
    "AUC, NumPy loop": loop_auc,
}
AGAINST = {
    "five rates, exact": "one rate, scipy",
    "five rates, count draws": "one rate, scipy",
    "AUC, compiled": "AUC, scipy",
    "AUC, 100 bins, count draws": "AUC, scipy",
}
"""Which peer each of our methods is compared with."""


LARGEST = {"one rate, scipy": 10**6, "AUC, scipy": 10**6}
"""Before it starts, SciPy computes the number of all permutations exactly: at 1e7 rows, hours. So its time there is
extrapolated from this size, in proportion to n."""


@dataclass(frozen=True)
class Measured:
    """Processor seconds for all B permutations, megabytes, and how many permutations were run."""

    method: str
    rows: int
    seconds: float
    megabytes: float
    ran: int
    draws: int

    @property
    def extrapolated(self) -> bool:
        """Whether fewer than B permutations were run."""
        return self.ran < self.draws


def measured(name: str, n: int, draws: int, budget: float) -> Measured:
    """One method at one size; compiled code is compiled beforehand."""
    method = METHODS[name]
    method(Rows.of(1000), 2)
    rows = Rows.of(n)
    before = psutil.Process().memory_info().rss
    base = seconds = _seconds(method, rows, 1)
    ran = 1
    while ran < draws and seconds - base < budget:
        each = max(seconds - base, 1e-3) / max(ran - 1, 1)
        ran = min(draws, max(4, 2 * ran, int(budget / each)), 30 * ran)
        seconds = _seconds(method, rows, ran)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    # What does not grow with B (counting, ranking, a number of all permutations) is not multiplied.
    total = seconds if ran >= draws else base + (seconds - base) * (draws - 1) / (ran - 1)
    return Measured(name, n, total, max(0.0, peak - before) / 2**20, ran, draws)


def _seconds(method: Method, rows: Rows, draws: int) -> float:
    start = time.process_time()
    method(rows, draws)
    return time.process_time() - start


def from_parquet(n: int, draws: int) -> None:
    """Write n rows, count them with DuckDB, test: what each takes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from pipeline.tabulate import contingency

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        rng, done, writer = np.random.default_rng(1), 0, None
        while done < n:
            size = min(5_000_000, n - done)
            group = rng.random(size) < 0.4
            label = rng.random(size) < np.where(group, 0.3, 0.5)
            decision = rng.random(size) < np.where(label, 0.7, 0.2)
            columns = {"y": label, "p": decision, "g": group}
            part = pa.table({key: values.astype(np.int8) for key, values in columns.items()})
            writer = writer or pq.ParquetWriter(path, part.schema)
            writer.write_table(part)
            done += size
        assert writer is not None
        writer.close()
        print(f"{n:,} rows, Parquet of {path.stat().st_size / 2**20:,.0f} MB")
        start, wall = time.process_time(), time.perf_counter()
        counts = contingency(str(path), label="y", prediction="p", group="g", threads=1)
        print(f"  scan and count     {time.process_time() - start:8.3f} CPU-s {time.perf_counter() - wall:8.3f} s")
        for title, method in (("exact", "exact"), (f"{draws:,} draws, studentized", "studentized")):
            start = time.process_time()
            for metric in RATES:
                permutation_test(counts, metric, rng=rng, draws=draws, method=method)  # type: ignore[arg-type]
            print(f"  five rates, {title:28s} {time.process_time() - start:8.3f} CPU-s")


def check_agreement() -> None:
    """The peers test the same hypothesis: p-values of the same, not studentised, statistics agree."""
    rows = Rows.of(2000)
    for metric, peer in (("tpr", scipy_rate), ("auc", scipy_auc)):
        ours = permutation_test(rows.data, metric, rng=rows.rng, draws=4000, method="unstudentized").p_value
        theirs = peer(rows, 4000)
        if ours is None or abs(ours - theirs) > 0.04:
            raise ValueError(f"the p-values of {metric} differ: {ours} here, {theirs} by scipy")


def slope(results: Sequence[Measured]) -> float:
    """Of log seconds against log rows, by least squares."""
    x, y = np.log([r.rows for r in results]), np.log([max(r.seconds, 1e-6) for r in results])
    return float(np.polyfit(x, y, 1)[0]) if len(results) > 1 else float("nan")


def show(results: Sequence[Measured], sizes: Sequence[int]) -> None:
    """The table of seconds and megabytes, the slopes, and how many times faster than the peer."""
    found = {(r.method, r.rows): r for r in results}
    print(f"CPU-seconds for B = {results[0].draws:,} (x: extrapolated from fewer permutations), megabytes in brackets")
    print(f"{'':28s}" + "".join(f"{f'n = {n:.0e}':>22s}" for n in sizes) + f"{'slope':>8s}")
    for name in METHODS:
        cells = [found[name, n] for n in sizes]
        texts = [f"{r.seconds:.4g}{'x' if r.extrapolated else ' '} ({r.megabytes:,.0f})" for r in cells]
        print(f"{name:28s}" + "".join(f"{text:>22s}" for text in texts) + f"{slope(cells):8.2f}")
    print("\ntimes faster than the peer")
    for name, peer in AGAINST.items():
        ratios = [found[peer, n].seconds / max(found[name, n].seconds, 1e-6) for n in sizes]
        print(f"{f'{name} : {peer}':58s}" + "".join(f"{ratio:12,.0f}" for ratio in ratios))


def main() -> None:
    """Measure, print, and write the numbers if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**4, 10**5, 10**6, 10**7])
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--budget", type=float, default=5.0, help="CPU-seconds a measurement may take (5)")
    parser.add_argument("--csv", type=Path, help="write the numbers there too")
    parser.add_argument(
        "--parquet", type=int, metavar="N", help="only this: N rows in a Parquet file, counted by DuckDB"
    )
    options = parser.parse_args()
    if options.parquet:
        from_parquet(options.parquet, options.draws)
        return
    context, results = multiprocessing.get_context("spawn"), []
    # In a process of its own, because a child's peak memory starts from its parent's.
    with context.Pool(1) as alone:
        alone.apply(check_agreement)
    for n in options.rows:
        for name in METHODS:
            size = min(n, LARGEST.get(name, n))
            with context.Pool(1) as alone:
                found = alone.apply(measured, (name, size, options.draws, options.budget))
            results.append(replace(found, rows=n, seconds=found.seconds * n / size, ran=found.ran * (size == n)))
            print(f"  {name}, n = {n:,}: {results[-1].seconds:.4g} s, {results[-1].ran} run", file=sys.stderr)
    show(results, options.rows)
    if options.csv:
        with options.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["method", "rows", "cpu_seconds", "megabytes", "permutations_run", "permutations"])
            writer.writerows([r.method, r.rows, r.seconds, r.megabytes, r.ran, r.draws] for r in results)


if __name__ == "__main__":
    main()
