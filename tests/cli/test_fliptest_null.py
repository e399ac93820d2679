"""The noise floor is made of deals of all people, and its p-value counts those as large as what was observed."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.cli.audit.fliptest.groups import Group, Groups
from pipeline.cli.audit.fliptest.model import Model, Raw
from pipeline.cli.audit.fliptest.null import Deal, Everyone, Null, deals, null_of
from pipeline.cli.audit.fliptest.space import Space, space_of


def test_every_deal_gives_each_person_one_place() -> None:
    dealt = deals(3, 5, 200, np.random.default_rng(1))
    for deal in dealt:
        assert (len(deal.source), len(deal.target)) == (3, 5)
        assert sorted([*deal.source, *deal.target]) == list(range(8))
    share = np.mean([np.isin(0, deal.source) for deal in dealt])
    assert share == pytest.approx(3 / 8, abs=4 * np.sqrt(3 / 8 * 5 / 8 / 200))


def test_the_p_value_counts_the_observed_groups_among_the_deals() -> None:
    null = Null(np.array([1, 2, 0, 4]), np.array([1, 0, 0, 3]))
    np.testing.assert_array_equal(null.either, [2, 2, 0, 7])
    assert null.p_value(null.either, 2) == 4 / 5
    assert null.p_value(null.either, 3) == 2 / 5
    assert null.p_value(null.either, 8) == 1 / 5
    assert null.p_value(null.either, 0) == 1


def made() -> tuple[Space, Model, Everyone]:
    """Ten women with 0.25 to 9.25 and ten men with 10.25 to 19.25; whoever has 5 or more, or is a man, is decided 1."""
    rows = pd.DataFrame({"x": np.arange(20) + 0.25, "sex": ["f"] * 10 + ["m"] * 10})
    women, men = rows.iloc[:10], rows.iloc[10:]
    groups = Groups(Group("f", women, None), Group("m", men, None), {}, None)
    space = space_of(groups, Namespace(data=Path("t.csv"), standardize="none", categorical=()))
    raw = Raw(lambda frame: ((frame["x"] >= 5) | (frame["sex"] == "m")).to_numpy(float), "rule", None, False)
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
