"""``python -m coincide``: the command, where no folder of commands is on the path."""

from __future__ import annotations

from coincide.command_line import main

if __name__ == "__main__":
    main()
