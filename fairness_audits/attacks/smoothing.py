"""Randomized smoothing: certified radii, lower bounds on the distance to the boundary of the smoothed network.

Source: Cohen et al. 2019, "Certified adversarial robustness via randomized smoothing", section 3.2, with an adaptive
sample size.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.special import betaincinv, ndtri
from torch import Tensor

from fairness_audits.attacks import Distances, Execution
from fairness_audits.attacks.distances import DEFAULT, CountedNetwork, checked, classes_of, device_of, evaluation
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

BLOCK = 100
"""Number of noisy images of a point drawn together. Sample sizes are multiples of it."""
SELECTION, ESTIMATION = 0, 1
STOP_LEVEL = 0.05
"""Level of the upper limit in the stopping rule. It affects the cost, not the certificate."""


@dataclass(frozen=True)
class SamplePlan:
    """The noise settings of :func:`certify`, and its sequence of sample sizes, in whole blocks."""

    sigma: float
    selection_samples: int
    samples: int
    alpha: float
    first_samples: int
    growth: float
    tolerance: float
    seed: int

    def __post_init__(self) -> None:
        if self.sigma <= 0 or not 0 < self.alpha < 1 or self.growth <= 1 or self.tolerance < 0:
            ranges = {"sigma": self.sigma > 0, "alpha": 0 < self.alpha < 1, "growth": self.growth > 1}
            raise InvalidInput(
                "expected sigma > 0, 0 < alpha < 1, growth > 1 and tolerance >= 0, found "
                f"{self.sigma}, {self.alpha}, {self.growth} and {self.tolerance}",
                option=next((name for name, fits in ranges.items() if not fits), "tolerance"),
            )
        counts = {name: getattr(self, name) for name in ("selection_samples", "samples", "first_samples")}
        wrong = {name: count for name, count in counts.items() if count < BLOCK or count % BLOCK}
        if wrong:
            problem = f"expected multiples of {BLOCK}, because noisy images are drawn {BLOCK} at a time; found {wrong}"
            raise InvalidInput(problem, option=next(iter(wrong)))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Sample sizes at each look."""
        sizes = [min(self.first_samples, self.samples)]
        while sizes[-1] < self.samples:
            sizes.append(min(self.samples, BLOCK * math.ceil(self.growth * sizes[-1] / BLOCK)))
        return tuple(sizes)

    @property
    def level(self) -> float:
        """Level of each look: alpha divided by the number of looks."""
        return self.alpha / len(self.sizes)


def certify(
    model: Callable[[Tensor], Tensor],
    images: Array | Tensor,
    label: Array | Tensor,
    *,
    sigma: float = 0.125,
    selection_samples: int = 100,
    samples: int = 100_000,
    alpha: float = 0.001,
    first_samples: int = 100,
    growth: float = 1.5,
    tolerance: float = 0.1,
    seed: int = 0,
    rows: Array | None = None,
    channel_scale: Sequence[float] | None = None,
    execution: Execution = DEFAULT,
) -> Distances:
    """Certify radii by randomized smoothing: lower bounds on distances to the smoothed network's boundary.

    R = sigma Phi^-1(p), where p is a lower confidence limit of P(f(x + sigma eps) = c), eps ~ N(0, I); R = 0 if p <=
    1/2.

    f is the network's class, and c the most frequent class among ``selection_samples`` noisy copies of x. With
    probability at least 1 - ``alpha`` over the noise, the smoothed network g(x) = argmax_k P(f(x + sigma eps) = k) has
    the same class at all points within L2 distance R of x.

    The sample grows in S looks from ``first_samples`` by the factor ``growth`` to ``samples``. Look s computes the
    Clopper-Pearson limit of its k_s hits in n_s samples at level alpha / S. All S limits hold simultaneously with
    probability 1 - alpha (union bound), so the largest limit so far is a valid certificate under any stopping rule.
    Sampling stops when R can grow by no more than ``tolerance`` times the larger of sigma and the largest possible R,
    the R at n_S for a share of hits at its upper 95 % limit. A point whose c differs from its label has radius 0 and is
    not sampled further. 0 is a valid certificate, so this is not a failure.

    Parameters
    ----------
    model, images, label
        As in :func:`fairness_audits.attacks.distances.measured`.
    sigma : float
        Standard deviation of the noise, in pixels in [0, 1].
    selection_samples, samples, first_samples : int
        Numbers of noisy copies for the choice of c, in the largest sample and in the first sample; multiples of BLOCK.
        With ``first_samples`` >= ``samples`` this is the fixed-size rule of the source.
    alpha, growth, tolerance : float
        Error probability, growth of the sample and tolerance of the stopping rule, as above.
    seed : int
        Seed of the noise.
    rows : ndarray of shape (n,), optional
        Numbers of the points, by default 0, 1, ... Point i uses the noise stream (``seed``, rows[i]), independent of
        its batch. A GPU has other streams than a processor.
    channel_scale : sequence of float, optional
        s (c,): the noise in channel j is sigma s_j. With a network's standard deviations, sigma is in normalised units.
        R is then certified in the norm ||delta / s||, and the returned radius R min_j s_j in pixels. The noise is not
        clipped to the box.
    execution : Execution
        Execution settings.

    Returns
    -------
    Distances
        The radii, L2 in pixels in [0, 1].

    Raises
    ------
    InvalidInput
        For settings out of range, for images that are not pixels in [0, 1], and for labels that are not classes.

    References
    ----------
    Cohen et al. 2019, "Certified adversarial robustness via randomized smoothing", section 3.2.

    """
    plan = SamplePlan(sigma, selection_samples, samples, alpha, first_samples, growth, tolerance, seed)
    x, y = checked(images, label)
    streams = np.arange(len(x)) if rows is None else np.asarray(rows)
    if streams.shape != (len(x),):
        problem = f"expected one row number for each of {len(x)} images, found shape {streams.shape}"
        raise InvalidInput(problem, option="rows")
    device = device_of(model, x, execution.device)
    scale = torch.tensor(scales(channel_scale, x.shape[1]), dtype=torch.float32, device=device)[:, None, None]
    network = CountedNetwork(model, classes_of(y))
    votes = Votes(network, x, streams, plan, sigma * scale, device, execution)
    with evaluation(model):
        selected = most_voted(votes, plan)
        lower, _ = estimated(votes, plan, np.flatnonzero(selected == y.cpu().numpy()), selected)
    distance = radius(lower, sigma) * float(scale.min())
    return Distances(distance, np.zeros(len(x), dtype=bool), None, network.forward_passes)


