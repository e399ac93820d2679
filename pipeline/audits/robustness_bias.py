"""Robustness bias: how far the test points of each group are from a decision boundary, at each checkpoint.

Distances are L2, in pixels in [0, 1], for correctly classified points. ``exact`` gives exact distances, attacks give
upper bounds, and ``smoothing`` gives radii that are lower bounds for the smoothed network with high probability. The
contribution of misclassified points and failed attacks depends on the denominator; see
:mod:`fairness_audits.audits.robustness_bias.measures`.

Source: Nanda et al. 2021.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated, Any

import numpy as np

from fairness_audits.attacks import Execution
from fairness_audits.audits.inference import Precision
from fairness_audits.audits.robustness_bias.core import MEASURES, RobustnessBias, robustness_bias
from fairness_audits.audits.robustness_bias.distances import EXACT, SMOOTHING, Attack, attack_on, exact_arithmetic
from fairness_audits.audits.robustness_bias.measures import Partition
from fairness_audits.models.device import visible_device
from fairness_audits.seeds import fingerprint
from fairness_audits.validation import Checked, Count, Positive, Share, one_of, some_of
from fairness_audits.values import Array, Checkpoint, Classifier, ImageDataset
from pipeline import networks
from pipeline.example_pairs import chosen, shown
from pipeline.network_distances import NAMES, STREAMS, WITH_IMAGES, AuditedNetwork, Progress, applies, together
from pipeline.values import AuditResult

LOG = logging.getLogger(__name__)
CHECKPOINTS = ("all", "last")
SCALES = ("pixels", "normalised")
COUNTS = ("n_correct", "failed")
"""Counts of a level; the points that count are a measure."""
OF_THE_AUDIT = ("points", "checkpoints", "scale")
"""Settings of an attack that are not arguments of its function."""


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """Settings of the audit.

    ``attacks``: any of ``NAMES``; exact distances exist for linear networks only. ``checkpoints``: all or
    last. ``smoothing_checkpoints``: which of these are certified. ``<attack>_points``: attack the first N test points,
    None for all. Every other ``<attack>_...`` is a parameter of the function in ``fairness_audits.attacks``.
    ``smoothing_scale``: unit of the noise's sigma, pixels or normalised. ``budget``: T, the largest perturbation in the
    integral over tau, None for the largest measured distance. Intervals have level 1 - ``alpha`` and use ``bootstraps``
    resamples; p-values use ``permutations``. ``examples``: the attack whose images are stored for one example, or None.
    ``batch_size``: images attacked together, None to choose by device; ``threads`` of the CPU.
    """

    attacks: Annotated[Sequence[str], some_of(NAMES)]
    checkpoints: Annotated[str, one_of(CHECKPOINTS)]
    exact_points: Count | None
    deepfool_points: Count | None
    deepfool_steps: int
    deepfool_candidates: int
    deepfool_overshoot: float
    carlini_wagner_points: Count | None
    carlini_wagner_iterations: int
    carlini_wagner_searches: int
    carlini_wagner_learning_rate: float
    carlini_wagner_initial_c: float
    fmn_points: Count | None
    fmn_steps: int
    fmn_start_steps: int
    smoothing_checkpoints: Annotated[str, one_of(CHECKPOINTS)]
    smoothing_points: Count | None
    smoothing_sigma: float
    smoothing_scale: Annotated[str, one_of(SCALES)]
    smoothing_selection_samples: int
    smoothing_samples: int
    smoothing_first_samples: int
    smoothing_growth: float
    smoothing_tolerance: float
    smoothing_alpha: float
    budget: Positive | None
    alpha: Share
    bootstraps: Count
    permutations: Count
    examples: Annotated[str, one_of(WITH_IMAGES)] | None
    batch_size: Count | None
    threads: Count

    @property
    def precision(self) -> Precision:
        return Precision(self.alpha, self.bootstraps, self.permutations)

    def sample(self, attack: str, n: int, last: bool) -> Array:
        """Return a mask (n,) of the test points that are attacked: the first N, or none at this checkpoint."""
        if attack == SMOOTHING and self.smoothing_checkpoints == "last" and not last:
            return np.zeros(n, dtype=bool)
        points = getattr(self, f"{attack}_points")
        return np.arange(n) < (n if points is None else points)

    def attack(self, subject: AuditedNetwork, name: str, rng: np.random.Generator, keep_images: bool = False) -> Attack:
        """Return an attack on a network with its own settings; the seed of smoothing's noise is drawn from ``rng``."""
        if name == EXACT:
            return subject.exact_attack()
        start = f"{name}_"
        every = [field.name.removeprefix(start) for field in fields(self) if field.name.startswith(start)]
        settings = {key: getattr(self, f"{start}{key}") for key in every if key not in OF_THE_AUDIT}
        if name == SMOOTHING:
            settings["seed"] = int(rng.integers(2**63))
            settings["channel_scale"] = subject.dataset.std if self.smoothing_scale == "normalised" else None
        how = Execution(batch_size=self.batch_size, keep_adversarial=keep_images)
        return attack_on(subject.f, name, settings, how)


