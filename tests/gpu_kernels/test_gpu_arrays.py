"""`correlate_arrays` on a GPU: the CPU's bits, in the memory in which the events are."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest

from coincide import (
    BackendError,
    CoincideError,
    ConditionError,
    CorrelateOptions,
    DataError,
    EventArrays,
    JoinReport,
    MemoryBudgetError,
    NoPairsWarning,
    SchemaError,
    correlate_arrays,
)
from gpu_kernels.kernels.simulation import SIMULATED
from tests.helpers.places import ROOT
from tests.helpers.simulator import gpu_problem

if problem := gpu_problem():
    pytest.skip(problem, allow_module_level=True)
if SIMULATED:
    pytest.skip("the simulator has no memory of a device", allow_module_level=True)

import cupy

from gpu_kernels import arrays, join
from gpu_kernels.device import memory

BLOCKS = re.compile(r"```python\n((?:(?!```).)*)```", re.DOTALL)
EMITS = ("pairs", "lists", "counts", "best")


def on_gpu(events: EventArrays) -> EventArrays:
    return EventArrays(*(None if each is None else cupy.asarray(each) for each in events))


def drawn(seed: int, n: int, *, is_exact: bool = False, has_key: bool = False) -> EventArrays:
    rng = np.random.default_rng([seed, is_exact, has_key])
    low = rng.integers(0, 6 * n + 1, n)
    high = None if is_exact else low + rng.choice([0, 1, 9, 40], n)
    return EventArrays(low, high, rng.integers(-1, 4, n) if has_key else None)


def assert_same(found: Any, expected: Any) -> None:
    """The same arrays, to the last bit, each in its own memory."""
    for name, one, other in zip(found._fields, found, expected, strict=True):
        assert (one is None) == (other is None), name
        if one is not None:
            assert isinstance(one, cupy.ndarray)
            one = one.get()
            other = (
                other.view(np.int64) if other.dtype.kind == "m" else other
            )  # CuPy has no such type
            assert (one.dtype, one.shape) == (other.dtype, other.shape), name
            assert one.tobytes() == other.tobytes(), name


def check(left: EventArrays, right: EventArrays, **given: Any) -> int:
    """Compare all questions with the CPU's answers; returns the number of pairs."""
    given = {"within": (-9, 14), "confidence": 0.6, **given}
    pairs = 0
    for emit, order in itertools.product(EMITS, ("any", "left")):
        more = {} if emit == "counts" else {"probability": True, "delta": True}
        expected = correlate_arrays(
            left, right, emit=emit, order=order, rows="int32", **more, **given
        )
        found = correlate_arrays(
            on_gpu(left), on_gpu(right), emit=emit, order=order, **more, **given
        )
        assert_same(found, expected)
        pairs = expected.right.size if emit == "pairs" else pairs
    return pairs


@pytest.mark.parametrize("is_exact", [True, False], ids=["exact", "uncertain"])
@pytest.mark.parametrize("has_key", [False, True], ids=["no key", "key"])
def test_answers_are_those_of_the_cpu(is_exact: bool, has_key: bool) -> None:
    pairs = 0
    for seed in range(4):
        n, m = 40 + 50 * seed, 90 - 20 * seed
        left, right = (
            drawn(seed + 10 * side, size, is_exact=is_exact, has_key=has_key)
            for side, size in enumerate((n, m))
        )
        if seed == 1:
            left = EventArrays(*(None if each is None else np.sort(each) for each in left))
        pairs += check(left, right)
    assert pairs > 40


@pytest.mark.parametrize("sizes", [(0, 0), (0, 5), (5, 0), (1, 1)])
@pytest.mark.parametrize("has_key", [False, True], ids=["no key", "key"])
def test_few_events(sizes: tuple[int, int], has_key: bool) -> None:
    left, right = (drawn(k, n, has_key=has_key) for k, n in enumerate(sizes))
    check(left, right)


def test_many_blocks_and_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = drawn(1, 300, has_key=True), drawn(2, 200, has_key=True)
    monkeypatch.setattr(join, "entries_of_block", lambda _: 37)
    monkeypatch.setattr(arrays, "_PAIRS_AT_ONCE", 50)
    assert check(left, right) > 50


@contextmanager
def most_bytes() -> Iterator[list[int]]:
    """The most bytes of the device that were in use at once, beyond those of before."""
    memory = pytest.importorskip("cupy._memory", reason="only the virtual GPU tells of each array")
    used = memory.DRIVER.virtual_used
    before, most, real = used(), [0], memory.Memory.__init__

    def noted(self: Any, *given: Any) -> None:
        real(self, *given)
        most[0] = max(most[0], used() - before)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory.Memory, "__init__", noted)
        yield most


