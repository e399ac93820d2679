"""A file arrives whole and verified, or not at all; the site is played by a server on loopback.

A file is verified by its recorded sha256 or, where nobody has recorded one, by a check of its content.
"""

import gzip
import hashlib
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fairness_audits.files import UNFINISHED
from pipeline.raw_data.download import Patience, fetch
from pipeline.raw_data.source import Corrupt, FetchError, Source, Unavailable

Site = Any
"""The download site on loopback, a fixture of conftest.py."""

PEOPLE = 17_065
BODY = b"name,age\r\n" + b"ann,3\n" * PEOPLE
NAME = "table.csv"
MOST = 150_000
HURRIED = Patience(connect=0.5, stall=0.3, grace=0.3, rate=50_000.0, attempts=3)
HTML = b"<!DOCTYPE html>\n<html><body>Please sign in to the network</body></html>"


def counted(path: Path) -> None:
    people = path.read_bytes().count(b"ann")
    if people != PEOPLE:
        raise ValueError(f"expected {PEOPLE:,} people, found {people:,}")


def source(*urls: str, recorded: bool = True) -> Source:
    """The table's source; with its sha256 ``recorded``, or of at most ``MOST`` bytes and with a check."""
    sha256, most = (hashlib.sha256(BODY).hexdigest(), len(BODY)) if recorded else (None, MOST)
    check = None if recorded else counted
    return Source(NAME, urls, sha256, most, licence="none", home="https://example.org", check=check)


def get(site: Site, folder: Path, mirror: object = None, recorded: bool = True) -> str:
    """Fetch the table; return where it came from."""
    wanted = [source(site.url(NAME), recorded=recorded)]
    (fetched,) = fetch(wanted, folder, None if mirror is None else str(mirror), dataset="toy", patience=HURRIED)
    assert fetched.path == folder / NAME
    assert fetched.path.read_bytes() == BODY
    assert (fetched.sha256, fetched.size) == (hashlib.sha256(BODY).hexdigest(), len(BODY))
    assert sorted(path.name for path in folder.iterdir()) == [NAME]
    return fetched.place


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "raw" / "toy"


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    folder = tmp_path / "mirror"
    (folder / "toy").mkdir(parents=True)
    return folder


@pytest.mark.parametrize("recorded", [True, False])
def test_the_raw_folder_comes_first_then_the_mirror_then_the_official_address(
    site: Site, raw: Path, mirror: Path, recorded: bool
) -> None:
    site.serve(NAME, BODY)
    assert get(site, raw, mirror, recorded) == site.url(NAME)
    site.requests.clear()
    # A mirror may have the file in the dataset's folder or beside it.
    for place in (mirror / NAME, mirror / "toy" / NAME):
        (raw / NAME).unlink()
        place.write_bytes(BODY)
        assert get(site, raw, mirror, recorded) == str(place)
    assert get(site, raw, mirror, recorded) == str(raw / NAME)
    assert site.requests == []


@pytest.mark.parametrize(
    ("mirror", "held", "tried"),
    [
        ("store", "store/toy/", ["store/toy/"]),
        ("store/", "store/", ["store/toy/", "store/"]),
        ("store", "", ["store/toy/", "store/", ""]),
    ],
)
def test_a_mirror_may_be_an_address_and_comes_before_the_official_one(
    site: Site, raw: Path, mirror: str, held: str, tried: list[str]
) -> None:
    site.serve(NAME, BODY)
    site.serve(f"{held}{NAME}", BODY)
    assert get(site, raw, site.url(mirror)) == site.url(f"{held}{NAME}")
    assert site.requests == [f"{place}{NAME}" for place in tried]


@pytest.mark.parametrize(("body", "status"), [(b"", 404), (BODY[:-1], 200), (HTML, 200)])
def test_of_several_official_addresses_any_one_will_do(site: Site, raw: Path, body: bytes, status: int) -> None:
    site.serve("old", body, status=status)
    site.serve("new", BODY)
    wanted = source(site.url("old"), site.url("new"))
    (fetched,) = fetch([wanted], raw, None, dataset="toy", patience=HURRIED)
    assert fetched.place == site.url("new")


SIZE = f"{len(BODY):,}"
WRONG = [
    (True, BODY[:-7], rf"found {len(BODY) - 7:,} bytes .*truncated: 7 bytes short"),
    (True, BODY + b"x", rf"found {len(BODY) + 1:,} bytes .*1 bytes too many"),
    (True, BODY[:-1] + b"!", rf"found {SIZE} bytes .*the right size, altered"),
    (True, HTML, "an HTML page, not data"),
    (True, b"", "an empty file"),
    (True, BODY * 50, r"found 1\d\d,\d{3} bytes .*bytes too many"),
    (False, BODY[:-6], rf"expected {PEOPLE:,} people, found {PEOPLE - 1:,}"),
    (False, BODY * 5, rf"expected at most {MOST:,} bytes, found \d+,\d{{3}} bytes"),
    (False, HTML, rf"found {len(HTML)} bytes \(an HTML page, not data\)"),
    (False, b"", r"found 0 bytes \(an empty file\)"),
]


