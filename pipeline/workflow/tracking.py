"""Track jobs with Weights & Biases: one run per job, with configuration, training curves and final metrics.

Tracking never changes a result, prompts the user, waits for a missing network or fails a job.
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

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Classifier, TransportMap
from pipeline.io import Stored
from pipeline.values import AuditResult

MODES = ("offline", "online", "disabled")
VARIABLE = "PIPELINE_TRACKER"
"""The environment variable with the tracker of the workflow, as JSON."""

FOLDERS = ("WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR")
CONNECTION = (
    "WANDB_API_KEY",
    "WANDB_BASE_URL",
    "WANDB_ENTITY",
    "WANDB_IDENTITY_TOKEN_FILE",
    "WANDB_INSECURE_DISABLE_SSL",
)

CONNECT_SECONDS = 3.0
INIT_SECONDS = 6.0
UPLOAD_SECONDS = 60.0


def metrics(value: Stored) -> tuple[dict[str, float], Mapping[str, np.ndarray]] | None:
    """Return the final metrics of a result and its training curves, None for a value that is not tracked."""
    if isinstance(value, AuditResult):
        return value.rows.groupby("statistic")["value"].mean().to_dict(), {}
    if isinstance(value, Classifier | TransportMap):
        return {name: float(values.mean()) for name, values in value.facts.items()}, value.history
    return None


def record(
    output: str,
    config: Mapping[str, Any],
    metrics: Mapping[str, float],
    history: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Track a finished job with the tracker of the workflow. Without a workflow, do nothing.

    The name of the run comes from the output file, such as ``models/laptop/adult/sensr``. Its first part is the job
    type. Offline runs are stored in ``wandb`` below the folder of the tracker. ``online`` falls back to ``offline``,
    with one line on standard error, if there is no key or no network.

    Parameters
    ----------
    output : str
        The output file of the job.
    config : mapping
        The parameters of the job.
    metrics : mapping
        The final metrics.
    history : mapping, optional
        Training curves, see :func:`curves`.
    """
    chosen = json.loads(os.environ.get(VARIABLE) or '{"mode": "disabled"}')
    mode = chosen["mode"]
    if mode not in MODES:
        raise InvalidInput(f"tracker mode: expected one of {', '.join(MODES)}, found {mode!r}", option="mode")
    if mode == "disabled":
        return
    name = output.removeprefix("results/").removesuffix(".npz")
    content = {**config, "scale": chosen["scale"]}
    _forget_other_runs(mode)
    try:
        run = _begun(mode, chosen["project"], chosen["group"], name, content, Path(chosen["folder"]))
        for values, step in curves(history or {}):
            run.log(values, step=step)
        run.summary.update(dict(metrics))
        run.finish()
        import wandb

        wandb.teardown()  # A job may end without the functions that wandb registers for the exit of a process.
    except Exception as error:  # wandb raises many types. None of them should fail the job.
        _print(f"wandb: this job is not tracked ({error}).")


def curves(history: Mapping[str, np.ndarray]) -> Iterator[tuple[dict[str, float], int]]:
    """Yield (values, step) for each step of the training curves: the value of each repetition and their mean.

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
    """Return the id of a run: 16 hexadecimal digits of a SHA-256. A repeated job replaces its run."""
    what = json.dumps([project, group, name, config], sort_keys=True, default=str)
    return hashlib.sha256(what.encode()).hexdigest()[:16]


def _begun(mode: str, project: str, group: str, name: str, config: dict[str, Any], folder: Path) -> Any:
    """Start a run: offline if it cannot be online."""
    # Error reports would wait for the network at the end of the job, even offline.
    os.environ["WANDB_ERROR_REPORTING"] = "false"
    import wandb  # Imported here because it takes half a second.

    # Set `silent` before anything else, otherwise wandb prompts for a key on a terminal.
    setup = wandb.setup(settings=wandb.Settings(silent=True, mode="online" if mode == "online" else "offline"))
    run_id = identity(project, group, name, config)
    what: dict[str, Any] = {"project": project, "group": group, "name": name, "config": config, "id": run_id}
    what |= {"job_type": name.split("/")[0], "dir": str(folder), "settings": _settings(wandb)}
    if mode == "online":
        try:
            _require_server(setup.settings.base_url)
            return wandb.init(mode="online", **what)
        except Exception as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            _print(f"wandb: not online ({reason}). The run is in {folder}/wandb. Upload it with `wandb sync`.")
            wandb.teardown(exit_code=1)  # The service would otherwise reserve the id of the run.
    folder.mkdir(parents=True, exist_ok=True)
    for earlier in (folder / "wandb").glob(f"*run-*-{run_id}*"):
        shutil.rmtree(earlier, ignore_errors=True)
    return wandb.init(mode="offline", **what)


def _forget_other_runs(mode: str) -> None:
    """Delete wandb's variables, which may come from another run, except those of folders and of the connection."""
    kept = {*FOLDERS, *(CONNECTION if mode == "online" else ())}
    for name in [name for name in os.environ if name.startswith("WANDB_") and name not in kept]:
        del os.environ[name]


def _settings(wandb: Any) -> Any:
    """Return quiet settings with short timeouts that record neither the machine nor the code."""
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
    """Raise OSError if the server accepts no connection. Skip the check behind a proxy."""
    if os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy"):
        return
    address = urlsplit(url)
    host, port = address.hostname or "", address.port or (80 if address.scheme == "http" else 443)
    socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
