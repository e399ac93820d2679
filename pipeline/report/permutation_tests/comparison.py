"""The published numbers of DiCiccio et al. (2020) beside ours. The only module of the study that sees them."""

from __future__ import annotations

import pandas as pd

from pipeline.report import comparison as rules
from pipeline.report import registry
from pipeline.report.comparison_table import as_table
from pipeline.report.inputs import Inputs
from pipeline.report.permutation_tests.facts import measurements
from pipeline.report.table import Table


def compared(inputs: Inputs, published: pd.DataFrame) -> pd.DataFrame:
    """Every published number with ours and a verdict, see :mod:`pipeline.report.comparison`."""
    return rules.compared(inputs, published, measurements(inputs))


@registry.table()
def comparison(inputs: Inputs, published: pd.DataFrame) -> Table:
    """Each number that the paper prints beside ours, with a verdict where the settings match; many of its numbers
    survive nowhere in its text.
    """
    stamp = inputs.stamp(("null_rejection", "p_values", "thresholds", "auc"))
    return as_table(compared(inputs, published), stamp)
