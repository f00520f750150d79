"""PTX to C: one function, which runs one thread of a kernel up to its next barrier (`machine.h`).

What it does not know it refuses: calls, local memory, shuffles and votes, floats of four bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

_C = {
    **{f"{kind}{bits}": f"uint{bits}_t" for kind in "ub" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    "f64": "double",
    "pred": "uint8_t",
}
_SPECIAL = {
    "%tid.x": "thread",
    "%ntid.x": "m->threads",
    "%ctaid.x": "m->block",
    "%nctaid.x": "GRID[0]",
}
_LINE = re.compile(r"(?:@(!?)(%p\d+)\s+)?([\w.:]+)\s*(.*);$")
_OPERANDS = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*")
_DECLARED = re.compile(r"\.reg\s+\.(\w+)\s+%(\w+)<(\d+)>;$")
_SHARED = re.compile(r"\.shared\s+\.align\s+(\d+)\s+\.b8\s+(\w+)\[(\d+)\];$")
_ADDRESS = re.compile(r"\[([%\w$]+)(?:\+(-?\d+))?\]$")


class UnknownPtxError(ValueError):
    """PTX that is not translated."""


class Parameter(NamedTuple):
    """A parameter of a kernel."""

    name: str
    kind: str

    @property
    def size(self) -> int:
        return int(self.kind[1:]) // 8


def entry_name(ptx: str) -> str:
    """The name of the one kernel in it."""
    (name,) = re.findall(r"\.entry\s+([\w$]+)\(", ptx)
    return str(name)


def parameters(ptx: str) -> list[Parameter]:
    """Those of the one kernel in it."""
    head = ptx[ptx.index(".entry") :]
    found = re.findall(r"\.param\s+\.(\w+)\s+([\w$]+)", head[: head.index(")")])
    return [Parameter(name, kind) for kind, name in found]


def translated(ptx: str) -> str:
    """C that includes `machine.h` and defines `PROGRAM`."""
    return _Translation(ptx).source()


class _Translation:
    def __init__(self, ptx: str) -> None:
        self._name, self._parameters = entry_name(ptx), parameters(ptx)
        self._places = {each.name: i for i, each in enumerate(self._parameters)}
        self._registers: dict[str, tuple[str, int]] = {}
        self._shared: dict[str, int] = {}
        self._shared_bytes, self._barriers, self._line = 0, 0, 0
        self._body: list[str] = []
        start = ptx.index("{", ptx.index(".entry"))
        first = ptx[:start].count("\n") + 1
        for self._line, line in enumerate(ptx[start + 1 : ptx.rindex("}")].split("\n"), first):
            self._take(line.partition("//")[0].strip())

    def source(self) -> str:
        fields = "".join(
            f"  {_C[kind]} " + ", ".join(f"{name}{i}" for i in range(count)) + ";\n"
            for name, (kind, count) in self._registers.items()
        )
        barriers = "".join(f"case {i}: goto B{i}; " for i in range(1, self._barriers + 1))
        sizes = ", ".join(str(each.size) for each in self._parameters)
        return "\n".join(
            [
                '#include "machine.h"',
                "static uint32_t GRID[1];",
                f"typedef struct {{\n  int state;\n{fields}}} registers;",
                "static int run(machine *m, void *state, void **parameters, uint8_t *memory,"
                " uint32_t thread) {",
                "registers t = *(registers *)state;",
                f"switch (t.state) {{ default: break; {barriers}}}",
                *self._body,
                "return -1; }",
                f"static const uint8_t SIZES[] = {{{sizes}}};",
                f'const program PROGRAM = {{"{self._name}", {len(self._parameters)}, {self._shared_bytes},'
                " sizeof(registers), SIZES, run, GRID};\n",
            ]
        )

    def _take(self, line: str) -> None:
        if not line or line.startswith((".pragma", ".loc")):
            return
        if declared := _DECLARED.match(line):
            kind, name, count = declared.groups()
            if kind not in _C:
                raise UnknownPtxError(f"registers of {kind}")
            self._registers[name] = kind, int(count)
        elif shared := _SHARED.match(line):
            align, name, size = shared.groups()
            self._shared[name] = -(-self._shared_bytes // int(align)) * int(align)
            self._shared_bytes = self._shared[name] + int(size)
        elif label := re.match(r"\$(\w+):$", line):
            self._body.append(f"{label[1]}:;")
        elif found := _LINE.match(line):
            self._body.append(self._statement(*found.groups()))
        else:
            raise UnknownPtxError(line)

    def _statement(self, unless: str | None, predicate: str | None, op: str, rest: str) -> str:
        name, *more = op.split(".")
        write = _STATEMENTS.get(name)
        if write is None:
            raise UnknownPtxError(f"{op} {rest}")
        operands = [each.strip() for each in _OPERANDS.findall(rest)]
        code = "STEP " + write(self, more, operands)
        if predicate:
            code = f"if ({unless}{self._register(predicate)}) {{ {code} }}"
        return code

    def _register(self, name: str) -> str:
        return f"t.{name[1:]}"

    def kind_of(self, register: str) -> str:
        return self._registers[register[1:].rstrip("0123456789")][0]

    def value(self, operand: str, kind: str) -> str:
        """An operand, read as a kind."""
        to = _C[kind]
        if operand in _SPECIAL:
            return f"(({to}){_SPECIAL[operand]})"
        if operand.startswith("%"):
            register, held = self._register(operand), self.kind_of(operand)
            if (held == "f64") == (kind == "f64"):
                return f"(({to}){register})"
            return f"as_double({register})" if kind == "f64" else f"(({to})as_bits({register}))"
        if operand.startswith("0d"):
            bits = f"0x{operand[2:]}ull"
            return f"as_double({bits})" if kind == "f64" else f"(({to}){bits})"
        if operand in self._shared:
            return f"(({to}){self._shared[operand]})"
        if not re.fullmatch(r"-?\d+", operand):
            raise UnknownPtxError(f"operand {operand}")
        return f"(({to}){int(operand) % 2**64}ull)"

    def assign(self, register: str, kind: str, expression: str) -> str:
        """Give a register what an expression of a kind has."""
        held = self.kind_of(register)
        if (held == "f64") != (kind == "f64"):
            expression = f"as_double({expression})" if held == "f64" else f"as_bits({expression})"
        return f"{self._register(register)} = {expression};"

    def address(self, operand: str) -> str:
        found = _ADDRESS.match(operand)
        if found is None:
            raise UnknownPtxError(f"address {operand}")
        base, offset = found[1], found[2] or "0"
        return f"({self.value(base, 'u64')} + ({offset}ll))"

    def access(self, more: list[str], kind: str, operand: str, how: str, then: str) -> str:
        """Look at an address, and do something with `at`, which has it, if it is sound."""
        line, size = self._line, f"sizeof({_C[kind]})"
        if "shared" in more:
            look = f"shared(m, a, {size}, {how}, thread, {line})"
            where = "memory + a"
        elif not {"local", "const", "param"}.intersection(more):
            # An address of no named space is one of global memory where it is not found to be wrong.
            look = f"global(m, &last, a, {size}, {how}, thread, {line})"
            where = "a"
        else:
            raise UnknownPtxError(f"memory of {more}")
        return (
            f"{{ static uint32_t last; (void)last; uint64_t a = {self.address(operand)};"
            f" if ({look}) {{ {_C[kind]} *at = ({_C[kind]} *)({where}); {then} }} }}"
        )

    def barrier(self, *_: object) -> str:
        self._barriers += 1
        k = self._barriers
        return f"*(registers *)state = t; return {k}; B{k}:;"

    def load(self, more: list[str], a: list[str]) -> str:
        kind = more[-1]
        if "param" in more:
            place = self._places[a[1][1:-1]]
            return self.assign(a[0], kind, f"*({_C[kind]} *)parameters[{place}]")
        read = self.assign(a[0], kind, "read")
        stored = f"{_C[kind]} read = 0; "
        return f"{{ {stored}{self.access(more, kind, a[1], 'LOAD', 'read = *at;')} {read} }}"

    def store(self, more: list[str], a: list[str]) -> str:
        return self.access(more, more[-1], a[0], "STORE", f"*at = {self.value(a[1], more[-1])};")

    def atomic(self, more: list[str], a: list[str]) -> str:
        kind, how = more[-1], more[-2]
        x = self.value(a[2], kind)
        new = {
            "add": f"old + {x}",
            "min": f"old < {x} ? old : {x}",
            "max": f"old > {x} ? old : {x}",
            "exch": x,
            "cas": f"old == {x} ? {self.value(a[-1], kind)} : old",
        }.get(how)
        if new is None or kind == "f64":
            raise UnknownPtxError(f"atom {more}")
        then = f"old = *at; *at = {new};"
        found = "" if a[0] == "_" else self.assign(a[0], kind, "old")
        return f"{{ {_C[kind]} old = 0; {self.access(more, kind, a[1], 'ATOMIC', then)} {found} }}"

    def reduction(self, more: list[str], a: list[str]) -> str:
        return self.atomic(more, ["_", *a])

    def compare(self, more: list[str], a: list[str]) -> str:
        how, kind = more[0], more[-1]
        x, y = self.value(a[1], kind), self.value(a[2], kind)
        # For floats the last letter u: true of NaN, too, so the opposite of the opposite.
        if kind == "f64" and how not in _COMPARISONS:
            made = _FLOAT_COMPARISONS[how]
        elif kind == "f64" and how == "ne":
            made = "({x} < {y} || {x} > {y})"
        else:
            made = f"({{x}} {_COMPARISONS[how]} {{y}})"
        return f"{self._register(a[0])} = {made.format(x=x, y=y)};"

    def select(self, more: list[str], a: list[str]) -> str:
        kind = more[-1]
        chosen = f"({self._register(a[3])} ? {self.value(a[1], kind)} : {self.value(a[2], kind)})"
        return self.assign(a[0], kind, chosen)

    def convert(self, more: list[str], a: list[str]) -> str:
        *rounding, to, source = more
        x = self.value(a[1], source)
        if to == source == "f64":
            return self.assign(a[0], to, f"{_ROUNDED[rounding[0]]}({x})")
        if source == "f64":
            if (to, rounding) != ("s64", ["rzi"]):
                raise UnknownPtxError(f"cvt {more}")
            return self.assign(a[0], to, f"whole(m, {x}, thread, {self._line})")
        return self.assign(a[0], to, f"({_C[to]}){x}")

    def jump(self, _more: list[str], a: list[str]) -> str:
        return f"goto {a[0][1:]};"

    def end(self, *_: object) -> str:
        return "return -1;"

    def whole_address(self, _more: list[str], a: list[str]) -> str:
        return self.assign(a[0], "u64", self.value(a[1], "u64"))


_COMPARISONS = {
    **{"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="},
    **{"lo": "<", "ls": "<=", "hi": ">", "hs": ">="},
}
_FLOAT_COMPARISONS = {
    "equ": "!({x} < {y} || {x} > {y})",
    "neu": "({x} != {y})",
    "ltu": "!({x} >= {y})",
    "leu": "!({x} > {y})",
    "gtu": "!({x} <= {y})",
    "geu": "!({x} < {y})",
    "num": "!(isnan({x}) || isnan({y}))",
    "nan": "(isnan({x}) || isnan({y}))",
}
_ROUNDED = {"rmi": "floor", "rpi": "ceil", "rzi": "trunc", "rni": "nearbyint"}

_Write = Callable[[_Translation, list[str], list[str]], str]


def _wider(kind: str) -> str:
    return f"{kind[0]}{2 * int(kind[1:])}"


def _unsigned(kind: str) -> str:
    """Sums and products wrap around."""
    return kind if kind == "f64" else f"u{kind[1:]}"


def _plain(template: str, kinds: Callable[[str], str] = str) -> _Write:
    """A statement that gives its first operand what a template makes of the others."""

    def write(t: _Translation, more: list[str], a: list[str]) -> str:
        kind = kinds(more[-1])
        x = [t.value(each, kind) for each in a[1:]]
        return t.assign(a[0], kind, f"({_C[kind]})({template.format(*x)})")

    return write


def _of_kind(whole: _Write, real: _Write) -> _Write:
    return lambda t, more, a: (real if more[-1] == "f64" else whole)(t, more, a)


def _product(t: _Translation, more: list[str], a: list[str]) -> str:
    """mul and mad: the low half, the high half, or all of it."""
    kind = more[-1]
    x, y = t.value(a[1], kind), t.value(a[2], kind)
    if kind == "f64":
        return t.assign(a[0], kind, f"{x} * {y}")
    if "hi" in more:
        whole = f"{'unsigned ' * (kind[0] == 'u')}__int128"
        return t.assign(a[0], kind, f"({_C[kind]})((({whole}){x} * {y}) >> {kind[1:]})")
    to = _wider(kind) if "wide" in more else _unsigned(kind)
    added = f" + {t.value(a[3], to)}" if len(a) > 3 else ""
    return t.assign(a[0], to, f"({_C[to]})(({_C[to]}){x} * ({_C[to]}){y}{added})")


def _shift(t: _Translation, more: list[str], a: list[str], left: bool) -> str:
    """By more than all bits: nothing is left, but the sign."""
    kind = _unsigned(more[-1]) if left else more[-1]
    bits, x, by = kind[1:], t.value(a[1], kind), t.value(a[2], "u32")
    beyond = f"({x} >> ({bits} - 1))" if kind[0] == "s" else "0"
    sign = "<<" if left else ">>"
    return t.assign(a[0], kind, f"({_C[kind]})({by} >= {bits} ? {beyond} : {x} {sign} {by})")


def _counted(template: str) -> _Write:
    """A count of bits, in 32 bits."""

    def write(t: _Translation, more: list[str], a: list[str]) -> str:
        kind = _unsigned(more[-1])
        return t.assign(a[0], "u32", template.format(t.value(a[1], kind), bits=kind[1:]))

    return write


_STATEMENTS: dict[str, _Write] = {
    "ld": _Translation.load,
    "st": _Translation.store,
    "atom": _Translation.atomic,
    "red": _Translation.reduction,
    "bar": _Translation.barrier,
    "bra": _Translation.jump,
    "ret": _Translation.end,
    "cvta": _Translation.whole_address,
    "cvt": _Translation.convert,
    "setp": _Translation.compare,
    "selp": _Translation.select,
    "mov": _plain("{0}"),
    "add": _plain("{0} + {1}", _unsigned),
    "sub": _plain("{0} - {1}", _unsigned),
    "mul": _product,
    "mad": _product,
    "fma": _plain("fma({0}, {1}, {2})"),
    "div": _plain("{0} / {1}"),
    "rem": _plain("{0} % {1}"),
    "sqrt": _plain("sqrt({0})"),
    "neg": _plain("-{0}", _unsigned),
    "abs": _of_kind(_plain("{0} < 0 ? -{0} : {0}"), _plain("fabs({0})")),
    "min": _of_kind(_plain("{0} < {1} ? {0} : {1}"), _plain("least({0}, {1})")),
    "max": _of_kind(_plain("{0} > {1} ? {0} : {1}"), _plain("most({0}, {1})")),
    "and": _plain("{0} & {1}"),
    "or": _plain("{0} | {1}"),
    "xor": _plain("{0} ^ {1}"),
    "not": lambda t, more, a: _plain("!{0}" if more[-1] == "pred" else "~{0}")(t, more, a),
    "shl": lambda t, more, a: _shift(t, more, a, left=True),
    "shr": lambda t, more, a: _shift(t, more, a, left=False),
    "popc": _counted("__builtin_popcountll({0})"),
    "clz": _counted("({0} ? __builtin_clzll({0}) - (64 - {bits}) : {bits})"),
}
