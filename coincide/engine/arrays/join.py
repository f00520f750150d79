"""`correlate_arrays`: events in arrays in, row numbers and what pairs have in arrays out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.engine.arrays.asked import (
    ArrayAggregates,
    ArrayMatches,
    Asked,
    PairsInOrder,
    RowType,
    has_values,
    said,
    with_tick,
)
from coincide.engine.arrays.events import (
    EventArrays,
    are_on_device,
    event_arrays,
    host_column,
    invalid_event,
    table_of,
)
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.derived_joins import OrderedJoin, is_ascending
from coincide.engine.join.join import TableJoin, TablePlan, correlate_tables
from coincide.engine.join.pair_arguments import GivenWindow, check_second, condition_of
from coincide.engine.join.spec import NO_NUMBER, Pairing
from coincide.engine.pairs.source import PairSource, Rows
from coincide.engine.reports.join_report import JoinReport
from coincide.engine.room import Expected
from coincide.model.condition import Confidence, TimingCondition
from coincide.model.counters import JoinCounters, offsets_of
from coincide.model.errors import ConditionError, DataError, SchemaError, argument, brief
from coincide.model.options import Backend, CorrelateOptions, Emit, check_devices
from coincide.model.relations import SpanRelation
from coincide.model.sides import RIGHT, SIDES
from coincide.model.threads import in_order
from cpu_fallback.join.event_join import EventJoin
from cpu_fallback.join.instants import InstantJoin

_PAIRS_OF_A_RUN = 1 << 20


def correlate_arrays(
    left: EventArrays | Any,
    right: EventArrays | Any | None = None,
    condition: TimingCondition | None = None,
    *,
    within: GivenWindow | None = None,
    confidence: Confidence | None = None,
    emit: Emit = "pairs",
    probability: bool = False,
    delta: bool = False,
    order: PairsInOrder = "any",
    rows: RowType = "auto",
    aggregates: ArrayAggregates | None = None,
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    report: JoinReport | None = None,
) -> ArrayMatches:
    """Join events in arrays: P(lo <= T_right - T_left <= hi) must reach the confidence.

    The pairs are those of `correlate_tables`. Arrays of a GPU stay there, and so does the answer; for
    aggregates values and times are copied to the host and back.

    Parameters
    ----------
    left, right : EventArrays, array, or tuple of arrays
        Events of both sides; one array holds exact instants. NumPy, CuPy, Arrow, pandas, cuDF, torch and
        whatever offers ``__cuda_array_interface__`` or DLPack, all in one memory. Without `right` the
        events of `left` are joined with each other, each pair once.
    condition : TimingCondition, optional
        The window on T_right - T_left and the confidence that it must reach.
    within, confidence
        The same in place of `condition`: ``within=(-50, 50)`` in ticks, or ``within="50ns"`` where the
        unit is known. Exact instants need no confidence.
    emit : {"pairs", "lists", "counts", "best", "aggregates"}
        Row numbers of pairs; those of the right matches of each left row, one list after the other; how
        many these are; the most probable one; or `aggregates` of them.
    probability, delta : bool
        Also give the satisfaction probability, and T_right - T_left in ticks.
    order : {"any", "left"}
        ``"left"``: pairs by left row. ``"any"``: by the left event's key, as keys are first met, and by its
        time; without keys that is the same where the left events are sorted. Lists are by left row.
    rows : {"auto", "int32", "int64"}
        The type of row numbers. ``"auto"`` is int64 in the host's memory, as NumPy indexes, and int32 on
        a GPU, as cuDF does, where they have room.
    aggregates : dict, optional
        With ``emit="aggregates"``, by name ``"count"``, or an array of right values, shape (n_right,), and
        a function: ``{"n": "count", "energy": (amplitude, "sum")}``. Functions are those of
        `correlate_tables`. ``"delta"`` and ``"probability"`` stand for what pairs have.
    backend : {"auto", "cpu", "gpu"}
        Where to join: ``"auto"`` is where the arrays are.
    options : CorrelateOptions
        `unit` says what numbers count. datetime64 counts ns where a side has them, else us. `threads`,
        `classes` and `max_pairs` hold too, and of arrays in the host's memory `devices`.
    report : JoinReport, optional
        Receives what was found.

    Returns
    -------
    ArrayMatches

    Raises
    ------
    SchemaError
        If the type, the shape or the memory of an array cannot serve.
    ConditionError
        If the condition or an argument makes no sense.
    DataError
        If a value is missing, an interval ends before it begins, or a time is out of range; the message
        names the first row.
    MemoryBudgetError
        If there are more pairs than fit in memory, or than `max_pairs`.
    BackendError
        If the backend is not here.

    Warns
    -----
    NoPairsWarning

    Examples
    --------
    Coincidences of two detectors within 50 ticks:

    >>> import numpy as np
    >>> from coincide import correlate_arrays
    >>> first, second = np.array([100, 250, 900]), np.array([130, 210, 955])
    >>> found = correlate_arrays(first, second, within=(-50, 50))
    >>> found.left.tolist(), found.right.tolist()
    ([0, 1], [0, 1])
    """
    JoinReport.check(report)
    check_second(right)
    asked = Asked(emit, probability, delta, order, rows)
    given = [left] if right is None else [left, right]
    sides = [event_arrays(side, each) for side, each in zip(SIDES, given, strict=False)]
    values = _value_arrays(emit, aggregates)
    is_there = are_on_device(sides, values)
    if options.invalid != "raise":
        raise ConditionError(
            f"{argument('invalid', options.invalid)} would leave out rows, whose numbers are the"
            f" answer. Remove it, and leave them out first."
        )
    if within is not None and condition is None and confidence is None:
        _check_exact(sides)
    check_devices(options, backend)
    _check_lasting(condition, sides)
    times = [_times_of(each) for each in sides]
    meant = condition_of(condition, within, confidence, (times[0], times[-1]), None)
    arguments = partial(
        JoinArguments, meant, left_time=times[0], right_time=times[-1], by=_keys_of(sides),
        backend=backend, is_one_stream=right is None,
    )  # fmt: skip
    if is_there:
        from coincide.engine.arrays import device

        device.check_backend(backend)
        device.check_devices(options)
        if emit != "aggregates":
            device.check_report(report)
            return device.on_device(sides, arguments, asked, options)
        here = [device.events_on_host(*each) for each in zip(SIDES, sides, strict=False)]
        found = correlate_arrays(
            here[0], None if right is None else here[1], condition, within=within,
            confidence=confidence, emit=emit, aggregates=device.values_on_host(aggregates or {}),
            backend="gpu", options=options, report=report,
        )  # fmt: skip
        return device.aggregates_on_device(found)
    tables = [table_of(*each) for each in zip(SIDES, sides, strict=False)]
    _check_kinds(tables, options)
    options = with_tick(options, tables)
    if backend == "auto":  # where the arrays are
        arguments = partial(arguments, backend="cpu")
    if emit == "aggregates":
        return _aggregated(tables, arguments(options=options), aggregates or {}, report)
    # Rows need no columns, but a table of pairs has some: times take no copy.
    names = ("min_time",)
    join = TableJoin(
        tables[0],
        None if right is None else tables[1],
        arguments(options=options, emit=emit, left_columns=names, right_columns=names),
    )
    return _in_host(join, tables, asked, report)


def _value_arrays(emit: Emit, aggregates: ArrayAggregates | None) -> dict[str, Any]:
    """The arrays of right values that are aggregated, by what messages call them."""
    if (emit == "aggregates") != (aggregates is not None):
        raise ConditionError(
            f"{argument('emit', 'aggregates')} and {argument('aggregates')} go together (found one"
            " of them). Give both, or none."
        )
    if aggregates is None:
        return {}
    if not isinstance(aggregates, Mapping) or not aggregates:
        raise ConditionError(
            f"{argument('aggregates')} must be a dict with entries (found {brief(aggregates)}). Give"
            ' {"n": "count", "total": (values, "sum")}.'
        )
    return {said(name): each[0] for name, each in aggregates.items() if has_values(each)}


def _check_exact(sides: list[EventArrays]) -> None:
    """Refuse uncertain times without a confidence."""
    uncertain = [
        side for side, each in zip(SIDES, sides, strict=False) if each.max_time is not None
    ]
    if uncertain:
        raise ConditionError(
            f"{argument('confidence')} is missing, which uncertain times need (found max_time of"
            f" {' and '.join(uncertain)}). Give it, such as confidence=0.9. A second array is max_time:"
            " EventArrays(times, key=keys) has keys."
        )


def _check_lasting(condition: object, sides: list[EventArrays]) -> None:
    """Refuse a relation of spans, which arrays of earliest and latest times are not."""
    uncertain = [
        side for side, each in zip(SIDES, sides, strict=False) if each.max_time is not None
    ]
    if isinstance(condition, SpanRelation) and uncertain:
        raise ConditionError(
            f"{condition} takes events that last, and max_time is no end, but the latest possible"
            f" time (found max_time of {' and '.join(uncertain)}). Use correlate_tables with"
            " spans('start', 'end')."
        )


def _check_kinds(tables: list[pa.Table], options: CorrelateOptions) -> None:
    """Refuse numbers next to times that have a unit, unless options give theirs."""
    kinds = [table.schema.field("min_time").type for table in tables]
    stamps = [pa.types.is_temporal(kind) for kind in kinds]
    units = options.unit, options.left_unit, options.right_unit
    if len(set(stamps)) > 1 and not any(units):
        of_stamps, of_numbers = (
            f"{SIDES[stamps.index(which)]}.min_time" for which in (True, False)
        )
        raise SchemaError(
            f"{of_stamps} has times, and {of_numbers} numbers (found {kinds[0]} and {kinds[1]})."
            " Make them alike, such as by numbers.view('M8[ns]'), which copies nothing."
        )


def _times_of(events: EventArrays) -> str | tuple[str, str]:
    return "min_time" if events.max_time is None else ("min_time", "max_time")


def _keys_of(sides: list[EventArrays]) -> tuple[str, ...]:
    have_one = {each.key is not None for each in sides}
    if len(have_one) > 1:
        without = SIDES[int(sides[0].key is not None)]
        raise SchemaError(
            f"both sides must have a key, or none (found none of {without}). Give"
            f" {without} one, or remove the other."
        )
    return ("key",) if have_one == {True} else ()


def _first_invalid(plan: TablePlan, tables: list[pa.Table]) -> DataError | None:
    """The error that names the first invalid event of a side."""
    for side, table, times in zip(SIDES, tables, plan.times, strict=False):
        for reason, mask in times.read(table).faults():
            if mask.any():
                row = int(mask.argmax())
                found = {name: table[name][row] for name in times.columns}
                # Not all times are Python's.
                values = {
                    name: each.value if pa.types.is_temporal(each.type) else each.as_py()
                    for name, each in found.items()
                }
                return invalid_event(side, reason, row, values)
    return None


def _in_host(
    join: TableJoin, tables: list[pa.Table], asked: Asked, report: JoinReport | None
) -> ArrayMatches:
    """The matches of events in the host's memory."""
    started = time.perf_counter()
    try:
        left, right, (own, others) = join.read()
    except DataError as error:
        raise _first_invalid(join.plan, tables) or error from None
    # That events with a key below 0 match nothing is asked for.
    own = replace(own, unmatchable=0)
    others = None if others is None else replace(others, unmatchable=0)
    pairing = join.plan.spec.pairing(left, right)
    join.limit.is_collected = True
    found, counters = _matches(pairing, asked, join)
    seconds = time.perf_counter() - started
    JoinReport.tell(join.summarized(counters, (left, right), (own, others), seconds), report)
    return found


