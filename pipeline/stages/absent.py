"""Record that an audit was not run because its data are missing: ``manifest -> MissingData``."""

import sys

from fairness_audits.files import load_json
from pipeline import io
from pipeline.values import MissingData
from pipeline.workflow import stage


def main(arguments: list[str] | None = None) -> None:
    options = stage.options(__doc__, arguments, *stage.TASK, "manifest")
    manifest, point = load_json(options.manifest), options.config
    if manifest["origin"] != "absent":
        sys.exit(f"The data of {point['dataset']} became available after planning. Run the same command again.")
    missing = MissingData(point["dataset"], manifest["reason"], point["method"], point["audit"])
    io.save(missing, options.output, task=options.task)
    print(f"not run: {point['method']} on {point['dataset']}")


if __name__ == "__main__":
    main()
