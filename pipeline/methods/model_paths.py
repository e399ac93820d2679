r"""Many models of each split: logistic regressions and small networks, on paths of penalties and weights.

A model has a *family* and a *strength* u in [0, 1]. It is trained on its own bootstrap sample of the training rows. A
logistic regression minimises

.. math:: \sum_i W_i \log(1 + e^{-(2 y_i - 1)(w^\top x_i + b)}) + \tfrac12 w^\top Q w,

where W_i is the number of copies of row i, and Q = I unless the family says otherwise:

- ``l2``: Q = I / C, with C from 1 to ``SMALLEST_C``;
- ``parity``: Q = I + n mu a a', where w'a is the covariance of the score and the standardised protected attribute. This
  is a penalty towards equal mean scores, the constraint of Zafar et al. 2017;
- ``odds``: Q = I + n mu (a_0 a_0' + a_1 a_1'), with the covariances among the n rows of each label;
- ``sensitive``: Q = I + n mu U U', where U spans the sensitive directions of the fair metric. This is a penalty towards
  :mod:`pipeline.methods.project`;
- ``reweighing``: W_i is multiplied by the weight of :mod:`pipeline.methods.reweighing` to the power p.

mu grows from the first to the last of ``PENALTIES``, and p from 0 to ``LARGEST_POWER``. ``parity``, ``odds`` and
``reweighing`` concern a protected attribute.

:mod:`pipeline.methods.baseline` trains the networks on balanced batches; the bias is then corrected for the shares of
the classes. Their families are ``seed``, without a constraint; ``sensitive``, with inputs (I - u U U') x; and
``reweighing``, with rows drawn in proportion to their weights.

All models are networks of the architecture ``mlp``: with h = w'x + b, a regression is max(h, 0) - max(-h, 0). Hidden
units that a model does not need have weights 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, NamedTuple

import numpy as np

from fairness_audits.fair_metric import learn
from fairness_audits.validation import Checked, Count, Positive, at_least, some_of
from fairness_audits.values import Array, Batch, Classifier, Dataset, Generators
from pipeline.methods import baseline
from pipeline.methods.reweighing import weights

REGRESSIONS, NETWORKS = ("l2", "parity", "odds", "sensitive", "reweighing"), ("seed", "sensitive", "reweighing")
OF_ATTRIBUTES = ("parity", "odds", "reweighing")
SMALLEST_C = 1e-3
PENALTIES = (1e-3, 10.0)
LARGEST_POWER = 1.5
TOLERANCE = 1e-6
MAXIMUM_ITERATIONS = 1000
TOGETHER = 20
"""Number of networks that are trained in one batch."""
CURVE = 100
"""Rows behind the training curve, which is not used."""
Several = Annotated[int, at_least(2)]


@dataclass(frozen=True)
class Config(Checked, of="method"):
    """``regressions`` and ``networks``: names of families.

    ``strengths``: number of strengths of a family, evenly spaced from 0 to 1. ``samples``: number of models of each
    strength, with different bootstrap samples. The fields from ``hidden_units`` on are settings of
    :mod:`pipeline.methods.baseline`.
    """

    regressions: Annotated[list[str], some_of(REGRESSIONS)]
    networks: Annotated[list[str], some_of(NETWORKS)]
    strengths: Several
    samples: Count
    network_strengths: Several
    network_samples: Count
    hidden_units: Several
    learning_rate: Positive
    batch_size: baseline.HalfAndHalf
    steps: Count


class Model(NamedTuple):
    """A model on a path. The attribute is empty for a family that concerns none."""

    network: bool
    family: str
    attribute: str
    strength: float


@dataclass(frozen=True)
class Rows:
    """Training rows ``x`` (n, d) and ``y`` (n,), the ``protected`` attributes, and the ``basis`` U (d, k)."""

    x: Array
    y: Array
    protected: Mapping[str, Array]
    basis: Array

    def at(self, rows: Array) -> "Rows":
        """Return some of the rows."""
        return Rows(self.x[rows], self.y[rows], {k: v[rows] for k, v in self.protected.items()}, self.basis)


def models(config: Config, attributes: Sequence[str]) -> list[Model]:
    """Return the models of a split, the regressions first."""
    found = []
    for network, families, strengths, samples in (
        (False, config.regressions, config.strengths, config.samples),
        (True, config.networks, config.network_strengths, config.network_samples),
    ):
        own = [(family, name) for family in families for name in (attributes if family in OF_ATTRIBUTES else [""])]
        path = np.linspace(0, 1, strengths).tolist()
        found += [Model(network, *one, strength) for one, strength, _ in product(own, path, range(samples))]
    return found


def fit(dataset: Dataset, config: Config, rngs: Generators) -> Classifier:
    """Fit all models of each of the first len(rngs) splits.

    A repetition is a model. The models of the first split come first. ``index``: the number of the ``split``, and the
    place of the model in :func:`models` (``path``). Facts: ``network``, 1 for a network and 0 for a regression.
    """
    planned = models(config, list(dataset.protected))
    found = []
    for split, rng in enumerate(rngs):
        data = replace(dataset, train=dataset.train[[split]], test=dataset.test[[split]]).batch("train")
        x, protected = data.features[0], {name: values[0] for name, values in data.protected.items()}
        basis = np.zeros((x.shape[1], 0))
        if any(model.family == "sensitive" for model in planned):
            inputs = [dataset.feature_names.index(name) for name in dataset.sensitive_inputs]
            basis = learn(x, protected, inputs).basis
        found.append(_of_split(Rows(x, data.label[0], protected, basis), planned, config, rng.spawn(len(planned))))
    index = {
        "split": np.repeat(np.arange(len(rngs)), len(planned)),
        "path": np.tile(np.arange(len(planned)), len(rngs)),
    }
    facts = {"network": np.tile([float(model.network) for model in planned], len(rngs))}
    return Classifier.of("model_paths", dataset, "mlp", _joined(found), index=index, facts=facts)


def _of_split(data: Rows, planned: Sequence[Model], config: Config, rngs: Generators) -> dict[str, Array]:
    """Fit the models of one split, the regressions first."""
    drawn = [(model, sample(model, data, rng), rng) for model, rng in zip(planned, rngs, strict=True)]
    found = [
        as_network(*regression(model, data, rows), config.hidden_units) for model, rows, _ in drawn if not model.network
    ]
    networks = [one for one in drawn if one[0].network]
    for start in range(0, len(networks), TOGETHER):
        some, rows, own = zip(*networks[start : start + TOGETHER], strict=True)
        found.append(_trained(some, data, rows, config, own))
    return _joined(found)


def _joined(parameters: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Join the parameters of models."""
    return {name: np.concatenate([one[name] for one in parameters]) for name in parameters[0]}


