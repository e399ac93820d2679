"""The bars of the library: drawn where a person watches, for every audit, and nowhere else."""

import sys
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.progress import Progress

import fairness_audits as fa
from fairness_audits.progress import progress_bar, track

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=80), "b": RNG.normal(size=80), "sex": np.arange(80) % 2})
Y = np.asarray(X["a"] + RNG.normal(size=80) > 0).astype(int)


def make_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let stderr be a terminal. Not a fixture, because the capture of a test is another file than that of its setup."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)


def test_nothing_is_printed_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("counting", 2) as step:
        step()
    assert list(track("listing", range(3))) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")


def test_bars_inside_others_are_drawn_together_and_what_is_printed_stays_on_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_terminal(monkeypatch)
    with progress_bar("counting", 2) as step:
        print("of the model")
        step()
        for _ in track("listing", range(2)):
            time.sleep(0.3)
    out, err = capsys.readouterr()
    assert out == "of the model\n"
    assert "counting" in err
    assert "listing" in err


def test_every_audit_shows_that_it_is_at_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from sklearn.tree import DecisionTreeClassifier

    make_terminal(monkeypatch)
    titles, state = list[str](), tmp_path / "watch.json"
    add_task = Progress.add_task

    def added(bar: Progress, title: str, **how: Any) -> Any:
        titles.append(title)
        return add_task(bar, title, **how)

    monkeypatch.setattr(Progress, "add_task", added)
    tree = DecisionTreeClassifier(max_depth=2).fit(X, Y)
    decision = tree.predict(X)
    audits: dict[str, Any] = {
        "permutation test": lambda: fa.permutation_test(Y, prediction=decision, group=X["sex"], metric="tpr"),
        "worst subgroups": lambda: fa.worst_subgroups(X[["sex"]], prediction=decision, metric="selection_rate"),
        "compare": lambda: fa.compare(Y, first=decision, second=Y, group=X["sex"], metric="tpr"),
        "plan": lambda: fa.plan(metric="tpr", value=0.5, gap=0.2),
        "watch": lambda: fa.watch(Y, prediction=decision, group=X["sex"], metric="tpr", state=state, batch="1"),
        "loss ratio": lambda: fa.loss_ratio(tree, X, Y, sensitive=X[["sex"]]),
        "robustness bias": lambda: fa.robustness_bias(tree, X, Y, groups=X["sex"], permutations=99),
        "fliptest": lambda: fa.fliptest(tree, X, group="sex", source="0", target="1", null_draws=2),
    }
    for title, audit in audits.items():
        titles.clear()
        audit()
        assert titles[0] == title


def test_a_notebook_shows_them_as_a_widget(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[Any] = []

    class Output(list):  # type: ignore[type-arg]
        """A widget that keeps what is displayed in it."""

        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...
        def clear_output(self, **_: object) -> None: ...
        def close(self) -> None: ...

    modules: dict[str, Any] = {name: types.ModuleType(name) for name in ("ipykernel", "ipywidgets", "IPython.display")}
    modules["ipywidgets"].Output, modules["IPython.display"].display = Output, shown.append
    modules["ipywidgets"].__spec__ = types.SimpleNamespace()
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    kernel = type("ZMQInteractiveShell", (), {})
    monkeypatch.setattr("builtins.get_ipython", kernel, raising=False)
    with progress_bar("counting", 2) as step:
        step()
    assert [type(one) for one in shown[:1]] == [Output]
    assert capsys.readouterr() == ("", "")
