"""A key of what a model computes: everything that changes an output changes it, and nothing else does."""

import builtins
import copy
import ctypes
import enum
import functools
import io
import os
import subprocess
import sys
import threading
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from torch.nn.utils import prune

from fairness_audits.inputs.identity import model_key
from fairness_audits.inputs.references import Opaque

ROOT = Path(__file__).resolve().parents[2]
WEIGHT = torch.arange(3.0)
RNG = np.random.default_rng(0)


def network(activation: torch.nn.Module | None = None) -> torch.nn.Sequential:
    """A small network, the same at each call."""
    torch.manual_seed(0)
    middle = torch.nn.LeakyReLU(0.1) if activation is None else activation
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), middle, torch.nn.Linear(4, 2)).eval()


def changed(change: Callable[[Any], Any]) -> torch.nn.Module:
    """The network after a change."""
    made = network()
    with torch.no_grad():
        change(made)
    return made


class Own(torch.nn.Module):
    """A network with attributes, and methods that no output depends on."""

    def __init__(self, slope: float = 0.1, power: Callable[..., Any] = torch.relu) -> None:
        super().__init__()
        self.slope, self.power = slope, power
        self.log = open(os.devnull)  # noqa: SIM115, PTH123

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The power of a slope."""
        return self.helped(self.power(x))

    def helped(self, x: torch.Tensor) -> torch.Tensor:
        """What only ``forward`` names."""
        return self.slope * x

    def save(self, path: str) -> None:
        """What no output depends on."""
        torch.save(self.state_dict(), path)
        print(open(path).name, file=self.log)  # noqa: SIM115, PTH123


class Other(Own):
    """Another code under ``helped``."""

    def helped(self, x: torch.Tensor) -> torch.Tensor:
        return self.slope + x


class Callable_:
    """A callable object that holds a network."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.scores(x)

    def scores(self, x: torch.Tensor) -> Any:
        """The scores, for a bound method."""
        return self.held(x)


def closing(value: Any) -> Callable[..., Any]:
    """A function that closes over a value."""
    return lambda x: x * value


def calling(held: Any) -> Callable[..., Any]:
    """A function that calls what it closes over."""
    return lambda x: held(x)


def under(name: str, value: Any, code: str = "lambda x: x * {}") -> Any:
    """A function that reads a global."""
    space = {name: value, "torch": torch, "np": np, "__name__": "users"}
    return eval(code.format(name), space)


def hooked(factor: float) -> torch.nn.Module:
    """A network whose output a hook multiplies."""
    made = network()
    made.register_forward_hook(lambda module, inputs, output: factor * output)
    return made


@dataclass
class Settings:
    """Settings that a function reads."""

    scale: float
    parts: tuple[int, ...] = (1, 2)


class Mode(enum.Enum):
    """A choice."""

    UP = "up"
    DOWN = "down"


def module_of(scale: float) -> types.ModuleType:
    """A module of a user's with a number and a function of it."""
    made = types.ModuleType("settings_of_a_user")
    made.__file__ = "settings_of_a_user.py"
    exec(f"SCALE = {scale}\ndef scaled(x): return SCALE * x\nLOG = open('{os.devnull}')", made.__dict__)
    return made


