"""ARCHITECTURE.md describes the tree that is there."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
ROOMS = TEXT[TEXT.index("## Rooms") : TEXT.index("## Walls")]
PICTURE = [line for line in ROOMS.splitlines() if line.startswith("    ")]


def committed() -> list[Path]:
    """The files of the repository."""
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return [Path(name) for name in listed.splitlines()]


def named(indent: int) -> set[str]:
    """The files and folders at the head of the picture's lines of this indentation."""
    heads = [line[indent:].split("   ")[0] for line in PICTURE if re.match(rf" {{{indent}}}\S", line)]
    return {name for head in heads for name in head.split()}


def test_every_room_of_the_package_is_in_the_picture_and_every_room_in_it_is_there() -> None:
    files = [path for path in committed() if path.parts[0] == "pipeline" and len(path.parts) > 1]
    rooms = {f"{path.parts[1]}/" for path in files if len(path.parts) > 2}
    modules = {path.name for path in files if len(path.parts) == 2 and not path.name.startswith("__")}
    assert named(6) == rooms | modules


def test_every_folder_at_the_top_is_in_the_picture() -> None:
    folders = {f"{path.parts[0]}/" for path in committed() if len(path.parts) > 1}
    elsewhere = {".ci/", "docs/", "results/", "profiles/"}
    assert named(4) == folders - elsewhere


def test_the_audits_and_the_groups_of_the_configuration_are_in_the_picture() -> None:
    audits = {path.parts[2] for path in committed() if path.parts[:2] == ("pipeline", "audits") and len(path.parts) > 3}
    groups = {path.parts[1].removesuffix(".yaml") for path in committed() if path.parts[0] == "conf"}
    for name in audits:
        assert f"{name}/" in ROOMS
    for name in groups - {"resources"}:
        assert re.search(rf"\b{name}\b", ROOMS)
