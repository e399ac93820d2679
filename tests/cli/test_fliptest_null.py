"""Dealt people flip by what a map moves alone."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.audits.fliptest.dealt import Deal
from pipeline.cli.audit.fliptest.groups import Group, Groups
from pipeline.cli.audit.fliptest.model import Model
from pipeline.cli.audit.fliptest.null import Everyone, null_of
from pipeline.cli.audit.fliptest.space import Space, space_of
from pipeline.cli.network import Network


def made() -> tuple[Space, Model, Everyone]:
    """Ten women with 0.25 to 9.25 and ten men with 10.25 to 19.25; whoever has 5 or more, or is a man, is decided 1."""
    rows = pd.DataFrame({"x": np.arange(20) + 0.25, "sex": ["f"] * 10 + ["m"] * 10})
    women, men = rows.iloc[:10], rows.iloc[10:]
    groups = Groups(Group("f", women, None), Group("m", men, None), {}, None)
    space = space_of(groups, Namespace(data=Path("t.csv"), standardize="none", categorical=()))
    raw = Network(lambda frame: ((frame["x"] >= 5) | (frame["sex"] == "m")).to_numpy(float), "rule", None)
    model = Model(raw, "decision", 0.5)
    return space, model, Everyone.of(space, model, women, men)


def test_dealt_people_flip_by_what_a_map_moves_alone() -> None:
    space, model, everyone = made()
    np.testing.assert_array_equal(everyone.decision, np.arange(20) >= 5)  # men asked about as women
    deal = Deal(np.array([3, 4, 6, 12]), np.array([0, 7, 15, 16]))
    people = np.array([[7.25], [0.25], [0.25], [15.25]])
    null = null_of(space, model, everyone, [deal], [people])
    assert (null.positive.tolist(), null.negative.tolist()) == ([1], [1])
    points = np.array([[5.1], [4.9], [4.9], [np.nan]])
    null = null_of(space, model, everyone, [deal, deal], [points, people])
    assert (null.positive.tolist(), null.negative.tolist()) == ([1, 1], [1, 1])
