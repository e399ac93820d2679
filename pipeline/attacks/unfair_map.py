"""The gradient flow attack on a trained classifier, by the fastest engine that its architecture has."""

from collections.abc import Callable, Mapping, Sequence

from pipeline.attacks.gradient_flow import Flow, closed_form_flow, points_of_each
from pipeline.attacks.mixture_flow import mixture_flow
from pipeline.attacks.relu_flow import relu_flow
from pipeline.fair_metric import FairMetric
from pipeline.models import architecture
from pipeline.types import Array, Classifier

ENGINES: Mapping[str, Callable[..., Flow]] = {"mlp": relu_flow, "logistic_mixture": mixture_flow}


def unfair_map(
    classifier: Classifier,
    features: Array,
    label: Array,
    metric: FairMetric,
    regularization: float,
    step_sizes: Sequence[float] | Array,
    record: Sequence[int],
) -> Flow:
    """:func:`pipeline.attacks.gradient_flow.gradient_flow` of the cross-entropy of R classifiers on their points.

    An architecture without an engine of its own goes through the plain loop with its closed-form gradient.

    Parameters: ``features`` (R or 1, n, d) and ``label`` (R or 1, n); ``metric`` one for all or a stack of R or 1; the
    others, and what is raised, as there. Returns a Flow with x (R, n, d), losses (R, len(record), n).
    """
    engine = ENGINES.get(classifier.architecture)
    if engine is not None:
        return engine(classifier.parameters, features, label, metric, regularization, step_sizes, record)
    model = architecture(classifier.architecture)
    x0, y = points_of_each(classifier.repetitions, features, label)
    plan = metric, regularization, step_sizes, record
    return closed_form_flow(model.loss_and_gradient, classifier.parameters, x0, y, *plan)
