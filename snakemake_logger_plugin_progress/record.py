"""Write the times of a finished run down, for those who run the workflow for the first time.

Usage: ``python -m snakemake_logger_plugin_progress.record results/benchmarks > conf/profile/local/times.csv``
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

from snakemake_logger_plugin_progress.estimate import benchmark_seconds


def times(folder: Path, depth: int = 1) -> Iterator[tuple[str, str, float]]:
    """(rule, path, seconds) of every benchmark file ``folder/<scale>/<rule>/...``; ``depth`` counts <scale>."""
    for path in sorted(folder.rglob("*.tsv")):
        seconds = benchmark_seconds(path)
        parts = path.relative_to(folder).parts
        if seconds is not None and len(parts) > depth + 1:
            yield parts[depth], str(path), round(seconds, 2)


def main(arguments: list[str]) -> int:
    """Print the CSV file."""
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print(f"expected one folder of benchmark files, found {arguments}", file=sys.stderr)
        return 2
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("rule", "benchmark", "seconds"))
    writer.writerows(times(Path(arguments[0])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
