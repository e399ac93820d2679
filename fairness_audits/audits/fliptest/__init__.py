"""FlipTest: whose decision changes under a map to the other group, and in which features people and images differ.

- ``core.flip_test`` is the measurement, which the audit of a user's model and the studies share. ``core.noise_floor``
  counts flips between groups that are alike.
- ``flipsets.Flipsets`` compares two vectors of decisions (Definition 1). ``transparency.transparency_report`` ranks the
  features in which the members of a flipset differ from their counterparts (Definition 2) and says how to read each
  line. ``intervals`` computes the intervals for one map and for several maps.

Counterparts come from any map, from a causal model, or from pairs of real people.

Source: Black, Yeom and Fredrikson 2020, "FlipTest: fairness testing via optimal transport".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fairness_audits.arguments import Given, audit
from fairness_audits.errors import InvalidInput
from fairness_audits.validation import Count, Number, Share, Size, interval

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from fairness_audits.results.result import Result


@audit(
    one={"y": "label", "ids": "id", "group": "group"},
    several={},
    instead={"data": "X", "features": "X", "drop": "X", "predict": "model"},
)
def fliptest(
    model: Any,
    X: ArrayLike | pd.DataFrame,
    group: ArrayLike | str,
    *,
    y: ArrayLike | None = None,
    ids: ArrayLike | None = None,
    source: str,
    target: str,
    reverse: bool = False,
    given_label: Literal[0, 1] | None = None,
    positive: str | None = None,
    threshold: Number | None = None,
    classes: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    standardize: Literal["continuous", "none"] = "continuous",
    limit: Count | None = None,
    map: str = "auto",
    map_setting: Sequence[str] | Mapping[str, Any] = (),
    null_draws: Size | None = None,
    refits: Size | None = None,
    held_share: Annotated[float, interval("(0, 1]")] = 0.9,
    alpha: Share = 0.05,
    seed: Size = 0,
    device: str = "auto",
    batch_rows: Count | None = None,
    dtype: Literal["float64", "float32"] = "float64",
) -> Result:
    r"""Find the people whose decision differs from that of their statistical counterpart in the other group.

    .. math:: F^+ = \{x : h(x) = 1, h(G(x)) = 0\},

    .. math:: F^- = \{x : h(x) = 0, h(G(x)) = 1\},

    where G, an optimal transport map, moves the people of the ``source`` group onto the ``target`` group.

    Source: Black, Yeom and Fredrikson, "FlipTest: fairness testing via optimal transport", FAT* 2020.

    Parameters
    ----------
    model : fitted scikit-learn model, torch.nn.Module, or function of a data frame
        A decision, a probability or a score for each row, or scores (n, K) of the classes.
    X : array-like or data frame (n, d)
        The model's inputs; text columns are categories. A model of data frames gets a pandas data frame with
        the column names of X.
    group : array-like (n,), or the name of a column of X
        The protected attribute.
    y : array-like (n,), optional
        True classes, for ``given_label`` and the accuracy.
    ids : array-like (n,), optional
        Names of the rows in results. They are not an input of the model.
    source : str
        The group whose people are audited.
    target : str
        The group of the counterparts.
    reverse : bool, default False
        Also audit the people of the target group.
    given_label : {0, 1}, optional
        Use only rows with this true label (equalized odds).
    positive : str, optional
        The class that is a positive decision, by its name in the model or in the label (default: the second of two
        classes).
    threshold : float, optional
        The decision is positive if the score is at least this (default: the model's own predict decides. Models
        without predict: 0.5 for decisions and probabilities; with more than two classes, the largest score).
    classes : list of str, optional
        Names of the model's classes, in the order of its outputs; ``positive`` is one of them (default: the model's
        own names).
    categorical : list of str, default ()
        Numeric columns whose values are codes of categories, besides those that the model treats as categories.
    standardize : {"continuous", "none"}, default "continuous"
        Columns that the map measures in standard deviations of both groups together: continuous (all with more than
        two values) or none. The model sees the original values.
    limit : int, optional
        Largest number of rows of each group, drawn at random (default: all).
    map : str, default "auto"
        Transport map. entropic: smooth, stable and fast; exact: counterparts are people of the data; stochastic:
        networks for the dual potentials and the map; wgan: as published, but keeps the checkpoint whose output is
        nearest to the target group; auto: the first of entropic, exact, stochastic and wgan that is good enough on
        held-out people; see docs/guide/fliptest.md (default: auto).
    map_setting : list of str, or dict, default ()
        Settings of the named map in place of its defaults, such as steps=5000 (list: docs/guide/fliptest.md).
    null_draws : int, optional
        Number of random splits for the noise floor. The map is fitted again between the two random groups of each
        split (default: the smallest number that can give an adjusted p-value below alpha, 40 for 0.05 and at most
        200; 0 for maps that are slow to fit).
    refits : int, optional
        Number of refits of the map on people resampled with replacement. The results say in how many of these maps
        each person flips (default: 10; 0 for maps that are slow to fit).
    held_share : float in (0, 1], default 0.9
        A flip counts as stable if the person flips in at least this share of the refitted maps.
    alpha : float in (0, 1), default 0.05
        Level of the tests and intervals.
    seed : int, default 0
        Random seed.
    device : str, default "auto"
        cpu, cuda, cuda:1, ... (default: a GPU if one is available).
    batch_rows : int, optional
        Largest number of rows that the model takes in one call (default: no limit of its own).
    dtype : {"float64", "float32"}, default "float64"
        Precision of the model's computations.

    Returns
    -------
    Result
        ``to_frame("flipsets")`` has all people who flip, ``to_frame("transparency")`` the features in which they
        differ from their counterparts.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> X = pd.DataFrame({"hair": np.tile(np.linspace(0, 1, 40), 2)})
    >>> X.loc[40:, "hair"] += 0.5
    >>> group = ["m"] * 40 + ["f"] * 40
    >>> model = lambda frame: frame["hair"] > 1
    >>> result = fliptest(model, X, group, source="m", target="f", map="exact", null_draws=39)
    >>> len(result.to_frame("flipsets"))
    20
    >>> result.outcome
    'rejected'
    """
    from fairness_audits.audits.fliptest.decisions import WANTED
    from fairness_audits.audits.fliptest.result import audited
    from fairness_audits.inputs.columns import Columns
    from fairness_audits.inputs.model import load_model
    from fairness_audits.inputs.model_files import Computing

    given = Given(fliptest, locals())
    if group is None:
        raise InvalidInput("group is None", option="group", remedy="Give the protected attribute")
    of_inputs = isinstance(group, str)
    columns = Columns({"group": None if of_inputs else group, "y": y, "ids": ids}, several={}, X=X)
    given = columns.name_in(given, data="X", features=columns.several("X"), predict="")
    if of_inputs:
        given = given.but(group=columns.input("group", str(group)))
    with load_model(model, False, Computing.of(given), wanted=WANTED) as loaded:
        return audited(given, columns.source("X"), loaded)
