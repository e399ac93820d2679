"""The rows and columns of a transport map: two groups of a data set, and the columns that move.

A column that is constant within each group (such as sex in a map between the sexes) is not transported: the counterpart
takes the target group's value. Any other protected attribute that a classifier reads keeps the person's value.
"""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from types import ModuleType
from typing import Annotated, Any, Literal, cast

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.validation import Checked, at_least, made
from fairness_audits.values import Array, Checkpoint, Dataset, Split, TransportMap

Direction = Literal["forward", "reverse"]


def map_module(kind: str) -> ModuleType:
    """Return the module whose ``images`` evaluates maps of this kind: a plug-in of the experiments or the library's."""
    home = "pipeline.transport" if find_spec(f"pipeline.transport.{kind}") else "fairness_audits.transport"
    return importlib.import_module(f"{home}.{kind}")


@dataclass(frozen=True)
class Between(Checked, of="transport"):
    """The keys that every ``conf/transport/*.yaml`` shares, besides those of its module.

    ``attribute``: the protected attribute. ``source``: name of the mapped group, None for the group coded 0; the other
    group is the target. ``given_label``: None, or the true label (0, 1) to which both groups are restricted, for
    equalized odds. ``split``: rows for the fit. ``points``: maximum number of rows of each group, the first in the
    random order of the split; None for all. ``both``: also fit the opposite direction.
    """

    attribute: str
    source: str | None
    given_label: Literal[0, 1] | None
    split: Split
    points: Annotated[int, at_least(2)] | None
    both: bool


def parted(section: Mapping[str, Any]) -> tuple[Between, dict[str, Any]]:
    """Split a resolved section into the shared keys and the module's own keys.

    Raises ValueError for a missing key.
    """
    keys = [field.name for field in fields(Between)]
    between = made(Between, {key: section[key] for key in keys if key in section}, f"transport {section.get('name')!r}")
    return between, {key: value for key, value in section.items() if key not in keys}


@dataclass(frozen=True)
class Groups:
    """The rows of two groups in each of T trials.

    ``source[t]`` (n_t, k) and ``target[t]`` (m_t, k) hold the k transported columns with the numbers ``columns``.
    """

    source: list[Array]
    target: list[Array]
    columns: Array


@dataclass(frozen=True)
class Mapped:
    """The n rows of one group in one trial and their counterparts, over all d columns.

    ``rows`` (n,) are row numbers of the dataset, ``label`` (n,) true labels, ``features`` and ``images`` (n, d).
    ``target`` (m, d) are the rows of the other group in the same split, ``target_rows`` (m,) their numbers.
    """

    rows: Array
    label: Array
    features: Array
    images: Array
    target: Array
    target_rows: Array


def levels(dataset: Dataset, attribute: str, source: str | None) -> tuple[int, int]:
    """Return the codes of the source group and of the target group.

    Raises InvalidInput for an attribute or a group that the data set does not have.
    """
    if attribute not in dataset.levels:
        problem = (
            f"expected transport.attribute among {sorted(dataset.levels)} of {dataset.name!r}, found {attribute!r}"
        )
        raise InvalidInput(problem, source=dataset.name, option="attribute")
    names = dataset.levels[attribute]
    if source is None:
        return 0, 1
    if source not in names:
        raise InvalidInput(
            f"expected transport.source among {', '.join(names)} ({attribute} of {dataset.name!r}), found {source!r}",
            source=dataset.name,
            option="source",
            column=attribute,
        )
    code = names.index(source)
    return code, 1 - code


def transported_columns(dataset: Dataset, attribute: str) -> Array:
    """Return the numbers of the columns that vary within at least one of the two groups."""
    group = dataset.protected[attribute]
    varies = [np.ptp(dataset.features[group == code], axis=0) > 0 for code in (0, 1)]
    return np.flatnonzero(varies[0] | varies[1])


def groups(dataset: Dataset, between: Between, trials: int) -> Groups:
    """Return the two groups' rows in the first ``trials`` splits, standardised as by :meth:`Dataset.batch`.

    Raises ValueError if a group has fewer than two rows.
    """
    codes = levels(dataset, between.attribute, between.source)
    features, rows = _split(dataset, between.split, trials)
    columns = transported_columns(dataset, between.attribute)
    picked = [
        [_members(dataset, rows[t], between.attribute, code, between.given_label)[: between.points] for code in codes]
        for t in range(trials)
    ]
    for t, members in enumerate(picked):
        for code, member in zip(codes, members, strict=True):
            if len(member) < 2:
                raise InvalidInput(
                    f"group {dataset.levels[between.attribute][code]!r} of {dataset.name!r} has {len(member)} rows in "
                    f"the {between.split} rows of repetition {t}, true label {between.given_label}: at least 2 needed",
                    source=dataset.name,
                    column=between.attribute,
                )
    source, target = ([features[t][members[side]][:, columns] for t, members in enumerate(picked)] for side in (0, 1))
    return Groups(source, target, columns)


def fitted(
    dataset: Dataset,
    between: Between,
    module: ModuleType,
    config: Any,
    rngs: Sequence[Any],
    name: str = "",
    **resumes: Checkpoint,
) -> TransportMap:
    """Fit the maps of ``module``, called ``name``, on len(rngs) trials.

    A module whose map needs more than the two groups' rows has ``fit_dataset(dataset, between, config, rngs)``. A
    module that gets both directions from one fit has ``fit_both(source, target, config, rngs, opposite)``. Otherwise
    the opposite directions are further trials of ``fit(source, target, config, rngs)``. ``resumes`` holds the
    ``resume`` argument of a ``fit`` that can continue after it was killed.
    """
    source, target = (dataset.levels[between.attribute][c] for c in levels(dataset, between.attribute, between.source))
    return replace(
        _maps(dataset, between, module, config, rngs, resumes),
        transport=name,
        dataset=dataset.name,
        origin=dataset.origin,
        attribute=between.attribute,
        source=source,
        target=target,
        given_label=between.given_label,
        points=between.points,
        features=tuple(dataset.feature_names[c] for c in transported_columns(dataset, between.attribute)),
    )


