"""Every GPU kernel compiles, for every architecture, without a GPU: and nothing is fused or spilled."""

from __future__ import annotations

import re
from functools import cache

import pytest

from coincide.model.timestamps import HistogramRule
from gpu_kernels.kernels.simulation import SIMULATED

if SIMULATED:
    pytest.skip("the simulator compiles nothing", allow_module_level=True)

from gpu_kernels.kernels import borders, causality
from gpu_kernels.kernels import join as merging
from gpu_kernels.kernels import join as placement
from gpu_kernels.kernels import join as tiles
from gpu_kernels.kernels.compilation import Kernel, RuleKernel
from tests.helpers.gpu_compilation import (
    ARCHITECTURES,
    KERNELS,
    RULE_KERNELS,
    Cost,
    assemble,
    ptx_of,
)

MOST_REGISTERS = 64
"""With more, a multiprocessor of 65,536 registers holds fewer than four blocks of 256 threads."""

QUICK = (9, 0)
"""Compiling takes long: quick tests do with one architecture."""

WITHOUT_FORMULA = (
    *(placement.place, placement.tile_owners, tiles.scatter, tiles.copy),
    *(merging.merge, merging.first_live, borders.locate, borders.tell),
    *(causality.place_causes, causality.copy),
)

every_kernel_and_architecture = pytest.mark.parametrize(
    ("kernel", "capability"),
    [
        pytest.param(
            *(kernel, each),
            marks=[] if each == QUICK else pytest.mark.slow,
            id="{}-sm_{}{}".format(kernel.py_func.__name__, *each),
        )
        for kernel in KERNELS
        for each in ARCHITECTURES
    ],
)

ptx_of = cache(ptx_of)


def products_added(ptx: str) -> list[str]:
    """Float additions of a product, which ptxas might fuse; and those fused already."""
    products = set(re.findall(r"\bmul\.f(?:32|64)\s+(%\w+)", ptx))
    for target, source in re.findall(r"\bmov\.f(?:32|64)\s+(%\w+), (%\w+);", ptx):
        products |= {target} if source in products else set()
    sums = re.findall(r"\b(?:add|sub)\.f(?:32|64)\s+(%\w+), (\S+), (\S+);", ptx)
    fused = re.findall(r"\bfma\.\S+\s+[^;]*;", ptx)
    return fused + [" ".join(one) for one in sums if products & set(one[1:])]


@every_kernel_and_architecture
def test_kernel_is_assembled_without_spills(kernel: Kernel, capability: tuple[int, int]) -> None:
    ptx = ptx_of(kernel, capability)
    assert ".target sm_{}{}".format(*capability) in ptx
    cost = assemble(ptx, capability)
    assert cost == Cost(cost.registers, spilled=0, stack=0, shared=cost.shared)
    assert 0 < cost.registers <= MOST_REGISTERS
    assert not re.search(r"\bcall\b", ptx)


@pytest.mark.parametrize(
    "capability",
    [pytest.param(each, marks=[] if each == QUICK else pytest.mark.slow) for each in ARCHITECTURES],
    ids=lambda c: "sm_{}{}".format(*c),
)
@pytest.mark.parametrize("kernel", RULE_KERNELS, ids=lambda k: k.py_func.__name__)
def test_kernels_of_histograms(kernel: RuleKernel, capability: tuple[int, int]) -> None:
    """Sums along buckets are rounded step by step, as on the CPU."""
    ptx = ptx_of(kernel.of(HistogramRule), capability)
    cost = assemble(ptx, capability)
    assert cost == Cost(cost.registers, spilled=0, stack=0, shared=cost.shared)
    assert cost.registers <= MOST_REGISTERS
    assert products_added(ptx) == []


@every_kernel_and_architecture
def test_no_product_is_fused_with_a_sum(kernel: Kernel, capability: tuple[int, int]) -> None:
    """So the probability has the bits of the CPU's: see `coincide.model.probability`."""
    ptx = ptx_of(kernel, capability)
    assert products_added(ptx) == []
    assert ("div.rn.f64" in ptx) == (kernel not in WITHOUT_FORMULA)


ATOMICS = {
    tiles.probe.py_func: ["global.add.u64"] * 2,
    tiles.most_probable.py_func: ["global.cas.b64", "global.add.u64", "shared.add.u64"],
    tiles.nearest.py_func: ["global.min.u64"],
    tiles.foremost.py_func: ["global.min.s64"],
}
"""What several threads write at the same place. The simulator's threads would hardly meet there."""


@every_kernel_and_architecture
def test_where_threads_meet_they_write_atomically(
    kernel: Kernel, capability: tuple[int, int]
) -> None:
    ptx = ptx_of(kernel, capability)
    # Newer architectures name an order of memory besides: the weakest, as before.
    found = re.findall(r"\b(?:atom|red)\.(?:relaxed\.)?(\S+)", ptx)
    assert sorted(found) == sorted(ATOMICS.get(kernel.py_func, []))


def test_a_product_added_is_seen() -> None:
    assert products_added("mul.f64 %fd3, %fd1, %fd2;\nadd.f64 %fd5, %fd4, %fd3;")
    assert products_added("mul.f32 %f3, %f1, %f2;\nmov.f32 %f4, %f3;\nsub.f32 %f5, %f4, %f1;")
    assert products_added("fma.rn.f64 %fd3, %fd1, %fd2, %fd3;")
    assert not products_added("mul.f64 %fd3, %fd1, %fd2;\nadd.f64 %fd5, %fd4, %fd4;")
