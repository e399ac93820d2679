"""What a job costs before it computes anything: the interpreter, the imports of its stage, its plug-in, the workflow.

    python benchmarks/overhead.py [--repeats 3] [--scale smoke]

Processor seconds of a process of its own, the least of several. Three tables: each stage, with the heavy packages that
importing it loads; the same with a plug-in; and what the workflow needs for itself, once where it is started and again
in each job that it sends to a cluster. Torch where a stage does not need it is an error.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGES = tuple(sorted(path.stem for path in (ROOT / "pipeline" / "stages").glob("*.py") if path.stem != "__init__"))
HEAVY = ("torch", "jax", "ot", "statsmodels", "sklearn", "fairlearn", "numba", "matplotlib", "wandb", "pandas", "scipy")
PLUGINS = (
    ("prepare", "dataset", "adult"),
    ("train", "method", "baseline"),
    ("train", "method", "reductions"),
    ("transport", "transport", "exact"),
    ("audit", "audit", "loss_ratio"),
    ("audit", "audit", "permutation"),
)


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="the least of so many runs counts (3)")
    parser.add_argument("--scale", default="smoke", help="whose configuration is read (smoke)")
    options = parser.parse_args()
    bare = least("pass", options.repeats)
    print("| stage | interpreter and imports, CPU s | of which imports | heavy packages |\n|---|--:|--:|---|")
    for stage in STAGES:
        name = f"pipeline.stages.{stage}"
        seconds, loaded = least(f"import {name}", options.repeats), heavy(f"import {name}")
        print(f"| {stage} | {seconds:.2f} | {seconds - bare:.2f} | {', '.join(loaded) or '-'} |")
        if "torch" in loaded:
            sys.exit(f"{name} imports torch before it knows whether it needs it")
    print("\n| stage with a plug-in | CPU s | heavy packages |\n|---|--:|---|")
    for stage, group, kind in PLUGINS:
        load = f"from pipeline.workflow import plugins; plugins.load({group!r}, {kind!r})"
        code = f"import pipeline.stages.{stage}; {load}"
        print(f"| {stage}, {kind} | {least(code, options.repeats):.2f} | {', '.join(heavy(code)) or '-'} |")
    print("\n| the workflow itself | CPU s |\n|---|--:|")
    for what, code in workflow(options.scale):
        print(f"| {what} | {least(code, options.repeats):.2f} |")


def workflow(scale: str) -> Sequence[tuple[str, str]]:
    """Return the steps of Snakemake before it runs a job, each with its code."""
    read = f"from pipeline.jobs import Run; Run.of({{'scale': {scale!r}}}, {{}})"
    dry = (
        "import sys; from snakemake.cli import main; sys.argv[0] = 'snakemake';"
        f"main(['--cores', '1', '-n', '-q', 'all', '--config', 'scale={scale}'])"
    )
    return (
        ("interpreter", "pass"),
        ("importing Snakemake", "import snakemake.cli"),
        (f"reading the configuration, {scale}", read),
        (f"planning every study, {scale}", dry),
    )


def least(code: str, repeats: int) -> float:
    """Return the least CPU-seconds of ``repeats`` Python processes that run ``code``."""
    return min(_seconds(code) for _ in range(repeats))


def heavy(code: str) -> list[str]:
    """Return the heavy packages that ``code`` loads."""
    asked = f"{code}\nimport sys; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    return _run(asked).stdout.split()


def _seconds(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _run(code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    # A dry run ends with sys.exit(0).
    if done.returncode:
        sys.exit(f"{code}\n{done.stdout}{done.stderr}")
    return done


if __name__ == "__main__":
    main()
