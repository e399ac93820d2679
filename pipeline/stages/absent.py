"""Write down of every audit of a dataset that cannot be had that it was not run, and why: ``manifest -> Absent``."""

from __future__ import annotations

import argparse
import json
import sys

from pipeline import io
from pipeline.types import Absent


def main(arguments: list[str] | None = None) -> None:
    """Read the manifests, save what stands for each audit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--audits", required=True, help="JSON: a list of {manifest, dataset, method, audit, output}; -: standard input"
    )
    options = parser.parse_args(arguments)
    for entry in json.loads(sys.stdin.read() if options.audits == "-" else options.audits):
        manifest = io.load_json(entry["manifest"])
        if manifest["origin"] != "absent":
            sys.exit(f"{entry['dataset']} has come to hand since this run was planned: give the same command again")
        io.save_absent(Absent(entry["dataset"], manifest["reason"], entry["method"], entry["audit"]), entry["output"])
        print(f"not run: {entry['method']} on {entry['dataset']}")


if __name__ == "__main__":
    main()
