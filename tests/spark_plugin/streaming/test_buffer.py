"""The stateful operator on its own: what it keeps, what it lets out at once, and what it refuses."""

from __future__ import annotations

import json
import sys
import zipfile
import zipimport
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import Row

from coincide import ConditionError
from coincide.engine.events.timestamps import IntervalModel
from coincide.model.sides import SIDES
from spark_plugin.tasks.blobs import packed, unpacked
from spark_plugin.tasks.grid import Grid
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.streaming import SETTINGS, StreamPackTask
from spark_plugin.tasks.wire import CODED, TIME
from spark_plugin.ways.streaming.buffer import SliceBuffer
from tests.helpers.stream_simulation import Operator

GRID = Grid(
    length=200, beyond=0, buckets=1, reach=Reach(-20, 20), useful=(9, 9), nanoseconds=10**6,
    keeps_right=False, is_one_stream=False, together=16,
)  # fmt: skip
"""Slice n is closed at 100 (n + 1) ms; right rows match left ones 10 ms away."""


def blob(*times: int, is_left: bool = True) -> bytes:
    coded = pa.array([0 if is_left else -1] * len(times))
    rows = pa.table({TIME: pa.array(times, pa.int64()), CODED: coded})
    return next(packed(rows)).to_pybytes()


def times(row: Row) -> list[int]:
    found: list[int] = unpacked([pa.py_buffer(row.events)])[TIME].to_pylist()
    return found


def pack_tasks(grid: Grid = GRID, settings: bytes = b"{}") -> list[StreamPackTask]:
    schema = pa.schema([(TIME, pa.int64()), (CODED, pa.int64())])
    return [StreamPackTask(side, schema, IntervalModel(), grid, settings) for side in SIDES]


def slice_buffer(settings: bytes = b"{}", *, keeps_late: bool = True) -> SliceBuffer:
    return SliceBuffer(pack_tasks(settings=settings), keeps_late=keeps_late)


