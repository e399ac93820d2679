"""A reference holds what its artefacts read, and nobody's row."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import io
from pipeline.report import reference
from pipeline.report.artefacts import build, compared
from pipeline.report.comparison_table import verdicts
from pipeline.report.inputs import Inputs
from pipeline.report.table import Table
from pipeline.workflow import shelf

NOWHERE: dict[str, Any] = {"study": "s", "scale": "paper", "blocks": {}, "jobs": {}}
DRAWN = ("table_1", "table_unfair_examples", "figure_2", "figure_3", "table_counts")


def people(rng: np.random.Generator, n: int = 60) -> dict[str, np.ndarray]:
    """What an audit keeps of people and of their images."""
    return {
        "features": rng.normal(size=(n, 3)),
        "images": rng.normal(size=(n, 3)),
        "score": rng.normal(size=n),
        "score_image": rng.normal(size=n),
        "decision": rng.integers(0, 2, n),
        "decision_image": rng.integers(0, 2, n),
        "rows": np.arange(n),
        "target_features": rng.normal(size=(n + 5, 3)),
        "target_score": rng.normal(size=n + 5),
    }


@given(seed=st.integers(0, 2**16))
def test_scattering_keeps_every_column_of_every_cell_and_no_row(seed: int) -> None:
    held = people(np.random.default_rng(seed))
    found = reference.scattered(held)
    cells = 2 * held["decision"] + held["decision_image"]
    for name in ("features", "images"):
        for code in np.unique(cells):
            before, after = (arrays[name][cells == code] for arrays in (held, found))
            np.testing.assert_array_equal(np.sort(before, axis=0), np.sort(after, axis=0))
        together = {tuple(row) for row in held[name]} & {tuple(row) for row in found[name]}
        # A row stays together where chance, or its being alone in its cell, leaves no other order.
        assert len(together) <= 3 + sum((cells == code).sum() == 1 for code in np.unique(cells))
    np.testing.assert_array_equal(np.sort(held["target_score"]), found["target_score"])
    np.testing.assert_array_equal(held["rows"], found["rows"])


@given(st.lists(st.floats(-1e30, 1e30) | st.sampled_from([np.inf, -np.inf, np.nan]), min_size=1, max_size=30))
def test_large_arrays_keep_eight_digits_and_small_ones_all(values: list[float]) -> None:
    few = np.array(values, dtype=float)
    assert reference.rounded(few) is few
    many = np.resize(few, reference.LARGE)
    np.testing.assert_allclose(reference.rounded(many), many, rtol=6e-8, atol=1e-35)
    whole = np.resize(np.arange(10), reference.LARGE)
    assert reference.rounded(whole) is whole


@pytest.fixture(scope="module")
def recorded(inputs: Inputs, tmp_path_factory: pytest.TempPathFactory) -> tuple[Inputs, Path]:
    """The study's inputs and a reference of what some artefacts read of them."""
    drawn = reference.watched(inputs)
    for name in DRAWN:
        build(name, drawn.inputs, pd.DataFrame())
    folder = tmp_path_factory.mktemp("reference")
    manifest = {"study": inputs.study, "scale": inputs.scale, "blocks": {b: {} for b in reference.blocks(inputs)}}
    shelf.save_reference(reference.kept(drawn), {**manifest, "jobs": {}}, folder)
    return inputs, folder


def test_the_same_is_drawn_from_the_reference(recorded: tuple[Inputs, Path]) -> None:
    inputs, folder = recorded
    again, manifest = shelf.load_reference(folder)
    assert manifest["study"] == inputs.study
    assert set(again.rows.columns) == set(inputs.rows.columns)
    for name in DRAWN:
        here, there = (build(name, one, pd.DataFrame()) for one in (inputs, again))
        if isinstance(here, Table):
            assert isinstance(there, Table)
            assert there.csv() == here.csv()
        assert (there.title, there.notes, there.stamp) == (here.title, here.notes, here.stamp)


def test_verdicts_are_those_of_the_run(recorded: tuple[Inputs, Path], published: pd.DataFrame) -> None:
    inputs, folder = recorded
    again, _ = shelf.load_reference(folder)
    pd.testing.assert_frame_equal(verdicts(compared(again, published)), verdicts(compared(inputs, published)))


