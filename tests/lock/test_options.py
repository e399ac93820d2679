"""No option appears, goes or gets another default by accident."""

from tests.lock.options import COMMAND, FILE, LOCKED, computed, locked


def test_the_options_of_every_command_are_the_locked_ones() -> None:
    was, found = ({row[:LOCKED] for row in rows} for rows in (locked(), computed()))
    lines = [f"was: {', '.join(row)}" for row in was - found] + [f"is: {', '.join(row)}" for row in found - was]
    assert not lines, f"If these should change, `{COMMAND}` writes {FILE.name}:\n" + "\n".join(sorted(lines))
