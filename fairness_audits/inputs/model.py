"""Loading of a user's model in any supported form, as a function of its inputs.

A model is a torch network, a fitted scikit-learn estimator or pipeline, an ONNX program, or any function. During the
audit, a torch network is on the audit's device, in its precision and in evaluation mode. You can pass the model itself,
or name it by a file, by ``path/to/file.py:name`` or by ``package.module:name``.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import logging
import re
import sys
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.known import categories, input_names, pandas_categories
from fairness_audits.inputs.native import taken
from fairness_audits.inputs.state import lent, networks_in, plain_torch
from fairness_audits.messages import check_columns, listed, nearest, not_installed, option_in, reason
from fairness_audits.options import TAKES
from fairness_audits.tables.levels import level_name
from fairness_audits.values import Array

if TYPE_CHECKING:
    import torch

    from fairness_audits.inputs.table import Source

MODULE_NAME = "user_code"
"""Name of a user's Python file among the imported modules."""
NETWORKS = (".pt", ".pth", ".pt2")
PICKLES = (".joblib", ".pkl", ".pickle")
ARCHIVES = (*NETWORKS, *PICKLES, ".skops")
ARCHIVE = re.compile(rf"(?P<file>.+({'|'.join(map(re.escape, ARCHIVES))}))|(?P<onnx>.+\.onnx)(:(?P<output>.+))?")
"""A model's file, and the output of an ONNX program after a colon."""
QUANTISED = re.compile(r"torch\.ao\.nn\.(intrinsic\.)?quantized\b")
WHAT = {
    "network": "a torch network",
    "quantised": "a quantised torch network",
    "estimator": "a scikit-learn model",
    "onnx": "an ONNX program",
    "function": "a function",
}


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
            problem = f"--device={self.device_name} cannot be used here ({reason(error)})"
            raise InvalidInput(problem, option="device", remedy="Use --device=cpu") from error
        return device


@dataclass(frozen=True)
class Model:
    """A model: ``evaluate`` maps inputs to its output, ``origin`` describes it, ``name`` says how it was passed.

    ``file`` is the file with the model, None for an importable module or an object. An estimator's ``classes`` are the
    label's values in the order of its outputs. Its ``columns`` are the names of its inputs. Both are empty if unknown.
    ``cut`` is the threshold on its scores, 0 for decision values, None if it has none or its scores need none.
    ``predict`` maps the same inputs to the model's own class decisions, None if it has only scores. An estimator has
    itself as ``fitted`` and its decision function as ``margins``, None if it has none; a network is its own ``fitted``.
    ``categories`` are the inputs that it treats as categories, by name, or by position if it was fitted on an array,
    with the values that it knows, None if it does not tell them. A ``regression`` predicts the label itself.
    """

    evaluate: Callable[[Any], Any]
    origin: str
    file: Path | None
    kind: Literal["network", "quantised", "estimator", "onnx", "function"] = "function"
    name: str = ""
    classes: tuple[Any, ...] = ()
    columns: tuple[str, ...] = ()
    cut: float | None = None
    predict: Callable[[Any], Any] | None = None
    fitted: Any = None
    margins: Callable[[Any], Any] | None = None
    categories: Mapping[Any, tuple[Any, ...] | None] = field(default_factory=dict)
    regression: bool = False

    def of_labels(self, levels: Collection[Any]) -> Model:
        """Return the model; a regression on labels 0 and 1 decides at 1/2."""
        return replace(self, cut=HALF) if self.regression and levels and set(levels) <= {0, 1} else self


HALF = 0.5
"""Threshold on probabilities, and on a regression's predictions of labels 0 and 1."""
BLOCK_ROWS = 8192
"""Largest number of rows in one call of a model, unless the user states a smaller one."""
GPU_BLOCK_ROWS = 1 << 20


