"""The references in the repository: small, whole, and with the verdicts that the list says."""

import functools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairness_audits.files import save_json
from pipeline import io
from pipeline.jobs import Run
from pipeline.report import artefacts, claims, reference, registry
from pipeline.report.comparison_table import verdicts
from pipeline.workflow import reference_store, references
from pipeline.workflow.references import REFERENCES

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / REFERENCES
STUDIES = references.referenced(Run())
COMMAND = "make reference STUDY={study}, where the verdicts should change"


reference_of = functools.cache(lambda study: reference_store.load_reference(FOLDER / study))


def test_they_are_small() -> None:
    sizes = [path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()]
    assert max(sizes) <= reference_store.LIMIT
    assert sum(sizes) <= 18 * reference_store.LIMIT


def test_the_list_holds_the_verdicts_of_every_reference_and_of_nothing_else() -> None:
    published = {study for study in STUDIES if len(io.load_published(ROOT / "data" / "published" / f"{study}.csv"))}
    assert set(reference_store.load_list(FOLDER / "verdicts.csv")["study"]) == published


def test_committed_files_are_found_from_any_folder(tmp_path: Path) -> None:
    here, elsewhere, study = Run(), Run(folder=tmp_path), STUDIES[0]
    for found in (Run.twin, lambda run, _: references.files(run, study)):
        inside, outside = found(here, "adult"), found(elsewhere, "adult")
        assert inside
        assert not any(map(Path.is_absolute, map(Path, inside)))
        assert [ROOT / path for path in inside] == list(map(Path, outside))
    assert references.regression_option(elsewhere, study).split() == ["--regression-check", str(FOLDER / study)]
    (tmp_path / "data" / "raw" / "adult").mkdir(parents=True)
    record = {"origin": "twin", "files": []}
    save_json(record, tmp_path / "data" / "raw" / "adult" / "manifest.json")
    for name in ("adult.data", "adult.test"):
        (tmp_path / "data" / "raw" / "adult" / name).touch()
    assert elsewhere.replaced("adult"), "the raw files are in the working folder"


def test_a_reference_is_of_the_grid_that_the_study_declares_for_its_datasets(tmp_path: Path) -> None:
    run, study = Run(root=tmp_path), "robustness_bias"
    assert not references.has_reference(run, study)
    _, manifest = reference_of(study)
    every = manifest["grid"]
    digits = [part for part in every if "/digits" in part]
    assert 1 < len(digits) < len(every)
    linear = [part for part in every if part.startswith("linear/")]
    assert len(linear) > 1
    grids = {
        "every part": (every, True),
        "one data set": (digits, True),
        "a block that was declared later": ([part for part in every if part not in linear], True),
        "a part of a block": ([part for part in every if part != linear[0]], False),
        "a part that is not declared": ([*every, "linear/law"], False),
    }
    for grid, is_whole in grids.values():
        save_json({"grid": grid}, tmp_path / REFERENCES / study / "manifest.json")
        assert references.has_reference(run, study) == is_whole


@pytest.mark.parametrize("study", STUDIES)
def test_a_reference_holds_declared_arrays_as_they_are_declared(study: str) -> None:
    inputs, _ = reference_of(study)
    of = {point["keys"].audit: point["keys"].dataset for point in inputs.points}
    for key, one in inputs.audits.items():
        again = reference.committed(one, inputs.datasets[of[key]].levels if of[key] in inputs.datasets else {}, key)
        assert {name: array.tobytes() for name, array in again.items()} == {
            name: array.tobytes() for name, array in one.arrays.items()
        }
    for model in inputs.classifiers.values():
        assert {name for name, array in model.parameters.items() if array.size} <= set(reference.PARAMETERS)


@pytest.mark.parametrize("study", STUDIES)
def test_verdicts_are_those_of_the_reference(study: str) -> None:
    """A change of the rules, of a published number or of a reference that moves a verdict is a line in the list."""
    inputs, manifest = reference_of(study)
    assert sorted(part for run in manifest["runs"] for part in run["parts"]) == reference.parts(inputs)
    published = io.load_published(ROOT / "data" / "published" / f"{study}.csv")
    found = verdicts(artefacts.compared(inputs, published))
    listed = reference_store.load_list(FOLDER / "verdicts.csv").query("study == @study").drop(columns="study")
    listed = listed.reset_index(drop=True)
    message = COMMAND.format(study=study)
    texts = ["artefact", "row", "column", "of", "reading", "verdict", "differs_before"]
    pd.testing.assert_frame_equal(
        found[texts].astype(object), listed[texts].astype(object), obj=message, check_dtype=False
    )
    for name in set(found.columns) - set(texts):
        ours, theirs = (pd.to_numeric(frame[name]).to_numpy(float) for frame in (found, listed))
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12, err_msg=f"{name}: {message}")


@pytest.mark.parametrize("study", STUDIES)
def test_claims_are_those_of_the_reference(study: str) -> None:
    inputs, _ = reference_of(study)
    measured = artefacts.measurements(inputs)
    listed = io.load_claims(ROOT / "data" / "published" / "claims" / f"{study}.yaml")
    found = claims.listed(claims.decide(listed, measured))
    theirs = reference_store.load_list(FOLDER / "claims.csv").query("study == @study").drop(columns="study")
    message = COMMAND.format(study=study)
    pd.testing.assert_frame_equal(
        found.astype(object), theirs.reset_index(drop=True).astype(object), obj=message, check_dtype=False
    )


def test_every_claim_is_shown_by_an_artefact_of_its_study() -> None:
    for path in sorted((ROOT / "data" / "published" / "claims").glob("*.yaml")):
        names = {one.name for one in registry.declared(path.stem)}
        assert {claim["artefact"] for claim in io.load_claims(path)} <= names
