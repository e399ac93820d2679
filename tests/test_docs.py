"""The examples of the documentation run as they stand, and its tables match the committed results."""

import importlib
import inspect
import json
import re
import shlex
from pathlib import Path
from shutil import copytree

import numpy as np
import pandas as pd
import pytest
import torch

import fairness_audits as fa
from docs import findings
from fairness_audits.cli.entry import main
from fairness_audits.results import render
from pipeline import io
from pipeline.jobs import Run
from pipeline.report import registry
from pipeline.stages import audit, collect, fetch, prepare, sweep, train, transport
from pipeline.workflow.conf import CONF
from tests.cli.places import scripted
from tests.lock import pages

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")))
    if "_build" not in path.parts
}
FILES = re.compile(r"^```(?:python|yaml)\n# ((?:pipeline|conf)/\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = dict(FILES.findall(PAGES["docs/extending.md"]))


@pytest.fixture
def conf(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's configuration with the files of docs/extending.md beside its own, and their modules importable."""
    copytree(CONF, "conf")
    for name, text in EXAMPLES.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    for group in ("datasets", "methods", "transport", "audits"):
        package = importlib.import_module(f"pipeline.{group}")
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(here / "pipeline" / group)])
    monkeypatch.delenv("PIPELINE_TRACKER", raising=False)
    return here / "conf"


def test_the_example_dataset_method_and_audit_run_as_they_stand(conf: Path) -> None:
    assert len(EXAMPLES) == 9
    run = Run(scale="smoke", conf=conf)
    points = [point for point in run.points("mine") if point.dataset == "two_incomes"]
    assert len(points) == 3
    for point in points:
        dataset, method = point.name("dataset"), point.name("method")
        made = {"manifest": "manifest.json", "dataset": f"{dataset}.npz", "classifier": f"{method}.npz"}
        fetch.main(["--dataset", "two_incomes", "--source", "auto", "--raw", "raw", "--output", made["manifest"]])
        maps = ["maps.npz"] * bool(point.transport)
        inputs = {**{name: [path] for name, path in made.items()}, "transport": maps}
        io.save(prepare.make(run.section("prepare", point), inputs), made["dataset"])
        io.save(train.make(run.section("train", point), inputs), made["classifier"])
        for path in maps:
            io.save(transport.make(run.section("transport", point), inputs), path)
        io.save(audit.make(run.section("audit", point), inputs), run.path("audit", point))
    entries = [entry for entry in run.collect("mine") if Path(entry["path"]).exists()]
    collect.main(["--study", "mine", "--scale", "smoke", "--audits", json.dumps(entries), "--output", "rows.parquet"])
    rows = io.load_rows("rows.parquet")
    gaps = rows[rows["statistic"] == "accuracy_gap"]
    assert gaps["value"].between(-1, 1).all()
    # The sign of the score does not depend on its scale, so neither does the audit.
    first, second = (gaps.loc[gaps["sharpness"] == value, "value"].to_list() for value in (0.5, 1.0))
    assert first == second
    section = json.dumps(run.sweep("mine"))
    sweep.main(["--config", section, "--rows", "rows.parquet", "--summary", "summary.csv", "--figure", "figure"])
    assert Path("figure.pdf").stat().st_size > 5_000
    # Men earn more, so a woman moved to where men are may be accepted where she was not, and never the reverse.
    sizes = rows[(rows["statistic"] == "size") & (rows["direction"] == "forward")].groupby("flipset")["value"].sum()
    assert sizes["positive"] == 0 < sizes["negative"]


def commands(text: str) -> list[list[str]]:
    """The arguments of every ``fairness-audits`` that ``text`` prints in a block or, without a ``<``, inline."""
    printed = re.findall(r"^fairness-audits ((?:.*\\\n)*.*)$", text, re.MULTILINE)
    printed += re.findall(r"`fairness-audits ([^`<]*)`", text)
    return [shlex.split(line.replace("\\\n", " ")) for line in printed]


