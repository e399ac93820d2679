"""What a dataset's settings may be, each bad one named by its key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

FRACTION = r"dataset\.train_fraction must lie between 0 and 1, found "
BAD: list[tuple[str, dict[str, Any], str]] = [
    *(("adult", {"train_fraction": value}, FRACTION) for value in (0.0, 1.0, -0.5, 80.0)),
    *((name, {"train_fraction": 1}, f"{FRACTION}1") for name in ("compas", "law", "ssl", "digits", "utkface")),
    ("adience", {"train_fraction": 0}, f"{FRACTION}0"),
    *((name, {"rows": "some"}, "rows must be one of complete, all, found 'some'") for name in ("adult", "compas_all")),
    ("ssl", {"threshold": 0}, r"dataset\.threshold must be a score of 1 to 500, found 0"),
    ("ssl", {"threshold": 501}, r"dataset\.threshold must be a score of 1 to 500, found 501"),
    ("digits", {"interpolation": "cubic"}, r"dataset\.interpolation must be one of nearest, bilinear, found 'cubic'"),
    ("adience", {"split": "fold"}, r"dataset\.split must be one of folds, random, found 'fold'"),
    ("cifar100", {"rows": "medium"}, r"dataset\.rows must be one of fine, coarse, found 'medium'"),
    ("cifar10", {"image_size": 0}, r"dataset\.image_size must be at least 1, found 0"),
    ("cifar10", {"test_points": 0}, r"dataset\.test_points must be at least 1, found 0"),
    ("cifar10", {"mean": [0.5] * 2}, "need one number a channel each, found 2 and 3"),
    ("cifar10", {"std": [0.5, 0.0, 0.5]}, r"dataset\.std must be above 0"),
    ("hiring", {"train": 0}, r"dataset\.train must be at least 1, found 0"),
    ("hiring", {"test": -1}, r"dataset\.test must be at least 1, found -1"),
    ("arrests", {"n": 0}, r"dataset\.n must be at least 1"),
    ("gaussian", {"n": 2}, r"dataset\.n must exceed the 2 fixed points, found 2"),
    ("gaussian", {"dimension": 0}, r"dataset\.dimension must be at least 1"),
    ("gaussian", {"dimension": 3, "correlation": 1.1}, r"of 3 features must lie in \[-0\.5, 1\], found 1\.1"),
    ("gaussian", {"dimension": 3, "correlation": -0.6}, r"of 3 features must lie in \[-0\.5, 1\], found -0\.6"),
    ("identical", {"shared": 0}, r"dataset\.shared must be at least 1"),
    ("identical", {"extra": -1}, r"dataset\.extra must be at least 0, found -1"),
    ("identical", {"delta": float("nan")}, r"dataset\.delta must be finite"),
    ("simulated", {"n": 0}, r"dataset\.n must be at least 1"),
    ("simulated", {"minority_probability": 1.5}, r"dataset\.minority_probability must lie in \[0, 1\]"),
    ("simulated", {"sigma": -0.1}, r"dataset\.sigma is a standard deviation"),
    ("simulated", {"label_noise": -0.1}, r"dataset\.label_noise is a standard deviation"),
    ("simulated", {"minority_mean": [1.0]}, "equally long vectors, found lengths .*'minority_mean': 1"),
    ("simulated", {"labels": "printed"}, r"dataset\.labels must be one of stated, centred, found 'printed'"),
]


@pytest.mark.parametrize(("name", "changes", "message"), BAD)
def test_a_bad_setting_is_named(
    name: str, changes: dict[str, Any], message: str, configured: Callable[..., Any]
) -> None:
    configured(name)
    with pytest.raises(ValueError, match=message):
        configured(name, **changes)


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
def test_the_shipped_settings_of_what_is_drawn_are_the_papers(name: str, configured: Callable[..., Any]) -> None:
    config = configured(name)
    assert {key: getattr(config, key) for key in PUBLISHED[name]} == PUBLISHED[name]
