"""What every audit says to somebody who gave it something else than it expects: one message, and no files."""

import shlex
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from pipeline.cli.model import MODULE_NAME

Command = Callable[..., tuple[int, str, str]]
SIDE = 4
COMMANDS = ("loss-ratio", "permutation", "fliptest", "robustness")
TABLES = Path(__file__).parent / "bad_inputs"
"""For each audit, lines of arguments => what the message has in it; what is usual is added, but for options after no.

The files and functions that they name are made below. Beside them, the arguments that are refused before anything is
read: arguments => the audits that they are given to => what the message has in it.
"""
SHORT = {
    "AUC": "--score p --group sex --metric auc",
    "OWN:": "--score p --group sex --metric own.py:",
    "SEX": "--sensitive sex",
}
OWN = """
def words(y, score, weight): return 'x'
def boo(y, score, weight): return {}['boo']
def beyond(y, score, weight): return y[10**6]
def says(y, score, weight): raise ValueError('no such thing')
"""
NETWORKS = """
import torch
W = torch.tensor([[1.0, -1.0], [0.5, 0.0], [2.0, 1.0]], dtype=torch.float64)
number = 3
def few(x): return x @ W[:2]
def single(x): return x @ W.float()
def array(x): return (x @ W).detach().numpy()
def pair(x): return x @ W, 1
def wide(x): return torch.cat([x, 2 * x], 1)
def cube(x): return x[:, None]
def total(x): return (x @ W).sum()
def classes(x): return (x @ W).argmax(1)
def detached(x): return (x @ W).detach()
def rounded(x): return (x @ W).sign()
def constant(x): return 0 * (x @ W) + 0.3
def company(x): return x @ W - (x @ W).mean(0)
def chance(x): return torch.nn.functional.dropout(x @ W)
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
def product(x): return x @ x[:, :, :2]
def double(x): return x.double() @ x.float()
def same(x): return x
def pair(x): return (x.flatten(1),)
def classes(x): return x.flatten(1).argmax(1)
def company(x): return x.flatten(1)[:, :2] - x.mean()
def detached(x): return x.detach().flatten(1)[:, :3]
def rounded(x): return x.flatten(1)[:, :1].round()
"""
MODELS = """
def classes(frame): return frame["tests"] % 3
def words(frame): return np.where(logit(frame) > 0, "yes", "no")
def wide(frame): return np.zeros((len(frame), 3))
def one(frame): return 1.0
def gaps(frame): return logit(frame).where(frame["tests"] != 3)
def chance(frame): return np.random.random(len(frame)) < 0.5
def company(frame): return (logit(frame) > logit(frame).mean()).astype(int)
class Fitted: pass
fitted = Fitted()
"""


class Trap:
    """Unpickling it writes a file: what a hostile pickle would do."""

    def __reduce__(self) -> tuple[Any, tuple[Path, str]]:
        return (Path.write_text, (Path("sprung"), "x"))


def lines(table: str) -> list[list[str]]:
    """The parts of each line of a table."""
    return [line.split(" => ") for line in (TABLES / f"{table}.txt").read_text().splitlines()]


def spoil_desk() -> None:
    """Directions that are none, tables that cannot be read or do not fit, networks that cannot be audited."""
    np.save("flat.npy", np.zeros((1, 3)))
    table = pd.read_csv("rows.csv")
    rows = np.arange(len(table))
    spoilt: dict[str, dict[str, Any]] = {
        "missing": {"merit": table["merit"].where(~np.isin(rows, [1, 3]))},
        "infinite": {"merit": table["merit"].where(rows != 2, np.inf)},
        "unlabelled": {"hired": table["hired"].where(rows != 1)},
        "sexless": {"sex": table["sex"].where(rows != 3)},
        "three": {"hired": np.array(["a", "b", "c"])[rows % 3]},
        "hired": {"hired": 1},
        "words": {"hired": np.where(table["hired"] == 1, "yes", "no")},
        "men": {"sex": "male"},
        "flat": {"member": 1},
        "wide": {"merit": 20 * table["merit"]},
    }
    for name, columns in spoilt.items():
        table.assign(**columns).to_csv(f"{name}.csv", index=False)
    table.to_csv("semicolons.csv", index=False, sep=";")
    table.assign(member=table["member"].astype("Int64").where(rows != 1)).to_parquet("nullable.parquet")
    for name, content in {
        **{"t.xlsx": b"x", "empty.csv": b"", "header.csv": b"a,b\n", "nameless.csv": b",a\n0,1\n"},
        **{"twice.csv": b"a,b,a\n1,2,3\n", "ragged.csv": b"a,b\n1,2\n1,2,3\n", "latin.csv": b"a,b\n1,\xe9\n"},
        **dict.fromkeys(("plain.csv.gz", "plain.parquet", "junk.npy", "junk.pt", "junk.pt2"), b"a,b\n1,2\n"),
    }.items():
        Path(name).write_bytes(content)
    for thing, name in ((Trap(), "trap"), (np.zeros(3, dtype=object), "array"), ({"w": torch.zeros(3)}, "weights")):
        torch.save(thing, f"{name}.pt")
    fixed = torch.export.export(torch.nn.Linear(3, 2).double(), (torch.zeros(4, 3, dtype=torch.float64),))
    torch.export.save(fixed, "fixed.pt2")
    Path("wrong.py").write_text(NETWORKS.replace("SEVENTH", repr(float(table["merit"][7]))))


