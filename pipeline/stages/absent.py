"""Write down of an audit of a data set that cannot be had that it was not run, and why: ``manifest -> MissingData``."""

import json
import sys

from fairness_audits.files import load_json
from pipeline import io
from pipeline.values import MissingData
from pipeline.workflow import stage


def main(arguments: list[str] | None = None) -> None:
    told = {"type": json.loads, "help": "JSON: the names of dataset, method and audit"}
    options = stage.options(__doc__, arguments, "manifest", "output", point=told)
    manifest, point = load_json(options.manifest), options.point
    if manifest["origin"] != "absent":
        sys.exit(f"{point['dataset']} has come to hand since this run was planned: give the same command again")
    io.save(MissingData(point["dataset"], manifest["reason"], point["method"], point["audit"]), options.output)
    print(f"not run: {point['method']} on {point['dataset']}")


if __name__ == "__main__":
    main()
