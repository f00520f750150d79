"""Which lines of the host code of GPUs ran, and which did not.

A process with VIRTUAL_GPU_LINES in its environment, a folder, leaves there what ran. ``python -m
tests.virtual_gpu.lines MODULE ARGUMENTS`` runs a module so.
"""

from __future__ import annotations

import ast
import atexit
import os
import runpy
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from itertools import chain
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tests.helpers.places import ROOT

_OF_KERNELS = {
    *(
        ROOT / "gpu_kernels/kernels" / f"{name}.py"
        for name in (
            "join",
            "aggregates",
            "arrays",
            "borders",
            "causality",
            "searching",
            "sequences",
        )
    ),
    ROOT / "bench/papers/streams/gpu/merging.py",
}
"""A GPU runs what is there."""

_OF_SPARK = {ROOT / "bench/gpu/workers.py", ROOT / "bench/gpu/on_path/sitecustomize.py"}
"""`bench run gpu-spark` runs what is there, in processes that are not watched."""

HOST_FILES = tuple(
    path
    for folder in ("gpu_kernels", "bench/gpu", "bench/papers/streams/gpu")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path not in _OF_KERNELS | _OF_SPARK
)
WATCHED = "VIRTUAL_GPU_LINES"
"""A folder, in the environment of a process that leaves there what it ran."""
_ran: dict[str, set[int]] = {str(path): set() for path in HOST_FILES}


_FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef
_NOTE = "__note_line__"


class _Finder(PathFinder):
    """Finds the files that are watched, before the finders of Python do."""

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = super().find_spec(fullname, path, target)
        if spec is None or spec.origin not in _ran:
            return None
        spec.loader = _Loader(fullname, spec.origin)
        return spec


class _Loader(SourceFileLoader):
    """Loads a file whose functions note each statement. To trace would slow all else down as well."""

    def get_code(self, fullname: str) -> CodeType:
        tree = ast.parse(self.get_data(self.path))
        inside = {
            node
            for function in ast.walk(tree)
            if isinstance(function, _FUNCTIONS)
            for node in ast.walk(function)
        }
        for node in inside:
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list):
                    own = _docstrings(node)
                    noted = ((_note(each), each) for each in block[own:])
                    setattr(node, name, [*block[:own], *chain.from_iterable(noted)])
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        vars(module)[_NOTE] = _ran[self.path].add
        super().exec_module(module)


def _note(statement: ast.stmt) -> ast.stmt:
    """A call that notes its line."""
    called = ast.Name(_NOTE, ast.Load())
    line: list[ast.expr] = [ast.Constant(statement.lineno)]
    return ast.copy_location(ast.Expr(ast.Call(called, line, [])), statement)


def _docstrings(node: ast.AST) -> int:
    """How many of the statements of a node are docstrings: none or one."""
    return isinstance(node, _FUNCTIONS) and ast.get_docstring(node, clean=False) is not None


def watch() -> None:
    """Note what runs of modules that are not loaded yet, if the environment asks for it."""
    folder = os.environ.get(WATCHED)
    if folder:
        atexit.register(_leave, Path(folder) / str(os.getpid()))
        sys.meta_path.insert(0, _Finder)


def _leave(path: Path) -> None:
    path.write_text("\n".join(f"{name}\t{line}" for name, ran in _ran.items() for line in ran))


def statements(path: Path) -> dict[int, str]:
    """The lines of a file's functions on which a statement begins, and whose they are."""
    source = path.read_text()
    wanted: dict[int, str] = {}
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, _FUNCTIONS):
            body = function.body[_docstrings(function) :]
            inner = (each for one in body for each in ast.walk(one) if isinstance(each, ast.stmt))
            wanted |= {each.lineno: function.name for each in inner}
    compiled = _lines(compile(source, str(path), "exec"))
    return {line: name for line, name in wanted.items() if line in compiled}


def _lines(code: CodeType) -> set[int]:
    """Those that the interpreter tells of: not every statement is run."""
    found = {line for _, _, line in code.co_lines() if line}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _lines(constant)
    return found


def gaps(folder: Path) -> tuple[dict[str, list[int]], float]:
    """Lines that no process ran, by file and function, and the share of those that one ran."""
    ran = {
        (name, int(line))
        for path in folder.iterdir()
        for name, _, line in (each.partition("\t") for each in path.read_text().splitlines())
    }
    missing: dict[str, list[int]] = {}
    whole = 0
    for path in HOST_FILES:
        for line, function in statements(path).items():
            whole += 1
            if (str(path), line) not in ran:
                name = f"{path.relative_to(ROOT)}: {function}"
                missing.setdefault(name, []).append(line)
    return missing, 1 - sum(map(len, missing.values())) / whole


if __name__ == "__main__":
    from tests.virtual_gpu import lines

    del sys.argv[0]
    lines.watch()
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
