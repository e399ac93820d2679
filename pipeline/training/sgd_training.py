r"""Stochastic gradient descent with momentum on images, for any loss, saved after every epoch and every half minute.

.. math:: g = \nabla_\theta\, \ell(B; \theta) + \lambda \theta, \qquad v \leftarrow \beta v + g, \qquad
          \theta \leftarrow \theta - \eta v

over batches B. Each epoch has a new random order of the training rows; a last batch of one row joins the previous
batch. As published, there is no weight decay lambda, no schedule of eta and no augmentation. Nesterov's momentum
subtracts g + beta v instead of v. Accuracies are measured in evaluation mode, so test images do not enter the
statistics of batch normalisation, and dropout is off.

The order and the dropout of epoch e come from the e-th number drawn from the generator at the start. A killed training
can therefore continue at its last epoch without the state of a generator. Within an epoch the state is saved.

Convolutions and products use bfloat16 if the device supports it natively, with float32 weights and losses (bfloat16 has
the range of float32, so losses need no scaling). On a GPU the images are stored as uint8 if they fit, and converted
batch by batch.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch

from fairness_audits.errors import InvalidInput
from fairness_audits.models.device import full_precision, own_operations, tensors, visible_device
from fairness_audits.seeds import fingerprint
from fairness_audits.values import Array, Checkpoint, Classifier, ImageDataset
from pipeline import networks
from pipeline.networks.imagenet import pruned
from pipeline.training.sgd_config import Config, accuracy_curve

Forward = Callable[[torch.Tensor], torch.Tensor]
Terms = dict[str, torch.Tensor]
Objective = Callable[[Forward, torch.Tensor, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor, Terms]]
"""The loss of a batch, from the network (pixels to float32 logits), pixels, labels and row numbers.

Returns the objective, the logits, and further scalars by name for the history.
"""
LOG = logging.getLogger(__name__)
SAVED_EVERY = 30.0
"""Seconds between two saved states within an epoch; a killed training loses at most this much."""
EVALUATED = 500
"""Batch size in evaluation."""
PROCESSORS_IN_BFLOAT16 = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
"""Private names of torch.cpu, since there are no public ones. If one is missing, float32 is used."""
SHARE_OF_MEMORY = 0.5
"""Maximum share of a GPU's free memory used for images."""


def trained(
    method: str,
    dataset: ImageDataset,
    settings: Config,
    rng: np.random.Generator,
    resume: Checkpoint | None,
    objective: Objective,
) -> Classifier:
    """Train ``settings.model`` on the training rows; with ``resume`` a killed training continues.

    ``index`` is the ``epoch`` (K,) of each checkpoint. ``facts`` (K,): ``train_accuracy``, on as many training rows as
    there are test rows, ``test_accuracy``, ``epochs``, ``train_rows``, ``pretrained``, ``on_gpu`` and ``bfloat16`` (0
    or 1), ``pruned`` (share of the ImageNet weights that are 0), ``parameters`` (their number), ``multiply_adds`` of a
    forward pass of one image, and those of :func:`pipeline.networks.facts`. ``history``: ``step`` (L,), the epochs; the
    means over each epoch in training mode of ``loss``, ``accuracy`` and the objective's own scalars; and after each
    epoch, in evaluation mode, ``test_accuracy`` of all test rows and of every group
    (:func:`pipeline.training.sgd_config.accuracy_curve`). (K, L) each, the same for every checkpoint.

    Raises ValueError for a network that does not fit the images or the classes, and if the loss is not finite.
    """
    own = rng.spawn(settings.training)[-1] if settings.training > 1 else rng
    seeds = own.integers(0, 2**63, settings.epochs + 1)
    device = visible_device()
    with own_state_of_torch(device, settings.deterministic, settings.threads):
        seed_torch(device, int(seeds[0]))
        training = Training(dataset, settings, objective, device)
        what = _fingerprint(method, dataset, settings, seeds)
        if resume is not None and (state := resume.load(what)):
            training.resume(state)

        def keep() -> None:
            if resume is not None:
                resume.save(what, training.state())

        for epoch in range(training.done + 1, settings.epochs + 1):
            seed_torch(device, int(seeds[epoch]))
            training.advance(keep)
            keep()
        return training.classifier(method)