@pytest.mark.parametrize(
    "page", ["README.md", "docs/getting_started.md", "docs/guide/loss_ratio.md", "docs/guide/command_line.md"]
)
@pytest.mark.usefixtures("here")
def test_the_loss_ratio_commands_run_as_they_stand(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = [arguments for arguments in commands(PAGES[page]) if arguments[0] in ("loss-ratio", "--help")]
    assert len(found) == 1
    rng = np.random.default_rng(0)
    sex, white, skill = (rng.integers(0, 2, 400), rng.integers(0, 2, 400), rng.standard_normal(400))
    columns = {"experience": skill + rng.standard_normal(400), "hours": skill + sex + 0.5 * rng.standard_normal(400)}
    columns["training"] = skill + white + 0.5 * rng.standard_normal(400)
    rows = pd.DataFrame(columns, dtype=np.float32).assign(sex=np.where(sex == 1, "Male", "Female"))
    likes = rng.random(400) < 1 / (1 + np.exp(-2 * skill))
    # Without a named level, race has two; the guide names the level of race that is compared with the rest.
    if page != "docs/guide/loss_ratio.md":
        rows = rows.assign(race=np.where(white == 1, "White", "Black"), y=likes.astype(int))
    else:
        others = np.where(rng.random(400) < 0.5, "Black", "Other")
        rows = rows.assign(race=np.where(white == 1, "White", others), income=np.where(likes, ">50K", "<=50K"))
    rows.to_parquet("rows.parquet")
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()
    scripted(network, "model.pt")
    batch = torch.export.Dim("rows", min=1)
    torch.export.save(torch.export.export(network, (torch.zeros(5, 3),), dynamic_shapes=({0: batch},)), "model.pt2")
    for arguments in found:
        if "--help" in arguments:
            with pytest.raises(SystemExit, match="0"):
                main(arguments)
        else:
            assert main(arguments) == 0, capsys.readouterr().err
            assert capsys.readouterr().out.startswith("Loss-ratio audit of ")
        if "--output" in arguments:
            names = {path.name for path in Path(arguments[arguments.index("--output") + 1]).iterdir()}
            figure = {"loss_ratio.html", "loss_ratio.png", "loss_ratio.pdf"}
            assert names == {"audit.json", "audit.yaml", "tests.csv", "examples.csv", *figure}


@pytest.mark.parametrize(
    ("page", "count"), [("README.md", 2), ("docs/getting_started.md", 2), ("docs/guide/fliptest.md", 1)]
)
@pytest.mark.usefixtures("here")
def test_the_commands_on_groups_run_as_they_stand(page: str, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    found = [arguments for arguments in commands(PAGES[page]) if arguments[0] in ("permutation", "fliptest")]
    assert len(found) == count
    rng = np.random.default_rng(0)
    skill, group = rng.standard_normal(200), rng.integers(0, 2, 200)
    likes = (rng.random(200) < 1 / (1 + np.exp(-skill))).astype(int)
    fa.example_data().to_csv("people.csv", index=False)
    rows = {"skill": skill + group, "hours": rng.standard_normal(200), "race": np.where(group, "White", "Black")}
    pd.DataFrame({**rows, "y": likes}).to_parquet("rows.parquet")
    scripted(torch.nn.Linear(2, 2).eval(), "model.pt")
    for arguments in found:
        assert main(arguments) == 0, capsys.readouterr().err


def test_the_page_of_figures_has_each_figure_of_a_study_with_a_reference() -> None:
    page = PAGES["docs/gallery.md"]
    shown = re.findall(r"^!\[.+\]\(images/(\w+)/(\w+)\.png\)$", page, re.MULTILINE)
    not_run = re.findall(r"^### Figure .+\n\n(?:Not run|No sigma by)", page, re.MULTILINE)
    studies = sorted(path.parent.name for path in (ROOT / "data" / "reference").glob("*/manifest.json"))
    figures = {(study, one.name) for study in studies for one in registry.declared(study) if one.kind == "figure"}
    assert len(shown) == len(set(shown))
    assert set(shown) <= figures, "make gallery"
    assert len(shown) + len(not_run) == len(figures), "make gallery"


@pytest.mark.parametrize("path", pages.TESTED, ids=lambda path: path.stem)
def test_the_examples_of_a_page_print_what_it_says(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    # If they should print something else, `python -m tests.lock.pages` writes it.
    assert pages.in_a_folder(text) == text


def test_the_page_of_a_result_names_the_page_about_the_law() -> None:
    people = fa.example_data()
    tested = fa.permutation_test(prediction=people["approved"], group=people["sex"], metric="selection_rate")
    (named,) = re.findall(r'"(What [^"]+ legally)" in the documentation \((docs/\S+\.md)\)', render.page(tested, {}))
    assert PAGES[named[1]].startswith(f"# {named[0]}\n")
    assert "legally" not in render.page(fa.plan(value=0.5, rows=200), {})


def test_a_model_card_escapes_names_that_are_markup() -> None:
    people = fa.example_data()
    groups = people[["sex", "occupation"]].set_axis(["sex*", "_job_"], axis="columns")
    found = fa.permutation_test(prediction=people["approved"], group=groups, cross=True, metric="selection_rate")
    assert found.to_markdown().startswith("## Permutation audit of the predictions\n\n**")
    assert r"sex\* and \_job\_" in found.to_markdown()


def test_every_recipe_is_in_the_index_and_ends_with_what_to_quote() -> None:
    index = PAGES["docs/recipes/index.md"]
    for name, page in PAGES.items():
        if name.startswith("docs/recipes/") and not name.endswith("index.md"):
            assert f"]({Path(name).name})" in index
            assert "to quote" in page


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "images").glob("**/*.png")), ids=str)
def test_a_picture_is_small(path: Path) -> None:
    assert path.stat().st_size <= 250_000


