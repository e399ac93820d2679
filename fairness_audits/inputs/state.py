"""The caller's network during an audit: plain settings of torch around it, and its values and modes back afterwards.

Both are also restored after an error and after Ctrl-C. Whatever else a model changes in the program stays changed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from fairness_audits.errors import InvalidInput
from fairness_audits.models.device import full_precision

if TYPE_CHECKING:
    import torch


@contextmanager
def plain_torch() -> Iterator[None]:
    """Enable gradients, and disable autocast and reduced float32 precision, whatever the caller's settings."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    with ExitStack() as around:
        around.enter_context(torch.inference_mode(False))
        around.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                around.enter_context(torch.autocast(device, enabled=False))
        around.enter_context(full_precision())
        yield


@contextmanager
def lent(network: Any) -> Iterator[None]:
    """Restore a torch module on exit: values, gradients and modes; nothing happens to any other model.

    Meanwhile, its tensors hold copies of the values, so any change to them is undone. The parameters stay the same
    objects, because optimizers refer to them. Raises InvalidInput for a lazy module, whose parameters have no values
    yet.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(network, torch.nn.Module):
        yield
        return
    modules = list(network.modules())
    for module in modules:
        if any(torch.nn.parameter.is_lazy(one) for one in _tensors(module)):
            problem = f"the network has parameters without values ({type(module).__name__})"
            raise InvalidInput(problem, option="model", remedy="Give it one batch first")
    modes = [(module, module.training) for module in modules]
    homes = [home for module in modules for home in (module._parameters, module._buffers) if isinstance(home, dict)]
    held = [(home, dict(home)) for home in homes]
    tensors = list({id(one): one for module in modules for one in _tensors(module)}.values())
    saved = [(one, one.data, one.requires_grad, _gradient(one)) for one in tensors if not one.is_inference()]
    try:
        for home, own in held:
            for name, one in own.items():
                if one is not None and one.is_inference():
                    # Tensors made in inference mode cannot have gradients.
                    parameter = isinstance(one, torch.nn.Parameter)
                    home[name] = torch.nn.Parameter(one.clone(), False) if parameter else one.clone()
        for one, values, _, gradient in saved:
            if gradient is not None:
                one.grad = None
            one.data = values.clone()
        yield
    finally:
        for home, own in held:
            home.clear()
            home.update(own)
        for module, training in modes:
            module.training = training
        for one, values, learned, gradient in saved:
            one.data = values
            if one.is_leaf:
                one.requires_grad_(learned)
                one.grad = gradient


def _tensors(module: torch.nn.Module) -> list[torch.Tensor]:
    """Return a module's own parameters and buffers."""
    return [one for entries in (module._parameters, module._buffers) for one in entries.values() if one is not None]


def _gradient(tensor: torch.Tensor) -> torch.Tensor | None:
    return tensor.grad if tensor.is_leaf else None
