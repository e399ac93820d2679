"""A file whose checksum nobody has recorded: its content is checked, and the sha256 of what came is written down."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pipeline.datasets.download import Patience, fetch
from pipeline.datasets.source import Corrupt, Source, Unavailable
from pipeline.stages import fetch as stage
from pipeline.workflow import plugins

Site = Any
"""The download site on loopback, a fixture of conftest.py."""

BODY = b"name,age\n" + b"ann,3\n" * 2_000
NAME = "list.csv"
HURRIED = Patience(connect=0.5, stall=0.3, grace=0.3, rate=5_000.0, attempts=3)


def counted(path: Path) -> None:
    people = path.read_text().count("ann")
    if people != 2_000:
        raise ValueError(f"expected 2,000 people, found {people:,}")


def source(*urls: str, most: int = 50_000) -> Source:
    return Source(NAME, urls, None, most, licence="none", home="https://example.org", check=counted)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "raw" / "toy"


def get(site: Site, folder: Path, mirror: Path | None = None) -> Any:
    wanted = [source(site.url(NAME))]
    (fetched,) = fetch(wanted, folder, str(mirror) if mirror else None, dataset="toy", patience=HURRIED)
    return fetched


@pytest.mark.parametrize("place", ["raw", "mirror", "address"])
def test_the_right_content_is_taken_and_its_checksum_reported(
    site: Site, raw: Path, tmp_path: Path, place: str
) -> None:
    site.serve(NAME, BODY)
    mirror = tmp_path / "mirror" / "toy"
    for folder in (raw, mirror):
        folder.mkdir(parents=True)
    if place != "address":
        ({"raw": raw, "mirror": mirror}[place] / NAME).write_bytes(BODY)
    fetched = get(site, raw, mirror.parent)
    assert (fetched.sha256, fetched.size) == (hashlib.sha256(BODY).hexdigest(), len(BODY))
    assert fetched.path.read_bytes() == BODY
    assert fetched.place == {
        "raw": str(raw / NAME),
        "mirror": str(mirror / NAME),
        "address": site.url(NAME),
    }[place]  # fmt: skip
    assert [path.name for path in raw.iterdir()] == [NAME]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (BODY[:-6], "expected 2,000 people, found 1,999"),
        (BODY * 5, r"expected at most 50,000 bytes, found \d\d,\d{3} bytes"),
        (b"<!DOCTYPE html><html>ann</html>", r"found 31 bytes \(an HTML page, not data\)"),
        (b"", r"found 0 bytes \(an empty file\)"),
    ],
)
def test_wrong_content_is_refused_wherever_it_stands_and_never_replaced(
    site: Site, raw: Path, body: bytes, reason: str
) -> None:
    site.serve(NAME, body)
    with pytest.raises(Corrupt, match=rf"{NAME} from .* is not the published file: .*{reason}\. Nothing was kept"):
        get(site, raw)
    assert list(raw.iterdir()) == []
    (raw / NAME).write_bytes(body)
    with pytest.raises(Corrupt, match=rf"is not the published file: .*{reason}\. It is neither used nor replaced"):
        get(site, raw)
    assert (raw / NAME).read_bytes() == body


def test_a_cut_download_starts_anew_and_its_pieces_are_not_put_together(site: Site, raw: Path) -> None:
    site.serve(NAME, BODY, cut=4_000, cuts=2)
    assert get(site, raw).size == len(BODY)
    assert [wanted for _, wanted in site.requests] == [None, None, None]


def test_what_an_earlier_attempt_left_is_not_built_on(site: Site, raw: Path) -> None:
    raw.mkdir(parents=True)
    (raw / f"{NAME}.part").write_bytes(BODY[:1_000])
    site.serve(NAME, BODY)
    get(site, raw)
    assert site.requests == [(NAME, None)]


@pytest.mark.parametrize(
    ("behaviour", "what"),
    [
        (
            {"cut": 4_000},
            "the connection was cut at 4,000 of at most 50,000 bytes, which are thrown away for want of a",
        ),
        ({"stall": 2.0}, "the server stalled after 6,004 bytes, which are thrown away for want of a checksum"),
    ],
)
def test_a_download_that_stays_cut_leaves_nothing_and_says_so(
    site: Site, raw: Path, behaviour: dict[str, Any], what: str
) -> None:
    site.serve(NAME, BODY, **behaviour)
    with pytest.raises(Unavailable, match=what):
        get(site, raw)
    assert list(raw.iterdir()) == []


@pytest.mark.parametrize(("sha256", "check"), [(None, None), ("0" * 64, counted)])
def test_a_source_has_either_a_checksum_or_a_check(sha256: str | None, check: Any) -> None:
    found = "neither" if check is None else "both"
    with pytest.raises(
        ValueError, match=rf"list\.csv: a source has a sha256, or, .* a check of its content; found {found}"
    ):
        Source(NAME, (), sha256, 1, licence="", home="", check=check)


def test_the_manifest_records_the_checksum_of_what_came_and_a_change_is_noticed(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("toy")
    vars(module).update(SOURCES=(source(site.url(NAME)),))
    monkeypatch.setattr(plugins, "load", lambda group, kind: module)
    monkeypatch.delenv("DATA_MIRROR", raising=False)
    site.serve(NAME, BODY)
    output = tmp_path / "manifest.json"
    stage.main(["--dataset", "toy", "--source", "official", "--raw", str(tmp_path / "raw"), "--output", str(output)])
    manifest = json.loads(output.read_text())
    assert manifest["origin"] == "official"
    assert [file["sha256"] for file in manifest["files"]] == [hashlib.sha256(BODY).hexdigest()]
    # A wrong one is an error, also where a twin would do.
    (tmp_path / "raw" / NAME).write_bytes(BODY[:-6])
    with pytest.raises(SystemExit, match=r"fetch toy: .*expected 2,000 people, found 1,999"):
        stage.main(["--dataset", "toy", "--raw", str(tmp_path / "raw"), "--output", str(output)])
