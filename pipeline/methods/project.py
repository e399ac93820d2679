r"""Project: the baseline's network on features with the sensitive subspace projected out.

.. math:: f(x) = \text{mlp}\big((I - U U^\top) x\big) = \max\big(x\, (I - U U^\top) W_1 + b_1, 0\big) W_2 + b_2

U is an orthonormal basis of the sensitive subspace that ``fairness_audits.fair_metric`` learns on the *training* rows.
The projector is folded into W_1. The result is a plain ``mlp`` on the same features as every other method, and it is
constant along U. Source: Maity et al. 2021, appendix F.3.1 and Table 2.
"""

from dataclasses import replace

from fairness_audits.fair_metric import learn_batch
from fairness_audits.values import Classifier, Dataset, Generators
from pipeline.methods import baseline

Config = baseline.Config


def fit(dataset: Dataset, config: Config, rngs: Generators) -> Classifier:
    """Train on the first ``len(rngs)`` splits, all in one batch."""
    data, held_out = (dataset.batch(side, len(rngs)) for side in ("train", "test"))
    inputs = [dataset.feature_names.index(name) for name in dataset.sensitive_inputs]
    projector = learn_batch(data, inputs).matrix
    projected, held_out = (replace(batch, features=batch.features @ projector) for batch in (data, held_out))
    parameters, history = baseline.train(projected, held_out, config, rngs)
    parameters["w1"] = projector @ parameters["w1"]
    return Classifier.of("project", dataset, "mlp", parameters, history=history)