def test_what_nothing_reads_is_not_kept(recorded: tuple[Inputs, Path]) -> None:
    inputs, folder = recorded
    again, _ = shelf.load_reference(folder)
    assert any(one.parameters for one in inputs.classifiers.values())
    for key, one in again.classifiers.items():
        assert one.repetitions == inputs.classifiers[key].repetitions
        assert all(array.size < reference.LARGE for array in one.parameters.values())
    for audit in again.audits.values():
        assert audit.rows.empty


def test_a_file_of_a_reference_is_at_most_a_megabyte(recorded: tuple[Inputs, Path], tmp_path: Path) -> None:
    inputs, _ = recorded
    key, one = next(iter(inputs.audits.items()))
    large = {"noise": np.random.default_rng(0).normal(size=200_000)}
    full = replace(inputs, audits={key: replace(one, arrays=large)})
    with pytest.raises(ValueError, match=r"audits_1\.zip has 1,.* expected at most 1,000,000: keep less of it"):
        shelf.save_reference(full, NOWHERE, tmp_path)
    assert not (tmp_path / "manifest.json").exists()
    with pytest.raises(ValueError, match="holds no reference: make one"):
        shelf.load_reference(tmp_path)


def test_small_values_share_a_file_and_many_take_more(recorded: tuple[Inputs, Path], tmp_path: Path) -> None:
    inputs, _ = recorded
    (key, one), *_ = inputs.audits.items()
    rng = np.random.default_rng(0)
    audits = {f"{key}{i}": replace(one, arrays={"noise": rng.normal(size=30_000)}) for i in range(9)}
    shelf.save_reference(replace(inputs, audits=audits), NOWHERE, tmp_path)
    files = sorted(path.name for path in tmp_path.glob("audits_*.zip"))
    assert files == ["audits_1.zip", "audits_2.zip", "audits_3.zip"]
    again = shelf._load_shelf(tmp_path / "audits", io.load_audit)
    assert set(again) == set(audits)
    np.testing.assert_array_equal(again[f"{key}7"].arrays["noise"], audits[f"{key}7"].arrays["noise"])


def of_blocks(inputs: Inputs, blocks: set[str]) -> Inputs:
    """The inputs of a run of these blocks alone."""
    inside: Any = lambda paths: {path: v for path, v in paths.items() if path.split("/")[-4] in blocks}  # noqa: E731
    config = {**inputs.config, **{key: inside(inputs.config[key]) for key in ("sections", "published")}}
    rows = inputs.rows[inputs.rows["block"].isin(blocks)]
    audits = {key: audit for key, audit in inputs.audits.items() if key.split("/")[0] in blocks}
    return replace(inputs, rows=rows, config=config, audits=audits)


def test_a_reference_grows_by_blocks(inputs: Inputs) -> None:
    every = set(inputs.config["experiment"]["grid"])
    first = {"audit"}
    one, rest = of_blocks(inputs, first), of_blocks(inputs, every - first)
    assert not reference.whole(one)
    manifests = [
        {"blocks": {block: {"commit": str(number)} for block in blocks}, "jobs": {str(number): [1, 1]}}
        for number, blocks in enumerate((first, every - first))
    ]
    left_out = replace(one, config={**one.config, "blocks": sorted(first)})
    assert reference.whole(left_out), "its scale runs no other block"
    both, manifest = reference.merged(one, manifests[0], rest, manifests[1])
    assert reference.whole(both)
    assert set(manifest["blocks"]) == every
    assert len(manifest["jobs"]) == 2
    assert len(both.rows) == len(inputs.rows)
    # What was run again takes the place of what was there.
    again, manifest = reference.merged(both, manifest, one, {"blocks": {"audit": {"commit": "2"}}, "jobs": {}})
    assert len(again.rows) == len(inputs.rows)
    assert manifest["blocks"]["audit"]["commit"] == "2"
    with pytest.raises(ValueError, match=r"is of scale .*, the run of 'other'"):
        reference.merged(one, manifests[0], replace(rest, scale="other"), manifests[1])
