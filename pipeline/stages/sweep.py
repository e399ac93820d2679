"""Summarise a sweep and draw the figure that its file asks for: ``rows -> summary, figure``."""

from __future__ import annotations

import argparse
import json
import sys

from pipeline import io
from pipeline.report import style, sweep
from pipeline.workflow.sweep import Figure


def main(arguments: list[str] | None = None) -> None:
    """Load the rows, summarise, draw, save, say where it all is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="JSON: the sweep's declaration and the scale's name")
    parser.add_argument("--rows", required=True, help="the sweep's tidy rows (.parquet)")
    parser.add_argument("--summary", required=True, help="where the summary goes (.csv)")
    parser.add_argument("--figure", required=True, help="where the figure goes, without .pdf and .png")
    options = parser.parse_args(arguments)
    config = json.loads(options.config)
    declaration = config["sweep"]
    name = declaration["name"]
    try:
        figure = Figure.of(name, declaration)
        rows = io.load_rows(options.rows)
        with style.paper():
            picture = sweep.drawn(rows, figure, declaration.get("title", name), config["scale"])
            io.save_figure(picture.figure, options.figure)
        io.save_text(sweep.summary(rows, figure).to_csv(index=False), options.summary)
    except ValueError as error:
        sys.exit(f"sweep {name}: {error}")
    print("\n".join([f"{len(rows):,} rows: {options.rows}", f"figure: {options.figure}.pdf", *picture.footnotes()]))


if __name__ == "__main__":
    main()