def test_the_example_in_the_readme_is_the_tested_one() -> None:
    shown = dict(FILES.findall(PAGES["README.md"]))
    assert list(shown) == ["pipeline/methods/nearest_mean.py"]
    assert shown.items() <= EXAMPLES.items()
    settings = "conf/method/nearest_mean.yaml"
    assert f"The file `{settings}` has the line `{EXAMPLES[settings].strip()}`." in PAGES["README.md"]


@pytest.mark.parametrize("study", sorted(path.stem for path in (CONF / "experiment").glob("*.yaml")))
def test_the_readme_counts_the_claims_of_a_study(study: str) -> None:
    assert f"| `{study}` | {findings.tally(study)} |" in PAGES["README.md"]


def test_the_findings_page_has_every_claim_with_its_outcome_and_numbers() -> None:
    page = findings.filled(PAGES["docs/findings.md"])
    assert "{{" not in page
    listed = pd.read_csv(ROOT / "data" / "reference" / "claims.csv")
    for line in listed.itertuples():
        assert f"**{findings.plain(line.claim)}** *{line.outcome.capitalize()}.*" in page
        for part in str(line.numbers).split("; "):
            assert f"\n- {findings.plain(part)}\n" in page


def test_the_page_of_published_numbers_has_a_row_for_each_of_them() -> None:
    page = findings.filled(PAGES["docs/published_numbers.md"])
    verdict = r"[a-z ]+(?: \(detects ±[\d.]+\))?"
    rows = re.findall(rf"^\| (?:Table|Figure|Text|Notebooks).* \| .+ \| .* \| .* \| {verdict} \|$", page, re.MULTILINE)
    assert len(rows) == len(pd.read_csv(ROOT / "data" / "reference" / "verdicts.csv"))


@pytest.mark.parametrize("page", sorted(PAGES))
def test_the_make_commands_of_a_page_are_targets(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", PAGES[page], re.MULTILINE)) <= targets


@pytest.mark.parametrize("page", sorted(PAGES))
def test_the_files_that_a_page_names_are_there(page: str) -> None:
    named = re.findall(r"`((?:tests|benchmarks|conf|pipeline|fairness_audits|\.github)/[\w./-]+)`", PAGES[page])
    assert not [name for name in named if not (ROOT / name).exists() and name not in EXAMPLES]


def test_every_function_of_the_library_is_exported_and_has_its_page() -> None:
    # The functions are defined in the packages of the audits.
    functions = {name: value for name, value in vars(fa).items() if inspect.isfunction(value)}
    own = {name for name, value in functions.items() if value.__module__.partition(".")[0] == fa.__name__}
    assert own == {name for name in fa.__all__ if inspect.isfunction(getattr(fa, name))}
    assert own == set(re.findall(r"^   (\w+)$", PAGES["docs/api.md"], re.MULTILINE))