class Training:
    """A network in training."""

    def __init__(self, dataset: ImageDataset, settings: Config, objective: Objective, device: torch.device) -> None:
        self.dataset, self.settings, self.objective = dataset, settings, objective
        self.device = device
        self.train, self.test = dataset.train[0][: settings.train_points], dataset.test[0]
        if len(self.train) < 2:
            problem = f"expected at least 2 training images in {dataset.name!r}, found {len(self.train)}"
            raise InvalidInput(problem, source=dataset.name, option="train_points")
        network = networks.network(
            settings.model, dataset, settings.width, settings.input_size, pretrained=settings.pretrained
        )
        self.pretrained = network.pretrained
        self.pruned = pruned(network.net) if self.pretrained else 0.0
        self.network = network.to(self.device)
        self.parameters = dict(self.network.named_parameters())
        self.optimizer = torch.optim.SGD(
            self.parameters.values(),
            settings.learning_rate,
            settings.momentum,
            weight_decay=settings.weight_decay,
            nesterov=settings.nesterov,
        )
        self.images = _on_device(torch.from_numpy(dataset.images), self.device)
        self.label = torch.from_numpy(dataset.label).to(self.device)
        self.precision = _precision(settings.precision, self.device)
        self.curves: dict[str, list[float]] = {}
        self.turn = 0
        self.sums: dict[str, torch.Tensor] = {}
        self.drawn: dict[str, torch.Tensor] = {}
        self.checkpoints: dict[int, dict[str, Array]] = {}

    @property
    def done(self) -> int:
        """The number of finished epochs."""
        return len(self.curves.get("loss", ()))

    def advance(self, keep: Callable[[], None]) -> None:
        """Train for one epoch, or finish an epoch that was interrupted; ``keep`` is called every half minute.

        ``turn`` batches of the epoch are done, with the totals ``sums`` and the generators' state ``drawn``.
        """
        self.network.train()
        order = torch.from_numpy(self.train)[torch.randperm(len(self.train))].to(self.device)
        parts = batches(order, self.settings.batch_size)
        if self.turn:
            set_generators(self.device, self.drawn)
        saved_at = time.monotonic()
        for turn, rows in enumerate(parts[self.turn :], self.turn):
            label = self.label[rows]
            pixels = augmented(self.pixels(rows), self.settings.augmentation)
            loss, logits, terms = self.objective(self.forward, pixels, label, rows)
            steps = self.done * len(parts) + turn
            # Evaluate the schedule in the middle of the step, so no step has rate 0.
            rate = self.settings.rate((steps + 0.5) / (self.settings.epochs * len(parts)))
            self.optimizer.param_groups[0]["lr"] = rate
            gradients = torch.autograd.grad(loss, list(self.parameters.values()))
            for parameter, gradient in zip(self.parameters.values(), gradients, strict=True):
                parameter.grad = gradient
            self.optimizer.step()
            right = (logits.detach().argmax(dim=1) == label).float().mean()
            for name, value in {"loss": loss, "accuracy": right, **terms}.items():
                self.sums[name] = self.sums.get(name, 0) + value.detach().double() * len(rows)
            if turn + 1 < len(parts) and time.monotonic() - saved_at > SAVED_EVERY:
                self.turn, self.drawn = turn + 1, generators(self.device)
                keep()
                saved_at = time.monotonic()
        means = {name: float(total) / len(order) for name, total in self.sums.items()}
        self.turn, self.sums, self.drawn = 0, {}, {}
        for name, mean in {**means, **self._test_accuracies()}.items():
            self.curves.setdefault(name, []).append(mean)
        self._check()
        if self.done in self.settings.kept_epochs():
            self.checkpoints[self.done] = networks.arrays(self.network.state_dict())

    def _check(self) -> None:
        loss, accuracy, total = self.curves["loss"][-1], self.curves["accuracy"][-1], self.settings.epochs
        if not np.isfinite(loss):
            raise InvalidInput(
                f"the training of {self.settings.model} on {self.dataset.name!r} diverged in epoch {self.done}: "
                f"expected a finite loss, found {loss}",
                source=self.dataset.name,
                option="learning_rate",
                remedy="Set a smaller method.learning_rate",
            )
        LOG.info("epoch %s of %s, loss %.3f, accuracy %.3f", self.done, total, loss, accuracy)

    def pixels(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the images of these rows, float32 in [0, 1], on the device."""
        chosen = self.images[rows.to(self.images.device)].to(self.device)
        return chosen.float().div_(self.dataset.maximum)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute float32 logits in the training's precision."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16"):
            logits: torch.Tensor = self.network(pixels)
        return logits.float()

    def state(self) -> dict[str, Array]:
        """Return the state after the last finished epoch, or within the next, as flat arrays."""
        parts = {
            "network": networks.arrays(self.network.state_dict()),
            "velocity": networks.arrays(self._velocity()),
            "curve": {name: np.array(values) for name, values in self.curves.items()},
            "within": {"turn": np.array(self.turn)},
            "sum": {name: total.cpu().numpy() for name, total in self.sums.items()},
            "drawn": {name: state.numpy() for name, state in self.drawn.items()},
            **{f"checkpoint {epoch}": state for epoch, state in self.checkpoints.items()},
        }
        flat = {f"{part}/{name}": values for part, arrays in parts.items() for name, values in arrays.items()}
        return {"pretrained": np.array(self.pretrained), "pruned": np.array(self.pruned), **flat}

    def _velocity(self) -> dict[str, torch.Tensor]:
        """Return the optimizer's v by parameter; without momentum there is none."""
        states = {name: self.optimizer.state[parameter] for name, parameter in self.parameters.items()}
        return {name: state["momentum_buffer"] for name, state in states.items() if "momentum_buffer" in state}

    def resume(self, state: Mapping[str, Array]) -> None:
        """Continue from a saved state."""
        parts: dict[str, dict[str, Array]] = {}
        for key, values in state.items():
            part, slash, name = key.partition("/")
            if slash:
                parts.setdefault(part, {})[name] = values
        self.network.load_state_dict(tensors(parts.pop("network")))
        for name, velocity in tensors(parts.pop("velocity", {})).items():
            parameter = self.parameters[name]
            # Copy into the parameter's own memory layout.
            self.optimizer.state[parameter]["momentum_buffer"] = torch.empty_like(parameter).copy_(velocity)
        self.curves = {name: values.tolist() for name, values in parts.pop("curve", {}).items()}
        self.turn = int(parts.pop("within", {"turn": 0})["turn"])
        self.sums = {name: total.to(self.device) for name, total in tensors(parts.pop("sum", {})).items()}
        self.drawn = tensors(parts.pop("drawn", {}))
        self.checkpoints = {int(part.removeprefix("checkpoint ")): arrays for part, arrays in parts.items()}
        self.pretrained, self.pruned = bool(state["pretrained"]), float(state["pruned"])
        LOG.info("epoch %s of %s was reached before", self.done, self.settings.epochs)

    def right(self, rows: Array) -> Array:
        """Return a mask of the rows (n,) that the network classifies correctly, in evaluation mode and float32."""
        self.network.eval()
        with torch.no_grad():
            parts = torch.from_numpy(rows).to(self.device).split(EVALUATED)
            right = [self.network(self.pixels(part)).argmax(dim=1) == self.label[part] for part in parts]
        return torch.cat(right).cpu().numpy()

    def _test_accuracies(self) -> dict[str, float]:
        right = self.right(self.test)
        found = {accuracy_curve(): float(right.mean())}
        for partition, codes in self.dataset.partitions.items():
            for code, level in enumerate(self.dataset.levels[partition]):
                members = codes[self.test] == code
                found[accuracy_curve(partition, level)] = float(right[members].mean()) if members.any() else np.nan
        return found

    def _multiply_adds(self) -> float:
        from torch.utils.flop_counter import FlopCounterMode

        self.network.eval()
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            self.network(self.pixels(torch.from_numpy(self.test[:1])))
        return counter.get_total_flops() / 2

    def classifier(self, method: str) -> Classifier:
        """Return the checkpoints of the finished training with their facts."""
        settings, dataset = self.settings, self.dataset
        epochs, states = zip(*sorted(self.checkpoints.items()), strict=True)
        accuracies = []
        for state in states:
            self.network.load_state_dict(tensors(state))
            accuracies.append([self.right(rows).mean() for rows in (self.train[: len(self.test)], self.test)])
        train_accuracy, test_accuracy = np.array(accuracies).T
        same = {
            "epochs": float(settings.epochs),
            "train_rows": float(len(self.train)),
            "pretrained": float(self.pretrained),
            "pruned": self.pruned,
            "on_gpu": float(self.device.type == "cuda"),
            "bfloat16": float(self.precision == "bfloat16"),
            "parameters": float(sum(parameter.numel() for parameter in self.network.parameters())),
            "multiply_adds": self._multiply_adds(),
            **networks.facts(settings.model, dataset, settings.width, settings.input_size),
        }
        return Classifier.of(
            method,
            dataset,
            f"networks.{settings.model}",
            {name: np.stack([state[name] for state in states]) for name in states[0]},
            history={
                "step": np.arange(1, settings.epochs + 1),
                **{name: np.tile(values, (len(states), 1)) for name, values in self.curves.items()},
            },
            facts={
                "train_accuracy": train_accuracy,
                "test_accuracy": test_accuracy,
                **{name: np.full(len(states), value) for name, value in same.items()},
            },
            index={"epoch": np.array(epochs)},
        )


@contextmanager
def own_state_of_torch(device: torch.device, deterministic: bool, threads: int) -> Iterator[None]:
    """Use separate generators, ``threads`` on the CPU and, optionally, deterministic operations within the block.

    Operations on float32 have its full precision; by default, a GPU would use TensorFloat-32 in convolutions. An
    operation without a deterministic form on the device causes a warning.
    """
    devices = [torch.cuda.current_device()] if device.type == "cuda" else []
    benchmark = torch.backends.cudnn.benchmark
    with torch.random.fork_rng(devices=devices), own_operations(threads, deterministic), full_precision():
        try:
            torch.backends.cudnn.benchmark = not deterministic
            yield
        finally:
            torch.backends.cudnn.benchmark = benchmark


def generators(device: torch.device) -> dict[str, torch.Tensor]:
    """Return the states of the device's generators, as bytes."""
    on_device = {"device": torch.cuda.get_rng_state(device)} if device.type == "cuda" else {}
    return {"processor": torch.random.get_rng_state(), **on_device}


def set_generators(device: torch.device, states: Mapping[str, torch.Tensor]) -> None:
    """Restore the generators' states."""
    torch.random.set_rng_state(states["processor"])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states["device"], device)


