"""Points are the product of a grid; values are laid over each other in the stated order; sweeps."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairness_audits.errors import InvalidInput
from fairness_audits.files import save_json
from pipeline.counterparts import parted
from pipeline.jobs import ROOT, Run
from pipeline.report import registry
from pipeline.workflow import plugins, references
from pipeline.workflow.code_hash import modules_behind
from pipeline.workflow.conf import Conf, several, user_setting
from pipeline.workflow.points import STAGES, Grids, Point
from pipeline.workflow.sweep import Figure, column
from tests.errors import invalid


def small(conf: Path, scale: str = "small", **given: Any) -> Run:
    """A run of this configuration, at its small scale and untracked."""
    return Run(scale=scale, tracker="none", conf=conf, **given)


def points(conf: Path, study: str) -> list[Point]:
    """The points that a study declares."""
    return Grids(Conf(conf), "small").declared(study)


def parameters(run: Run, stage: str, *names: str) -> dict[str, Any]:
    """What a stage reads for the file with these names in its path."""
    wildcards = dict(zip(STAGES[stage].parts, names, strict=True))
    return run.section(stage, run.owners[STAGES[stage].output.format(scale=run.scale, **wildcards)][1])


def names_in(path: str) -> list[str]:
    """The names in the path of an audit."""
    return path.removesuffix(".npz").split("/")[3:]


def test_a_list_is_swept_and_a_list_in_a_list_is_one_value(conf: Path) -> None:
    found = points(conf, "s")
    assert len(found) == 2 * 2 + 1
    assert found[-1].settings == (("audit.delta", (1, 2, 3)),)
    assert found[-1].name("audit") == "a"
    assert {point.name("audit") for point in found[:-1]} == {"a@delta=1.1", "a@delta=1.25"}
    assert found[0].columns() == {"delta": 1.1}


def test_a_model_is_named_by_its_settings_and_a_point_with_a_transport_map_names_it() -> None:
    point = Point("s", "b", "d", "m", "a", (("method.rate", 0.5), ("audit.delta", 2)))
    assert (point.name("dataset"), point.name("method"), point.name("audit")) == ("d", "m@rate=0.5", "a")
    mapped = Point("s", "b", "d", "m", "a", (("transport.source", "women"), ("transport.steps", 9)), transport="t")
    assert mapped.name("transport") == "t@source=women@steps=9"
    assert mapped.columns() == {"steps": 9, "transport": "t"}
    assert Point("s", "b", "d", "m", "a").columns() == {}
    values = (-0.5, 0.5, 1e-5, (-1, 2), (None, 0), "a b", ["x"])
    labels = [Point("s", "b", "d", "m", "a", (("method.k", value),)).name("method")[4:] for value in values]
    assert labels == ["-0.5", "0.5", "1e-05", "-1-2", "None-0", "a-b", "x"]


def test_a_block_may_lack_dataset_and_method_and_a_dataset_has_as_many_splits_as_any_method_asks_for(
    conf: Path,
) -> None:
    (conf / "experiment" / "drawn.yaml").write_text("grid:\n  main: {audit: a}\n")
    assert points(conf, "drawn") == [Point("drawn", "main", "none", "none", "a")]
    assert parameters(small(conf), "prepare", "d")["repetitions"] == 10


def test_overrides_are_typed_as_yaml_is_and_hydras_notations_are_lists_without_dust() -> None:
    assert user_setting("method.sensr.learning_rate=2e-5").values == {"method.learning_rate": 2e-5}
    assert user_setting("audit.loss_ratio.record=[1, 2]").values == {"audit.record": [1, 2]}
    assert several("range(0, 3)", "") == [0, 1, 2]
    assert several("range(0.1, 0.45, 0.1)", "") == [0.1, 0.2, 0.3, 0.4]
    assert several("range(1.0, 1.3, 0.1)", "") == [1.0, 1.1, 1.2]
    assert several("range(3, 1, -1)", "") == [3, 2]
    assert several("choice(a, 2, 1e-3)", "") == ["a", 2, 0.001]
    assert several("Black", "") == ["Black"]
    assert several([1, 2], "") == [1, 2]


# Values are laid over each other in the stated order, and each stage is handed exactly what it computes with.


def test_per_dataset_beats_the_file_and_the_scale_beats_both(conf: Path) -> None:
    run = small(conf)
    assert parameters(run, "train", "d", "m") == {"method": {"kind": "m", "name": "m", "rate": 5}, "repetitions": 2}
    (conf / "scale" / "bare.yaml").write_text("settings: []\n")
    bare = parameters(small(conf, "bare"), "train", "d", "m")
    assert (bare["method"]["rate"], bare["repetitions"]) == (3, 10)


def test_the_user_beats_the_scale_and_reaches_only_what_is_named(conf: Path) -> None:
    run = small(conf, overrides=["method.m.rate=7"])
    assert parameters(run, "train", "d", "m")["method"]["rate"] == 7
    assert parameters(run, "train", "d", "other")["method"] == {"kind": "other", "name": "other", "depth": 1}


def test_repetitions_of_a_dataset_a_method_or_a_map_are_the_users_to_set(conf: Path) -> None:
    run = small(conf, overrides=["method.m.repetitions=7"])
    points = run.points("s")
    found = {one.method: parameters(run, "train", one.name("dataset"), one.name("method")) for one in points}
    assert {method: section["repetitions"] for method, section in found.items()} == {"m": 7, "other": 10}
    assert "repetitions" not in found["m"]["method"]


def test_the_audit_is_handed_its_points_own_settings(conf: Path) -> None:
    run = small(conf)
    files = run.files("audit", "s")
    deltas = [parameters(run, "audit", *names_in(path))["audit"]["delta"] for path in files]
    assert deltas == [1.1, 1.25, 1.1, 1.25, [1, 2, 3]]


def test_a_transport_map_is_made_once_and_the_audit_of_it_says_so_in_its_name(
    conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (conf / "transport").mkdir()
    (conf / "transport" / "t.yaml").write_text("steps: 9\nsource: x\nper_dataset: {d: {steps: 4}}\n")
    config = conf / "config.yaml"
    config.write_text(config.read_text().replace("method: m", "method: m, transport: t"))
    grid = "{dataset: d, method: [m, other], transport: t, transport.source: [x, y], audit: a}"
    (conf / "experiment" / "maps.yaml").write_text(f"grid:\n  main: {grid}\n")
    (conf / "scale" / "few.yaml").write_text("settings:\n  - {where: {transport: t}, set: {repetitions: 3}}\n")
    run = small(conf, "few", studies=["maps"])
    assert run.files("transport", "maps") == [f"results/transports/few/d/t@source={x}.npz" for x in "xy"]
    section = {"kind": "t", "name": "t", "steps": 4, "source": "y"}
    assert parameters(run, "transport", "d", "t@source=y") == {"transport": section, "repetitions": 3}
    audits = run.files("audit", "maps")
    assert audits[0] == "results/audits/few/maps/main/d/m/a+t@source=x.npz"
    monkeypatch.setattr("pipeline.workflow.availability.needs_files", lambda _: False)
    maps = [(file,) for file in run.files("transport", "maps") * 2]
    assert [run.tasks[path].inputs["transport"] for path in audits] == maps
    assert parameters(run, "train", "d", "m")["repetitions"] == 10
    assert run.grids.kind("audit", "a+t@source=x") == "a"


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_every_shipped_section_is_accepted_by_its_module_and_a_sweeps_values_are_the_last_word(scale: str) -> None:
    run = Run(scale=scale)
    for study in (*run.studies, *run.sweeps):
        for point in run.points(study):
            for group in ("dataset", "method", "transport", "audit"):
                if not getattr(point, group):
                    continue
                section = run.grids.resolve(point)[group]
                own = parted(section)[1] if group == "transport" else section
                plugins.configure(plugins.load(group, own["kind"]), own)
                if study in run.sweeps:
                    for key, value in point.settings:
                        where, _, name = key.partition(".")
                        assert where != group or section[name] == json.loads(json.dumps(value))
    for sweep in run.sweeps:
        run.sweep(sweep)


def test_both_audits_of_the_arrests_toss_the_coin_of_section_5_5() -> None:
    run = Run(scale="paper", studies=["fliptest"])
    points = [point for point in run.points("fliptest") if point.dataset == "arrests"]
    decided = {point.audit: run.grids.resolve(point)["audit"] for point in points}
    assert decided["fliptest"]["decision"] == "randomised" == decided["subgroups"]["output"]


def test_a_scale_that_extends_another_lays_its_settings_over_those() -> None:
    base, extended = (Conf().of_scale(scale, "settings") for scale in ("workstation", "extended"))
    assert extended[: len(base)] == base
    run = Run(scale="extended")
    scales = (Run("workstation"), run, Run("gpu"))
    fewest, own, on_a_gpu = ({one["block"] for one in of.artefacts("robustness_bias")["left_out"]} for of in scales)
    by_gpu = {"pretrained", "penalties_tau_utkface", "penalties_tau_cifar10"}
    assert (fewest - own, own - on_a_gpu, on_a_gpu - fewest) == ({"penalties_utkface"}, by_gpu, set())
    splits = {p.dataset: run.section("train", p) for p in run.points("agreement")}
    assert {asked["repetitions"] for asked in splits.values()} == {100}


def test_the_paper_scale_sets_nothing_but_repetitions_and_code_names_the_plugin_and_what_it_imports() -> None:
    assert {key for setting in Conf().of_scale("paper", "settings") for key in setting.values} == {"repetitions"}
    code = modules_behind(["pipeline.stages.audit", "pipeline.audits.loss_ratio"], ROOT)
    behind = {path.relative_to(ROOT).as_posix() for path in code}
    assert {"pipeline/stages/audit.py", "pipeline/audits/loss_ratio.py", "fairness_audits/values.py"} <= behind
    assert not any("methods" in path or "report" in path for path in behind)
    training = modules_behind(["pipeline.stages.train", "pipeline.methods.sensr"], ROOT)
    assert not {
        ROOT / "pipeline/jobs.py",
        ROOT / "pipeline/workflow/points.py",
        ROOT / "fairness_audits/__init__.py",
    } & set(training)


def test_scale_study_and_tracker_are_taken_from_the_environment_and_the_command_line_wins() -> None:
    environment = {"SCALE": "smoke", "STUDY": "individual_fairness", "TRACKER": "disabled"}
    run = Run.of({"scale": "paper"}, environment)
    chosen = (run.scale, run.studies, run.tracker["mode"])
    assert chosen == ("paper", ("individual_fairness",), "disabled")


def test_a_run_of_some_datasets_has_their_points_alone_and_the_reference_has_the_others() -> None:
    whole, some = Run(), Run.of({}, {"DATASETS": "utkface,compas"})
    assert some.studies == ("agreement", "fliptest", "individual_fairness", "permutation_tests", "robustness_bias")
    for study in some.studies:
        assert some.points(study) == [p for p in whole.points(study) if p.dataset in ("utkface", "compas")]
        assert references.fill_option(some, study) == f"--fill-from data/reference/{study}"
        assert not references.fill_option(whole, study)
    assert [some.points(sweep) for sweep in some.sweeps] == [whole.points(sweep) for sweep in whole.sweeps]
    faces = Run(datasets=["utkface"])
    assert faces.studies == ("robustness_bias",)
    told = faces.artefacts("robustness_bias")
    assert {place["dataset"] for place in told["left_out"]} == {"utkface"}
    others = {point.dataset for point in faces.grids.declared("robustness_bias")} - {"utkface"}
    assert {place["dataset"] for place in told["not_chosen"]} == others


def test_a_reference_of_an_earlier_grid_supplies_the_parts_that_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study gets a new part, which is run alone."""
    some, study = Run(datasets=["none"], root=tmp_path), "permutation_tests"
    monkeypatch.setattr(references, "has_reference", lambda *_: False)
    others = sorted({p.part for p in Run().points(study)} - {p.part for p in some.points(study)})
    manifest = tmp_path / "data" / "reference" / study / "manifest.json"
    for grid, held in ((["power/none", *others], True), (others[1:], True), (["power/none"], False), ([], False)):
        save_json({"grid": grid}, manifest)
        assert bool(references.fill_option(some, study)) == held, "what it does not have is drawn as not run"