@pytest.mark.parametrize(("recorded", "body", "looks"), WRONG)
def test_a_wrong_file_is_refused_wherever_it_stands_and_never_replaced(
    site: Site, raw: Path, mirror: Path, recorded: bool, body: bytes, looks: str
) -> None:
    size = rf"expected {SIZE} bytes with sha256 \w{{64}}, " if recorded else ""
    expected = rf"{NAME} from .* is not the published file: {size}.*{looks}"
    site.serve(NAME, body)
    with pytest.raises(Corrupt, match=expected + r".*Nothing was kept"):
        get(site, raw, recorded=recorded)
    assert list(raw.iterdir()) == []
    site.requests.clear()
    if body == BODY * 50:
        return  # an endless answer is cut off; a file has an end
    (mirror / "toy" / NAME).write_bytes(body)
    with pytest.raises(Corrupt, match=expected + r".*Correct the mirror"):
        get(site, raw, mirror, recorded)
    assert list(raw.iterdir()) == []
    (raw / NAME).write_bytes(body)
    with pytest.raises(Corrupt, match=expected + r".*neither used nor replaced: delete it to have it fetched again"):
        get(site, raw, recorded=recorded)
    assert (raw / NAME).read_bytes() == body
    assert site.requests == []


def test_a_wrong_file_at_a_mirrors_address_is_an_error_though_the_official_one_is_right(site: Site, raw: Path) -> None:
    site.serve(NAME, BODY)
    site.serve(f"store/toy/{NAME}", BODY[:100])
    with pytest.raises(Corrupt, match=rf"store/toy/{NAME} is not the published file"):
        get(site, raw, site.url("store"))


@pytest.mark.parametrize(("sha256", "check"), [(None, None), ("0" * 64, counted)])
def test_a_source_has_either_a_checksum_or_a_check(sha256: str | None, check: Any) -> None:
    found = "neither" if check is None else "both"
    with pytest.raises(ValueError, match=rf"table\.csv: a source has a sha256, or, .* its content; found {found}"):
        Source(NAME, (), sha256, 1, licence="", home="", check=check)


def test_an_absent_file_names_every_place_that_was_tried_and_what_to_do(site: Site, raw: Path, mirror: Path) -> None:
    nowhere = mirror / "nowhere"
    with pytest.raises(Unavailable, match=f"{NAME} of 'toy' is nowhere to be had") as caught:
        get(site, raw, str(nowhere))
    tried = (f"{raw / NAME}: absent", f"mirror {nowhere}: no such folder", f"{site.url(NAME)}: HTTP 404 Not Found")
    for part in (*tried, f"get the file from https://example.org and put it into {raw}", "DATA_MIRROR", "=twin"):
        assert part in str(caught.value)
    # Without an address it is to be got by hand.
    with pytest.raises(Unavailable, match=r"; or do without$") as caught:
        fetch([source()], raw, str(mirror), dataset="toy", otherwise="do without")
    for part in (f"{mirror / 'toy' / NAME}: absent", f"{mirror / NAME}: absent", "(licence: none)"):
        assert part in str(caught.value)
    assert not re.search("connect to the network|twin", str(caught.value))


@pytest.mark.parametrize(
    ("behaviour", "what"),
    [
        ({"silence": 3.0}, "no answer within"),
        ({"stall": 3.0}, r"the server stalled after \d+,\d{3} bytes"),
        ({"drip": 0.1}, "too slow"),
        ({"status": 503}, "HTTP 503"),
        ({"cut": 10_000}, "the connection was cut, 3 times"),
    ],
)
@pytest.mark.parametrize("recorded", [True, False])
def test_a_silent_stalled_slow_or_failing_server_is_left_and_nothing_is_kept(
    site: Site, raw: Path, recorded: bool, behaviour: dict[str, Any], what: str
) -> None:
    site.serve(NAME, BODY, **behaviour)
    with pytest.raises(Unavailable, match=f"{site.url(NAME)}: {what}"):
        get(site, raw, recorded=recorded)
    assert list(raw.iterdir()) == []
    assert len(site.requests) == (HURRIED.attempts if "cut" in behaviour else 1)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x", "http://site.invalid/x", "http://192.0.2.1/x"])
def test_without_a_network_a_file_is_unavailable(raw: Path, url: str) -> None:
    with pytest.raises(Unavailable, match=r"cannot be reached|no answer within"):
        fetch([source(url)], raw, None, dataset="toy", patience=HURRIED)
    # Both failures are of one family.
    assert all(issubclass(*pair) for pair in ((Unavailable, FetchError), (Corrupt, FetchError), (FetchError, OSError)))


@pytest.mark.parametrize("recorded", [True, False])
def test_a_cut_download_is_tried_again(site: Site, raw: Path, recorded: bool) -> None:
    site.serve(NAME, BODY, cut=40_000, cuts=2)
    get(site, raw, recorded=recorded)
    assert len(site.requests) == 3


def test_an_archive_is_kept_as_it_is_stored_though_its_server_declares_the_compression(site: Site, raw: Path) -> None:
    packed = gzip.compress(BODY)
    site.serve("table.csv.gz", packed, encoding="x-gzip")
    wanted = Source(
        "table.csv.gz", (site.url("table.csv.gz"),), hashlib.sha256(packed).hexdigest(), len(packed), "", ""
    )
    fetch([wanted], raw, None, dataset="toy", patience=HURRIED)
    assert (raw / "table.csv.gz").read_bytes() == packed


def test_a_killed_download_leaves_no_file_under_its_name(site: Site, raw: Path) -> None:
    site.serve(NAME, BODY, stall=30.0)
    program = (
        "from pathlib import Path; from pipeline.raw_data.download import Source, fetch; "
        f"source = Source({NAME!r}, ({site.url(NAME)!r},), '0', {len(BODY)}, '', ''); "
        f"fetch([source], Path({str(raw)!r}), None, dataset='toy')"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=Path(__file__).parents[2])
    while not (raw.exists() and any(path.stat().st_size for path in raw.iterdir())) and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (left,) = raw.iterdir()
    # The next run removes what has such a name (`pipeline.workflow.lock`).
    assert UNFINISHED.fullmatch(left.name)
    left.unlink()
    site.serve(NAME, BODY)
    get(site, raw)
