"""What a caller lends an audit comes back as it was, after an error too, and a result is a value of its own."""

import copy
import functools
import os
import pickle
import random
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import fairness_audits as fa
from fairness_audits.audits.robustness_bias import attacking
from fairness_audits.models.device import float32_kernels
from tests.errors import invalid

ROOT = Path(__file__).resolve().parents[2]
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(60, 4))
LABEL = (ROWS.sum(axis=1) + RNG.normal(size=60) > 0).astype(int)
GROUP = np.array(["a", "b"])[np.arange(60) % 2]
IMAGES = RNG.uniform(size=(60, 1, 2, 2)).astype(np.float32)


FLIPTEST: dict[str, Any] = {"source": "a", "target": "b", "map": "exact", "null_draws": 0, "threshold": 0.0}


def loss_ratio(model: Any, **given: Any) -> fa.Result:
    return fa.loss_ratio(model, ROWS, LABEL, **{"directions": [1, 0, 0, 0], "steps": 5, **given})


def fliptest(model: Any, **given: Any) -> fa.Result:
    return fa.fliptest(model, ROWS, GROUP, **{**FLIPTEST, **given})


def robustness(model: Any, **given: Any) -> fa.Result:
    return fa.robustness_bias(model, IMAGES, groups=GROUP, **{"permutations": 99, "bootstraps": 20, **given})


def permutation(model: Any = None, **given: Any) -> fa.Result:
    """A small permutation audit, of no model."""
    call = {"prediction": LABEL, "group": GROUP, "metric": "tpr", "draws": 99}
    return fa.permutation_test(LABEL, **{**call, **given})


SMOOTHING = {"attack": "smoothing", "attack_setting": ("smoothing.samples=200", "smoothing.selection_samples=100")}
AUDITS = {"loss ratio": loss_ratio, "fliptest": fliptest, "robustness": robustness}
Audit = Callable[..., fa.Result]


@pytest.fixture(params=AUDITS)
def audit(request: pytest.FixtureRequest) -> Audit:
    """Each audit of a model."""
    return AUDITS[request.param]


