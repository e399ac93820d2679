"""The audit of images: their distances by the attacks of the options, and what is known of images and network."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from fairness_audits.audits.robustness_bias.attacking import (
    DistanceCache,
    attacked,
    chosen_attacks,
    identity_of,
)
from fairness_audits.audits.robustness_bias.checking import Check, checked_attacks
from fairness_audits.audits.robustness_bias.distances import SMOOTHING, exact_arithmetic
from fairness_audits.audits.robustness_bias.measured import Chosen, Examined, Unit
from fairness_audits.audits.robustness_bias.points import Points, check_sizes, compared, partition_of, sampled
from fairness_audits.audits.robustness_bias.settings import Rows, Settings, refuse
from fairness_audits.audits.robustness_bias.subjects import Pictures, classified
from fairness_audits.inputs.images import in_array, in_folder, normalised
from fairness_audits.inputs.model import Model
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.probe import model_facts
from fairness_audits.inputs.table import Source, check_classes, class_numbers
from fairness_audits.messages import SHOWN, check_columns, listed
from fairness_audits.options import Inputs
from fairness_audits.results.formats import plural
from fairness_audits.values import Array
from fairness_audits.version import __version__

DEFAULT = "deepfool"
IMAGE = Unit("image", "L2", "pixels in [0, 1]")


def examined(settings: Settings, source: Source, model: Model, array: Array | None) -> Examined:
    """Find the distances of images, in an ``array`` or in the folder of the settings."""
    refuse(settings, (Rows, Inputs), "rows of a table")
    wanted = chosen_attacks(settings.attack or (DEFAULT,), settings.attack_setting)
    if settings.label is not None:
        check_columns(source.table, [settings.label], "--label", source.name)
    column = None
    if array is None:
        column, images = in_folder(source, settings.images, settings.file, settings.resize, settings.channels)
    else:
        images = in_array(source, str(settings.images), array, settings.resize)
    label = None if settings.label is None else class_numbers(source, settings.label, settings.classes)
    names = compared(source, settings.group, settings.label, column)
    partitions = tuple(partition_of(source.table[name]) for name in names)
    everyone = Points(images, np.arange(len(source.table)), label, partitions)
    everyone = everyone.only(~np.isin(everyone.rows, list(images.unreadable)))
    points, shape = sampled(everyone, settings.points, settings.seed), images.shape
    check_sizes(points, settings.min_group)
    with_gradient = bool({one.name for one in wanted} - {SMOOTHING})
    device = Computing(settings.device, settings.dtype).device
    raw = normalised(model, shape, settings.mean, settings.std, device, with_gradient)
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
            found = [attacked(one, subjects, cache, settings.seed) for one in wanted]
            check = checked_attacks(subjects, settings.seed) if any(one.bound == "upper" for one in wanted) else None
        except KeyboardInterrupt:
            cache.interrupted()
            raise
    distances = list(zip(wanted, found, strict=True))
    at = " x ".join(map(str, shape))
    return Examined(
        subjects=subjects,
        distances=distances,
        check=check,
        unit=IMAGE,
        place=str(settings.images),
        shape=f"{at} (channels x height x width)",
        data={
            "pixels_sha256": hashlib.sha256(b"".join(subjects.digests)).hexdigest(),
            "sha256": source.sha256,
            "file": column,
            "shape": list(shape),
            "unreadable": dict(sorted(subjects.unreadable.items())),
        },
        model={
            **{**model_facts(model, subjects.classifier), **normalisation},
            **{"classes": subjects.classes, "device": str(raw.device)},
        },
        conditions=conditions(subjects, distances, check),
        libraries=("numpy", "torch"),
        classes=settings.classes,
        settings=settings,
    )


def conditions(subjects: Pictures, distances: Sequence[tuple[Chosen, Array]], check: Check | None) -> dict[str, Any]:
    """Return the conditions of the caveats that only images have."""
    upper = [one.name for one, _ in distances if one.bound == "upper"]
    certified = [one for one, _ in distances if one.bound == "lower"]
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
            {"attack": one.name, **failures} for one, distance in distances if (failures := subjects.failures(distance))
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
