"""What every audit says to somebody who gave it something else than it expects: one message, and no files."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

Command = Callable[..., tuple[int, str, str]]
SIDE = 4
FOLDERS = {"loss-ratio": "desk", "permutation": "ledger", "fliptest": "office", "robustness": "studio"}
BAD = {
    "loss-ratio": r"""
--step-size 0.03 => step size 0.03 is unstable for regularization 50 => = 0.02; use a smaller step size or
--points 301 => --points asks for 301 rows, but there are 300
--features merit,proxy => expected --directions of shape (number, 2)
--directions flat.npy => flat.npy: sensitive directions [0] are zero
--directions junk.npy => junk.npy does not hold an array of numbers: write it with numpy.save
--directions absent.npy => there is no file absent.npy: --directions takes a .npy file of shape (number, 3)
--metric-data rows.csv => --metric-data is for a metric that is learned
--data absent.csv => there is no file absent.csv
--label hried => did you mean 'hired'?
--model absent.pt => there is no file absent.pt
--features merit,proxy,member,sex => 'sex' holds 'female', 'male'. Encode these columns
--output-kind probability => expected values in [0, 1], found -
--standardize height => --standardize names 'height', which is no feature
--device abacus => --device abacus cannot be used here
--json taken => expected taken to be a file, found a folder
""",
    "permutation": r"""
