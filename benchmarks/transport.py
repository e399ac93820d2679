"""Exact transport by ours and its peers, flipsets of 40,000 rows, and the training of WGANs.

    python -m benchmarks.transport [--points 500 1000 2000] [--large] [--only solvers flipsets wgan] [--csv FILE]

Solvers match n rows with n others under the squared L1 cost, each in a process of its own, on one thread; the time
includes the matrix of costs, where one is made, and the memory is what the process grew by. Three laws: two equal
normal ones with 8 features, the same one shifted, and the two groups of the hiring data, where many plans are equally
good. All must find the same cost. --large adds 5,000 and 10,000 rows: about ten minutes, and 5 GB for POT alone.
`lap` is measured where it is installed (pip install lap, in an environment of its own).
"""

from __future__ import annotations

import argparse
import csv
import importlib
import importlib.util
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import psutil
from threadpoolctl import threadpool_limits

from fairness_audits.transport.cost import cost_matrix
from fairness_audits.transport.plan import best_plan
from fairness_audits.values import Array

LARGE = (5000, 10_000)
FLIPSET_ROWS = 40_000
FITTED_ROWS = 10_000

Pair = tuple[Array, Array]
Solver = Callable[[Array, Array], float]
"""A function that matches rows with an equal number of others and returns the mean squared L1 cost."""


def equal_laws(n: int, rng: np.random.Generator) -> Pair:
    """Draw two samples of N(0, I) with 8 features."""
    return rng.normal(size=(n, 8)), rng.normal(size=(n, 8))


def shifted_laws(n: int, rng: np.random.Generator) -> Pair:
    """Draw samples of N(0, I) and N(1, I) with 8 features."""
    return rng.normal(size=(n, 8)), rng.normal(size=(n, 8)) + 1


def hiring_laws(n: int, rng: np.random.Generator) -> Pair:
    """Draw women and men of the hiring data: work experience and hair length, standardised together."""
    women, men = (
        np.column_stack([rng.poisson(rate, n) - rng.normal(20, 0.2, n), 35 * rng.beta(2, b, n)])
        for rate, b in ((25, 2), (31, 7))
    )
    both = np.concatenate([women, men])
    return tuple((group - both.mean(axis=0)) / both.std(axis=0) for group in (women, men))  # type: ignore[return-value]


LAWS = {"equal": equal_laws, "shifted": shifted_laws, "hiring": hiring_laws}


def ours(x: Array, y: Array) -> float:
    """Solve with ``fairness_audits.transport.plan``, the solver of the exact maps."""
    return best_plan(x, y).cost


def pot(x: Array, y: Array) -> float:
    """Solve with POT's network simplex on the full cost matrix."""
    from fairness_audits.transport.pot import ot

    costs = cost_matrix(x, y)
    weights = np.full(len(x), 1 / len(x))
    return float((ot.emd(weights, weights, costs, numItermax=10**8) * costs).sum())


def scipy_assignment(x: Array, y: Array) -> float:
    """Solve with scipy.optimize.linear_sum_assignment."""
    from scipy.optimize import linear_sum_assignment

    costs = cost_matrix(x, y)
    return float(costs[linear_sum_assignment(costs)].mean())


def lap_assignment(x: Array, y: Array) -> float:
    """Solve with lap.lapjv, the algorithm of Jonker and Volgenant."""
    import lap

    return float(lap.lapjv(cost_matrix(x, y))[0]) / len(x)


SOLVERS: dict[str, Solver] = {"ours": ours, "POT": pot, "scipy": scipy_assignment, "lap": lap_assignment}


@dataclass(frozen=True)
class Measured:
    """Measurements of one solver on one problem: processor seconds, megabytes, and the mean cost of its plan."""

    solver: str
    law: str
    points: int
    seconds: float
    megabytes: float
    cost: float


def measured(solver: str, law: str, n: int) -> Measured:
    """Measure a solver, after a small problem that triggers all imports."""
    with threadpool_limits(1):
        SOLVERS[solver](*LAWS[law](20, np.random.default_rng(0)))
        x, y = LAWS[law](n, np.random.default_rng(1))
        before = psutil.Process().memory_info().rss
        start = time.process_time()
        cost = SOLVERS[solver](x, y)
        spent = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Measured(solver, law, n, spent, max(0, peak - before) / 2**20, cost)


