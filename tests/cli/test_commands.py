"""What holds of all four audits alike: their files, their pages, their help, and how they run from a shell."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.cli.entry import audits, main, parser

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[..., tuple[int, str, str]]
AUDITS = {
    "loss-ratio": ("desk", "--sensitive sex", "examples.csv loss_ratio.pdf loss_ratio.png tests.csv"),
    "permutation": (
        "ledger",
        "--score p --threshold 0.5 --group sex --metric auc,tpr",
        "differences.pdf differences.png tests.csv",
    ),
    "fliptest": (
        "office",
        "--reverse --null-draws 3",
        "flipsets.csv marginals_forward.pdf marginals_forward.png marginals_reverse.pdf marginals_reverse.png "
        "transparency.csv transparency_forward.pdf transparency_forward.png transparency_reverse.pdf "
        "transparency_reverse.png",
    ),
    "robustness": ("studio", "--group sex,place", "curves_exact.pdf curves_exact.png distances.csv groups.csv"),
}
"""Each audit's folder, arguments, and files besides audit.json and the page."""
SHELL = {
    "loss-ratio": "--data rows.csv --label hired --drop region --sensitive sex --steps 20 --model unfair.pt",
    "permutation": "--predictions preds.parquet --label y --score p --group sex --draws 39 --metric auc",
    "fliptest": "--data rows.csv --group sex --source female --target male --drop person,hired --null-draws 0 "
    "--predict models.py:probability",
    "robustness": "--images faces --label smiles --partition attributes.csv --permutations 99 --model model.pt",
}


@pytest.mark.parametrize("name", AUDITS)
def test_an_audit_leaves_the_same_bytes_twice_and_all_that_it_names(
    run: Command, request: pytest.FixtureRequest, name: str
) -> None:
    """The page is whole, and says what the JSON and the terminal say."""
    folder, given, files = AUDITS[name]
    place: Path = request.getfixturevalue(folder)
    said = ""
    for out in ("one", "two"):
        status, said, err = run(name, *shlex.split(given), "--output", out, "--json", "also.json")
        assert (status, err) == (0, "")
    page = f"{name.replace('-', '_')}.html"
    names = sorted(["audit.json", "audit.yaml", page, *files.split()])
    assert sorted(path.name for path in (place / "one").iterdir()) == names
    for file in names:
        assert (place / "one" / file).read_bytes() == (place / "two" / file).read_bytes(), file
        assert f"written: two/{file}\n" in said
    made = json.loads((place / "one" / "audit.json").read_text())
    assert sorted(made["files"].values()) == names
    assert made == json.loads((place / "also.json").read_text())
    shown = (place / "one" / page).read_text()
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", shown)
    assert shown.count("data:image/png;base64,") == sum(file.endswith(".png") for file in names)
    shown = re.sub("<[^>]*>", "", shown).replace("\u2212", "-").replace("&#x27;", "'").replace("&gt;", ">")
    for text in (made["verdict"]["sentence"], *made["caveats"]):
        assert text in " ".join(said.split())
        assert text.replace("S_n", "Sn") in shown
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize("name", AUDITS)
def test_from_the_shell(request: pytest.FixtureRequest, name: str) -> None:
    place: Path = request.getfixturevalue(AUDITS[name][0])
    command = [sys.executable, "-m", "pipeline", "audit", name, *shlex.split(SHELL[name])]
    told = {"capture_output": True, "text": True, "env": {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}}
    good = subprocess.run([*command, "--output", "out"], **told)  # type: ignore[call-overload]
    assert (good.returncode, good.stderr) == (0, "")
    for file in (place / "out").glob("*.p[nd]*"):
        assert file.read_bytes().startswith(b"%PDF" if file.suffix == ".pdf" else b"\x89PNG")
    bad = subprocess.run([*command[:-1], "absent.py:x"], **told)  # type: ignore[call-overload]
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("error: ")


@pytest.mark.parametrize("name", AUDITS)
def test_the_help_names_every_option_and_its_examples_can_be_parsed(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    examples = audits()[name].EXAMPLES
    with pytest.raises(SystemExit):
        main(["audit", name, "--help"])
    said = capsys.readouterr().out
    assert examples in said
    commands = re.findall(rf"python -m pipeline (audit {name}(?:.*\\\n)*.*)", examples)
    assert len(commands) >= 2
    for command in commands:
        words = shlex.split(command.replace("\\\n", " "))
        parser().parse_args(words)
        for option in (word for word in words if word.startswith("--")):
            assert option in said
