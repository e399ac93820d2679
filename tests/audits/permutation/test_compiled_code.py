"""Compiled code gives the same bytes whether it was just compiled or read back from disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import hashlib
import numpy as np
from pipeline.audits.permutation import kernels

rng, digest = np.random.default_rng(3), hashlib.sha256()
for n, sizes in ((203, [90, 113]), (301, [100, 101, 100])):
    groups, sizes = len(sizes), np.array(sizes)
    label, weight = rng.integers(0, 2, n).astype(np.uint8), 3 * rng.random(n)
    tie_end = np.append(rng.random(n - 1) < 0.6, True)
    x, y = rng.normal(size=(n, 5)), rng.normal(size=(n, 5)) / rng.random((n, 5))
    moments, sums = np.zeros((9, 3, 2 * groups)), np.zeros((9, groups, 6))
    kernels.permuted_ranks(5, 0, sizes, label, tie_end, moments)
    kernels.permuted_sums(5, 0, sizes, rng.normal(size=(6, n)) * 10.0 ** rng.integers(-6, 6, (6, 1)), sums)
    cluster, held = rng.integers(0, n // 2, n), np.zeros((n // 2, 2))
    np.add.at(held, (cluster, label.astype(int)), weight)
    of_clusters = np.array([n // 2 // groups] * (groups - 1) + [n // 2 - n // 2 // groups * (groups - 1)])
    auc, variance = np.empty((9, groups)), np.empty((9, groups))
    kernels.permuted_clusters(5, 0, of_clusters, cluster, label, weight, tie_end, held, auc, variance)
    products, pooled = np.zeros((9, 2, 5)), np.zeros((9, 3, 5))
    kernels.permuted_products(5, 0, x, y, products)
    kernels.pooled_products(5, 0, x[: n // 2 * 2], pooled)
    found = [moments, sums, auc, variance, products, pooled]
    if groups == 2:
        codes, many = np.empty((9, n), np.uint8), np.zeros((9, 2, 6, 16))
        kernels.permuted_codes(5, 0, sizes, codes)
        kernels.ranked_sums(codes, (rng.random((n, 16)) < 0.4).astype(float), many)
        found += [codes, many]
    for values in found:
        digest.update(np.ascontiguousarray(values).tobytes())
entries = [f for module in (kernels,) for f in vars(module).values() if hasattr(f, "stats")]
print(digest.hexdigest(), sum(sum(f.stats.cache_misses.values()) for f in entries))
"""


def test_what_is_read_from_disk_gives_the_bytes_of_what_was_just_compiled(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    (first, compiled), (second, compiled_again) = (run.stdout.split() for run in runs)
    assert (int(compiled) > 0, int(compiled_again)) == (True, 0)
    assert first == second
