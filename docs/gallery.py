"""Write docs/gallery.md, one page with every figure of the reference results, from the output of `make figures`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fairness_audits.files import load_json, save_text, written
from fairness_audits.messages import enumerated
from fairness_audits.results.formats import sentence
from pipeline.report.pictures import few_colours

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS.parent / "results" / "reference"
HEAD = """# Gallery

This page shows every figure of the reference results. `make gallery` makes it from `data/reference/`. `make figures`
writes the full report, with tables, published numbers and claims, to `results/reference/report.html`."""


def part(study: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paragraphs of a study from its index (see :func:`pipeline.report.html.describe`)."""
    yield f"## {study['title']}"
    runs: dict[str, list[str]] = {}
    for one in study["reference"]["runs"]:
        runs.setdefault(f"{one['scale']} scale, run on {one['date']}", []).extend(one["datasets"])
    # A single kind of run is that of all data sets.
    named = [f"{enumerated(dict.fromkeys(names))}: {when}" if len(runs) > 1 else when for when, names in runs.items()]
    yield f"{study['paper']}. {sentence('; '.join(named))}."
    for one in study["artefacts"]:
        if one["kind"] == "figure":
            yield f"### {one['label']}. {one['title']}"
            if not one["absent"]:
                yield f"![{one['alternative']}](images/{study['study']}/{one['name']}.png)"
            yield f"{one['absent'] or one['caption']} *{'. '.join(one['stamp'])}.*"


def save_smaller(picture: Path, place: Path) -> None:
    """Save the PNG with few colours."""
    with written(place) as temporary:
        temporary.write_bytes(few_colours(picture.read_bytes()))


def main() -> None:
    """Load the indexes and pictures, and write the page and the smaller pictures."""
    studies = [load_json(path) for path in sorted(RESULTS.glob("tables/*/index.json"))]
    for study in studies:
        for one in study["artefacts"]:
            if one["kind"] == "figure" and not one["absent"]:
                place = Path(study["study"], f"{one['name']}.png")
                save_smaller(RESULTS / "figures" / place, DOCS / "images" / place)
    paragraphs = [HEAD, *(paragraph for study in studies for paragraph in part(study))]
    save_text("\n\n".join(paragraphs) + "\n", DOCS / "gallery.md")


if __name__ == "__main__":
    main()
