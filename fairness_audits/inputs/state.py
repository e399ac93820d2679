"""Restoring of what an audit borrows: the caller's networks and the state of the whole program.

The state is also restored after an error and after Ctrl-C.
"""

from __future__ import annotations

import functools
import itertools
import random
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.models.device import determinism, float32_kernels, full_precision

if TYPE_CHECKING:
    import torch

CONTAINERS = (dict, OrderedDict, list, set)
LIBRARIES = (
    "torch", "torchvision", "torchaudio", "functorch", "numpy", "scipy", "sklearn", "pandas", "einops", "timm",
    "kornia", "opt_einsum", "xgboost", "lightgbm", "catboost",
)  # fmt: skip
"""Packages whose code holds no networks of users."""


@contextmanager
def unchanged_program() -> Iterator[None]:
    """Restore the random generators and, if torch is imported, its settings."""
    # A user's code may draw from the global generators. We use our own generators.
    legacy, own = np.random.get_state(), random.getstate()  # noqa: NPY002
    torch = sys.modules.get("torch")
    settings = [] if torch is None else [(set_to, get()) for get, set_to in _settings(torch)]
    try:
        yield
    finally:
        np.random.set_state(legacy)  # noqa: NPY002
        random.setstate(own)
        for set_to, value in settings:
            set_to(value)


def _settings(torch: Any) -> list[tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Return the getter and setter of each torch setting."""

    def attribute(home: Any, name: str) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
        return functools.partial(getattr, home, name), functools.partial(setattr, home, name)

    def set_determinism(both: tuple[bool, bool]) -> None:
        if both != determinism():
            torch.use_deterministic_algorithms(both[0], warn_only=both[1])

    cuda = [(torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all)] if torch.cuda.is_initialized() else []
    return [
        (torch.get_rng_state, torch.set_rng_state),
        *cuda,
        (torch.get_default_dtype, torch.set_default_dtype),
        (torch.get_num_threads, torch.set_num_threads),
        (torch.is_grad_enabled, torch.set_grad_enabled),
        (determinism, set_determinism),
        *(attribute(torch.backends.cudnn, name) for name in ("enabled", "benchmark", "deterministic")),
        *(attribute(kernels, "fp32_precision") for kernels in float32_kernels()),
    ]


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
def lent(networks: list[torch.nn.Module]) -> Iterator[None]:
    """Restore modules on exit: values, gradients, modes and attributes, with everything in them.

    Meanwhile, their tensors hold copies of the values, so any change to them is undone. The parameters stay the same
    objects, because optimizers refer to them. Raises InvalidInput for a lazy module, whose parameters have no values
    yet.
    """
    if not networks:
        yield
        return
    import torch

    modules = list({id(module): module for network in networks for module in network.modules()}.values())
    for module in modules:
        if any(torch.nn.parameter.is_lazy(one) for one in _tensors(module)):
            problem = f"the network has parameters without values ({type(module).__name__})"
            raise InvalidInput(problem, option="model", remedy="Give it one batch first")
    attributes = [(module, module.training, _copied(module)) for module in modules]
    tensors = list({id(one): one for module in modules for one in _tensors(module)}.values())
    saved = [(one, one.data, one.requires_grad, _gradient(one)) for one in tensors if not one.is_inference()]
    try:
        for module in modules:
            entries: Any
            for entries in (module._parameters, module._buffers):
                for name, one in list(entries.items()):
                    if one is not None and one.is_inference():
                        # Tensors made in inference mode cannot have gradients.
                        copy = one.clone()
                        entries[name] = torch.nn.Parameter(copy, False) if entries is module._parameters else copy
        for one, values, _, gradient in saved:
            if gradient is not None:
                one.grad = None
            one.data = values.clone()
        yield
    finally:
        for module, training, own in attributes:
            _restore(module, own)
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


def _copied(module: torch.nn.Module) -> dict[str, tuple[Any, Any]]:
    """Return a module's attributes, each with a copy of its content if it is a list, a set or a dictionary."""
    import torch

    if isinstance(module, torch.jit.ScriptModule):
        return {}  # its attributes are not its own
    return {name: (one, one.copy() if type(one) in CONTAINERS else None) for name, one in vars(module).items()}


def _restore(module: torch.nn.Module, own: Mapping[str, tuple[Any, Any]]) -> None:
    """Restore attributes and their content."""
    if not own:
        return
    there = vars(module)
    for name in [name for name in there if name not in own]:
        del there[name]
    for name, (value, content) in own.items():
        there[name] = value
        if content is not None:
            value.clear()
            value.extend(content) if isinstance(value, list) else value.update(content)


def networks_in(thing: Any) -> list[torch.nn.Module]:
    """Return the torch modules in a model: itself, its attributes, its closure and the globals that its code names."""
    if "torch" not in sys.modules:
        return []
    import torch

    found: list[torch.nn.Module] = []
    seen: dict[int, Any] = {}
    pending = [thing]
    while pending:
        one = pending.pop()
        if id(one) in seen or isinstance(
            one, (type, types.ModuleType, str, bytes, int, float, np.ndarray, torch.Tensor)
        ):
            continue
        seen[id(one)] = one
        if isinstance(one, torch.nn.Module):
            found.append(one)
        pending.extend(_held(one))
    return found


def _held(thing: Any) -> Iterator[Any]:
    """Yield the objects that an object refers to."""
    if isinstance(thing, types.FunctionType):
        cells = (cell.cell_contents for cell in thing.__closure__ or () if cell != types.CellType())
        yield from (*cells, *(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values())
        yield from _named(thing)
    elif isinstance(thing, types.MethodType):
        yield from (thing.__self__, thing.__func__)
    elif isinstance(thing, functools.partial):
        yield from (thing.func, *thing.args, *thing.keywords.values())
    if isinstance(thing, Mapping):
        yield from thing.values()
    elif isinstance(thing, (list, tuple, set, frozenset)):
        yield from thing
    own: Any = None
    with suppress(Exception):  # an object may make up its attributes
        own = thing.__dict__
    yield from own.values() if isinstance(own, Mapping) else ()
    yield from (vars(kind)["__call__"] for kind in type(thing).__mro__[:-1] if "__call__" in vars(kind))


def _named(function: types.FunctionType) -> Iterator[Any]:
    """Yield globals, and attributes of loaded modules, whose name occurs in a function's code; some are not used."""
    home = function.__globals__
    if _of_library(home.get("__name__")):
        return
    names: set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [one for one in code.co_consts if isinstance(one, types.CodeType)]
    packages = ["", *itertools.accumulate((home.get("__package__") or "").split("."), "{}.{}".format)]
    imported = (sys.modules.get(f"{package}.{name}".strip(".")) for package in packages for name in sorted(names))
    pending = [*(home[name] for name in sorted(names & home.keys())), *filter(None, imported)]
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if not isinstance(one, types.ModuleType):
            yield one
        elif id(one) not in seen and not _of_library(one.__name__):
            seen.add(id(one))
            pending += [vars(one)[name] for name in sorted(names & vars(one).keys())]


def _of_library(module: str | None) -> bool:
    """Return whether a module belongs to the standard library or to LIBRARIES."""
    root = (module or "").partition(".")[0]
    return root in sys.stdlib_module_names or root in LIBRARIES
