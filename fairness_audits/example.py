"""A small table of invented people, for first steps and for the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

PEOPLE = 2_000
SEED = 20


def example_data() -> pd.DataFrame:
    """Make a table of 2,000 invented people who apply for a loan, with the decisions of two versions of a model.

    The table is the same in every call. Among people who repay, the first version approves fewer women than men. It
    is hardest on people in care work, most of whom are women. The second version compares incomes within an occupation,
    which narrows the gap. The people do not exist, so a result says nothing about any lender.

    Returns
    -------
    pandas.DataFrame
        One row for each person, with these columns:

        - ``sex`` and ``age`` (years), which are not inputs of the model;
        - ``occupation``, ``income`` (thousands a year), ``years_employed`` and ``debt`` (thousands), its inputs;
        - ``weight``, the number of people whom the person represents;
        - ``repaid``, the true outcome: 1 if the person repaid the loan;
        - ``score``, the probability of repayment that the model predicts, and ``approved``, its decision: 1 if the
          score is at least 0.5;
        - ``new_score`` and ``new_approved``, the same for the second version of the model.

    Examples
    --------
    >>> people = example_data()
    >>> people.shape
    (2000, 12)
    >>> people.groupby("sex")["approved"].mean().round(2).to_dict()
    {'Female': 0.4, 'Male': 0.62}
    """
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(SEED)
    female = rng.random(PEOPLE) < 0.45
    age = rng.integers(20, 70, PEOPLE)
    # Each row of shares is a sex, each column an occupation.
    occupations = np.array(["office", "trade", "technical", "care"])
    shares = np.array([[0.30, 0.35, 0.30, 0.05], [0.40, 0.12, 0.18, 0.30]])[female.astype(int)]
    job = (rng.random((PEOPLE, 1)) > shares.cumsum(axis=1)[:, :3]).sum(axis=1)
    ability = rng.normal(size=PEOPLE)
    typical = np.array([42, 38, 50, 33])[job]
    income = typical + 8 * ability + 0.15 * (age - 45) - 3 * female + rng.normal(0, 3, PEOPLE)
    employed = np.clip((age - 20) * rng.uniform(0.2, 0.9, PEOPLE) * (1 - 0.3 * female), 0, None)
    debt = np.clip(rng.gamma(2, 6, PEOPLE) - 2 * ability, 0, None)
    # What a person repays depends on ability and debt. The model sees income and employment instead.
    repaid = rng.random(PEOPLE) < 1 / (1 + np.exp(-(1.0 + 1.2 * ability - 0.05 * (debt - 10))))
    first = 0.10 * (income - 38) + 0.05 * (employed - 10) - 0.05 * (debt - 10) - 0.3 * (job == 3) - 0.1
    second = 0.10 * (income - typical) + 0.02 * (employed - 10) - 0.05 * (debt - 10) + 0.5
    scores = {name: (1 / (1 + np.exp(-value))).round(3) for name, value in (("score", first), ("new_score", second))}
    return pd.DataFrame(
        {
            "sex": np.where(female, "Female", "Male"),
            "age": age,
            "occupation": occupations[job],
            "income": income.round(1),
            "years_employed": employed.round(1),
            "debt": debt.round(1),
            "weight": np.where(age < 40, 3, 2) - female,
            "repaid": repaid.astype(int),
            "score": scores["score"],
            "approved": (scores["score"] >= 0.5).astype(int),
            "new_score": scores["new_score"],
            "new_approved": (scores["new_score"] >= 0.5).astype(int),
        }
    )