def scales(channel_scale: Sequence[float] | None, channels: int) -> Array:
    """Return the scale of the noise in every channel, (c,)."""
    scale = np.ones(channels) if channel_scale is None else np.asarray(channel_scale, dtype=float)
    if scale.shape != (channels,) or not (scale > 0).all():
        problem = f"expected one positive channel_scale for each of {channels} channels, found {channel_scale}"
        raise InvalidInput(problem, option="channel_scale")
    return scale


@dataclass(frozen=True)
class Votes:
    """The network's classes of noisy copies of the points."""

    network: CountedNetwork
    x: Tensor
    streams: Array
    plan: SamplePlan
    scale: Tensor
    device: torch.device
    execution: Execution

    def cast(self, points: Array, phase: int, start: int, stop: int) -> Iterator[tuple[Array, Array]]:
        """Yield points (b,) and the classes of one block of each (b, BLOCK), for samples ``start`` to ``stop``."""
        blocks = [(point, block) for point in points for block in range(start // BLOCK, stop // BLOCK)]
        suits = BLOCK if self.device.type == "cpu" else 20 * BLOCK
        together = max(1, (self.execution.batch_size or suits) // BLOCK)
        for first in range(0, len(blocks), together):
            batch = blocks[first : first + together]
            noisy = torch.cat([self.noisy(point, phase, block) for point, block in batch])
            classes = self.network.logits(noisy).argmax(1).cpu().numpy()
            yield np.array([point for point, _ in batch]), classes.reshape(len(batch), BLOCK)

    def noisy(self, point: int, phase: int, block: int) -> Tensor:
        """Draw x + scale eps for one block of one point, from its own stream, (BLOCK, c, h, w)."""
        words = np.random.SeedSequence([self.plan.seed, int(self.streams[point]), phase, block]).generate_state(2)
        generator = torch.Generator(self.device).manual_seed(int(words[0]) << 32 | int(words[1]))
        shape = (BLOCK, *self.x.shape[1:])
        noise = torch.randn(shape, generator=generator, dtype=self.x.dtype, device=self.device)
        return noise.mul_(self.scale).add_(self.x[point].to(self.device))


def most_voted(votes: Votes, plan: SamplePlan) -> Array:
    """Return the most frequent class of each point's selection samples (n,), the first if tied."""
    counts: list[dict[int, int]] = [{} for _ in votes.x]
    for points, classes in votes.cast(np.arange(len(votes.x)), SELECTION, 0, plan.selection_samples):
        for point, block in zip(points, classes, strict=True):
            for label, count in zip(*np.unique(block, return_counts=True), strict=True):
                counts[point][int(label)] = counts[point].get(int(label), 0) + int(count)
    return np.array([min(tally, key=lambda label: (-tally[label], label)) for tally in counts], dtype=np.int64)


def estimated(votes: Votes, plan: SamplePlan, points: Array, selected: Array) -> tuple[Array, Array]:
    """Return the lower limit of P(class = selected) (n,), 0 for the other points, and the numbers of samples (n,)."""
    lower, (drawn, hits) = np.zeros(len(selected)), np.zeros((2, len(selected)), dtype=np.int64)
    before = 0
    for size in plan.sizes:
        for some, classes in votes.cast(points, ESTIMATION, before, size):
            np.add.at(hits, some, (classes == selected[some][:, None]).sum(axis=1))
        drawn[points] = before = size
        lower[points] = np.maximum(lower[points], lower_limit(hits[points], size, plan.level))
        points = points[gain(hits[points], size, lower[points], plan) > 0]
        if len(points) == 0:
            break
    return lower, drawn


def gain(hits: Array, size: int, lower: Array, plan: SamplePlan) -> Array:
    """Compute the possible growth of R / sigma beyond the tolerance, (n,)."""
    last = plan.sizes[-1]
    most = np.floor(upper_limit(hits, size, STOP_LEVEL) * last)
    now, attainable = radius(lower, 1.0), radius(lower_limit(most, last, plan.level), 1.0)
    return attainable - now - plan.tolerance * np.maximum(1.0, attainable)


def radius(lower: Array, sigma: float) -> Array:
    """Compute sigma Phi^-1(p), 0 if p <= 1/2."""
    return sigma * ndtri(np.maximum(lower, 0.5))


def lower_limit(hits: Array, size: int, level: float) -> Array:
    """Compute the lower Clopper-Pearson limit: p with P(Binomial(size, p) >= hits) = level, 0 for no hits."""
    hits = np.asarray(hits, dtype=float)
    return np.where(hits > 0, betaincinv(np.maximum(hits, 1), size - hits + 1, level), 0.0)


def upper_limit(hits: Array, size: int, level: float) -> Array:
    """Compute the upper Clopper-Pearson limit: p with P(Binomial(size, p) <= hits) = level, 1 for hits only."""
    return 1.0 - lower_limit(size - np.asarray(hits), size, level)
