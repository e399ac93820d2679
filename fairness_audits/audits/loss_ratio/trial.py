"""Preparation of the model and the rows: encoded tables, a trial that chooses the search, and the audited rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from fairness_audits.arguments import OutputKind
from fairness_audits.errors import InvalidInput, ModelFailed
from fairness_audits.inputs.closed_form import is_layered, layers_of
from fairness_audits.inputs.encoding import Encoding, encoding_of
from fairness_audits.inputs.model import Model, no_gradient
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.predictor import Predictor, coded, noted, predictor
from fairness_audits.inputs.probe import Answers, Scores, answered, probed
from fairness_audits.inputs.table import Rows, Source, attribute, drawn, feature_names
from fairness_audits.messages import SHOWN, check_columns, listed
from fairness_audits.models.layers import Layers
from fairness_audits.seeds import generators
from fairness_audits.values import Array

PLACEBO_ROWS = 2000
"""Largest number of rows that the placebo attacks."""
PLACEBO_DRAWS = 10
"""Number of draws of directions among which the placebo's rows are dealt, so that no single draw decides."""
TRIED_ROWS = 2000
"""Number of rows on which a model is tried before the search is chosen."""
HELD_OUT, MOST_HELD_OUT = 5, 5000
"""Without reference rows, the reference is one row in HELD_OUT, at most MOST_HELD_OUT rows."""
WITHOUT_SEARCH = "drop search: the audit then chooses a search without gradients"


@dataclass(frozen=True)
class Tables:
    """The ``source`` and its rows, ``everyone``, as the model's features.

    The fair metric is learned from the rows ``known`` of the table ``reference``, which are the source and everyone if
    no reference rows are passed.
    """

    encoding: Encoding
    source: Source
    everyone: Rows
    reference: Source
    known: Rows
    predictor: Predictor

    @property
    def without_reference(self) -> bool:
        """Return whether no reference rows are passed."""
        return self.known is self.everyone


def tables_of(
    source: Source,
    model: Model,
    reference: Source | None,
    computing: Computing,
    *,
    features: Sequence[str],
    drop: Sequence[str],
    label: str,
    sensitive: Sequence[str],
    include_sensitive: bool,
    categorical: Sequence[str],
    search: str,
) -> Tables:
    """Return the encoded tables. Raises InvalidInput if the reference has other columns or levels than the source."""
    attributes = [attribute(text, source.columns) for text in sensitive]
    apart = [one.column for one in attributes]
    columns = feature_names(source, features, drop, label, apart, "sensitive", include_sensitive)
    made = predictor(model, source.inputs(columns), computing, search != "auto")
    codes = () if search == "gradient" else coded(made, categorical)
    if search == "gradient" and categorical:
        problem = "a search along the gradient moves every column continuously, so it cannot take categorical"
        raise InvalidInput(problem, option="categorical", remedy="Use search='people', or leave out categorical")
    encoding = encoding_of(source, columns, search != "gradient" and model.of_frames, codes)
    source = noted(source, made, categorical, codes)
    every = encoding.encoded(source)
    everyone = encoding.rows(every, attributes)
    if reference is None:
        return Tables(encoding, every, everyone, every, everyone, made)
    check_columns(reference.table, [*columns, *apart], "reference", reference.name)
    reference = encoding.encoded(reference)
    known = encoding.rows(reference, attributes)
    if known.levels != everyone.levels:
        raise InvalidInput(
            f"the sensitive columns of {reference.name} and {source.name} have different levels",
            source=reference.name,
            option="reference",
            remedy="Give reference rows that have the same levels",
        )
    return Tables(encoding, every, everyone, reference, known, made)


@dataclass(frozen=True)
class Trial:
    """Outcome of a trial of the model on all rows: whether it has a gradient.

    ``of`` returns the model's answers after a trial on the rows with these numbers. ``layers`` are the model as a
    function with a gradient in closed form, None if torch computes the gradient or there is none.
    """

    gradient: bool
    of: Callable[[Array], Answers | Scores]
    device: str
    layers: Layers | None = None