def run(
    dataset: ImageDataset,
    classifier: Classifier,
    config: Config,
    rngs: Sequence[np.random.Generator],
    resume: Checkpoint | None = None,
) -> AuditResult:
    """Measure the distances of the test points, and the groups of every partition by them.

    With ``resume``, a killed audit continues.

    Columns: ``repetition`` (0, there is one split), ``epoch`` and whatever else tells the classifiers apart,
    ``attack``, ``partition`` and ``level`` (both empty for all points together), ``denominator`` (paper, correct;
    empty where there is none), ``statistic``, ``value``.

    - All points: the number of attacked ``points``, their ``accuracy``, ``failed`` attacks, ``forward_passes``
    (images),
      ``budget`` T, ``mean_distance`` and ``median_distance`` of the measured distances.
    - Levels: ``n_correct``, ``failed``; and by denominator ``n`` points that count, ``auc``, ``mean_distance`` and
      ``median_distance`` of their lengths, ``sigma`` with ``sigma_ci_low``, ``sigma_ci_high``, ``sigma_p``, and
      ``sigma_p_adjusted`` over all levels of the dataset.

    Arrays, for K checkpoints and n test points: ``epoch`` (K,), ``rows`` (n,) of the dataset, the codes (n,) of each
    partition under its name, ``correct`` (K, n), and for each attack ``tried_<attack>`` (K, n), the points of its
    sample, and ``distance_<attack>`` (K, n) float64, NaN where a point was not in the sample, was misclassified or the
    attack failed.

    Arrays of the example, where the attack ``config.examples`` was made and gave one, at the last checkpoint:
    ``example_partition`` (1,), its name; ``example_budget`` (1,); and of the nearer and the farther point, (2, ...)
    each, ``example_points``, ``example_images`` and ``example_perturbed`` (2, c, h, w) float32 in [0, 1],
    ``example_distance``, ``example_label``, ``example_prediction`` (of the perturbed image), and ``example_level``, a
    code. Which points they are is decided by the rule in :mod:`pipeline.example_pairs`.

    All random numbers come from ``rngs``, one for each checkpoint. Raises ValueError for a classifier that is not a
    network for this data set.
    """
    import pandas as pd

    audited = dataset.test[0]
    partitions = partitions_of(dataset, audited)
    audited_checkpoints = list(range(classifier.repetitions))[0 if config.checkpoints == "all" else -1 :]
    arrays = {"rows": audited, **{partition.name: partition.codes for partition in partitions}}
    table: list[dict[str, Any]] = []
    by_checkpoint: list[dict[str, Array]] = []
    device = visible_device()
    held = (dataset.images[audited], dataset.label[audited], *classifier.parameters.values())
    progress = Progress(resume, fingerprint((config, dataset.name, classifier.method, device.type), held))
    with exact_arithmetic(config.threads):
        for k in audited_checkpoints:
            network = networks.of_checkpoint(classifier, dataset, k, device)
            subject = AuditedNetwork(network, dataset, audited, device)
            place = {name: values[k] for name, values in classifier.index.items()}
            made = [name for name in config.attacks if applies(name, classifier.architecture)]
            samples = {name: config.sample(name, len(audited), last=k == audited_checkpoints[-1]) for name in made}
            found, own = _checkpoint(subject, samples, config, partitions, rngs[k], place, progress)
            table += [{"repetition": 0, **one} for one in found]
            by_checkpoint.append(own)
            if k == audited_checkpoints[-1]:
                arrays |= _example(subject, config, partitions, own, rngs[k])
    arrays |= {name: np.stack([own[name] for own in by_checkpoint]) for name in by_checkpoint[0]}
    arrays |= {name: values[audited_checkpoints] for name, values in classifier.index.items()}
    rows = pd.DataFrame(table)
    return AuditResult("robustness_bias", dataset.name, classifier.method, dataset.origin, rows, arrays)


