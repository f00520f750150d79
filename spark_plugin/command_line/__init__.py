"""The command `coincide`. Starts fast: what a subcommand needs is imported when it runs."""

from __future__ import annotations

import sys
from typing import NoReturn

from spark_plugin.command_line.app import app
from spark_plugin.command_line.exit_codes import DONE, INTERRUPTED
from spark_plugin.command_line.interruption import interruptible

__all__ = ["app", "main", "run"]


def main() -> NoReturn:
    """Run the command line of this process and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line.

    Parameters
    ----------
    arguments : list of str
        Without the program's name.

    Returns
    -------
    int
        0 done; 2 bad usage or bad data; 1 a failure of ours; 130 and 143 interrupted.
    """
    try:
        with interruptible():
            code = app(args=arguments or ["--help"], prog_name="coincide", standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else DONE
    except BaseException as error:
        from spark_plugin.command_line.problems import report, wants_debug

        return report(error, wants_debug(arguments))
    return code or DONE
