"""What a reader must know is said where its condition holds, and nowhere else."""

import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from pipeline.cli.result import Result

DIRECTIONS = "--directions directions.npy"
AUC = "--score p --group sex --metric auc"
SMOOTH = "--map wgan --map-setting steps=30 --map-setting engine=torch"
TABLE = f"""
loss-ratio => {DIRECTIONS} --steps 200 => held_out_rows whole_columns => not_rejected few_rows
loss-ratio => {DIRECTIONS} --model fair.pt --points 20 => not_rejected few_rows => still_growing
loss-ratio => {DIRECTIONS} --steps 20 --delta 9 => not_rejected still_growing => saturated
loss-ratio => {DIRECTIONS} --model own.py:p => read_as_probabilities saturated rows_left_out => all_alike
loss-ratio => --directions all.npy => all_alike => weak_direction
loss-ratio => --sensitive sex,region=north => weak_direction metric_of_audited_rows =>
loss-ratio => --sensitive sex --metric-data teachers.parquet => => metric_of_audited_rows weak_direction
permutation => {AUC} => held_out_rows independent_rows => several_tests few_units
permutation => {AUC} --cluster person => => independent_rows few_units
permutation => {AUC} --cluster family => few_units =>
permutation => --prediction d --group sex --metric fpr --cluster family => few_units =>
permutation => {AUC} --label few49 => few_units =>
permutation => {AUC} --label few50 => => few_units
permutation => {AUC} --method lift => method_to_compare_with =>
permutation => {AUC} --metric mean_score => several_tests => no_correction
permutation => {AUC} --metric mean_score --correct none => no_correction => several_tests
permutation => {AUC} --resampling-risk 0.01 --draws 5000 => stopped_early =>
permutation => {AUC} --metric tpr,fnr --threshold 0.5 => one_hypothesis_twice => correction_by_metric
permutation => {AUC} --metric mean_score --correct max-t => correction_by_metric => one_hypothesis_twice
permutation => {AUC} --bins 50 => binned_scores =>
fliptest => => no_noise_floor read_as_probabilities few_rows exact_map => smooth_map unmoved_columns poor_map
fliptest => --threshold 0 --null-draws 1 => empty_flipset => read_as_probabilities no_noise_floor
fliptest => {SMOOTH} => poor_map smooth_map => exact_map fit_broke_down
fliptest => --predict models.py:by_sex --include-group => unmoved_columns =>
robustness => --group sex => closer_is_not_worse linear_model => no_label upper_bounds small_group resized
robustness => no--label --attack deepfool => no_label upper_bounds => poor_accuracy linear_model
robustness => --label other --group sex => poor_accuracy => no_label
robustness => --points 60 --min-group 5 => small_group columns_passed_over =>
robustness => --attack smoothing --attack-setting smoothing.samples=100 => certified_radii => linear_model
robustness => --attack carlini_wagner --attack-setting carlini_wagner.iterations=2 => failed_attacks =>
robustness => --images colour --channels 1 --resize 4x4 => converted_images resized other_files unlisted_images =>
"""
"""The audit => arguments => conditions that hold => conditions that do not."""


def prepare_desk() -> None:
    """A network that is certain; directions that span all; rows to learn a metric from."""
    Path("own.py").write_text("import torch\ndef p(x): return torch.sigmoid(20 * x[:, 0] + 60 * x[:, 1])\n")
    np.save("all.npy", np.eye(3))
    pd.read_csv("rows.csv").drop(columns="hired").to_parquet("teachers.parquet")


def prepare_ledger() -> None:
    """Persons of two rows, families of eight; labels of which 49 or 50 women are positive."""
    frame, rows = pd.read_parquet("preds.parquet"), np.arange(400)
    women = frame["sex"] == "female"
    few = {f"few{n}": frame["y"].where(~women, (women.cumsum() <= n).astype(int)) for n in (49, 50)}
    families = {"person": rows // 2 * 2 + rows % 2, "family": rows % 2 + rows // 16 * 2}
    frame.assign(**few, **families).to_parquet("preds.parquet")


def prepare_studio() -> None:
    """Labels that are wrong for most; images in colour, one of them and a text in no row of the table."""
    table = pd.read_csv("attributes.csv")
    table.assign(other=1 - table["smiles"]).to_csv("attributes.csv", index=False)
    for file in sorted(Path("faces").rglob("*.png")):
        to = "colour" / file.relative_to("faces")
        to.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.stack([np.asarray(Image.open(file))] * 3, axis=2)).save(to)
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save("colour/c.jpg")
    Path("colour/notes.txt").write_text("no image")


PREPARE = {"loss-ratio": prepare_desk, "permutation": prepare_ledger, "robustness": prepare_studio}


@pytest.mark.parametrize(
    ("name", "given", "holds", "does_not"), [line.split(" =>") for line in TABLE.split("\n")[1:-1]]
)
def test_a_caveat_is_given_where_its_condition_holds(
    name: str,
    given: str,
    holds: str,
    does_not: str,
    working: Callable[[str], Path],
    documented: Callable[..., Result],
) -> None:
    working(name)
    PREPARE.get(name, lambda: None)()
    words = shlex.split(given)
    without = tuple(word.removeprefix("no") for word in words if word.startswith("no--"))
    found = documented(name, *(word for word in words if not word.startswith("no--")), without=without)
    conditions = {caveat.condition for caveat in found.caveats}
    assert set(holds.split()) <= conditions
    assert not set(does_not.split()) & conditions
