"""Check that ``pipeline`` is the package beside this one, and not a file of the user's that has its name."""

from importlib.util import find_spec
from pathlib import Path

OURS = Path(__file__).resolve().parents[1] / "pipeline"


def check() -> None:
    """Raise ImportError where another module is called ``pipeline``; nothing of that module runs."""
    found = find_spec("pipeline")
    place = Path(found.origin or "").resolve() if found else Path()
    if place.parent != OURS:
        raise ImportError(
            f"fairness_audits needs its own package {OURS}, which {place} hides: rename that file, or take its folder "
            "out of PYTHONPATH; the command fairness-audits does not look for modules in the current folder"
        )


check()
