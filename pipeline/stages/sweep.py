"""Summarize a sweep and draw its figure: ``rows -> summary, figure``."""

import json
import sys

from fairness_audits.files import save_figure, save_text
from fairness_audits.results import style
from pipeline import io
from pipeline.report import sweep
from pipeline.workflow import stage
from pipeline.workflow.sweep import Figure


def main(arguments: list[str] | None = None) -> None:
    options = stage.options(
        __doc__,
        arguments,
        config={"type": json.loads, "help": "JSON object with the declaration of the sweep"},
        rows={"help": "tidy rows (.parquet)"},
        summary={"help": "file for the summary (.csv)"},
        figure={"help": "file for the figure, without .pdf and .png"},
    )
    declaration = options.config["sweep"]
    name = declaration["name"]
    try:
        figure = Figure.of(name, declaration)
        rows = io.load_rows(options.rows)
        with style.paper():
            picture = sweep.drawn(rows, figure, declaration.get("title", name))
            picture.finish()
            save_figure(picture.figure, options.figure)
        save_text(sweep.summary(rows, figure).to_csv(index=False), options.summary)
    except ValueError as error:
        sys.exit(f"sweep {name}: {error}")
    lines = (f"{len(rows):,} rows: {options.rows}", f"figure: {options.figure}.pdf")
    print("\n".join((*lines, *picture.notes, *picture.stamp.lines())))


if __name__ == "__main__":
    main()
