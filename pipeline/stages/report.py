"""Write the report, one self-contained page of all studies, and print a summary."""

import argparse
from pathlib import Path

from fairness_audits.files import load_json, save_text
from pipeline import software
from pipeline.report import environment, html
from pipeline.report.pictures import few_colours

SEEDS = (
    "Each random stream has its own seed, the SHA-256 hash of its stage (prepare, train, transport or audit), data "
    "set, method, map, audit and repetition number. There is no global seed."
)


def benchmarks(folder: Path, scale: str) -> list[tuple[str, str]]:
    """Return rule and text of each job's benchmark file, for one scale and for jobs without a scale.

    The files are ``<rule>/<name>.tsv`` or ``<scale>/<rule>/<name>.tsv``.
    """
    found = []
    for path in sorted(folder.rglob("*/*.tsv")):
        *of_scale, rule, _ = path.relative_to(folder).parts
        if of_scale in ([], [scale]):
            found.append((rule, path.read_text(encoding="utf-8")))
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", nargs="*", default=[], help="indexes of the studies (.json)")
    parser.add_argument("--figures", required=True, help="folder with the figures of the studies")
    parser.add_argument("--benchmarks", required=True, help="folder with the benchmark files; it need not exist")
    parser.add_argument("--scale", required=True)
    parser.add_argument(
        "--output", required=True, nargs="+", help="files for the report (.html) and its summary (.txt)"
    )
    options = parser.parse_args(arguments)
    studies = [load_json(path) for path in options.index]
    pictures = {
        (study["study"], artefact["name"]): few_colours(
            Path(options.figures, study["study"], f"{artefact['name']}.png").read_bytes()
        )
        for study in studies
        for artefact in study["artefacts"]
        if artefact["kind"] == "figure"
    }
    facts = {
        "commit": environment.commit(),
        "versions": software.installed(),
        "machine": environment.machine(),
        "seeds": SEEDS,
        "times": environment.rule_times(benchmarks(Path(options.benchmarks), options.scale)),
    }
    page, *printed = options.output
    save_text(html.page(studies, pictures, facts), page)
    summary = html.summary(studies, page)
    for path in printed:
        save_text(summary + "\n", path)
    print(summary)


if __name__ == "__main__":
    main()
