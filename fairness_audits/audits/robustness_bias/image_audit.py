"""The audit of images: their distances by the attacks of the options, and what is known of images and network."""

import hashlib
from typing import Any

import numpy as np
import torch

from fairness_audits.audits.robustness_bias.attacking import (
    DistanceCache,
    chosen_attacks,
    distances,
    identity_of,
)
from fairness_audits.audits.robustness_bias.checking import Check, checked_attacks
from fairness_audits.audits.robustness_bias.distances import SMOOTHING, exact_arithmetic
from fairness_audits.audits.robustness_bias.measured import Examined, Measured, Unit, measured
from fairness_audits.audits.robustness_bias.points import check_sizes
from fairness_audits.audits.robustness_bias.settings import Rows, Settings, refuse
from fairness_audits.audits.robustness_bias.subjects import Pictures, classified, normalised, read_points
from fairness_audits.inputs.model import Model
from fairness_audits.inputs.probe import model_facts
from fairness_audits.inputs.table import Source, check_classes
from fairness_audits.messages import SHOWN, listed
from fairness_audits.options import Inputs
from fairness_audits.results.formats import plural
from fairness_audits.values import Array
from fairness_audits.version import __version__

IMAGE = Unit("image", "L2", "pixels in [0, 1]")


def examined(settings: Settings, source: Source, model: Model, array: Array | None) -> Examined:
    """Find the distances of images, in an ``array`` or in the folder of the settings."""
    refuse(settings, (Rows, Inputs), "rows of a table")
    wanted = chosen_attacks(settings)
    points = read_points(source, settings, array)
    assert points.images is not None
    shape = points.images.shape
    check_sizes(points, settings.min_group)
    with_gradient = bool({one.name for one in wanted} - {SMOOTHING})
    raw = normalised(model, settings, shape, with_gradient)
    normalisation = {"mean": list(raw.mean), "std": list(raw.std)}
    # The network's part of the cache key. Smoothing also depends on the seed, through its noise.
    made_of = {
        **{"model": settings.checkpoint and identity_of(model, settings.checkpoint_key), **normalisation},
        **{"output kind": settings.output_kind, "shape": list(shape)},
        **{"program": __version__, "torch": torch.__version__, "numpy": np.__version__},
    }
    made_by = {
        one.name: {**one.settings, **({"seed": settings.seed} if one.name == SMOOTHING else {})} for one in wanted
    }
    with exact_arithmetic(torch.get_num_threads()):
        subjects = classified(points, raw, settings.output_kind, with_gradient)
        label = subjects.points.label
        check_sizes(subjects.points, settings.min_group)
        labels = np.zeros(0, dtype=np.int64) if label is None else label
        check_classes(labels, subjects.classes, settings.classes, settings.label, source.name)
        cache = DistanceCache(settings.checkpoint, made_of, made_by)
        try:
            found = [distances(one, subjects, cache, settings) for one in wanted]
            check = checked_attacks(subjects, settings) if any(one.bound == "upper" for one in wanted) else None
        except KeyboardInterrupt:
            cache.interrupted()
            raise
    attacks = [
        measured(one, distance, check, subjects, settings, IMAGE) for one, distance in zip(wanted, found, strict=True)
    ]
    at = " x ".join(map(str, shape))
    return Examined(
        subjects=subjects,
        attacks=attacks,
        check=check,
        unit=IMAGE,
        place=str(settings.images),
        shape=f"{at} (channels x height x width)",
        data={
            "pixels_sha256": hashlib.sha256(b"".join(subjects.digests)).hexdigest(),
            "sha256": source.sha256,
            "file": points.column,
            "shape": list(shape),
            "unreadable": dict(sorted(subjects.unreadable.items())),
        },
        model={
            **{**model_facts(model, subjects.classifier), **normalisation},
            **{"classes": subjects.classes, "device": str(raw.device)},
        },
        conditions=conditions(subjects, attacks, check),
        libraries=("numpy", "torch"),
        classes=settings.classes,
        settings=settings,
    )


def conditions(subjects: Pictures, attacks: list[Measured], check: Check | None) -> dict[str, Any]:
    """Return the conditions of the caveats that only images have."""
    upper = [one.chosen.name for one in attacks if one.chosen.bound == "upper"]
    certified = [one.chosen for one in attacks if one.chosen.bound == "lower"]
    lost = np.zeros(0) if check is None else check.lost
    turned = len(subjects.source.turned.intersection(subjects.points.rows.tolist()))
    unreadable = [f"{name} ({why})" for name, why in sorted(subjects.unreadable.items())]
    return {
        "upper_bounds": upper
        and {
            "attacks": " and ".join(upper),
            "more": ""
            if len(upper) > 1
            else " A second --attack, such as fmn or carlini_wagner, may find smaller ones.",
        },
        "certified_radii": [{"attack": one.name, **one.settings} for one in certified],
        "closer_is_not_worse": {"units": IMAGE.many, "why": "the contrast of their images"},
        "failed_attacks": [
            {"attack": one.chosen.name, **failures}
            for one in attacks
            if (failures := subjects.failures(one.bias.failed))
        ],
        "lost_gradients": bool(lost.any())
        and {"count": int((lost > 0).sum()), "none": int((lost == 1).sum()), "where": subjects.mostly(lost > 0)},
        "unreadable_images": unreadable
        and {
            "images": plural(len(unreadable), "unreadable image"),
            "reasons": listed(unreadable, SHOWN),
        },
        "turned_images": turned and {"count": turned},
    }
