"""The account of a failed run: nothing that is missing is left out, and each thing is laid to what it waits for."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline.workflow import failures
from pipeline.workflow.config import Workflow


@dataclass(frozen=True, eq=False)
class Job:
    """What the account reads of Snakemake's jobs."""

    name: str
    after: tuple[Job, ...] = ()
    outputs: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    jobs: tuple[Job, ...] = ()
    wildcards: tuple[str, ...] = ()
    message: str | None = None

    @property
    def output(self) -> tuple[str, ...]:
        return self.outputs

    @property
    def rule(self) -> SimpleNamespace:
        return SimpleNamespace(name=self.name)

    def is_group(self) -> bool:
        return bool(self.jobs)


@dataclass(frozen=True)
class Dag:
    """Jobs, and which of them are finished."""

    jobs: tuple[Job, ...]
    finished: frozenset[str] = field(default_factory=frozenset)

    @property
    def dependencies(self) -> dict[Job, dict[Job, set[str]]]:
        return {job: {earlier: set() for earlier in job.after} for job in self.jobs}

    def needrun_jobs(self, exclude_finished: bool) -> Iterator[Job]:
        return (job for job in self.jobs if not (exclude_finished and job.name in self.finished))


TRAIN = Job("train", outputs=("m.npz",), log=("logs/train.log",), message="train sensr on adult")
OTHER = Job("other", outputs=("o.npz",))
AUDIT = Job("audit", (TRAIN,), ("a.npz",))
STUDY = Job("first", (AUDIT,), ("t.csv",))
SECOND = Job("second", (OTHER,), ("s.csv",))
REPORT = Job("report", (STUDY, SECOND), ("r.html",))
ALL = Job("all", (REPORT,))
DAG = Dag((TRAIN, OTHER, AUDIT, STUDY, SECOND, REPORT, ALL), frozenset({"other", "second"}))
ARTEFACTS = {"first": ["table_1", "figure_2"], "second": ["table_3"]}


def test_what_waits_for_a_failed_job_is_laid_to_it_at_any_distance(tmp_path: Path) -> None:
    account = failures.account(DAG, [TRAIN], ARTEFACTS, tmp_path)
    assert [job["title"] for job in account["failed"]] == ["train sensr on adult"]
    assert {job["title"]: job["because"] for job in account["not_run"]} == {
        name: ["train sensr on adult"] for name in ("audit", "first", "report")
    }
    expected = {"study": "first", "artefacts": ["table_1", "figure_2"], "because": ["train sensr on adult"]}
    assert account["missing"] == [expected]


def test_every_job_that_is_still_to_be_done_stands_in_the_account_once(tmp_path: Path) -> None:
    for failed in ([TRAIN], [STUDY], [TRAIN, SECOND], [Job("group", jobs=(AUDIT, OTHER))]):
        names = {job.name for one in failed for job in (one.jobs or (one,))}
        dag = Dag(DAG.jobs, frozenset({"other", "second"} - names))
        account = failures.account(dag, failed, ARTEFACTS, tmp_path)
        rules = [job["rule"] for job in (*account["failed"], *account["not_run"])]
        assert sorted(rules) == sorted({job.name for job in DAG.jobs} - dag.finished - {"all"})


def test_a_job_whose_turn_did_not_come_is_laid_to_nobody(tmp_path: Path) -> None:
    account = failures.account(Dag(DAG.jobs), [TRAIN], ARTEFACTS, tmp_path)
    assert {job["title"]: job["because"] for job in account["not_run"]}["second"] == []
    assert "`second` (table_3): the run ended before" in failures.text(account)


def test_a_study_that_failed_itself_is_missing_because_of_itself(tmp_path: Path) -> None:
    account = failures.account(DAG, [STUDY], ARTEFACTS, tmp_path)
    assert account["missing"][0]["because"] == ["first"]


