"""Join: the results of parts of a loss-ratio audit as one test, that of all rows.

Each part was audited on its own, on whatever machine, by `audit loss-ratio --part K/N` of one file. Their JSONs state
what the test of all rows needs.
"""

from collections.abc import Sequence

from fairness_audits.options import Output, source

EXAMPLES = """\
examples:
  A file in four parts, and one test of them:
    for k in 1 2 3 4; do fairness-audits loss-ratio ... --part $k/4 --json part$k.json; done
    fairness-audits join --parts part1.json part2.json part3.json part4.json --output audit

  Parts that wrote folders:
    fairness-audits join --parts parts/1 parts/2 --json audit.json
"""
PAGE = "docs/guide/loss_ratio.md explains more, and the JSON."
FILES = "audit.json, the page loss_ratio.html, tests.csv, examples.csv and the figure"


class Settings(Output):
    """Every option of joining."""

    parts: Sequence[str] = source(
        "the results of the parts: files of --json, or folders of --output", metavar="RESULT", words=True
    )
