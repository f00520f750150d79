"""What README.md shows: its blocks of code, and what they print."""

from __future__ import annotations

import re

from tests.helpers.places import ROOT

README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    """The blocks of a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


FIRST, ARRAYS, ON_SPARK, STREAMS = blocks("python")
PRINTED, MARKED = blocks("text")
COMMANDS = [line.partition("#")[0] for block in blocks("sh") for line in block.splitlines()]
