"""Distances to the decision boundary beside other libraries, and certificates beside the rule of fixed sample size.

    python benchmarks/attacks.py [--points 128] [--slow-points 16] [--device cpu] [--only deepfool carlini_wagner]
    python benchmarks/attacks.py --points 500 --only classes [--dataset FILE]

Every library attacks the same correctly classified images of the same network, which it gets with its parameters
frozen, with the same settings: DeepFool 100 steps, the 10 top classes, overshoot .02; Carlini-Wagner L2 5 searches of
100 iterations, learning rate 5e-3, initial c 1e-2, confidence 0. The distances are measured here, from the images that
come back, in double precision; an image that is still of its class is a failure. `ratio` is the median over points of
a distance to ours. The speed is in images per second of processor time (on a GPU: of time), the better of batches of
32 and of all points together; what took over 20 seconds for the first is not run again.

`classes` counts the points whose distance by DeepFool is that of Foolbox, within a thousandth, by which classes ours
leaves out (`slack`); the latter needs no installation.

Without files the network is the UTK Classifier trained on the handwritten digits enlarged to 32 x 32 pixels; with a
dataset alone it is trained on that. The other peers are installed beside the project, in an environment of their own
(adv-lib imports visdom, which needs an older setuptools to build):

    .venv/bin/uv venv --python .venv/bin/python /tmp/peers
    .venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \\
        > /tmp/peers/lib/python3.11/site-packages/project.pth
    export VIRTUAL_ENV=/tmp/peers
    .venv/bin/uv pip install 'setuptools<81' wheel six tqdm tornado networkx websocket-client jsonpatch
    .venv/bin/uv pip install --no-deps --no-build-isolation adv-lib==0.2.8 visdom==0.2.4 torchattacks==3.5.1 \\
        adversarial-robustness-toolbox==1.20.1
    PYTHONPATH=. OMP_NUM_THREADS=1 /tmp/peers/bin/python benchmarks/attacks.py
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.common import study_settings
from fairness_audits.attacks import Distances, Execution, smoothing
from fairness_audits.attacks.carlini_wagner import carlini_wagner
from fairness_audits.attacks.minimum_norm import deepfool, fmn
from fairness_audits.seeds import generators
from fairness_audits.values import Array, Classifier, ImageDataset
from pipeline import io, networks
from pipeline.datasets import digits
from pipeline.methods import sgd
from pipeline.networks.imagenet import torchvision
from pipeline.raw_data.image_files import Held, resized
from pipeline.workflow.plugins import configure

STEPS, OVERSHOOT = 100, 0.02
SLACKS = (1.5, 3.0, np.inf)
SAME = 1e-3
"""Relative difference up to which two distances count as equal."""
SEARCHES, ITERATIONS, LEARNING_RATE, INITIAL_C = 5, 100, 5e-3, 1e-2
MINIMUM_NORM_STEPS = 100
RULE_SAMPLES, RULE_POINTS, TOLERANCES, SHARES = 100_000, 200, (0.1, 0.2), (0.6, 0.75, 0.9, 0.99, 0.999, 0.9999, 1.0)
BATCH = 32
LONG = 20.0
"""Duration in seconds beyond which a run is not repeated with another batch size."""
PEERS = {"foolbox": "Foolbox", "adv_lib": "adv-lib", "torchattacks": "torchattacks", "art": "ART"}
SLOW = ("torchattacks", "ART")

Images = torch.Tensor
Attack = Callable[[Images, Images], Images]
"""A function from images and labels to changed images."""


@dataclass(frozen=True)
class Subject:
    """A network on its device, and images (n, c, h, w) that it classifies correctly, with their classes (n,)."""

    f: torch.nn.Module
    images: Images
    label: Images
    classes: int

    def seconds(self, run: Callable[[], Any]) -> tuple[float, Any]:
        """Return the processor time of a run, or its wall time on a GPU, and its result."""
        if self.images.device.type == "cpu":
            start = time.process_time()
            result = run()
            return time.process_time() - start, result
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = run()
        torch.cuda.synchronize()
        return time.perf_counter() - start, result

    def measured(self, changed: Images) -> Array:
        """Return ||x' - x||_2 of the first ``len(changed)`` images, NaN if x' still has the class of x."""
        count = len(changed)
        changed = changed.detach().to(self.images).clamp(0, 1)
        with torch.no_grad():
            fooled = self.f(changed).argmax(1) != self.label[:count]
        length = (changed.double() - self.images[:count].double()).flatten(1).norm(dim=1)
        return length.where(fooled, torch.nan).cpu().numpy()


def main() -> None:
    """Run and print the requested comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=128, help="images attacked (128)")
    parser.add_argument("--slow-points", type=int, default=16, help="images for torchattacks, ART and smoothing (16)")
    parser.add_argument("--samples", type=int, default=10_000, help="noisy images a point of the fixed rule (10,000)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--dataset", help="a prepared image dataset (.npz)")
    parser.add_argument("--classifier", help="a network trained on it (.npz)")
    parser.add_argument("--only", nargs="+", choices=list(COMPARISONS), default=list(COMPARISONS))
    options = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        if options.dataset is None and options.classifier is not None:
            parser.error("--classifier needs its --dataset")
        subject = posed(options)
        for name in options.only:
            COMPARISONS[name](subject, options)


