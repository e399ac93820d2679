"""A file arrives whole and verified, or not at all; the site is played by a server on loopback."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pipeline.datasets.download import Patience, fetch
from pipeline.datasets.source import Corrupt, FetchError, Source, Unavailable

Site = Any
"""The download site on loopback, a fixture of conftest.py."""

BODY = bytes(range(256)) * 400
NAME = "table.csv"
HURRIED = Patience(connect=0.5, stall=0.3, grace=0.3, rate=50_000.0, attempts=3)
HTML = b"<!DOCTYPE html>\n<html><body>Please sign in to the network</body></html>"


def source(*urls: str, body: bytes = BODY) -> Source:
    digest = hashlib.sha256(body).hexdigest()
    return Source(NAME, urls, digest, len(body), licence="none", home="https://example.org")


def get(site: Site, folder: Path, mirror: str | None = None, patience: Patience = HURRIED) -> str:
    """Fetch the table; return where it came from."""
    (fetched,) = fetch([source(site.url(NAME))], folder, mirror, dataset="toy", patience=patience)
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


# Where a file is looked for.


def test_the_raw_folder_comes_first_then_the_mirror_then_the_official_address(
    site: Site, raw: Path, mirror: Path
) -> None:
    site.serve(NAME, BODY)
    assert get(site, raw, str(mirror)) == site.url(NAME)
    (raw / NAME).unlink()
    site.requests.clear()

    (mirror / "toy" / NAME).write_bytes(BODY)
    assert get(site, raw, str(mirror)) == str(mirror / "toy" / NAME)
    assert get(site, raw, str(mirror)) == str(raw / NAME)
    assert site.requests == []


def test_a_mirror_may_be_an_address_and_comes_before_the_official_one(site: Site, raw: Path) -> None:
    site.serve(NAME, BODY)
    site.serve(f"store/toy/{NAME}", BODY)
    assert get(site, raw, site.url("store/")) == site.url(f"store/toy/{NAME}")
    assert site.requests == [(f"store/toy/{NAME}", None)]


def test_a_mirror_without_the_file_is_passed_over(site: Site, raw: Path, mirror: Path) -> None:
    site.serve(NAME, BODY)
    assert get(site, raw, site.url("store")) == site.url(NAME)
    assert site.requests[0][0] == f"store/toy/{NAME}"


def test_a_mirror_may_have_the_file_in_the_datasets_folder_or_beside_it(site: Site, raw: Path, mirror: Path) -> None:
    (mirror / NAME).write_bytes(BODY)
    assert get(site, raw, str(mirror)) == str(mirror / NAME)
    (raw / NAME).unlink()
    (mirror / "toy" / NAME).write_bytes(BODY)
    assert get(site, raw, str(mirror)) == str(mirror / "toy" / NAME)
    (raw / NAME).unlink()

    site.serve(f"store/{NAME}", BODY)
    assert get(site, raw, site.url("store")) == site.url(f"store/{NAME}")
    assert [path for path, _ in site.requests] == [f"store/toy/{NAME}", f"store/{NAME}"]


@pytest.mark.parametrize(("body", "status"), [(b"", 404), (BODY[:-1], 200), (HTML, 200)])
def test_of_several_official_addresses_any_one_will_do(site: Site, raw: Path, body: bytes, status: int) -> None:
    site.serve("old", body, status=status)
    site.serve("new", BODY)
    wanted = source(site.url("old"), site.url("new"))
    (fetched,) = fetch([wanted], raw, None, dataset="toy", patience=HURRIED)
    assert fetched.place == site.url("new")


# Wrong files: an error that names file, place, expected and found; nothing is replaced or left behind.


@pytest.mark.parametrize(
    ("body", "looks"),
    [
        (BODY[:-7], r"found 102,393 bytes .*truncated: 7 bytes short"),
        (BODY + b"x", r"found 102,401 bytes .*1 bytes too many"),
        (BODY[:-1] + b"!", r"found 102,400 bytes .*the right size, altered"),
        (HTML, "an HTML page, not data"),
        (b"", "an empty file"),
    ],
)
def test_a_wrong_file_is_refused_wherever_it_stands(
    site: Site, raw: Path, mirror: Path, body: bytes, looks: str
) -> None:
    expected = rf"{NAME} from .* is not the published file: expected 102,400 bytes with sha256 \w{{64}}, .*{looks}"
    site.serve(NAME, body)
    with pytest.raises(Corrupt, match=expected):
        get(site, raw)
    assert list(raw.iterdir()) == []

    site.requests.clear()
    (mirror / "toy" / NAME).write_bytes(body)
    with pytest.raises(Corrupt, match=expected + r".*Mend the mirror"):
        get(site, raw, str(mirror))
    assert list(raw.iterdir()) == []

    (raw / NAME).write_bytes(body)
    with pytest.raises(Corrupt, match=expected + r".*neither used nor replaced: delete it to have it fetched again"):
        get(site, raw)
    assert (raw / NAME).read_bytes() == body
    assert site.requests == []


def test_a_wrong_file_at_a_mirrors_address_is_an_error_though_the_official_one_is_right(site: Site, raw: Path) -> None:
    site.serve(NAME, BODY)
    site.serve(f"store/toy/{NAME}", BODY[:100])
    with pytest.raises(Corrupt, match=rf"store/toy/{NAME} is not the published file"):
        get(site, raw, site.url("store"))


def test_an_endless_answer_is_cut_off(site: Site, raw: Path) -> None:
    site.serve(NAME, BODY * 50)
    with pytest.raises(Corrupt, match=r"found 1\d\d,\d{3} bytes .*bytes too many"):
        get(site, raw)


# Nobody has it.


def test_an_absent_file_names_every_place_that_was_tried_and_what_to_do(site: Site, raw: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    with pytest.raises(Unavailable) as caught:
        get(site, raw, str(nowhere))
    text = str(caught.value)
    for part in (
        f"{NAME} of 'toy' is nowhere to be had",
        f"{raw / NAME}: absent",
        f"mirror {nowhere}: no such folder",
        f"{site.url(NAME)}: HTTP 404 Not Found",
        f"get the file from https://example.org and put it into {raw}",
        "DATA_MIRROR",
        "DATA_SOURCE=twin",
    ):
        assert part in text


def test_a_file_without_an_address_is_to_be_got_by_hand_and_what_else_can_be_done_is_said(
    raw: Path, mirror: Path
) -> None:
    with pytest.raises(Unavailable) as caught:
        fetch([source()], raw, str(mirror), dataset="toy", otherwise="do without")
    text = str(caught.value)
    for part in (f"{mirror / 'toy' / NAME}: absent", f"{mirror / NAME}: absent", "(licence: none)", "; or do without"):
        assert part in text
    assert "connect to the network" not in text
    assert "twin" not in text


@pytest.mark.parametrize(
    ("behaviour", "what"),
    [
        ({"silence": 3.0}, "no answer within"),
        ({"stall": 3.0}, "the server stalled after 51,200 bytes, which are kept"),
        ({"drip": 0.1}, "too slow"),
        ({"status": 503}, "HTTP 503"),
    ],
)
def test_a_silent_stalled_slow_or_failing_server_is_given_up_soon(
    site: Site, raw: Path, behaviour: dict[str, Any], what: str
) -> None:
    site.serve(NAME, BODY, **behaviour)
    started = time.monotonic()
    with pytest.raises(Unavailable, match=what):
        get(site, raw)
    assert time.monotonic() - started < 2.0
    assert not (raw / NAME).exists()


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x", "http://site.invalid/x", "http://192.0.2.1/x"])
def test_without_a_network_it_takes_no_longer_than_the_patience_to_connect(raw: Path, url: str) -> None:
    started = time.monotonic()
    with pytest.raises(Unavailable, match=r"cannot be reached|no answer within"):
        fetch([source(url)], raw, None, dataset="toy", patience=HURRIED)
    assert time.monotonic() - started < 1.5


def test_both_failures_are_one_family_of_operating_system_errors() -> None:
    assert issubclass(Unavailable, FetchError)
    assert issubclass(Corrupt, FetchError)
    assert issubclass(FetchError, OSError)


# Cut downloads continue.


def test_a_cut_connection_is_continued_at_once_from_where_it_stopped(site: Site, raw: Path) -> None:
    site.serve(NAME, BODY, cut=40_000, cuts=2)
    get(site, raw)
    assert [wanted for _, wanted in site.requests] == [None, "bytes=40000-", "bytes=80000-"]


def test_what_was_received_is_kept_and_the_next_call_asks_for_the_rest(site: Site, raw: Path) -> None:
    site.serve(NAME, BODY, cut=10_000)
    with pytest.raises(Unavailable, match="the connection was cut at 30,000 of 102,400 bytes, which are kept"):
        get(site, raw)
    assert [path.name for path in raw.iterdir()] == [f"{NAME}.part"]
    site.requests.clear()
    site.serve(NAME, BODY)
    get(site, raw)
    assert site.requests == [(NAME, "bytes=30000-")]


@pytest.mark.parametrize(
    ("left", "asked"),
    [
        (BODY[:1000], ["bytes=1000-"]),
        (b"another file's beginning", ["bytes=24-", None]),  # continued, found wrong, fetched anew
        (BODY + b"more than there is", [None]),
        (BODY, []),  # complete, only not yet renamed
        (b"?" * len(BODY), [None]),
        (b"", [None]),
    ],
)
def test_whatever_an_earlier_attempt_left_the_right_file_results(
    site: Site, raw: Path, left: bytes, asked: list[str | None]
) -> None:
    raw.mkdir(parents=True)
    (raw / f"{NAME}.part").write_bytes(left)
    site.serve(NAME, BODY)
    get(site, raw)
    assert [wanted for _, wanted in site.requests] == asked


def test_a_site_that_ignores_ranges_is_read_from_the_start_in_one_request(site: Site, raw: Path) -> None:
    raw.mkdir(parents=True)
    (raw / f"{NAME}.part").write_bytes(BODY[:1000])
    site.serve(NAME, BODY, ranges=False)
    get(site, raw)
    assert len(site.requests) == 1


def test_a_part_longer_than_the_sites_file_is_dropped_when_the_site_says_so(site: Site, raw: Path) -> None:
    raw.mkdir(parents=True)
    (raw / f"{NAME}.part").write_bytes(BODY[:50_000])
    site.serve(NAME, BODY[:20_000])  # answers 416 to a range beyond its end
    with pytest.raises(Corrupt, match="found 20,000 bytes"):
        get(site, raw)
    assert [wanted for _, wanted in site.requests] == ["bytes=50000-", None, None]


def test_a_killed_download_leaves_no_half_file_and_is_continued(site: Site, raw: Path) -> None:
    site.serve(NAME, BODY, stall=30.0)
    program = (
        "from pathlib import Path; from pipeline.datasets.download import Source, fetch; "
        f"source = Source({NAME!r}, ({site.url(NAME)!r},), '0', {len(BODY)}, '', ''); "
        f"fetch([source], Path({str(raw)!r}), None, dataset='toy')"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=Path(__file__).parents[2])
    part = raw / f"{NAME}.part"
    deadline = time.monotonic() + 20
    while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (raw / NAME).exists()
    kept = part.stat().st_size
    assert 0 < kept < len(BODY)

    site.serve(NAME, BODY)
    get(site, raw)
    assert site.requests[-1] == (NAME, f"bytes={kept}-")
