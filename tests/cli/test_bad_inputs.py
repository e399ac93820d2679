"""Every command refuses a bad input with one message, which names what is wrong, and writes no files."""

import json
import os
import re
import shlex
import shutil
import sys
import warnings
import zipfile
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from fairness_audits.cli import entry
from fairness_audits.cli.commands import COMMANDS
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.model_files import MODULE_NAME
from fairness_audits.results.document import STATUS
from tests.cli.places import ended, run
from tests.errors import fields_of

AUDITS = ("loss-ratio", "permutation", "fliptest", "robustness")
HERE = Path(__file__).parent
"""``bad_inputs/COMMAND.txt`` is a table. An entry is two lines: arguments => fields of the error, and the message.

The usual arguments are added, except for options after ``no``. An argument that the parser refuses has no fields. The
files and functions that the arguments name are made below. ``REWORD=yes pytest tests/cli/test_bad_inputs.py`` writes
the messages anew.
"""
OF_A_LIBRARY = re.compile(r"(?<=Error: )[^.)\n]*|(?<=--memory=lots: ).*")
"""The text of another program's error, which is left out of the tables."""
SHORT = {
    "PEOPLE": "no--images no--partition no--attack --model wrong.py:old --label y --data people.csv",
    "AUC": "--score p --group sex --metric auc",
    "SEX": "--sensitive sex",
}
NETWORKS = """
import torch
W = torch.tensor([[1.0, -1.0], [0.5, 0.0], [2.0, 1.0]], dtype=torch.float64)
number = 3
def few(x): return x @ W[:2]
def single(x): return x @ W.float()
def array(x): return (x @ W).detach().numpy()
def words(x): return ["yes"] * len(x)
def wide(x): return torch.cat([x, 2 * x], 1)
def cube(x): return x[:, None]
def classes(x): return (x @ W).argmax(1)
def detached(x): return (x @ W).detach()
def rounded(x): return (x @ W).sign()
def company(x): return x @ W - (x @ W).mean(0)
def gaps(x): return torch.where(x[:, :1] == SEVENTH, torch.nan, x @ W)
def logits(x): return x @ W
def broken(): raise KeyError("weights")
class Tree:
    def predict(self, x): return x
tree = Tree()
"""
IMAGE_NETWORKS = """
import torch
def square(x): return x.flatten(1)[:, :2] ** 2 @ torch.tensor([[1.0, 2.0], [0.0, 3.0]])
def nan(x): return torch.where(x[:, 0, 0, :2] > 0.45, x[:, 0, 0, :2], torch.nan)
def large(x): return torch.nn.functional.linear(x.flatten(1), torch.ones(2, 784))
def double(x): return x.double() @ x.float()
def detached(x): return x.detach().flatten(1)[:, :3]
def rounded(x): return x.flatten(1)[:, :1].round()
def old(frame): return frame["age"] > 19
def same(frame): return 0 * frame["age"]
"""
MODELS = """
def classes(frame): return frame["tests"] % 3
def words(frame): return np.where(logit(frame) > 0, "yes", "no")
def wide(frame): return np.zeros((len(frame), 3))
def gaps(frame): return logit(frame).where(frame["tests"] != 3)
def chance(frame): return np.random.random(len(frame)) < 0.5
class Fitted: pass
fitted = Fitted()
"""


class Trap:
    """Unpickling it writes a file: what a hostile pickle would do."""

    def __reduce__(self) -> tuple[Any, tuple[Path, str]]:
        return (Path.write_text, (Path("sprung"), "x"))


def bad_inputs(command: str) -> list[tuple[str, str, str]]:
    """The arguments, fields and message of each entry of a table."""
    table = (HERE / "bad_inputs" / f"{command}.txt").read_text().splitlines()
    cases = (case.partition(" => ")[::2] for case in table[::2])
    return [(*case, message.strip()) for case, message in zip(cases, table[1::2], strict=True)]


