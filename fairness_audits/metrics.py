"""Scorers of fairness for ``cross_validate``, ``GridSearchCV`` and other tools of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from fairness_audits.arguments import similar
from fairness_audits.audits.permutation import permutation_test
from fairness_audits.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike


Value = Literal["gap", "p_value"]


@dataclass(frozen=True, eq=False)
class PermutationGap:
    """A scorer ``(estimator, X, y) -> float``, made by :func:`permutation_gap`."""

    metric: str
    group: str | pd.Series | pd.DataFrame | None = None
    value: Value = "gap"
    settings: dict[str, Any] = field(default_factory=dict)

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, group: ArrayLike | None = None) -> float:
        """Return the score of a fitted estimator on the rows of X."""
        import numpy as np
        import pandas as pd

        output, positive = self._output(estimator, X), self._positive(estimator)
        label = y.reset_index(drop=True) if isinstance(y, pd.Series) else pd.Series(np.asarray(y))
        columns = {name: pd.Series(values) for name, values in output.items()}
        options = {"metric": self.metric, "pairs": "reference" not in self.settings, **positive, **self.settings}
        found = permutation_test(label, **columns, group=self._groups(X, y, group), **options)
        tests = [one for one in found.facts["results"] if one["undefined"] is None]
        if self.value == "p_value":
            return float(min((one["adjusted_p_value"] for one in tests), default=np.nan))
        if self.settings.get("ratio"):
            rates = [sorted(group["estimate"] for group in one["groups"]) for one in tests]
            return float(min((low / high for low, high in rates if high > 0), default=np.nan))
        return -float(max((abs(one["difference"]) for one in tests), default=np.nan))

    def _positive(self, estimator: Any) -> dict[str, Any]:
        """Return the option that names class 1, or that says that there are no classes."""
        classes = getattr(estimator, "classes_", None)
        if classes is None:
            return {"regression": True}
        if list(classes) in ([0, 1], [False, True]) or "positive" in self.settings:
            return {}
        if len(classes) > 2:
            raise InvalidInput(
                f"the model has {len(classes)} classes", option="positive", remedy="Name the positive class"
            )
        return {"positive": str(classes[1])}

    def _output(self, estimator: Any, X: Any) -> dict[str, Any]:
        """Return the decisions or the scores that the metric needs."""
        from fairness_audits.audits.permutation.metrics import Rate, metric_named

        metric = metric_named(self.metric)
        decides = isinstance(metric, Rate) or getattr(metric, "decisions", False)
        if decides and self.settings.get("threshold", self.settings.get("top")) is None:
            return {"prediction": estimator.predict(X)}
        if hasattr(estimator, "predict_proba"):
            return {"score": estimator.predict_proba(X)[:, self._place(estimator)]}
        if hasattr(estimator, "decision_function"):
            scores, place = estimator.decision_function(X), self._place(estimator)
            # With two classes, the decision values are for the second class.
            return {"score": scores[:, place] if scores.ndim > 1 else scores if place == 1 else -scores}
        return {"score": estimator.predict(X)}

    def _place(self, estimator: Any) -> int:
        """Return the position of the positive class among the model's classes."""
        from fairness_audits.tables.levels import level_name, level_of

        if "positive" not in self.settings or getattr(estimator, "classes_", None) is None:
            return 1
        classes, positive = list(map(level_name, estimator.classes_)), self.settings["positive"]
        found = level_of(classes, level_name(positive), "classes_")
        if found is None:
            problem = f"the model has no class {positive!r}"
            raise InvalidInput(problem, option="positive", remedy=f"It has: {', '.join(classes)}")
        return classes.index(found)

    def _groups(self, X: Any, y: Any, routed: Any) -> Any:
        """Return the groups of the rows of X, in their order: a column of X, routed groups, or groups found by label.

        Raises InvalidInput if it is not known which groups belong to these rows.
        """
        import numpy as np
        import pandas as pd

        if routed is None and self.group is None:
            problem = "no groups were given"
            remedy = "Name a column of X, give a series with the index of X, or route them: params={'group': ...}"
            raise InvalidInput(problem, option="group", remedy=remedy)
        if routed is None and isinstance(self.group, str):
            return self._column(X, self.group)
        groups = self.group if routed is None else routed
        if not isinstance(groups, pd.Series | pd.DataFrame):
            groups = pd.Series(np.asarray(groups), name="group")
        known = {name: one.index for name, one in (("X", X), ("y", y)) if isinstance(one, pd.Series | pd.DataFrame)}
        if not known or (routed is not None and not isinstance(routed, pd.Series | pd.DataFrame)):
            if routed is not None:
                # scikit-learn selects the rows of routed groups together with those of X.
                return groups.reset_index(drop=True)
            problem = "X and y are arrays without labels, so the groups of their rows are not known"
            remedy = "Pass X or y as a pandas object with the index of the groups, or route them: params={'group': ...}"
            raise InvalidInput(problem, option="group", remedy=remedy)
        index, *others = known.values()
        if others and not index.equals(others[0]):
            problem = "X and y have different index labels, so the groups of their rows are not known"
            raise InvalidInput(problem, option="group", remedy="Give both the index of the groups: y.set_axis(X.index)")
        if groups.index.equals(index):
            return groups.reset_index(drop=True)
        if not groups.index.is_unique:
            label = groups.index[groups.index.duplicated()].tolist()[0]
            problem = f"the groups have several rows with the index label {label!r}"
            raise InvalidInput(problem, option="group", remedy="Give X, y and the groups an index without repetitions")
        places = groups.index.get_indexer(index)
        if (places < 0).any():
            problem = f"the groups have no row for some index labels of {' and '.join(known)}"
            remedy = "Pass X or y as a pandas object with the index of the groups: group.set_axis(X.index)"
            raise InvalidInput(problem, option="group", remedy=remedy)
        return groups.iloc[places].reset_index(drop=True)

    def _column(self, X: Any, name: str) -> pd.Series:
        """Return a column of X. Raises InvalidInput if X has none, or several, with this name."""
        import pandas as pd

        number = list(getattr(X, "columns", ())).count(name)
        if number != 1:
            problem = f"X has {number} columns {name!r}" if number else f"X has no column {name!r}"
            remedy = "Pass a data frame with this column, or the groups as a series with the index of X"
            raise InvalidInput(problem, option="group", column=name, remedy=remedy)
        column = X[name]
        return column.reset_index(drop=True) if isinstance(column, pd.Series) else pd.Series(column, name=name)

    def get_metadata_routing(self) -> Any:
        """Return the request for ``group``, if it is to be routed (scikit-learn's metadata routing)."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="group", alias=self.group is None)
        return request


def permutation_gap(
    metric: str,
    *,
    group: str | pd.Series | pd.DataFrame | None = None,
    value: Value = "gap",
    **settings: Any,
) -> PermutationGap:
    r"""Make a scorer of the largest difference of a metric between two groups, or of the smallest p-value.

    .. math:: -\max_{A, B} |f_A - f_B|

    Greater is better, as scikit-learn expects. A gap of 0 means no difference.

    Parameters
    ----------
    metric : str
        A metric of :func:`fairness_audits.permutation_test`, such as ``tpr`` or ``auc``. Rates and ``f1`` are
        computed from ``predict``, or from scores and ``threshold``. Other metrics are computed from ``predict_proba``,
        otherwise from ``decision_function``, and for regressors from ``predict``.
    group : str, series or data frame, optional
        The name of a column of X, or the groups with an index that contains the index of X or y, one of which must be a
        pandas object: the rows of a fold are found by their labels. Without it, scikit-learn routes ``group`` to the
        scorer: ``cross_validate(..., params={"group": groups})`` with
        ``sklearn.set_config(enable_metadata_routing=True)``.
    value : {"gap", "p_value"}, default "gap"
        Minus the largest difference, or the smallest corrected p-value. With ``ratio=True``, the gap is the smallest
        ratio of the rates of two groups, lower to higher: 1 means no difference.
    **settings
        Further options of :func:`fairness_audits.permutation_test`, such as ``threshold``, ``reference`` or ``draws``.
        A score has no outcome, so it takes no ``margin``, ``at_least`` and ``width``.

    Returns
    -------
    callable
        A scorer ``(estimator, X, y) -> float``. It returns NaN if the metric is undefined in every pair of groups.

    Raises
    ------
    InvalidInput
        For an unknown ``value``, for options that the score would ignore, and for groups without an index. By the
        scorer, if it is not known which groups belong to the rows, and in the same cases as
        :func:`fairness_audits.permutation_test`.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"merit": rng.normal(size=400), "sex": ["f", "m"] * 200})
    >>> y = (X["merit"] + (X["sex"] == "m") > 0.5).astype(int)
    >>> merit = make_column_transformer(("passthrough", ["merit"]))
    >>> blind = make_pipeline(merit, LogisticRegression())
    >>> scoring = {"accuracy": "accuracy", "tpr_gap": permutation_gap("tpr", group="sex")}
    >>> scores = cross_validate(blind, X, y, cv=4, scoring=scoring)
    >>> scores["test_tpr_gap"].round(2)
    array([-0.23, -0.29, -0.3 , -0.42])
    """
    known = set(permutation_test.audited.options) - {"metric"}  # type: ignore[attr-defined]
    for name in settings:
        if name not in known:
            raise TypeError(f"permutation_gap() has no argument {name!r}{similar(name, known)}")
    if ignored := [name for name in ("margin", "at_least", "width") if settings.get(name) is not None]:
        problem = f"{ignored[0]} decides the outcome of an audit, but a score has no outcome"
        raise InvalidInput(problem, option=ignored[0], remedy="Drop it, and compare the score with it yourself")
    if value == "p_value" and settings.get("ratio"):
        problem = "the p-value is that of equal rates, whatever their ratio"
        raise InvalidInput(problem, option="ratio", remedy="Drop ratio, or use value='gap' for the smallest ratio")
    if value not in get_args(Value):
        raise InvalidInput(f"expected value to be one of {', '.join(get_args(Value))}, found {value!r}", option="value")
    if not (group is None or isinstance(group, str) or hasattr(group, "loc")):
        problem = f"expected group to be a column's name or a pandas object, found {type(group).__name__}"
        remedy = (
            "An array has no labels by which the rows of a fold can be found. Pass a series with the index of X or y"
        )
        raise InvalidInput(problem, option="group", remedy=remedy)
    return PermutationGap(metric, group, value, settings)
