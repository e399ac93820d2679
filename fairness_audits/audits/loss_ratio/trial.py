"""Preparation of the model and the rows: input columns, a trial that chooses the search, and the audited rows."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from fairness_audits.audits.loss_ratio.settings import Settings
from fairness_audits.errors import InvalidInput, ModelFailed
from fairness_audits.inputs.closed_form import layers_of
from fairness_audits.inputs.encoding import Encoding, encoding_of
from fairness_audits.inputs.model import Model, no_gradient
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.predictor import Predictor, coded, noted, predictor
from fairness_audits.inputs.probe import Answers, Scores, answered, probed
from fairness_audits.inputs.table import Rows, Source, attribute, drawn, feature_names
from fairness_audits.messages import SHOWN, advised, check_columns, listed
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


def tables_of(settings: Settings, source: Source, model: Model, reference: Source | None) -> Tables:
    """Return the encoded tables. Raises InvalidInput if the reference has other columns or levels than the source."""
    sensitive = [attribute(text, tuple(source.table.columns)) for text in settings.sensitive]
    apart = [one.column for one in sensitive]
    columns = feature_names(
        source, settings.features, settings.drop, settings.label, apart, "sensitive", settings.include_sensitive
    )
    made = predictor(model, source.inputs(columns), Computing.of(settings), settings.search != "auto")
    codes = () if settings.search == "gradient" else coded(made, settings.categorical)
    if settings.search == "gradient" and settings.categorical:
        problem = "a search along the gradient moves every column continuously, so it cannot take --categorical"
        raise InvalidInput(problem, option="categorical", remedy="Use --search=people, or leave out --categorical")
    texts = settings.search != "gradient" and model.of_frames
    encoding = encoding_of(source, columns, texts, codes)
    source = noted(source, made, settings.categorical, codes)
    every = encoding.encoded(source)
    everyone = encoding.rows(every, sensitive)
    if reference is None:
        return Tables(encoding, every, everyone, every, everyone, made)
    check_columns(reference.table, [*columns, *apart], "reference", reference.name)
    reference = encoding.encoded(reference)
    known = encoding.rows(reference, sensitive)
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
    """Outcome of a trial of the model on all rows: the ``engine`` that it can have.

    ``of`` returns the model's answers after a trial on the rows with these numbers. ``layers`` are the model as a
    function with a gradient in closed form, None if torch computes the gradient or there is none.
    """

    engine: str
    of: Callable[[Array], Answers | Scores]
    device: str
    layers: Layers | None = None


def trial_of(model: Model, tables: Tables, settings: Settings) -> Trial:
    """Try the model and choose the engine: the gradient by torch or in closed form, else people.

    A plain function without a gradient must return numbers. If neither is possible, raises InvalidInput or the error of
    the first trial.
    """
    computing, everyone, encoding = Computing.of(settings), tables.everyone, tables.encoding

    def of(numbers: Array) -> Scores:
        import torch

        features = torch.tensor(everyone.features[numbers], dtype=computing.dtype, device=computing.device)
        return probed(model, features, everyone.names, settings.output_kind)

    def answers_for(numbers: Array) -> Answers:
        made = tables.predictor
        return answered(made, encoding, everyone.features[numbers], numbers, settings.output_kind)

    tensors = settings.search in ("auto", "gradient") and model.kind in ("network", "function") and not encoding.levels
    failed = None
    if tensors and (model.kind == "network" or settings.search == "gradient"):
        return Trial("gradient", of, str(computing.device))
    some = drawn(np.arange(len(everyone.features)), TRIED_ROWS, "loss-ratio", "trial", str(settings.seed))
    if tensors and find_spec("torch"):
        try:
            of(some)
            return Trial("gradient", of, str(computing.device))
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
                remedy=(
                    "If the model only takes numbers, encode these columns, leave them out of --features, or pass "
                    f"{advised('drop', ','.join(encoding.levels))}"
                ),
            ) from error
        # A function that fails on a tensor may take data frames alone.
        if failed is None or isinstance(failed, ModelFailed):
            raise
        raise failed from error
    layers = None if settings.search == "people" else layers_of(model, answers, encoding, everyone.features[some])
    if settings.search == "gradient" and layers is None:
        raise no_gradient(model, "drop --search: the audit then chooses a search without gradients")
    device = str(computing.device) if model.kind in ("network", "quantised") else "cpu"
    return Trial("people" if layers is None else "gradient", answers_for, device, layers)


def rows_of_the_search(settings: Settings, tables: Tables, people: bool) -> tuple[Array, Array]:
    """Return the numbers of the rows to audit, and of the reference rows for a search among whole people.

    The reference rows are a fifth of the rows, at most 5,000, unless reference rows are passed.
    """
    count = len(tables.everyone.features)
    every = np.arange(count)
    if not (people and tables.without_reference):
        return every, every[:0]
    held = drawn(every, min(MOST_HELD_OUT, count // HELD_OUT), "loss-ratio", "reference", str(settings.seed))
    return np.setdiff1d(every, held), held


def sampled(settings: Settings, numbers: Array) -> tuple[Array, Array]:
    """Return the numbers of the audited rows, all or a sample, and the placebo's draw of each, -1 for none."""
    if settings.points is not None and settings.points > len(numbers):
        raise InvalidInput(
            f"--points={settings.points} is more than the {len(numbers)} rows of the data: drop it to audit all rows",
            option="points",
        )
    numbers = drawn(numbers, settings.points, "loss-ratio", "points", str(settings.seed))
    (rng,) = generators("audit", "loss-ratio", "placebo", str(settings.seed), repetitions=1)
    rank = rng.permutation(len(numbers))
    attacked = (rank < PLACEBO_ROWS) & (settings.placebo != "none")
    return numbers, np.where(attacked, rank % PLACEBO_DRAWS, -1)