def write(table: pd.DataFrame, spoilt: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the table with other columns, into a CSV file of each name."""
    for name, columns in spoilt.items():
        table.assign(**columns).to_csv(f"{name}.csv", index=False)


def spoil_desk() -> None:
    """Directions that are none, tables that cannot be read or do not fit, networks that cannot be audited."""
    np.save("flat.npy", np.zeros((1, 3)))
    table = pd.read_csv("rows.csv")
    rows = np.arange(len(table))
    spoilt = {
        "missing": {"merit": table["merit"].where(~np.isin(rows, [1, 3]))},
        "gaps": {name: table[name].where(~np.isin(rows, [1, 3])) for name in ("merit", "proxy")},
        "infinite": {"merit": table["merit"].where(rows != 2, np.inf)},
        "words": {"hired": np.where(table["hired"] == 1, "yes", "no")},
        "men": {"sex": "male"},
        "wide": {"merit": 20 * table["merit"]},
    }
    write(table, spoilt)
    for name in ("header.csv", "junk.npy", "junk.pt2"):
        Path(name).write_text("a,b\n")
    torch.save(Trap(), "trap.pt")
    torch.save({"w": torch.zeros(3)}, "weights.pt")
    fixed = torch.export.export(torch.nn.Linear(3, 2).double(), (torch.zeros(4, 3, dtype=torch.float64),))
    torch.export.save(fixed, "fixed.pt2")
    with zipfile.ZipFile("fixed.pt2") as whole, zipfile.ZipFile("trap.pt2", "w") as trap:
        for name in whole.namelist():
            trap.writestr(name, Path("trap.pt").read_bytes() if "sample_inputs" in name else whole.read(name))
    Path("wrong.py").write_text(NETWORKS.replace("SEVENTH", repr(float(table["merit"][7]))))


def spoil_office() -> None:
    """Rows with gaps, of one group, and of people's names; models that are none."""
    table = pd.read_parquet("rows.parquet")
    outside = table.index[table["sex"] == "unknown"][0]
    rows = np.arange(len(table))
    spoilt = {
        "gaps": {"experience": table["experience"].where(~table.index.isin([4, 5, outside]))},
        "infinite": {"experience": table["experience"].where(~np.isin(rows, [4, 5]), np.inf)},
        "names": {"region": [f"n{row}" for row in rows]},
    }
    write(table, spoilt)
    table[table["sex"] == "female"].to_csv("women.csv", index=False)
    table.assign(experience=pd.date_range("2020", periods=len(table))).to_parquet("dates.parquet")
    table.assign(region=[[1]] * len(table)).to_parquet("lists.parquet")
    with Path("models.py").open("a") as file:
        file.write(MODELS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(torch.nn.Linear(3, 1)).save("net.pt")
        torch.jit.script(torch.nn.Linear(2, 1)).save("takes.pt")


def spoil_studio() -> None:
    """Tables that do not fit the images, images that are none, networks that cannot be audited."""
    table = pd.read_csv("attributes.csv")
    files = table["file"][1:].tolist()
    spoilt: dict[str, dict[str, Any]] = {
        "constant": {"era": "now"},
        "absent": {"file": ["a/00.png", *files]},
        "twice": {"file": ["b/001.png", *files]},
        "nameless": {"file": [None, *files]},
        "beyond": {"smiles": table["smiles"] + 1},
        "names": {"smiles": np.where(table["smiles"] == 1, "yes", "no")},
        "rare": {"sex": ["other", *table["sex"][1:]]},
    }
    write(table, spoilt)
    Path("wrong.py").write_text(IMAGE_NETWORKS)
    for folder in ("sizes", "broken"):
        Path(folder).mkdir()
    for number in range(4):
        Image.fromarray(np.zeros((4 + number // 2, 5), np.uint8)).save(f"sizes/{number}.png")
        Path("broken", f"{number}.png").write_text("no image")
    four = pd.DataFrame({"file": [f"{number}.png" for number in range(4)], "smiles": 0, "sex": ["f", "m"] * 2})
    four.to_csv("four.csv", index=False)
    people = pd.DataFrame({"age": np.arange(40.0), "sex": ["f", "m"] * 20, "y": np.arange(40) // 20})
    people.to_csv("people.csv", index=False)
    people.assign(age=people["age"].where(people["age"] != 3)).to_csv("gaps.csv", index=False)
    np.savez("kept.npz", a=np.zeros(3))


SPOIL = {"loss-ratio": spoil_desk, "fliptest": spoil_office, "robustness": spoil_studio}


@dataclass(frozen=True)
class Refusal:
    """How a command ends: the ``error`` (None where the parser refuses), what is ``said``, and which files are new."""

    status: int
    out: str
    said: str
    error: Exception | None
    new: frozenset[Path]


@pytest.fixture(scope="session")
def spoilt(built: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """An audit's folder with what can be wrong in it, made once: nothing is left behind there."""

    @cache
    def made(name: str) -> Path:
        folder = tmp_path_factory.mktemp("spoilt")
        shutil.copytree(built(name), folder, dirs_exist_ok=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            SPOIL.get(name, lambda: None)()
            Path("taken").mkdir()
        return folder

    return made


def files_in(folder: Path) -> frozenset[Path]:
    return frozenset(path for path in folder.rglob("*") if "__pycache__" not in path.parts)


@pytest.fixture(scope="session")
def refused(spoilt: Callable[[str], Path]) -> Callable[[str, str], Refusal]:
    """How a command with these arguments ends, each run once."""

    @cache
    def ran(name: str, given: str) -> Refusal:
        folder, raised = spoilt(name), list[Exception]()
        before = files_in(folder)
        for short, meant in SHORT.items():
            given = given.replace(short, meant)
        arguments = shlex.split(given)
        metric = name == "loss-ratio" and not {"--directions", "--sensitive"} & set(arguments)
        arguments += ["--directions", "directions.npy"] * metric + ["--output", "out"] * ("--output" not in given)

        def recorded(parsed: Namespace) -> int:
            try:
                return run_parsed(parsed)
            except Exception as error:
                raised.append(error)
                raise

        run_parsed = entry._run
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setattr(sys, "path", list(sys.path))
            for module in (MODULE_NAME, "models", "wrong"):
                patch.delitem(sys.modules, module, raising=False)
            patch.setattr(entry, "_run", recorded)
            status, out, err = run(name, *arguments)
        return Refusal(status, out, err, next(iter(raised), None), files_in(folder) - before)

    return ran


@pytest.mark.parametrize(
    ("command", "given", "fields", "message"),
    [pytest.param(name, *entry, id=f"{name} {entry[0]}") for name in AUDITS for entry in bad_inputs(name)],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_bad_input_is_refused_with_one_message(
    refused: Callable[[str, str], Refusal], command: str, given: str, fields: str, message: str
) -> None:
    found = refused(command, given)
    assert (found.status, found.out, found.new) == (2, "", frozenset()), found.said
    said = found.said.splitlines()
    if found.error is not None:
        assert (len(said), said[0].partition(" ")[0]) == (1, "error:")
    if fields:
        assert isinstance(found.error, InvalidInput), found
        named = dict(field.split("=", 1) for field in shlex.split(fields))
        assert {name: str(value) for name, value in fields_of(found.error).items()} == named
        assert said[0].endswith(found.error.remedy)
    shown = OF_A_LIBRARY.sub("...", said[-1])
    if os.environ.get("REWORD"):
        table = HERE / "bad_inputs" / f"{command}.txt"
        head = f"{given} => {fields}" if fields else given
        table.write_text(table.read_text().replace(f"{head}\n    {message}\n", f"{head}\n    {shown}\n"))
    else:
        assert shown == message


# Generated tables at the three commands of tables: every end is a result or a message that can be acted on.
#
# FUZZ_CASES sets how many tables each command gets, FUZZ_SEED where they begin.


CASES = int(os.environ.get("FUZZ_CASES", "12"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
FUNCTIONS = """
import torch
def network(x): return x.mean(-1)
def steep(x): return torch.sigmoid(1e6 * x.sum(-1))
def constant(x): return 0 * x.sum(-1) + 0.5
def decide(frame): return (frame.select_dtypes("number").sum(axis=1) > 0).astype(int).to_numpy()
def share(frame): return 1 / (1 + frame.select_dtypes("number").abs().sum(axis=1).to_numpy())
def lengths(frame): return frame.astype(str).map(len).sum(axis=1).to_numpy() % 2
"""


TEXTS = np.array(["a", "b", "ä, ö", 'quo"te', "", "NA", "01", " x ", "line\nbreak"], dtype=object)


def column(rng: np.random.Generator, n: int) -> np.ndarray:
    """One column of any kind of values."""
    kinds: tuple[Callable[[], object], ...] = (
        lambda: rng.normal(size=n),
        lambda: rng.integers(0, 5, n),
        lambda: rng.normal(size=n) * 10.0 ** rng.integers(-300, 300),
        lambda: np.full(n, 7),
        lambda: np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        lambda: np.where(rng.random(n) < 0.05, np.inf, rng.normal(size=n)),
        lambda: rng.choice(TEXTS, n),
        lambda: rng.choice(np.array([True, False]), n),
        lambda: np.arange(n).astype(str),
        lambda: np.array(["2020-01-01"] * n, dtype="datetime64[D]"),
        lambda: np.array([1.5 if rng.random() < 0.9 else "?" for _ in range(n)], dtype=object),
        lambda: rng.random(n),
        lambda: (rng.random(n) < rng.choice([0.001, 0.5, 0.999])).astype(int),
        lambda: rng.integers(-(2**62), 2**62, n),
    )
    return np.asarray(kinds[rng.integers(len(kinds))]())


def table(rng: np.random.Generator) -> pd.DataFrame:
    """Rows with a label, a group, a score, a decision and features, of which any may be out of order."""
    n = int(rng.choice([0, 1, 2, 3, 8, 40, 150, 400], p=[0.01, 0.01, 0.02, 0.02, 0.04, 0.2, 0.35, 0.35]))
    merit = rng.normal(size=n)
    levels = np.array(["north", "south", "Ünder", "x=1", "a,b", "north "])[: rng.choice([1, 2, 2, 3, 6])]
    label, shares = (merit + rng.normal(size=n) > rng.normal()).astype(int), rng.dirichlet(np.full(len(levels), 5.0))
    frame = pd.DataFrame({"y": label, "g": rng.choice(levels, n, p=shares), "s": 1 / (1 + np.exp(-merit))})
    frame = frame.assign(d=(merit > 0).astype(int), merit=merit)
    for extra in range(rng.choice([0, 0, 1, 3])):
        frame[("age", "größe", "zip code")[extra]] = column(rng, n)
    for name in frame.columns:
        if rng.random() < 0.04:
            frame[name] = column(rng, n)
    return frame.sample(frac=1, random_state=int(rng.integers(2**31))) if rng.random() < 0.2 else frame


def written(rng: np.random.Generator, frame: pd.DataFrame, path: Path) -> Path:
    """The table in one of the ways in which people keep tables."""
    if rng.random() < 0.25:
        file = path / "rows.parquet"
        try:
            frame.to_parquet(file, index=False)
            return file
        except (TypeError, ValueError, OverflowError):
            pass  # mixed types have no Parquet
    file = path / "rows.csv"
    encoding = str(rng.choice(["utf-8", "utf-8-sig", "latin-1", "utf-16"], p=[0.8, 0.15, 0.03, 0.02]))
    separator = str(rng.choice([",", ";"], p=[0.97, 0.03]))
    frame.to_csv(file, index=False, encoding=encoding, sep=separator, errors="replace")
    if rng.random() < 0.02:
        file.write_bytes(file.read_bytes()[: len(file.read_bytes()) // 2])
    return file


def permutation(rng: np.random.Generator, file: Path) -> list[str]:
    metrics = ["auc", "tpr", "fpr", "precision", "selection_rate", "mean_error", "log_loss", "accuracy", "correlation"]
    chosen = ",".join(rng.choice(metrics, rng.integers(1, 4), replace=False))
    given = ["--predictions", str(file), "--label", "y", "--group", "g", "--score", "s", "--metric", chosen]
    given += ["--prediction", "d"] if rng.random() < 0.9 else []
    given += ["--attribute", "merit"] if "correlation" in chosen else []
    options = "--draws=999 --threshold=0.5 --pairs --method=studentized --positive=1 --correct=holm --attribute=merit"
    return given + [option for option in options.split() if rng.random() < 0.2]


def loss_ratio(rng: np.random.Generator, file: Path) -> list[str]:
    model = f"{file.parent / 'models.py'}:{rng.choice(['network', 'steep', 'constant'], p=[0.8, 0.1, 0.1])}"
    given = ["--data", str(file), "--label", "y", "--sensitive", "g=south", "--model", model, "--steps", "5"]
    given += ["--standardize", "continuous"]
    options = "--standardize=none --drop=s,d --points=20 --positive=1"
    return given + [option for option in options.split() if rng.random() < 0.4]


def fliptest(rng: np.random.Generator, file: Path) -> list[str]:
    model = f"{file.parent / 'models.py'}:{rng.choice(['decide', 'share', 'lengths'])}"
    given = ["--data", str(file), "--group", "g", "--source", "south", "--target", "north", "--predict", model]
    options = "--label=y --drop=s,d --reverse --map=exact --limit=30 --id=merit --threshold=0.5 --null-draws=0"
    return given + [option for option in options.split() if rng.random() < 0.3]


ARGUMENTS = {"permutation": permutation, "loss-ratio": loss_ratio, "fliptest": fliptest}


@pytest.mark.parametrize("case", range(SEED, SEED + CASES))
@pytest.mark.parametrize("command", ARGUMENTS)
def test_every_end_is_a_result_or_a_message(command: str, case: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([case, len(command)])
    (tmp_path / "models.py").write_text(FUNCTIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        file = written(rng, table(rng), tmp_path)
        given = [command, *ARGUMENTS[command](rng, file), "--json", str(tmp_path / "audit.json"), "--gate"]
        status, _, err = ended(given)
    if status == 2:
        assert "error: " in err
        assert "Traceback" not in err
        # What is wrong has a place: a column, an option or the file.
        names = COMMANDS[command].options
        assert any(place in err for place in ("'", "--", file.name)) or set(names) & set(re.findall(r"\w+", err)), err
        assert not (tmp_path / "audit.json").exists()
        return
    document = json.loads((tmp_path / "audit.json").read_text(), parse_constant=lambda name: pytest.fail(name))
    verdict = document["verdict"]
    assert status == STATUS[verdict["outcome"]], err
    assert "nan" not in verdict["sentence"].lower().split()
    if verdict["outcome"] == "inconclusive":
        assert verdict["reason"]