def check_search(model: Model, search: str) -> None:
    """Raise InvalidInput if a search along the gradient is requested for a kind of model that has none."""
    without = model.kind in ("onnx", "quantised") or (model.kind == "estimator" and not is_layered(model.fitted))
    if search == "gradient" and without:
        raise no_gradient(model, WITHOUT_SEARCH)


def trial_of(
    model: Model, tables: Tables, computing: Computing, *, search: str, output_kind: OutputKind, seed: int
) -> Trial:
    """Try the model, and find its gradient by torch or in closed form.

    A plain function without a gradient must return numbers. If the requested ``search`` is not possible, raises
    InvalidInput or the error of the first trial.
    """
    everyone, encoding = tables.everyone, tables.encoding

    def of(numbers: Array) -> Scores:
        import torch

        features = torch.tensor(everyone.features[numbers], dtype=computing.dtype, device=computing.device)
        return probed(model, features, everyone.names, output_kind)

    def answers_for(numbers: Array) -> Answers:
        rows = encoding.decoded(everyone.features[numbers]).set_axis(numbers)
        return answered(tables.predictor, rows, tables.source.name, output_kind, decoded=encoding.decoded)

    tensors = search in ("auto", "gradient") and model.kind in ("network", "function") and not encoding.levels
    failed = None
    if tensors and (model.kind == "network" or search == "gradient"):
        return Trial(True, of, str(computing.device))
    some = drawn(np.arange(len(everyone.features)), TRIED_ROWS, "loss-ratio", "trial", str(seed))
    if tensors and find_spec("torch"):
        try:
            of(some)
            return Trial(True, of, str(computing.device))
        except ValueError as error:
            if isinstance(error, InvalidInput) and error.option in ("dtype", "device"):
                raise
            failed = error
    try:
        answers = answers_for(some)
    except ValueError as error:
        if encoding.levels and model.kind == "function":
            raise InvalidInput(
                f"{error}. The data frame has text in {listed(list(map(repr, encoding.levels)), SHOWN)}",
                option="features",
                column=next(iter(encoding.levels)),
                remedy="If the model only takes numbers, encode these columns, or leave them out of the features",
            ) from error
        # A function that fails on a tensor may take data frames alone, and one that answers to them may take both.
        if failed is None or isinstance(failed, ModelFailed) or not isinstance(error, ModelFailed):
            raise
        raise failed from error
    layers = None if search == "people" else layers_of(model, answers, encoding, everyone.features[some])
    if search == "gradient" and layers is None:
        raise no_gradient(model, WITHOUT_SEARCH)
    device = str(computing.device) if model.kind in ("network", "quantised") else "cpu"
    return Trial(layers is not None, answers_for, device, layers)


def chosen_rows(
    count: int, *, hold_out: bool, points: int | None, placebo: str, seed: int
) -> tuple[Array, Array, Array]:
    """Return the numbers of the audited rows, the placebo's draw of each (-1 for none), and the rows held out.

    The rows held out, a fifth of all but at most 5,000, are the reference of a search among people.
    """
    numbers = np.arange(count)
    held = numbers[:0]
    if hold_out:
        held = drawn(numbers, min(MOST_HELD_OUT, count // HELD_OUT), "loss-ratio", "reference", str(seed))
        numbers = np.setdiff1d(numbers, held)
    if points is not None and points > len(numbers):
        problem = f"points={points} is more than the {len(numbers)} rows of the data"
        raise InvalidInput(problem, option="points", remedy="Drop it to audit all rows")
    numbers = drawn(numbers, points, "loss-ratio", "points", str(seed))
    (rng,) = generators("audit", "loss-ratio", "placebo", str(seed), repetitions=1)
    rank = rng.permutation(len(numbers))
    attacked = (rank < PLACEBO_ROWS) & (placebo != "none")
    return numbers, np.where(attacked, rank % PLACEBO_DRAWS, -1), held
