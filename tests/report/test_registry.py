"""A study's artefacts are those that its modules declare: each can be made, and one function adds one."""

import subprocess
import sys
from pathlib import Path

import pytest

import pipeline.report
from pipeline.io import load_published
from pipeline.report import registry
from pipeline.report.comparison import check_published
from pipeline.workflow.config import Workflow

STUDIES = Workflow().studies
MODULE = '''
from pipeline.report import registry

@registry.figure(place=2)
def figure_late(inputs):
    """The later one."""

@registry.figure("figure_7", "Of the sevens.", power=7)
@registry.figure("figure_2", "Of the "
                 "twos.", power=2)
def power(inputs, power):
    return inputs**power

@registry.table(place=1)
def table_early(inputs):
    """A caption
    of two lines.
    """

@registry.table()
def table_last(inputs):
    """It has no place."""

@registry.table()
def comparison(inputs, published):
    """Ours and theirs."""
'''


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty study beside the others."""
    monkeypatch.setattr(pipeline.report, "__path__", [*pipeline.report.__path__, str(tmp_path)])
    (tmp_path / "added").mkdir()
    return tmp_path / "added"


@pytest.mark.parametrize("name", STUDIES)
def test_the_list_of_published_numbers_names_artefacts_of_the_study(name: str) -> None:
    published = load_published(f"data/published/{name}.csv")
    check_published(published)
    assert not published.duplicated(["artefact", "row", "column"]).any()
    assert set(published["by"].dropna()) <= {one.name for one in registry.declared(name)}


@pytest.mark.parametrize("name", STUDIES)
def test_what_is_declared_is_what_the_modules_register(name: str) -> None:
    declared = registry.declared(name)
    for one in declared:
        assert callable(registry.find(name, one.name))
        assert one.caption.endswith("."), one.name
        assert one.name.startswith(one.kind) or one.name == "comparison"
    made = {found for found in registry._makers if found[0].startswith(f"pipeline.report.{name}.")}
    assert made == {(one.module, one.name) for one in declared}


def test_one_function_in_one_file_adds_a_figure(study: Path) -> None:
    """It is planned, found, and made with the arguments of its own decorator."""
    (study / "artefacts.py").write_text(MODULE)
    tables, figures = (
        [one.name for one in registry.declared("added") if one.kind == kind] for kind in ("table", "figure")
    )
    assert tables == ["table_early", "comparison", "table_last"]
    assert figures == ["figure_2", "figure_7", "figure_late"]
    assert [registry.label(name, figures) for name in figures] == ["Figure 2", "Figure 7", "Figure S1"]
    assert registry.one("added", "figure_2").caption == "Of the twos."
    assert registry.one("added", "table_early").caption == "A caption of two lines."
    assert registry.find("added", "figure_7")(2) == 128
    workflow = Workflow()
    assert "results/figures/added/figure_late.pdf" in workflow.artefact_files("added")
    marked = {str(path): path.flags["report"] for path in workflow.marked("added") if hasattr(path, "flags")}
    assert set(marked) == {path for path in workflow.artefact_files("added") if path.endswith((".csv", ".png"))}
    assert marked["results/figures/added/figure_late.png"].caption.endswith("results/captions/added/figure_late.rst")


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("", "study 'added' has no artefacts: declare them in pipeline/report/added/"),
        ("def figure_1(inputs): ...", "study 'added' has no artefacts"),
        ("@registry.figure()\ndef figure_1(inputs): ...", "figure_1 has no caption: give it one or a docstring"),
        ("@registry.figure('figure_1', text)\ndef f(inputs): ...", "f: name, caption and place have to be literals"),
        ("@registry.figure('figure_1', 'A.')\n" * 2 + "def f(inputs): ...", "declares figure_1 more than once"),
    ],
)
def test_a_declaration_that_cannot_be_read_is_refused(module: str, said: str, study: Path) -> None:
    (study / "artefacts.py").write_text(module)
    with pytest.raises(ValueError, match=said):
        registry.declared("added")


def test_an_unknown_artefact_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match="no artefact 'tabel_1': did you mean 'table_1'"):
        registry.find("individual_fairness", "tabel_1")


def test_a_study_s_code_is_all_that_makes_its_artefacts_and_planning_imports_none_of_it() -> None:
    program = (
        "import sys\nfrom pipeline.workflow.config import Workflow\nworkflow = Workflow()\n"
        "assert 'pipeline/report/fliptest/bars.py' in workflow.code('artefacts', study='fliptest')\n"
        "assert not any('fliptest' in path for path in workflow.code('artefacts', study='robustness_bias'))\n"
        "assert not {'pandas', 'scipy', 'matplotlib'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
