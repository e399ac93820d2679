"""The penalty is the published one, its gradients are right, and it closes a gap that was put there."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.methods import adverm, standard
from pipeline.models import networks
from pipeline.types import Array, Classifier, ImageDataset

COMMON: dict[str, Any] = {
    "model": "logistic_regression",
    "width": 1.0,
    "input_size": None,
    "pretrained": "never",
    "epochs": 3,
    "learning_rate": 0.05,
    "momentum": 0.9,
    "batch_size": 50,
    "train_points": None,
    "checkpoints": ("last",),
    "schedule": "constant",
    "nesterov": False,
    "weight_decay": 0.0,
    "augmentation": "none",
    "precision": "float32",
    "deterministic": True,
    "threads": 1,
    "training": 1,
}
PENALTY: dict[str, Any] = {
    "alpha": 0.005,
    "tau": 1.0,
    "penalised_partition": "group",
    "penalised_level": "near",
    "distance": "logit",
    "second_order": False,
    "scale": "pixels",
}


def config(**changes: Any) -> adverm.Config:
    return adverm.Config(**{**COMMON, **PENALTY, **changes})


def gapped(n: int = 400, size: int = 2) -> ImageDataset:
    """Two classes apart in the first pixel, one group by far less than the other; the second pixel parts that group."""
    rng = np.random.default_rng(0)
    label, group = rng.integers(0, 2, n), rng.integers(0, 2, n)
    sign = 2 * label - 1
    images = 128 + rng.normal(0, 8, (n, 1, size, size))
    images[:, 0, 0, 0] += sign * np.where(group == 0, 15, 90)
    images[:, 0, 0, 1] += sign * np.where(group == 0, 30, 0)
    return ImageDataset(
        name="gapped",
        origin="simulated",
        images=images.clip(0, 255).round().astype(np.uint8),
        maximum=255.0,
        mean=(0.5,),
        std=(0.25,),
        label=label,
        label_name="class",
        classes=("dark", "bright"),
        partitions={"class": label, "group": group},
        levels={"class": ("dark", "bright"), "group": ("near", "far")},
        train=np.arange(n // 2)[None],
        test=np.arange(n // 2, n)[None],
    )


def fit(dataset: ImageDataset, **changes: Any) -> Classifier:
    return adverm.fit(dataset, config(**changes), [np.random.default_rng(0)])


@pytest.mark.parametrize("distance", adverm.DISTANCES)
@pytest.mark.parametrize("second_order", [False, True])
def test_without_weight_the_penalty_changes_nothing(distance: str, second_order: bool) -> None:
    data = gapped(120, size=8)
    settings = {"model": "utk_classifier", "width": 0.1, "epochs": 2}
    plain = standard.fit(data, standard.Config(**{**COMMON, **settings}), [np.random.default_rng(0)])
    penalised = fit(data, alpha=0.0, distance=distance, second_order=second_order, **settings)
    for name, values in plain.parameters.items():
        np.testing.assert_array_equal(values, penalised.parameters[name])
    np.testing.assert_array_equal(plain.history["loss"], penalised.history["cross_entropy"])


def linear_case(distance: str, scale: str) -> tuple[float, float]:
    """The penalty of a linear classifier of three classes, as trained and by the formula."""
    rng = np.random.default_rng(2)
    w, b, std = rng.normal(size=(3, 8)), rng.normal(size=3), np.array([0.2, 0.7])
    x = rng.random((40, 2, 2, 2))
    z = x.reshape(40, 8) @ w.T + b
    label = np.where(rng.random(40) < 0.7, z.argmax(axis=1), rng.integers(0, 3, 40))
    codes = rng.integers(-1, 2, 40)
    linear = nn.Linear(8, 3).double()
    linear.load_state_dict({"weight": torch.from_numpy(w), "bias": torch.from_numpy(b)})
    net = nn.Sequential(nn.Flatten(), linear)
    loss = adverm.objective(
        codes == 1, codes == 0, std.tolist(), config(distance=distance, scale=scale, tau=0.8, alpha=3.0)
    )
    rows = torch.arange(40)
    total, _, terms = loss(net, torch.from_numpy(x), torch.from_numpy(label), rows)
    torch.testing.assert_close(total, terms["cross_entropy"] + 3 * terms["penalty"])

    near = []
    for i in range(40):
        first, second, *_ = np.argsort(-z[i])
        direction = w[first] if distance == "logit" else w[first] - w[second]
        height = abs(z[i, first]) if distance == "logit" else z[i, first] - z[i, second]
        spread = np.repeat(std, 4) if scale == "normalised" else 1.0
        near.append(1 / (1 + np.exp(-(0.8 - height / np.linalg.norm(direction * spread)))))
    right = z.argmax(axis=1) == label
    inside, outside = (np.array(near)[right & (codes == code)].mean() for code in (1, 0))
    return terms["penalty"].item(), abs(inside - outside)


@pytest.mark.parametrize("distance", adverm.DISTANCES)
@pytest.mark.parametrize("scale", adverm.SCALES)
def test_of_a_linear_classifier_the_penalty_is_the_formula(distance: str, scale: str) -> None:
    trained, expected = linear_case(distance, scale)
    assert trained == pytest.approx(expected, rel=1e-6)
    assert expected > 1e-4


def curved(seed: int = 0) -> tuple[nn.Module, torch.Tensor, torch.Tensor, Array]:
    """A smooth network in double precision, pixels, labels that it gets right for the most part, and a group."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Flatten(), nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double()
        x = torch.rand(30, 1, 2, 2, dtype=torch.float64)
    label = net(x).argmax(dim=1).detach()
    label[::5] = (label[::5] + 1) % 3
    return net, x, label, np.arange(30) % 2 == 0


