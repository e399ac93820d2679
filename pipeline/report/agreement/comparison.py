"""What the study measured, with the published numbers that it makes again on the way."""

import pandas as pd

from pipeline.report import registry
from pipeline.report.agreement.measures import facts
from pipeline.report.comparison_table import as_table
from pipeline.report.facts import configured_facts, with_facts
from pipeline.report.inputs import Inputs
from pipeline.report.table import Table


def measurements(inputs: Inputs) -> pd.DataFrame:
    """The audits' rows, what follows from them, and the study's facts, in one frame."""
    return with_facts(inputs, configured_facts(inputs.points), [facts(inputs)])


@registry.table()
def comparison(inputs: Inputs, found: pd.DataFrame) -> Table:
    """The ratios that Maity et al. (2021) print of four of the models, beside ours: the models are those of the study
    of individual fairness, audited once more.
    """
    return as_table(found, inputs.stamp("audit"))
