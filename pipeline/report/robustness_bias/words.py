"""What the study's data, networks, distances and groups are called, their order, and how each is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.report.style import MethodStyle, method_style

DIGITS, CIFAR10, CIFAR100, SUPER = "digits", "cifar10", "cifar100", "cifar100_super"
UTKFACE, ADIENCE = "utkface", "adience"

DATASETS = {
    CIFAR10: "CIFAR-10",
    CIFAR100: "CIFAR-100",
    SUPER: "CIFAR-100 superclasses",
    UTKFACE: "UTKFace",
    ADIENCE: "Adience",
    DIGITS: "Digits",
}
PUBLISHED = (CIFAR10, CIFAR100, SUPER, UTKFACE, ADIENCE)
"""The data sets of the paper; the digits are ours."""

EXACT, DEEPFOOL, CARLINI_WAGNER, SMOOTHING = "exact", "deepfool", "carlini_wagner", "smoothing"

DISTANCES = {
    EXACT: MethodStyle("exact", "#222222", "o", "-"),
    DEEPFOOL: MethodStyle("DeepFool", "#0072B2", "s", (0, (5, 1.5))),
    CARLINI_WAGNER: MethodStyle("Carlini-Wagner", "#D55E00", "^", (0, (5, 1.5, 1, 1.5))),
    SMOOTHING: MethodStyle("randomized smoothing", "#00875F", "D", (0, (1, 1.2))),
}
"""The distances of the paper."""
ABBREVIATED = {"ddn": "DDN", "fmn": "FMN", "fab": "FAB"}
EXACT_IN_BOX = "exact_in_box"
UNITS = "L2, pixels in [0, 1]"

LOGISTIC = "logistic_regression"
CONVOLUTIONAL = ("alexnet", "vgg19", "resnet50", "densenet121", "squeezenet1_0")
"""The five of torchvision, trained on every data set, of which 755 comparisons are made."""
OWN = {
    CIFAR10: "deep_cnn",
    CIFAR100: "deep_cnn_cifar100",
    SUPER: "deep_cnn_cifar100",
    UTKFACE: "utk_classifier",
    ADIENCE: "adience_classifier",
    DIGITS: "utk_classifier",
}
"""The sixth network of a data set in Table 1, by the number of its comparisons."""
NETWORKS = {
    LOGISTIC: "logistic regression",
    "deep_cnn": "Deep CNN",
    "deep_cnn_cifar100": "Deep CNN (CIFAR100)",
    "pyramidnet": "PyramidNet",
    "pyramidnet_bottleneck": "PyramidNet (bottleneck)",
    "utk_classifier": "UTK Classifier",
    "adience_classifier": "Adience Classifier",
    "resnet50": "ResNet50",
    "resnet18": "ResNet18",
    "alexnet": "AlexNet",
    "vgg19": "VGG19",
    "densenet121": "DenseNet121",
    "squeezenet1_0": "SqueezeNet1_0",
}

GENDER, RACE = "gender", "race"
PARTITIONS = {
    "class": "class",
    "superclass": "class",
    "digit": "class",
    "age": "class (age)",
    GENDER: "gender",
    RACE: "race",
}

FIRST, MIDDLE, LAST = "first", "middle", "last"
"""Checkpoints of a training."""
PAPER, CORRECT = "paper", "correct"
"""Denominators of I_P: all members of P, as in the paper, or those classified correctly, as in the authors' program."""
DENOMINATORS = {PAPER: "all members", CORRECT: "correct members"}

COLORS = (
    *("#0072B2", "#D55E00", "#00875F", "#B5478F", "#D98E04"),
    *("#56B4E9", "#8C5A2B", "#000000", "#7F7F7F", "#BCBD22"),
)
LINES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (2.5, 1)))


def dataset_label(name: str) -> str:
    """``cifar10`` -> ``CIFAR-10``."""
    return DATASETS.get(name, name.replace("_", " ").capitalize())


def network_label(name: str) -> str:
    """``vgg19`` -> ``VGG19``."""
    return NETWORKS.get(name, method_style(name).label)


def distance_style(attack: str) -> MethodStyle:
    """Name, colour, marker and line of a distance; one that is not in the paper goes by its own name."""
    if attack in DISTANCES:
        return DISTANCES[attack]
    if attack == EXACT_IN_BOX:
        return MethodStyle("exact, among images", "#7F7F7F", "o", (0, (1, 1.2)))
    return MethodStyle(ABBREVIATED.get(attack, attack.replace("_", " ")), "#B5478F", "v", "-")


def partition_label(name: str) -> str:
    """``superclass`` -> ``class``: which partition of the data."""
    return PARTITIONS.get(name, name.replace("_", " "))


def level_label(name: str) -> str:
    """``aquatic_mammals`` -> ``aquatic mammals``."""
    return name.replace("_", " ")


def line_style(place: int) -> tuple[str, object]:
    """Colour and line of the ``place``-th group: the first ten differ in colour, the first 50 in both together."""
    return COLORS[place % len(COLORS)], LINES[(place + place // len(COLORS)) % len(LINES)]


def ordered(found: Iterable[str], order: Sequence[str]) -> list[str]:
    """The distinct names in a fixed order, those that are not in it after them by name."""
    there = set(found)
    return [name for name in order if name in there] + sorted(there - set(order))


def datasets_in(found: Iterable[str]) -> list[str]:
    """The distinct data sets in the order of the paper."""
    return ordered(found, list(DATASETS))


def networks_in(found: Iterable[str]) -> list[str]:
    """The distinct networks: a data set's own first, then those of torchvision."""
    return ordered(found, list(NETWORKS))


def distances_in(found: Iterable[str]) -> list[str]:
    """The distinct distances: exact ones, the two attacks of the paper, tighter ones, and the certified radius last."""
    there = set(found)
    order = (EXACT, EXACT_IN_BOX, DEEPFOOL, CARLINI_WAGNER, *tighter(there), SMOOTHING)
    return [name for name in order if name in there]


def tighter(found: Iterable[str]) -> list[str]:
    """The attacks that are not the paper's."""
    return sorted(set(found) - {*DISTANCES, EXACT_IN_BOX})


def partitions_in(found: Iterable[str]) -> list[str]:
    """The distinct partitions: classes, gender, race."""
    return ordered(found, list(PARTITIONS))
