import os
import sys
import threading

import pytest

from pipeline.report.artefacts import together

NAMES = ["c", "a", "b", "d"]


@pytest.mark.parametrize("processes", [1, 2, 9])
def test_names_keep_their_order_whoever_works_them_out(processes: int) -> None:
    # A lock cannot be sent to another process: a copy has it.
    lock = threading.Lock()

    def make(name: str) -> tuple[str, int]:
        with lock:
            return name.upper(), os.getpid()

    made = list(together(make, NAMES, processes))
    assert [name for name, _ in made] == ["C", "A", "B", "D"]
    assert (os.getpid() in {worker for _, worker in made}) == (processes == 1 or sys.platform != "linux")


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_is_raised_as_it_was(processes: int) -> None:
    def make(name: str) -> str:
        if name == "b":
            raise ValueError(f"no {name} here")
        return name

    with pytest.raises(ValueError, match="no b here"):
        list(together(make, NAMES, processes))


def test_no_process_is_refused() -> None:
    with pytest.raises(ValueError, match="expected at least one process, found 0"):
        list(together(str, NAMES, 0))
