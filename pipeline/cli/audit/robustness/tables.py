"""The tables beside the document: every image with its distances, and every group with its measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.cli.audit.robustness import DENOMINATORS
from pipeline.cli.audit.robustness.evidence import Evidence
from pipeline.cli.audit.robustness.look import Subjects
from pipeline.types import Array

if TYPE_CHECKING:
    import pandas as pd


def points(subjects: Subjects, evidence: Sequence[Evidence], classes: Sequence[str] | None) -> pd.DataFrame:
    """One row for each audited image.

    ``distance_<attack>`` is empty where the image is classified wrongly or the attack failed; ``length_<attack>`` is
    what the paper's denominator takes: 0 where the image is classified wrongly, empty where the attack failed. So any
    partition is a group-by of these rows.
    """
    import pandas as pd

    some = subjects.points
    columns: dict[str, Any] = {"audit_image": some.names, "audit_row": some.rows}
    if some.label is not None:
        columns["audit_label"] = _named(some.label, classes)
    columns["audit_prediction"] = _named(subjects.prediction, classes)
    columns["audit_correct"] = subjects.correct
    for one in evidence:
        columns[f"distance_{one.asked.name}"] = one.distance
        columns[f"length_{one.asked.name}"] = np.where(one.failed, np.nan, one.lengths["paper"].length)
        columns[f"failed_{one.asked.name}"] = one.failed
    for partition in some.partitions:
        columns[partition.name] = np.array([*partition.levels, ""], dtype=object)[partition.codes]
    return pd.DataFrame(columns)


def groups(results: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row for each attack, denominator, partition and level."""
    import pandas as pd

    lines = []
    for found in results:
        for partition in found["partitions"]:
            for level in partition["levels"]:
                for denominator in DENOMINATORS:
                    own = level[denominator]
                    bias = own["largest_bias"] or {"tau": None, "value": None}
                    lines.append(
                        {
                            "attack": found["attack"],
                            "bound": found["bound"],
                            "denominator": denominator,
                            "partition": partition["name"],
                            "level": level["level"],
                            "images": level["images"],
                            "n_correct": level["n_correct"],
                            "failed": level["failed"],
                            "budget": found["budget"],
                            **{name: own[name] for name in ("n", "mean", "mean_of_others", "median", "auc", "sigma")},
                            "sigma_ci_low": own["interval"][0],
                            "sigma_ci_high": own["interval"][1],
                            "sigma_p": own["p"],
                            "sigma_p_adjusted": own["p_adjusted"],
                            "largest_bias": bias["value"],
                            "largest_bias_tau": bias["tau"],
                        }
                    )
    return pd.DataFrame(lines)


def _named(codes: Array, classes: Sequence[str] | None) -> Array:
    return codes if classes is None else np.array(classes, dtype=object)[codes]