def slope(distance: str, second_order: bool) -> tuple[float, float]:
    """The penalty's derivative along a random change of the parameters: by its gradient, and by differences."""
    net, x, label, inside = curved()
    settings = config(distance=distance, second_order=second_order, tau=0.6)
    loss = adverm.objective(inside, ~inside, (0.5,), settings)
    weights = list(net.parameters())
    generator = torch.Generator().manual_seed(1)
    change = [torch.randn(p.shape, dtype=p.dtype, generator=generator) for p in weights]

    def penalty(step: float) -> torch.Tensor:
        with torch.no_grad():
            for p, d in zip(weights, change, strict=True):
                p.add_(step * d)
        value = loss(net, x.clone(), label, torch.arange(30))[2]["penalty"]
        gradients.append(torch.autograd.grad(value, weights, retain_graph=True, allow_unused=True))
        with torch.no_grad():
            for p, d in zip(weights, change, strict=True):
                p.sub_(step * d)
        return value.detach()

    gradients: list[Any] = []
    by_differences = float(penalty(1e-5) - penalty(-1e-5)) / 2e-5
    penalty(0.0)
    by_gradient = sum(float((g * d).sum()) for g, d in zip(gradients[-1], change, strict=True) if g is not None)
    return by_gradient, by_differences


@pytest.mark.parametrize("distance", adverm.DISTANCES)
def test_in_second_order_the_gradient_is_the_penaltys_own(distance: str) -> None:
    by_gradient, by_differences = slope(distance, second_order=True)
    assert by_gradient == pytest.approx(by_differences, rel=1e-5)
    assert abs(by_differences) > 1e-4


@pytest.mark.parametrize("distance", adverm.DISTANCES)
def test_as_coded_the_gradient_leaves_the_norm_out(distance: str) -> None:
    by_gradient, by_differences = slope(distance, second_order=False)
    assert abs(by_gradient - by_differences) > 0.05 * abs(by_differences)


@pytest.mark.parametrize(("second_order", "moves"), [(True, False), (False, True)])
def test_scaling_all_logits_moves_no_boundary_which_second_order_knows(second_order: bool, moves: bool) -> None:
    net, x, label, inside = curved()
    head = net[3]  # type: ignore[index]
    loss = adverm.objective(inside, ~inside, (0.5,), config(distance="margin", second_order=second_order, tau=0.6))
    penalty = loss(net, x, label, torch.arange(30))[2]["penalty"]
    gradients = torch.autograd.grad(penalty, [head.weight, head.bias], allow_unused=True)
    outward = sum((g * p).sum().item() for g, p in zip(gradients, (head.weight, head.bias), strict=True))
    assert (abs(outward) > 1e-3) == moves
    assert moves or abs(outward) < 1e-12