def _matches(pairing: Pairing, asked: Asked, join: TableJoin) -> tuple[ArrayMatches, JoinCounters]:
    source, sizes = pairing.join, (len(pairing.left), len(pairing.right))
    if asked.emit == "counts":
        return ArrayMatches(counts=source.row_counts), source.counters
    dtype = asked.row_type(*sizes, default=np.int64)
    if asked.emit == "best":
        return _best(pairing, asked, dtype, _unit_of(join))
    is_sorted = asked.order == "left" or asked.emit == "lists"
    if is_sorted and not is_ascending(source.left_order):
        source = OrderedJoin(pairing)
    pairs = source.counters.pairs
    size = pairs * (2 * dtype().itemsize + 8 * (asked.probability + asked.delta))
    join.limit.expect(Expected(pairs, pairs, size), is_last=True)
    rows = _all_rows(source, dtype, pairing.spec.threads)
    found = ArrayMatches(*rows, **_of_pairs(pairing, asked, rows, _unit_of(join)))
    if asked.emit == "lists":
        found = found._replace(left=None, offsets=offsets_of(source.row_counts))
    return found, source.counters


def _of_pairs(pairing: Pairing, asked: Asked, rows: Rows, unit: str | None) -> dict[str, Any]:
    """Probabilities and deltas of pairs, if a question names them."""
    found: dict[str, Any] = {}
    if asked.probability:
        found["probability"] = _in_runs(pairing.probabilities, rows, np.float64, pairing)
    if asked.delta:
        ticks = _in_runs(pairing.deltas, rows, np.int64, pairing)
        found["delta"] = ticks if unit is None else ticks.view(f"m8[{unit}]")
    return found


