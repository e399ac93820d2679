"""What the rules receive does not change by accident."""

from tests.lock import jobs


def test_the_jobs_of_every_scale_are_the_locked_ones() -> None:
    was, found = jobs.locked(), jobs.computed()
    changed = sorted(key for key in was.keys() | found.keys() if was.get(key) != found.get(key))
    lines = [f"{', '.join(key)}: was {was.get(key, 'nothing')}, is {found.get(key, 'nothing')}" for key in changed]
    assert not lines, f"If these should change, `{jobs.COMMAND}` writes {jobs.FILE.name}:\n" + "\n".join(lines)


def test_a_changed_value_is_seen_and_another_order_is_none() -> None:
    one, other = {"section": {"rate": 1}, "threads": 1}, {"threads": 1, "section": {"rate": 2}}
    assert jobs.digest([one, other]) == jobs.digest([other, dict(reversed(one.items()))])
    assert jobs.digest([one, other]) != jobs.digest([one, {**other, "threads": 2}])
