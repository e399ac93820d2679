"""The state of torch that a training changes: generators, threads and determinism, as they were before when it ends."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

from pipeline.models.determinism import own_operations


@contextmanager
def own_state_of_torch(device: torch.device, deterministic: bool, threads: int) -> Iterator[None]:
    """Generators of the block's own, ``threads`` on the CPU and, if asked for, deterministic operations.

    An operation that has no deterministic form on the device is named in a warning.
    """
    devices = [torch.cuda.current_device()] if device.type == "cuda" else []
    benchmark = torch.backends.cudnn.benchmark
    with torch.random.fork_rng(devices=devices), own_operations(threads, deterministic):
        try:
            torch.backends.cudnn.benchmark = not deterministic
            yield
        finally:
            torch.backends.cudnn.benchmark = benchmark


def generators(device: torch.device) -> dict[str, torch.Tensor]:
    """The states of the generators that the device's operations draw from, as bytes."""
    on_device = {"device": torch.cuda.get_rng_state(device)} if device.type == "cuda" else {}
    return {"processor": torch.random.get_rng_state(), **on_device}


def set_generators(device: torch.device, states: Mapping[str, torch.Tensor]) -> None:
    """Put the generators into such states."""
    torch.random.set_rng_state(states["processor"])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states["device"], device)


def seed_torch(device: torch.device, seed: int) -> None:
    """Seed the generators that the device's operations draw from."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
