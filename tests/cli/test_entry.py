"""The entry finds audits, and every failure ends in one message and a status that tells its kind."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline import __version__
from pipeline.cli.entry import audits, main

TOY = '''"""Toy audit: fails as told.

It has a second paragraph."""

from dataclasses import dataclass
from pipeline.cli.result import Result, Verdict
from pipeline.cli.settings import Output, option

EXAMPLES, PAGE, FILES = "example: toy\\n", "There is no page.", "nothing else"

@dataclass(frozen=True, kw_only=True)
class Settings(Output):
    fail: str = option("how it fails", "no")

def from_files(arguments):
    errors = {"value": ValueError("column 'x' is odd: drop it"), "file": FileNotFoundError("no file y"),
              "torch": ModuleNotFoundError("no torch", name="torch"), "bug": KeyError("z"), "keys": KeyboardInterrupt()}
    if arguments.fail in errors:
        raise errors[arguments.fail]
    return Result("toy", 1, "Toy", "nothing", Verdict("not rejected", "FINE", "All is well."), (), (), {}, {})
'''


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file dropped into the folder of audits, and nothing else."""
    (tmp_path / "toy_audit.py").write_text(TOY)
    package = importlib.import_module("pipeline.cli.audit")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "pipeline.cli.audit.toy_audit", raising=False)


@pytest.mark.usefixtures("toy")
def test_a_file_in_the_folder_is_an_audit(capsys: pytest.CaptureFixture[str]) -> None:
    assert {"loss-ratio", "permutation", "toy-audit"} <= set(audits())
    assert main(["audit", "toy-audit"]) == 0
    assert "FINE. All is well." in capsys.readouterr().out


@pytest.mark.usefixtures("toy")
def test_every_level_has_a_help(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for level in ([], ["audit"], ["audit", "toy-audit"]):
        with pytest.raises(SystemExit) as left:
            main([*level, "--help"])
        assert left.value.code == 0
        said.append(capsys.readouterr().out)
    assert "audit" in said[0]
    assert "Toy audit: fails as told." in said[1]
    assert "second paragraph" in said[2]
    assert "example: toy" in said[2]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("kind", "status", "message"),
    [
        ("value", 2, "error: column 'x' is odd: drop it\n"),
        ("file", 2, "error: no file y\n"),
        ("bug", 1, "unexpected error: KeyError: 'z' (--debug shows where)\n"),
        (
            "torch",
            2,
            "error: this audit needs torch, which is not installed: pip install --editable '.[torch]' in the "
            "project's folder\n",
        ),
        ("keys", 130, "interrupted: no result was written\n"),
    ],
)
def test_an_error_is_one_line_on_stderr_and_a_status(
    kind: str, status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "toy-audit", "--fail", kind]) == status
    assert capsys.readouterr() == ("", message)


@pytest.mark.usefixtures("toy")
def test_debug_adds_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "toy-audit", "--fail", "value", "--debug"]) == 2
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("error: column 'x' is odd: drop it\n")


def test_wrong_words_end_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        ([], "the following arguments are required: COMMAND"),
        (["audit", "nothing"], "invalid choice: 'nothing'"),
        (["audit", "loss-ratio", "--data", "x"], "the following arguments are required: --label, --model"),
        (["audit", "loss-ratio", "--lab", "y"], "unrecognized arguments: --lab y"),
        (["audit", "permutation"], "the following arguments are required: --predictions, --label, --metric"),
    ):
        with pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code == 2
        assert message in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.strip() == __version__


def test_help_is_quick_because_it_imports_nothing_heavy() -> None:
    program = (
        "import sys\nfrom pipeline.cli.entry import parser\nparser()\n"
        "print([name for name in ('torch', 'pandas', 'sklearn', 'matplotlib', 'scipy') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