def compare_solvers(sizes: Sequence[int]) -> list[Measured]:
    """Run every solver on every law and size. Raises ValueError if two solvers find different costs."""
    names = [name for name in SOLVERS if name != "lap" or importlib.util.find_spec("lap")]
    print(f"Exact transport: CPU-seconds, megabytes in brackets{'' if 'lap' in names else '; lap is not installed'}")
    print(f"{'law':10s}{'points':>8s}" + "".join(f"{name:>20s}" for name in names))
    results = []
    for law in LAWS:
        for n in sizes:
            found = [_alone(measured, name, law, n) for name in names]
            if not np.allclose([one.cost for one in found], found[0].cost, rtol=1e-8):
                raise ValueError(f"the solvers differ on {law}, n = {n}: {[one.cost for one in found]}")
            cells = "".join(f"{f'{one.seconds:.3g} ({one.megabytes:,.0f})':>20s}" for one in found)
            print(f"{law:10s}{n:8,d}{cells}", flush=True)
            results += found
    return results


def _alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call the function in a new process, because a child inherits its parent's peak memory."""
    with multiprocessing.get_context("spawn").Pool(1) as process:
        return process.apply(function, arguments)


def configured(module: ModuleType, name: str, changed: Mapping[str, Any]) -> Any:
    """Return the study's settings of a map, with changes."""
    from benchmarks.common import study_settings
    from pipeline.counterparts import parted
    from pipeline.workflow.plugins import configure

    _, own = parted(study_settings("transport", name))
    return configure(module, {**own, **changed})


def flipset_of(kind: str) -> tuple[float, float, float]:
    """Return seconds to fit a map on 10,000 rows of each group, seconds to map and decide 40,000, and flipset share.

    The exact map is fitted on the 40,000 rows, because it cannot map others. Networks are not fully trained, because
    the cost of an image does not depend on the training.
    """
    module, rng = importlib.import_module(f"fairness_audits.transport.{kind}"), np.random.default_rng(2)
    untrained: dict[str, dict[str, Any]] = {
        "stochastic": {"steps": 10},
        "wgan": {"steps": 10, "check_every": 10},
    }
    rows, others = hiring_laws(FLIPSET_ROWS, rng)
    known = FLIPSET_ROWS if kind == "exact" else FITTED_ROWS
    with threadpool_limits(1):
        start = time.process_time()
        maps = module.fit([rows[:known]], [others[:known]], configured(module, kind, untrained.get(kind, {})), [rng])
        fitted = time.process_time() - start
        start = time.process_time()
        before, after = (side @ [1.4028, 1.1688] > 0.8684 for side in (rows, module.images(maps.parameters, [rows])[0]))
        share = float((before != after).mean())
    return fitted, time.process_time() - start, share


def compare_flipsets(kinds: Sequence[str]) -> None:
    """Print one line for each map."""
    print(f"\nFlipset of {FLIPSET_ROWS:,} rows of the hiring data, CPU-seconds")
    print(f"{'map':12s}{'images and decisions':>22s}{'fit':>10s}")
    for kind in kinds:
        fitted, spent, share = _alone(flipset_of, kind)
        # For networks that are not fully trained, the fitting time and the flipset are meaningless.
        rest = f"{'':>10s}" if kind in ("wgan", "stochastic") else f"{fitted:10.2f}   {share:.1%} of the rows"
        print(f"{kind:12s}{spent:22.3f}{rest}", flush=True)


def main() -> None:
    """Measure and print, and write the solvers' numbers if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, nargs="+", default=[500, 1000, 2000], help="rows (500 1000 2000)")
    parser.add_argument("--large", action="store_true", help="5,000 and 10,000 rows too")
    parts = ("solvers", "flipsets", "wgan")
    parser.add_argument("--only", choices=parts, nargs="+", default=parts, help="only these parts")
    parser.add_argument("--csv", type=Path, help="write the solvers' numbers there too")
    options = parser.parse_args()
    results = []
    if "solvers" in options.only:
        results = compare_solvers([*options.points, *(LARGE if options.large else ())])
    if "flipsets" in options.only:
        # The exact map between 40,000 and 40,000 rows takes minutes, so it runs only with --large.
        compare_flipsets(["entropic", "stochastic", "wgan", *(["exact"] if options.large else [])])
    if "wgan" in options.only:
        from benchmarks import transport_wgan

        print(flush=True)
        sys.argv = sys.argv[:1]
        transport_wgan.main()
    if options.csv:
        with options.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([field.name for field in fields(Measured)])
            writer.writerows(astuple(one) for one in results)


if __name__ == "__main__":
    main()
