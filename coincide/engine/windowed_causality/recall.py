"""What share of all pairs policies and windows find of a recorded stream, and what any policy could."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.engine.causality.arguments import Place
from coincide.engine.windowed_causality.arguments import WindowArguments
from coincide.engine.windowed_causality.reports import tell
from coincide.engine.windowed_causality.window import Arriving, WindowedCausality, pushes_of
from coincide.model.causality.condition import CausalityCondition, CausalityModel
from coincide.model.causality.spaces import PlacedEvents, no_points
from coincide.model.docstrings import documented
from coincide.model.errors import ConditionError, argument, brief
from coincide.model.options import check_choice, check_count, check_options
from coincide.model.threads import all_cores
from coincide.model.units import Tick
from coincide.model.windowed_causality import (
    BY_DISTANCE,
    CAUSE,
    EFFECT,
    MOST_TUPLES,
    POLICIES,
    Policy,
    WindowOptions,
)

BOUND = "bound"
"""In the place of a policy: what none can exceed."""


def exact_pairs(
    arriving: Arriving, model: CausalityModel, own: bool
) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of causes and effects: their positions by arrival, two int64 arrays, shape (pairs,)."""
    join_of = import_module("cpu_fallback.causality").CausalityJoin
    threads = all_cores()
    if own:
        rows = [np.arange(arriving.times.size)] * 2
        events = _events(arriving, rows[0])
        join = join_of(events, None if model.is_forward else events, model, threads=threads)
    else:
        rows = [np.flatnonzero(arriving.roles == role) for role in (CAUSE, EFFECT)]
        join = join_of(*(_events(arriving, each) for each in rows), model, threads=threads)
    own_rows, others = rows[0][join.left_order], rows[1][join.right_order]
    found = join.pairs(0, own_rows.size, own_rows, others)
    if own and not model.is_forward:
        return _once(found[0], found[1], arriving.times)
    return found[0], found[1]


def _once(
    causes: np.ndarray, effects: np.ndarray, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of one stream without those that are reported in the other order, or of one tuple."""
    is_back = np.where(
        times[causes] == times[effects], causes > effects, times[causes] > times[effects]
    )
    is_told = np.isin(effects * times.size + causes, causes * times.size + effects)
    kept = (causes != effects) & ~(is_back & is_told)
    return causes[kept], effects[kept]


def _recalls(
    arriving: Arriving,
    arguments: WindowArguments,
    tick: Tick,
    windows: Sequence[int],
    policies: Sequence[Policy],
) -> Iterator[tuple[str, int, int, int, float | None]]:
    """Rows of the result: what each policy finds with each window, and the bound of each window."""
    windowed = import_module("cpu_fallback.windowed_causality")
    model = arguments.model(tick)
    causes, effects = exact_pairs(arriving, model, arguments.role is None)
    exact = causes.size
    points = no_points() if arriving.points is None else arriving.points
    first, second = np.minimum(causes, effects), np.maximum(causes, effects)
    for window in windows:
        found: list[tuple[str, int]] = []
        for policy in policies:
            stay = arguments.options.max_stay if policy == "fcfo" else None
            options = replace(arguments.options, window=window, policy=policy, max_stay=stay)
            chosen = replace(arguments, options=options)
            join = windowed.WindowJoin(chosen.terms(model, tick))
            taken = join.take(arriving.times, arriving.clocks, points, arriving.roles)
            found.append((policy, sum(part.causes.size for part in taken)))
        bound = windowed.most_pairs(first, second, arriving.times.size, window)
        for name, pairs in (*found, (BOUND, bound)):
            yield name, window, pairs, exact, pairs / exact if exact else None


def _usable(arguments: WindowArguments) -> list[Policy]:
    """The policies that what is given allows."""
    has_home = arguments.home not in ((), [])
    learns = arguments.options.sample != 0
    return [
        p for p in POLICIES if (has_home or p not in BY_DISTANCE) and (learns or p != "expected")
    ]


def _events(arriving: Arriving, rows: np.ndarray) -> PlacedEvents:
    points = None if arriving.points is None else arriving.points[:, rows]
    return PlacedEvents(arriving.times[rows], points)


_SCHEMA = pa.schema(
    [
        ("policy", pa.string()), ("window", pa.int64()), ("pairs", pa.int64()), ("exact", pa.int64()),
        ("recall", pa.float64()),
    ]
)  # fmt: skip


@documented(WindowedCausality)
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
    events : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
        Tuples in the order in which they arrived.
    condition, time, place, arrival, role, home
        As in `coincide.WindowedCausality`.
    windows : sequence of int
    policies : sequence of str, optional
        None: all that need nothing which is not given; ``"fcfo"`` and ``"fhcfo"`` need `home`.
    options : WindowOptions
        `policy` and `window` do not count here.

    Returns
    -------
    pa.Table
        Columns ``policy``, ``window``, ``pairs`` (found), ``exact`` (all there are) and ``recall``
        (null without pairs). A row of policy ``bound`` for each window: no policy can find
        more, even if it knew the future (`cpu_fallback.windowed_causality.join`).

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
    chosen = _usable(arguments) if policies is None else _sequence("policies", policies)
    for policy in chosen:
        check_choice("policies", policy, POLICIES)
    table, columns = pushes_of(arguments).read(events)
    arriving = columns.read(table, None)
    rows = list(_recalls(arriving, arguments, columns.tick, windows, chosen))
    tell(arriving.counts, arriving.backwards, columns.tick)
    found = zip(*rows, strict=True) if rows else [()] * len(_SCHEMA)
    return pa.table([list(each) for each in found], schema=_SCHEMA)


def _of_any_policy(options: WindowOptions) -> WindowOptions:
    check_options(options, WindowOptions)
    return replace(options, window=1, policy="fifo" if options.max_stay is None else "fcfo")


def _sequence(name: str, given: Any) -> Any:
    if isinstance(given, (str, int)) or not isinstance(given, Sequence):
        raise ConditionError(f"{argument(name)} must be a sequence (found {brief(given)}).")
    return given