def scripted(made: torch.nn.Module) -> torch.jit.ScriptModule:
    """A network as TorchScript."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found: torch.jit.ScriptModule = torch.jit.script(made)
    return found


def exported(made: torch.nn.Module) -> torch.nn.Module:
    """A network as an exported program."""
    return torch.export.export(made, (torch.zeros(2, 3),)).module()


def pairs() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Two ways to make something: they differ in what they compute."""
    clone: Callable[[Any], Any] = lambda found: found  # noqa: E731
    return {
        "constants": (lambda: lambda x: 2 * x, lambda: lambda x: 3 * x),
        "types of constants": (lambda: lambda x: x * 1, lambda: lambda x: x * 1.0),
        "operations": (lambda: lambda x: x + 2, lambda: lambda x: x * 2),
        "methods": (lambda: lambda x: x.sin(), lambda: lambda x: x.cos()),
        "functions of a library": (lambda: lambda x: torch.sin(x), lambda: lambda x: torch.cos(x)),
        "nested code": (lambda: lambda x: [y * 2 for y in x], lambda: lambda x: [y * 3 for y in x]),
        "defaults": (lambda: lambda x, a=2: a * x, lambda: lambda x, a=3: a * x),
        "keyword defaults": (lambda: lambda x, *, a=2: a * x, lambda: lambda x, *, a=3: a * x),
        "closures": (lambda: closing(2), lambda: closing(3)),
        "closures over arrays": (lambda: closing(np.zeros(3)), lambda: closing(np.zeros(3) + 1e-12)),
        "types of arrays": (lambda: closing(np.zeros(3)), lambda: closing(np.zeros(3, np.float32))),
        "shapes of arrays": (lambda: closing(np.zeros((2, 3))), lambda: closing(np.zeros((3, 2)))),
        "closures over tensors": (lambda: closing(WEIGHT), lambda: closing(WEIGHT + 1)),
        "half precision": (lambda: closing(WEIGHT.bfloat16()), lambda: closing(WEIGHT.bfloat16() + 1)),
        "closures over functions": (lambda: calling(closing(2)), lambda: calling(closing(3))),
        "closures over networks": (
            lambda: calling(network()),
            lambda: calling(changed(lambda net: net[0].weight.neg_())),
        ),
        "ensembles": (lambda: calling([network()]), lambda: calling([changed(lambda net: net[3].bias.add_(1))])),
        "globals": (lambda: under("a", 2), lambda: under("a", 3)),
        "global functions": (
            lambda: under("f", closing(2), "lambda x: {}(x)"),
            lambda: under("f", closing(3), "lambda x: {}(x)"),
        ),
        "globals of nested code": (
            lambda: under("a", 2, "lambda x: [{} * y for y in x]"),
            lambda: under("a", 3, "lambda x: [{} * y for y in x]"),
        ),
        "modules": (
            lambda: under("m", module_of(2), "lambda x: {}.SCALE * x"),
            lambda: under("m", module_of(3), "lambda x: {}.SCALE * x"),
        ),
        "functions of modules": (
            lambda: under("m", module_of(2), "lambda x: {}.scaled(x)"),
            lambda: under("m", module_of(3), "lambda x: {}.scaled(x)"),
        ),
        "partials": (lambda: functools.partial(torch.mul, other=2), lambda: functools.partial(torch.mul, other=3)),
        "bound methods": (lambda: Callable_(closing(2)).scores, lambda: Callable_(closing(3)).scores),
        "callable objects": (lambda: Callable_(network()), lambda: Callable_(network(torch.nn.ReLU()))),
        "data classes": (lambda: closing(Settings(2.0)), lambda: closing(Settings(2.0, (1, 3)))),
        "choices": (lambda: closing(Mode.UP), lambda: closing(Mode.DOWN)),
        "sets": (lambda: closing({"a", "b"}), lambda: closing({"a", "c"})),
        "the order of a dictionary": (lambda: closing({"a": 1, "b": 2}), lambda: closing({"b": 2, "a": 1})),
        "decorated functions": (lambda: torch.no_grad()(closing(2)), lambda: torch.no_grad()(closing(3))),
        "cached functions": (lambda: functools.cache(closing(2)), lambda: functools.cache(closing(3))),
        "vectorised functions": (lambda: closing(np.vectorize(closing(2))), lambda: closing(np.vectorize(closing(3)))),
        "parameters": (network, lambda: changed(lambda net: net[0].weight[0, 0].add_(1e-6))),
        "buffers": (network, lambda: changed(lambda net: net[1].running_mean.add_(1))),
        "buffers that are not saved": (
            lambda: changed(lambda net: net.register_buffer("own", torch.zeros(2), persistent=False)),
            lambda: changed(lambda net: net.register_buffer("own", torch.ones(2), persistent=False)),
        ),
        "activations": (network, lambda: network(torch.nn.ReLU())),
        "slopes": (network, lambda: network(torch.nn.LeakyReLU(0.2))),
        "eps": (network, lambda: changed(lambda net: setattr(net[1], "eps", 1e-3))),
        "strides": (lambda: convolution(stride=1), lambda: convolution(stride=2)),
        "modes": (network, lambda: changed(lambda net: net[1].train())),
        "the order of modules": (
            lambda: torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()),
            lambda: torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU()),
        ),
        "hooks": (lambda: hooked(2), lambda: hooked(3)),
        "attributes": (lambda: Own(0.1), lambda: Own(0.2)),
        "attributes that are functions": (lambda: Own(0.1), lambda: Own(0.1, torch.sin)),
        "methods of a class": (lambda: Own(0.1), lambda: renamed(Other(0.1))),
        "a method of one object": (lambda: Own(0.1), lambda: patched(Own(0.1))),
        "parametrisations": (lambda: parametrised(2.0), lambda: parametrised(3.0)),
        "compiled networks": (
            lambda: torch.compile(network(), backend="eager"),
            lambda: torch.compile(network(torch.nn.ReLU()), backend="eager"),
        ),
        "scripted networks": (lambda: scripted(network()), lambda: scripted(network(torch.nn.LeakyReLU(0.2)))),
        "scripted parameters": (
            lambda: scripted(network()),
            lambda: scripted(changed(lambda net: net[0].bias.add_(1))),
        ),
        "exported programs": (lambda: exported(network()), lambda: exported(network(torch.nn.LeakyReLU(0.2)))),
        "exported parameters": (
            lambda: exported(network()),
            lambda: exported(changed(lambda net: net[0].bias.add_(1))),
        ),
        "quantised networks": (
            lambda: quantised(network()),
            lambda: quantised(changed(lambda net: net[0].weight.neg_())),
        ),
        "scikit-learn models": (lambda: fitted(LogisticRegression()), lambda: fitted(LogisticRegression(C=0.1))),
        "trees": (lambda: fitted(DecisionTreeClassifier()), lambda: fitted(DecisionTreeClassifier(max_depth=1))),
        "gradients of an own function": (lambda: calling(straight(2.0)), lambda: calling(straight(3.0))),
        "scripted functions": (lambda: scripted_function("2 * x"), lambda: scripted_function("3 * x")),
        "compiled functions": (lambda: torch.compile(closing(2)), lambda: torch.compile(closing(3))),
        "methods put into a library": (network, lambda: network(Odd())),
        "methods of a parent": (lambda: child(2.0), lambda: child(3.0)),
        "constants of a class": (lambda: constant(2.0), lambda: constant(3.0)),
        "imports": (lambda: importing_own(2.0), lambda: importing_own(3.0)),
        "local classes": (lambda: making(2.0), lambda: making(3.0)),
        "objects of a dictionary": (
            lambda: closing({"a": network()}),
            lambda: closing({"a": network(torch.nn.ReLU())}),
        ),
        "nested attributes": (lambda: closing([Callable_([2])]), lambda: closing([Callable_([3])])),
        "pruned weights": (network, lambda: pruned(network())),
        "tensors": (lambda: clone(WEIGHT), lambda: WEIGHT.double()),
    }


