"""Distances to the decision boundary by attack: their values, and the pieces that every attack's loop shares.

An attack looks for the closest image of another class, min ||x' - x||_2 subject to f(x') != y and x' in [0, 1]^d, and
so bounds the distance d(x) from above. Images are pixels in [0, 1], and distances are L2 in that scale, whatever the
network does to its input.
"""

import contextlib
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from fairness_audits.attacks import Distances, Execution
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

CPU_BATCH = 32
"""Points attacked together on a processor: as many as its cache serves well."""
GPU_BATCH = 256
DEFAULT = Execution()


class CountedNetwork:
    """A classifier whose passes are counted in images: pixels (n, c, h, w) to logits (n, K), K >= ``classes``."""

    def __init__(self, model: Callable[[Tensor], Tensor], classes: int = 2) -> None:
        self.model = model
        self.classes = classes
        self.forward_passes = 0

    def logits(self, x: Tensor) -> Tensor:
        """The logits alone."""
        with torch.no_grad():
            return self._passed(x)

    def traced(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """A leaf with the values of x, and its logits, ready for :meth:`gradient`."""
        leaf = x.detach().requires_grad_(True)
        with torch.enable_grad():
            return leaf, self._passed(leaf)

    def gradient(self, values: Tensor, leaf: Tensor, *, again: bool = False) -> Tensor:
        """The gradient of each point's value in that point's leaf; ``again`` keeps the trace for the next call.

        A component that is infinite or NaN has no direction to follow and becomes 0.
        """
        (gradient,) = torch.autograd.grad(values.sum(), leaf, retain_graph=again)
        return gradient.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)

    def _passed(self, x: Tensor) -> Tensor:
        self.forward_passes += len(x)
        logits = self.model(x)
        if logits.ndim != 2 or len(logits) != len(x) or logits.shape[1] < self.classes:
            raise InvalidInput(
                f"expected logits ({len(x)}, K) of at least {self.classes} classes, as many as the labels name, "
                f"found shape {tuple(logits.shape)}",
                option="model",
            )
        return logits


class Closest:
    """The closest adversarial image offered so far, for each point of a batch."""

    def __init__(self, x: Tensor) -> None:
        self.x = x
        self.adversarial = x.clone()
        self.distance = torch.full((len(x),), torch.inf, dtype=x.dtype, device=x.device)

    def offer(self, rows: Tensor, candidate: Tensor, fooled: Tensor) -> None:
        """Keep the candidates (m, c, h, w) of points ``rows`` (m,) that fool the network from less far away."""
        distance = norms(candidate - self.x[rows])
        better = fooled & (distance < self.distance[rows])
        rows = rows[better]
        self.adversarial[rows] = candidate[better]
        self.distance[rows] = distance[better]

    @property
    def found(self) -> Tensor:
        """Which points have an adversarial image, (n,)."""
        return self.distance.isfinite()


Search = Callable[[CountedNetwork, Tensor, Tensor], Closest]
"""(network, x (n, c, h, w), label (n,)) -> the closest adversarial images of one batch."""


def measured(
    model: Callable[[Tensor], Tensor],
    images: Array | Tensor,
    label: Array | Tensor,
    search: Search,
    how: Execution,
) -> Distances:
    """The distances of all points, ``how.batch_size`` at a time.

    ``images`` (n, c, h, w) in [0, 1], ``label`` (n,) integer classes. A ``torch.nn.Module`` is run in evaluation mode
    with its parameters frozen, and handed back as it came. Raises InvalidInput for images or labels of another kind,
    and for a network without logits for every class that the labels name.
    """
    x, y = checked(images, label)
    device = device_of(model, x, how.device)
    size = batch_of(device, how.batch_size)
    network = CountedNetwork(model, classes_of(y))
    distance = np.full(len(x), np.nan)
    adversarial = np.empty(x.shape, dtype=np.float32) if how.keep_adversarial else None
    with evaluation(model):
        for start in range(0, len(x), size):
            rows = slice(start, start + size)
            batch = x[rows].to(device)
            closest = search(network, batch, y[rows].to(device))
            # In float32 the difference of two images would be rounded.
            exact = norms(closest.adversarial.double() - batch.double())
            distance[rows] = exact.where(closest.found, torch.nan).cpu().numpy()
            if adversarial is not None:
                adversarial[rows] = closest.adversarial.cpu().numpy()
    return Distances(distance, np.isnan(distance), adversarial, network.forward_passes)