def in_calls(function: Callable[[Any], Any], most: int, rows: Any) -> Any:
    """Return a function's outputs for rows, from calls with at most ``most`` rows and never with one if ``most`` > 1.

    Blocks are of equal size as far as possible. A single row is passed twice, because a model may squeeze the axis of a
    batch of one. Outputs that cannot be joined are returned as the first call gave them.
    """
    n = len(rows)
    if n == 1 and most > 1:
        output = function(taken(rows, np.zeros(2, dtype=np.int64)))
        return output[:1] if getattr(output, "shape", None) or isinstance(output, list) else output
    if n <= most:
        output = function(rows)
        squeezed = n == 1 and hasattr(output, "shape") and tuple(output.shape[:1]) != (1,)
        return output.reshape(1, *output.shape) if squeezed else output
    blocks = np.array_split(np.arange(n), -(-n // most))
    outputs = []
    for block in blocks:
        outputs.append(in_calls(function, most, taken(rows, block)))
        if isinstance(outputs[-1], tuple | Mapping):
            return outputs[-1]
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(outputs[0], torch.Tensor):
        return torch.cat(outputs)
    return np.concatenate([np.asarray(one) for one in outputs])


@contextmanager
def load_model(
    model: Any, trust_pickle: bool, computing: Computing, option: str = "--model", wanted: str = "a model"
) -> Iterator[Model]:
    """Lend a model: the text of ``option``, which names a model (see TAKES), or an object.

    A torch network is converted and set to evaluation mode; a plain function is used unchanged. On exit, every network
    in the model is restored. Raises InvalidInput if the model cannot be found or opened, or is not what was ``wanted``.
    """
    file: Path | None = None
    if not isinstance(model, str):
        loaded, origin, name = model, f"{type(model).__name__} of this program", type(model).__name__
        if inspect.isclass(model):
            problem = f"expected {wanted}, found the class {model.__name__} instead of an object"
            raise InvalidInput(problem, option=option_in(option), remedy="Pass a fitted object of this class")
    elif found := ARCHIVE.fullmatch(model):
        name, file = model, Path(found["file"] or found["onnx"])
        if not file.is_file():
            problem = f"there is no file {file}"
            raise InvalidInput(problem, source=file, option=option_in(option), remedy=f"{option} takes {TAKES}")
        loaded, origin = _opened(file, found["output"], trust_pickle, computing)
    elif ":" in model:
        loaded, origin, file = _imported(model, option)
        name = model
    else:
        raise InvalidInput(f"expected {option} to be {TAKES}; found {model!r}", option=option_in(option))
    with plain_torch(), lent(networks_in(loaded)):
        made = _model(loaded, origin, file, name, computing)
        if not callable(made.evaluate):
            place = f"{option} {model}: " if file else ""
            problem = f"{place}expected {wanted}, found an object of type {type(loaded).__name__}"
            raise InvalidInput(problem, source=file, option=option_in(option))
        on_gpu = made.kind == "network" and computing.device.type == "cuda"
        most = computing.batch_rows or (GPU_BLOCK_ROWS if on_gpu else BLOCK_ROWS)
        yield replace(
            made,
            evaluate=partial(in_calls, made.evaluate, most),
            predict=made.predict and partial(in_calls, made.predict, most),
            margins=made.margins and partial(in_calls, made.margins, most),
        )


def _model(loaded: Any, origin: str, file: Path | None, name: str, computing: Computing) -> Model:
    torch = sys.modules.get("torch")  # a caller with a network has imported torch
    if torch is not None and isinstance(loaded, torch.nn.Module):
        quantised = [home for one in loaded.modules() if QUANTISED.match(home := type(one).__module__)]
        if not hasattr(loaded, "_guards_fn"):  # exported programs have a fixed mode
            loaded.eval()
        if quantised:
            alone = any("dynamic" in home for home in quantised)
            return Model(_of_quantised(loaded, alone), origin, file, "quantised", name)
        network = loaded.to(device=computing.device, dtype=computing.dtype)
        for values in network.parameters():
            values.requires_grad_(False)
        return Model(network, origin, file, "network", name, fitted=network)
    if isinstance(loaded, Onnx):
        return Model(loaded, origin, file, "onnx", name, predict=loaded.predict if loaded.decides else None)
    if hasattr(loaded, "predict") and not inspect.isroutine(loaded):
        return _of_estimator(Model(loaded.predict, origin, file, "estimator", name), loaded)
    return Model(loaded, origin, file, "function", name)


def _of_quantised(network: torch.nn.Module, alone: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the quantised network in its own precision, float32 on the CPU; ``alone`` takes inputs one by one."""
    import torch

    def evaluate(x: torch.Tensor) -> torch.Tensor:
        own = x.cpu().float()
        # Dynamic quantisation derives its scale from the batch.
        return torch.cat([network(one) for one in own.split(1)]) if alone else network(own)

    return evaluate


SCORES = ("predict_proba", "decision_function")
"""Methods of an estimator that score its classes. The first available one is used."""


def _of_estimator(model: Model, fitted: Any) -> Model:
    """Return the estimator as functions of a table; it gets its own columns, or an array if fitted on one."""
    columns, known = input_names(fitted), getattr(fitted, "classes_", None)
    known = () if known is None else known
    if any(np.ndim(one) for one in known):
        problem = f"{model.name} predicts {len(known)} outputs per row, but an audit needs one decision"
        raise InvalidInput(problem, source=model.name, option="model", remedy="Pass a model with one output")
    classes = tuple(np.asarray(known).tolist())
    scores = [name for name in SCORES if hasattr(fitted, name)]
    recodes = pandas_categories(fitted)
    levels = categories(fitted, columns or range(getattr(fitted, "n_features_in_", 0)))

    def called(method: str, rows: Any) -> Array:
        if not isinstance(rows, pd.DataFrame):  # the caller's own table of another kind
            names = getattr(rows, "column_names", getattr(rows, "columns", ()))
            own = named_as(columns, names) if columns and len(names) else ()
            return np.asarray(getattr(fitted, method)(rows.select(own) if own else rows))
        if columns and columns != tuple(rows.columns):
            own = named_as(columns, rows.columns)
            check_columns(rows, own, "the model", "its input")
            rows = rows[own]
        if recodes:
            rows = rows.assign(**{name: recoded(rows[name], levels.get(name)) for name in rows})
        array = not columns and hasattr(fitted, "n_features_in_")
        return np.asarray(getattr(fitted, method)(rows.to_numpy() if array else rows))

    def evaluate(rows: Any) -> Array:
        for method in scores:
            output = called(method, rows)
            # Decision values for pairs of classes do not determine a class.
            if not classes or output.ndim == 1 or output.shape[1] == len(classes):
                return output
        predicted = called("predict", rows)
        if not set(predicted.ravel().tolist()) <= set(classes):
            return predicted
        codes = np.array([classes.index(one) for one in predicted.ravel().tolist()])
        return codes if len(classes) <= 2 else np.eye(len(classes))[codes]

    return replace(
        model,
        evaluate=evaluate,
        classes=classes,
        columns=columns,
        cut=0.0 if scores == ["decision_function"] else None,
        # The predictions of a regression or of a network are scores.
        predict=partial(called, "predict") if classes or scores else None,
        fitted=fitted,
        margins=partial(called, "decision_function") if "decision_function" in scores else None,
        categories=levels,
        regression=not classes and is_regression(fitted),
    )


def recoded(column: pd.Series, known: Sequence[Any] | None) -> pd.Series:
    """Return a column of text, or one of ``known`` categories, as a pandas category; keep any other column."""
    text = str(column.dtype) in ("object", "str", "string")
    if isinstance(column.dtype, pd.CategoricalDtype) or not (text or known):
        return column
    if known is None:
        return column.astype("category")
    named = {level_name(value): value for value in known}
    own = column.map(lambda value: named.get(level_name(value), value), na_action="ignore")
    return pd.Series(pd.Categorical(own, categories=list(known)), index=column.index)


def is_regression(fitted: Any) -> bool:
    """Return whether scikit-learn, or a library with its conventions, calls a model a regressor."""
    sklearn = sys.modules.get("sklearn.base")
    try:
        return bool(sklearn and sklearn.is_regressor(fitted))
    except (AttributeError, TypeError):  # a model without scikit-learn's tags
        return False


def named_as(columns: Sequence[str], there: Iterable[str]) -> list[str]:
    """Return the table's names for an estimator's columns, because LightGBM replaces spaces with underscores."""
    known = {str(name).replace(" ", "_"): str(name) for name in there}
    return [name if name in known.values() else known.get(name, name) for name in columns]


def taken_columns(features: Sequence[str], label: str | None, source: Source, model: Model) -> tuple[str, ...]:
    """Return the ``features``, or without any the columns but the ``label``, on which an estimator was fitted by name.

    Features that it does not take cannot change its output. Raises InvalidInput if the table lacks a column.
    """
    named = named_as(model.columns, source.table)
    check_columns(source.table, named, "the model was fitted on columns by name: it", source.name)
    if named and not features:
        return tuple(name for name in named if name != label)
    fewer = named and set(named) < set(features)
    return tuple(name for name in features if not fewer or name in named)


ONNX_TYPES = {
    **{"tensor(double)": "float64", "tensor(float16)": "float16", "tensor(bool)": "bool"},
    **{f"tensor({name})": name for name in ("int8", "int16", "int32", "int64", "uint8")},
}
"""NumPy types of an ONNX program's input; any other input is float32."""


class Onnx:
    """An onnxruntime function of rows or images: its scores and, if it decides itself, its classes.

    A program of several outputs may have a class of each row, and must have one output of scores for each row, as in
    scikit-learn's exports. If it has more, ``output`` names the scores. An output that is not per row, the names of the
    classes, is not one of these.
    """

    def __init__(self, path: Path, output: str | None = None) -> None:
        onnxruntime = _extra("onnxruntime", path)
        try:
            self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        except Exception as error:
            raise _unopened(path, "cannot be opened as an ONNX program", error, "Export it again") from error
        (first, *others) = self.session.get_inputs()
        if others:
            names = listed([one.name for one in (first, *others)])
            problem = f"{path}: expected an ONNX program with one input, found {names}"
            raise InvalidInput(problem, source=path, option="model")
        (count, *_) = first.shape or [None]
        if isinstance(count, int):
            problem = (
                f"{path}: this ONNX program only takes batches of {count} rows, but an audit needs batches of any size"
            )
            remedy = "In torch.onnx.export, mark the first axis of the input as dynamic"
            raise InvalidInput(problem, source=path, option="model", remedy=remedy)
        self.input, self.dtype = first.name, ONNX_TYPES.get(first.type, "float32")
        every = [one.name for one in self.session.get_outputs()]
        by_row = [one for one in self.session.get_outputs() if not (one.shape and isinstance(one.shape[0], int))]
        decisions = [one.name for one in by_row if one.type in DECISIONS]
        scores = [one.name for one in by_row if one.type not in DECISIONS] or decisions
        if output is not None and output not in every:
            problem = f"{path} has no output {output!r}{nearest(output, every)}"
            raise InvalidInput(problem, source=path, option="model", remedy=f"It has: {listed(every)}")
        if output is None and (len(scores) != 1 or len(decisions) > 1):
            problem = f"{path} has the outputs {listed(every)}, but an audit needs one output of scores"
            raise InvalidInput(problem, source=path, option="model", remedy=f"Name it: {path}:{(scores or every)[0]}")
        self.scores = output or scores[0]
        self.decides = bool(decisions) and output is None and self.scores != decisions[0]
        self.classes = decisions[0] if decisions else None

    def __call__(self, inputs: Any) -> Any:
        tensor = hasattr(inputs, "detach")
        found = self._output(self.scores, inputs.detach().cpu().numpy() if tensor else inputs)
        if _named(found):
            found = np.array([list(one.values()) for one in found])
        return sys.modules["torch"].from_numpy(np.asarray(found)) if tensor else np.asarray(found)

    def predict(self, inputs: Any) -> Array:
        """Return the class of each row, (n,), or its index if the scores name the classes."""
        assert self.classes is not None
        found, scores = self._output(self.classes, inputs), self._output(self.scores, inputs[:1])
        if not _named(scores):
            return np.asarray(found)
        place = {name: number for number, name in enumerate(scores[0])}
        return np.array([place[name] for name in found.ravel().tolist()])

    def _output(self, name: str, inputs: Any) -> Any:
        (found,) = self.session.run([name], {self.input: np.asarray(inputs).astype(self.dtype)})
        return found


DECISIONS = ("tensor(int64)", "tensor(int32)", "tensor(bool)", "tensor(string)")
"""Types of an ONNX program's outputs that hold classes."""


def _named(scores: Any) -> bool:
    """Return whether scores are one dictionary per row, from classes to numbers."""
    return isinstance(scores, list) and bool(scores) and isinstance(scores[0], Mapping)


OTHER_AUDITS = "use an audit that needs no gradient: fliptest (decisions) or permutation (predictions)"


def no_gradient(model: Model, instead: str = OTHER_AUDITS) -> InvalidInput:
    """Return the error for a model without gradients, with an alternative ``instead``."""
    problem = f"{model.name} is {WHAT[model.kind]}, which has no gradient, but this audit follows gradients"
    return InvalidInput(problem, source=model.name, option="model", remedy=f"Pass a torch network, or {instead}")


def _extra(name: str, path: Path) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InvalidInput(not_installed(str(path), name.partition(".")[0]), source=path, option="model") from error


def _opened(path: Path, output: str | None, trust_pickle: bool, computing: Computing) -> tuple[Any, str]:
    if path.suffix == ".onnx":
        return Onnx(path, output), "ONNX program"
    if path.suffix in PICKLES:
        _check_trusted(path, trust_pickle, "a pickled model", "save it with skops.io.dump")
        import joblib

        importable_from(Path.cwd())
        try:
            return joblib.load(path), "pickled model"
        except Exception as error:
            remedy = (
                "A pickle needs the module that defines its class. Make this module importable, or pass "
                "path/to/file.py:name"
            )
            raise _unopened(path, "cannot be unpickled", error, remedy) from error
    if path.suffix != ".skops":
        return _network_in(path, trust_pickle, computing.device)
    skops = _extra("skops.io", path)
    try:
        unknown = skops.get_untrusted_types(file=path)
        if not unknown or trust_pickle:
            return skops.load(path, trusted=unknown), "skops archive"
    except Exception as error:
        raise _unopened(path, "cannot be opened as a skops archive", error, "Save it again") from error
    problem = f"{path} holds types that skops does not trust ({listed(unknown, 5)})"
    raise InvalidInput(
        problem, source=path, option="trust_pickle", remedy="If you trust its source, pass --trust-pickle"
    )


def _unopened(path: Path, problem: str, error: Exception, remedy: str) -> InvalidInput:
    """Return the error for a file that a library cannot open."""
    return InvalidInput(f"{path} {problem} ({reason(error)})", source=path, option="model", remedy=remedy)


def _check_trusted(path: Path, trust_pickle: bool, what: str, better: str) -> None:
    if not trust_pickle:
        problem = f"{path} is {what}. Opening a pickle can run any code, so this needs your consent"
        remedy = f"If you trust its source, pass --trust-pickle. A safer way: {better}, or pass path/to/file.py:name"
        raise InvalidInput(problem, source=path, option="trust_pickle", remedy=remedy)


def _network_in(path: Path, trust_pickle: bool, device: torch.device) -> tuple[torch.nn.Module, str]:
    import torch

    if path.suffix == ".pt2":
        # Besides opening pickles, torch evaluates expressions and loads libraries from the archive.
        what = "an exported program, which torch opens as a pickle"
        _check_trusted(path, trust_pickle, what, "save it as TorchScript")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if path.suffix == ".pt2":
                logging.getLogger("torch.export").setLevel(logging.CRITICAL)
                return torch.export.load(path).module(), "exported program"
            # The constants file distinguishes a TorchScript archive from a pickle in an archive.
            inside = zipfile.ZipFile(path).namelist() if zipfile.is_zipfile(path) else []
            if any(name.endswith("/constants.pkl") for name in inside):
                return torch.jit.load(path, map_location=device), "TorchScript network"
    except (RuntimeError, OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise _unopened(path, "cannot be opened as a saved network", error, "Save it again") from error
    problem = f"{path} is not a TorchScript archive. Files of weights and pickled networks cannot be opened"
    remedy = (
        "Save the network as TorchScript or as an exported program, or pass path/to/file.py:name, where name is "
        "a function that builds the network and loads its weights"
    )
    raise InvalidInput(problem, source=path, option="model", remedy=remedy)


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
        raise InvalidInput(problem, source=where, option=option_in(option)) from error


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
        raise InvalidInput(problem, source=where, option=option_in(option)) from error
    if not hasattr(module, name):
        public = [known for known, value in vars(module).items() if callable(value) and not known.startswith("_")]
        problem = f"{option} {text}: {where!r} has no {name!r}"
        raise InvalidInput(
            problem, source=where, option=option_in(option), remedy=f"It has: {', '.join(public) or 'nothing'}"
        )
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
