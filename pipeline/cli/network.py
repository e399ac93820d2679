"""A user's network: found, opened, moved to the device and put into evaluation mode."""

from __future__ import annotations

import inspect
import logging
import pickle
import sys
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.cli.user_code import importable_from, named_object
from pipeline.messages import reason

if TYPE_CHECKING:
    import torch

FORMS = "model.pt (TorchScript), model.pt2 (torch.export), package.module:name or path/to/file.py:name"
ARCHIVES = (".pt", ".pth", ".pt2")


@dataclass(frozen=True)
class Computing:
    """Where and how precisely torch computes, by the names that users give; torch is imported when it is needed."""

    device_name: str = "auto"
    dtype_name: str = "float64"

    @property
    def dtype(self) -> torch.dtype:
        """The type of numbers."""
        import torch

        found: torch.dtype = getattr(torch, self.dtype_name)
        return found

    @property
    def device(self) -> torch.device:
        """The device; ``auto`` is a GPU where one is visible. ValueError where it cannot be used."""
        import torch

        from pipeline.models.device import visible_device

        if self.device_name == "auto":
            return visible_device()
        try:
            device = torch.device(self.device_name)
            torch.zeros(1, device=device, dtype=self.dtype)
        except Exception as error:
            raise ValueError(
                f"--device {self.device_name} cannot be used here ({reason(error)}): try --device cpu"
            ) from error
        return device


@dataclass(frozen=True)
class Network:
    """``evaluate`` maps inputs to what the model returns; ``origin`` says in words what it is.

    ``file`` is the file that holds it, None for an importable module. ``is_module``: a torch network, no function.
    """

    evaluate: Callable[[Any], Any]
    origin: str
    file: Path | None
    is_module: bool = False


def load_network(
    model: str,
    trust_pickle: bool,
    computing: Computing,
    option: str = "--model",
    wanted: str = "a torch network or a function of x",
) -> Network:
    """The network or function that ``model`` names (see FORMS), as given to ``option``.

    A torch network is converted and put into evaluation mode; a plain function is taken as it is. Raises ValueError for
    anything that is not to be found or opened, and for what is nothing that was ``wanted``.
    """
    if model.endswith(ARCHIVES):
        path = Path(model)
        if not path.is_file():
            raise ValueError(f"there is no file {path}: {option} takes {FORMS}")
        loaded, origin = _opened(path, trust_pickle, computing.device)
        file: Path | None = path
    elif ":" in model:
        loaded, origin, file = _imported(model, option, wanted)
    else:
        raise ValueError(f"expected {option} to be {FORMS}, found {model!r}")
    torch = sys.modules.get("torch")  # whoever gives a network has imported it
    is_module = torch is not None and isinstance(loaded, torch.nn.Module)
    if is_module:
        loaded = loaded.to(device=computing.device, dtype=computing.dtype)
        # An exported program is fixed in the mode that it was exported in.
        loaded = loaded if hasattr(loaded, "_guards_fn") else loaded.eval()
    return Network(loaded, origin, file, is_module)


def _opened(path: Path, trust_pickle: bool, device: torch.device) -> tuple[torch.nn.Module, str]:
    """The network in an archive, by the kind of archive that it is."""
    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if path.suffix == ".pt2":
                logging.getLogger("torch.export").setLevel(logging.CRITICAL)
                return torch.export.load(path).module(), "exported program"
            if _is_torchscript(path):
                return torch.jit.load(path, map_location=device), "TorchScript network"
    except (RuntimeError, OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be opened as a saved network ({reason(error)}): save it again") from error
    return _unpickled(path, trust_pickle, device), "pickled network"


def _is_torchscript(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def _unpickled(path: Path, trust_pickle: bool, device: torch.device) -> torch.nn.Module:
    """A pickled module, only where the user trusts it; weights without a network get an explanation."""
    import torch

    try:
        torch.load(path, map_location=device, weights_only=True)
    except pickle.UnpicklingError:
        pass
    except Exception as error:
        raise ValueError(f"{path} cannot be opened as a saved network ({reason(error)}): save it again") from error
    else:
        raise ValueError(
            f"{path} holds weights only, not the network they belong to: give path/to/file.py:name with a function "
            "that builds the network and loads them"
        )
    if not trust_pickle:
        raise ValueError(
            f"{path} is a pickled network. A pickle can run any program when it is opened, so it is not opened "
            "unasked: if you trust its maker add --trust-pickle; better, save it with torch.export.save, or give "
            "path/to/file.py:name"
        )
    importable_from(Path.cwd())
    try:
        loaded = torch.load(path, map_location=device, weights_only=False)
    except Exception as error:
        raise ValueError(
            f"{path} cannot be unpickled ({reason(error)}). A pickle needs the very module "
            "that defined its class: run where that can be imported, or give path/to/file.py:name"
        ) from error
    if not isinstance(loaded, torch.nn.Module):
        raise ValueError(f"expected {path} to hold a torch network, found an object of type {type(loaded).__name__}")
    return loaded


def _imported(model: str, option: str, wanted: str) -> tuple[Any, str, Path | None]:
    """The object ``name`` of a module or a Python file, called if it is a factory; its origin in words, and its file.

    Raises ValueError where there is none, and where it cannot be called: the message says what was ``wanted``.
    """
    named = named_object(option, model)
    found, origin = named.value, f"{named.name} of {named.where}"
    if _is_factory(found):
        try:
            found = found()
        except Exception as error:
            raise ValueError(f"{option} {model}: {named.name}() failed with {reason(error)}") from error
        origin = f"what {named.name}() of {named.where} returns"
    if not callable(found):
        raise ValueError(f"{option} {model}: expected {wanted}, found an object of type {type(found).__name__}")
    return found, origin, named.file


def _is_factory(found: Any) -> bool:
    """A function (or class) that can be called without arguments returns the network; any other one is the network."""
    if not (inspect.isroutine(found) or inspect.isclass(found)):
        return False
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return False
    return all(p.default is not p.empty or p.kind is p.VAR_KEYWORD for p in parameters)
