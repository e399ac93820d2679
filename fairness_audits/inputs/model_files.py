"""Models in files: loaders by suffix, ONNX programs, and objects of a Python file or module."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import logging
import re
import sys
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from fairness_audits.arguments import TAKES
from fairness_audits.errors import InvalidInput
from fairness_audits.messages import listed, missing_package, nearest, not_installed, reason
from fairness_audits.values import Array

if TYPE_CHECKING:
    import torch

MODULE_NAME = "user_code"
"""Name of a user's Python file among the imported modules."""


@dataclass(frozen=True)
class Computing:
    """Device and precision of torch, by the names that users give; torch is imported only when needed.

    ``batch_rows`` is the largest number of rows that the model takes in one call, None for no limit of its own.
    """

    device_name: str = "auto"
    dtype_name: str = "float64"
    batch_rows: int | None = None

    @classmethod
    def of(cls, settings: Any) -> Computing:
        """Return the device, the precision and the largest batch of an audit's settings."""
        return cls(settings.device, getattr(settings, "dtype", "float32"), settings.batch_rows)

    @property
    def dtype(self) -> torch.dtype:
        import torch

        return getattr(torch, self.dtype_name)

    @property
    def device(self) -> torch.device:
        """Return the device; ``auto`` is a GPU if one is visible. Raises InvalidInput if the device cannot be used."""
        import torch

        from fairness_audits.models.device import visible_device

        if self.device_name == "auto":
            return visible_device()
        try:
            device = torch.device(self.device_name)
            torch.zeros(1, device=device, dtype=self.dtype)
        except Exception as error:
            problem = f"device={self.device_name!r} cannot be used here ({reason(error)})"
            raise InvalidInput(problem, option="device", remedy="Use device='cpu'") from error
        return device


ONNX_TYPES = {
    **{"tensor(double)": "float64", "tensor(float16)": "float16", "tensor(bool)": "bool"},
    **{f"tensor({name})": name for name in ("int8", "int16", "int32", "int64", "uint8")},
    "tensor(string)": "str",
}
"""NumPy types of an ONNX program's input; any other input is float32."""


class Onnx:
    """An onnxruntime function of rows or images: its scores and, if it decides itself, its classes.

    Its input is an array, or a data frame with its ``columns`` if it has an input for each.

    A program of several outputs may have a class of each row, and must have one output of scores for each row, as in
    scikit-learn's exports. If it has more, ``output`` names the scores. An output that is not per row, the names of the
    classes, is not one of these.
    """

    def __init__(self, path: Path, output: str | None = None) -> None:
        onnxruntime = _extra("onnxruntime", path)
        self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        inputs = self.session.get_inputs()
        if len(inputs) > 1 and not all(list(one.shape[1:]) in ([], [1]) for one in inputs):
            problem = f"{path}: expected an ONNX program with one input, or with one input for each column"
            found = f"It has the inputs {listed([f'{one.name} {one.shape}' for one in inputs])}"
            raise InvalidInput(problem, source=path, option="model", remedy=found)
        (count, *_) = inputs[0].shape or [None]
        if isinstance(count, int):
            problem = (
                f"{path}: this ONNX program only takes batches of {count} rows, but an audit needs batches of any size"
            )
            remedy = "In torch.onnx.export, mark the first axis of the input as dynamic"
            raise InvalidInput(problem, source=path, option="model", remedy=remedy)
        self.inputs = {one.name: (ONNX_TYPES.get(one.type, "float32"), one.shape) for one in inputs}
        self.columns = tuple(self.inputs) if len(inputs) > 1 else ()
        every = [one.name for one in self.session.get_outputs()]
        by_row = [one for one in self.session.get_outputs() if not (one.shape and isinstance(one.shape[0], int))]
        decisions = [one.name for one in by_row if one.type in DECISIONS]
        scores = [one.name for one in by_row if one.type not in DECISIONS] or decisions
        if output is not None and output not in every:
            problem = f"{path} has no output {output!r}{nearest(output, every)}"
            raise InvalidInput(problem, source=path, option="model", remedy=f"It has: {listed(every)}")
        if output is None and (len(scores) != 1 or len(decisions) > 1):
            problem = f"{path} has the outputs {listed(every)}, but an audit needs one output of scores"
            remedy = f"Name the scores of the positive class, {path}:NAME, with one of {listed(scores or every)}"
            raise InvalidInput(problem, source=path, option="model", remedy=remedy)
        self.scores = output or scores[0]
        self.decides = bool(decisions) and self.scores != decisions[0]
        self.classes = decisions[0] if decisions else None
        self.constant = [name for name in every if name not in {one.name for one in by_row}]
        # A regression of scikit-learn has scores alone; a network may have logits alone.
        self.regression = not decisions and self.session.get_modelmeta().producer_name == "skl2onnx"

    def __call__(self, inputs: Any) -> Any:
        tensor = hasattr(inputs, "detach")
        found = self._output(self.scores, inputs.detach().cpu().numpy() if tensor else inputs)
        if _named(found):
            found = np.array([list(one.values()) for one in found])
        return sys.modules["torch"].from_numpy(np.asarray(found)) if tensor else np.asarray(found)

    def predict(self, inputs: Any) -> Array:
        """Return the class of each row, (n,)."""
        assert self.classes is not None
        return np.asarray(self._output(self.classes, inputs))

    def names(self, inputs: Any) -> tuple[Any, ...]:
        """Return the classes in the order of the scores, after a trial; empty if the program does not tell them.

        They are the keys of the scores, or an output that is not per row. Otherwise the program's classes for the
        ``inputs`` (n, d) tell them: numbers are positions, and other names are in order, as scikit-learn has them.
        """
        found, scores = self.predict(inputs).ravel().tolist(), self._output(self.scores, inputs)
        if _named(scores):
            return tuple(scores[0])
        count = 2 if np.ndim(scores) < 2 else max(2, np.shape(scores)[1])
        for name in self.constant:
            if np.shape(known := self._output(name, inputs[:1])) == (count,):
                return tuple(np.asarray(known).tolist())
        held = sorted(set(found))
        return tuple(range(count)) if set(held) <= set(range(count)) else tuple(held) if len(held) == count else ()

    def _output(self, name: str, inputs: Any) -> Any:
        parts = [inputs] if len(self.inputs) == 1 else [inputs[column].to_numpy() for column in self.columns]
        feed = {
            own: np.asarray(part).astype(dtype).reshape(-1, *shape[1:] if self.columns else np.shape(part)[1:])
            for (own, (dtype, shape)), part in zip(self.inputs.items(), parts, strict=True)
        }
        (found,) = self.session.run([name], feed)
        return found


