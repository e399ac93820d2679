"""Values are laid over each other in the stated order, and each stage is handed exactly what it computes with."""

import json
from pathlib import Path

import pytest

from pipeline.transport.between import parted
from pipeline.workflow import plugins
from pipeline.workflow.config import CONF, Workflow
from pipeline.workflow.resolution import of_scale


def test_per_dataset_beats_the_file_and_the_scale_beats_both(conf: Path) -> None:
    workflow = Workflow(scale="small", tracker="none", conf=conf)
    assert workflow.asked("train", "d", "m") == {"method": {"kind": "m", "name": "m", "rate": 5}, "repetitions": 2}
    (conf / "scale" / "bare.yaml").write_text("settings: []\n")
    bare = Workflow(scale="bare", tracker="none", conf=conf).asked("train", "d", "m")
    assert (bare["method"]["rate"], bare["repetitions"]) == (3, 10)


def test_the_user_beats_the_scale_and_reaches_only_what_is_named(conf: Path) -> None:
    workflow = Workflow(scale="small", tracker="none", conf=conf, overrides=["method.m.rate=7"])
    assert workflow.asked("train", "d", "m")["method"]["rate"] == 7
    assert workflow.asked("train", "d", "other")["method"] == {"kind": "other", "name": "other", "depth": 1}


def test_repetitions_of_a_dataset_a_method_or_a_map_are_the_users_to_set(conf: Path) -> None:
    workflow = Workflow(scale="small", tracker="none", conf=conf, overrides=["method.m.repetitions=7"])
    found = {
        point.method: workflow.asked("train", point.name("dataset"), point.name("method"))
        for point in workflow.points("s")
    }
    assert {method: section["repetitions"] for method, section in found.items()} == {"m": 7, "other": 10}
    assert "repetitions" not in found["m"]["method"]


def test_a_typo_in_an_override_is_refused_before_anything_runs(conf: Path) -> None:
    with pytest.raises(ValueError, match=r"no key 'method\.rte' \(did you mean 'method\.rate'"):
        Workflow(scale="small", tracker="none", conf=conf, overrides=["method.m.rte=7"])


def test_a_dataset_is_prepared_with_as_many_splits_as_any_method_asks_for(conf: Path) -> None:
    assert Workflow(scale="small", tracker="none", conf=conf).asked("prepare", "d")["repetitions"] == 10


def test_the_audit_is_handed_its_points_own_settings(conf: Path) -> None:
    workflow = Workflow(scale="small", tracker="none", conf=conf)
    paths = [path.removeprefix("results/audits/small/").removesuffix(".npz") for path in workflow.files("audit", "s")]
    deltas = [workflow.asked("audit", *path.split("/"))["audit"]["delta"] for path in paths]
    assert deltas == [1.1, 1.25, 1.1, 1.25, [1, 2, 3]]


def test_a_transport_map_is_made_once_and_the_audit_of_it_says_so_in_its_name(conf: Path) -> None:
    (conf / "transport").mkdir()
    (conf / "transport" / "t.yaml").write_text("steps: 9\nsource: x\nper_dataset: {d: {steps: 4}}\n")
    (conf / "config.yaml").write_text(
        (conf / "config.yaml").read_text().replace("method: m", "method: m, transport: t")
    )
    (conf / "experiment" / "maps.yaml").write_text(
        "grid:\n  main: {dataset: d, method: [m, other], transport: t, transport.source: [x, y], audit: a}\n"
    )
    (conf / "scale" / "few.yaml").write_text("settings:\n  - {where: {transport: t}, set: {repetitions: 3}}\n")
    workflow = Workflow(scale="few", tracker="none", conf=conf, studies=["maps"])
    assert workflow.files("transport", "maps") == [f"results/transports/few/d/t@source={x}.npz" for x in "xy"]
    assert workflow.asked("transport", "d", "t@source=y") == {
        "transport": {"kind": "t", "name": "t", "steps": 4, "source": "y"},
        "repetitions": 3,
    }
    audits = [path.removeprefix("results/audits/few/").removesuffix(".npz") for path in workflow.files("audit", "maps")]
    assert audits[0] == "maps/main/d/m/a+t@source=x"
    assert [workflow.maps_of(*path.split("/")) for path in audits] == [
        [f] for f in workflow.files("transport", "maps") * 2
    ]
    assert workflow.asked("train", "d", "m")["repetitions"] == 10
    assert workflow.kind("audit", "a+t@source=x") == "a"


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_every_shipped_section_is_accepted_by_its_module_and_a_sweeps_values_are_the_last_word(scale: str) -> None:
    workflow = Workflow(scale=scale)
    for study in (*workflow.studies, *workflow.sweeps):
        for point in workflow.points(study):
            for group in ("dataset", "method", "transport", "audit"):
                if not getattr(point, group):
                    continue
                section = workflow.section(group, point)
                own = parted(section)[1] if group == "transport" else section
                plugins.configure(plugins.load(group, own["kind"]), own)
                if study in workflow.sweeps:
                    given = {
                        key.split(".", 1)[1]: value for key, value in point.settings if key.startswith(f"{group}.")
                    }
                    assert {key: section[key] for key in given} == json.loads(json.dumps(given))
    for sweep in workflow.sweeps:
        workflow.sweep(sweep)


