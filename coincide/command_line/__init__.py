"""The command `coincide`. Starts fast: what a subcommand needs is imported when it runs."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

from coincide.command_line.interruption import (
    DONE,
    INTERRUPTED,
    READER_GONE,
    code_of,
    interruptible,
    received,
)

__all__ = ["main", "run"]


def main() -> NoReturn:
    """Run the command line of this process and exit."""
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _unread()
    except OSError as error:
        from coincide.command_line.problems import cannot_print

        _unread()
        if code == DONE:
            code = _ended(cannot_print("what the command says", error), sys.argv[1:])
    # Python kills itself, whatever the code, if SIGINT has ever left an `exec` by its exception, like
    # a dataclass that was being made; the next `exec` makes it forget that.
    exec("")
    if code != DONE:
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> NoReturn:
    """End the process without taking Python down, which aborts it where a thread of Arrow wants it then."""
    # After an error such a thread may still read CSV on, decoding it by a codec of Python's.
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Run one command line."""
    with interruptible():
        try:
            # Here, where signals are ours already.
            from coincide.command_line.app import program

            words = arguments or ["--help"]
            code = program(words)(args=words, prog_name="coincide", standalone_mode=False)
            if code == INTERRUPTED:
                raise KeyboardInterrupt
            return code or DONE
        except BaseException as error:
            return _ended(error, arguments)


def _unread() -> int:
    """Keep Python from telling at its end that standard output takes no more; the exit code."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    return READER_GONE


def _ended(error: BaseException, arguments: list[str]) -> int:
    """Say what ended a command; its exit code."""
    number = received()
    if number in (signal.SIGTERM, signal.SIGHUP):
        return code_of(number)
    if number is None and isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else DONE
    if type(error).__name__ == "ReaderGone":
        return _unread()
    from coincide.command_line.problems import report, wants_debug

    if number is not None and not isinstance(error, KeyboardInterrupt):
        # What broke did so because it was cut off.
        cut = KeyboardInterrupt()
        cut.__cause__ = error
        error = cut
    return report(error, wants_debug(arguments), arguments)