def _maps(
    dataset: Dataset,
    between: Between,
    module: ModuleType,
    config: Any,
    rngs: Sequence[Any],
    resumes: Mapping[str, Checkpoint],
) -> TransportMap:
    if hasattr(module, "fit_dataset"):
        return cast(TransportMap, module.fit_dataset(dataset, between, config, rngs))
    found = groups(dataset, between, len(rngs))
    if not between.both:
        return cast(TransportMap, module.fit(found.source, found.target, config, rngs, **resumes))
    trials = len(rngs)
    # Each direction has its own random numbers, derived from those of its trial.
    opposite = [rng.spawn(1)[0] for rng in rngs]
    if hasattr(module, "fit_both"):
        return cast(TransportMap, module.fit_both(found.source, found.target, config, rngs, opposite))
    both = ([*found.source, *found.target], [*found.target, *found.source], config, [*rngs, *opposite])
    maps = module.fit(*both, **resumes)
    return TransportMap(
        kind=maps.kind,
        parameters={name: array[:trials] for name, array in maps.parameters.items()},
        reverse={name: array[trials:] for name, array in maps.parameters.items()},
        history=_directions(maps.history, trials),
        facts=_directions(maps.facts, trials),
    )


def directions(maps: TransportMap) -> list[tuple[Direction, str, str]]:
    """Return each fitted direction with the names of the mapped group and of its target."""
    forward: list[tuple[Direction, str, str]] = [("forward", maps.source, maps.target)]
    return [*forward, ("reverse", maps.target, maps.source)] if maps.reverse else forward


def mapped(
    maps: TransportMap, dataset: Dataset, split: Split, trials: int, direction: Direction = "forward"
) -> list[Mapped]:
    """Return the rows of one group in each trial's ``split``, and their counterparts under that trial's map.

    ``direction`` "reverse" maps the target group back. Maps that are defined on the fitted rows only set
    ``FITTED_ROWS_ONLY`` and get these rows. Raises ValueError if the direction was not fitted, if a group has no rows
    in the split, and if the map is not defined on a row.
    """
    parameters = maps.parameters if direction == "forward" else maps.reverse
    if not parameters:
        problem = f"transport {maps.transport!r} was fitted in one direction"
        raise InvalidInput(problem, source=maps.transport, option="both", remedy="Set transport.both=true")
    if trials > maps.trials:
        problem = f"transport {maps.transport!r} has {maps.trials} trials, but {trials} are needed"
        raise InvalidInput(problem, source=maps.transport, option="trials")
    code, other = levels(dataset, maps.attribute, maps.source if direction == "forward" else maps.target)
    features, rows = _split(dataset, split, trials)
    module = map_module(maps.kind)
    points = maps.points if getattr(module, "FITTED_ROWS_ONLY", False) else None
    columns = np.array([dataset.feature_names.index(name) for name in maps.features])
    own = {*maps.features, *dataset.protected} - {maps.attribute}
    constant = np.array([name not in own for name in dataset.feature_names])
    members, others = (
        [_members(dataset, rows[t], maps.attribute, c, maps.given_label)[:limit] for t in range(trials)]
        for c, limit in ((code, points), (other, None))
    )
    if not all(map(len, [*members, *others])):
        note = "" if maps.given_label is None else f" with true label {maps.given_label}"
        problem = f"{maps.source} or {maps.target} ({maps.attribute} of {dataset.name!r}) has no {split} rows{note}"
        remedy = "Audit the other split, or prepare more rows"
        raise InvalidInput(problem, source=dataset.name, option="split", column=maps.attribute, remedy=remedy)
    moved = module.images(
        {name: array[:trials] for name, array in parameters.items()},
        [features[t][member][:, columns] for t, member in enumerate(members)],
    )
    result = []
    for t, (member, opposite, image) in enumerate(zip(members, others, moved, strict=True)):
        target = features[t][opposite]
        images = features[t][member].copy()
        images[:, columns] = image
        images[:, constant] = target[0, constant]
        result.append(
            Mapped(
                rows=rows[t][member],
                label=dataset.label[rows[t][member]],
                features=features[t][member],
                images=images,
                target=target,
                target_rows=rows[t][opposite],
            )
        )
    return result


def _split(dataset: Dataset, split: Split, trials: int) -> tuple[Array, Array]:
    """Return the features (T, n, d) of one side of the first splits, and their row numbers (T, n)."""
    return dataset.batch(split, trials).features, dataset.rows(split)[:trials]


def _members(dataset: Dataset, rows: Array, attribute: str, code: int, given_label: int | None) -> Array:
    """Return the positions in ``rows`` of one group, restricted to a true label if given."""
    inside = dataset.protected[attribute][rows] == code
    if given_label is not None:
        inside &= dataset.label[rows] == given_label
    return np.flatnonzero(inside)


def _directions(values: Any, trials: int) -> dict[str, Array]:
    """Split arrays of 2T trials into those of the T forward trials and, under their own names, the T reverse trials."""
    split = {}
    for name, array in values.items():
        if name == "step":
            split[name] = array
        else:
            split[name], split[f"reverse_{name}"] = array[:trials], array[trials:]
    return split
