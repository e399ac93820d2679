"""Record that an audit was not run because its data are missing: ``manifest -> MissingData``."""

import json
import sys

from fairness_audits.files import load_json
from pipeline import io
from pipeline.values import MissingData
from pipeline.workflow import stage


def main(arguments: list[str] | None = None) -> None:
    point_option = {"type": json.loads, "help": "JSON object with the names of the dataset, method and audit"}
    options = stage.options(__doc__, arguments, "manifest", "output", point=point_option)
    manifest, point = load_json(options.manifest), options.point
    if manifest["origin"] != "absent":
        sys.exit(f"The data of {point['dataset']} became available after planning. Run the same command again.")
    io.save(MissingData(point["dataset"], manifest["reason"], point["method"], point["audit"]), options.output)
    print(f"not run: {point['method']} on {point['dataset']}")


if __name__ == "__main__":
    main()
