"""POT is imported without the libraries that nothing here needs of it, and leaves them as they are for others."""

from __future__ import annotations

import subprocess
import sys

import pytest

CASES = {
    "a library that nobody imported is not imported, and can be later": """
from pipeline.transport.pot import ot
assert "sklearn.cluster" not in sys.modules and "networkx" not in sys.modules and "pandas" not in sys.modules
from sklearn.cluster import KMeans
""",
    "a library that somebody imported stays": """
import networkx
from pipeline.transport.pot import ot
assert sys.modules["networkx"] is networkx
import ot.gromov
assert ot.gromov._utils.networkx_import and not ot.gromov._utils.sklearn_import
""",
    "what the project asks for is there": """
from pipeline.transport.pot import ot
assert callable(ot.emd) and callable(ot.bregman.sinkhorn_knopp)
assert callable(ot.stochastic.loss_dual_entropic) and callable(ot.stochastic.plan_dual_quadratic)
""",
}


@pytest.mark.parametrize("case", CASES)
def test_pot_takes_what_it_needs(case: str) -> None:
    """In a process of its own: what is imported once stays imported."""
    subprocess.run([sys.executable, "-c", f"import sys\n{CASES[case]}"], check=True, timeout=120)