def pack(*of: int, is_left: bool = True, visits: Sequence[int] = (), **more: Any) -> Row:
    slices = [time // 100 for time in of]
    first, last = min([*slices, *visits]), max([*slices, *visits])
    told = {"first": first, "last": last, "due_first": first, "due_last": max(slices)}
    given = {
        "stream": 0 if is_left else 1,
        "is_own": True,
        "is_ahead": False,
        "events": blob(*of, is_left=is_left),
    }
    return Row(**{**given, **told, **more})


def untimed(events: bytes = b"") -> Row:
    nothing = dict.fromkeys(("first", "last", "due_first", "due_last"))
    return Row(stream=0, is_own=True, is_ahead=False, events=events or blob(1), **nothing)


def let_out(operator: Operator, watermark: int) -> list[tuple[str, list[int]]]:
    """The side and the times of each pack that comes out."""
    return [("lr"[row.stream], times(row)) for row in operator.batch([], watermark)]


def test_rows_come_out_as_their_slices_are_closed() -> None:
    operator = Operator(slice_buffer())
    assert operator.push(7, 0, pack(50, 120, 250), pack(310)) == []
    assert operator.push(7, 0, pack(20, 95, 150, 230, is_left=False)) == []
    assert operator.state.timers == [(100, 7)]  # Spark warns of a second one
    assert let_out(operator, 99) == []
    assert let_out(operator, 130) == [("l", [50]), ("r", [20, 95])]
    assert let_out(operator, 199) == []
    # What matches 95 may be in the next slice too.
    assert let_out(operator, 200) == [("l", [120]), ("r", [95, 150])]
    assert let_out(operator, 400) == [("l", [250]), ("r", [230]), ("l", [310])]
    assert operator.state.is_empty


def test_nothing_comes_out_twice_by_two_timers() -> None:
    operator = Operator(slice_buffer())
    operator.push(7, 0, pack(50))
    operator.push(7, 0, pack(150, 250))
    assert [let_out(operator, end) for end in (220, 230, 300)] == [
        [("l", [50]), ("l", [150])], [], [("l", [250])],
    ]  # fmt: skip
    assert operator.state.is_empty


def test_what_stays_for_a_later_slice_comes_out_once_by_two_timers() -> None:
    operator = Operator(slice_buffer())
    operator.push(7, 0, pack(50))
    operator.push(7, 0, pack(95, is_left=False, visits=[1]))
    assert let_out(operator, 150) == [("l", [50]), ("r", [95])]
    assert let_out(operator, 200) == [("r", [95])]
    assert operator.state.is_empty


@pytest.mark.parametrize("kind", ["usual", "keeps_right", "is_one_stream"])
@pytest.mark.parametrize("seed", range(12))
def test_rows_meet_once_with_any_micro_batches_and_watermarks(seed: int, kind: str) -> None:
    """Also before 1970, in slices that are far apart, and if an operator begins anew each time."""
    random = np.random.default_rng([7, seed])
    keeps_right, is_one_stream = kind == "keeps_right", kind == "is_one_stream"
    grid = replace(
        GRID, length=int(random.integers(60, 300)), keeps_right=keeps_right,
        reach=Reach(*np.sort(random.integers(-200, 201, 2)).tolist()),
        is_one_stream=is_one_stream, together=1 if keeps_right else int(random.choice([1, 3, 16])),
    )  # fmt: skip
    tasks, batches = pack_tasks(grid), 8
    sides = [np.sort(random.permutation(3000)[:150]) - 500 for _ in SIDES]
    sides = [sides[0]] * 2 if is_one_stream else sides
    arrivals = [np.sort(random.integers(0, batches, 150)) for _ in SIDES]
    arrivals = [np.maximum(a - (random.random(150) < 0.2), 0) for a in arrivals]
    arrivals = [arrivals[0]] * 2 if is_one_stream else arrivals
    watermarks = [0, *np.sort(random.integers(0, 2500, batches - 1)).tolist()]
    operator = Operator(SliceBuffer(tasks, keeps_late=True))
    met: Counter[tuple[int, int]] = Counter()
    late: list[Counter[int]] = [Counter(), Counter()]
    own: list[Counter[int]] = [Counter(), Counter()]
    for number, watermark in enumerate([*watermarks, 10_000]):
        packs: list[Row] = []
        for task, of, came in zip(tasks, sides, arrivals, strict=True):
            there = of[came == number]
            coded = np.full(there.size, 0 if task.is_left else -1)
            found = task([pa.record_batch({TIME: there, CODED: coded})] if there.size else [])
            packs += [Row(**row) for batch in found for row in batch.to_pylist()]
        operator = Operator(SliceBuffer(tasks, keeps_late=True), state=operator.state)
        let = operator.batch([each for each in packs if each.label != SETTINGS], watermark)
        for row in let:
            if row.is_own or row.is_late:
                (late if row.is_late else own)[row.stream].update(times(row))
        for label in {row.label for row in let}:
            one = [row for row in let if row.label == label and not row.is_late]
            left = [a for row in one if row.stream == 0 and row.is_own for a in times(row)]
            right = [b for row in one if row.stream == 1 for b in times(row)]
            met.update((a, b) for a in left for b in right)
    if is_one_stream:
        late[1] = late[0]
    timely = [[t for t in of.tolist() if t not in late[i]] for i, of in enumerate(sides)]
    near = {
        (a, b): 1 for a in timely[0] for b in timely[1]
        if grid.reach.first <= 2 * (b - a) <= grid.reach.last
    }  # fmt: skip
    assert near == {pair: count for pair, count in met.items() if pair in near}
    assert not any(t in late[i] for pair in met for i, t in enumerate(pair))
    assert own[0] == Counter(timely[0])
    assert late[0] == Counter(set(late[0]))
    assert not keeps_right or own[1] == Counter(timely[1])
    assert len(near) > 0
    assert operator.state.is_empty


def test_a_side_that_is_ahead_is_written_twice_at_most() -> None:
    """Also if slices are closed one by one, each of its own."""
    operator, ahead = Operator(slice_buffer()), pack(*range(0, 1600, 4))
    operator.push(7, 0, ahead)
    least = operator.state.written
    found = [row for end in range(100, 1700, 100) for row in operator.batch([], end)]
    assert [time for row in found for time in times(row)] == list(range(0, 1600, 4))
    assert len(found) == 16
    bytes_of_slices = sum(len(row.events) for row in found)
    assert operator.state.written <= least + bytes_of_slices


def test_a_row_is_late_by_its_first_slice_and_said_once() -> None:
    operator = Operator(slice_buffer())
    late, copy, early = pack(10, 20), pack(30, visits=[1], is_own=False), pack(150)
    (out,) = operator.push(7, 100, late, copy, early)
    assert (out.is_late, out.late_rows, out.events) == (True, 2, late.events)
    assert let_out(operator, 200) == [("l", [150])]


def test_the_late_rows_of_a_pack_leave_it() -> None:
    operator = Operator(slice_buffer())
    copies = pack(20, 220, is_left=False, is_own=False)
    (out,) = operator.push(7, 200, pack(10, 150, 210), copies)
    assert (out.is_late, out.late_rows, times(out)) == (True, 2, [10, 150])
    assert let_out(operator, 300) == [("l", [210]), ("r", [220])]


def test_a_large_pack_may_be_late_in_part() -> None:
    """It travels in several, the first of which have late rows alone."""
    rows = 30_000
    columns = {name: np.arange(rows) * 10**9 for name in ("a", "b", "c")}
    events = pa.table({TIME: np.arange(rows) // 20, CODED: np.zeros(rows, np.int64), **columns})
    task = StreamPackTask("left", events.schema, IntervalModel(), GRID, b"{}")
    packs = [Row(**row) for batch in task(events.to_batches()) for row in batch.to_pylist()]
    operator = Operator(SliceBuffer([task], keeps_late=False))
    assert sum(row.first == 0 for row in packs) > 2
    late = operator.batch(packs, 700)
    assert sum(row.late_rows for row in late) == 700 * 20
    found = [time for row in operator.batch([], 10_000) for time in times(row)]
    assert found == (np.arange(700 * 20, rows) // 20).tolist()


def test_late_rows_that_are_only_counted_stay_behind() -> None:
    (out,) = Operator(slice_buffer(keeps_late=False)).push(7, 100, pack(1, 2, 3))
    assert (out.late_rows, out.events) == (3, b"")


def test_what_matches_nothing_waits_for_nothing() -> None:
    operator = Operator(slice_buffer())
    (out,) = operator.push(7, 10**9, untimed())
    assert not out.is_late
    assert operator.state.is_empty


def test_settings_of_another_join_are_refused() -> None:
    settings = [json.dumps({"k": k, "how": "left"}).encode() for k in (1, 2)]
    first = Operator(slice_buffer(settings[0]))
    for _ in range(2):
        assert first.push(SETTINGS, 0, untimed(settings[0])) == []
    first.push(7, 0, pack(50))
    second = Operator(slice_buffer(settings[1]), state=first.state)
    complaint = r"found: k was 1 and is 2\)\. Give the earlier"
    with pytest.raises(ConditionError, match=complaint):
        second.push(SETTINGS, 0, untimed(settings[1]))
    with pytest.raises(ConditionError, match=complaint):
        second.expire(7, 100)
    assert len(first.expire(7, 100)) == 1


def test_a_task_forgets_finders_that_would_read_their_archive_anew(tmp_path: Path) -> None:
    path = str(tmp_path / "shelf.zip")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("book.py", "")
    sys.path_importer_cache[path] = zipimport.zipimporter(path)
    Operator(slice_buffer())
    assert path not in sys.path_importer_cache


def test_what_is_ahead_is_said_of_the_median_of_a_part() -> None:
    """The lower one of two rows is the median; rows without a match have no time."""
    task = replace(pack_tasks()[0], ahead=5)
    for of, is_ahead in (
        ([10, 86_411, 20], [False, True, False]), ([86_411], [False]), ([7, 13], [False, True]),
        ([7, 12], [False, False]), ([], []),
    ):  # fmt: skip
        found = task._are_ahead(np.array(of, np.int64), np.ones(len(of), bool))
        assert found.tolist() == is_ahead


def test_rows_set_aside_are_counted_by_themselves() -> None:
    operator = Operator(slice_buffer())
    (out,) = operator.push(7, 0, pack(40_000, 40_001, is_ahead=True))
    assert (out.is_late, out.late_rows, out.ahead_rows, times(out)) == (
        True,
        0,
        2,
        [40_000, 40_001],
    )
    assert operator.push(7, 0, pack(40_000, is_left=False, is_own=False, is_ahead=True)) == []
    assert operator.state.timers == []
