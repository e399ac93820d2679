"""Each audit command from the first line of Python to its files, beside the nearest call of a peer, by number of rows.

    python benchmarks/commands.py                        # 10^4, 10^5 and 10^6 rows: about half an hour
    python benchmarks/commands.py --rows 10000 100000    # some minutes
    python benchmarks/commands.py --only permutation --rows 10000000 --peer-rows 10000000
    pip install --target /tmp/peers infairness && PYTHONPATH=/tmp/peers python benchmarks/commands.py --only loss-ratio

Processor time and largest memory of a process of its own, one thread, with imports, reading and drawing. A peer starts
with the rows in memory and computes less: what it does is said beside it. A peer that needs more memory than there is,
or that is not installed, has no number. The tables are Markdown.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

FEATURES = 10
NETWORK = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(10, 50), torch.nn.ReLU(), torch.nn.Linear(50, 2))
net[2].weight.data *= 5
def predict(frame):
    with torch.no_grad():
        return net(torch.tensor(frame.to_numpy(), dtype=torch.float32)).numpy()
"""
HEAD = """
import sys; sys.path.insert(0, {folder!r})
import numpy as np, pandas as pd
rows = pd.read_parquet({folder!r} + "/rows.parquet")
X = rows.filter(regex="^x[0-9]")
"""
COMMANDS = {
    "permutation": "--predictions rows.parquet --label y --score p --prediction d --group g --metric auc,tpr,fpr",
    "loss-ratio": "--data rows.parquet --label y --sensitive g --drop p,d --model model.py:net --dtype float32",
    "fliptest": "--data rows.parquet --label y --group g --source a --target b --drop p,d --predict model.py:predict",
}
PEERS = {
    "permutation": (
        "Fairlearn's MetricFrame, AUC and two rates, 100 bootstraps",
        """
from fairlearn.metrics import MetricFrame, false_positive_rate, true_positive_rate
from sklearn.metrics import roc_auc_score
common = dict(sensitive_features=rows.g, n_boot=100, ci_quantiles=[0.025, 0.975], random_state=0)
MetricFrame(metrics=roc_auc_score, y_true=rows.y, y_pred=rows.p, **common).by_group_ci
rates = dict(tpr=true_positive_rate, fpr=false_positive_rate)
MetricFrame(metrics=rates, y_true=rows.y, y_pred=rows.d, **common).by_group_ci
""",
    ),
    "loss-ratio": (
        "inFairness' SenSRAuditor, 500 steps of Adam",
        """
import torch
from inFairness.auditor import SenSRAuditor
from inFairness.distances import SVDSensitiveSubspaceDistance
from model import net
distance = SVDSensitiveSubspaceDistance()
distance.fit(torch.tensor(X.to_numpy()[:1000], dtype=torch.float32), 1)
auditor = SenSRAuditor(loss_fn=torch.nn.functional.cross_entropy, distance_x=distance, num_steps=500, lr=0.01)
x, y = torch.tensor(X.to_numpy(), dtype=torch.float32), torch.tensor(rows.y.to_numpy())
auditor.audit(net, x, y, lambda_param=50.0, audit_threshold=1.25)
""",
    ),
    "fliptest": (
        "POT's exact plan, no counterparts, intervals, report or noise floor",
        """
import ot
a, b = (X[rows.g == level].to_numpy() for level in "ab")
ot.emd([], [], ot.dist(a, b, metric="cityblock") ** 2, numItermax=10**8)
""",
    ),
}
"""Description and code of each command's peer."""


def write_rows(folder: Path, n: int, features: bool) -> None:
    """Write rows of two groups with label, score, decision and, on request, ten features, two of which differ."""
    rng = np.random.default_rng(0)
    group = rng.random(n) < 0.4
    x = rng.normal(size=(n, FEATURES))
    x[:, :2] += 0.5 * group[:, None]
    merit = x[:, :4].sum(axis=1)
    rows = pd.DataFrame(x if features else x[:, :0], columns=[f"x{j}" for j in range(FEATURES if features else 0)])
    rows["y"] = (merit + rng.logistic(size=n) > 0).astype(int)
    rows["p"] = 1 / (1 + np.exp(-merit))
    rows["d"] = (merit > 0).astype(int)
    rows["g"] = np.where(group, "a", "b")
    rows.to_parquet(folder / "rows.parquet", index=False)
    (folder / "model.py").write_text(NETWORK)


def measured(command: list[str], folder: Path) -> tuple[float, float] | None:
    """Return processor seconds and peak memory in MB of a command in ``folder``; None if it fails."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(["", *sys.path])}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        print((folder / "log").read_text().strip().splitlines()[-1], file=sys.stderr)
        return None
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def shown(found: tuple[float, float] | None) -> str:
    """Format both numbers as table cells."""
    return "- | -" if found is None else f"{found[0]:.1f} | {found[1]:,.0f}"


def main() -> None:
    """Measure and print a table for each command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    parser.add_argument("--only", choices=COMMANDS, nargs="+", default=list(COMMANDS))
    parser.add_argument("--peer-rows", type=int, default=10**5, help="the most rows that a peer is given")
    parser.add_argument("--most-pairs", type=float, default=4e8, help="no exact plan between more pairs (8 bytes each)")
    options = parser.parse_args()
    for name in options.only:
        peer, text = PEERS[name]
        print(f"\n`audit {name}` beside {peer}:\n")
        print("| rows | s | MB | peer, s | MB | ratio |\n|--:|--:|--:|--:|--:|--:|")
        for n in options.rows:
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary)
                write_rows(folder, n, features=name != "permutation")
                python = [sys.executable]
                ours = measured(
                    [*python, "-m", "fairness_audits", name, *COMMANDS[name].split(), "--output", "o"], folder
                )
                fits = n <= options.peer_rows and (name != "fliptest" or 0.24 * n**2 <= options.most_pairs)
                theirs = measured([*python, "-c", HEAD.format(folder=temporary) + text], folder) if fits else None
            ratio = f"{theirs[0] / ours[0]:.1f}" if ours and theirs else "-"
            print(f"| {n:,} | {shown(ours)} | {shown(theirs)} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