def _unit_of(join: TableJoin) -> str | None:
    """What datetime64 of both sides counts; None for numbers."""
    families = {scale.column.family for times in join.plan.times for scale in times.scales}
    is_of_times = families <= {"timestamp", "timestamp_ntz", "duration", "date"}
    return join.plan.tick.unit if is_of_times else None


def _in_runs(evaluate: Any, rows: Rows, dtype: Any, pairing: Pairing) -> np.ndarray:
    """What is found of pairs, some at a time: so what is made on the way stays small."""
    out = np.empty(rows[RIGHT].size, dtype)
    cuts = [slice(a, a + _PAIRS_OF_A_RUN) for a in range(0, out.size, _PAIRS_OF_A_RUN)]

    def put(run: slice) -> tuple[()]:
        out[run] = evaluate(*(each[run] for each in rows))
        return ()

    for _ in in_order(put, cuts, pairing.spec.threads):
        pass
    return out


def _best(
    pairing: Pairing, asked: Asked, dtype: type[np.signedinteger], unit: str | None
) -> tuple[ArrayMatches, JoinCounters]:
    best = pairing.best_matches(in_order=True)
    n = len(pairing.left)
    found, rows = best.of(0, n)
    right = np.full(n, -1, dtype)
    right[found] = rows[RIGHT]
    missing = {"probability": np.array(np.nan), "delta": np.array(NO_NUMBER)}
    more: dict[str, Any] = {}
    for name, values in _of_pairs(pairing, asked, rows, unit).items():
        more[name] = np.full(n, missing[name].view(values.dtype))
        more[name][found] = values
    return ArrayMatches(right=right, **more), best.counters


