"""Audit images: compute their distances with the chosen attacks, and describe the images and the network."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from fairness_audits.arguments import OutputKind
from fairness_audits.audits.robustness_bias.attacking import (
    DistanceCache,
    attacked,
    identity_of,
)
from fairness_audits.audits.robustness_bias.checking import checked_attacks
from fairness_audits.audits.robustness_bias.distances import SMOOTHING, exact_arithmetic
from fairness_audits.audits.robustness_bias.measured import Chosen, Examined
from fairness_audits.audits.robustness_bias.points import Points, check_sizes, compared, partition_of
from fairness_audits.audits.robustness_bias.subjects import classified
from fairness_audits.inputs.images import in_array, in_folder, normalised
from fairness_audits.inputs.model import Model
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.probe import model_facts
from fairness_audits.inputs.table import Source, check_classes, class_numbers
from fairness_audits.messages import check_columns
from fairness_audits.values import Array
from fairness_audits.version import __version__


def points_of(
    source: Source,
    array: Array | None,
    *,
    images: Path | str,
    file: str | None,
    resize: Sequence[int] | None,
    channels: int | None,
    label: str | None,
    group: Sequence[str],
    classes: Sequence[str] | None,
) -> tuple[Points, str | None]:
    """Return the readable images in an ``array`` or in the folder ``images``, and the column with their names."""
    if label is not None:
        check_columns(source.table, [label], "label", source.name)
    column = None
    if array is None:
        column, pictures = in_folder(source, Path(images), file, resize, channels)
    else:
        pictures = in_array(source, str(images), array, resize)
    truth = None if label is None else class_numbers(source, label, classes)
    partitions = tuple(partition_of(source.table[name]) for name in compared(source, group, label, column))
    everyone = Points(pictures, np.arange(len(source.table)), truth, partitions)
    return everyone.only(~np.isin(everyone.rows, list(pictures.unreadable))), column


def examined(
    source: Source,
    model: Model,
    some: Points,
    wanted: Sequence[Chosen],
    *,
    images: Path | str,
    file: str | None,
    label: str | None,
    classes: Sequence[str] | None,
    min_group: int,
    mean: float | Sequence[float],
    std: float | Sequence[float],
    output_kind: OutputKind,
    computing: Computing,
    checkpoint: Path | None,
    checkpoint_key: str | None,
    seed: int,
) -> Examined:
    """Find the distances of ``some`` images by the ``wanted`` attacks; the column ``file`` has their names."""
    pictures = some.images
    assert pictures is not None
    shape = pictures.shape
    with_gradient = bool({one.name for one in wanted} - {SMOOTHING})
    raw = normalised(model, shape, mean, std, computing.device, with_gradient)
    normalisation = {"mean": list(raw.mean), "std": list(raw.std)}
    # The network's part of the cache key. Smoothing also depends on the seed, through its noise.
    made_of = {
        **{"model": checkpoint and identity_of(model, checkpoint_key), **normalisation},
        **{"output kind": output_kind, "shape": list(shape)},
        **{"program": __version__, "torch": torch.__version__, "numpy": np.__version__},
    }
    made_by = {one.name: {**one.settings, **({"seed": seed} if one.name == SMOOTHING else {})} for one in wanted}
    with exact_arithmetic(torch.get_num_threads()):
        subjects = classified(some, raw, output_kind, with_gradient)
        truth = subjects.points.label
        check_sizes(subjects.points, min_group)
        labels = np.zeros(0, dtype=np.int64) if truth is None else truth
        check_classes(labels, subjects.classes, classes, label, source.name)
        cache = DistanceCache(checkpoint, made_of, made_by)
        try:
            found = [attacked(one, subjects, cache, seed) for one in wanted]
            check = checked_attacks(subjects, seed) if any(one.bound == "upper" for one in wanted) else None
        except KeyboardInterrupt:
            cache.interrupted()
            raise
    lost = np.zeros(0) if check is None else check.lost
    counts = {"some": int((lost > 0).sum()), "all": int((lost == 1).sum())}
    return Examined(
        subjects=subjects,
        distances=list(zip(wanted, found, strict=True)),
        check=check,
        place=str(images),
        data={
            "pixels_sha256": hashlib.sha256(b"".join(subjects.digests)).hexdigest(),
            "sha256": source.sha256,
            "file": file,
            "shape": list(shape),
            "unreadable": dict(sorted(subjects.unreadable.items())),
        },
        model={
            **{**model_facts(model, subjects.classifier), **normalisation},
            **{"classes": subjects.classes, "device": str(raw.device)},
        },
        said={
            "notes": source.notes,
            "lost": {**counts, "where": subjects.mostly(lost > 0)} if lost.any() else None,
            "unreadable": [f"{name} ({why})" for name, why in sorted(subjects.unreadable.items())],
            "turned": len(pictures.turned.intersection(subjects.points.rows.tolist())),
        },
        libraries=("numpy", "torch"),
        classes=classes,
    )