def convolution(**given: Any) -> torch.nn.Module:
    """A convolution, the same at each call."""
    torch.manual_seed(0)
    return torch.nn.Conv2d(1, 1, 3, **given)


def scripted_function(code: str) -> Any:
    """A function as TorchScript."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.CompilationUnit(f"def f(x: Tensor):\n    return {code}\n").f


class Odd(torch.nn.LeakyReLU):
    """A layer that a program calls as the library does."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return -x


Odd.__qualname__, Odd.__module__ = torch.nn.LeakyReLU.__qualname__, torch.nn.LeakyReLU.__module__


def child(factor: float) -> torch.nn.Module:
    """A network that asks its parent."""

    class Parent(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return factor * x

    class Child(Parent):
        def __init__(self) -> None:
            super().__init__()
            torch.load(io.BytesIO()) if factor < 0 else None

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = super().forward(x) + 1
            return found

    return Child()


def constant(value: float) -> Any:
    """A function of a class's constant."""

    class Constants:
        factor = value

    return lambda x: x * Constants.factor


def importing_own(scale: float) -> Any:
    """A function that imports a module of a user's."""
    sys.modules[f"own_{scale:.0f}"] = module_of(scale)
    sys.modules["own"] = sys.modules[f"own_{scale:.0f}"]

    def made(x: Any) -> Any:
        import own

        return own.SCALE * x

    return made


def making(factor: float) -> Any:
    """A function that makes an object as it runs."""

    class Made:
        def __init__(self, x: Any) -> None:
            self.x = factor * x

    return lambda x: Made(x).x


def pruned(made: Any) -> torch.nn.Module:
    """A network some of whose weights do not count."""
    prune.l1_unstructured(made[0], "weight", 0.5)
    return made


def parametrised(factor: float) -> torch.nn.Module:
    """A network whose weight is a multiple of its parameter."""

    class Multiple(torch.nn.Module):
        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            """The multiple."""
            return factor * weight

    made = network()
    torch.nn.utils.parametrize.register_parametrization(made[0], "weight", Multiple())
    torch.nn.utils.parametrizations.spectral_norm(made[0])
    torch.nn.utils.weight_norm(made[3])
    return made


def renamed(made: torch.nn.Module) -> torch.nn.Module:
    """The network under the other class's name."""
    type(made).__qualname__ = Own.__qualname__
    return made


def patched(made: Any) -> Any:
    """The network with a forward of its own."""
    made.forward = types.MethodType(lambda self, x: 3 * x, made)
    return made


def straight(slope: float) -> Callable[..., Any]:
    """A function that rounds, with a gradient of its own."""

    class Straight(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.round()

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return slope * gradient

    return Straight.apply


def quantised(made: torch.nn.Module) -> torch.nn.Module:
    """A dynamically quantised network."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found: torch.nn.Module = torch.ao.quantization.quantize_dynamic(made, {torch.nn.Linear})
    return found


def fitted(estimator: Any) -> Callable[..., Any]:
    """A function of a fitted estimator."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    return calling(estimator.set_params(random_state=0).fit(X, X.sum(axis=1) + rng.normal(size=40) > 0).predict_proba)


PAIRS = pairs()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize("name", PAIRS)
def test_what_computes_otherwise_has_another_key_and_what_is_made_again_the_same(name: str) -> None:
    first, second = PAIRS[name]
    made = first()
    assert model_key(made) == model_key(made) == model_key(first())
    assert model_key(made) != model_key(second())


def test_what_no_output_depends_on_has_no_part_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen, graded, before = network(), network(), model_key(network())
    frozen.requires_grad_(False)
    graded(torch.zeros(2, 3)).sum().backward()
    assert model_key(frozen) == model_key(graded) == before
    assert model_key(copy.deepcopy(graded)) == before
    own = model_key(Own())
    monkeypatch.setattr(Own, "save", lambda self: 0)
    assert model_key(Own()) == own
    values = np.arange(12.0).reshape(3, 4)
    assert model_key(closing(values)) == model_key(closing(np.asfortranarray(values)))
    assert model_key(closing(values[::-1])) == model_key(closing(values[::-1].copy()))
    assert model_key(under("a", 2)) == model_key(eval("lambda x: x * a", {"b": 7, "a": 2}))
    reordered, settings = Settings(2.0), Settings(2.0)
    reordered.__dict__ = dict(reversed(settings.__dict__.items()))
    assert model_key(reordered) == model_key(settings)


def test_code_that_only_a_later_name_reaches_counts() -> None:
    """A method that the outer function alone names is found, after the class was looked at."""

    def made(slope: float) -> Any:
        class Held:
            def scored(self, x: Any) -> Any:
                return slope * x

            def unused(self) -> Any:
                return slope

        held = Held()
        return (lambda x: held), (lambda x: held.scored(x)), (lambda x: getattr(held, "sco" + "red")(x))

    first, second = made(2.0), made(3.0)
    same = [model_key(one) == model_key(other) for one, other in zip(first, second, strict=True)]
    assert same == [True, False, False]


def test_structures_that_hold_themselves_end() -> None:
    def even(n: int) -> bool:
        return n == 0 or odd(n - 1)

    def odd(n: int) -> bool:
        return n != 0 and even(n - 1)

    ring: list[Any] = [1]
    ring.append(ring)
    other: list[Any] = [2]
    other.append(other)
    assert model_key(even) == model_key(even) != model_key(odd)
    assert model_key(ring) != model_key(other)
    module = network()
    module.parent = [module]  # type: ignore[assignment]
    assert model_key(module) == model_key(module)


def reading(path: str) -> Callable[..., Any]:
    """A function of a file."""
    return lambda x: x * np.load(path)


def importing(x: torch.Tensor) -> Any:
    """A function that imports what it reads with."""
    import numpy

    return x * numpy.load("weights.npy")


def renaming(x: Any) -> Any:
    """A function that imports what it reads with, under another name."""
    import torch.utils.data as reading

    return reading.DataLoader(x)


def taking(x: torch.Tensor) -> Any:
    """A function that imports what reads a file."""
    from numpy import fromfile as numbers

    return x * numbers("weights")


def asking(x: torch.Tensor) -> Any:
    """A function of what another process says."""
    return subprocess.check_output(["model", str(x)])


def requesting(x: torch.Tensor) -> Any:
    """A function of what a server says."""
    from urllib.request import urlopen

    return urlopen(str(x)).read()


def opening(x: torch.Tensor) -> Any:
    """A function of a file."""
    with open("weights") as file:  # noqa: PTH123
        return x * float(file.read())


class Remote(torch.nn.Module):
    """A network elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.connection = io.TextIOWrapper(io.BytesIO())

    def forward(self, x: torch.Tensor) -> Any:
        """What the connection says."""
        return self.connection.write(str(x))


def deep(levels: int) -> Any:
    """A list in a list, and so on."""
    made: list[Any] = []
    for _ in range(levels):
        made = [made]
    return made


@pytest.mark.parametrize(
    ("made", "named"),
    [
        (lambda: reading("weights.npy"), "numpy.load"),
        (lambda: importing, "numpy.load"),
        (lambda: renaming, "torch.utils.data"),
        (lambda: taking, "numpy.fromfile"),
        (lambda: lambda x: builtins.exec("x"), "exec"),
        (lambda: asking, "subprocess"),
        (lambda: requesting, "urllib.request"),
        (lambda: opening, "open"),
        (lambda: Remote(), "connection"),
        (lambda: lambda x: eval("2 * x"), "eval"),
        (lambda: lambda x: globals()["WEIGHT"] * x, "globals"),
        (lambda: lambda x: os.environ["SCALE"] * x, "environ"),
        (lambda: lambda x: Path("weights").read_bytes(), "Path"),
        (lambda: lambda x: torch.load("weights.pt")(x), "torch.load"),
        (lambda: under("r", torch.load, "lambda x: {}('weights.pt')(x)"), "torch"),
        (lambda: under("o", builtins.open, "lambda x: {}('weights')(x)"), "open"),
        (lambda: closing(ctypes.CDLL(None)), "ctypes"),
        (lambda: closing(one for one in "ab"), "generator"),
        (lambda: closing(threading.Thread()), "Thread"),
        (lambda: lambda x: torch.ops.users.scores(x), "users"),
        (lambda: lambda x: vars(builtins)["open"]("weights"), "open|builtins|exec|eval"),
        (lambda: deep(5000), "within"),
        (lambda: closing(io.BytesIO()), "BytesIO"),
        (lambda: closing(torch.zeros(3, device="meta")), "meta"),
    ],
)
def test_what_cannot_be_known_is_named(made: Callable[[], Any], named: str) -> None:
    with pytest.raises(Opaque, match=named):
        model_key(made())


PROGRAM = """
import functools, torch, numpy as np
from fairness_audits.inputs.identity import model_key
torch.manual_seed(0)
NAMES = {"male", "female", "other", "unknown"}
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        self.names = frozenset(NAMES)
        self.register_forward_hook(lambda module, inputs, output: 2 * output)
    def forward(self, x): return self.layers(x) if "male" in self.names | {"b", "c", "a"} else x
net = Net().eval()
for _ in range(SKIPPED): torch.nn.Linear(1, 1).register_forward_hook(print)
for _ in range(SKIPPED): torch.jit.script(torch.nn.Sequential(torch.nn.Linear(1, 1)))
exported = torch.export.export(net.layers, (torch.zeros(2, 3),)).module()
for made in (net, net.layers, lambda x: net(x) * len(NAMES), functools.partial(np.vectorize(lambda x: x in NAMES)),
             torch.jit.script(net.layers), exported):
    print(model_key(made))
"""


def test_another_process_finds_the_same_key(tmp_path: Path) -> None:
    found = []
    for seed, skipped in (("1", "0"), ("2", "3")):
        file = tmp_path / f"program_{seed}.py"
        file.write_text(PROGRAM.replace("SKIPPED", skipped))
        around = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-W", "ignore", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, env=around, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.split())
    assert found[0] == found[1]
    assert len(set(found[0])) == 6