def posed(options: argparse.Namespace) -> Subject:
    """Return the network and its correctly classified test images, and print a description."""
    dataset: Any = io.load_if_present(options.dataset) if options.dataset else enlarged_digits()
    classifier = io.load(options.classifier, Classifier) if options.classifier else trained(dataset)
    f = networks.of_checkpoint(classifier, dataset, classifier.repetitions - 1, torch.device(options.device))
    pixels = torch.from_numpy(dataset.pixels(dataset.test[0]))
    label = torch.from_numpy(dataset.label[dataset.test[0]])
    with torch.no_grad():
        parts = [f(part.to(options.device)).argmax(1).cpu() for part in pixels.split(250)]
    right = torch.cat(parts) == label
    rows = right.nonzero()[: options.points, 0]
    size = sum(values.numel() for values in f.parameters())
    print(
        f"{dataset.name}, images {tuple(pixels.shape[1:])}; {classifier.architecture}, {size:,} parameters, accuracy "
        f"{right.double().mean():.3f}; {len(rows)} images, on {options.device}"
    )
    images, label = pixels[rows].to(options.device), label[rows].to(options.device)
    return Subject(f, images, label, len(dataset.classes))


def enlarged_digits() -> ImageDataset:
    """Return the digits at 32 x 32 pixels, with 15 interpolation steps between adjacent grey values."""
    rows, config = digits.parse(), configure(digits, study_settings("dataset", "digits"))
    assert isinstance(rows.pictures, Held)
    finer = replace(rows, pictures=Held(resized(15 * rows.pictures.images, config.image_size)))
    prepared = digits.prepare(finer, config, generators("benchmark", repetitions=1), "bundled")
    return replace(prepared, maximum=15 * digits.MAXIMUM)


def trained(dataset: ImageDataset) -> Classifier:
    """Train the UTK Classifier for six epochs."""
    values = study_settings("method", "standard")
    values |= {"model": "utk_classifier", "epochs": 6, "learning_rate": 0.01, "checkpoints": ["last"]}
    return sgd.fit(dataset, configure(sgd, values), generators("benchmark", repetitions=1))


def compare_deepfool(subject: Subject, options: argparse.Namespace) -> None:
    """Compare DeepFool across libraries."""
    ours = {"ours": lambda x, y, how: deepfool(subject.f, x, y, steps=STEPS, overshoot=OVERSHOOT, execution=how)}
    compare(subject, options, "DeepFool", ours, dict(peers(subject, "deepfool")))


