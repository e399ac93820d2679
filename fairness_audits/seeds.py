"""Random generators derived from what a thing is, never from a clock or a global state."""

import hashlib
from collections.abc import Iterable

import numpy as np


def generators(*what: str, repetitions: int) -> tuple[np.random.Generator, ...]:
    """One generator for each repetition, derived from the names in ``what``: ``"train", "adult", "sensr"``, say.

    Repetition r's stream does not depend on how many repetitions there are, nor on the order in which jobs run.
    """
    digest = hashlib.sha256("\0".join(what).encode()).digest()
    words = np.frombuffer(digest, dtype=np.uint32)
    return tuple(
        np.random.default_rng(np.random.SeedSequence([*words.tolist(), repetition]))
        for repetition in range(repetitions)
    )


def fingerprint(described: object, values: Iterable[np.ndarray]) -> np.ndarray:
    """SHA-256, as bytes (32,), of what ``described`` reads as and of the contents of ``values``.

    It tells a training from any other, so that only its own kept state is gone on from.
    """
    digest = hashlib.sha256(repr(described).encode())
    for array in values:
        digest.update(np.ascontiguousarray(array).data)
    return np.frombuffer(digest.digest(), dtype=np.uint8)
