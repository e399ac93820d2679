"""Whose rows are mapped to whose, and the space in which their counterparts are sought."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fairness_audits.audits.fliptest.settings import Settings
from fairness_audits.audits.fliptest.space import MISSING, Input, Space
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.table import Source, drawn, feature_names, numeric, two_classes, units
from fairness_audits.messages import SHOWN, advised, check_columns, listed, option_in
from fairness_audits.tables.levels import in_order, level_asked, level_name, place_of
from fairness_audits.tables.rows import Values, grouped
from fairness_audits.tables.typed import numbers_as_text
from fairness_audits.values import Array

LEAST_ROWS = 20
"""With fewer rows in a group there is no distribution to map to."""
MOST_LEVELS = 100
"""A column of text with more levels than this is a name or an identifier, not a category."""


@dataclass(frozen=True)
class Group:
    """``level`` is the group's name; ``features`` its rows' model inputs, indexed by their number in the file.

    ``ids`` (n,) are the rows' values in the column of ``--id``, None without one; ``label`` (n,) their true classes 0
    and 1, None where they are not known.
    """

    level: str
    features: pd.DataFrame
    ids: Array | None
    label: Array | None = None

    @property
    def rows(self) -> Array:
        """The rows' numbers in the file, counted from 0."""
        return self.features.index.to_numpy()


@dataclass(frozen=True)
class Groups:
    """The group that is mapped and the group that it is mapped to.

    ``left_out`` counts the file's other rows by reason; ``label_levels`` say what the label's 0 and 1 stand for.
    """

    source: Group
    target: Group
    left_out: Mapping[str, int]
    label_levels: tuple[str, str] | None


def read_groups(data: Source, options: Settings) -> Groups:
    """The two groups that are asked for.

    Raises InvalidInput for columns and levels that do not exist, columns with two parts, and groups of too few rows.
    """
    table, path = data.table, data.name
    apart = () if options.id is None else (options.id,)
    check_columns(table, apart, "--id", path)
    names = feature_names(
        data,
        replace(options, drop=(*options.drop, *apart)),
        options.label,
        [options.group],
        "--group",
        options.include_group,
    )
    values = Values.of(data, options.group, "group", table[options.group])
    levels = [level_name(value) for value in values.distinct]
    group = np.array(levels)[values.which]
    source = level_asked(data, options.group, levels, options.source, "--source")
    target = level_asked(data, options.group, levels, options.target, "--target")
    if source == target:
        other = next((level for level in in_order(levels) if level != source), None)
        remedy = (
            f"Name another group, {advised('target', other)}"
            if other is not None
            else "There is nobody to compare with"
        )
        raise InvalidInput(
            f"{path}: --source and --target are both {source}",
            source=path,
            option="target",
            column=options.group,
            remedy=remedy,
        )
    either = np.isin(group, [source, target])
    label, label_levels = _labels(data, either, options)
    of_label = np.ones(len(table), dtype=bool) if options.given_label is None else label == options.given_label
    left_out = {"of other groups": int((~either).sum())}
    if options.given_label is not None:
        left_out["of the other label"] = int((either & ~of_label).sum())
    found, limited = [], 0
    for option, level in (("--source", source), ("--target", target)):
        members = np.flatnonzero((group == level) & of_label)
        chosen = drawn(members, options.limit, "fliptest", "limit", str(options.seed), level)
        limited += len(members) - len(chosen)
        if len(chosen) < LEAST_ROWS:
            note = "" if options.given_label is None else f" with label {options.given_label}"
            raise InvalidInput(
                f"{path}: the group {level} ({option}) has {len(chosen)} rows{note}, expected at least {LEAST_ROWS}",
                source=path,
                option=option_in(option),
                column=options.group,
                remedy="A map needs enough rows to find counterparts among: give more rows, or a larger group",
            )
        ids = None if options.id is None else table[options.id].to_numpy()[chosen]
        known = None if label_levels is None else label[chosen]
        found.append(Group(level, table.loc[chosen, list(names)], ids, known))
    if options.id is not None:
        ids = table.loc[[*found[0].rows, *found[1].rows], options.id].astype(str)
        if repeated := sorted(set(ids[ids.duplicated()])):
            raise InvalidInput(
                f"{path}: expected one row for each {options.id!r} (--id), found several for {listed(repeated, SHOWN)}",
                source=path,
                option="id",
                column=options.id,
                row=int(ids.index[ids.duplicated()][0]),
                remedy="Name a column that tells the rows apart, or keep one row of each",
            )
    if options.limit is not None:
        left_out["beyond the limit"] = limited
    return Groups(found[0], found[1], left_out, label_levels)