def checked(images: Array | Tensor, label: Array | Tensor) -> tuple[Tensor, Tensor]:
    """Images as float32 and labels as int64 tensors; InvalidInput unless they are pixels in [0, 1] and classes."""
    x = torch.as_tensor(images).to(torch.float32)
    y = torch.as_tensor(label).to(torch.int64)
    if x.ndim != 4 or y.shape != x.shape[:1]:
        problem = f"expected images (n, c, h, w) and one label each, found shapes {tuple(x.shape)} and {tuple(y.shape)}"
        raise InvalidInput(problem, option="label" if x.ndim == 4 else "images")
    if not bool(((x >= 0) & (x <= 1)).all()):
        raise InvalidInput(
            f"expected pixels in [0, 1], found values from {float(x.min()):g} to {float(x.max()):g}",
            option="images",
            remedy="Divide the images by their maximum, and normalise inside the network",
        )
    if bool((y < 0).any()):
        raise InvalidInput(f"expected labels that number the classes from 0, found {int(y.min())}", option="label")
    return x, y


def classes_of(label: Tensor) -> int:
    """How many classes a network has at least that knows these labels: two, to have a boundary."""
    return max(2, int(label.max()) + 1) if len(label) else 2


def device_of(model: Callable[[Tensor], Tensor], images: Tensor, device: str | torch.device | None) -> torch.device:
    """The named device; else that of the model's first parameter; else that of the images."""
    if device is not None:
        return torch.device(device)
    first = next(model.parameters(), None) if isinstance(model, torch.nn.Module) else None
    return images.device if first is None else first.device


def batch_of(device: torch.device, size: int | None = None) -> int:
    """How many points are computed together: ``size``, or for None what suits the device."""
    return size or (CPU_BATCH if device.type == "cpu" else GPU_BATCH)


@contextlib.contextmanager
def evaluation(model: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """A module in evaluation mode (no dropout, frozen batch statistics) and without gradients of its parameters."""
    if not isinstance(model, torch.nn.Module):
        yield
        return
    modes = {module: module.training for module in model.modules()}
    learned = [values for values in model.parameters() if values.requires_grad]
    model.eval()
    for values in learned:
        values.requires_grad_(False)
    try:
        yield
    finally:
        for values in learned:
            values.requires_grad_(True)
        for module, training in modes.items():
            module.training = training


def margin(logits: Tensor, label: Tensor) -> Tensor:
    """g = z_y - max_{k != y} z_k, (n,): positive where y is the predicted class."""
    own = label[:, None]
    return logits.gather(1, own)[:, 0] - logits.scatter(1, own, -torch.inf).amax(1)


def fooled_by(logits: Tensor, label: Tensor) -> Tensor:
    """Where the predicted class, the first of those with the largest logit, is not the label; nowhere with a NaN."""
    return (logits.argmax(1) != label) & ~logits.isnan().any(1)


def norms(x: Tensor) -> Tensor:
    """||x_i||_2 of each point, (n,)."""
    return torch.linalg.vector_norm(x.flatten(1), dim=1)


def spread(values: Tensor) -> Tensor:
    """One number a point, (n,), in the shape (n, 1, 1, 1) that multiplies images."""
    return values[:, None, None, None]


def affine(logits: Callable[[Tensor], Tensor], origin: Tensor) -> tuple[Array, Array]:
    """W (K, d) and b (K,) float64 of f(x) = W x + b: b is f(0), and row k of W the gradient of the k-th score there.

    ``origin`` (1, c, h, w) is the image 0, on the device and in the precision of f.
    """
    origin.requires_grad_(True)
    with torch.enable_grad():
        (at_0,) = logits(origin)
        slopes = [torch.autograd.grad(logit, origin, retain_graph=True, allow_unused=True)[0] for logit in at_0]
    rows = [torch.zeros_like(origin) if slope is None else slope for slope in slopes]
    weight = torch.stack([row.flatten() for row in rows]).double().cpu().numpy()
    return weight, at_0.detach().double().cpu().numpy()


def misfit(logits: Callable[[Tensor], Tensor], weight: Array, bias: Array, images: Tensor) -> float:
    """The largest difference between the margins of f and of W x + b on ``images`` (n, c, h, w).

    It is a share of the largest margin: rounding alone for a network that is affine, NaN where weights are none.
    """
    with torch.no_grad():
        there = logits(images).double().cpu().numpy()
    with np.errstate(invalid="ignore"):  # weights that do not exist
        expected = images.cpu().numpy().reshape(len(images), -1).astype(np.float64) @ weight.T + bias
    gaps, wanted = (values - values[:, :1] for values in (there, expected))
    return float(np.abs(gaps - wanted).max() / max(float(np.abs(gaps).max()), 1e-12))
