"""Generators are derived from names: reproducible, distinct, and independent of the number of repetitions."""

import numpy as np

from pipeline.seeds import generators


def draws(*what: str, repetitions: int = 3) -> np.ndarray:
    return np.stack([rng.random(4) for rng in generators(*what, repetitions=repetitions)])


def test_the_same_names_give_the_same_streams_however_many_repetitions() -> None:
    np.testing.assert_array_equal(draws("train", "adult")[:2], draws("train", "adult", repetitions=2))


def test_different_names_and_repetitions_give_different_streams() -> None:
    streams = [*draws("train", "adult"), *draws("train", "compas"), *draws("audit", "adult"), *draws("trainadult")]
    assert len({stream.tobytes() for stream in streams}) == len(streams)