def _labels(data: Source, rows: Array, options: Settings) -> tuple[Array, tuple[str, str] | None]:
    """The true classes (n,) of the ``rows`` (n,), -1 elsewhere, and the names of 0 and 1, None where not known.

    Raises InvalidInput where they are needed and not known.
    """
    label = np.full(len(data.table), -1)
    if options.label is None:
        if options.given_label is not None:
            problem = "--given-label is about the true label"
            raise InvalidInput(problem, option="given_label", remedy="Give --label, or leave it out")
        return label, None
    some = replace(data, table=data.table[rows])
    column = some.table[options.label]
    if options.given_label is None and options.positive is None and set(column.unique().tolist()) != {0, 1}:
        return label, None
    if options.positive is not None and column.nunique() > 2:
        codes, (one, rest) = grouped(some, options.label, column, options.positive)
        label[rows] = 1 - codes
        return label, (rest, one)
    label[rows], levels = two_classes(some, options.label, options.positive)
    return label, levels


def space_of(groups: Groups, options: Settings, path: str) -> Space:
    """The space of the two groups' rows.

    Raises InvalidInput for values that are infinite, columns that are neither numbers nor categories, and where nothing
    is left to be mapped.
    """
    frame = pd.concat([groups.source.features, groups.target.features]).sort_index()
    check_columns(frame, options.categorical, "--categorical", "the model's input")
    texts = ("O", "U", "S", "b")  # kinds of objects, text, and true and false
    categories = [
        name
        for name, kind in frame.dtypes.items()
        if name in options.categorical
        or kind == "category"
        or getattr(kind, "kind", "O") in texts
        or (frame[name].isna().any() and frame[name].nunique() <= 2)
    ]
    numbers = [name for name in frame.columns if name not in categories]
    source = Source(path, frame)
    values = numeric(source, numbers, True, "numbers or text") if numbers else np.zeros((len(frame), 0))
    measured = units(values, numbers, options.standardize)
    inputs = []
    for name in frame.columns:
        if name in categories:
            known = frame[name].dropna()
            levels = sorted(Values.of(source, name, "feature", known).distinct, key=place_of)
            levels += [np.nan] * (len(known) < len(frame))
            if len(levels) > MOST_LEVELS:
                other = "make its texts numbers if they are" if numbers_as_text(known) else "else group its values"
                raise InvalidInput(
                    f"{path}: column {name!r} has {len(levels)} different values, expected at most {MOST_LEVELS} in a "
                    "category",
                    source=path,
                    option="drop",
                    column=name,
                    remedy=f"If it is a name or an identifier leave it out, {advised('drop', name)}; {other}",
                )
            inputs.append(Input(name, levels=pd.Series(levels, dtype=frame[name].dtype)))
            continue
        j = numbers.index(name)
        own = values[~np.isnan(values[:, j]), j]
        distinct_values = np.unique(own)
        pair = (float(distinct_values[0]), float(distinct_values[1])) if len(distinct_values) == 2 else None
        whole = bool((distinct_values == np.round(distinct_values)).all())
        shift, scale = float(measured.shift[j]), float(measured.scale[j])
        inputs.append(Input(name, shift, scale, pair, whole, fill=(float(own.mean()) - shift) / scale))
        if len(own) < len(frame):
            inputs.append(Input(f"{name} is {MISSING}", levels=pd.Series([False, True]), gap_of=name))
    still = Space(tuple(inputs), np.arange(0), measured.standardized)
    sides = [still.points(group.features) for group in (groups.source, groups.target)]
    # A category moves as a whole, a number with its gaps, where it varies within at least one of the groups.
    varies = np.any([np.ptp(points, axis=0) > 0 for points in sides], axis=0)
    owner = np.array([one.gap_of or one.name for one in inputs for _ in one.labels])
    moving = np.flatnonzero(np.isin(owner, owner[varies]))
    if not len(moving):
        raise InvalidInput(
            f"{path}: every feature is the same in all rows of {groups.source.level} and in all rows of "
            f"{groups.target.level}",
            source=path,
            option="features",
            remedy="A map needs features that vary: choose others with --features",
        )
    return replace(still, moving=moving)