def compare_classes(subject: Subject, options: argparse.Namespace) -> None:
    """Count our distances that equal Foolbox's, by ``slack``; Foolbox computes the gradients of all candidates."""
    peer = next(of_foolbox(subject, "deepfool"))[1]
    speed, changed = fastest(subject, peer, options.points)
    theirs = subject.measured(changed)
    print(f"\nDeepFool, classes left out{'':8}{'images/s':>10}{'points':>8}{'same':>8}{'worst':>9}{'failed':>8}")
    print(f"{'Foolbox':34}{speed:10.1f}{len(theirs):8}{'':17}{np.isnan(theirs).sum():8}")
    for slack in SLACKS:
        attack = partial(deepfool, subject.f, steps=STEPS, overshoot=OVERSHOOT, slack=slack)
        spent, found = subject.seconds(partial(attack, subject.images, subject.label))
        ours = subject.measured(torch.from_numpy(found.adversarial))
        same, failed = np.isclose(ours, theirs, rtol=SAME, atol=0, equal_nan=True).sum(), np.isnan(ours).sum()
        name = f"ours, slack {slack:g}" if np.isfinite(slack) else "ours, all classes"
        worst = np.nanmax(ours / theirs)
        print(f"{name:34}{len(ours) / spent:10.1f}{len(ours):8}{same:8}{worst:9.3f}{failed:8}", flush=True)


def compare_carlini_wagner(subject: Subject, options: argparse.Namespace) -> None:
    """Compare Carlini and Wagner's L2 attack across libraries; ours also without early stopping."""

    def attack(x: Images, y: Images, how: Execution, **every: Any) -> Distances:
        return carlini_wagner(
            subject.f,
            x,
            y,
            iterations=ITERATIONS,
            searches=SEARCHES,
            learning_rate=LEARNING_RATE,
            initial_c=INITIAL_C,
            execution=how,
            **every,
        )

    ours: dict[str, Callable[..., Distances]] = {
        "ours": attack,
        "ours, every iteration": partial(attack, patience=ITERATIONS, slack=np.inf),
    }
    compare(subject, options, "Carlini-Wagner L2", ours, dict(peers(subject, "carlini_wagner")))


def compare_minimum_norm(subject: Subject, options: argparse.Namespace) -> None:
    """Compare tighter attacks: ours starts at DeepFool's images and takes 20 steps, the others take 100."""
    ours = {"ours, FMN, 20 steps": lambda x, y, how: fmn(subject.f, x, y, execution=how)}
    compare(subject, options, "Tighter attacks", ours, dict(peers(subject, "minimum_norm")))


def compare(
    subject: Subject,
    options: argparse.Namespace,
    title: str,
    ours: dict[str, Callable[..., Distances]],
    others: dict[str, Attack],
) -> None:
    """Print the speed, the median distance, the median ratio to ours and the failures of each attack."""
    print(f"\n{title}\n{'':34}{'images/s':>10}{'points':>8}{'median':>9}{'ratio':>8}{'failed':>8}")
    first: Array | None = None
    for name, attack in ours.items():
        spent, found = subject.seconds(partial(attack, subject.images, subject.label, Execution()))
        assert found.adversarial is not None
        distance = subject.measured(torch.from_numpy(found.adversarial))
        np.testing.assert_allclose(distance, found.distance, rtol=1e-5)
        first = distance if first is None else first
        tell(name, len(distance) / spent, distance, first)
    assert first is not None
    for name, peer in others.items():
        slow = name.startswith(SLOW)
        speed, changed = fastest(subject, peer, options.slow_points if slow else options.points)
        tell(name, speed, subject.measured(changed), first)


def fastest(subject: Subject, attack: Attack, count: int) -> tuple[float, Images]:
    """Return images per second with the better batch size, and the changed images, for the first ``count`` images."""
    best, changed = 0.0, subject.images
    images, label = subject.images[:count], subject.label[:count]
    for size in sorted({min(BATCH, count), count}):
        parts = zip(images.split(size), label.split(size), strict=True)
        spent, found = subject.seconds(lambda parts=list(parts): torch.cat([attack(x, y) for x, y in parts]))  # type: ignore[misc]
        if len(found) / spent > best:
            best, changed = len(found) / spent, found
        if spent > LONG:
            break
    return best, changed


def tell(name: str, speed: float, distance: Array, ours: Array) -> None:
    """Print one line of the table."""
    both = np.isfinite(distance) & np.isfinite(ours[: len(distance)])
    ratio = np.median(distance[both] / ours[: len(distance)][both]) if both.any() else np.nan
    print(
        f"{name:34}{speed:10.1f}{len(distance):8}{np.nanmedian(distance):9.4f}{ratio:8.3f}{np.isnan(distance).sum():8}",
        flush=True,
    )


