"""Printed names and plot styles of data sets, groups, features, methods, networks, maps, tests, metrics and distances.

All studies share these lists. Their order is the order of the artefacts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from fairness_audits.messages import enumerated
from fairness_audits.results.formats import MINUS
from fairness_audits.results.style import MethodStyle, method_style, ordered

ADULT, COMPAS, SIMULATED = "adult", "compas", "simulated"
HIRING, SSL, LAW, ARRESTS, IDENTICAL, GAUSSIAN = "hiring", "ssl", "law", "arrests", "identical", "gaussian"
DIGITS, CIFAR10, CIFAR100, SUPER = "digits", "cifar10", "cifar100", "cifar100_super"
UTKFACE, ADIENCE = "utkface", "adience"

Said = TypeVar("Said")


def plainly(name: str) -> str:
    """Replace underscores: ``aquatic_mammals`` -> ``aquatic mammals``."""
    return name.replace("_", " ")


class Known(dict[str, Said]):
    """Labels or styles by name. ``other`` makes the entries of unknown names."""

    def __init__(self, known: Mapping[str, Said], other: Callable[[str], Said]) -> None:
        super().__init__(known)
        self.other = other

    def __missing__(self, name: str) -> Said:
        return self.other(name)


DATASETS = {
    ADULT: "Adult",
    "adult_all": "Adult",
    COMPAS: "COMPAS",
    "compas_all": "COMPAS",
    SIMULATED: "Simulated",
    HIRING: "Hiring",
    SSL: "Strategic Subject List",
    LAW: "Law school",
    ARRESTS: "Arrests",
    IDENTICAL: "Identical distributions",
    GAUSSIAN: "Normal distribution",
    CIFAR10: "CIFAR-10",
    CIFAR100: "CIFAR-100",
    SUPER: "CIFAR-100 superclasses",
    UTKFACE: "UTKFace",
    ADIENCE: "Adience",
    DIGITS: "Digits",
    "none": "simulations",
}
PUBLISHED_IMAGES = (CIFAR10, CIFAR100, SUPER, UTKFACE, ADIENCE)
"""Image data sets of the paper. The digits are our addition."""
IMAGES = (*PUBLISHED_IMAGES, DIGITS)
OF_THINGS = (CIFAR10, DIGITS)
"""Data sets whose pictures show no person. Pictures of people are neither printed nor stored."""

NO_METHOD = "none"
"""Method name of audits that draw their own populations and have no model."""
METHODS = Known({
    "given": "given rule",
    "given_proxy": "given rule, a proxy",
    "parity_constrained": "refitted (Zafar et al.)",
    "logistic": "logistic regression",
    "linear_regression": "linear regression",
    "svm": "RBF-SVM",
}, lambda name: method_style(name).label)  # fmt: skip
"""Names of the methods that are not in :data:`fairness_audits.results.style.METHODS`."""
FOR_THE_PAPER = "logistic"
"""Method of the paper on permutation tests: logistic regression."""

WGAN, EXACT, STOCHASTIC, COUNTERFACTUAL, ENTROPIC = "wgan", "exact", "stochastic", "counterfactual", "entropic"
MAPS = Known({
    EXACT: MethodStyle("exact transport", "#D55E00", "s", (0, (5, 1.5))),
    WGAN: MethodStyle("WGAN", "#0072B2", "o", "-"),
    STOCHASTIC: MethodStyle("stochastic (Seguy et al.)", "#00875F", "^", (0, (5, 1.5, 1, 1.5))),
    # Our addition. The paper has the other maps.
    ENTROPIC: MethodStyle("entropic, debiased", "#8C5A2B", "X", (0, (3, 1, 1, 1, 1, 1))),
    COUNTERFACTUAL: MethodStyle("causal counterfactual", "#B5478F", "D", (0, (1, 1.2))),
}, lambda name: replace(method_style(name), label=plainly(name)))  # fmt: skip
EVERYONE, NEGATIVES, POSITIVES = "everyone", "negatives", "positives"
CONDITIONS = {EVERYONE: "", NEGATIVES: "ground-truth negatives", POSITIVES: "ground-truth positives"}
"""True label to which both groups are restricted."""
POSITIVE, NEGATIVE = "positive", "negative"
FLIPSETS = {POSITIVE: "F+", NEGATIVE: f"F{MINUS}"}
FLIPSETS_DRAWN = {POSITIVE: "$F^+$", NEGATIVE: "$F^-$"}
FORWARD, REVERSE = "forward", "reverse"

GROUPS = {
    "Female": "women",
    "Male": "men",
    "BLK": "black subjects",
    "WHI": "white subjects",
    "Black": "black applicants",
    "White": "white applicants",
    "non-White": "non-white people",
    "African-American": "African-American people",
    "Caucasian": "Caucasian people",
}
GROUPS_OF_A_DATASET = {(ADULT, "White"): "white people"}
DECISIONS = {
    HIRING: ("hired", "not hired"),
    SSL: ("high risk", "low risk"),
    ARRESTS: ("high risk", "low risk"),
    LAW: ("predicted above the median", "predicted below"),
    ADULT: ("income above 50,000", "below"),
    COMPAS: ("predicted to reoffend", "predicted not to"),
}
"""Names of the favourable and the unfavourable (or high and low) decision, to follow the name of a group."""
FEATURES = {
    SSL: {
        "age": "age at latest arrest",
        "shooting_victim": "victim of shooting",
        "battery_victim": "victim of battery or assault",
        "trend": "trend in activity",
        "weapon_arrests": "unlawful use of weapon",
    },
    LAW: {"UGPA": "GPA", "sex=Female": "female", "sex=Male": "male"},
}
"""Printed names of features, if the paper's names differ from those in the data."""