@pytest.mark.parametrize("rows", ["int32", "int64"])
@pytest.mark.parametrize("order", ["any", "left"])
@pytest.mark.parametrize("entries", [None, 40], ids=["one block", "many blocks"])
def test_pairs_take_little_more_memory_than_their_rows(
    rows: Any, order: Any, entries: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if entries is not None:
        monkeypatch.setattr(join, "entries_of_block", lambda _: entries)
    left, right = (cupy.asarray(drawn(k, 400, is_exact=True).min_time) for k in (1, 2))
    with most_bytes() as most:
        found = correlate_arrays(left, right, within=(-3000, 3000), order=order, rows=rows)
    answer = found.left.nbytes + found.right.nbytes
    assert answer > 1_000_000
    assert answer <= most[0] < 1.25 * answer


def test_a_block_that_holds_all_is_placed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    placed: list[tuple[int, int]] = []
    real = join.BandedSides.place

    def place(self: Any, start: int, stop: int, shells: bool) -> Any:
        placed.append((start, stop))
        return real(self, start, stop, shells)

    monkeypatch.setattr(join.BandedSides, "place", place)
    left, right = on_gpu(drawn(1, 60)), on_gpu(drawn(2, 60))
    options = CorrelateOptions(max_pairs=10_000)
    for emit in ("pairs", "lists", "counts"):
        placed.clear()
        correlate_arrays(
            left, right, within=(-9, 14), confidence=0.6, emit=emit, order="left", options=options
        )
        assert placed == [(0, 60)]


@pytest.mark.parametrize("is_exact", [True, False], ids=["exact", "uncertain"])
@pytest.mark.parametrize("has_key", [False, True], ids=["no key", "key"])
@pytest.mark.parametrize("emit", EMITS)
def test_the_host_waits_for_sizes_alone(is_exact: bool, has_key: bool, emit: Any) -> None:
    """For samples, candidates and pairs; for the number of keys before that."""
    driver = pytest.importorskip("cupy._memory", reason="a GPU counts no waits").DRIVER
    left, right = (on_gpu(drawn(k, 3000, is_exact=is_exact, has_key=has_key)) for k in (1, 2))
    before = driver.virtual_waits()
    confidence = None if is_exact else 0.6
    correlate_arrays(left, right, within=(-9, 14), confidence=confidence, emit=emit, order="left")
    assert driver.virtual_waits() - before == (2 if emit == "counts" else 3) + has_key


@pytest.mark.parametrize("order", ["any", "left"])
def test_an_answer_for_which_a_block_leaves_no_room(
    order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block that holds all is given up, and smaller ones take its place."""
    left, right = drawn(1, 90, has_key=True), drawn(2, 80, has_key=True)
    given: dict[str, Any] = {"within": (-9, 14), "confidence": 0.6, "order": order}
    expected = correlate_arrays(left, right, rows="int32", **given)
    real, fails = arrays.take, [0]

    def take_rows(size: Any, dtype: Any) -> Any:
        if dtype == np.int32 and fails[0] < 1:
            fails[0] += 1
            raise memory.DeviceMemoryError("full")
        return real(size, dtype)

    def place(self: Any, start: int, stop: int, shells: bool) -> Any:
        if fails[0] and stop - start > 30:
            raise memory.DeviceMemoryError("full")
        placed.append((start, stop))
        return real_place(self, start, stop, shells)

    placed: list[tuple[int, int]] = []
    real_place = join.BandedSides.place
    monkeypatch.setattr(arrays, "take", take_rows)
    monkeypatch.setattr(join.BandedSides, "place", place)
    assert_same(correlate_arrays(on_gpu(left), on_gpu(right), **given), expected)
    assert placed[0] == (0, 90)
    assert len(placed) == 5


def test_one_side_on_one_key_and_row_types() -> None:
    left, right = drawn(1, 50), drawn(2, 40)
    given: dict[str, Any] = {"within": (-9, 14), "confidence": 0.6}
    expected = correlate_arrays(left, right, **given)
    for rows, dtype in (("int64", np.int64), ("auto", np.int32), ("int32", np.int32)):
        found = correlate_arrays(on_gpu(left), on_gpu(right), rows=rows, **given)
        assert found.left.dtype == dtype
        assert np.array_equal(found.right.get(), expected.right)
    at_left = correlate_arrays(on_gpu(left), on_gpu(right), order="left", rows="int64", **given)
    assert_same(at_left, correlate_arrays(left, right, order="left", **given))
    unsigned = EventArrays(*(cupy.asarray(each.astype(np.uint16)) for each in left[:2]))
    found = correlate_arrays(unsigned, on_gpu(right), **given)
    assert np.array_equal(found.left.get(), expected.left)


def test_no_pair_is_warned_of_and_units_must_be_known() -> None:
    one, far = cupy.asarray(ONE), cupy.asarray(ONE + 500)
    with pytest.warns(NoPairsWarning):
        assert correlate_arrays(one, far, within=(0, 1)).left.size == 0
    days = Interface(one, typestr="<M8[D]")
    with pytest.raises(SchemaError, match="counts s, ms, us or ns"):
        correlate_arrays(days, days, within=("0s", "1s"))
    lasts, is_at = (Interface(one, typestr=f"<{kind}8[s]") for kind in "mM")
    with pytest.raises(CoincideError):
        correlate_arrays(lasts, is_at, within=("0s", "1s"))


class Interface:
    """An array of another library, which offers CUDA's array interface."""

    def __init__(self, array: Any, **changed: Any) -> None:
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changed}
        self._array = array


class Capsule:
    """An array of another library, which offers DLPack."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __dlpack__(self, **given: Any) -> Any:
        return self._array.__dlpack__(**given)


def test_arrays_of_other_libraries() -> None:
    left, right = drawn(1, 60, is_exact=True), drawn(2, 60, is_exact=True)
    expected = correlate_arrays(left, right, within=(0, 20), delta=True, rows="int32")
    for make in (Interface, Capsule):
        given = (make(cupy.asarray(side.min_time)) for side in (left, right))
        assert_same(correlate_arrays(*given, within=(0, 20), delta=True), expected)


def test_times_count_in_the_unit_of_their_type() -> None:
    left, right = drawn(1, 60, is_exact=True).min_time, drawn(2, 60, is_exact=True).min_time
    hosts = left.astype("M8[s]"), (right * 1000 + 7).astype("M8[ms]")
    expected = correlate_arrays(*hosts, within=("-2s", "9s"), delta=True, rows="int32")
    there = (Interface(cupy.asarray(host.view(np.int64)), typestr=host.dtype.str) for host in hosts)
    assert_same(correlate_arrays(*there, within=("-2s", "9s"), delta=True), expected)
    assert expected.left.size > 20


def test_aggregates_come_back_to_the_gpu() -> None:
    left, right = drawn(1, 80, has_key=True), drawn(2, 90, has_key=True)
    values, when = np.arange(90) * 0.1, right.min_time.astype("M8[s]")
    given: dict[str, Any] = {"within": (-9, 14), "confidence": 0.6, "emit": "aggregates"}
    here = {"n": "count", "sum": (values, "sum"), "late": (when, "last"), "delta": ("delta", "max")}
    there: dict[str, Any] = here | {
        "sum": (cupy.asarray(values), "sum"),
        "late": (Interface(cupy.asarray(when.view(np.int64)), typestr="<M8[s]"), "last"),
    }
    for sides in ((left, right), (right,)):
        expected = correlate_arrays(*sides, aggregates=here, **given)
        found = correlate_arrays(*map(on_gpu, sides), aggregates=there, **given)
        assert np.array_equal(found.counts.get(), expected.counts)
        assert expected.counts.sum() > 20
        for name, each in expected.aggregates.items():
            assert found.aggregates[name].get().tobytes() == each.tobytes(), name


def test_the_callers_stream_waits_for_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[int] = []
    real = cupy.cuda.Stream.wait_event

    def wait_event(stream: Any, event: Any) -> None:
        waits.append(stream.ptr)
        real(stream, event)

    with suppress(TypeError):  # CuPy's own type, of a real GPU, takes no other method
        monkeypatch.setattr(cupy.cuda.Stream, "wait_event", wait_event)
    is_watched = cupy.cuda.Stream.wait_event is wait_event
    left, right = drawn(1, 60, is_exact=True), drawn(2, 60, is_exact=True)
    expected = correlate_arrays(left, right, within=(0, 20), rows="int32")
    with cupy.cuda.Stream(non_blocking=True) as stream:
        found = correlate_arrays(on_gpu(left), on_gpu(right), within=(0, 20))
        stream.synchronize()
        assert cupy.cuda.get_current_stream() is stream
        if is_watched:
            assert waits[0] == cupy.cuda.Stream.null.ptr
            assert waits[-1] == stream.ptr
    assert_same(found, expected)


def test_the_page_of_arrays_shows_code_that_runs() -> None:
    page = (ROOT / "docs" / "arrays.md").read_text(encoding="utf-8")
    (code,) = (block for block in BLOCKS.findall(page) if "import cupy" in block)
    exec(compile(code, "docs/arrays.md", "exec"), {})


ONE = np.array([1, 2])
REFUSED: dict[str, tuple[type[CoincideError], str, dict[str, Any]]] = {
    "min above max": (DataError, "left: min above max in min_time and max_time in row 1",
                      {"left": lambda: (cupy.asarray(ONE), cupy.asarray(ONE[:1].repeat(2))),
                       "confidence": 0.5}),
    "out of range": (DataError, "right: times that reach .* in row 1",
                     {"right": lambda: cupy.asarray(np.array([0, 2**61]))}),
    "huge unsigned": (DataError, "row 0", {"right": lambda: cupy.asarray(np.array([2**63, 2], np.uint64))}),
    "mixed": (SchemaError, r"one memory \(found right.min_time on a GPU, and left.min_time not",
              {"left": lambda: ONE}),
    "mask": (SchemaError, "left.min_time .*mask of nulls",
             {"left": lambda: Interface(cupy.asarray(ONE), mask=cupy.asarray(ONE))}),
    "floats": (SchemaError, "left.min_time must be whole numbers",
               {"left": lambda: cupy.asarray(ONE * 0.5)}),
    "two dimensions": (SchemaError, "2 dimensions", {"left": lambda: cupy.asarray(ONE.reshape(1, 2))}),
    "lengths": (SchemaError, "differ in length",
                {"left": lambda: (cupy.asarray(ONE), cupy.asarray(ONE[:1])), "confidence": 0.5}),
    "unsigned keys": (SchemaError, "left.key must be whole numbers with a sign",
                      {side: lambda: EventArrays(cupy.asarray(ONE), key=cupy.asarray(ONE.astype(np.uint64)))
                       for side in ("left", "right")}),
    "cpu": (BackendError, "joins arrays of the host's memory", {"backend": "cpu"}),
    "a report": (ConditionError, "gives no report", {"report": JoinReport()}),
    "one stream": (ConditionError, "found one stream", {"right": lambda: None}),
    "open": (ConditionError, "both ends", {"within": (0, None), "emit": "best"}),
    "tick": (ConditionError, "tick", {"options": CorrelateOptions(unit="ns", tick="us")}),
    "most pairs": (MemoryBudgetError, "more pairs than",
                   {"within": (-1, 5), "options": CorrelateOptions(max_pairs=2)}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    error, words, changed = REFUSED[name]
    given = {
        "left": lambda: cupy.asarray(ONE),
        "right": lambda: cupy.asarray(ONE),
        "within": (0, 1),
    }
    given |= changed
    sides = [given.pop(side)() for side in ("left", "right")]
    with pytest.raises(error, match=words):
        correlate_arrays(*sides, **given)


def test_nulls_of_other_libraries_are_told() -> None:
    class Nulls:
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise NotImplementedError("columns with nulls")

    with pytest.raises(SchemaError, match="columns with nulls"):
        correlate_arrays(Nulls(), cupy.asarray(ONE), within=(0, 1))


def test_arrays_of_another_gpu_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "chosen", lambda: 7)
    with pytest.raises(SchemaError, match="found GPU 0 where this process uses 7"):
        correlate_arrays(cupy.asarray(ONE), cupy.asarray(ONE), within=(0, 1))


def test_old_arrays_give_way_where_memory_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, real, fails = memory.Residents(), memory._sent, [False, True, False, True, True]

    def sent(array: np.ndarray) -> Any:
        if fails.pop(0):
            raise memory.DeviceMemoryError("full")
        return real(array)

    monkeypatch.setattr(memory, "_sent", sent)
    first, second, third = (np.arange(n) for n in (3, 4, 5))
    copy = kept.get(first)
    assert kept.get(first) is copy
    assert kept.get(second).get().tolist() == second.tolist()
    assert fails == [True, True]
    with pytest.raises(memory.DeviceMemoryError):
        kept.get(third)
    fails.append(False)
    assert kept.get(first) is not copy
