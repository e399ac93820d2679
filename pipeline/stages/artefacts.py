"""Make a study's tables and figures, and their comparison with the published numbers: ``rows -> artefacts``."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline import io
from pipeline.report import artefacts, index, style
from pipeline.report.inputs import Inputs
from pipeline.report.table import Table
from pipeline.report.together import together
from pipeline.types import Absent


def caption(study: str, name: str) -> str:
    """The artefact's caption, one paragraph of ``pipeline/captions/<study>/<artefact>.rst``.

    Raises ValueError where it is not written.
    """
    path = files("pipeline").joinpath("captions", study, f"{name}.rst")
    if not path.is_file():
        raise ValueError(f"artefact {name!r} has no caption: write pipeline/captions/{study}/{name}.rst")
    return " ".join(path.read_text(encoding="utf-8").split())


def place(path: str, depth: int) -> str:
    """The last ``depth`` parts of a path without its suffix: what a dataset, a classifier or an audit goes by."""
    return "/".join(Path(path.removesuffix(".npz")).parts[-depth:])


def present(paths: Sequence[str], depth: int, load: Callable[[str], Any] = io.load_if_present) -> dict[str, Any]:
    """What these files hold, by what they go by, but of data that cannot be had."""
    found = {place(path, depth): load(path) for path in paths}
    return {name: value for name, value in found.items() if not isinstance(value, Absent)}


def load(
    study: str,
    config: dict,
    rows: str,
    datasets: Sequence[str],
    classifiers: Sequence[str],
    transports: Sequence[str],
    audits: Sequence[str],
) -> Inputs:
    """Everything that the artefacts are made from."""
    return Inputs(
        study=study,
        scale=config["scale"]["name"],
        rows=io.load_rows(rows),
        config=config,
        datasets=present(datasets, 1),
        classifiers=present(classifiers, 2, io.load_without_weights),
        transports={place(path, 2): io.load_transport(path) for path in transports},
        audits={place(path, 4): io.load_audit(path) for path in audits},
    )


@dataclass(frozen=True)
class Maker:
    """Makes one artefact of a study and saves it in its folder."""

    inputs: Inputs
    published: pd.DataFrame
    tables: Path
    figures: Path

    def __call__(self, name: str) -> artefacts.Artefact:
        """The artefact; a picture comes back with an empty drawing, since the page needs none."""
        artefact = artefacts.build(name, self.inputs, self.published, caption(self.inputs.study, name))
        if isinstance(artefact, Table):
            io.save_table(artefact, self.tables / name)
        else:
            with style.paper():
                io.save_figure(artefact.figure, self.figures / name)
            artefact = replace(artefact, figure=style.new_figure(1.0))
        print(f"made {name}", flush=True)
        return artefact


def main(arguments: list[str] | None = None) -> None:
    """Load rows and values, build every artefact that the study lists, save each, and the index for the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", required=True)
    parser.add_argument(
        "--config", required=True, help="JSON: experiment, scale, sections, published; -: standard input"
    )
    parser.add_argument("--rows", required=True, help="tidy rows (.parquet)")
    parser.add_argument("--datasets", nargs="*", default=[], help="prepared datasets (.npz)")
    parser.add_argument("--classifiers", nargs="*", default=[], help="trained classifiers (.npz)")
    parser.add_argument("--transports", nargs="*", default=[], help="transport maps (.npz)")
    parser.add_argument("--audits", nargs="*", default=[], help="audits (.npz)")
    parser.add_argument("--published", required=True, help="the study's published numbers (.csv)")
    parser.add_argument("--tables", required=True, help="folder for the tables")
    parser.add_argument("--figures", required=True, help="folder for the figures")
    parser.add_argument("--index", required=True, help="where the index for the page goes (.json)")
    parser.add_argument("--processes", type=int, default=1, help="how many artefacts are made at once")
    options = parser.parse_args(arguments)
    inputs = load(
        options.study,
        json.loads(sys.stdin.read() if options.config == "-" else options.config),
        options.rows,
        options.datasets,
        options.classifiers,
        options.transports,
        options.audits,
    )
    published = io.load_published(options.published)
    listed = inputs.config["experiment"]["artefacts"]
    names = [*listed["tables"], *listed["figures"]]
    maker = Maker(inputs, published, Path(options.tables), Path(options.figures))
    made = dict(zip(names, together(maker, names, options.processes), strict=True))
    compared = importlib.import_module(f"pipeline.report.{options.study}").compared(inputs, published)
    io.save_json(index.describe(inputs, made, compared), options.index)


if __name__ == "__main__":
    main()
