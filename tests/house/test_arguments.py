"""Messages name arguments by marks, and the command line has an option for each that they name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.helpers.places import ROOT

ROOMS = ("coincide/model", "coincide/engine", "spark_plugin", "gpu_kernels")
# As messages had them: a name, and a value that is a text in quotes.
UNMARKED = re.compile(
    r"(?<![\w.'(])(?:way|how|emit|backend|matching|invalid|unit|tick|prefer|probability)="
    r"(?:'\w+'|True)"
)


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """Line and literal text of what a file raises or warns of."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise) and node.exc is not None:
            for part in ast.walk(node.exc):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def test_messages_mark_the_arguments_that_they_name() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        for line, text in messages(path)
        if UNMARKED.search(text)
    ]
    assert found == []