class Net(torch.nn.Module):
    """A network with what networks have; it replaces a buffer and limits its own weights as it runs."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm = torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8)
        self.frozen, self.tied = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.tied.weight = self.frozen.weight
        self.frozen.bias.requires_grad_(False)
        self.drop, self.last = torch.nn.Dropout(0.5), torch.nn.Linear(8, 1)
        self.weighted = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(8, 8))
        self.shift = torch.nn.Parameter(torch.tensor([1.1, 1.2], dtype=torch.bfloat16))
        self.scale = torch.nn.Buffer(torch.ones(1), persistent=False)
        self.drop.eval()
        self.seed = torch.tensor(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.scale = torch.nn.Buffer(self.scale * 1, persistent=False)
        self.last.weight.data.clamp_(-1e-3, 1e-3)
        h = self.weighted(self.tied(self.frozen(self.norm(self.first(x.flatten(1))).relu())))
        return 1e3 * self.last(self.drop(h)) * self.scale + self.shift.sum()


def trained() -> tuple[Net, torch.optim.Optimizer, torch.Tensor]:
    """A network in the middle of its training, with gradients, and a loss whose graph is still to be used."""
    net = Net().train()
    net.drop.eval()
    optimizer = torch.optim.Adam([one for one in net.parameters() if one.requires_grad], lr=0.01)
    step(net, optimizer)
    net.norm.eval()
    return net, optimizer, torch.nn.functional.softplus(net.first(torch.ones(2, 4))).sum()


def step(net: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """One step of the training; its gradients stay."""
    optimizer.zero_grad()
    net(torch.linspace(-1, 1, 24).reshape(6, 4)).square().mean().backward()
    optimizer.step()


def state(net: torch.nn.Module) -> dict[str, Any]:
    """What an audit restores of a module: its tensors, their values, bits and gradients, and its modes."""
    tensors = {**dict(net.named_parameters()), **dict(net.named_buffers())}
    return {
        "modes": {name: module.training for name, module in net.named_modules()},
        "objects": {name: (id(one), one.data_ptr(), one.stride()) for name, one in tensors.items()},
        "kinds": {name: (one.dtype, one.device, one.requires_grad) for name, one in tensors.items()},
        "bits": {name: one.detach().clone().flatten().view(torch.uint8).tolist() for name, one in tensors.items()},
        "gradients": {
            name: None if one.grad is None else (id(one.grad), one.grad.dtype, one.grad.tolist())
            for name, one in tensors.items()
        },
    }


def scores(net: torch.nn.Module, x: Any) -> Any:
    """What a function makes of a network, for tensors and for data frames."""
    if isinstance(x, pd.DataFrame):
        return net(torch.tensor(x.to_numpy(), dtype=torch.float32)).detach().numpy()
    return net(x.float())


def test_a_network_comes_back_as_it_was_and_its_training_goes_on(audit: Audit) -> None:
    net, optimizer, loss = trained()
    net.norm.train()  # which the audit does not use, and which has to stay
    before, own = state(net), copy.deepcopy(net)
    audit(net)
    assert state(net) == before
    loss.backward()
    step(net, optimizer)
    again, expected, there = trained()
    again.norm.training = own.norm.training
    there.backward()
    step(again, expected)
    for one, other in zip(net.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


class Failing(Net):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error
        self.passes = iter(range(9))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if next(self.passes):
            raise self.error
        return super().forward(x)


@pytest.mark.parametrize("error", [RuntimeError("failed"), KeyboardInterrupt()])
def test_a_network_comes_back_after_an_error(error: BaseException, audit: Audit) -> None:
    net = Failing(error).train()
    net.drop.eval()
    before, settings = state(net), program()
    with pytest.raises((ValueError, KeyboardInterrupt)):
        audit(net)
    assert state(net) == before
    assert program() == settings


def program() -> dict[str, Any]:
    """The settings of the program that an audit may not leave changed."""
    return {
        "numpy": repr(np.random.get_state()),  # noqa: NPY002
        "python": random.getstate(),
        "torch": torch.get_rng_state().tolist(),
        "dtype": torch.get_default_dtype(),
        "threads": torch.get_num_threads(),
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "kernels": [kernels.fp32_precision for kernels in float32_kernels()],
        "cudnn": (torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic),
    }


@pytest.fixture
def settings() -> Iterator[None]:
    """Settings that a test may change."""
    dtype, precisions = torch.get_default_dtype(), [kernels.fp32_precision for kernels in float32_kernels()]
    yield
    torch.set_default_dtype(dtype)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.benchmark = False
    for kernels, precision in zip(float32_kernels(), precisions, strict=True):
        kernels.fp32_precision = precision


def smooth() -> torch.nn.Sequential:
    """A network that is smooth, in evaluation mode."""
    torch.manual_seed(0)
    layers = (torch.nn.Flatten(), torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    return torch.nn.Sequential(*layers).float().eval()


def linear() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 1)).eval()


def frames(result: fa.Result) -> dict[str, pd.DataFrame]:
    return {name: result.to_frame(name) for name in result.tables}


@functools.cache
def undisturbed(audit: Audit, network: Callable[[], Any] = smooth, **options: Any) -> dict[str, pd.DataFrame]:
    """The tables of an audit in the usual surroundings, made once."""
    return frames(audit(network(), **options))


def assert_tables(result: fa.Result, expected: dict[str, pd.DataFrame], **exactly: Any) -> None:
    found = frames(result)
    for name, table in expected.items():
        pd.testing.assert_frame_equal(found[name], table, **exactly)


AROUND: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "float64": nullcontext,
    "float16": nullcontext,
    "medium": nullcontext,
    "tf32": nullcontext,
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(
    ("audit", "options"),
    [
        *((kind, {"dtype": dtype}) for kind in (loss_ratio, fliptest) for dtype in ("float64", "float32")),
        *(
            (robustness, {"attack": attack, "output_kind": "logits"})
            for attack in ("deepfool", "fmn", "carlini_wagner", "exact")
        ),
        (robustness, SMOOTHING),
    ],
)
@pytest.mark.usefixtures("settings")
def test_an_audit_gives_the_same_in_any_surroundings(around: str, options: Any, audit: Audit) -> None:
    plain = linear if options.get("attack") == "exact" else smooth
    expected, net = undisturbed(audit, plain, **options), plain()
    if around in ("float64", "float16"):
        torch.set_default_dtype(getattr(torch, around))
    if around == "medium":
        torch.set_float32_matmul_precision("medium")
        torch.backends.cudnn.benchmark = True
    if around == "tf32":
        torch.backends.cudnn.conv.fp32_precision = "ieee"  # type: ignore[attr-defined]
        torch.backends.cuda.matmul.fp32_precision = "tf32"  # type: ignore[attr-defined]
    with AROUND[around]():
        before = program()
        result = audit(net, **options)
        assert program() == before
    assert_tables(result, expected, check_exact=True)


def test_a_network_that_was_made_in_inference_mode_has_a_gradient(audit: Audit) -> None:
    with torch.inference_mode():
        net = smooth()
        kept = list(net.parameters())
        result = audit(net)
    assert all(one is other for one, other in zip(net.parameters(), kept, strict=True))
    assert_tables(result, undisturbed(audit))


class Autocast(torch.nn.Module):
    """A network that computes in half precision by itself."""

    def __init__(self, softmax: bool = False) -> None:
        super().__init__()
        self.inner, self.softmax = smooth(), softmax

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            z: torch.Tensor = self.inner(x)
            return torch.sigmoid(torch.cat((-4 * z, 4 * z), 1)).bfloat16() if self.softmax else z


def test_networks_under_autocast_are_audited_and_their_outputs_are_not_rounded_again() -> None:
    expected = robustness(smooth()).to_frame("distances")["distance_deepfool"]
    found = robustness(Autocast()).to_frame("distances")["distance_deepfool"]
    np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.02)
    for kind in (loss_ratio, fliptest):
        kind(Autocast(), dtype="float32")
        kind(lambda x: torch.as_tensor(scores(smooth(), x)).bfloat16())
    for softmax, kind_of_output in ((True, "probability"), (False, "logits")):
        assert robustness(Autocast(softmax)).facts["model"]["output_kind"] == kind_of_output


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_of_any_precision_are_those_values(dtype: torch.dtype, audit: Audit) -> None:
    net = smooth().to(dtype)
    before = state(net)
    result = audit(net)
    assert state(net) == before
    assert_tables(result, frames(audit(smooth().to(dtype).double())))


def quantised(net: torch.nn.Module) -> torch.nn.Module:
    """The network with weights of 8 bits, its activations scaled by batch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made: torch.nn.Module = torch.ao.quantization.quantize_dynamic(net, {torch.nn.Linear})
    return made


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_a_quantised_network_is_asked_one_by_one_where_no_gradient_is_needed_and_else_refused() -> None:
    net = quantised(smooth())
    for audit, more in ((loss_ratio, {"search": "gradient"}), (robustness, {})):
        with invalid(option="model"):
            audit(net, **more)
    alone = np.array([float(net(torch.tensor(row[None], dtype=torch.float32))) for row in ROWS])
    expected = fliptest(lambda frame: np.array([alone[np.abs(ROWS - row).sum(1).argmin()] for row in frame.to_numpy()]))
    found = fliptest(net)
    assert found.to_dict()["results"] == expected.to_dict()["results"]
    assert robustness(net, **SMOOTHING).to_frame("distances")["distance_smoothing"].notna().any()


