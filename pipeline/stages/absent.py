"""Write down of every audit of a dataset that cannot be had that it was not run, and why:

``manifest -> MissingData``.
"""

import json
import sys

from fairness_audits.files import load_json
from pipeline import io
from pipeline.values import MissingData
from pipeline.workflow import stage


def main(arguments: list[str] | None = None) -> None:
    told = {"help": "JSON: a list of {manifest, dataset, method, audit, output}; -: standard input"}
    options = stage.options(__doc__, arguments, audits=told)
    for entry in json.loads(sys.stdin.read() if options.audits == "-" else options.audits):
        manifest = load_json(entry["manifest"])
        if manifest["origin"] != "absent":
            sys.exit(f"{entry['dataset']} has come to hand since this run was planned: give the same command again")
        io.save(MissingData(entry["dataset"], manifest["reason"], entry["method"], entry["audit"]), entry["output"])
        print(f"not run: {entry['method']} on {entry['dataset']}")


if __name__ == "__main__":
    main()
