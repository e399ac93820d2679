"""Watch jobs with Weights & Biases: one run a job, with resolved configuration, training curves and final metrics.

Tracking only watches: it never changes a result, asks a question, waits for a network that is not there or fails a job.
"""

import hashlib
import json
import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

MODES = ("offline", "online", "disabled")
VARIABLE = "PIPELINE_TRACKER"
"""The environment variable by which the workflow hands its tracker to the jobs, as JSON."""

CONNECT_SECONDS = 3.0
INIT_SECONDS = 6.0
UPLOAD_SECONDS = 60.0


def record(
    output: str,
    config: Mapping[str, Any],
    metrics: Mapping[str, float],
    history: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Track a job that has made ``output`` as the workflow chose for its jobs; outside a workflow nothing is tracked.

    ``config`` is what it computed with, ``metrics`` what came of it, ``history`` training curves (:func:`curves`). The
    job's name is that of the file that only it makes, ``models/laptop/adult/sensr``; its first part is the run's type.
    Runs that are not sent are kept in ``wandb`` below the tracker's folder. ``online`` falls back to ``offline`` with
    one line on standard error where there is no key or no network.
    """
    chosen = json.loads(os.environ.get(VARIABLE) or '{"mode": "disabled"}')
    mode = chosen["mode"]
    if mode not in MODES:
        raise ValueError(f"tracker mode: expected one of {', '.join(MODES)}, found {mode!r}")
    if mode == "disabled":
        return
    name = output.removeprefix("results/").removesuffix(".npz")
    content = {**config, "scale": chosen["scale"]}
    if run := _begun(mode, chosen["project"], chosen["group"], name, content, Path(chosen["folder"])):
        for values, step in curves(history or {}):
            run.log(values, step=step)
        run.summary.update(dict(metrics))
        run.finish()


def curves(history: Mapping[str, np.ndarray]) -> Iterator[tuple[dict[str, float], int]]:
    """(values, step) at each step of training curves: each repetition's value and their mean.

    ``history`` holds ``step`` (L,) and curves (R, L), as :class:`fairness_audits.values.Classifier` does.
    """
    names = [name for name in history if name != "step"]
    for position, step in enumerate(history.get("step", ())):
        values: dict[str, float] = {}
        for name in names:
            column = np.asarray(history[name])[:, position]
            values[f"{name}/mean"] = float(column.mean())
            values.update({f"{name}/{repetition}": float(value) for repetition, value in enumerate(column)})
        yield values, int(step)


def identity(project: str, group: str, name: str, config: Mapping[str, Any]) -> str:
    """The first 16 hexadecimal digits of the sha256 of what a run is: a job that is run again replaces its run."""
    what = json.dumps([project, group, name, config], sort_keys=True, default=str)
    return hashlib.sha256(what.encode()).hexdigest()[:16]


def _begun(mode: str, project: str, group: str, name: str, config: dict[str, Any], folder: Path) -> Any:
    """A started run, or None where even an offline one cannot be had."""
    # Its reports of its own errors would wait for the network at the end of the job, offline too.
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    import wandb  # Half a second, so only where a run is tracked.

    # Silence is told at set-up, before anything can prompt: a terminal would otherwise be asked for a key.
    setup = wandb.setup(settings=wandb.Settings(silent=True, mode="online" if mode == "online" else "offline"))
    run_id = identity(project, group, name, config)
    what: dict[str, Any] = {"project": project, "group": group, "name": name, "config": config, "id": run_id}
    what |= {"job_type": name.split("/")[0], "dir": str(folder), "settings": _settings(wandb)}
    if mode == "online":
        try:
            _require_server(setup.settings.base_url)
            return wandb.init(mode="online", **what)
        except Exception as error:  # wandb raises many kinds, and none of them is worth a job.
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            _tell(f"wandb: not online ({reason}). The run is kept in {folder}/wandb; send it later with `wandb sync`.")
            wandb.teardown(exit_code=1)  # Its service holds on to the run's identity.
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for earlier in (folder / "wandb").glob(f"*run-*-{run_id}*"):
            shutil.rmtree(earlier, ignore_errors=True)
        return wandb.init(mode="offline", **what)
    except Exception as error:
        _tell(f"wandb: this job is not tracked ({error}).")
        return None


def _settings(wandb: Any) -> Any:
    """Quiet, without watching the machine or reading the code, and never waiting long."""
    return wandb.Settings(
        silent=True,
        console="off",
        disable_git=True,
        disable_code=True,
        x_disable_stats=True,
        x_disable_meta=True,
        x_save_requirements=False,
        symlink=False,
        use_dot_wandb=False,
        init_timeout=INIT_SECONDS,
        finish_timeout=UPLOAD_SECONDS,
    )


def _require_server(url: str) -> None:
    """OSError unless the server takes a connection; not asked behind a proxy, which alone knows the way."""
    if os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy"):
        return
    address = urlsplit(url)
    host, port = address.hostname or "", address.port or (80 if address.scheme == "http" else 443)
    socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