NULLS = {"uncorrelated": "Uncorrelated", "independent": "Independence"}
"""The two null hypotheses of Table 1 in the paper on permutation tests."""
FAIRTEST, UNSTUDENTIZED, STUDENTIZED, SMOOTHED = "fairtest", "unstudentized", "studentized", "studentized_smoothed"
LIFT, BOOTSTRAP = "lift", "bootstrap"
TESTS = Known({
    FAIRTEST: MethodStyle("FairTest", "#000000", "X", "-"),
    UNSTUDENTIZED: MethodStyle("unstudentised", "#555555", "v", (0, (1, 1.2))),
    STUDENTIZED: MethodStyle("studentised", "#D55E00", "s", (0, (5, 1.5))),
    SMOOTHED: MethodStyle("studentised, smoothed", "#D98E04", "P", (0, (5, 1.5, 1, 1.5, 1, 1.5))),
    LIFT: MethodStyle("LiFT's shortcut", "#B5478F", "D", (0, (5, 1.5, 1, 1.5))),
    BOOTSTRAP: MethodStyle("bootstrap", "#00875F", "^", (0, (3, 1, 1, 1, 1, 1))),
    EXACT: MethodStyle("within outcome, exact", "#0072B2", "o", "-"),
}, lambda name: MethodStyle(plainly(name), "#000000", "x", "-"))  # fmt: skip
METRICS = Known({
    "tpr": "recall (TPR)",
    "fpr": "FPR",
    "fnr": "FNR",
    "tnr": "TNR",
    "precision": "precision",
    "npv": "NPV",
    "accuracy": "accuracy",
    "selection_rate": "selection rate",
    "auc": "AUC",
    "mean_score": "mean score",
    "mean_error": "mean error",
    "log_loss": "log loss",
}, plainly)  # fmt: skip
ATTRIBUTES = Known({"sex": "gender", "race": "race"}, plainly)

