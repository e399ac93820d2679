"""Random generators derived from names, never from a clock or global state."""

import hashlib
from collections.abc import Iterable

import numpy as np


def generators(*what: str, repetitions: int, first: int = 0) -> tuple[np.random.Generator, ...]:
    """Return one generator per repetition, derived from the names in ``what``, such as ``"train", "adult", "sensr"``.

    The stream of repetition r does not depend on the number of repetitions, nor on the order in which jobs run. The
    repetitions are ``first``, ``first`` + 1, and so on.
    """
    digest = hashlib.sha256("\0".join(what).encode()).digest()
    words = np.frombuffer(digest, dtype=np.uint32)
    return tuple(
        np.random.default_rng(np.random.SeedSequence([*words.tolist(), repetition]))
        for repetition in range(first, first + repetitions)
    )


def fingerprint(described: object, values: Iterable[np.ndarray]) -> np.ndarray:
    """Return the SHA-256, as bytes (32,), of the repr of ``described`` and the contents of ``values``.

    It identifies a training run, so that a run resumes only from its own checkpoint.
    """
    digest = hashlib.sha256(repr(described).encode())
    for array in values:
        digest.update(np.ascontiguousarray(array).data)
    return np.frombuffer(digest.digest(), dtype=np.uint8)
