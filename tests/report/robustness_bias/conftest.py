"""The study from its reference, and what somebody has of it who has no data but the digits."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from pipeline.report.artefacts import Artefact
from pipeline.report.inputs import Inputs
from pipeline.values import AuditResult, MissingData
from tests.report import studies
from tests.report.studies import build

STUDY, DIGITS = "robustness_bias", "digits"
REASON = (
    "{0} has no twin and is made of {0}.tar.gz.\n{0}.tar.gz of '{0}' is nowhere to be had. Tried:\n  data/raw: absent\n"
    "What to do: get the file from https://example.org/{0}.html and put it into data/raw/{0} (licence: free); or go on"
)


@pytest.fixture(scope="session")
def alone() -> Inputs:
    """The study of somebody who has nothing but the digits: the audits of other data sets say what is missing."""
    whole = studies.usual(STUDY)
    audits = dict(whole.audits)
    for key, one in whole.audits.items():
        if (name := key.split("/")[1]) != DIGITS:
            audits[key] = AuditResult.not_run(MissingData(name, REASON.format(name), one.method, STUDY))
    here = whole.rows["dataset"] == DIGITS
    settings = "block dataset method fold model alpha penalised_level training pretrained width distance second_order"
    kept = here | ~whole.rows.duplicated(settings.split())
    rows = whole.rows.assign(
        reason=whole.rows["dataset"].astype(object).where(~here).map(REASON.format, na_action="ignore"),
        statistic=whole.rows["statistic"].astype(object).where(here, "absent"),
        origin=whole.rows["origin"].astype(object).where(here, "absent"),
    )[kept]
    classifiers = {key: one for key, one in whole.classifiers.items() if key.split("/")[0] == DIGITS}
    datasets = {DIGITS: whole.datasets[DIGITS]}
    return replace(whole, rows=rows, audits=audits, classifiers=classifiers, datasets=datasets)


@pytest.fixture(scope="session")
def made_alone(alone: Inputs) -> Mapping[str, Artefact]:
    """The study's artefacts of the digits alone, each made once."""
    return studies.Made(lambda name: build(name, alone))
