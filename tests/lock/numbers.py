"""The locked numbers: some hundred of what the studies compute, in a file that a change of any is a line of."""

import csv
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

# Of the tests' own, as in tests/conftest.py.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).resolve().parents[2] / ".pytest_cache" / "numba"))
os.environ.setdefault("POT_BACKEND_DISABLE_PYTORCH", "")

FILE = Path(__file__).with_name("numbers.csv")
COMMAND = "python -m tests.lock.write"
GENERIC = {
    "ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41",
    "OPENBLAS_CORETYPE": "Prescott", "NUMBA_CPU_NAME": "generic",
}  # fmt: skip
"""So every processor rounds alike, which decides where a training ends and what is near a threshold."""

NOTHING = 1e-9
"""What is smaller is rounding, and stands as 0."""
SAME = (1e-6, "rounding")
FLOAT32 = (1e-3, "float32 training, in which a product of matrices rounds as the processor has it")
MIXTURE = (1e-2, "float32 training whose result is a mixture: rounding is amplified about a thousandfold")
SENSR = (3e-3, "float32 training against its own attack")
SENSR_ERRORS = (1e-2, "float32 training against its own attack; one error more or less")
NETWORK = (1e-4, "float32 network")
OPTIMISER = (2e-3, "where an optimiser stopped")
COUNT = (0.05, "float32 training; decisions near the threshold are counted")
TOLERANCES: Mapping[str, tuple[float, str]] = {
    "baseline on": FLOAT32,
    "project on": FLOAT32,
    "loss_ratio of baseline": FLOAT32,
    "loss_ratio of project": FLOAT32,
    "fliptest of baseline": COUNT,
    "reductions on": MIXTURE,
    "loss_ratio of reductions": MIXTURE,
    "sensr on": SENSR,
    "loss_ratio of sensr": SENSR,
    "loss_ratio of sensr on adult, test, error": SENSR_ERRORS,
    "loss_ratio of sensr on adult, train, error": SENSR_ERRORS,
    "standard@": NETWORK,
    "robustness_bias of standard@": NETWORK,
    "adverm@": NETWORK,
    "robustness_bias of adverm@": NETWORK,
    "counterfactual map of law": OPTIMISER,
    "counterfactual map of law, iterations": (0.5, "how often an optimiser stepped"),
    "fliptest of logistic on law by counterfactual map": OPTIMISER,
}
"""By how a name starts: the relative tolerance, and why it is not that of :data:`SAME`. The longest start counts."""


class Number(NamedTuple):
    """A number by its name, its relative tolerance and why it is that."""

    name: str
    value: float
    tolerance: float
    why: str


def locked(path: Path = FILE) -> list[Number]:
    """What a file of numbers holds."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [Number(row["name"], float(row["value"]), float(row["tolerance"]), row["why"]) for row in rows]


def computed() -> list[Number]:
    """The same, computed now; :data:`TOLERANCES` says how exactly a number is locked."""
    from tests.lock import quantities

    found = []
    for name, value in quantities.all_of_them():
        start = max((start for start in TOLERANCES if name.startswith(start)), key=len, default=None)
        digits = float(f"{value:.10g}") if not abs(value) < NOTHING else 0.0
        found.append(Number(name, digits, *(SAME if start is None else TOLERANCES[start])))
    return found


def moved(was: Number, value: float) -> bool:
    """Whether |value - was| > tolerance |was|; a number that does not exist equals another that does not."""
    if math.isnan(was.value) or math.isnan(value):
        return math.isnan(was.value) != math.isnan(value)
    return abs(value - was.value) > was.tolerance * abs(was.value)