def _checkpoint(
    subject: AuditedNetwork,
    samples: Mapping[str, Array],
    config: Config,
    partitions: Sequence[Partition],
    rng: np.random.Generator,
    place: Mapping[str, Any],
    progress: Progress,
) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """Return rows of one network under every attack, and arrays over all test points, (n,) each.

    ``samples`` are the points of each attack, (n,) bool; an attack without points has no rows. ``place`` identifies the
    network among the networks of its classifier.
    """
    prediction = subject.predictions()
    correct = prediction == subject.dataset.label[subject.rows]
    arrays: dict[str, Array] = {"correct": correct}
    table: list[dict[str, Any]] = []
    streams = rng.spawn(1 + max(STREAMS.values()))
    for name, tried in samples.items():
        arrays |= {f"distance_{name}": np.full(len(tried), np.nan), f"tried_{name}": tried}
        if not tried.any():
            continue
        attacking, measuring = streams[STREAMS[name]].spawn(2)
        attack = config.attack(subject, name, attacking)
        where = ", ".join([name, *(f"{key} {value}" for key, value in place.items())])
        points, at_once = (
            np.flatnonzero(tried & correct),
            together(name, subject.device, config.batch_size),
        )
        distance, forward_passes = subject.attacked(attack, points, prediction, at_once, progress, where)
        arrays[f"distance_{name}"] = distance
        parts = [Partition(one.name, one.levels, one.codes[tried]) for one in partitions]
        found = robustness_bias(distance[tried], correct[tried], parts, config.budget, config.precision, measuring)
        own = [*rows_of(found, where), row("forward_passes", forward_passes)]
        table += [{**place, "attack": name, **one} for one in own]
    return table, arrays


def rows_of(found: RobustnessBias, where: str) -> Iterator[dict[str, Any]]:
    """Yield the quantities of all points together, and then those of every level, as tidy rows.

    A warning names each level without a sigma; ``where`` describes the network and attack in it.
    """
    whole = {
        "points": len(found.correct),
        "accuracy": found.correct.mean(),
        "failed": found.failed.sum(),
        "budget": found.budget,
        "mean_distance": found.mean_distance,
        "median_distance": found.median_distance,
    }
    for statistic, value in whole.items():
        yield row(statistic, value)
    counts = [one for one in found.levels if one.denominator == found.levels[0].denominator]
    for statistics, every in ((COUNTS, counts), (MEASURES, found.levels)):
        for one in every:
            denominator = "" if statistics is COUNTS else one.denominator
            for statistic, level, value in one.entries(statistics):
                yield row(statistic, value, one.partition.name, level, denominator)
    for one in found.levels:
        if one.empty:
            message = "%s, denominator %s: no point of %s %s counts, so sigma is undefined"
            LOG.warning(message, where, one.denominator, one.partition.name, ", ".join(one.empty))


def row(statistic: str, value: Any, partition: str = "", level: str = "", denominator: str = "") -> dict[str, Any]:
    """Return a row of a level, or of all points."""
    where = {"partition": partition, "level": level, "statistic": statistic}
    return {**where, "value": float(value), "denominator": denominator}


def partitions_of(dataset: ImageDataset, rows: Array) -> tuple[Partition, ...]:
    """Return the partitions of a dataset, restricted to these rows; the classes come first."""
    names = sorted(dataset.partitions, key=lambda name: name != dataset.label_name)
    return tuple(Partition(name, dataset.levels[name], dataset.partitions[name][rows]) for name in names)


def _example(
    subject: AuditedNetwork,
    config: Config,
    partitions: Sequence[Partition],
    arrays: Mapping[str, Array],
    rng: np.random.Generator,
) -> dict[str, Array]:
    """Return the arrays of the example, or none."""
    name = f"distance_{config.examples}"
    if name not in arrays:
        return {}
    label, distance = subject.dataset.label[subject.rows], arrays[name]
    pair = chosen(distance, label, partitions)
    if pair is None:
        return {}
    assert config.examples is not None
    attack = config.attack(subject, config.examples, rng, keep_images=True)
    attacked = partial(subject.adversarial, attack, prediction=label)
    found = shown(pair, subject.pixels, attacked, subject.classes, label)
    if found is None:
        return {}
    points, perturbed, prediction = found
    values = {
        "partition": np.array([pair.partition]),
        "budget": np.array([pair.budget]),
        "points": points,
        "images": subject.pixels(points),
        "perturbed": perturbed,
        "distance": distance[points],
        "label": label[points],
        "prediction": prediction,
        "level": np.array(pair.levels),
    }
    return {f"example_{key}": value for key, value in values.items()}
