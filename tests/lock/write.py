"""Write the locked numbers anew: ``python -m tests.lock.write``, when numbers are meant to change."""

import csv
import os
import subprocess
import sys
from pathlib import Path

from fairness_audits.files import written
from tests.lock.numbers import FILE, GENERIC, Number, computed


def main(path: Path = FILE) -> None:
    """Compute them, in a process of their own that computes alike on every processor, and write the file."""
    if any(os.environ.get(name) != value for name, value in GENERIC.items()):
        subprocess.run([sys.executable, "-m", __spec__.name, str(path)], env=os.environ | GENERIC, check=True)
        return
    found = computed()
    with written(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(Number._fields)
        table.writerows((name, f"{value:.10g}", f"{tolerance:g}", why) for name, value, tolerance, why in found)
    print(f"{path}: {len(found)} numbers")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