DEEPFOOL, CARLINI_WAGNER, SMOOTHING = "deepfool", "carlini_wagner", "smoothing"
FMN = "fmn"
"""Our additional upper bound: FMN started from the image of DeepFool, the tightest of the attacks."""
DISTANCES = {
    EXACT: MethodStyle("exact", "#222222", "o", "-"),
    DEEPFOOL: MethodStyle("DeepFool", "#0072B2", "s", (0, (5, 1.5))),
    CARLINI_WAGNER: MethodStyle("Carlini-Wagner", "#D55E00", "^", (0, (5, 1.5, 1, 1.5))),
    FMN: MethodStyle("FMN", "#B5478F", "v", "-"),
    SMOOTHING: MethodStyle("randomized smoothing", "#00875F", "D", (0, (1, 1.2))),
}
"""Distances to the decision boundary: exact, by attacks, and certified."""
ESTIMATES = (DEEPFOOL, CARLINI_WAGNER, FMN, SMOOTHING)
"""Distances that are defined for any network."""
UNITS = "L2, pixels in [0, 1]"
"""Unit of all distances between images."""

LOGISTIC = "logistic_regression"
CONVOLUTIONAL = ("alexnet", "vgg19", "resnet50", "densenet121", "squeezenet1_0")
"""The five torchvision networks, trained on every data set, with 755 comparisons in total."""
OWN = {
    CIFAR10: "deep_cnn",
    CIFAR100: "deep_cnn_cifar100",
    SUPER: "deep_cnn_cifar100",
    UTKFACE: "utk_classifier",
    ADIENCE: "adience_classifier",
    DIGITS: "utk_classifier",
}
"""The sixth network of each data set in Table 1, inferred from the number of comparisons."""
NETWORKS = Known({
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
}, lambda name: method_style(name).label)  # fmt: skip
GENDER, RACE = "gender", "race"
PARTITIONS = Known({"superclass": "class", "digit": "class", "age": "class (age)"}, plainly)
FIRST, MIDDLE, LAST = "first", "middle", "last"
"""Names of checkpoints."""
PAPER, CORRECT = "paper", "correct"
"""Denominators of I_P: all members of P, as in the paper, or the correctly classified ones, as in the authors' code."""
DENOMINATORS = {PAPER: "all members", CORRECT: "correct members"}


maps_in, tests_in, metrics_in, attributes_in = (partial(ordered, order=of) for of in (MAPS, TESTS, METRICS, ATTRIBUTES))
datasets_in, networks_in, distances_in = (partial(ordered, order=of) for of in (IMAGES, NETWORKS, DISTANCES))


def scales(names: str) -> str:
    """Return the printed names of scales: ``gpu and paper`` -> ``GPU and paper scales``."""
    return f"{names.replace('gpu', 'GPU')} scale{'s' * (' and ' in names)}"


def dataset_label(name: str) -> str:
    """Return the printed name of a data set: ``ssl`` -> ``Strategic Subject List``."""
    return DATASETS.get(name, plainly(name).capitalize())


def datasets_named(names: Iterable[str]) -> str:
    """Enumerate the distinct data sets: ``Adult and COMPAS``."""
    return enumerated(dict.fromkeys(map(dataset_label, names)))


def group_label(level: str, dataset: str = "") -> str:
    """Return the printed name of a group: ``Female`` -> ``women``."""
    return GROUPS_OF_A_DATASET.get((dataset, level), GROUPS.get(level, level))


def flipset_label(dataset: str, flipset: str, source: str) -> str:
    """Describe the members of a flipset: ``women hired, counterparts not hired``."""
    favoured, other = DECISIONS.get(dataset, ("decided for", "decided against"))
    if flipset == NEGATIVE:
        favoured, other = other, favoured
    return f"{group_label(source, dataset)} {favoured}, counterparts {other}"


def feature_label(name: str, dataset: str) -> str:
    """Return the printed name of a feature: ``narcotic_arrests`` -> ``narcotic arrests``."""
    return FEATURES.get(dataset, {}).get(name, plainly(name))


def feature_named(label: str, names: Sequence[str], dataset: str) -> str:
    """Return the feature with the printed name ``label``."""
    return {feature_label(name, dataset): name for name in names}[label]