def seed_torch(device: torch.device, seed: int) -> None:
    """Seed the device's generators."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)


def batches(order: torch.Tensor, size: int) -> list[torch.Tensor]:
    """Split ``order`` (n,) into batches of ``size`` and a rest; a rest of one row joins the previous batch."""
    parts = list(order.split(size))
    if len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [order[-size - 1 :]]
    return parts


def augmented(pixels: torch.Tensor, how: str) -> torch.Tensor:
    """Flip images (n, c, s, s) left to right with probability 1/2 and optionally shift them by at most s // 8."""
    if how == "none":
        return pixels
    n, _, side, _ = pixels.shape
    columns = torch.arange(side).expand(n, side)
    columns = torch.where(torch.rand(n, 1) < 0.5, side - 1 - columns, columns)
    rows = torch.arange(side).expand(n, side)
    if how == "flip_and_shift":
        most = side // 8
        shift = torch.randint(-most, most + 1, (2, n, 1))
        columns, rows = (mirrored(places + by, side) for places, by in zip((columns, rows), shift, strict=True))
    columns, rows = columns.to(pixels.device), rows.to(pixels.device)
    image = torch.arange(n, device=pixels.device)[:, None, None]
    chosen = pixels.permute(0, 2, 3, 1)[image, rows[:, :, None], columns[:, None, :]]
    return chosen.permute(0, 3, 1, 2)


