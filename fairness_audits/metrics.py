"""Scorers of fairness for ``cross_validate``, ``GridSearchCV`` and other tools of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, get_args

from fairness_audits.audits.permutation.settings import Settings
from fairness_audits.calls import keyworded
from fairness_audits.errors import InvalidInput
from fairness_audits.options import similar
from fairness_audits.results.result import Result

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike


Value = Literal["gap", "p_value"]


@keyworded(Settings)
def _tested(y: Any, score: Any = None, prediction: Any = None, *, group: Any, **settings: Any) -> Result:
    from fairness_audits.audits.permutation.arrays import of_arrays

    return of_arrays({"y": y, "score": score, "prediction": prediction}, {"group": group}, **settings)


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
        index = X.index if isinstance(X, pd.DataFrame) else None
        label = y if isinstance(y, pd.Series) else pd.Series(np.asarray(y), index)
        groups = self._groups(X, label.index, group)
        columns = {name: pd.Series(values, label.index) for name, values in output.items()}
        options = {"metric": self.metric, "pairs": "reference" not in self.settings, **positive, **self.settings}
        found = _tested(label, **columns, group=groups, **options)
        tests = [one for one in found.facts["results"] if one["undefined"] is None]
        if not tests:
            return float("nan")
        if self.value == "p_value":
            return float(min(one["adjusted_p_value"] for one in tests))
        return -float(max(abs(one["difference"]) for one in tests))

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
        if "threshold" not in self.settings and (isinstance(metric, Rate) or getattr(metric, "decisions", False)):
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

    def _groups(self, X: Any, index: pd.Index, routed: ArrayLike | None) -> Any:
        """Return the groups of the rows: a column of X, a series aligned by label, or the routed groups."""
        import pandas as pd

        if routed is not None:
            return routed if isinstance(routed, pd.Series | pd.DataFrame) else pd.Series(routed, index, name="group")
        if isinstance(self.group, str):
            if not isinstance(X, pd.DataFrame) or self.group not in X:
                problem = f"X has no column {self.group!r}"
                remedy = "Pass a data frame with this column, or the groups as a series with the index of X"
                raise InvalidInput(problem, option="group", column=self.group, remedy=remedy)
            return X[self.group]
        if self.group is None:
            problem = "no groups were given"
            remedy = "Name a column of X, give a series with the index of X, or route them: params={'group': ...}"
            raise InvalidInput(problem, option="group", remedy=remedy)
        if not index.isin(self.group.index).all():
            problem = "the groups have no row for some index labels of X"
            remedy = "Pass X or y as a pandas object with the index of the groups"
            raise InvalidInput(problem, option="group", remedy=remedy)
        return self.group.loc[index]

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
        The name of a column of X, or the groups with an index that contains the index of X or y. Without it,
        scikit-learn routes ``group`` to the scorer: ``cross_validate(..., params={"group": groups})`` with
        ``sklearn.set_config(enable_metadata_routing=True)``.
    value : {"gap", "p_value"}, default "gap"
        Minus the largest difference, or the smallest corrected p-value.
    **settings
        Further options of :func:`fairness_audits.permutation_test`, such as ``threshold``, ``reference`` or ``draws``.

    Returns
    -------
    callable
        A scorer ``(estimator, X, y) -> float``. It returns NaN if the metric is undefined in every pair of groups.

    Raises
    ------
    InvalidInput
        For an unknown ``value``, and for groups without an index. By the scorer, if the groups do not match the rows,
        and in the same cases as :func:`fairness_audits.permutation_test`.

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
    known = set(signature(_tested).parameters) - {"y", "score", "prediction", "group", "metric"}
    for name in settings:
        if name not in known:
            raise TypeError(f"permutation_gap() has no argument {name!r}{similar(name, known)}")
    if value not in get_args(Value):
        raise InvalidInput(f"expected value to be one of {', '.join(get_args(Value))}, found {value!r}", option="value")
    if not (group is None or isinstance(group, str) or hasattr(group, "loc")):
        problem = f"expected group to be a column's name or a pandas object, found {type(group).__name__}"
        remedy = (
            "An array has no labels by which the rows of a fold can be found. Pass a series with the index of X or y"
        )
        raise InvalidInput(problem, option="group", remedy=remedy)
    return PermutationGap(metric, group, value, settings)