DECISIONS = ("tensor(int64)", "tensor(int32)", "tensor(bool)", "tensor(string)")
"""Types of an ONNX program's outputs that hold classes."""


def _named(scores: Any) -> bool:
    """Return whether scores are one dictionary per row, from classes to numbers."""
    return isinstance(scores, list) and bool(scores) and isinstance(scores[0], Mapping)


def _extra(name: str, path: Path) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InvalidInput(not_installed(str(path), name.partition(".")[0]), source=path, option="model") from error


@dataclass(frozen=True)
class Loader:
    """How files of one form are opened: ``load`` reads a file, and ``origin`` describes the model in it.

    ``wrong`` and ``remedy`` are for a file that cannot be opened. A file that may run any code when it is opened needs
    the user's ``consent``, whose message says what the file is and which form is safer.
    """

    origin: str
    load: Callable[[Path, bool, Computing], Any]
    wrong: str = "cannot be opened as a saved network"
    remedy: str = "Save it again"
    consent: tuple[str, str] | None = None

    def opened(self, path: Path, trust_pickle: bool, computing: Computing) -> Any:
        """Return the model. Raises InvalidInput without consent, and if the file cannot be opened."""
        if self.consent and not trust_pickle:
            what, better = self.consent
            problem = f"{path} is {what}. Opening a pickle can run any code, so this needs your consent"
            remedy = f"If you trust its source, set trust_pickle. A safer way: {better}, or name path/to/file.py:name"
            raise InvalidInput(problem, source=path, option="trust_pickle", remedy=remedy)
        try:
            return self.load(path, trust_pickle, computing)
        except InvalidInput:
            raise
        except Exception as error:
            if isinstance(error, ModuleNotFoundError) and missing_package(error) != str(error):
                raise  # the message says how to install what is missing
            problem = f"{path} {self.wrong} ({reason(error)})"
            raise InvalidInput(problem, source=path, option="model", remedy=self.remedy) from error


def _pickled(path: Path, trust_pickle: bool, computing: Computing) -> Any:
    import joblib

    importable_from(Path.cwd())
    return joblib.load(path)


def _skops(path: Path, trust_pickle: bool, computing: Computing) -> Any:
    skops = _extra("skops.io", path)
    unknown = skops.get_untrusted_types(file=path)
    if not unknown or trust_pickle:
        return skops.load(path, trusted=unknown)
    problem = f"{path} holds types that skops does not trust ({listed(unknown, 5)})"
    raise InvalidInput(problem, source=path, option="trust_pickle", remedy="If you trust its source, set trust_pickle")


def _exported(path: Path, trust_pickle: bool, computing: Computing) -> Any:
    import torch

    logging.getLogger("torch.export").setLevel(logging.CRITICAL)
    with warnings.catch_warnings(action="ignore"):
        return torch.export.load(path).module()


