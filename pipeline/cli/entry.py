"""The one entry of the command line: finds the audits, parses, runs one, and turns errors into one message each."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import shutil
import sys
import textwrap
import traceback
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from types import ModuleType

from pipeline import __version__
from pipeline.cli.options import OUTPUT, add_options

BAD_INPUT = 2
"""Exit status when the user can mend what went wrong; argparse uses the same for a wrong argument."""
UNEXPECTED = 1
"""Exit status of an error that nobody foresaw."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""
STATUS = """
exit status: 0 the audit ran, whatever its verdict; with --gate 0 not rejected, 3 rejected, 4 inconclusive; 2 there is
something to mend, said on stderr; 1 an unforeseen error. {page}"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status: 0 when the audit ran, whatever its verdict (but for --gate)."""
    arguments = parser().parse_args(argv)
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader of our output (`| head`) has gone; give the interpreter's last flush somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNEXPECTED
    except KeyboardInterrupt:
        return _failed(arguments.debug, "interrupted: no result was written", INTERRUPTED)
    except (ValueError, OSError) as error:
        return _failed(arguments.debug, f"error: {error}", BAD_INPUT)
    except Exception as error:
        hint = "" if arguments.debug else " (--debug shows where)"
        return _failed(arguments.debug, f"unexpected error: {type(error).__name__}: {error}{hint}", UNEXPECTED)


def parser() -> ArgumentParser:
    """The whole grammar, with a sub-command for each audit found."""
    root = ArgumentParser(
        prog="python -m pipeline", description="Fairness audits of a model of your own.", allow_abbrev=False
    )
    root.add_argument("--version", action="version", version=__version__)
    commands = root.add_subparsers(dest="command", metavar="COMMAND", required=True)
    description = "Audit a model of your own on data of your own."
    audit = commands.add_parser("audit", help=description, description=description, allow_abbrev=False)
    names = audit.add_subparsers(dest="audit", metavar="AUDIT", required=True, title="audits")
    for name, module in audits().items():
        described = inspect.getdoc(module) or ""
        command = names.add_parser(
            name,
            usage=getattr(module, "USAGE", None),
            help=described.partition("\n")[0],
            description=_filled(described),
            epilog=module.EXAMPLES + STATUS.format(page=module.PAGE),
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        add_options(command, module.OPTIONS + OUTPUT.format(files=module.FILES), getattr(module, "KINDS", {}))
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        command.set_defaults(module=module)
    return root


def audits() -> Mapping[str, ModuleType]:
    """The modules in ``pipeline.cli.audit`` by command: their COMMAND or their name (``loss-ratio``)."""
    package = importlib.import_module("pipeline.cli.audit")
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    modules = {name: importlib.import_module(f"{package.__name__}.{name}") for name in names}
    return {getattr(module, "COMMAND", name.replace("_", "-")): module for name, module in modules.items()}


def _run(arguments: Namespace) -> int:
    """Audit with what the module, or its own module ``audit``, offers; imported now, since it may be heavy."""
    from pipeline.cli.delivery import carried_out

    module: ModuleType = arguments.module
    home = module if hasattr(module, "audited") else importlib.import_module(f"{module.__name__}.audit")
    return carried_out(arguments, home.audited)


def _filled(text: str) -> str:
    """Paragraphs of a docstring, wrapped to the width that argparse gives to everything else."""
    width = shutil.get_terminal_size().columns - 2
    return "\n\n".join(textwrap.fill(paragraph, width) for paragraph in text.split("\n\n"))


def _failed(debug: bool, message: str, status: int) -> int:
    """Say on stderr what went wrong, with the traceback only where it was asked for."""
    sys.stdout.flush()
    if debug:
        traceback.print_exc()
    print(message, file=sys.stderr)
    return status