def test_the_end_of_the_log_and_what_the_scheduler_said_stand_in_the_account(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "train.log").write_text("".join(f"step {n}\n" for n in range(50)) + "\n")
    (tmp_path / "results").mkdir()
    told = [{"outputs": ["m.npz"], "title": "", "why": why, "logs": []} for why in ("first try", "OUT_OF_MEMORY")]
    (tmp_path / failures.JOURNAL).write_text("".join(json.dumps(line) + "\n" for line in told))
    (job,) = failures.account(DAG, [TRAIN], ARTEFACTS, tmp_path)["failed"]
    assert job["why"] == "OUT_OF_MEMORY"
    (log,) = job["logs"]
    assert log["lines"] == [f"step {n}" for n in range(50 - failures.LAST_LINES, 50)]


def test_a_job_that_wrote_nothing_is_explained_by_the_schedulers_log(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "slurm.log").write_text("slurmstepd: error: no such node\n")
    line = {"outputs": ["m.npz"], "title": "", "why": "", "logs": ["logs/train.log", str(tmp_path / "slurm.log")]}
    (tmp_path / failures.JOURNAL).write_text(json.dumps(line) + "\n")
    (job,) = failures.account(DAG, [TRAIN], ARTEFACTS, tmp_path)["failed"]
    assert [(log["path"], log["state"]) for log in job["logs"]] == [
        ("logs/train.log", "does not exist."),
        ("slurm.log", "ends with"),
    ]


def test_the_account_is_kept_until_what_it_says_is_missing_is_made(tmp_path: Path) -> None:
    account = failures.account(Dag((TRAIN, AUDIT)), [TRAIN], {}, tmp_path)
    failures.save(account, "smoke", [], tmp_path)
    assert json.loads((tmp_path / failures.ACCOUNT).read_text()) == account
    for made in ("m.npz", "a.npz"):
        failures.forget(tmp_path)
        assert (tmp_path / failures.ACCOUNT).exists(), "not everything is made yet"
        (tmp_path / made).touch()
    failures.forget(tmp_path)
    assert not (tmp_path / failures.ACCOUNT).exists()
    assert not (tmp_path / failures.TEXT).exists()


def test_the_report_of_an_incomplete_run_opens_with_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / failures.SUMMARY).write_text("all is well")
    failures.save(failures.account(DAG, [TRAIN], ARTEFACTS, tmp_path), "smoke", [], tmp_path)
    assert not (tmp_path / failures.SUMMARY).exists(), "the report is due again"
    page = (tmp_path / failures.REPORT).read_text()
    assert "This run is not complete." in page
    assert "train sensr on adult" in page
    assert "table_1, figure_2: because of train sensr on adult" in page


def test_a_run_that_was_ended_from_outside_writes_no_account(tmp_path: Path) -> None:
    workflow = Workflow(scale="smoke", studies=["individual_fairness"])
    assert "ended from outside" in workflow.account_for(DAG, [], tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_account_for_which_there_is_no_room_is_given_in_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(failures, "save", no_room)
    said = Workflow(scale="smoke", studies=["individual_fairness"]).account_for(DAG, [TRAIN], tmp_path)
    assert "No account could be written: [Errno 28] No space left on device" in said
    assert "4 jobs are to be done still" in said


def test_snakemake_itself_hands_over_what_the_account_reads(tmp_path: Path) -> None:
    """The jobs, groups and graph above have the attributes that Snakemake's have, in the version that is installed."""
    (tmp_path / "Snakefile").write_text(
        "from pipeline.workflow import failures\nfrom pathlib import Path\n"
        "rule all:\n    input: 'b'\n"
        "rule one:\n    message: 'one of {output}'\n    output: 'a'\n    log: 'l'\n"
        "    shell: 'echo no >{log}; exit 1'\n"
        "rule two:\n    input: 'a'\n    output: 'b'\n    shell: 'touch b'\n"
        "onerror:\n    failures.save(failures.account(workflow.dag, workflow.scheduler.failed, {}, Path('.')), 's', [],"
        " Path('.'))\n"
    )
    subprocess.run(["snakemake", "--cores", "1"], cwd=tmp_path, check=False, capture_output=True)
    account = json.loads((tmp_path / failures.ACCOUNT).read_text())
    (job,) = account["failed"]
    assert (job["title"], job["outputs"], job["logs"][0]["lines"]) == ("one of a", ["a"], ["no"])
    assert [(one["title"], one["because"]) for one in account["not_run"]] == [("two", ["one of a"])]
