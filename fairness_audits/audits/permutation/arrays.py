"""Permutation tests of arrays and data frames."""

from collections.abc import Mapping
from typing import Any

from fairness_audits.arguments import UNNAMED
from fairness_audits.audits.permutation.plan import planned
from fairness_audits.audits.permutation.result import audited
from fairness_audits.audits.permutation.settings import Settings
from fairness_audits.inputs.columns import Columns
from fairness_audits.results.result import Result


def of_arrays(single: Mapping[str, Any], several: Mapping[str, Any], cross: bool = False, **settings: Any) -> Result:
    """Test the columns ``single`` and ``several`` (:class:`Columns`); ``cross`` the groups instead of each column."""
    columns = Columns(single, several=several)
    named: dict[str, Any] = {
        **{{"y": "label"}.get(name, name): columns.one(name) for name in single},
        **{name: columns.several(name) for name in several},
    }
    named["group"], derived = columns.groups(cross)
    plan = planned(Settings(predictions=UNNAMED, **named, **settings))
    with columns.opened(derived) as table:
        return audited(plan, table)
