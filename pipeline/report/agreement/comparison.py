"""What the study measured. It has no published numbers; its claims are hypotheses, decided like any other."""

import pandas as pd

from pipeline.report.agreement.measures import facts
from pipeline.report.facts import configured_facts, with_facts
from pipeline.report.inputs import Inputs


def measurements(inputs: Inputs) -> pd.DataFrame:
    """The audits' rows, what follows from them, and the study's facts, in one frame."""
    return with_facts(inputs, configured_facts(inputs.points), [facts(inputs)])
