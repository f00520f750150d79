"""Gathers all messages of errors, warnings and logs: `python -m tests.messages` prints them in one page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.helpers.places import ROOT

ROOMS = ("coincide", "cpu_fallback", "gpu_kernels", "spark_plugin")
_TAKES_ONE = re.compile(r"(?:Error|Warning|[Pp]roblem|NotDirect|warn|warning|info|_error)$")
"""Ends of the names of what takes a message."""


class Message(NamedTuple):
    """Where a message is made, and its text with what is filled in as ``{expression}``."""

    line: int
    text: str


def messages(path: Path) -> Iterator[Message]:
    """The messages that a module makes, in its order; constants of the module are written out."""
    tree = ast.parse(path.read_text("utf-8"))
    constants = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _TAKES_ONE.search(ast.unparse(node.func)) and node.args
    ]
    for node in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        text = _text(node.args[0], constants)
        if re.search(r"[a-z]{2}", re.sub(r"\{[^{}]*\}", "", text)):
            yield Message(node.lineno, text)


def _text(node: ast.expr, constants: dict[str, ast.expr]) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, constants) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left, constants) + _text(node.right, constants)
    if isinstance(node, ast.IfExp):
        return max(_text(node.body, constants), _text(node.orelse, constants), key=len)
    if isinstance(node, ast.FormattedValue):
        inner = node.value
        return _text(inner, constants)
    if _is_text(node, constants):
        return _text(constants[ast.unparse(node)], constants)
    return f"{{{_shown(node)}}}"


def _is_text(node: ast.expr, constants: dict[str, ast.expr]) -> bool:
    known = constants.get(node.id) if isinstance(node, ast.Name) else None
    return isinstance(known, (ast.JoinedStr, ast.Constant))


def _shown(node: ast.expr) -> str:
    """An argument by its name, all else as it is written."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("argument", "option"):
        first = node.args[0]
        if isinstance(first, ast.Constant):
            value = "=..." if len(node.args) > 1 else ""
            return f"{first.value}{value}"
    return ast.unparse(node)


def every_module() -> list[Path]:
    """The modules of the product."""
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def page() -> str:
    """All messages, by module."""
    parts = []
    for path in every_module():
        found = [f"  {line}: {text}" for line, text in messages(path)]
        if found:
            parts.append("\n".join([str(path.relative_to(ROOT)), *found]))
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(page())