def test_both_audits_of_the_arrests_toss_the_coin_of_section_5_5() -> None:
    workflow = Workflow(scale="paper", studies=["fliptest"])
    points = [point for point in workflow.points("fliptest") if point.dataset == "arrests"]
    decided = {point.audit: workflow.section("audit", point) for point in points}
    assert decided["fliptest"]["decision"] == "randomised" == decided["subgroups"]["output"]


def test_the_paper_scale_sets_nothing_but_repetitions() -> None:
    assert {key for setting in of_scale(CONF, "paper") for key in setting.values} == {"repetitions"}


def test_an_unknown_key_on_the_command_line_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"--config scal=\.\.\. is unknown \(did you mean 'scale'\?\)"):
        Workflow.of({"scal": "smoke"}, {})


def test_code_names_the_plugin_and_what_it_imports() -> None:
    code = Workflow().code("audit", audit="loss_ratio")
    assert {"pipeline/stages/audit.py", "pipeline/audits/loss_ratio/loss_ratio.py", "pipeline/types.py"} <= set(code)
    assert not any("methods" in path or "report" in path for path in code)


def test_scale_study_and_tracker_are_taken_from_the_environment_and_the_command_line_wins() -> None:
    workflow = Workflow.of(
        {"scale": "paper"}, {"SCALE": "smoke", "STUDY": "individual_fairness", "TRACKER": "disabled"}
    )
    assert (workflow.scale, workflow.studies, workflow.tracker["mode"]) == (
        "paper",
        ("individual_fairness",),
        "disabled",
    )


def test_an_unknown_source_is_refused() -> None:
    with pytest.raises(ValueError, match="expected auto, official or twin"):
        Workflow(source="offical")


def record(root: Path, dataset: str, origin: str) -> Path:
    path = root / "data" / "raw" / dataset / "manifest.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"origin": origin}))
    return path


def test_a_twin_gives_way_once_official_files_are_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATA_MIRROR", raising=False)
    twin, official = record(tmp_path, "adult", "twin"), record(tmp_path, "compas", "official")
    assert Workflow().forget_superseded(tmp_path) == []
    mirror = tmp_path / "mirror"
    (mirror / "adult").mkdir(parents=True)
    (mirror / "adult" / "notes.txt").write_text("no data")
    monkeypatch.setenv("DATA_MIRROR", str(mirror))
    assert Workflow().forget_superseded(tmp_path) == [], "what is not the published file supersedes nothing"
    (mirror / "adult" / "adult.data").write_text("x")
    assert Workflow(source="twin").forget_superseded(tmp_path) == []
    assert Workflow().forget_superseded(tmp_path) == ["adult"]
    assert not twin.exists()
    assert official.exists()


def test_a_condition_names_the_value_that_the_grid_or_the_file_gives_a_key(conf: Path) -> None:
    (conf / "method" / "m.yaml").write_text(
        "rate: 1\nmodel: small\nsettings:\n  - {where: {method.model: large, dataset: d}, set: {method.rate: 2}}\n"
    )
    (conf / "experiment" / "nets.yaml").write_text(
        "grid:\n  main: {dataset: d, method: m, method.model: [small, large], audit: a}\n"
    )
    (conf / "scale" / "bare.yaml").write_text("settings: []\n")

    def rates(scale: str) -> list[int]:
        workflow = Workflow(scale=scale, tracker="none", conf=conf, studies=["nets"])
        return [workflow.section("method", point)["rate"] for point in workflow.points("nets")]

    assert rates("bare") == [1, 2]
    for name, text in {"one": "small", "both": "[small, large]", "pattern": "'*l*'"}.items():
        (conf / "scale" / f"{name}.yaml").write_text(
            f"settings:\n  - {{where: {{method.model: {text}}}, set: {{method.rate: 7}}}}\n"
        )
    assert (rates("one"), rates("both"), rates("pattern")) == ([7, 2], [7, 7], [7, 7])
    (conf / "scale" / "typo.yaml").write_text("settings:\n  - {where: {method.model: lrge}, set: {method.rate: 7}}\n")
    with pytest.raises(ValueError, match=r"no method\.model 'lrge' \(did you mean 'large'\?\)"):
        rates("typo")


def test_a_scale_leaves_points_out_of_a_study_and_of_what_it_is_held_against(conf: Path) -> None:
    for name, text in {"bare": "", "paper": "", "typo": "left_out:\n  - where: {block: nowhere}\n"}.items():
        (conf / "scale" / f"{name}.yaml").write_text(f"settings: []\n{text}")
    with pytest.raises(ValueError, match=r"conf/scale/typo\.yaml: there is no block 'nowhere'"):
        Workflow(scale="typo", tracker="none", conf=conf)
    every = Workflow(scale="bare", tracker="none", conf=conf, studies=["s"])
    (conf / "scale" / "few.yaml").write_text("settings: []\nleft_out:\n  - where: {study: s, method: other}\n")
    few = Workflow(scale="few", tracker="none", conf=conf, studies=["s"])
    assert set(every.points("s")) - set(few.points("s")) == {p for p in every.points("s") if p.method == "other"}
    assert few.points("s")
    (conf / "tracker" / "offline.yaml").write_text((conf / "tracker" / "none.yaml").read_text())
    config = few.artefacts("s")
    assert len(config["sections"]) == len(config["published"]) == len(few.points("s"))
