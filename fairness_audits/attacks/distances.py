"""Distances to the decision boundary by attacks, and the functions that all attacks share.

An attack searches for the closest image of another class, min ||x' - x||_2 subject to f(x') != y and x' in [0, 1]^d.
Its result is an upper bound on the distance d(x). Images are pixels in [0, 1] and distances are L2 in this scale,
whatever preprocessing the network includes.
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
"""Batch size on a processor, chosen for its cache."""
GPU_BATCH = 256
DEFAULT = Execution()


class CountedNetwork:
    """A classifier from pixels (n, c, h, w) to logits (n, K), K >= ``classes``, that counts forward passes.

    ``keeps_graphs`` is False if a graph serves one gradient only, as in a compiled network.
    """

    def __init__(self, model: Callable[[Tensor], Tensor], classes: int = 2) -> None:
        self.model = model
        self.classes = classes
        self.forward_passes = 0
        self.keeps_graphs = True

    def logits(self, x: Tensor) -> Tensor:
        """Return the logits without a graph."""
        with torch.no_grad():
            return self._passed(x)

    def traced(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return a leaf tensor with the values of x, and its logits, for :meth:`gradient`."""
        leaf = x.detach().requires_grad_(True)
        with torch.enable_grad():
            return leaf, self._passed(leaf)

    def gradient(self, values: Tensor, leaf: Tensor, *, again: bool = False) -> Tensor:
        """Return the gradient of each point's value in its leaf.

        ``again`` keeps the graph for another call, if the network ``keeps_graphs``. Components that are infinite or NaN
        become 0.
        """
        total = values.sum()
        try:
            (gradient,) = torch.autograd.grad(total, leaf, retain_graph=again and self.keeps_graphs)
        except RuntimeError:
            if not (again and self.keeps_graphs):
                raise
            self.keeps_graphs = False
            (gradient,) = torch.autograd.grad(total, leaf)
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
        return logits if logits.dtype == x.dtype else _as_precise_as(x, logits)


def _as_precise_as(x: Tensor, logits: Tensor) -> Tensor:
    """Return logits of another precision in that of x, less the largest of each point: differences keep their signs."""
    logits = logits.to(torch.promote_types(logits.dtype, x.dtype))
    return (logits - logits.detach().amax(1, keepdim=True).nan_to_num(0.0, 0.0, 0.0)).to(x.dtype)


class Closest:
    """The closest adversarial image so far, for each point of a batch."""

    def __init__(self, x: Tensor) -> None:
        self.x = x
        self.adversarial = x.clone()
        self.distance = torch.full((len(x),), torch.inf, dtype=x.dtype, device=x.device)

    def offer(self, rows: Tensor, candidate: Tensor, fooled: Tensor) -> None:
        """Store the candidates (m, c, h, w) of points ``rows`` (m,) that are adversarial and closer."""
        distance = norms(candidate - self.x[rows])
        better = fooled & (distance < self.distance[rows])
        rows = rows[better]
        self.adversarial[rows] = candidate[better]
        self.distance[rows] = distance[better]

    @property
    def found(self) -> Tensor:
        """Return a mask (n,) of the points with an adversarial image."""
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
    """Measure the distances of all points, in batches of ``how.batch_size``.

    ``images`` (n, c, h, w) in [0, 1], ``label`` (n,) integer classes. A ``torch.nn.Module`` runs in evaluation mode
    with frozen parameters, and its state is restored. Raises InvalidInput for other images or labels, and for a network
    without a logit for every class among the labels.
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
            # In float64: float32 would round the difference of two images.
            exact = norms(closest.adversarial.double() - batch.double())
            distance[rows] = exact.where(closest.found, torch.nan).cpu().numpy()
            if adversarial is not None:
                adversarial[rows] = closest.adversarial.cpu().numpy()
    return Distances(distance, np.isnan(distance), adversarial, network.forward_passes)


def checked(images: Array | Tensor, label: Array | Tensor) -> tuple[Tensor, Tensor]:
    """Convert images to float32 and labels to int64 tensors. Raises InvalidInput unless they are pixels and classes."""
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
    """Return the minimum number of classes of a network for these labels, at least two."""
    return max(2, int(label.max()) + 1) if len(label) else 2


def device_of(model: Callable[[Tensor], Tensor], images: Tensor, device: str | torch.device | None) -> torch.device:
    """Return the named device, or else that of the model's first parameter, or else that of the images."""
    if device is not None:
        return torch.device(device)
    first = next(model.parameters(), None) if isinstance(model, torch.nn.Module) else None
    return images.device if first is None else first.device


def batch_of(device: torch.device, size: int | None = None) -> int:
    """Return the batch size: ``size``, or a default for the device if it is None."""
    return size or (CPU_BATCH if device.type == "cpu" else GPU_BATCH)


@contextlib.contextmanager
def evaluation(model: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Put a module in evaluation mode (no dropout, frozen batch statistics), without gradients of its parameters."""
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
    """Compute the margin g = z_y - max_{k != y} z_k, (n,): positive if y is the predicted class."""
    own = label[:, None]
    return logits.gather(1, own)[:, 0] - logits.scatter(1, own, -torch.inf).amax(1)


def fooled_by(logits: Tensor, label: Tensor) -> Tensor:
    """Return a mask of points whose predicted class (the first largest logit) is not the label; NaN is False."""
    return (logits.argmax(1) != label) & ~logits.isnan().any(1)


def norms(x: Tensor) -> Tensor:
    """Compute ||x_i||_2 of each point, (n,)."""
    return torch.linalg.vector_norm(x.flatten(1), dim=1)


def spread(values: Tensor) -> Tensor:
    """Reshape one number per point, (n,), to (n, 1, 1, 1), to multiply images."""
    return values[:, None, None, None]


def affine(logits: Callable[[Tensor], Tensor], origin: Tensor) -> tuple[Array, Array]:
    """Return W (K, d) and b (K,) in float64 of f(x) = W x + b: b is f(0), row k of W the gradient of score k at 0.

    ``origin`` (1, c, h, w) is the image 0, on the device and in the precision of f.
    """
    origin.requires_grad_(True)
    with torch.enable_grad():
        (at_0,) = logits(origin)
        # A graph for each score, because those of compiled networks serve only once.
        slopes = [torch.autograd.grad(logits(origin)[0, k], origin, allow_unused=True)[0] for k in range(len(at_0))]
    rows = [torch.zeros_like(origin) if slope is None else slope for slope in slopes]
    weight = torch.stack([row.flatten() for row in rows]).double().cpu().numpy()
    return weight, at_0.detach().double().cpu().numpy()


def misfit(logits: Callable[[Tensor], Tensor], weight: Array, bias: Array, images: Tensor) -> float:
    """Compute the largest difference between the margins of f and of W x + b on ``images`` (n, c, h, w).

    The result is a share of the largest margin: only rounding for an affine network, NaN for non-finite weights.
    """
    with torch.no_grad():
        there = logits(images).double().cpu().numpy()
    with np.errstate(invalid="ignore"):  # weights that do not exist
        expected = images.cpu().numpy().reshape(len(images), -1).astype(np.float64) @ weight.T + bias
    gaps, wanted = (values - values[:, :1] for values in (there, expected))
    return float(np.abs(gaps - wanted).max() / max(float(np.abs(gaps).max()), 1e-12))
