"""Questions of an auditor, answered by this library and by others on the same predictions: answers and CPU-seconds.

    python benchmarks/peers.py [--rows 48842] [--only ratio margin ...]

The data are the synthetic twin of Adult, which is part of the repository. A logistic regression without sex and race is
fitted on half of the rows, and the questions are about the other half. Each question has one call per library; where a
library has no function for a question, the table says so. CPU time includes the call only, not imports. Peers that are
not installed are marked. To install them in a separate folder:

    pip install --no-deps --target /tmp/peers aif360 aequitas seaborn ohio altair
    PYTHONPATH=/tmp/peers:. python benchmarks/peers.py
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import fairness_audits as fa

TWIN = Path(__file__).parents[1] / "data" / "twins" / "adult_all.parquet"
COLUMNS = ["race", "relationship", "marital-status", "age"]
SEED = 0


@dataclass(frozen=True)
class Audited:
    """Rows with ``sex``, label ``y``, score ``p`` and decision ``d``; ``other`` is the decision of a second model."""

    rows: pd.DataFrame
    y: np.ndarray
    p: np.ndarray
    d: np.ndarray
    other: np.ndarray

    @property
    def women(self) -> np.ndarray:
        """Return a mask of the women's rows, (n,)."""
        return (self.rows["sex"] == "Female").to_numpy()

    def counts(self, metric: str) -> tuple[int, int, int, int]:
        """Return events and rows of a rate among women, then among men."""
        kept = self.y == 1 if metric == "tpr" else np.ones(len(self.y), dtype=bool)
        women, men = self.women & kept, ~self.women & kept
        return int(self.d[women].sum()), int(women.sum()), int(self.d[men].sum()), int(men.sum())

    def standard(self) -> object:
        """Return AIF360's data set of the decisions, women coded 0."""
        from aif360.datasets import BinaryLabelDataset

        frame = pd.DataFrame({"y": self.d, "sex": 1.0 - self.women})
        return BinaryLabelDataset(df=frame, label_names=["y"], protected_attribute_names=["sex"])