def peers(subject: Subject, kind: str) -> Iterator[tuple[str, Attack]]:
    """Yield the attacks of this kind from all installed libraries, and print the libraries that are missing."""
    torchvision()
    for package, title in PEERS.items():
        try:
            importlib.import_module(package)
        except ImportError as error:
            print(f"{title} is left out ({error}): --help says how to install it")
            continue
        for name, attack in globals()[f"of_{package}"](subject, kind):
            yield f"{title}{name}", attack


def of_foolbox(subject: Subject, kind: str) -> Iterator[tuple[str, Attack]]:
    """Yield Foolbox's attacks. Its C&W stops a search early by the loss summed over the batch, or never."""
    foolbox: Any = importlib.import_module("foolbox")
    model = foolbox.PyTorchModel(subject.f, bounds=(0, 1), device=subject.images.device)

    def ready(attack: Any) -> Attack:
        return lambda x, y: attack(model, x, y, epsilons=None)[0]

    if kind == "deepfool":
        yield "", ready(foolbox.attacks.L2DeepFoolAttack(steps=STEPS, candidates=10, overshoot=OVERSHOOT))
    elif kind == "carlini_wagner":
        settings: dict[str, Any] = {"binary_search_steps": SEARCHES, "steps": ITERATIONS}
        settings |= {"stepsize": LEARNING_RATE, "initial_const": INITIAL_C}
        for early, name in ((True, ""), (False, ", every iteration")):
            yield name, ready(foolbox.attacks.L2CarliniWagnerAttack(**settings, abort_early=early))
    else:
        yield " DDN", ready(foolbox.attacks.DDNAttack(steps=MINIMUM_NORM_STEPS))


def of_adv_lib(subject: Subject, kind: str) -> Iterator[tuple[str, Attack]]:
    """Yield adv-lib's attacks."""
    from adv_lib import attacks

    f = subject.f
    if kind == "deepfool":
        yield "", lambda x, y: attacks.df(f, x.contiguous(), y, steps=STEPS, overshoot=OVERSHOOT)
    elif kind == "carlini_wagner":
        yield (
            "",
            lambda x, y: attacks.carlini_wagner_l2(
                f,
                x.contiguous(),
                y,
                learning_rate=LEARNING_RATE,
                initial_const=INITIAL_C,
                binary_search_steps=SEARCHES,
                max_iterations=ITERATIONS,
            ),
        )
    else:
        yield " FMN", lambda x, y: attacks.fmn(f, x.contiguous(), y, norm=2, steps=MINIMUM_NORM_STEPS)
        yield " DDN", lambda x, y: attacks.ddn(f, x.contiguous(), y, steps=MINIMUM_NORM_STEPS)
        yield " SuperDeepFool", lambda x, y: attacks.sdf(f, x.contiguous(), y)


def of_torchattacks(subject: Subject, kind: str) -> Iterator[tuple[str, Attack]]:
    """Yield torchattacks' attacks. Its C&W has no search for c, so c is 1 and the iterations are as many in total."""
    import torchattacks

    if kind == "deepfool":
        yield "", torchattacks.DeepFool(subject.f, steps=STEPS, overshoot=OVERSHOOT)
    elif kind == "carlini_wagner":
        total = SEARCHES * ITERATIONS
        yield f" (c = 1, {total} iterations)", torchattacks.CW(subject.f, c=1, steps=total, lr=LEARNING_RATE)


def of_art(subject: Subject, kind: str) -> Iterator[tuple[str, Attack]]:
    """Yield ART's attacks."""
    from art.attacks import evasion
    from art.estimators.classification import PyTorchClassifier

    classifier = PyTorchClassifier(
        model=subject.f,
        loss=torch.nn.CrossEntropyLoss(),
        input_shape=tuple(subject.images.shape[1:]),
        nb_classes=subject.classes,
        clip_values=(0.0, 1.0),
        device_type="cpu" if subject.images.device.type == "cpu" else "gpu",
    )

    how: dict[str, Any] = {"batch_size": BATCH, "verbose": False}

    def ready(attack: Any) -> Attack:
        return lambda x, y: torch.from_numpy(attack.generate(x.cpu().numpy(), one_hot(y, subject.classes)))

    if kind == "deepfool":
        attack = evasion.DeepFool(classifier, max_iter=STEPS, epsilon=OVERSHOOT, nb_grads=10, **how)
        yield "", ready(attack)
    elif kind == "carlini_wagner":
        attack = evasion.CarliniL2Method(
            classifier,
            learning_rate=LEARNING_RATE,
            binary_search_steps=SEARCHES,
            max_iter=ITERATIONS,
            initial_const=INITIAL_C,
            **how,
        )
        yield "", ready(attack)