def finite(net: nn.Module) -> bool:
    return all(p.grad is not None and bool(torch.isfinite(p.grad).all()) for p in net.parameters())


def test_a_batch_without_one_of_the_sides_has_no_penalty() -> None:
    net, x, label, inside = curved()
    everybody, nobody, wrong = np.ones(30, bool), np.zeros(30, bool), (label + 1) % 3
    wrong = torch.where(net(x).argmax(dim=1) == wrong, (wrong + 1) % 3, wrong)
    for mask, other, truth in ((everybody, nobody, label), (nobody, everybody, label), (inside, ~inside, wrong)):
        loss = adverm.objective(mask, other, (0.5,), config(second_order=True))
        total, _, terms = loss(net, x.clone(), truth, torch.arange(30))
        assert terms["penalty"].item() == 0
        total.backward()
        assert finite(net)


def test_a_network_that_does_not_depend_on_its_input_has_finite_gradients() -> None:
    net, x, label, inside = curved()
    with torch.no_grad():
        net[1].weight.zero_()  # type: ignore[index]
    truth = net(x).argmax(dim=1)
    loss = adverm.objective(inside, ~inside, (0.5,), config(distance="margin", second_order=True, alpha=1.0))
    loss(net, x, truth, torch.arange(30))[0].backward()
    assert finite(net)
    del label


def test_who_is_in_the_group_who_outside_and_who_in_neither() -> None:
    data = gapped(120)
    codes = data.partitions["group"].copy()
    codes[:7] = -1
    inside, outside = adverm.sides(replace(data, partitions={**data.partitions, "group": codes}), "group", "far")
    np.testing.assert_array_equal(inside, codes == 1)
    np.testing.assert_array_equal(outside, codes == 0)
    # Without a name the partition is that of the classes.
    np.testing.assert_array_equal(adverm.sides(data, None, "bright")[0], data.label == 1)
    with pytest.raises(
        ValueError, match=r"method\.penalised_partition among those of 'gapped', class, group; found 'race'"
    ):
        adverm.sides(data, "race", "Black")
    with pytest.raises(ValueError, match=r"method\.penalised_level among those of 'group', near, far; found None"):
        adverm.sides(data, "group", None)


def bias(fitted: Classifier, data: ImageDataset, tau: float) -> float:
    """RB of the exact distances on correctly classified test rows: the gap in shares above tau."""
    f = networks.of_checkpoint(fitted, data, 0, torch.device("cpu"))
    rows = data.test[0]
    x = torch.from_numpy(data.pixels(rows))
    margin = (f(x)[:, 1] - f(x)[:, 0]).numpy()
    weight = fitted.parameters["net.linear.weight"][0] / data.std[0]
    distance = np.abs(margin) / np.linalg.norm(weight[1] - weight[0])
    right = (margin > 0) == (data.label[rows] == 1)
    near = data.partitions["group"][rows] == 0
    assert right.mean() > 0.95
    return abs(float((distance[right & near] > tau).mean() - (distance[right & ~near] > tau).mean()))


@pytest.mark.parametrize("second_order", [False, True])
def test_the_penalty_on_margins_closes_a_gap_that_was_put_there(second_order: bool) -> None:
    data, tau = gapped(), 0.2
    settings: dict[str, Any] = {"epochs": 12, "distance": "margin", "second_order": second_order, "tau": tau}
    without, with_it = fit(data, alpha=0.0, **settings), fit(data, alpha=10.0, **settings)
    assert bias(without, data, tau) > 0.9
    assert bias(with_it, data, tau) < 0.2
    assert with_it.method == "adverm"


def test_the_penalty_as_coded_closes_its_own_gap() -> None:
    # Not that of the boundary: the logit's distance is none to where the decision changes.
    data = gapped()
    without, with_it = (fit(data, alpha=alpha, tau=0.2, epochs=12) for alpha in (0.0, 10.0))
    assert with_it.history["penalty"][0, -1] < 0.5 * without.history["penalty"][0, -1]