def audited(rows: int) -> Audited:
    """Fit two logistic regressions on half of the rows, with C = 1 and C = 0.001, and predict the other half."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    table = pd.read_parquet(TWIN).sample(n=rows, random_state=SEED).reset_index(drop=True)
    y = (table["income"] == ">50K").to_numpy(dtype=int)
    x = pd.get_dummies(table.drop(columns=["income", "sex", "race"])).to_numpy(dtype=float)
    x, half = StandardScaler().fit_transform(x), rows // 2
    models = [LogisticRegression(C=c, max_iter=1000).fit(x[:half], y[:half]) for c in (1.0, 0.001)]
    p, q = (model.predict_proba(x[half:])[:, 1] for model in models)
    return Audited(table[half:].reset_index(drop=True), y[half:], p, (p > 0.5).astype(int), (q > 0.5).astype(int))


Answer = Callable[[Audited], str]
Question = tuple[str, str, dict[str, Answer]]


def first(result: fa.Result) -> dict[str, float]:
    """Return the first comparison of a result."""
    return result.to_frame().iloc[0].to_dict()


def ours_rate(data: Audited, **options: object) -> dict[str, float]:
    """Compare a rate of women and men."""
    return first(fa.permutation_test(data.y, prediction=data.d, group=data.rows["sex"], **options))  # type: ignore[arg-type]


def ours_gap(data: Audited) -> str:
    one = ours_rate(data, metric="selection_rate")
    return f"{one['difference']:.4f} [{one['ci_low']:.4f}, {one['ci_high']:.4f}], p = {one['p_value']:.2g}"


def statsmodels_gap(data: Audited) -> str:
    from statsmodels.stats.proportion import confint_proportions_2indep, test_proportions_2indep

    counts = data.counts("selection_rate")
    low, high = confint_proportions_2indep(*counts, method="newcomb")
    test = test_proportions_2indep(*counts, method="score")
    return f"{test.diff:.4f} [{low:.4f}, {high:.4f}], p = {test.pvalue:.2g}"


def fairlearn_gap(data: Audited) -> str:
    from fairlearn.metrics import demographic_parity_difference

    return f"{demographic_parity_difference(data.y, data.d, sensitive_features=data.rows['sex']):.4f}"


def aif360_gap(data: Audited) -> str:
    from aif360.metrics import BinaryLabelDatasetMetric

    metric = BinaryLabelDatasetMetric(data.standard(), [{"sex": 0.0}], [{"sex": 1.0}])
    return f"{metric.mean_difference():.4f}"


def ours_ratio(data: Audited) -> str:
    one = ours_rate(data, metric="selection_rate", ratio=True, at_least=0.8)
    low, high = one["bound_ci_low"], one["bound_ci_high"]
    outcome = str(one["bound_outcome"]).replace("exceeded", "refuted")
    return f"{one['bound_estimate']:.4f}, 90 % [{low:.4f}, {high:.4f}], at least 0.8: {outcome}"


def statsmodels_ratio(data: Audited) -> str:
    from statsmodels.stats.proportion import confint_proportions_2indep

    events, rows, other, others = data.counts("selection_rate")
    low, high = confint_proportions_2indep(events, rows, other, others, compare="ratio", method="score", alpha=0.1)
    return f"{events / rows / (other / others):.4f}, 90 % [{low:.4f}, {high:.4f}]"


def fairlearn_ratio(data: Audited) -> str:
    from fairlearn.metrics import demographic_parity_ratio

    return f"{demographic_parity_ratio(data.y, data.d, sensitive_features=data.rows['sex']):.4f}"


def aif360_ratio(data: Audited) -> str:
    from aif360.metrics import BinaryLabelDatasetMetric

    metric = BinaryLabelDatasetMetric(data.standard(), [{"sex": 0.0}], [{"sex": 1.0}])
    return f"{metric.disparate_impact():.4f}"


def aequitas_ratio(data: Audited) -> str:
    from aequitas.bias import Bias
    from aequitas.group import Group

    frame = pd.DataFrame({"score": data.d, "label_value": data.y, "sex": data.rows["sex"].astype(object)})
    table, _ = Group().get_crosstabs(frame, attr_cols=["sex"])
    found = Bias().get_disparity_predefined_groups(table, frame, {"sex": "Male"}, check_significance=False)
    return f"{found.set_index('attribute_value').loc['Female', 'pprev_disparity']:.4f}"


def ours_margin(data: Audited) -> str:
    one = ours_rate(data, metric="tpr", margin=0.1)
    return f"{one['bound_outcome']}, p within = {one['bound_p_within']:.3g}"


def statsmodels_margin(data: Audited) -> str:
    from statsmodels.stats.proportion import tost_proportions_2indep

    return f"p within = {tost_proportions_2indep(*data.counts('tpr'), -0.1, 0.1, method='score').pvalue:.3g}"


def ours_auc(data: Audited) -> str:
    one = first(fa.permutation_test(data.y, data.p, group=data.rows["sex"], metric="auc"))
    return f"{one['difference']:.4f} [{one['ci_low']:.4f}, {one['ci_high']:.4f}], p = {one['p_value']:.2g}"


def fairlearn_auc(data: Audited) -> str:
    from fairlearn.metrics import MetricFrame
    from sklearn.metrics import roc_auc_score

    frame = MetricFrame(
        metrics=roc_auc_score,
        y_true=data.y,
        y_pred=data.p,
        sensitive_features=data.rows["sex"],
        n_boot=100,
        ci_quantiles=[0.025, 0.975],
        random_state=SEED,
    )
    low, high = (one for one in frame.difference_ci())
    return f"{frame.difference():.4f} [{low:.4f}, {high:.4f}] without sign, 100 bootstraps"


def ours_subgroup(data: Audited) -> str:
    result = fa.worst_subgroups(data.rows[[*COLUMNS, "sex"]], data.y, prediction=data.d, metric="fnr")
    one = first(result)
    return f"{one['subgroup']}: {one['estimate']:.2f}, adjusted p = {one['adjusted_p_value']:.2g}"


def aif360_subgroup(data: Audited) -> str:
    from aif360.detectors.mdss_detector import bias_scan

    table = data.rows[[*COLUMNS, "sex"]].assign(age=pd.qcut(data.rows["age"], 5).astype(str))
    positives = table[data.y == 1].reset_index(drop=True)
    missed = pd.Series(1 - data.d[data.y == 1])
    expected = pd.Series(missed.mean(), index=missed.index)
    found, score = bias_scan(positives, missed, expectations=expected, overpredicted=False, penalty=1.0)
    return f"{dict(found)}, score {score:.0f}, no p-value"


def planted(data: Audited, trial: int, effect: float) -> tuple[pd.DataFrame, np.ndarray]:
    """Return columns, and who is missed: 30 % of all, and a share ``effect`` of one cross of two levels besides."""
    rng = np.random.default_rng([SEED, trial])
    rows = (
        data.rows[[*COLUMNS, "sex"]].assign(age=pd.qcut(data.rows["age"], 5).astype(str)).sample(6000, random_state=rng)
    )
    missed = rng.random(len(rows)) < 0.3
    missed[planted_group(rows) & (rng.random(len(rows)) < effect)] = True
    return rows.reset_index(drop=True), missed.astype(int)


PLANTED = {"race": "Black", "sex": "Female"}
EFFECTS, TRIALS = (0.0, 0.2, 0.4), 10


def planted_group(rows: pd.DataFrame) -> np.ndarray:
    """Return a mask of the group that is missed more often."""
    return np.logical_and.reduce([rows[name] == level for name, level in PLANTED.items()])


def found_by(data: Audited, search: Callable[[pd.DataFrame, np.ndarray], dict[str, str] | None]) -> str:
    """Return how often a search names any group, and the planted one, in TRIALS trials with each effect."""
    told = []
    for effect in EFFECTS:
        named = [search(*planted(data, trial, effect)) for trial in range(TRIALS)]
        some, exact = sum(one is not None for one in named), sum(one == PLANTED for one in named)
        told.append(f"{effect:g}: {some} named" + (f", {exact} exactly" if effect else ""))
    return "; ".join(told)


def ours_planted(data: Audited) -> str:
    def search(rows: pd.DataFrame, missed: np.ndarray) -> dict[str, str] | None:
        found = fa.worst_subgroups(rows, prediction=1 - missed, metric="selection_rate").facts["results"][0]
        return found["subgroup"] if found["rejected"] else None

    return found_by(data, search)


def aif360_planted(data: Audited) -> str:
    from aif360.detectors.mdss_detector import bias_scan

    def search(rows: pd.DataFrame, missed: np.ndarray) -> dict[str, str] | None:
        outcome = pd.Series(missed)
        expected = pd.Series(outcome.mean(), index=outcome.index)
        subset, _ = bias_scan(rows, outcome, expectations=expected, overpredicted=False, penalty=1.0)
        return {name: levels[0] if len(levels) == 1 else "" for name, levels in subset.items()} or None

    return found_by(data, search)


def ours_versions(data: Audited) -> str:
    result = fa.compare(data.y, first=data.d, second=data.other, group=data.rows["sex"], metric="accuracy")
    return result.verdict.sentence.partition(". ")[0]


def statsmodels_versions(data: Audited) -> str:
    from statsmodels.stats.contingency_tables import mcnemar

    found = {}
    for name, group in (("Female", data.women), ("Male", ~data.women)):
        right, other = (data.d == data.y)[group], (data.other == data.y)[group]
        found[name] = mcnemar(pd.crosstab(right, other), exact=True).pvalue
    return ", ".join(f"{name}: p = {p:.2g}" for name, p in found.items()) + " (not the gap)"


def ours_plan(_: Audited) -> str:
    return fa.plan(metric="selection_rate", value=0.4, gap=-0.05, power=0.8).verdict.sentence


def statsmodels_plan(_: Audited) -> str:
    from statsmodels.stats.power import NormalIndPower
    from statsmodels.stats.proportion import proportion_effectsize

    size = NormalIndPower().solve_power(proportion_effectsize(0.35, 0.4), alpha=0.05, power=0.8)
    return f"{2 * np.ceil(size):,.0f} rows"


QUESTIONS: dict[str, Question] = {
    "gap": (
        "Do selection rates differ between women and men?",
        "fairness-audits permutation",
        {"ours": ours_gap, "statsmodels": statsmodels_gap, "Fairlearn": fairlearn_gap, "AIF360": aif360_gap},
    ),
    "ratio": (
        "Is the impact ratio at least 0.8?",
        "--ratio --at-least 0.8",
        {
            "ours": ours_ratio,
            "statsmodels": statsmodels_ratio,
            "Fairlearn": fairlearn_ratio,
            "AIF360": aif360_ratio,
            "Aequitas": aequitas_ratio,
        },
    ),
    "margin": (
        "Are true positive rates within 10 points?",
        "--margin 0.1",
        {"ours": ours_margin, "statsmodels": statsmodels_margin},
    ),
    "auc": ("Does the AUC differ?", "--metric auc", {"ours": ours_auc, "Fairlearn": fairlearn_auc}),
    "subgroup": (
        "Which subgroup has the worst false negative rate?",
        "fairness-audits subgroups",
        {"ours": ours_subgroup, "AIF360": aif360_subgroup},
    ),
    "planted": (
        "Which search finds black women if 0, 20 or 40 % of the decisions about them are turned into misses (10 trials "
        "of 6,000 rows)?",
        "fairness-audits subgroups",
        {"ours": ours_planted, "AIF360": aif360_planted},
    ),
    "versions": (
        "Is a second model worse for one group?",
        "fairness-audits compare",
        {"ours": ours_versions, "statsmodels": statsmodels_versions},
    ),
    "plan": (
        "How many rows show 35 % against 40 % with power 0.8?",
        "fairness-audits plan",
        {"ours": ours_plan, "statsmodels": statsmodels_plan},
    ),
}


def answers(data: Audited, library: Answer) -> tuple[str, str]:
    """Return the answer and the CPU-seconds of the second call, which excludes imports and compilation."""
    try:
        library(data)
        start = time.process_time()
        answer = library(data)
    except ImportError as error:
        return f"not installed ({error.name})", ""
    return answer, f"{time.process_time() - start:.2f}"


def table(data: Audited, wanted: list[str]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield "| question | library | answer | CPU-s |"
    yield "|---|---|---|--:|"
    for name in wanted:
        question, _, libraries = QUESTIONS[name]
        for place, (library, call) in enumerate(libraries.items()):
            answer, seconds = answers(data, call)
            yield f"| {question if place == 0 else ''} | {library} | {answer} | {seconds} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=48_842)
    parser.add_argument("--only", nargs="+", choices=list(QUESTIONS), default=list(QUESTIONS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for line in table(audited(options.rows), options.only):
        partial(print, flush=True)(line)


if __name__ == "__main__":
    main()