def test_what_is_finished_of_a_run_can_be_looked_at_before_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, study = Run("workstation"), "robustness_bias"
    monkeypatch.setattr(references, "has_reference", lambda *_: True)
    with invalid(option="datasets"):
        Run.of({}, {"FINISHED": "yes", "DATASETS": "cifar10"}, tmp_path)
    parts = ("linear/cifar10/logistic_regression", "networks/cifar10/vgg19")
    done = [point for point in whole.points(study) if point.part in parts]
    half, absent = (
        next(point for point in whole.points(study) if point.part == part)
        for part in ("regularizer_cifar10/cifar10/vgg19", "networks_adience/adience/adience_classifier")
    )

    def made(stage: str, point: Point) -> Path:
        return tmp_path / whole.path(stage, point)

    for path in (*(made(stage, p) for p in (*done, half) for stage in ("train", "audit")), made("audit", absent)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert not Run.of({"finished": False}, {"FINISHED": "yes"}).finished, "as Snakemake reads finished=no"
    with invalid(option="FINISHED"):
        Run.of({}, {"FINISHED": "ja"})
    some = Run.of({"scale": "workstation"}, {"FINISHED": "yes"}, tmp_path)
    assert (some.studies, some.points(study)) == ((study,), done)
    for stage in ("train", "audit"):
        assert some.files(stage, study) == [some.path(stage, point) for point in done]
    assert references.fill_option(some, study)
    told = some.artefacts(study)
    assert len(told["left_out"]) == len(whole.grids.declared(study)) - len(done)
    assert len(told["sections"]) == len(told["published"]) == len(done)
    # What a job is does not hang on what else is finished: nothing is made again.
    assert some.tasks == whole.tasks


def record(root: Path, dataset: str, origin: str) -> Path:
    path = root / "data" / "raw" / dataset / "manifest.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"origin": origin}))
    return path


def test_a_twin_gives_way_once_official_files_are_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATA_MIRROR", raising=False)
    twin, official = record(tmp_path, "adult", "twin"), record(tmp_path, "compas", "official")

    def superseded(source: str = "auto") -> list[str]:
        run = Run(source=source, root=tmp_path)
        return [name for name in ("adult", "compas", "law") if run.replaced(name)]

    assert superseded() == []
    mirror = tmp_path / "mirror"
    (mirror / "adult").mkdir(parents=True)
    (mirror / "adult" / "notes.txt").write_text("no data")
    monkeypatch.setenv("DATA_MIRROR", str(mirror))
    assert superseded() == [], "what is not the published file supersedes nothing"
    (mirror / "adult" / "adult.data").write_text("x")
    assert superseded("twin") == []
    assert superseded() == ["adult"]
    assert twin.exists()
    assert official.exists()
    asked = Run(root=tmp_path).replaced("adult")
    twin.write_text(json.dumps({"origin": "official", "replaced": asked}))
    assert Run(root=tmp_path).replaced("adult") == asked, "what was fetched again is not fetched once more"


def test_a_condition_names_the_value_that_the_grid_or_the_file_gives_a_key(conf: Path) -> None:
    large = "{where: {method.model: large, dataset: d}, set: {method.rate: 2}}"
    (conf / "method" / "m.yaml").write_text(f"rate: 1\nmodel: small\nsettings:\n  - {large}\n")
    grid = "{dataset: d, method: m, method.model: [small, large], audit: a}"
    (conf / "experiment" / "nets.yaml").write_text(f"grid:\n  main: {grid}\n")
    (conf / "scale" / "bare.yaml").write_text("settings: []\n")

    def rates(scale: str) -> list[int]:
        run = small(conf, scale, studies=["nets"])
        return [run.grids.resolve(point)["method"]["rate"] for point in run.points("nets")]

    assert rates("bare") == [1, 2]
    for name, text in {"one": "small", "both": "[small, large]", "pattern": "'*l*'", "typo": "lrge"}.items():
        setting = f"{{where: {{method.model: {text}}}, set: {{method.rate: 7}}}}"
        (conf / "scale" / f"{name}.yaml").write_text(f"settings:\n  - {setting}\n")
    assert (rates("one"), rates("both"), rates("pattern")) == ([7, 2], [7, 7], [7, 7])
    with invalid(source="typo.yaml", option="method.model"):
        rates("typo")


def test_a_scale_leaves_points_out_of_a_study_and_of_what_it_is_held_against(conf: Path) -> None:
    for name, text in {"bare": "", "paper": "", "typo": "left_out:\n  - where: {block: nowhere}\n"}.items():
        (conf / "scale" / f"{name}.yaml").write_text(f"settings: []\n{text}")
    with invalid(source="typo.yaml", option="block"):
        small(conf, "typo")
    every = small(conf, "bare", studies=["s"])
    (conf / "scale" / "few.yaml").write_text("settings: []\nleft_out:\n  - where: {study: s, method: other}\n")
    few = small(conf, "few", studies=["s"])
    assert set(every.points("s")) - set(few.points("s")) == {p for p in every.points("s") if p.method == "other"}
    assert few.points("s")
    (conf / "tracker" / "offline.yaml").write_text((conf / "tracker" / "none.yaml").read_text())
    config = few.artefacts("s")
    assert len(config["sections"]) == len(config["published"]) == len(few.points("s"))


# What a sweep declares is checked before anything runs, and its own values are the last word.


GRID = {"main": {"dataset": "d", "method": ["m", "other"], "audit": "a", "audit.delta": "range(1.1, 1.3, 0.1)"}}


def declaration(**figure: object) -> dict:
    return {"grid": GRID, "figure": {"statistic": "T_n", "x": "audit.delta", **figure}}


@pytest.fixture
def sweep(conf: Path) -> Path:
    grid = {"method.rate": "choice(1, 5, 7)", "repetitions": 4, "dataset": "d", "method": "m", "audit": "a"}
    lines = "".join(f"    {key}: {value}\n" for key, value in (grid | {"audit.delta": 2}).items())
    text = f"grid:\n  main:\n{lines}figure: {{statistic: T_n, x: method.rate}}\n"
    (conf / "sweep").mkdir()
    (conf / "sweep" / "w.yaml").write_text(text)
    (conf / "scale" / "small.yaml").write_text(
        "settings:\n"
        "  - {where: {method: m}, set: {repetitions: 2, method.rate: 9}}\n"
        "  - {where: {audit: a}, set: {audit.delta: 3}}\n"
    )
    return conf


def test_a_sweeps_values_win_over_the_scales_stand_in_names_of_files_and_repetitions_are_no_column(sweep: Path) -> None:
    run = small(sweep, studies=["s"])
    files = [f"results/models/small/d/m@rate={rate}@repetitions=4.npz" for rate in (1, 5, 7)]
    assert run.files("train", "w") == files
    for rate in (1, 5, 7):
        trained = parameters(run, "train", "d", f"m@rate={rate}@repetitions=4")
        assert (trained["method"]["rate"], trained["repetitions"]) == (rate, 4)
    (first, *_) = run.files("audit", "w")
    assert parameters(run, "audit", *names_in(first))["audit"]["delta"] == 2
    assert parameters(run, "train", "d", "m") == {"method": {"kind": "m", "name": "m", "rate": 9}, "repetitions": 2}
    assert points(sweep, "w")[0].columns() == {"rate": 1, "delta": 2}


def test_a_typo_in_a_grids_key_is_refused_with_the_nearest_when_the_jobs_are_planned(sweep: Path) -> None:
    path = sweep / "sweep" / "w.yaml"
    path.write_text(path.read_text().replace("method.rate:", "method.rte:"))
    run = small(sweep, studies=["s"])
    with invalid(option="method.rte"):
        parameters(run, "train", "d", "m@rte=1@repetitions=4")
    with invalid(option="figure.x"):
        run.sweep("w")


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("experiment/s.yaml", "audit: a,", "audit: b,"),
        ("experiment/s.yaml", "audit.delta", "audit.dleta"),
        ("scale/small.yaml", "repetitions: 2", "repetitions: two"),
        ("", "", "train"),
        ("", "", "draw"),
    ],
)
def test_a_fault_in_the_configuration_or_the_code_ends_the_run_before_snakemake_asks_for_a_file(
    file: str, old: str, new: str, conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snakemake ignores an error of a function whose file exists."""

    def code(_: Run, stage: str, **plugin: str) -> str:
        if not file and stage == new:
            raise SyntaxError("never closed")
        return ""

    monkeypatch.setattr(Run, "code", code)
    monkeypatch.setattr("pipeline.workflow.availability.needs_files", lambda *_: False)
    if file:
        small(conf, studies=["s"]).check(1, {})
        text = (conf / file).read_text()
        assert old in text
        (conf / file).write_text(text.replace(old, new))
    with pytest.raises(InvalidInput if file else SyntaxError):
        small(conf, studies=["s"]).check(1, {})


@pytest.mark.parametrize(
    ("figure", "option"),
    [
        ({"colour": "method"}, "colour"),
        ({"column": "method"}, "column"),
        ({"x": "audit.dleta"}, "figure.x"),
        ({"x": ""}, "x"),
        ({"log": "z"}, "log"),
    ],
)
def test_a_figure_of_what_is_not_there_is_refused(figure: dict, option: str) -> None:
    with invalid(option=option):
        Figure.of("w", declaration(**figure))
    with invalid(option="figure"):
        Figure.of("w", {"grid": GRID})


def test_labels_are_found_by_key_by_column_and_otherwise_spelled_out() -> None:
    figure = Figure.of("w", declaration(lines="method", labels={"delta": "tolerance", "m": "ours"}))
    assert figure.axes == {"x": "delta", "lines": "method"}
    assert [figure.label(name) for name in ("audit.delta", "m", "mean_shift")] == ["tolerance", "ours", "mean shift"]
    assert column("T_n") == "T_n"


def test_runs_of_a_sweep_are_grouped_by_its_name(sweep: Path) -> None:
    run = small(sweep, studies=["s"])
    environment: dict[str, str] = {}
    run.export_tracker(environment, ["--cores", "2", "results/sweeps/small/w/summary.csv"])
    assert '"group": "w"' in environment["PIPELINE_TRACKER"]
    run.export_tracker(environment, ["all", "results/rows/small/w.parquet"])
    assert '"group": "s"' in environment["PIPELINE_TRACKER"]


# What is refused, with the nearest that there is.


def test_a_wrong_key_of_a_scale_names_its_file(conf: Path) -> None:
    (conf / "scale" / "small.yaml").write_text("settings:\n  - {where: {method: m}, set: {method.rte: 2}}\n")
    with invalid(source="small.yaml", option="method.rte"):
        parameters(small(conf, studies=["s"]), "train", "d", "m")


BLOCK = "{dataset: d, audit: a, "
READ: dict[str, Callable[[Path], object]] = {
    "experiment/wrong.yaml": lambda conf: points(conf, "wrong"),
    "scale/wrong.yaml": lambda conf: Conf(conf).of_scale("wrong", "settings"),
    "method/m.yaml": lambda conf: parameters(small(conf, studies=["s"]), "train", "d", "m"),
    "tracker/none.yaml": lambda conf: small(conf, studies=["s"]),
    "config.yaml": lambda conf: parameters(small(conf, studies=["s"]), "train", "d", "m"),
}


@pytest.mark.parametrize(
    ("file", "text", "source", "option"),
    [
        ("experiment/wrong.yaml", "title: nothing", "wrong.yaml", "grid"),
        ("experiment/wrong.yaml", "grid: [a, b]", "wrong.yaml", "grid"),
        ("experiment/wrong.yaml", "grid: {a: }", "wrong.yaml", "a"),
        ("experiment/wrong.yaml", "grid: {main: {dataset: d, audit: a}}", "wrong.yaml, block 'main'", "method"),
        *(
            ("experiment/wrong.yaml", f"grid: {{main: {BLOCK}{start}: {value}}}}}", "wrong.yaml", key)
            for key, start in (("method", "method"), ("method.schedule", "method: m, method.schedule"))
            for value in ("{start: 1}", "[{start: 1}, {start: 2}]", "[[{start: 1}]]")
        ),
        # Names of files lead nowhere else, and are no part of a command.
        *(
            ("experiment/wrong.yaml", f"grid: {{'{name}': {{audit: a}}}}", "wrong.yaml", name)
            for name in ("../../..", "a/b", "..", "$(touch x)", "-rf x", "")
        ),
        ("scale/wrong.yaml", "setings: []", "wrong.yaml", "setings"),
        ("scale/wrong.yaml", "settings: {method: m}", "wrong.yaml", "settings"),
        ("scale/wrong.yaml", "settings: [{where: [m], set: {}}]", "wrong.yaml", "where"),
        ("scale/wrong.yaml", "quick: perhaps", "wrong.yaml", "quick"),
        *(
            ("scale/wrong.yaml", f"settings: [{{{setting}}}]", "wrong.yaml", option)
            for setting, option in (
                ("where: {metod: m}, set: {repetitions: 2}", "metod"),
                ("whre: {method: m}, set: {repetitions: 2}", "whre"),
                ("where: {method: m}, sett: {repetitions: 2}", "sett"),
                ("where: {block: main}, set: {repetitions: 2}", "repetitions"),
                ("where: {audit: a}, set: {method.rate: 2}", "method"),
                ("where: {method: m}, set: {dataset.rows: 2}", "dataset"),
            )
        ),
        ("method/m.yaml", "rate: 1\nper_dataset: {dd: {rate: 3}}", "m.yaml", "dataset"),
        ("method/m.yaml", "rate: 1\nper_dataset: [d]", "m.yaml", "per_dataset"),
        ("tracker/none.yaml", "mode: off", "none.yaml", "mode"),
        ("config.yaml", "defaults: []\nrepititions: 2", "config.yaml", "repititions"),
        *(("method/m.yaml", text, "m.yaml", None) for text in ("rate: 1\nrate: 2\n", "rate: [1\n", "rate")),
    ],
)
def test_a_mistake_in_a_file_is_refused(file: str, text: str, source: str, option: str | None, conf: Path) -> None:
    (conf / file).write_text(text)
    with invalid(source=source, option=option):
        READ[file](conf)


IN_MAIN = {"source": "w.yaml, block 'main'"}


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        ("figure:", "figrue:", {"source": "w.yaml", "option": "figrue"}),
        ("method.rate:", "metod.rate:", IN_MAIN | {"option": "metod.rate"}),
        ("choice(1, 5, 7)", "[]", IN_MAIN | {"option": "method.rate"}),
        ("choice(1, 5, 7)", "range(3, 2, 1)", IN_MAIN | {"option": "method.rate"}),
        ("choice(1, 5, 7)", "[a b, a-b]", IN_MAIN),
        ("audit.delta: 2", "audit.delta: [2, 2]", IN_MAIN),
        ("audit.delta: 2", "audit.dlta: 2", IN_MAIN),
    ],
)
def test_a_mistake_in_a_sweep_is_refused(old: str, new: str, fields: dict[str, str], sweep: Path) -> None:
    path = sweep / "sweep" / "w.yaml"
    path.write_text(path.read_text().replace(old, new))
    with invalid(**fields):
        small(sweep, studies=["s"]).grids.resolve(points(sweep, "w")[0])


@pytest.mark.parametrize("name", ["..", "x;touch y"])
def test_a_sweep_whose_name_is_no_word_is_refused(name: str, sweep: Path) -> None:
    (sweep / "sweep" / "w.yaml").rename(sweep / "sweep" / f"{name}.yaml")
    with invalid(option=name):
        small(sweep, studies=["s"])


@pytest.mark.parametrize(
    ("text", "option"),
    [
        *((f"method.m.repetitions={wrong}", "repetitions") for wrong in ("0", "2.9", "true", "two")),
        ("method.m.rte=7", "method.rte"),
        *((text, "set") for text in ("sensr.rate=2e-5", "metod.sensr.rate=2e-5", "method.sensr.rate=1,2", "=2")),
    ],
)
def test_a_mistake_in_a_setting_of_the_user_is_refused(text: str, option: str, conf: Path) -> None:
    with invalid(option=option):
        parameters(small(conf, studies=["s"], overrides=[text]), "train", "d", "m")


def test_a_single_value_of_what_a_block_varies_and_two_columns_of_a_name_are_refused(sweep: Path) -> None:
    with invalid(option="method.rate"):
        small(sweep, studies=["s"], overrides=["method.m.rate=2"]).grids.resolve(points(sweep, "w")[0])
    with invalid(option="audit.delta"):
        Point("s", "b", "d", "m", "a", (("method.delta", 1), ("audit.delta", 2))).columns()


@pytest.mark.parametrize(
    ("ask", "fields"),
    [
        (lambda c: Conf().declaration("individual_fairnes"), {"option": "study"}),
        (lambda c: Conf(c)["method/othr"], {"option": "method"}),
        (lambda c: Run.of({"scal": "smoke"}, {}), {"option": "scal"}),
        (lambda c: Run(source="offical"), {"option": "source"}),
        (lambda c: Run(datasets=["cifar01"]), {"option": "dataset"}),
        (lambda c: registry.entry("permutation_tests", "figure_9"), {"option": "figure_9"}),
        (lambda c: Run(studies=["fliptest"], datasets=["cifar10"]), {"option": "datasets"}),
        (lambda c: several("range(one)", "'main', delta"), {"source": "'main', delta"}),
        (
            lambda c: small(c, studies=["w"]),
            {"option": "study", "remedy": "Run `snakemake results/sweeps/small/w/summary.csv`"},
        ),
    ],
)
def test_what_is_not_there_is_refused(sweep: Path, ask: Any, fields: dict[str, str]) -> None:
    with invalid(**fields):
        ask(sweep)
