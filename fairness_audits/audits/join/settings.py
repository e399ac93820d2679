"""Join: combine the parts of a loss-ratio audit into one test of all rows.

`fairness-audits loss-ratio --part K/N` audits one part of a file, on any machine. Its JSON contains everything that
the test of the whole file needs.
"""

from collections.abc import Sequence

from fairness_audits.options import Output, source

EXAMPLES = """\
examples:
  A file in four parts, and one test of all rows:
    for k in 1 2 3 4; do fairness-audits loss-ratio ... --part $k/4 --json part$k.json; done
    fairness-audits join --parts part1.json part2.json part3.json part4.json --output audit

  Parts that were written into folders:
    fairness-audits join --parts parts/1 parts/2 --json audit.json
"""
PAGE = "See docs/guide/loss_ratio.md for details and the fields of the JSON."
FILES = ("audit.json", "loss_ratio.html", "tests.csv", "examples.csv")
WRITES = "{}, the page {}, {}, {} and the figure"


class Settings(Output):
    """Every option of joining."""

    parts: Sequence[str] = source(
        "the results of the parts: files written by --json, or folders written by --output",
        metavar="RESULT",
        words=True,
        python="results",
    )
