"""Settings of the user's own shell, Python, installers and notebook change nothing in a run."""

import io
import os
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import snakemake

from fairness_audits.results.style import curve, method_style, new_panels, paper
from pipeline.workflow.invocation import isolate
from tests.files import environment, project_copy

ROOT = Path(__file__).resolve().parent.parent.parent
FOREIGN = {
    "UV_SYSTEM_PYTHON": "1", "UV_PYTHON": "3.9", "UV_TARGET": "/elsewhere", "UV_CONFIG_FILE": "/uv.toml",
    "PIP_TARGET": "/elsewhere", "PYTHONHOME": "/elsewhere", "PYTHONIOENCODING": "ascii", "PYTHONSAFEPATH": "1",
    "PYTHONOPTIMIZE": "2", "BASH_ENV": "/env", "SNAKEMAKE_PROFILE": "other", "MATPLOTLIBRC": "/rc",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
}  # fmt: skip


def test_make_passes_on_where_packages_come_from_and_no_other_setting_of_the_user() -> None:
    sources = {
        "PIP_INDEX_URL": "https://index",
        "PIP_CONFIG_FILE": "/pip.conf",
        "UV_CACHE_DIR": "/c",
        "UV_INDEX_OURS_PASSWORD": "p",
    }
    user = {**os.environ, **FOREIGN, **sources, "PIP_USER": "1", "PYTHONPATH": "/elsewhere", "NAME": "the-machine"}
    shown = "@env; echo NAMED=$(NAME)"
    command = ["make", "-s", "-f", str(ROOT / "Makefile"), "--eval", f"shown: ; {shown}", "shown"]
    lines = subprocess.check_output(command, cwd=ROOT, env=user, text=True).splitlines()
    passed = dict(line.split("=", 1) for line in lines if "=" in line)
    assert not set(FOREIGN) & set(passed)
    assert sources.items() <= passed.items()
    assert (passed["PIP_USER"], passed["UV_NO_CONFIG"], passed["NAMED"]) == ("no", "1", "")
    assert (passed["PYTHONPATH"], passed["PYTHONUTF8"]) == (str(ROOT), "1")


def test_snakemake_without_make_runs_jobs_with_its_own_python_and_without_the_users_settings(tmp_path: Path) -> None:
    project = project_copy(tmp_path / "project")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "python").write_text("#!/bin/sh\nexit 3\n")
    (theirs / "python").chmod(0o755)
    (theirs / "bash_env").write_text("exit 4\n")
    for module in ("scipy", "sklearn", "matplotlib"):
        (theirs / f"{module}.py").write_text("raise RuntimeError\n")
    around = environment(project)
    around |= {
        "PATH": f"{theirs}{os.pathsep}{around['PATH']}",
        "PYTHONPATH": str(theirs),
        "BASH_ENV": str(theirs / "bash_env"),
    }
    around |= {"PYTHONIOENCODING": "ascii", "PYTHONSAFEPATH": "1", "MPLBACKEND": FOREIGN["MPLBACKEND"]}
    command = [str(Path(sys.executable).with_name("snakemake")), "--cores", "1", "data/prepared/smoke/compas.npz"]
    run = subprocess.run(command, cwd=project, env=around, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_pythonpath_stays_where_snakemake_itself_comes_from_it() -> None:
    packages = str(Path(snakemake.__file__).parent.parent)
    for given, kept in ((f"/else{os.pathsep}{packages}",) * 2, ("/else", str(ROOT)), ("", str(ROOT))):
        variables = {"PYTHONPATH": given}
        isolate(variables, ROOT)
        assert variables["PYTHONPATH"] == kept


def test_a_figure_has_the_same_bytes_whatever_the_users_settings_of_matplotlib() -> None:
    def drawn() -> bytes:
        with paper():
            figure, panels = new_panels(2.0, 1, 1)
            curve(panels[0, 0], [0, 1, 2], [1, 3, 2], method_style("baseline"), band=([0, 2, 1], [2, 4, 3]))
            content = io.BytesIO()
            figure.savefig(content, format="svg", metadata={"Date": None})
        return content.getvalue()

    plain = drawn()
    with mpl.rc_context({"axes.grid": True, "figure.facecolor": "black", "axes.xmargin": 0.3, "savefig.bbox": "tight"}):
        assert drawn() == plain
        assert mpl.rcParams["axes.grid"]
