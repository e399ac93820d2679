"""Entry point of the command line: find the audits, parse, run one, and turn each error into one message."""

from __future__ import annotations

import importlib
import inspect
import logging
import os
import pkgutil
import shutil
import sys
import textwrap
import traceback
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from fairness_audits.errors import InvalidInput
from fairness_audits.files import check_destination
from fairness_audits.messages import listed, missing_package, option_in, shown
from fairness_audits.options import HEAD, Output, Written, add_options, flag, from_yaml, option_fields, similar
from fairness_audits.progress import progress_bar
from fairness_audits.version import __version__

if TYPE_CHECKING:
    from fairness_audits.results.result import Result

BAD_INPUT = 2
"""Exit status of an error that the user can correct; argparse uses the same for a wrong argument."""
UNEXPECTED = 1
"""Exit status of an unexpected error."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells."""
OURS = ("audit", "config", "debug", "module", "parser")
"""Arguments that are not options of an audit."""
INPUTS = {"FILE", "FOLDER", "MODEL", "RESULT"}
"""Placeholders of the options that name what an audit reads."""
OPTIONS_FILE = "audit.yaml"
WRITTEN = {"output": True, "json": False, "junit": False, "checkpoint": False}
"""Options that name an output, including those of single audits; True for a folder."""
EXITS = """
exit status: 0 the audit ran, whatever its outcome; 2 an error that you can correct, with a message on stderr; 1 an
unexpected error; 130 interrupted. {gate}{page}"""
GATE = "With --gate: 0 not rejected, 3 rejected, 4 inconclusive. "


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status. Without --gate, 0 means that the audit ran."""
    words = list(sys.argv[1:] if argv is None else argv)
    # Earlier releases had `audit` before the name of the audit.
    arguments, unknown = parser().parse_known_args(words[1:] if words[:1] == ["audit"] else words)
    if unknown:
        arguments.parser.error(_unrecognized(unknown, arguments.module.Settings))
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader of our output (`| head`) has closed the pipe; redirect the interpreter's last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNEXPECTED
    except KeyboardInterrupt:
        return _failed(arguments.debug, "interrupted: no result was written", INTERRUPTED)
    except (ValueError, OSError) as error:
        return _failed(arguments.debug, f"error: {error}", BAD_INPUT)
    except SystemExit as ended:
        if ended.code == BAD_INPUT:  # argparse's, which has said why
            raise
        # Any other status would look like an outcome: 0 means that the audit passed.
        why = f"the model or a metric ended the audit with SystemExit({ended.code!r}): no result was written"
        return _failed(
            arguments.debug, f"error: {why}. Put code that runs a program under: if __name__ == '__main__'", BAD_INPUT
        )
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and (text := missing_package(error)) != str(error):
            return _failed(arguments.debug, f"error: {text}", BAD_INPUT)
        hint = "" if arguments.debug else " (--debug shows where)"
        return _failed(arguments.debug, f"unexpected error: {type(error).__name__}: {error}{hint}", UNEXPECTED)


def parser() -> ArgumentParser:
    root = ArgumentParser(
        prog="fairness-audits", description="Audit your own model on your own data.", allow_abbrev=False
    )
    root.add_argument("--version", action="version", version=__version__)
    names = root.add_subparsers(dest="audit", metavar="AUDIT", required=True, title="audits")
    for name, module in audits().items():
        described = inspect.getdoc(module) or ""
        width = shutil.get_terminal_size().columns - 2
        command = names.add_parser(
            name,
            help=described.partition("\n")[0],
            description="\n\n".join(textwrap.fill(part, width) for part in described.split("\n\n")),
            epilog=module.EXAMPLES
            + EXITS.format(gate=GATE if issubclass(module.Settings, Output) else "", page=module.PAGE),
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_argument(
            "--config",
            type=Path,
            metavar="FILE",
            help=("YAML file of options, such as the audit.yaml of an earlier audit; flags override it"),
        )
        add_options(command, module.Settings, {"files": module.WRITES.format(*module.FILES)})
        command.add_argument("--debug", action="store_true", help="show the traceback of errors")
        command.set_defaults(module=module, parser=command)
    return root


def audits() -> Mapping[str, ModuleType]:
    """Return the module ``settings`` of each package in ``fairness_audits.audits``, by the name of its command.

    Each module defines ``Settings`` (the options), ``EXAMPLES`` (the end of the help), ``PAGE`` (the link to the
    documentation), ``FILES`` (the names of the output files), ``WRITES`` (their mention in the help), and optionally
    ``COMMAND`` (the name, by default the package's, with ``loss_ratio`` becoming ``loss-ratio``). The module's
    docstring describes the audit; its first line is shown in the list of audits. The package's module ``result``
    defines ``from_files(settings) -> Result``. It raises InvalidInput or OSError for errors that the user can correct;
    the command line prints them as one message and exits with status 2. Every ``--help`` imports all ``settings``
    modules, so they must be cheap to import.
    """
    package = importlib.import_module("fairness_audits.audits")
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__) if module.ispkg)
    modules = {name: importlib.import_module(f"{package.__name__}.{name}.settings") for name in names}
    return {getattr(module, "COMMAND", name.replace("_", "-")): module for name, module in modules.items()}


def settings_of(arguments: Namespace) -> Written:
    """Return the settings from the arguments and the file of ``--config``; exit if a required option is missing.

    Arguments override the file.
    """
    kind: type[Written] = arguments.module.Settings
    values = {} if arguments.config is None else from_yaml(arguments.config, kind, arguments.audit)
    values |= {name: value for name, value in vars(arguments).items() if name not in OURS}
    needed = [one.name for _, one, _ in option_fields(kind) if one.default is MISSING and one.name not in values]
    if needed:
        arguments.parser.error(f"the following arguments are required: {', '.join(map(flag, needed))}")
    return kind(**values)


def audited(module: ModuleType, settings: Written) -> Result:
    """Return the result of an audit with these settings. Its modules may be heavy, so they are imported here."""
    home = importlib.import_module(f"{module.__package__}.result")
    return home.from_files(settings)


def _run(arguments: Namespace) -> int:
    """Audit, write the outputs and print the verdict. Return 0, or the status of the outcome with --gate."""
    settings = settings_of(arguments)
    from fairness_audits.results.render import deliver
    from fairness_audits.results.sentences import STATUS

    for name, folder in WRITTEN.items():
        if (path := getattr(settings, name, None)) is not None:
            check_destination(path, folder)
            _check_kept(flag(name), path, folder, arguments, settings)
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.logging import RichHandler

        # Long fits log their progress above the bar.
        fits = logging.getLogger("fairness_audits.transport")
        fits.addHandler(RichHandler(console=Console(stderr=True), show_path=False))
        fits.setLevel(logging.INFO)
    with progress_bar(arguments.audit):
        found = audited(arguments.module, settings)
    # Write before printing, so that the files exist even if the reader closes the output early (`| head`).
    tested = settings if isinstance(settings, Output) else None
    written = deliver(found, settings.output, settings.json, tested.junit if tested else None)
    print(found.summary())
    for path in written:
        print(f"written: {path}")
    return STATUS[found.outcome] if tested and tested.gate else 0


def _check_kept(by: str, path: Path, folder: bool, arguments: Namespace, settings: Written) -> None:
    """Raise InvalidInput if an output would replace what the audit reads, other than its own audit.yaml."""
    for own in (*_read(settings), *filter(None, [arguments.config])):
        replaced = path.exists() and own.exists() and own.samefile(path)
        if folder and own.resolve().parent == path.resolve():
            replaced |= own.name in arguments.module.FILES
            replaced |= own.name == OPTIONS_FILE and not own.read_text(encoding="utf-8").startswith(HEAD)
        if replaced:
            problem = f"{by}={path} would replace {own}, which the audit reads"
            raise InvalidInput(problem, source=path, option=option_in(by), remedy="Name another place for the output")


def _read(settings: Written) -> Iterator[Path]:
    """Yield the files and folders that the options name, by a path, a pattern, or a path before a colon."""
    from fairness_audits.tables.source import expanded

    for _, one, _ in option_fields(type(settings)):
        value = getattr(settings, one.name)
        given = one.name not in WRITTEN and INPUTS & set((one.metadata["metavar"] or "").split("|"))
        for text in () if not given else value if isinstance(value, tuple | list) else (value,):
            # A text may be no possible name of a file.
            with suppress(OSError, ValueError):
                saved = [f"{text}/audit.json"] if one.metadata["metavar"] == "RESULT" else expanded(str(text))
                names = (str(text), str(text).rpartition(":")[0], *saved)
                yield from (Path(name) for name in names if name and Path(name).exists())


def _unrecognized(words: Sequence[str], settings: type[Written]) -> str:
    """Return the error message for unknown arguments: similar options, and the required options."""
    required = {one.name: one.default is MISSING for _, one, _ in option_fields(settings)}
    names = [name for word in words if word.startswith("--") and (name := option_in(word.partition("=")[0]))]
    hints = "".join(similar(name, required, flag) for name in names)
    needed = listed([flag(name) for name, must in required.items() if must])
    return f"unrecognized arguments: {' '.join(words)}{hints}. The audit needs {needed}; --help lists all"


def _failed(debug: bool, message: str, status: int) -> int:
    sys.stdout.flush()
    if debug:
        traceback.print_exc()
    print(shown(message), file=sys.stderr)
    return status
