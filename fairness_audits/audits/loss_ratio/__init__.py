"""Loss-ratio audit of individual fairness: how much larger the model's loss is for comparable people.

``core`` is the measurement, which the audit of a user's model and the studies share. ``ratio_tests`` computes T_n of
the loss ratios and of the error-rate ratios, with tests and intervals.

Source: Maity, Xue, Yurochkin and Sun 2021, "Statistical inference for individual fairness".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fairness_audits.arguments import Given, OutputKind, audit
from fairness_audits.validation import Count, Positive, Share, Size, at_least

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from fairness_audits.results.result import Result


@audit(
    one={"y": "label"},
    several={"sensitive": "sensitive"},
    instead={"data": "X", "features": "X", "drop": "X"},
    python=("directions", "reference"),
)
def loss_ratio(
    model: Any,
    X: ArrayLike | pd.DataFrame,
    y: ArrayLike,
    *,
    sensitive: ArrayLike | pd.DataFrame | None = None,
    directions: ArrayLike | None = None,
    reference: pd.DataFrame | None = None,
    positive: str | None = None,
    categorical: Sequence[str] = (),
    standardize: Literal["continuous", "none"] | None = None,
    points: Annotated[int, at_least(2)] | None = None,
    seed: Size = 0,
    classes: Sequence[str] | None = None,
    output_kind: OutputKind = "auto",
    device: str = "auto",
    batch_rows: Count | None = None,
    dtype: Literal["float64", "float32"] = "float64",
    search: Literal["auto", "gradient", "people"] = "auto",
    least_share: Share = 0.5,
    placebo: Literal["random", "none"] = "random",
    metric_samples: Size = 10,
    bounds: str = "data",
    one_hot: Sequence[str] = (),
    delta: Positive = 1.25,
    alpha: Share = 0.05,
    regularization: Positive = 50.0,
    step_size: Positive = 0.01,
    steps: Count = 500,
    examples: Size = 10,
) -> Result:
    r"""Test whether a model treats comparable individuals alike.

    .. math:: H_0 : E[\ell(f(\Phi(x)), y) / \ell(f(x), y)] \le \delta,

    where :math:`\Phi(x)` is a comparable individual whom the model treats worse. For a torch network, and for a linear
    model or network of scikit-learn, it is the end of a gradient flow of the loss, with a penalty on all differences
    except the sensitive ones. For any other model, such as trees, it is the person with the highest loss among people
    who differ only in columns that the fair metric permits to change.

    Source: Maity et al., "Statistical inference for individual fairness", ICLR 2021.

    Parameters
    ----------
    model : torch.nn.Module, fitted scikit-learn model, or function of a tensor, data frame or array (n, d)
        Scores (n, K) of the classes, or (n,) or (n, 1) of class 1.
    X : array-like or data frame (n, d)
        The model's inputs, from rows that were not used for training. Text columns are categories.
    y : array-like (n,)
        True classes: 0 and 1, two values of which ``positive`` names the model's class 1, or names from ``classes``.
    sensitive : array-like (n,) or data frame (n, k)
        Attributes with two levels that should make no difference. The fair metric is learned from them.
    directions : array-like (m, d), optional
        In place of ``sensitive``: displacements of X that should make no difference. The columns of a data frame are
        matched by name, those of an array by position.
    reference : data frame, optional
        Rows that are not audited, with the columns of X and of ``sensitive``. The metric is learned from them, and
        the search among whole people takes its values from them (default: the metric is learned from all rows, and a
        fifth of the rows, but at most 5,000, gives the values).
    positive : str, optional
        The label's value that is the model's class 1 (needed unless labels are 0 and 1).
    categorical : list of str, default ()
        Numeric columns whose values are codes of categories, besides those that the model treats as categories.
    standardize : {"continuous", "none"}, optional
        Columns that the audit measures in standard deviations: continuous (all with more than two values) or none. The
        model sees the original values (default: none, with an error if columns are far from unit scale).
    points : int, optional
        Number of rows to audit, drawn at random (default: all).
    seed : int, default 0
        Random seed of the rows to audit, the reference rows, the placebo, the samples and the permutations.
    classes : list of str, optional
        Names of the model's classes, in the order of its outputs (needed if there are more than two classes and the
        labels are not 0, 1, 2, ...).
    output_kind : {"auto", "logits", "log-probabilities", "probability"}, default "auto"
        Kind of the model's scores (default: inferred from the values and reported).
    device : str, default "auto"
        cpu, cuda, cuda:1, ... (default: a GPU if one is available).
    batch_rows : int, optional
        Largest number of rows that the model takes in one call (default: no limit of its own).
    dtype : {"float64", "float32"}, default "float64"
        Precision of the model's computations.
    search : {"auto", "gradient", "people"}, default "auto"
        How the audit searches for comparable individuals. gradient: along the gradient of a torch network, or of a
        linear model or network of scikit-learn; people: one or two columns take values of other people, for any model;
        auto: the first of these that works in a trial (default: auto).
    least_share : float in (0, 1), default 0.5
        For a search among people: a column may change if at least this share of the squared length of its change is
        along the sensitive directions.
    placebo : {"random", "none"}, default "random"
        random: repeat the search along the same number of random directions. This shows how sensitive the model is to
        any change.
    metric_samples : int, default 10
        Number of bootstrap samples of the rows of a learned fair metric. A search along the gradient is repeated with
        the metric of each sample, on few rows, in about the time of the audit. This shows how much the ratio depends
        on the rows of the metric. 0 omits it.
    bounds : str, default "data"
        data: keep comparable individuals within the range of the data; FILE: within the bounds of a CSV file with the
        columns feature, low and high; none: without bounds, as published.
    one_hot : list of str, default ()
        Prefixes of column names, such as race_. All columns with one prefix are the indicators of one category. The
        examples then also show the nearest person who could exist, and the loss of this person.
    delta : float, default 1.25
        Tolerated loss ratio.
    alpha : float in (0, 1), default 0.05
        Level of the test.
    regularization : float, default 50.0
        Weight of the penalty on the fair distance.
    step_size : float, default 0.01
        Step size; stable up to 1 / regularization.
    steps : int, default 500
        Number of gradient steps.
    examples : int, default 10
        Number of unfair examples to report.

    Returns
    -------
    Result
        ``to_frame("examples")`` has the most unfair examples, each beside its comparable individual.

    Examples
    --------
    >>> import numpy as np, torch
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = (X.sum(axis=1) + rng.logistic(size=200) > 0).astype(int)
    >>> weight = torch.ones(2, dtype=torch.float64)
    >>> loss_ratio(lambda x: x @ weight, X, y, directions=[1, 0], steps=200).outcome
    'rejected'
    """
    from fairness_audits.audits.loss_ratio.result import audited, check_metric
    from fairness_audits.inputs.columns import Columns
    from fairness_audits.inputs.model import load_model
    from fairness_audits.inputs.model_files import Computing

    check_metric(sensitive is not None, directions is not None)
    columns = Columns({"y": y}, several={"sensitive": sensitive}, X=X)
    given = columns.name_in(Given(loss_ratio, locals()), data="X", features=columns.several("X"))
    others = None if reference is None else Columns({}, {}, X=reference).source("reference")
    with load_model(model, False, Computing.of(given)) as loaded:
        rows = columns.source("X")
        return audited(given, rows, loaded, directions=columns.directions(directions), reference=others)