def one_hot(label: Images, classes: int) -> Array:
    """Return labels (n,) as one-hot rows (n, classes)."""
    return np.eye(classes, dtype=np.float32)[label.cpu().numpy()]


def compare_smoothing(subject: Subject, options: argparse.Namespace) -> None:
    """Compare forward passes and radii of the adaptive and the fixed rule at the same confidence."""
    count, samples = options.slow_points, options.samples
    print(f"\nCertified radii, sigma .125, alpha .001, {count} points, at most {samples:,} samples")
    print(f"{'':34}{'passes':>10}{'seconds':>9}{'median radius':>15}{'mean':>9}{'radius 0':>11}")
    fixed: Array | None = None
    for name, settings in (
        ("fixed sample size", {"first_samples": samples}),
        ("adaptive, tolerance .1", {"tolerance": 0.1}),
        ("adaptive, tolerance .2", {"tolerance": 0.2}),
    ):
        spent, found = subject.seconds(
            lambda settings=settings: smoothing.certify(  # type: ignore[misc]
                subject.f, subject.images[:count], subject.label[:count], samples=samples, **settings
            )
        )
        fixed = found.distance if fixed is None else fixed
        print(
            f"{name:34}{found.forward_passes / count:10,.0f}{spent:9.1f}{np.median(found.distance):15.4f}"
            f"{found.distance.mean():9.4f}{(found.distance == 0).sum():11}",
            flush=True,
        )


@dataclass(frozen=True)
class Coins:
    """A substitute for a network: noisy images of point i have its class with probability ``share[i]``."""

    share: Array
    rng: np.random.Generator

    def cast(self, points: Array, _: int, start: int, stop: int) -> Iterator[tuple[Array, Array]]:
        """Yield the classes of all samples of each point; 0 is the point's own class."""
        for point in points:
            yield np.array([point]), (self.rng.random((1, stop - start)) >= self.share[point]).astype(int)


def compare_rules(_: Subject, __: argparse.Namespace) -> None:
    """Print the adaptive rule's share of the samples and its relative radius, by the probability of the class."""
    print(
        f"\nSamples of the adaptive rule, of {RULE_SAMPLES:,}, and its radius over that of the fixed rule; alpha .001"
    )
    print("probability" + "".join(f"{f'tolerance {tolerance}':>24}" for tolerance in TOLERANCES))
    for share in SHARES:
        shares, cells = np.full(RULE_POINTS, share), ""
        hits = np.random.default_rng(0).binomial(RULE_SAMPLES, share, RULE_POINTS)
        fixed = smoothing.radius(smoothing.lower_limit(hits, RULE_SAMPLES, 0.001), 1.0)
        for tolerance in TOLERANCES:
            plan = smoothing.SamplePlan(0.125, 100, RULE_SAMPLES, 0.001, 100, 1.5, tolerance, 0)
            coins: Any = Coins(shares, np.random.default_rng(1))
            points, own = np.arange(RULE_POINTS), np.zeros(RULE_POINTS, dtype=int)
            lower, drawn = smoothing.estimated(coins, plan, points, own)
            kept = smoothing.radius(lower, 1.0).mean() / fixed.mean()
            cells += f"{drawn.mean() / RULE_SAMPLES:15.3f}{kept:9.2f}"
        print(f"{share:11}{cells}")


COMPARISONS: dict[str, Callable[[Subject, argparse.Namespace], None]] = {
    "deepfool": compare_deepfool,
    "classes": compare_classes,
    "carlini_wagner": compare_carlini_wagner,
    "minimum_norm": compare_minimum_norm,
    "smoothing": compare_smoothing,
    "rules": compare_rules,
}


if __name__ == "__main__":
    main()
