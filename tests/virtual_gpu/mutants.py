"""Kernels with a fault each, made from their PTX: what a test of the virtual GPU must see.

``python -m tests.virtual_gpu.mutants`` in the environment of one makes them, runs each in small joins, and
prints a line of JSON for each: its name, and how it was caught, if it was. With a number N after it, only
every N-th is made.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice

_LONGEST_SECONDS = 30
_OTHER = "_param_16]"
"""The address of a second array, where the one at 9 is that of a first."""

_ATOMIC = re.compile(
    r"\s*(@!?%p\d+ )?\s*(?:atom|red)\.(global|shared)\.(add|min)\.(\w+)\s+"
    r"(?:(%rd\d+), )?(\[[^\]]*\]), (%rd\d+);"
)
_PRODUCT = re.compile(r"\s*mul(?:\.rn)?\.f64\s+(%fd\d+), (\S+), (\S+);")
_SUM = re.compile(r"\s*add\.f64\s+(%fd\d+), (%fd\d+), (%fd\d+);")

Mutant = tuple[str, str]


def mutants(ptx: str) -> Iterator[Mutant]:
    """What is wrong, and the PTX."""
    lines = ptx.split("\n")
    for kind, pattern in _EACH.items():
        for number, at in enumerate(_places(lines, pattern)):
            yield f"{kind} {number + 1}", _changed(lines, at, _CHANGES[kind](lines[at]))
    for kind, pattern in _FIRST.items():
        for at in _places(lines, pattern)[: _OTHER in ptx or kind != "another parameter"]:
            yield kind, _changed(lines, at, _CHANGES[kind](lines[at]))
    fused = _fused(lines)
    if fused != lines:
        yield "products fused with sums", "\n".join(fused)


def _places(lines: list[str], pattern: re.Pattern[str]) -> list[int]:
    return [i for i, line in enumerate(lines) if pattern.match(line)]


def _changed(lines: list[str], at: int, line: str) -> str:
    return "\n".join([*lines[:at], line, *lines[at + 1 :]])


def _plain(line: str) -> str:
    """Read, changed and written, one after the other."""
    predicate, space, how, kind, target, address, value = _ATOMIC.match(line).groups()  # type: ignore[union-attr]
    predicate, target = predicate or "", target or value
    changed = f"{how}.{kind.replace('u', 's') if how == 'add' else kind}"
    return (
        f"{predicate}ld.{space}.{kind} %rd99999, {address};"
        f"{predicate}{changed} %rd99998, %rd99999, {value};"
        f"{predicate}st.{space}.{kind} {address}, %rd99998;{predicate}mov.b64 {target}, %rd99999;"
    ).replace(";", ";\n")


_EACH = {"no barrier": re.compile(r"\s*bar\.sync"), "no atomic": _ATOMIC}
"""Everywhere."""

_FIRST = {
    "items of half the size": re.compile(r"\s*shl\.b64\s+\S+, \S+, 3;"),
    "half an item stored": re.compile(r"\s*st\.global\.u64"),
    "another parameter": re.compile(r"\s*ld\.param\.u64\s+\S+, \[\w+_param_9\];"),
}
"""Where it comes first."""

_CHANGES: dict[str, Callable[[str], str]] = {
    "no barrier": lambda _: "",
    "no atomic": _plain,
    "items of half the size": lambda line: line.replace(", 3;", ", 2;"),
    "half an item stored": lambda line: line.replace(".u64", ".u32"),
    "another parameter": lambda line: line.replace("_param_9]", _OTHER),
}


def _fused(lines: list[str]) -> list[str]:
    """Sums of products, rounded once."""
    products = {m[1]: (m[2], m[3]) for line in lines if (m := _PRODUCT.match(line))}

    def fused(line: str) -> str:
        found = _SUM.match(line)
        for product, other in ((3, 2), (2, 3)):
            if found and found[product] in products:
                a, b = products[found[product]]
                return f"fma.rn.f64 {found[1]}, {a}, {b}, {found[other]};"
        return line

    return list(map(fused, lines))


def main() -> None:
    """Make all mutants, and say of each how it was caught."""
    from tests.virtual_gpu.compiling import LOADED
    from tests.virtual_gpu.log import short_name
    from tests.virtual_gpu.works import works

    for _ in range(2):  # the second time without compiling
        truths = {name: work() for name, work in works().items()}
    assert set(truths.values()) == {"equal"}, truths
    step = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    made = ((kernel, *each) for kernel, ptx in list(LOADED.items()) for each in mutants(ptx))
    for kernel, what, changed in islice(made, 0, None, step):
        caught = _caught(kernel, _with_registers(changed))
        print(json.dumps([f"{short_name(kernel)}: {what}", caught]), flush=True)


def _with_registers(ptx: str) -> str:
    """Room for the registers that mutants add."""
    return re.sub(r"(\.reg \.b64\s+%rd)<\d+>", r"\1<100000>", ptx) if "%rd99999" in ptx else ptx


def _caught(kernel: str, ptx: str) -> str | None:
    """How a mutant was caught, in a process of its own, since it may do anything."""
    from tests.virtual_gpu.building import built
    from tests.virtual_gpu.translation import translated

    path = built(translated(ptx))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.write(write, (_judged(kernel, path) or "").encode())
        os._exit(0)
    os.close(write)
    deadline = time.monotonic() + _LONGEST_SECONDS
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(read)
            return "it does not end"
        time.sleep(0.01)
    with os.fdopen(read) as answer:
        return answer.read() or None


def _judged(kernel: str, path: os.PathLike[str]) -> str | None:
    from tests.virtual_gpu import faults
    from tests.virtual_gpu.works import works

    faults.replace(kernel, path)
    for name, work in works().items():
        found = work()
        seen = faults.real_faults()
        if seen or found != "equal":
            return f"{name}: {found}{''.join('; ' + each.partition(': ')[2] for each in seen[:1])}"
    return None


if __name__ == "__main__":
    sys.exit(main())