def test_a_lazy_network_is_refused_before_it_draws_weights(audit: Audit) -> None:
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(1))
    with invalid(option="model"):
        audit(net)
    assert isinstance(net[1], torch.nn.LazyLinear)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("form", ["scripted", "compiled", "weight norm", "data parallel", "flat", "recurrent"])
def test_networks_of_every_make_come_back(form: str, audit: Audit) -> None:
    net: Any = smooth().train()
    flat = torch.arange(8.0)
    if form == "flat":
        net[3].weight.data = flat[None]

    class Recurrent(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.inner, self.last = torch.nn.GRU(4, 8, batch_first=True), torch.nn.Linear(8, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(self.inner(x.flatten(1)[:, None])[0][:, 0])

    made: Any = {
        "scripted": lambda: torch.jit.script(net),
        "compiled": lambda: torch.compile(net, backend="eager"),
        "weight norm": lambda: torch.nn.utils.weight_norm(net[1]) and net,
        "data parallel": lambda: torch.nn.DataParallel(net),
        "flat": lambda: net,
        "recurrent": Recurrent,
    }[form]()
    if form == "weight norm":
        made(torch.zeros(2, 4)).sum().backward()
    made.train()
    before = state(made)
    result = audit(made)
    assert {**state(made), "attributes": None} == {**before, "attributes": None}
    made(torch.zeros(2, 4)).sum().backward()
    if form in ("scripted", "compiled", "data parallel"):
        assert_tables(result, undisturbed(audit))


def held(values: Any, form: str) -> Any:
    """The same values, in another memory."""
    array = np.array(values)
    array.flags.writeable = form != "read only"
    forms = {
        "reversed": lambda: array[::-1].copy()[::-1],
        "strided": lambda: np.repeat(array, 2, axis=0)[::2],
        "column order": lambda: np.asfortranarray(array),
    }
    return forms.get(form, lambda: array)()


@pytest.mark.filterwarnings("error:.*not writable")
@pytest.mark.parametrize("form", ["read only", "reversed", "strided", "column order"])
def test_arrays_of_any_memory_are_read_and_stay(form: str) -> None:
    def changing(x: Any) -> Any:
        x *= 2
        return scores(smooth(), x / 2)

    rows, label, group, images = (held(values, form) for values in (ROWS, LABEL, GROUP, IMAGES))
    direction = held([1.0, 0, 0, 0], form)
    frame = pd.DataFrame(rows, columns=list("pqrs"))
    kept = [one.copy() for one in (rows, label, group, images, direction)]
    first = [
        fa.loss_ratio(changing, rows, label, directions=direction, steps=5),
        fa.fliptest(changing, frame, group, **FLIPTEST),
        fa.robustness_bias(changing, images, label, groups=group, permutations=99, bootstraps=20),
        fa.permutation_test(label, rows[:, 0], group=group, metric="auc", draws=99),
    ]
    for one, before in zip((rows, label, group, images, direction), kept, strict=True):
        assert one.tobytes() == before.tobytes()
    net = smooth()
    second = [
        loss_ratio(lambda x: scores(net, x)),
        fa.fliptest(net, pd.DataFrame(ROWS, columns=list("pqrs")), GROUP, **FLIPTEST, dtype="float32"),
        robustness(net, y=LABEL),
        permutation(prediction=None, score=ROWS[:, 0], metric="auc"),
    ]
    for one, other in zip(first, second, strict=True):
        assert one.to_dict()["results"] == other.to_dict()["results"]


def test_frames_and_estimators_come_back() -> None:
    frame = pd.DataFrame(ROWS, columns=list("pqrs"), index=np.arange(60)[::-1])
    label = pd.Series(LABEL, index=frame.index, name="y")
    options: dict[str, Any] = {"map": "exact", "null_draws": 0}
    estimator, tensor = LogisticRegression().fit(frame, label), torch.tensor(ROWS[:, 0], requires_grad=True)
    kept, before = frame.copy(deep=True), pickle.dumps(estimator)
    fa.fliptest(estimator, frame, pd.Series(GROUP, index=frame.index), y=label, source="a", target="b", **options)
    fa.permutation_test(label, tensor, group=GROUP, metric="auc", draws=99)
    assert tensor.requires_grad
    pd.testing.assert_series_equal(label, pd.Series(LABEL, index=frame.index, name="y"))
    pd.testing.assert_frame_equal(frame, kept)
    assert pickle.dumps(estimator) == before
    assert options == {"map": "exact", "null_draws": 0}


RESULTS: dict[str, Callable[[], fa.Result]] = {
    "loss ratio": lambda: loss_ratio(smooth()),
    "fliptest": lambda: fliptest(smooth(), reverse=True),
    "robustness": lambda: robustness(lambda x: scores(smooth(), x), attack=["deepfool", "fmn"]),
    "permutation": lambda: permutation(metric=["tpr", "fpr"]),
}
"""One result of each audit."""


@functools.cache
def result_of(name: str) -> fa.Result:
    return RESULTS[name]()


def read(result: fa.Result, folder: Path) -> list[Any]:
    """All that a result can be asked for, the pictures of its page left out."""
    files = {path.name: path.read_bytes() for path in result.save(folder) if path.suffix in (".json", ".yaml", ".csv")}
    tables = {name: table.to_json() for name, table in frames(result).items()}
    drawn = [result.figure(figure.stem).axes[0].get_title() for figure in result.figures()]
    return [result.outcome, result.summary(), result.to_dict(), tables, files, drawn, repr(result)]


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_pickled_and_copied(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairness_audits.results.render.save_figure", lambda _, stem: stem.with_suffix(".png").touch())
    result = result_of(name)
    expected = read(result, tmp_path / "own")
    for place, made in enumerate((pickle.loads(pickle.dumps(result)), copy.deepcopy(result), copy.copy(result))):
        assert read(made, tmp_path / str(place)) == expected


def test_another_process_reads_pickled_results(tmp_path: Path) -> None:
    every = [result_of(name) for name in RESULTS]
    file = tmp_path / "results.pkl"
    file.write_bytes(pickle.dumps(every))
    reader = "import pickle, sys\nfor one in pickle.load(open(sys.argv[1], 'rb')): print(one.summary())"
    command = [sys.executable, "-c", reader, str(file)]
    around = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=around)
    assert done.stdout == "".join(f"{result.summary()}\n" for result in every)


def measured(model: Any, file: Path | None, **given: Any) -> np.ndarray:
    """Distances of the images, kept in a file."""
    return robustness(model, checkpoint=file, **given).to_frame("distances")["distance_deepfool"].to_numpy()


MODELS: dict[str, Callable[[float], tuple[Any, dict[str, str]]]] = {
    "weights": lambda shift: (shifted(shift), {}),
    "activations": lambda shift: (torch.nn.Sequential(smooth()[:2], torch.nn.LeakyReLU(1 - shift), smooth()[3:]), {}),
    "functions": lambda shift: (shifted(shift).forward, {"checkpoint_key": f"shifted by {shift}"}),
}


def shifted(shift: float) -> torch.nn.Sequential:
    net = smooth()
    with torch.no_grad():
        net[3].bias.add_(shift)  # type: ignore[operator]
    return net


@pytest.mark.parametrize("name", MODELS)
def test_kept_distances_are_of_the_same_model_alone(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def distances(shift: float, file: Path | None) -> np.ndarray:
        model, named = MODELS[name](shift)
        return measured(model, file, **named)

    file = tmp_path / "kept.npz"
    first, other = distances(0.0, None), distances(0.5, None)
    assert (first != other).any()
    np.testing.assert_array_equal(distances(0.0, file), first)
    with invalid(option="checkpoint"):
        distances(0.5, file)
    # The same once more, made anew: nothing is attacked.
    with monkeypatch.context() as patch:
        patch.setattr(attacking, "_made", lambda *_: (None, 16))
        np.testing.assert_array_equal(distances(0.0, file), first)
    monkeypatch.setattr("torch.__version__", "0.0")
    with invalid(option="checkpoint"):
        distances(0.0, file)


def test_a_function_needs_a_name_for_its_distances_to_be_kept(tmp_path: Path) -> None:
    with invalid(option="checkpoint_key"):
        measured(smooth().forward, tmp_path / "kept.npz")
    assert not (tmp_path / "kept.npz").exists()
