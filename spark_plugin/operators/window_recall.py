"""Causality through bounded windows: what share of all pairs policies find. Needs no Spark."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from coincide.causal_windows.options import MOST_TUPLES, WindowOptions
from coincide.causal_windows.policies import POLICIES, Policy
from coincide.cause_and_effect.condition import CausalityCondition
from coincide.errors import ConditionError, brief
from coincide.options import check_choice, check_count
from spark_plugin.worker.causality.arguments import Place
from spark_plugin.worker.windowed_causality.arguments import WindowArguments
from spark_plugin.worker.windowed_causality.reading import WindowColumns
from spark_plugin.worker.windowed_causality.recall import Recall, recalls, usable
from spark_plugin.worker.windowed_causality.reports import tell
from spark_plugin.worker.windowed_causality.window import read_table

_SCHEMA = pa.schema(
    [
        ("policy", pa.string()), ("window", pa.int64()), ("pairs", pa.int64()), ("exact", pa.int64()),
        ("recall", pa.float64()),
    ]
)  # fmt: skip


def window_recall(
    events: Any,
    condition: CausalityCondition,
    *,
    windows: Sequence[int] = (500,),
    policies: Sequence[Policy] | None = None,
    time: str = "time",
    place: Place = (),
    arrival: str | None = None,
    role: str | None = None,
    home: Sequence[float] | float = (),
    options: WindowOptions = WindowOptions(),
) -> pa.Table:
    """What share of all pairs each policy finds in a recorded stream, and what any policy could.

    All pairs are those of `coincide.causality_tables`, of a stream with itself where there is no `role`.

    Parameters
    ----------
    events : pa.Table, whatever offers Arrow's C stream, list of dicts, or path
        Tuples in the order in which they arrived.
    condition, time, place, arrival, role, home
        As of `coincide.WindowedCausality`.
    windows : sequence of int
    policies : sequence of str, optional
        None: all that need nothing which is not given; ``"fcfo"`` and ``"fhcfo"`` need `home`.
    options : WindowOptions
        Of these, `policy` and `window` do not count here.

    Returns
    -------
    pa.Table
        Columns ``policy``, ``window``, ``pairs`` (found), ``exact`` (all there are) and ``recall``
        (null where there are none). A row of policy ``bound`` for each window: no policy can find
        more, even if it knew the future (`cpu_fallback.causality.windowed.bound`).

    Raises
    ------
    SchemaError, ConditionError, DataError
        As `coincide.WindowedCausality`.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning
    """
    arguments = WindowArguments(
        condition, time, place, arrival, role, home, (), _of_any_policy(options)
    )
    for window in _sequence("windows", windows):
        check_count("windows", window, most=MOST_TUPLES)
    chosen = usable(POLICIES, arguments) if policies is None else _sequence("policies", policies)
    for policy in chosen:
        check_choice("policies", policy, POLICIES)
    table = read_table(events, arguments)
    columns = WindowColumns(table.schema, arguments)
    arriving = columns.read(table, None)
    model = arguments.model(columns.tick)
    rows = list(
        recalls(
            arriving, arguments, model, columns.tick, windows, chosen, len(os.sched_getaffinity(0))
        )
    )
    tell(arriving.counts, arriving.backwards, columns.tick)
    found = zip(*rows, strict=True) if rows else [()] * len(Recall._fields)
    return pa.table([list(each) for each in found], schema=_SCHEMA)


def _of_any_policy(options: object) -> WindowOptions:
    if not isinstance(options, WindowOptions):
        raise ConditionError(f"options must be WindowOptions(...); found {brief(options)}")
    policy: Policy = "fcfo" if options.max_stay is not None else "fifo"
    return WindowOptions(
        1, policy, options.max_stay, options.sample, options.invalid, options.unit, options.tick
    )


def _sequence(name: str, given: Any) -> Any:
    if isinstance(given, (str, int)) or not isinstance(given, Sequence):
        raise ConditionError(f"{name} must be a sequence; found {brief(given)}")
    return given