def _all_rows(source: PairSource, dtype: type[np.signedinteger], threads: int) -> Rows:
    """The rows of all pairs."""
    if isinstance(source, (InstantJoin, EventJoin)):
        return source.all_rows(dtype)
    offsets, orders = source.offsets, (source.left_order, source.right_order)
    out = np.empty(offsets[-1], dtype), np.empty(offsets[-1], dtype)

    def put(run: tuple[int, int]) -> tuple[()]:
        of_run = slice(offsets[run[0]], offsets[run[1]])
        for array, values in zip(out, source.pairs(*run, *orders), strict=True):
            array[of_run] = values
        return ()

    for _ in in_order(put, source.chunks(_PAIRS_OF_A_RUN), threads):
        pass
    return out


def _aggregated(
    tables: list[pa.Table],
    arguments: JoinArguments,
    aggregates: ArrayAggregates,
    report: JoinReport | None,
) -> ArrayMatches:
    """Aggregates of arrays of right values, which a table takes as columns."""
    # No array is named, so columns and aggregates have names that say to what they belong.
    asked: dict[str, Any] = {_COUNTS: "count"}
    right = tables[-1]
    for name, each in aggregates.items():
        called = said(name)
        if has_values(each) and len(each) == 2:
            column = host_column(called, each[0])
            if len(column) != right.num_rows:
                raise SchemaError(
                    f"{called} has {len(column):,} values (found {right.num_rows:,} right events)."
                    " Give each event one."
                )
            right, each = right.append_column(called, column), (called, each[1])
        elif not (isinstance(each, str) and each == "count") and not _is_of_pairs(each):
            raise ConditionError(
                f"{called} must be 'count', or an array of right values and a function (found"
                f' {brief(each)}). Write it as in {{"total": (values, "sum")}}.'
            )
        asked[called] = each
    one = arguments.is_one_stream
    found = correlate_tables(
        right if one else tables[0], None if one else right, arguments.condition,
        left_time=arguments.left_time, right_time=arguments.right_time, by=arguments.by,
        left_columns="min_time", how="left", emit="aggregates", aggregates=asked,
        backend=arguments.backend, options=arguments.options, report=report,
    )  # fmt: skip
    made = {name: _array_of(found[said(name)].combine_chunks()) for name in aggregates}
    return ArrayMatches(counts=_array_of(found[_COUNTS].combine_chunks()), aggregates=made)


_COUNTS = "counts of matches"
_OF_PAIRS = "delta", "probability"


def _is_of_pairs(given: object) -> bool:
    return (
        isinstance(given, tuple)
        and len(given) == 2
        and isinstance(given[0], str)
        and given[0] in _OF_PAIRS
    )


def _array_of(column: pa.Array) -> np.ndarray:
    """A column as an array of its own type, with NaN, NaT or 0 for nulls."""
    types = pa.types
    if types.is_floating(column.type) or types.is_temporal(column.type):
        return column.to_numpy(zero_copy_only=False)
    if types.is_integer(column.type) or types.is_boolean(column.type):
        zero = pa.scalar(0).cast(column.type)
        return column.fill_null(zero).to_numpy(zero_copy_only=False)
    return column.to_numpy(zero_copy_only=False)
