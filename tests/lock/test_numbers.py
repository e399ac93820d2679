"""What the studies compute does not change by accident."""

from pathlib import Path

from tests.lock import write
from tests.lock.numbers import COMMAND, FILE, Number, locked, moved


def test_the_numbers_are_the_locked_ones(tmp_path: Path) -> None:
    write.main(tmp_path / "numbers.csv")
    rows = locked(tmp_path / "numbers.csv")
    was, found = {number.name: number for number in locked()}, {number.name: number.value for number in rows}
    assert len(found) == len(rows), "two numbers have one name"
    lines = [f"{name}: computed no more" for name in was.keys() - found.keys()]
    lines += [f"{name}: is {found[name]:.10g}, not locked yet" for name in found.keys() - was.keys()]
    lines += [
        f"{name}: was {number.value:.10g}, is {found[name]:.10g}, relative tolerance {number.tolerance:g}"
        for name, number in was.items()
        if name in found and moved(number, found[name])
    ]
    text = "\n".join(sorted(lines))
    assert not lines, (
        f"{len(lines)} of {len(was)} numbers moved. If they should, `{COMMAND}` writes {FILE.name}:\n{text}"
    )


def test_a_number_that_moves_by_more_than_its_tolerance_is_seen() -> None:
    nan = float("nan")
    tight, loose = Number("a", -2.0, 1e-6, ""), Number("b", 10.0, 0.1, "")
    assert [moved(tight, value) for value in (-2.0, -2.000001, -2.00001, 2.0, nan)] == [False, False, True, True, True]
    assert [moved(loose, value) for value in (10.9, 9.1, 11.1)] == [False, False, True]
    assert not moved(Number("zero", 0.0, 0.1, ""), 0.0)
    assert moved(Number("zero", 0.0, 0.1, ""), 1e-300)
    assert not moved(Number("none", nan, 0.1, ""), nan)
