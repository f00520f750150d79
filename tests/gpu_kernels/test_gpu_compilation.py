"""Every GPU kernel compiles, for every architecture, without a GPU: and nothing is fused or spilled."""

from __future__ import annotations

import re
from functools import cache

import pytest

from gpu_kernels.kernels.simulation import SIMULATED

if SIMULATED:
    pytest.skip("the simulator compiles nothing", allow_module_level=True)

from bench.papers.streams.gpu import merging
from coincide.model.causality.template_rule import TemplateRule
from gpu_kernels.kernels import aggregates, arrays, borders, causality, join, sequences
from gpu_kernels.kernels.compilation import Kernel
from tests.helpers.gpu_compilation import (
    ARCHITECTURES,
    HISTOGRAM_KERNELS,
    KERNELS,
    SPAN_KERNELS,
    UNCERTAIN_SPAN_KERNELS,
    Compiled,
    architecture,
    assembled,
)

MOST_REGISTERS = 64
"""With more, a multiprocessor of 65,536 registers holds fewer than four blocks of 256 threads."""

MOST_OF_HISTOGRAMS, MOST_OF_WALKS = 80, 96
"""Three blocks for histograms; two where a candidate is a walk along the buckets of both, or four ends."""

MOST_OF_WHOLES = 168
"""One block where a tuple is a walk along polynomials, which lie in memory."""

QUICK = (9, 0)
"""Compiling takes long: quick tests do with one architecture."""

WITHOUT_DIVISION = (
    *(join.place, join.tile_owners, join.scatter, join.copy),
    *(join.scatter_int32, join.copy_int32),
    *(merging.merge, merging.first_live, borders.locate, borders.tell),
    *(causality.place_causes, causality.copy),
    *(aggregates.take_ranges, aggregates.take_candidates, arrays.first_invalid),
    *(sequences.count_links, sequences.grow, sequences.keep),
    *(sequences.flag_near, sequences.flag_others),
    *(set(HISTOGRAM_KERNELS) - {causality.probe.of(TemplateRule)}),
    *SPAN_KERNELS,
)

every_kernel_and_architecture = pytest.mark.parametrize(
    ("kernel", "capability"),
    [
        pytest.param(
            *(kernel, each),
            marks=[] if each == QUICK else pytest.mark.slow,
            id=f"{name}-{architecture(each)}",
        )
        for each in ARCHITECTURES
        for kernels, what in (
            (KERNELS, ""),
            (HISTOGRAM_KERNELS, "-histograms"),
            (SPAN_KERNELS, "-spans"),
            (UNCERTAIN_SPAN_KERNELS, "-uncertain-spans"),
        )
        for kernel in kernels
        for name in [kernel.py_func.__name__ + what]
    ],
)

compiled = cache(Compiled)
machine_code = cache(Compiled.machine_code)


def products_added(ptx: str) -> list[str]:
    """Float additions of a product, which the assembler might fuse; and those fused already."""
    # With a rounding of its own (mul.rn) a product is never fused.
    products = set(re.findall(r"\bmul\.f(?:32|64)\s+(%\w+)", ptx))
    for target, source in re.findall(r"\bmov\.f(?:32|64)\s+(%\w+), (%\w+);", ptx):
        products |= {target} if source in products else set()
    sums = re.findall(r"\b(?:add|sub)\.f(?:32|64)\s+(%\w+), (\S+), (\S+);", ptx)
    fused = re.findall(r"\bfma\.\S+\s+[^;]*;", ptx)
    return fused + [" ".join(one) for one in sums if products & set(one[1:])]


@every_kernel_and_architecture
def test_kernel_is_assembled_without_spills(kernel: Kernel, capability: tuple[int, int]) -> None:
    made = compiled(kernel, capability)
    assert f".target {architecture(capability)}" in made.ptx
    cost = machine_code(made).cost
    assert (cost.spilled, cost.stack) == (0, 0)
    most = MOST_OF_HISTOGRAMS if kernel in HISTOGRAM_KERNELS else MOST_REGISTERS
    if kernel is causality.probe.of(TemplateRule) or kernel in UNCERTAIN_SPAN_KERNELS:
        most = MOST_OF_WALKS
    if kernel in sequences.JUDGES.values():
        most = MOST_OF_WHOLES
    assert 0 < cost.registers <= most
    assert not re.search(r"\bcall\b", made.ptx)


@every_kernel_and_architecture
def test_no_product_is_fused_with_a_sum(kernel: Kernel, capability: tuple[int, int]) -> None:
    """So probabilities and distances have the CPU's bits: see `coincide.model.probability`."""
    made = compiled(kernel, capability)
    assert products_added(made.ptx) == []
    assert ("div.rn.f64" in made.ptx) == (kernel not in WITHOUT_DIVISION)
    # Nor would the assembler, which may: it makes the same instructions if it may not.
    assert machine_code(made).opcodes == machine_code(made, "--fmad=false").opcodes


ATOMICS = {
    join.probe.py_func: ["global.add.u64"] * 2 + ["shared.add.u32"],
    join.most_probable.py_func: ["global.cas.b64", "global.add.u64", "shared.add.u64"],
    join.nearest.py_func: ["global.min.u64"],
    join.foremost.py_func: ["global.min.s64"],
    aggregates.take_candidates.py_func: ["global.add.u64", "global.min.s64"],
    arrays.first_invalid.py_func: ["global.min.s64"],
}
"""What several threads write at the same place. The simulator's threads would hardly meet there."""


@every_kernel_and_architecture
def test_where_threads_meet_they_write_atomically(
    kernel: Kernel, capability: tuple[int, int]
) -> None:
    # Newer architectures also name an order of memory: the weakest, as before.
    found = re.findall(r"\b(?:atom|red)\.(?:relaxed\.)?(\S+)", compiled(kernel, capability).ptx)
    if kernel is aggregates.take_candidates:  # whose loops over columns are unrolled
        found = list(set(found))
    assert sorted(found) == sorted(ATOMICS.get(kernel.py_func, []))


def test_a_product_added_is_seen() -> None:
    assert products_added("mul.f64 %fd3, %fd1, %fd2;\nadd.f64 %fd5, %fd4, %fd3;")
    assert products_added("mul.f32 %f3, %f1, %f2;\nmov.f32 %f4, %f3;\nsub.f32 %f5, %f4, %f1;")
    assert products_added("fma.rn.f64 %fd3, %fd1, %fd2, %fd3;")
    assert not products_added("mul.f64 %fd3, %fd1, %fd2;\nadd.f64 %fd5, %fd4, %fd4;")


_SUM = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry sum(.param .u64 place) {{
.reg .f64 %fd<4>; .reg .b64 %rd<2>;
ld.param.u64 %rd1, [place];
ld.global.f64 %fd1, [%rd1];
ld.global.f64 %fd2, [%rd1+8];
{product}.f64 %fd3, %fd1, %fd2;
add.f64 %fd3, %fd3, %fd2;
st.global.f64 [%rd1], %fd3;
ret; }}
"""


@pytest.mark.parametrize(("product", "may_fuse"), [("mul", True), ("mul.rn", False)])
def test_what_the_assembler_fuses_is_seen_in_the_machine_code(product: str, may_fuse: bool) -> None:
    ptx = _SUM.format(product=product)
    made, without = (assembled(ptx, QUICK, *options).opcodes for options in ([], ["--fmad=false"]))
    assert (made != without) == may_fuse
