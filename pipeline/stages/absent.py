"""Record that an audit was not run because its data are missing: ``manifest -> MissingData``."""

from collections.abc import Mapping, Sequence
from typing import Any

from fairness_audits.errors import InvalidInput
from fairness_audits.files import load_json
from pipeline.values import MissingData


def make(config: Mapping[str, Any], inputs: Mapping[str, Sequence[str]], _resume: object = None) -> MissingData:
    """Return the reason why the data are missing. Raises InvalidInput if they are not."""
    manifest = load_json(*inputs["manifest"])
    if manifest["origin"] != "absent":
        problem = f"The data of {config['dataset']} became available after planning"
        raise InvalidInput(problem, source=config["dataset"], remedy="Run the same command again")
    print(f"not run: {config['method']} on {config['dataset']}")
    return MissingData(config["dataset"], manifest["reason"], config["method"], config["audit"])