def mirrored(places: torch.Tensor, side: int) -> torch.Tensor:
    """Map positions from -side to 2 side - 2 into 0 to side - 1 by reflection at the border."""
    inside = places.abs()
    return torch.where(inside >= side, 2 * (side - 1) - inside, inside)


def _precision(wanted: str, device: torch.device) -> str:
    """Return ``wanted``, or for ``auto`` bfloat16 on a device with native support and float32 elsewhere."""
    if wanted != "auto":
        return wanted
    if device.type == "cuda":
        made_for_it = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        made_for_it = any(getattr(torch.cpu, name, lambda: False)() for name in PROCESSORS_IN_BFLOAT16)
    return "bfloat16" if made_for_it else "float32"


def _on_device(images: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return the images on the device, or unmoved if they would fill its memory."""
    if device.type == "cuda" and images.nbytes > SHARE_OF_MEMORY * torch.cuda.mem_get_info(device)[0]:
        return images
    return images.to(device)


def _fingerprint(method: str, dataset: ImageDataset, settings: Config, seeds: Array) -> Array:
    """Return bytes that identify this training: its settings, random numbers, data and torch's version."""
    of_data = (dataset.name, dataset.maximum, dataset.mean, dataset.std, dataset.levels)
    held = (seeds, dataset.images, dataset.label, dataset.train, dataset.test, *dataset.partitions.values())
    return fingerprint((method, settings, "curves by group", *of_data, torch.__version__), held)