def _torchscript(path: Path, trust_pickle: bool, computing: Computing) -> Any:
    import torch

    # The constants file distinguishes a TorchScript archive from a pickle in an archive.
    inside = zipfile.ZipFile(path).namelist() if zipfile.is_zipfile(path) else []
    if any(name.endswith("/constants.pkl") for name in inside):
        with warnings.catch_warnings(action="ignore"):
            return torch.jit.load(path, map_location=computing.device)
    problem = f"{path} is not a TorchScript archive. Files of weights and pickled networks cannot be opened"
    remedy = (
        "Save the network as TorchScript or as an exported program, or pass path/to/file.py:name, where name is "
        "a function that builds the network and loads its weights"
    )
    raise InvalidInput(problem, source=path, option="model", remedy=remedy)


PICKLE = Loader(
    "pickled model",
    _pickled,
    "cannot be unpickled",
    "A pickle needs the module of its class. Make the module importable, or pass path/to/file.py:name",
    ("a pickled model", "save it with skops.io.dump"),
)
LOADERS: Mapping[str, Loader] = {
    **dict.fromkeys((".pt", ".pth"), Loader("TorchScript network", _torchscript)),
    # Besides opening pickles, torch evaluates expressions and loads libraries from the archive.
    ".pt2": Loader(
        "exported program",
        _exported,
        consent=("an exported program, which torch opens as a pickle", "save it as TorchScript"),
    ),
    **dict.fromkeys((".joblib", ".pkl", ".pickle"), PICKLE),
    ".skops": Loader("skops archive", _skops, "cannot be opened as a skops archive"),
}
"""The loaders of model files by suffix."""
FILE = re.compile(rf"(?P<file>.+({'|'.join(map(re.escape, LOADERS))}))|(?P<onnx>.+\.onnx)(:(?P<output>.+))?")
"""A model's file, and the output of an ONNX program after a colon."""


def opened(model: str, trust_pickle: bool, computing: Computing, option: str) -> tuple[Any, str, Path | None]:
    """Return the model that a text names, its origin and its file, None for an importable module.

    Raises InvalidInput if there is none, or if it cannot be opened.
    """
    found = FILE.fullmatch(model)
    if found is None:
        if ":" not in model:
            raise InvalidInput(f"expected {option} to be {TAKES}; found {model!r}", option=option)
        return _imported(model, option)
    file = Path(found["file"] or found["onnx"])
    if not file.is_file():
        problem = f"there is no file {file}"
        raise InvalidInput(problem, source=file, option=option, remedy=f"{option} takes {TAKES}")
    loader = LOADERS.get(file.suffix) or Loader(
        "ONNX program",
        lambda path, *_: Onnx(path, found["output"]),
        "cannot be opened as an ONNX program",
        "Export it again",
    )
    return loader.opened(file, trust_pickle, computing), loader.origin, file


def _imported(model: str, option: str) -> tuple[Any, str, Path | None]:
    """Return the object that a text names, or what it makes if it is a factory; its origin, and its file."""
    found, name, file = named_object(option, model)
    where = model.rpartition(":")[0]
    if not _is_factory(found):
        return found, f"{name} of {where}", file
    try:
        return found(), f"what {name}() of {where} returns", file
    except Exception as error:
        problem = f"{option} {model}: {name}() failed with {reason(error)}"
        raise InvalidInput(problem, source=where, option=option) from error


def _is_factory(found: Any) -> bool:
    """Return whether a function or class can be called without arguments. If so, it returns the network."""
    if not (inspect.isroutine(found) or inspect.isclass(found)):
        return False
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return False
    return all(p.default is not p.empty or p.kind is p.VAR_KEYWORD for p in parameters)


def named_object(option: str, text: str) -> tuple[Any, str, Path | None]:
    """Return the object that ``text`` names, its name, and the executed file, None for a module.

    Raises InvalidInput if there is no such object. The message begins with the ``option`` that has the text.
    """
    where, _, name = text.rpartition(":")
    file = Path(where) if where.endswith(".py") else None
    try:
        if file is not None:
            module = run_file(file)
        else:
            importable_from(Path.cwd())
            module = importlib.import_module(where)
    except Exception as error:
        problem = f"{option} {text}: importing {where!r} failed with {reason(error)}"
        raise InvalidInput(problem, source=where, option=option) from error
    if not hasattr(module, name):
        public = [known for known, value in vars(module).items() if callable(value) and not known.startswith("_")]
        problem = f"{option} {text}: {where!r} has no {name!r}"
        raise InvalidInput(problem, source=where, option=option, remedy=f"It has: {', '.join(public) or 'nothing'}")
    return getattr(module, name), name, file


def run_file(path: Path) -> ModuleType:
    """Run a Python file as a module. Like a script, it can import its neighbours.

    Raises FileNotFoundError if there is no such file, and any error of the file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    importable_from(path.resolve().parent)
    # Use a fixed module name, so that a file called numpy.py replaces no other module. Register the module before
    # running it, because dataclasses look it up.
    spec = importlib.util.spec_from_file_location(MODULE_NAME, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE_NAME] = module
    spec.loader.exec_module(module)
    return module


def importable_from(folder: Path) -> None:
    """Let a user's code import the modules in this folder, after all others."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
