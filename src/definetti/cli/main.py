"""The entry: finds the command, and turns whatever happens into one message and an exit code.

0 an answer; 1 an answer that a diagnostic doubts; 2 no answer; 130 interrupted. Command modules are imported when asked
for, and import the engine only inside the command: `--help` loads neither numba, scipy nor igraph.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

from definetti import __version__, show
from definetti.cli.output import silence
from definetti.errors import INTERRUPTED, DefinettiError, NotSaved, suggestion

COMMANDS = (
    "info",
    "symmetries",
    "marginals",
    "resume",
    "exact",
    "sample",
    "quotient",
    "compare",
    "report",
    "experiment",
    "explain",
    "doctor",
    "completion",
)


class Commands(click.Group):
    """The command NAME is the object `command` of the module `definetti.cli.commands.NAME`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            raise click.UsageError(f"there is no command {cmd_name!r}{suggestion(cmd_name, COMMANDS)}", ctx)
        return import_module(f"definetti.cli.commands.{cmd_name}").command


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="definetti")
def definetti() -> None:
    """Marginals of discrete probabilistic models, sharpened by their symmetries.

    Exit codes: 0 fine; 1 the answer is printed, but a diagnostic failed; 2 no answer; 130 interrupted.

    \b
    Examples:
      definetti marginals examples/grid.uai --query X0 --plot
      definetti marginals examples/smokers.mln --evidence examples/town.db -o run.json
      definetti report run.json -o page.html
    """


def run(args: Sequence[str] | None = None) -> int:
    """The exit code of one command. Every failure is one message on stderr."""
    try:
        code = definetti.main(args=args, prog_name="definetti", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except (click.Abort, KeyboardInterrupt):
        return interrupted()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f"\nTry '{context.command_path} --help'." if context else ""
        return fail(error.format_message() + hint)
    except DefinettiError as error:
        more = f"\nmore: definetti explain {type(error).__name__}"
        without_answer = INTERRUPTED.is_set() and not isinstance(error, NotSaved)
        return interrupted() if without_answer else fail(str(error) + more)
    except MemoryError as error:
        return fail(f"out of memory ({error})" if str(error) else "out of memory")
    except OSError as error:
        return fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
    except Exception as error:
        if "DEFINETTI_TRACEBACK" in os.environ:
            raise
        if INTERRUPTED.is_set():  # it ended a compiler half-way, which then fails in its own words
            return interrupted()
        return fail(
            f"a bug in definetti, please report it: {type(error).__name__}: {error} (DEFINETTI_TRACEBACK=1 shows where)"
        )


def interrupted() -> int:
    return fail("interrupted: no answer yet", 130)


def fail(message: str, code: int = 2) -> int:
    try:
        print(show.printable(f"definetti: {message}"), file=sys.stderr, flush=True)
    except OSError:  # nobody listens
        silence(sys.stderr)
    return code


def _interrupt(number: int, _: object) -> NoReturn:
    INTERRUPTED.set()
    sys.unraisablehook = lambda _: None  # callbacks of the compiler print what they cannot raise
    lock = sys.modules.get("numba.core.compiler_lock")
    if lock is not None and lock.global_compiler_lock.is_locked():  # an exception may leave LLVM half-way, and crash
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h")  # a progress bar hides the cursor
        os._exit(interrupted())
    raise KeyboardInterrupt


def main() -> NoReturn:
    for name in ("SIGINT", "SIGTERM"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _interrupt)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller: a file of ours must not take its place
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # a terminal that cannot show ± must not cost the answer
    code = run()
    if (
        code == 130
    ):  # a Ctrl-C that fell into code run from a string would make the interpreter die of the signal itself
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the answer is out: a late Ctrl-C must not change the exit code
    sys.exit(code)
