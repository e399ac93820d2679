"""Measurements of the study. It has no published numbers; its claims are hypotheses, decided like all claims."""

import pandas as pd

from pipeline.report.agreement.measures import facts
from pipeline.report.facts import configured_facts, with_facts
from pipeline.report.inputs import Inputs


def measurements(inputs: Inputs) -> pd.DataFrame:
    """Return the rows of the audits, the derived rows and the facts of the study in one frame."""
    return with_facts(inputs, configured_facts(inputs.points), [facts(inputs)])
