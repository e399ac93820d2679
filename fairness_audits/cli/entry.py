"""Entry point of the command line: find the audits, parse, run one, and turn each error into one message."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import textwrap
import traceback
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from fairness_audits.arguments import HEAD, REQUIRED, Option, read, similar
from fairness_audits.cli.commands import COMMANDS, CONFIG, Command
from fairness_audits.cli.options_file import read_options
from fairness_audits.errors import InvalidInput
from fairness_audits.example import example_data
from fairness_audits.files import check_destination
from fairness_audits.messages import enumerated, listed, missing_package, shown
from fairness_audits.progress import progress_bar
from fairness_audits.results.document import STATUS, page_of
from fairness_audits.version import __version__

BAD_INPUT = 2
"""Exit status of an error that the user can correct; argparse uses the same for a wrong argument."""
UNEXPECTED = 1
"""Exit status of an unexpected error."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells."""
INPUTS = {"FILE", "FOLDER", "MODEL"}
"""Placeholders of the options that name what an audit reads."""
OPTIONS_FILE = "audit.yaml"
EXAMPLE = "example"
"""The command that prints the table of :func:`fairness_audits.example_data`."""
WRITTEN = {"output": True, "json": False, "junit": False, "checkpoint": False, "state": False}
"""Options that name an output, including those of single audits; True for a folder."""
EXAMPLES = "examples:\n{}"
EXITS = (
    "exit status: 0 the audit ran, whatever its outcome; 2 an error that you can correct, with a message on stderr; 1 "
    "an unexpected error; 130 interrupted. {gate}{page}"
)
GATE = "With --gate: 0 no difference is shown, 3 a difference is shown, 4 cannot tell. "


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status. Without --gate, 0 means that the audit ran."""
    words = list(sys.argv[1:] if argv is None else argv)
    # Earlier releases had `audit` before the name of the audit.
    arguments, unknown = parser().parse_known_args(words[1:] if words[:1] == ["audit"] else words)
    if unknown:
        options = arguments.command.options if arguments.command else {}
        arguments.parser.error(_unrecognized(unknown, options))
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
    width = shutil.get_terminal_size().columns - 2
    for name, command in COMMANDS.items():
        texts = command.texts
        one = names.add_parser(
            name,
            help=texts["summary"],
            description="\n\n".join(
                textwrap.fill(part, width) for part in (texts["summary"], *texts["description"].split("\n\n"))
            ),
            epilog=EXAMPLES.format(textwrap.indent(texts["examples"], "  ") + "\n")
            + textwrap.fill(EXITS.format(gate=GATE if command.tests else "", page=f"See {texts['page']}."), width),
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
            usage=_usage(name, command, width),
            add_help=False,
        )
        files = enumerated(["audit.json", f"the page {page_of(name)}", *texts["writes"]])
        for title, options in command.groups.items():
            group = one.add_argument_group(title)
            for option in options:
                _add(group, option, files)
        group = one.add_argument_group("about the command")
        _add(group, CONFIG, "")
        group.add_argument("--debug", action="store_true", help="show the traceback of errors")
        group.add_argument("-h", "--help", action="help", help="show this help and exit")
        one.set_defaults(command=command, parser=one, config=None)
    help_ = "Print a table of 2,000 invented people as CSV, to try the audits on."
    example = names.add_parser(EXAMPLE, help=help_, description=help_, allow_abbrev=False)
    example.set_defaults(command=None, parser=example)
    return root


def _usage(name: str, command: Command, width: int) -> str:
    """Return the usage with what the audit needs, from flags or the file of ``--config``."""
    needed = [f"{one.flag} {one.placeholder}" for one in command.options.values() if one.required]
    head = f"fairness-audits {name} "
    # An option and its value stay on one line.
    words = [one.replace(" ", "\0") for one in (*needed, "[options]")]
    text = textwrap.fill(" ".join(words), width, initial_indent=head, subsequent_indent=" " * len(f"usage: {head}"))
    return text.replace("\0", " ").replace("%", "%%")


def _add(parser: Any, option: Option, files: str) -> None:
    """Add a flag. Flags have no defaults here, so that values of a YAML file are not overridden."""
    text = option.doc.replace("{files}", files).replace("%", "%%")
    if option.default not in (REQUIRED, None, ()) and option.default is not False and "default" not in text:
        text += f" (default: {option.default})"
    how: dict[str, Any] = {"default": SUPPRESS, "help": text, "action": "store_true"}
    if option.hint is not bool:
        how["metavar"] = option.placeholder
        how["type"] = partial(_argument, option=option)
        how["action"] = "extend" if option.repeats else "store"
    parser.add_argument(option.flag, **how)


def _argument(text: str, option: Option) -> Any:
    try:
        return read(text, option.hint)
    except ValueError as error:
        raise ArgumentTypeError(str(option.refused(error, text))) from error


def values_of(arguments: Namespace) -> dict[str, Any]:
    """Return the values of all options, from the arguments, the file of ``--config`` and the defaults, in this order.

    Raises InvalidInput for a wrong value, and exits if a required option is missing.
    """
    known = arguments.command.options
    values = {} if arguments.config is None else read_options(arguments.config, known, arguments.audit)
    values |= {name: value for name, value in vars(arguments).items() if name in known}
    if needed := [one.flag for one in known.values() if one.required and one.name not in values]:
        arguments.parser.error(f"the following arguments are required: {', '.join(needed)}")
    return {name: one.checked(values.get(name, one.default)) for name, one in known.items()}


def _run(arguments: Namespace) -> int:
    """Audit, write the outputs and print the verdict. Return 0, or the status of the outcome with --gate."""
    if arguments.command is None:
        print(example_data().to_csv(index=False, lineterminator="\n"), end="")
        return 0
    values = values_of(arguments)
    from fairness_audits.results.document import Heading
    from fairness_audits.results.render import deliver

    for name, folder in WRITTEN.items():
        if (path := values.get(name)) is not None:
            check_destination(path, folder)
            _check_kept(name, path, folder, arguments, values)
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.logging import RichHandler

        # Long fits log their progress above the bar.
        fits = logging.getLogger("fairness_audits.transport")
        fits.addHandler(RichHandler(console=Console(stderr=True), show_path=False))
        fits.setLevel(logging.INFO)
    with progress_bar(arguments.audit):
        found = arguments.command.run(values)
    # Write before printing, so that the files exist even if the reader closes the output early (`| head`).
    heading = Heading(**{name: values[name] for name in ("title", "model_name", "data_name") if name in values})
    written = deliver(found, values["output"], values["json"], values.get("junit"), heading)
    print(found.summary())
    for path in written:
        print(f"written: {path}")
    return STATUS[found.outcome] if values.get("gate") else 0


def _check_kept(by: str, path: Path, folder: bool, arguments: Namespace, values: Mapping[str, Any]) -> None:
    """Raise InvalidInput if an output would replace what the audit reads, other than its own audit.yaml."""
    files = ("audit.json", page_of(arguments.audit), *arguments.command.texts["writes"])
    state = None if by == "state" else values.get("state")
    for own in (*_read(arguments.command.options, values), *filter(None, [arguments.config, state])):
        replaced = own.resolve() == path.resolve() or (path.exists() and own.exists() and own.samefile(path))
        if folder and own.resolve().parent == path.resolve():
            replaced |= own.name in files
            replaced |= (
                own.name == OPTIONS_FILE and own.exists() and not own.read_text(encoding="utf-8").startswith(HEAD)
            )
        if replaced:
            problem = f"{by}={path} would replace {own}, which the audit reads"
            raise InvalidInput(problem, source=path, option=by, remedy="Name another place for the output")


def _read(options: Mapping[str, Option], values: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the files and folders that the options name, by a path, a pattern, or a path before a colon."""
    from fairness_audits.tables.source import expanded

    for one in options.values():
        value = values[one.name]
        given = one.name not in WRITTEN and INPUTS & set((one.metavar or "").split("|"))
        for text in () if not given else value if isinstance(value, tuple | list) else (value,):
            # A text may be no possible name of a file.
            with suppress(OSError, ValueError):
                names = (str(text), str(text).rpartition(":")[0], *expanded(str(text)))
                yield from (Path(name) for name in names if name and Path(name).exists())


def _unrecognized(words: Sequence[str], options: Mapping[str, Option]) -> str:
    """Return the error message for unknown arguments: similar options, and the required options."""
    names = [word[2:].partition("=")[0].replace("-", "_") for word in words if word.startswith("--")]
    hints = "".join(similar(name, options, lambda one: options[one].flag) for name in names)
    needed = listed([one.flag for one in options.values() if one.required])
    needs = f". The audit needs {needed}; --help lists all" if needed else ""
    return f"unrecognized arguments: {' '.join(words)}{hints}{needs}"


def _failed(debug: bool, message: str, status: int) -> int:
    sys.stdout.flush()
    if debug:
        traceback.print_exc()
    print(shown(message), file=sys.stderr)
    return status
