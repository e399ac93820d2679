"""Robustness bias: is one group of points closer to the decision boundary than the others?

- ``core`` turns distances and groups into sigma, areas, curves, intervals and p-values. ``measures`` defines groups,
  I_P(tau) and sigma(P), and ``significance`` its intervals and the test behind "significantly closer". Distances can
  come from any source: exact, from an attack, or from a certificate.
- ``distances`` makes the attacks. A user's audit finds the distances of images in ``image_audit`` and of the rows of a
  table in ``table_audit``, and ``result`` makes their result. The audits of the studies are the plug-ins
  ``robustness_bias`` for image networks and ``tabular_robustness``.

Source: Nanda, Dooley, Singla, Feizi and Dickerson 2021, "Fairness through robustness: investigating robustness
disparity in deep learning".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fairness_audits.arguments import Given, OutputKind, audit
from fairness_audits.errors import InvalidInput
from fairness_audits.validation import (
    Count,
    Limit,
    Number,
    OneOrMore,
    Positive,
    Share,
    Size,
    at_least,
    interval,
    not_empty,
)

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from fairness_audits.results.result import Result

AttackName = Literal["deepfool", "carlini_wagner", "fmn", "smoothing", "exact"]
SIZE = Limit("(two: height and width)", lambda size: len(size) == 2, "HEIGHT,WIDTH")


@audit(
    one={"y": "label"},
    several={"groups": "group", "sensitive": "sensitive"},
    python=("directions",),
    instead={**dict.fromkeys(("images", "data", "features", "drop", "text", "channels"), "X"), "partition": "groups"},
)
def robustness_bias(
    model: Any,
    X: ArrayLike | pd.DataFrame,
    y: ArrayLike | None = None,
    *,
    groups: ArrayLike | pd.DataFrame,
    sensitive: ArrayLike | pd.DataFrame | None = None,
    directions: ArrayLike | None = None,
    min_group: Annotated[int, at_least(2)] = 10,
    points: Annotated[int, at_least(2)] | None = None,
    resize: Annotated[Sequence[Count], SIZE] | None = None,
    one_hot: Sequence[str] = (),
    sensitive_cost: Annotated[float, interval("(0, 1]")] | None = None,
    positive: str | None = None,
    categorical: Sequence[str] = (),
    classes: Sequence[str] | None = None,
    output_kind: OutputKind = "auto",
    mean: Number | Sequence[Number] = 0.0,
    std: Number | Sequence[Number] = 1.0,
    device: str = "auto",
    batch_rows: Count | None = None,
    attack: Annotated[OneOrMore[AttackName], not_empty] | None = None,
    attack_setting: Sequence[str] | Mapping[str, Any] = (),
    checkpoint: Path | None = None,
    checkpoint_key: str | None = None,
    budget: Positive | None = None,
    alpha: Share = 0.05,
    bootstraps: Count = 2000,
    permutations: Count = 10000,
    seed: Size = 0,
) -> Result:
    r"""Test whether the images or rows of a group are closer to the decision boundary than all other images or rows.

    .. math:: \sigma(P) = (A_P - A_{\bar P}) / A_{\bar P},

    .. math:: A_P = \mathrm{mean}_{x \in P} \min(d(x), T),

    where d(x) is the length of the smallest change that changes the class. Changes of images are measured by the
    L2 norm of pixels in [0, 1], changes of rows by the L2 norm in standard deviations or by the fair metric.

    Source: Nanda et al., "Fairness through robustness", FAccT 2021.

    Parameters
    ----------
    model : torch.nn.Module, function of a float32 tensor (n, c, h, w), or any model of rows
        Scores (n, K) of the classes, or (n,) or (n, 1) of class 1. Models of rows are those of :func:`loss_ratio`.
    X : array (n, c, h, w), (n, h, w, c) or (n, h, w), or array-like or data frame (n, d)
        Images, of uint8 or floating-point numbers in [0, 1]; ``mean`` and ``std`` describe the normalisation of the
        model's input. Or rows with the model's inputs; text columns are categories.
    y : array-like (n,), optional
        True classes: 0, 1, 2, ..., or names from ``classes``. For rows also two values, if ``positive`` names the one
        that is the model's class 1. Without them, the model's own predictions are used as the true classes, and every
        image or row counts as classified correctly.
    groups : array-like (n,) or data frame (n, k)
        The attributes whose levels are compared.
    sensitive : array-like (n,) or data frame (n, k), optional
        For rows: measure distances in the fair metric that :func:`loss_ratio` learns from these attributes.
    directions : array-like (m, d), optional
        For rows: in place of ``sensitive``, displacements that should make no difference.
    min_group : int, default 10
        Smallest number of audited images or rows that each group must have.
    points : int, optional
        Number of images or rows to audit, drawn so that classes and groups keep their shares. A larger number includes
        all images or rows of a smaller one (default: all).
    resize : (int, int), optional
        For images: resize each to this height and width first (bilinear, antialiased). Distances then refer to the
        resized images (default: original size).
    one_hot : list of str, default ()
        For rows: prefixes of column names, such as race_. All columns with one prefix are the indicators of one
        category.
    sensitive_cost : float in (0, 1], optional
        For rows: length of one standard deviation along the sensitive directions (default: 0.1).
    positive : str, optional
        For rows: the label's value that is the model's class 1 (needed unless labels are 0 and 1).
    categorical : list of str, default ()
        For rows: numeric columns whose values are codes of categories, besides those that the model treats as
        categories.
    classes : list of str, optional
        Names of the model's classes, in the order of its outputs (needed if there are more than two classes and the
        labels are not 0, 1, 2, ...).
    output_kind : {"auto", "logits", "log-probabilities", "probability"}, default "auto"
        Kind of the model's scores (default: inferred from the values and reported).
    mean : float or list of float, default 0.0
        For images: mean subtracted from each channel before the model, for pixels in [0, 1]. One number for all
        channels, or one for each.
    std : float or list of float, default 1.0
        For images: standard deviation that divides each channel before the model, likewise. Distances stay in pixels in
        [0, 1].
    device : str, default "auto"
        cpu, cuda, cuda:1, ... (default: a GPU if one is available).
    batch_rows : int, optional
        Largest number of rows or images that the model takes in one call (default: no limit of its own).
    attack : str or list of str, optional
        deepfool: upper bounds, fast; fmn: tighter, about 5 times the cost; carlini_wagner: as published, about 100
        times the cost; smoothing: certified lower bounds for the smoothed model, even more expensive; exact: linear
        models only. Several are possible; the verdict is about the first (default: deepfool). Rows have only exact, for
        linear models, one decision tree, or a network with one small hidden layer (default: upper bounds by a search).
    attack_setting : list of str, or dict, default ()
        For images: a setting of an attack, such as deepfool.steps=50 or smoothing.sigma=0.25; several are possible
        (list: docs/guide/robustness_bias.md).
    checkpoint : path, optional
        For images: .npz file that stores distances as they are computed. The same audit continues where it stopped,
        also with more points or another attack.
    checkpoint_key : str, optional
        Name of the model for the checkpoint, needed if the model is a function. Change it whenever the model changes.
    budget : float, optional
        Largest distance that counts; longer ones count as this one (default: the largest found).
    alpha : float in (0, 1), default 0.05
        Level of the tests and intervals.
    bootstraps : int, default 2000
        Number of bootstrap resamples for the intervals.
    permutations : int, default 10000
        Number of permutations for the p-values.
    seed : int, default 0
        Random seed.

    Returns
    -------
    Result
        ``to_frame()`` has every measure of every group, ``to_frame("distances")`` every image or row.

    Examples
    --------
    >>> import numpy as np, pandas as pd, torch
    >>> rng = np.random.default_rng(0)
    >>> dark = np.arange(200) % 2 == 0
    >>> images = 0.5 + np.where(dark, 0.1, 0.4)[:, None, None] * rng.uniform(-1, 1, (200, 3, 3))
    >>> model = lambda x: x.flatten(1).sum(dim=1) - 4.5
    >>> groups = pd.DataFrame({"dark": dark})
    >>> result = robustness_bias(model, images, groups=groups, attack="exact", permutations=999)
    >>> result.outcome, result.verdict.facts["closer"]
    ('rejected', [{'partition': 'dark', 'level': 'True'}])

    Rows under a linear model, whose exact distances have a closed form:

    >>> a, b = np.where(dark, 1, 2) * rng.normal(size=200), rng.normal(size=200)
    >>> rows = pd.DataFrame({"a": a, "b": b})
    >>> result = robustness_bias(lambda frame: frame["a"] + frame["b"] / 9, rows, groups=groups, attack="exact")
    >>> result.outcome, result.facts["results"][0]["bound"]
    ('rejected', 'exact')
    """
    from fairness_audits.audits.robustness_bias.result import of_images, of_rows, opened
    from fairness_audits.inputs.arrays import array_of, is_table
    from fairness_audits.inputs.columns import Columns

    given, framed = Given(robustness_bias, locals()), is_table("X", X)
    parts = {"groups": groups, "sensitive": sensitive}
    columns = Columns({"y": y}, several=parts, X=X if framed else None, outside=[] if framed else ["X"])
    if framed:
        given = columns.name_in(given, model="", data="X", features=columns.several("X"), drop=())
        with opened(model, given) as loaded:
            return of_rows(given, columns.source("X"), loaded, columns.directions(directions))
    if directions is not None:
        problem = "directions applies to rows of a table only"
        raise InvalidInput(problem, option="directions", remedy="Leave it out")
    given = columns.name_in(given, model="", images="X", partition="groups")
    array = array_of("X", X)
    with opened(model, given) as loaded:
        return of_images(given, columns.source("groups"), loaded, array)
