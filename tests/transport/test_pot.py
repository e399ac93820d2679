"""POT imports no array library that nothing here needs of it."""

from __future__ import annotations

import os
import subprocess
import sys


def test_pot_imports_no_array_library_that_nobody_imported() -> None:
    """In a process of its own: what is imported once stays imported."""
    program = (
        "import sys; from pipeline.transport.pot import ot; sys.exit(not {'torch', 'jax'}.isdisjoint(sys.modules))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POT_BACKEND")}
    assert subprocess.run([sys.executable, "-c", program], check=False, env=environment).returncode == 0
