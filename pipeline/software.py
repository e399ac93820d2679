"""The versions of Python and of the libraries that compute results.

Each task stores them in its file, with those of its inputs (:meth:`pipeline.workflow.launch.Task.run`). The report
prints the stored versions, because the installed ones may be newer.
"""

import importlib.metadata
import platform
from collections.abc import Iterable, Mapping

from fairness_audits.messages import enumerated

Versions = Mapping[str, str]
PACKAGES = (
    "numpy", "scipy", "pandas", "scikit-learn", "fairlearn", "POT", "torch", "numba", "jax", "numpyro", "matplotlib",
    "snakemake", "hydra-core",
)  # fmt: skip


def installed() -> dict[str, str]:
    """Return the versions of Python and of the packages in this environment; ``absent`` if one is not installed."""
    found = {"Python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "absent"
    return found


def distinct(versions: Iterable[Versions]) -> list[dict[str, str]]:
    """Return the distinct sets of versions, in the order of their first appearance."""
    found: list[dict[str, str]] = []
    for one in map(dict, versions):
        if one not in found:
            found.append(one)
    return found


def together(versions: Iterable[Versions]) -> dict[str, str]:
    """Return one set of versions for several: a package with several versions has ``2.4.6 and 2.5.0``."""
    found: dict[str, dict[str, None]] = {}
    for one in versions:
        for package, version in one.items():
            found.setdefault(package, {})[version] = None
    return {package: enumerated(numbers) for package, numbers in found.items()}


def described(versions: Versions, present: Versions) -> str:
    """Return a set of versions as text. A version that differs from the ``present`` one is followed by it."""
    if not versions:
        return "not recorded"
    now = {package: present.get(package, version) for package, version in versions.items()}
    return ", ".join(
        f"{package} {version}{f' (now {now[package]})' if now[package] != version else ''}"
        for package, version in versions.items()
    )
