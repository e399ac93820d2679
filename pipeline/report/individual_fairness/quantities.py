"""The quantities that the study's tables are made of, and how each is read from the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import Estimate
from pipeline.report.table import Column, Show

STATED_STEPS = 500
"""The number of attack steps that the paper states for Adult."""
RELEASED_STEPS = 200
"""The number of steps of most audits in the authors' code."""

ENTROPY, ZERO_ONE = "Entropy loss", "0-1 loss"


@dataclass(frozen=True)
class Quantity:
    """One statistic as a table shows it: ``key`` heads its column, ``statistic`` is its name in the rows.

    ``attacked`` statistics exist at every recorded number of steps and for each split that the metric is learned on.
    """

    key: str
    statistic: str
    group: str = ""
    kind: Literal["mean", "share"] = "mean"
    attacked: bool = False

    def column(self, show: Show = "value", decimals: int = 3) -> Column:
        """The table column of this quantity; a share needs no spread and one decimal."""
        name = self.key.split(" (")[0]
        if self.kind == "share":
            return Column(self.key, self.group, "value", 1, name)
        return Column(self.key, self.group, show, decimals, name)

    def setting(
        self, block: str, dataset: str, method: str, steps: int, metric_split: str = "test"
    ) -> dict[str, str | float]:
        """The setting whose rows hold this quantity."""
        place: dict[str, str | float] = {
            "block": block,
            "dataset": dataset,
            "method": method,
            "statistic": self.statistic,
        }
        return {**place, "metric_split": metric_split, "steps": float(steps)} if self.attacked else place

    def measure(
        self, inputs: Inputs, dataset: str, method: str, steps: int, metric_split: str = "test", block: str = "audit"
    ) -> Estimate:
        """Mean and spread, or share, over the repetitions."""
        setting = self.setting(block, dataset, method, steps, metric_split)
        return inputs.share(**setting) if self.kind == "share" else inputs.mean(**setting)


BALANCED_ACCURACY = Quantity("bal-acc", "balanced_accuracy")
AOD_GENDER = Quantity("AOD gender", "aod_sex")
AOD_RACE = Quantity("AOD race", "aod_race")
T_N = Quantity("T_n", "T_n", ENTROPY, attacked=True)
REJECTED = Quantity("rejection prop", "rejected", ENTROPY, "share", attacked=True)
ERROR_T_N = Quantity("T~_n", "error_T_n", ZERO_ONE, attacked=True)
ERROR_REJECTED = Quantity("rejection prop (0-1)", "error_rejected", ZERO_ONE, "share", attacked=True)

PERFORMANCE = (BALANCED_ACCURACY, AOD_GENDER, AOD_RACE)
LOSS_RATIO = (T_N, REJECTED)
ERROR_RATIO = (ERROR_T_N, ERROR_REJECTED)


def shown_steps(inputs: Inputs, dataset: str, wanted: int = STATED_STEPS) -> int:
    """The recorded number of steps that stands for ``wanted``: the same, or the largest below in a shorter run."""
    return inputs.steps(wanted, block="audit", dataset=dataset, statistic="T_n", metric_split="test")


def steps_note(inputs: Inputs, *datasets: str, wanted: int = STATED_STEPS) -> str:
    """The footnote that says after how many steps of the attack the statistics are taken, and what the paper states."""
    texts = []
    for dataset in datasets:
        steps = shown_steps(inputs, dataset, wanted)
        stated = (
            f"the paper states no number; for Adult {wanted:,}" if dataset == w.COMPAS else f"the paper: {wanted:,}"
        )
        missing = "" if steps == wanted else ", which this run did not record"
        texts.append(f"{steps:,} for {w.dataset_label(dataset)} ({stated}{missing})")
    return f"Steps of the attack before T_n and T~_n are taken: {'; '.join(texts)}."


def odds_note(inputs: Inputs, *datasets: str) -> str:
    """The footnote that says which group's odds are subtracted from which, and that the paper prints both signs."""
    texts = []
    for dataset in datasets:
        levels = inputs.datasets[dataset].levels
        texts.append(f"{w.dataset_label(dataset)}: " + ", ".join(f"{zero} less {one}" for zero, one in levels.values()))
    return (
        f"Average odds differences (AOD): the group coded 0 less the group coded 1 ({'; '.join(texts)}), which has the "
        "sign of the published values; the formula printed in appendix F.5 has the other sign."
    )


def principal_angles(inputs: Inputs, dataset: str) -> list[np.ndarray]:
    """Principal angles between the subspaces of train and test rows, degrees, smallest first: one (R,) array each."""
    method = inputs.names("method", block="audit", dataset=dataset)[0]
    rows = inputs.select(block="audit", dataset=dataset, method=method)
    names = sorted(name for name in rows["statistic"].unique() if str(name).startswith("principal_angle_"))
    if not names:
        raise ValueError(
            f"block 'audit', dataset {dataset!r}, method {method!r} has no principal_angle_<i>: audit it again"
        )
    return [
        inputs.values(block="audit", dataset=dataset, method=method, statistic=name).to_numpy(float) for name in names
    ]