def sample(model: Model, data: Rows, rng: np.random.Generator) -> Array:
    """Draw the rows of a bootstrap sample, (n,)."""
    n = len(data.y)
    if not (model.network and model.family == "reweighing"):
        return rng.integers(n, size=n)
    weight = reweighed(model, data)
    return rng.choice(n, n, p=weight / weight.sum())


def reweighed(model: Model, data: Rows) -> Array:
    """Return the weights (n,) that make the attribute and the label independent, to the power of the model."""
    # Rows in neither group are a third group.
    return weights(data.protected[model.attribute] + 1, data.y) ** (LARGEST_POWER * model.strength)


def regression(model: Model, data: Rows, rows: Array) -> tuple[Array, float]:
    """Fit the coefficients (d,) and the intercept of a regression on ``rows`` of the data.

    With Q = L L', the inputs inv(L) x have the coefficients L' w, and the penalty is the one of scikit-learn.
    """
    from scipy.linalg import solve_triangular
    from sklearn.linear_model import LogisticRegression

    own, copies = np.unique(rows, return_counts=True)
    weight = copies * (reweighed(model, data)[own] if model.family == "reweighing" else 1.0)
    lower = np.linalg.cholesky(penalty(model, data.at(rows)))
    inputs = solve_triangular(lower, data.x[own].T, lower=True).T
    fitted = LogisticRegression(C=1.0, solver="newton-cholesky", tol=TOLERANCE, max_iter=MAXIMUM_ITERATIONS)
    fitted.fit(inputs, data.y[own], weight)
    return solve_triangular(lower.T, fitted.coef_[0]), float(fitted.intercept_[0])


def penalty(model: Model, data: Rows) -> Array:
    """Return the matrix Q (d, d) of a regression on these rows."""
    n, d = data.x.shape
    if model.family == "l2":
        return np.eye(d) / SMALLEST_C**model.strength
    directions = data.basis if model.family == "sensitive" else np.zeros((d, 0))
    if model.family in ("parity", "odds"):
        group = data.protected[model.attribute]
        z = group / group[group >= 0].std()
        parts = [data.y >= 0] if model.family == "parity" else [data.y == 0, data.y == 1]
        inside = [part & (group >= 0) for part in parts]
        directions = np.stack([(z[i] - z[i].mean()) @ data.x[i] / i.sum() for i in inside], axis=1)
    least, most = PENALTIES
    return np.eye(d) + n * least * (most / least) ** model.strength * directions @ directions.T


def as_network(coef: Array, intercept: float, hidden_units: int) -> dict[str, Array]:
    """Return the parameters of one network with the margin coef.x + intercept."""
    sign = np.zeros(hidden_units)
    sign[:2] = 1.0, -1.0
    w2 = np.stack([np.zeros(hidden_units), sign], axis=1)
    return {"w1": np.outer(coef, sign)[None], "b1": (intercept * sign)[None], "w2": w2[None], "b2": np.zeros((1, 2))}


def _trained(
    some: Sequence[Model], data: Rows, rows: Sequence[Array], config: Config, rngs: Generators
) -> dict[str, Array]:
    """Train networks in one batch, each on its own rows of the data."""
    onto = data.basis @ data.basis.T
    shrink = np.stack([np.eye(len(onto)) - (model.family == "sensitive") * model.strength * onto for model in some])
    x, y = np.stack([data.x[own] @ one for own, one in zip(rows, shrink, strict=True)]), data.y[np.stack(rows)]
    plan = baseline.Config(config.hidden_units, config.learning_rate, config.batch_size, config.steps)
    parameters, _ = baseline.train(Batch(x, y, {}), Batch(x[:, :CURVE], y[:, :CURVE], {}), plan, rngs)
    share = y.mean(axis=1)
    parameters["w1"] = shrink @ parameters["w1"]
    parameters["b2"] = np.stack([parameters["b2"][:, 0], parameters["b2"][:, 1] + np.log(share / (1 - share))], axis=1)
    return parameters
