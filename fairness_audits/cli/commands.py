"""The commands: each audit's options on the command line, where files and columns take the place of arrays."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fairness_audits.arguments import TAKES, Audited, Given, Option
from fairness_audits.text_files import texts_of
from fairness_audits.validation import Count

if TYPE_CHECKING:
    from fairness_audits.results.result import Result

CONFIG = Option(
    "config",
    Path | None,
    None,
    "YAML file of options, such as the audit.yaml of an earlier audit; flags override it",
    "FILE",
)
PREDICTIONS = Option(
    "predictions",
    str,
    doc="The rows to audit: CSV or Parquet, a folder of such files, or a glob in quotes.",
    metavar="FILE",
)
VERSIONS = Option(
    "versions",
    tuple[str, str],
    doc="The two columns with decisions or scores, one for each version.",
    metavar="FIRST,SECOND",
)
MISSING_TEXTS = Option(
    "missing",
    Sequence[str] | None,
    None,
    "Texts that mean a missing value in a CSV, besides the empty cell (default: NA, None, nan, ...). '-': only the "
    "empty cell.",
    "A,B",
)
SEPARATOR = Option(
    "separator",
    Literal["comma", "semicolon", "tab", "bar"] | None,
    None,
    "The separator of the columns of a CSV (default: inferred from its first lines).",
)
CSV = (MISSING_TEXTS, SEPARATOR)
DATA = Option("data", Path, doc="The rows to audit: CSV or Parquet.", metavar="FILE")
FEATURES = Option(
    "features",
    Sequence[str],
    (),
    "The model's input columns, in the model's order (default: the columns that the model names; otherwise all columns "
    "of the file without another role, such as the label, in the file's order).",
    "A,B,C",
)
DROP = Option("drop", Sequence[str], (), "Columns that are not inputs of the model.", "A,B")
TEXT = Option(
    "text", Sequence[str], (), "Columns to read as text although they look like numbers, such as codes like 01.", "A,B"
)
ROWS = (DATA, FEATURES, DROP, TEXT, *CSV)
"""A table of rows, and the columns that the model uses."""
MODEL = Option(
    "model",
    str,
    doc=f"{TAKES}, where name is a model, a function x -> output, or a function without arguments that returns one of "
    "these.",
    metavar="MODEL",
)
INCLUDE_GROUP = Option("include_group", bool, False, "The group column is also an input of the model.")
PREDICT = Option(
    "predict",
    str,
    doc=f"{TAKES}, where name is a model, a function of a data frame of the features, or a function without arguments "
    "that returns one of these. The model returns a decision, a probability or a score for each row, or a column of "
    "scores for each class.",
    metavar="MODEL",
)
TRUST_PICKLE = Option(
    "trust_pickle",
    bool,
    False,
    "Open a pickled model or an exported program. Opening a pickle can run any code, so use this only for files from a "
    "source that you trust.",
)
ENGINE = (
    Option(
        "engine",
        Literal["duckdb", "spark"] | None,
        None,
        "duckdb: one machine, also for files larger than memory. spark: a cluster, needs pyspark and Java 17 or newer "
        "(default: duckdb).",
    ),
    Option("threads", Count | None, None, "Number of threads of the engine (default: all cores).", "N"),
    Option(
        "memory",
        str | None,
        None,
        "Memory limit of the engine, such as 4GB. It uses the disk beyond that.",
        "SIZE",
    ),
)
INCLUDE_SENSITIVE = Option("include_sensitive", bool, False, "The sensitive columns are also inputs of the model.")
DIRECTIONS = Option(
    "directions",
    Path | None,
    None,
    "In place of sensitive: .npy file of shape (number, features) with displacements that should make no difference, "
    "in the columns' units.",
    "FILE",
)
REFERENCE = Option(
    "reference",
    Path | None,
    None,
    "CSV or Parquet with rows that are not audited, and the same columns. The fair metric is learned from them, and a "
    "search among people takes its values from them (default: the metric is learned from all rows of the data, and a "
    "fifth of the rows, but at most 5,000, gives the values).",
    "FILE",
)
GROUPS = Option(
    "group",
    Sequence[str],
    (),
    "Columns whose levels are compared; several are possible, also the label (default for images: all other columns).",
    "COLUMN",
)
IMAGES = (
    Option("images", Path | None, None, "A folder of PNG and JPEG files, at any depth; needs partition.", "FOLDER"),
    Option(
        "partition",
        Path | None,
        None,
        "CSV or Parquet with one row per image: its file, true class and groups.",
        "FILE",
    ),
    Option(
        "file",
        str | None,
        None,
        "The column with the files' paths relative to the folder (default: file, filename, image or path, otherwise "
        "the first column).",
        "COLUMN",
    ),
    Option("channels", Literal[1, 3] | None, None, "1 for grey, 3 for colour (default: 1 if all images are grey)."),
)
"""Images, and a table of their groups."""
OUTPUT = Option("output", Path | None, None, "Folder for {files}.", "DIR")
JSON = Option("json", Path | None, None, "File for the result as JSON.", "FILE")
JUNIT = Option("junit", Path | None, None, "File for the outcome as JUnit XML, for continuous integration.", "FILE")
TITLE = Option("title", str, "", "Title of the page (default: the audit's name).", "TEXT")
NAMES = (
    Option("model_name", str, "", "Name of the model on the page (default: not stated).", "NAME"),
    Option("data_name", str, "", "Name of the data on the page (default: not stated).", "NAME"),
)
"""The head of the page, for readers who do not know the files."""
GATE = Option(
    "gate",
    bool,
    False,
    "Exit with 0: no difference (or: within the limit), 3: a difference (or: beyond it), 4: cannot tell.",
)


@dataclass(frozen=True)
class Command:
    """A command: the audit's package and public function, and the options that name what it ``reads``.

    Its texts are in ``texts/PACKAGE.yaml`` under ``command``, with what the help of some options says besides their
    docstring. An audit that ``tests`` something has an exit status and a file for its outcome.
    """

    package: str
    function: str
    reads: tuple[Option, ...]
    tests: bool = True

    @cached_property
    def audit(self) -> Callable[..., Result]:
        module = importlib.import_module(f"fairness_audits.audits.{self.package}")
        found: Callable[..., Result] = getattr(module, self.function)
        return found

    @cached_property
    def groups(self) -> Mapping[str, Sequence[Option]]:
        """Return the options under the titles of the help."""
        audited: Audited = self.audit.audited  # type: ignore[attr-defined]
        outputs = (OUTPUT, TITLE, *NAMES, JSON, JUNIT, GATE) if self.tests else (OUTPUT, TITLE, JSON)
        more, reads = self.texts.get("options", {}), {one.name: one for one in self.reads}
        every = [
            replace(one, doc=" ".join(filter(None, [one.doc, more.get(one.name)])))
            # What is read comes first, and may declare a column in its own way.
            for one in {**reads, **audited.columns_of_files, **reads, **audited.options}.values()
        ]
        return {
            "required": [one for one in every if one.required],
            "options": [one for one in every if not one.required],
            "output": outputs,
        }

    @property
    def options(self) -> dict[str, Option]:
        """Return all options by name."""
        return {one.name: one for group in self.groups.values() for one in group}

    @property
    def texts(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = texts_of(self.package)["command"]
        return found

    def run(self, values: Mapping[str, Any]) -> Result:
        """Return the result of the audit of files."""
        home = importlib.import_module(f"fairness_audits.audits.{self.package}.result")
        result: Result = home.from_files(Given(self.audit, values).but(**values))
        return result


COMMANDS: Mapping[str, Command] = {
    "compare": Command("compare", "compare", (PREDICTIONS, VERSIONS, *CSV)),
    "fliptest": Command("fliptest", "fliptest", (*ROWS, INCLUDE_GROUP, PREDICT, TRUST_PICKLE)),
    "loss-ratio": Command(
        "loss_ratio", "loss_ratio", (*ROWS, INCLUDE_SENSITIVE, MODEL, TRUST_PICKLE, DIRECTIONS, REFERENCE)
    ),
    "permutation": Command("permutation", "permutation_test", (PREDICTIONS, *CSV, *ENGINE)),
    "plan": Command("plan", "plan", (), tests=False),
    "robustness": Command(
        "robustness_bias",
        "robustness_bias",
        (
            *(MODEL, *IMAGES, replace(DATA, hint=Path | None, default=None)),
            *(*ROWS[1:], DIRECTIONS, GROUPS, TRUST_PICKLE),
        ),
    ),
    "subgroups": Command("subgroups", "worst_subgroups", (PREDICTIONS, *CSV)),
    "watch": Command("watch", "watch", (replace(PREDICTIONS, hint=str | None, default=None), *CSV)),
}
