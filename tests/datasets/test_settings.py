"""What a data set's settings may be, each bad one named by its key; those of what is drawn are the papers'."""

from typing import Any

import pytest

from tests.datasets.builders import configured

SHARES = (0.0, 1.0, -0.5, 80.0)
SIZES = (0, -1)
BAD: dict[str, dict[str, tuple[Any, ...]]] = {
    "adult": {"train_fraction": SHARES, "rows": ("some",)},
    "compas": {"train_fraction": SHARES, "rows": ("some",)},
    "law": {"train_fraction": SHARES},
    "ssl": {"train_fraction": SHARES, "threshold": (0, 501)},
    "digits": {"train_fraction": SHARES, "interpolation": ("cubic",)},
    "utkface": {"train_fraction": SHARES},
    "adience": {"train_fraction": SHARES, "split": ("fold",)},
    "cifar10": {"image_size": SIZES, "train_points": SIZES, "test_points": SIZES, "std": ([0.5, 0.0, 0.5], [0.5] * 2)},
    "cifar100": {"rows": ("medium",)},
    "hiring": {"train": SIZES, "test": SIZES},
    "arrests": {"n": SIZES},
    # Two points are fixed; the correlation of five features is at least -1/4.
    "gaussian": {"n": (2,), "dimension": SIZES, "correlation": (1.1, -0.26)},
    "identical": {"n": SIZES, "shared": SIZES, "extra": (-1,), "delta": (float("nan"),)},
    "simulated": {
        "n": SIZES, "minority_probability": (1.5,), "sigma": (-0.1,), "label_noise": (-0.1,), "minority_mean": ([1.0],),
        "labels": ("printed",),
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [(name, key, value) for name, keys in BAD.items() for key, values in keys.items() for value in values],
)
def test_a_bad_setting_is_named(name: str, key: str, value: Any) -> None:
    configured(name)
    with pytest.raises(ValueError, match=rf"dataset\.(\w+, )*{key}\b.*found"):
        configured(name, **{key: value})


PUBLISHED: dict[str, dict[str, Any]] = {
    "hiring": {"train": 10_000, "test": 10_000},
    "arrests": {"n": 10_000},
    "gaussian": {"n": 500},
    "identical": {"n": 10_000},
    "simulated": {
        "n": 400, "minority_probability": 0.1, "sigma": 0.25, "label_noise": 0.01, "majority_mean": [-1.5, 0.0],
        "minority_mean": [1.5, 0.0], "majority_weights": [-0.2, -0.01], "minority_weights": [0.2, -0.01],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_shipped_settings_of_what_is_drawn_are_the_papers(name: str) -> None:
    config = configured(name)
    assert {key: getattr(config, key) for key in PUBLISHED[name]} == PUBLISHED[name]
