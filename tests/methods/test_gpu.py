"""Whatever changes with the device: what the GPU gives is what the processor gives.

`make test-gpu` runs these where CUDA is visible; elsewhere they are skipped, and that is said.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from fairness_audits.values import Array
from pipeline.audits.robustness_bias import run
from pipeline.methods import adverm, baseline
from tests.audits.robustness_bias.test_robustness_bias import CONFIG
from tests.methods.builders import population
from tests.methods.test_adverm import PENALTY
from tests.methods.test_sgd import SETTINGS, fit, stripes

torch = pytest.importorskip("torch")
Numbers = Mapping[str, Array]
ATTACKS = ("exact", "deepfool", "carlini_wagner", "fmn", "smoothing")
WITHOUT_A_GPU = "no GPU is visible to torch: nothing to compare with the processor"


def trained(model: str, precision: str = "float32") -> Numbers:
    """A training without dropout, which draws on the device: losses and last parameters."""
    found = fit(stripes(), model=model, epochs=2, learning_rate=0.01, precision=precision, checkpoints=("last",))
    return {"loss": found.history["loss"], **found.parameters}


def penalised() -> Numbers:
    """The same with the penalty on robustness bias, by its second derivative."""
    data = stripes()
    levels = {**data.levels, "group": ("near", "far")}
    data = replace(data, partitions={**data.partitions, "group": data.label}, levels=levels)
    settings = {**SETTINGS, **PENALTY, "model": "logistic_regression", "checkpoints": ("last",), "alpha": 1.0}
    found = adverm.fit(data, adverm.Config(**{**settings, "second_order": True}), [np.random.default_rng(0)])
    return {"penalty": found.history["penalty"], **found.parameters}


def distances() -> Numbers:
    """Every distance of one trained network, and the rows of its audit."""
    data = stripes()
    network = fit(data, model="logistic_regression", checkpoints=("last",))
    config = replace(CONFIG, attacks=ATTACKS, carlini_wagner_iterations=40, smoothing_samples=200)
    found = run(data, network, config, [np.random.default_rng(0)])
    kept = {name: values for name, values in found.arrays.items() if name.startswith(("distance_", "correct"))}
    return {**kept, "rows": found.rows["value"].to_numpy(float)}


def adam() -> Numbers:
    """Baseline's two networks."""
    config = baseline.Config(hidden_units=5, learning_rate=1e-3, batch_size=50, steps=40)
    return baseline.fit(population(400, 2), config, [np.random.default_rng(r) for r in range(2)]).parameters


COMPUTATIONS = {
    "training": (lambda: trained("logistic_regression"), 1e-4),
    "training of a deep network": (lambda: trained("resnet18"), 1e-2),
    "training in bfloat16": (lambda: trained("logistic_regression", "bfloat16"), 1e-2),
    "training with a penalty": (lambda: penalised(), 1e-4),
    "attacks, certificates and audit": (lambda: distances(), 1e-2),
    "Adam": (adam, 1e-4),
}
"""Each with the largest difference, relative to the largest number of an array."""


def assert_close(one: Numbers, other: Numbers, tolerance: float) -> None:
    """Every array within ``tolerance`` of its largest value, and missing in the same places."""
    assert one.keys() == other.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(np.isfinite(values), np.isfinite(other[name]), err_msg=name)
        scale = float(np.nanmax(np.abs(values))) or 1.0
        np.testing.assert_allclose(other[name], values, rtol=0, atol=tolerance * scale, err_msg=name)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason=WITHOUT_A_GPU)
@pytest.mark.parametrize("computation", COMPUTATIONS)
def test_a_gpu_gives_what_the_processor_gives(computation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, tolerance = COMPUTATIONS[computation]
    on_gpu = make()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert_close(make(), on_gpu, tolerance)