def spoil_ledger() -> None:
    """Metrics that fail."""
    Path("own.py").write_text(OWN)


def spoil_office() -> None:
    """Rows with gaps, of one group, and of people's names; models that are none."""
    table = pd.read_parquet("rows.parquet")
    outside = table.index[table["sex"] == "unknown"][0]
    rows = np.arange(len(table))
    spoilt: dict[str, dict[str, Any]] = {
        "gaps": {"experience": table["experience"].where(~table.index.isin([4, 5, outside]))},
        "infinite": {"experience": table["experience"].where(~np.isin(rows, [4, 5]), np.inf)},
        "anybody": {"sex": table["sex"].where(table.index != 3)},
        "names": {"region": [f"n{row}" for row in rows]},
    }
    for name, columns in spoilt.items():
        table.assign(**columns).to_csv(f"{name}.csv", index=False)
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
    Path("wrong.py").write_text(IMAGE_NETWORKS)
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
    torch.save({"weight": torch.zeros(3)}, "weights.pt")


SPOIL = {"loss-ratio": spoil_desk, "permutation": spoil_ledger, "fliptest": spoil_office, "robustness": spoil_studio}


@pytest.fixture(scope="session")
def spoilt(built: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """An audit's folder with what can be wrong in it, made once: nothing is left behind there."""
    known: dict[str, Path] = {}

    def made(name: str) -> Path:
        if name not in known:
            known[name] = tmp_path_factory.mktemp("spoilt")
            shutil.copytree(built(name), known[name], dirs_exist_ok=True)
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(known[name])
                SPOIL[name]()
                Path("taken").mkdir()
        return known[name]

    return made


@pytest.mark.parametrize(
    ("name", "given", "messages"),
    [(name, given, messages) for name in COMMANDS for given, *messages in lines(name)],
    ids=lambda value: None if isinstance(value, list) else value,
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_failure_is_one_message_and_leaves_nothing_behind(
    run: Command,
    spoilt: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    given: str,
    messages: list[str],
) -> None:
    folder = spoilt(name)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for module in (MODULE_NAME, "models", "wrong", "own"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    before = {path for path in folder.rglob("*") if "__pycache__" not in path.parts}
    for short, meant in SHORT.items():
        given = given.replace(short, meant)
    words = shlex.split(given)
    arguments = [word for word in words if not word.startswith("no--")]
    metric = name == "loss-ratio" and not {"--directions", "--sensitive"} & set(arguments)
    arguments += ["--directions", "directions.npy"] * metric + ["--output", "out"] * ("--output" not in given)
    left_out = tuple(word.removeprefix("no") for word in words if word.startswith("no--"))
    status, out, err = run(name, *arguments, without=left_out)
    assert (status, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("error: ")
    for message in messages:
        assert message in err
    assert {path for path in folder.rglob("*") if "__pycache__" not in path.parts} == before


@pytest.mark.parametrize(
    ("audit_name", "given", "message"),
    [(name, given, message) for given, names, message in lines("before_reading") for name in names.split()],
)
def test_a_wrong_argument_is_refused_before_anything_is_read(
    run: Command, capsys: pytest.CaptureFixture[str], audit_name: str, given: str, message: str
) -> None:
    needed = {"loss-ratio": "--directions none.npy", "permutation": "--metric auc"}.get(audit_name, "")
    with pytest.raises(SystemExit, match="2"):
        run(audit_name, *shlex.split(f"{needed} {given}"))
    assert message in capsys.readouterr().err