--group sex --metric auc => nothing to audit: name the column of scores (--score) or of decisions
--score p --metric auc => metric auc is compared between groups: name their column with --group
--score p --group sex --metric tpr => metric tpr needs decisions: name their column with --pred
--prediction d --group sex --metric auc => metric auc needs scores: name their column with
--score p --group sex --metric acu => --metric acu: expected one of tpr, fnr, fpr
--score p --metric correlation => metric correlation needs a column of numbers, such as age
AUC --attribute age => --attribute goes with --metric correlation
--score p --group sx --metric auc => group names 'sx', but preds.parquet has no such column (did you mean
--score p --group age --metric auc => column 'age' (group) has
--score p --group sex=x --metric auc => the group 'x' is not in column 'sex'
AUC --between male => --between takes two names, A,B
AUC --between male,mail => --between names 'mail', but the groups of 'sex' are female, male
AUC --between male,mail --correct max-t => --between names 'mail', but the groups of 'sex' are female, male
AUC --label grade => (label) holds fail, pass, not 0 and 1: say which of them counts as 1
AUC --label age => column 'age' (label) must have two classes
--score p --group sex --metric log_loss --score logit => column 'logit' (score) is outside [0, 1] in
AUC --bins 10 --score logit => mend these rows, or give other bounds (--score-range)
AUC --predictions no.parquet => there is no file no.parquet
AUC --method exact => no exact test of auc on these data
AUC --metric log_loss --resampling-risk 0.01 => another than that after a correction for 2 tests
--prediction d --group sex --metric tpr,fpr --cluster logit --resampling-risk 0.01 => another than that after a
AUC --correct max-t --alternative less => --correct max-t is a two-sided test
AUC --real-label => --real-label is for mean errors and correlations
--score p --attribute age --metric correlation --cluster d => takes rows as they are
--score p --group sex --metric no.py:f => importing 'no.py' failed with FileNotFoundError
--score p --group sex --metric math:f => 'math' has no 'f'. It has:
--score p --group sex --metric math:cos => expected a function of three arrays, (y, score, weight)
AUC --memory lots => DuckDB does not take 'lots' as memory_limit
AUC --json . => expected . to be a file, found a folder
""",
    "fliptest": r"""
--data absent.csv => there is no file absent.csv
--group sexx => --group names 'sexx', but rows.parquet has no such column (did you mean 'sex'?)
--source woman => --source asks for the value 'woman', but column 'sex' of rows.parquet holds female
--target men => but column 'sex' of rows.parquet holds female, male, unknown
--target female => --source and --target are both female: name another group, --target male
--target unknown => the group unknown (--target) has 10 rows, expected at least 20: a map needs enough
--limit 9 => the group female (--source) has 9 rows, expected at least 20
--id name => --id names 'name', but rows.parquet has no such column
--label hried => --label names 'hried', but rows.parquet has no such column (did you mean 'hired'?)
--features experience,tset => --features names 'tset', but rows.parquet has no such column
--features person => --features names person, which is also the label or dropped
--given-label 1 --label region => the label 'region' must have two classes, found 3
--positive 1 => --positive says how to read the label for --given-label: add that, or leave it out
--predict models.py:logit => neither decisions 0 and 1 nor probabilities: say from which number on
--predict models.py:fair => --predict models.py:fair: 'models.py' has no 'fair'. It has: experienced
--drop tests => failed on 160 rows of 2 features: KeyError: 'tests'. It was given the columns exp
--predict models.pt => there is no file models.pt: --predict takes model.pt (TorchScript)
--map exakt => --map exakt: there is no such map (did you mean 'exact'?). There are:
--map-setting coast=l1 => --map-setting coast=l1: expected KEY=VALUE with a setting of exact (did
--map-setting cost => --map-setting cost: expected KEY=VALUE
--standardize height => --standardize names 'height', which is no feature
--categorical hight => --categorical names 'hight', but the model's input has no such column
--json taken => expected taken to be a file, found a folder
--data gaps.csv => gaps.csv: column 'experience' is missing in 2 rows: 4, 5 (counted from 0): fill
--data anybody.csv => anybody.csv: column 'sex' (--group) is missing in row 3 (counted from 0)
--data women.csv => --target asks for the value 'male', but column 'sex' of women.csv holds female
--data names.csv => column 'region' has 160 different values, expected at most 100 in a category
""",
    "robustness": r"""
--images absent => there is no folder or file absent: --images takes a folder of images
--images attributes.csv => expected --images to be a folder of PNG and JPEG files, or a file ending in
--images texts => image files ending in .png, .jpg, .jpeg, found none among 1 other files
--images sizes --partition four.csv => expected images of one size, found 4 x 5 (0.png) and 5 x 5 => --resize 4x5 makes
--images broken --partition four.csv => none of the 4 images below broken can be read => 0.png (neither PNG nor JPEG
--partition absent.csv => names a/00.png: no such file below faces (did you mean 'a/ => Add 1 missing files or remove
--partition text.csv => names a/notes.txt, which is in faces but no image file (expected .png
--partition twice.csv => expected one row for each image, found several for b/001.png
--partition nameless.csv => column 'file' names no file in 0 (rows counted from 0)
--partition vague.csv => twin.png may be a/twin.png, b/twin.png: name images by their path below faces
--partition nothing.csv => there is no file nothing.csv
--file fiel => --file names 'fiel', but attributes.csv has no such column (did you mean 'file'?)
--label smile => did you mean 'smiles'?
--partition beyond.csv => holds 2, out of range: the model has 2 classes, so expected 0 to 1
--partition names.csv => holds no, yes, expected the numbers of the model's outputs, from 0
--partition names.csv --classes no,si => holds yes, which --classes does not name. It names: no, si
--classes a,b,c => --classes names 3 classes, but the model returns scores of 2
--classes a,a => --classes names a class more than once
--partition unlabelled.csv => the label 'smiles' is missing in 0 (rows counted from 0)
--partition constant.csv --group era => --group era, but it is 'now' in every row: a constant
--group sx => --group names 'sx', but attributes.csv has no such column (did you mean 'sex'?)
--group file => --group names 'file', the column of file names
--partition unparted.csv => expected a column of 2 to 20 levels to compare by, found none => sex (the same in every
--partition rare.csv => at least 10 audited images in every group, found fewer in sex: other (1)
--points 20 --group place => found fewer in place:
--points 200 => --points asks for 200 images, but there are 120
--images images.npy --partition short.csv => in the same order; found 50 rows and 120 images
--images images.npy --file file => --file names files, but images.npy is an array
--images images.npy --channels 3 => --channels 3: the images of images.npy have 1
--images images.npy --array x => --array x is for an .npz
--layout nchw => --layout is for a file of arrays, but faces is a folder
--images pixels.npy => expected floating pixels in [0, 1], found values from
--images counts.npy => expected images of uint8 or floating numbers, found int32
--images odd.npy => both the second and the last axis may be channels: say --layout nchw
--images flat.npy => expected images of shape (n, c, h, w), (n, h, w, c) or (n, h, w) with 1 or 3
--images two.npz => two.npz has 2 arrays, none of them 'images': name one of a, b with --array
--images two.npz --array c => two.npz has no array 'c': name one of a, b with --array
--images junk.npy => junk.npy does not hold arrays of numbers
--images junk.npz => junk.npz
--model absent.pt => there is no file absent.pt
--model weights.pt => weights.pt holds weights only
--model model => expected --model to be model.pt (TorchScript)
--model wrong.py:large => the model failed on 120 images of shape (1, 4, 4) => 1 channel of 4 x 4 pixels: if it takes
--model wrong.py:nan => the model returns NaN or infinite values for => .png
--model wrong.py:square => --attack exact is for linear models, expected scores W x + b
--mean 0.5,0.5,0.5 => --mean gives 3 numbers, but the images have 1 channel
--std 0 => expected --std above 0, found 0
--device abacus => --device abacus cannot be used here
--output-kind probability => --output-kind probability: expected values in [0, 1]
--attack-setting steps=3 => expected --attack-setting ATTACK.KEY=VALUE, found 'steps=3'
--attack-setting fmn.steps=3 => fmn is not asked for; --attack names exact
--attack fmn --attack-setting fmn.step=3 => fmn has no setting 'step'. It has: steps, start_steps
--attack fmn --attack-setting fmn.steps=1.5 => expected a whole number, found '1.5'
--attack fmn --attack-setting fmn.step_size=x => expected a number, found 'x'
--attack fmn --attack-setting fmn.steps=0 => --attack-setting of fmn: expected steps >= 1
--attack smoothing --attack-setting smoothing.samples=150 => expected multiples of 100
--json faces => expected faces to be a file, found a folder
--output model.pt => expected model.pt to be a folder, found a file
--checkpoint images.npy => --checkpoint images.npy holds something else than distances of this audit
""",
}
"""For each audit, lines of arguments => what the message has in it; AUC and the rest of what is usual is added."""
WRONG = """
--alpha 1 => loss-ratio permutation fliptest robustness => expected a number above 0 and below 1, found '1'
--points 1 => loss-ratio robustness => expected a whole number of at least 2, found '1'
--threshold 0.5 --prediction d => permutation => not allowed with argument
--bins 1 => permutation => expected a whole number of at least 2
--score-range 1,0 => permutation => expected two numbers LOW,HIGH with LOW below HIGH
--draws 0 => permutation => expected a whole number of at least 1
--steps 0 => loss-ratio => expected a whole number of at least 1, found '0'
--drop a,,b => loss-ratio fliptest => expected names separated by commas, found 'a,,b'
--standardize a,,b => loss-ratio fliptest => expected names separated by commas, found 'a,,b'
--group a,,b => permutation robustness => expected names separated by commas, found 'a,,b'
--lab y => loss-ratio permutation fliptest robustness => unrecognized arguments: --lab y
--given-label 2 => fliptest => invalid choice: 2
--null-draws -1 => fliptest => expected a whole number of at least 0, found '-1'
--limit many => fliptest => expected a whole number of at least 1, found 'many'
--resize 0 => robustness => expected a side S or HxW in pixels, such as 64 or 48x64, found '0'
--resize big => robustness => found 'big'
--mean a,b => robustness => expected numbers separated by commas, one or one a channel, found 'a,b'
--attack guess => robustness => invalid choice: 'guess'
--min-group 1 => robustness => expected a whole number of at least 2, found '1'
--budget 0 => robustness => expected a number above 0, found '0'
"""
"""Arguments that no audit takes: which are given to which audits, and what the message has in it."""
NETWORKS = """
import torch
def square(x): return x.flatten(1)[:, :2] ** 2 @ torch.tensor([[1.0, 2.0], [0.0, 3.0]])
def nan(x): return torch.where(x[:, 0, 0, :2] > 0.45, x[:, 0, 0, :2], torch.nan)
def large(x): return torch.nn.functional.linear(x.flatten(1), torch.ones(2, 784))
"""


def lines(text: str) -> list[list[str]]:
    """The parts of each line of a table."""
    return [line.split(" => ") for line in text.strip().splitlines()]


def spoil_desk() -> None:
    """Directions that are none."""
    np.save("flat.npy", np.zeros((1, 3)))
    Path("junk.npy").write_text("junk")


def spoil_office() -> None:
    """Rows with gaps, of one group, and of people's names."""
    table = pd.read_parquet("rows.parquet")
    outside = table.index[table["sex"] == "unknown"][0]
    gaps = table["experience"].where(~table.index.isin([4, 5, outside]))
    table.assign(experience=gaps).to_csv("gaps.csv", index=False)
    table.assign(sex=table["sex"].where(table.index != 3)).to_csv("anybody.csv", index=False)
    table[table["sex"] == "female"].to_csv("women.csv", index=False)
    table.assign(region=[f"n{row}" for row in range(len(table))]).to_csv("names.csv", index=False)


def spoil_studio() -> None:
    """Tables that do not fit the images, images and arrays that are none, networks that cannot be audited."""
    table = pd.read_csv("attributes.csv")
    files = table["file"][1:].tolist()
    spoilt: dict[str, dict[str, Any]] = {
        "constant": {"era": "now"},
        "absent": {"file": ["a/00.png", *files]},
        "twice": {"file": ["b/001.png", *files]},
        "nameless": {"file": [None, *files]},
        "text": {"file": ["a/notes.txt", *files]},
        "vague": {"file": ["twin.png", *files]},
        "beyond": {"smiles": table["smiles"] + 1},
        "names": {"smiles": np.where(table["smiles"] == 1, "yes", "no")},
        "unlabelled": {"smiles": [None, *table["smiles"][1:]]},
        "rare": {"sex": ["other", *table["sex"][1:]]},
        "unparted": {"sex": "all", "place": "here"},
    }
    for name, columns in spoilt.items():
        table.assign(**columns).to_csv(f"{name}.csv", index=False)
    table.iloc[:50].to_csv("short.csv", index=False)
    Path("wrong.py").write_text(NETWORKS)
    for folder in ("faces/a", "texts"):
        Path(folder).mkdir(exist_ok=True)
        Path(folder, "notes.txt").write_text("no image")
    for folder in "ab":
        Image.fromarray(np.zeros((SIDE, SIDE), np.uint8)).save(f"faces/{folder}/twin.png")
    for folder in ("sizes", "broken"):
        Path(folder).mkdir()
    for number in range(4):
        Image.fromarray(np.zeros((4 + number // 2, 5), np.uint8)).save(f"sizes/{number}.png")
        Path("broken", f"{number}.png").write_text("no image")
    four = pd.DataFrame({"file": [f"{number}.png" for number in range(4)], "smiles": 0, "sex": ["f", "m"] * 2})
    four.to_csv("four.csv", index=False)
    np.save("pixels.npy", np.load("images.npy").astype(np.float32))
    np.save("counts.npy", np.load("images.npy").astype(np.int32))
    np.save("odd.npy", np.zeros((120, 3, 5, 3), np.uint8))
    np.save("flat.npy", np.zeros((120, 16), np.uint8))
    np.savez("two.npz", a=np.zeros((120, 4, 4), np.uint8), b=np.zeros(3))
    for name in ("junk.npy", "junk.npz"):
        Path(name).write_text("junk")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save({"weight": torch.zeros(3)}, "weights.pt")


SPOIL = {"loss-ratio": spoil_desk, "fliptest": spoil_office, "robustness": spoil_studio}


@pytest.fixture
def spoilt(audit_name: str, request: pytest.FixtureRequest) -> Path:
    """The audit's folder with what can be wrong in it."""
    folder: Path = request.getfixturevalue(FOLDERS[audit_name])
    SPOIL.get(audit_name, lambda: None)()
    (folder / "taken").mkdir()
    return folder


@pytest.mark.parametrize(
    ("audit_name", "given", "messages"),
    [(name, given, messages) for name, text in BAD.items() for given, *messages in lines(text)],
    ids=lambda value: None if isinstance(value, list) else value,
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_failure_is_one_message_and_leaves_nothing_behind(
    run: Command, spoilt: Path, audit_name: str, given: str, messages: list[str]
) -> None:
    before = {path for path in spoilt.rglob("*") if "__pycache__" not in path.parts}
    arguments = shlex.split(given.replace("AUC", "--score p --group sex --metric auc"))
    arguments += ["--directions", "directions.npy"] * (audit_name == "loss-ratio" and "--directions" not in given)
    arguments += ["--output", "out"] * ("--output" not in given)
    status, out, err = run(audit_name, *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: ")
    for message in messages:
        assert message in err
    assert {path for path in spoilt.rglob("*") if "__pycache__" not in path.parts} == before


@pytest.mark.parametrize(
    ("audit_name", "given", "message"),
    [(name, given, message) for given, names, message in lines(WRONG) for name in names.split()],
)
def test_a_wrong_argument_is_refused_before_anything_is_read(
    run: Command, capsys: pytest.CaptureFixture[str], audit_name: str, given: str, message: str
) -> None:
    needed = {"loss-ratio": "--directions none.npy", "permutation": "--metric auc"}.get(audit_name, "")
    with pytest.raises(SystemExit, match="2"):
        run(audit_name, *shlex.split(f"{needed} {given}"))
    assert message in capsys.readouterr().err
