"""What users give as the time of a side: instants, intervals, stamps with an error, histograms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

from coincide.model.errors import ConditionError, argument, brief, call
from coincide.model.templates.template import Templates, TemplateTable
from coincide.model.units import Duration, Tick, parse_duration, plain, size_of, unit_name


@dataclass(frozen=True)
class Around:
    """Timestamps of one side that are as long for all its events. Made by `around` and `resolution`.

    Parameters
    ----------
    time : str
        Column of the stamps.
    before, after : int or str
        Durations: an event was between so long before its stamp and so long after it.
    """

    time: str
    before: int | str
    after: int | str

    @property
    def is_exact(self) -> bool:
        """Whether events are instants, however long a tick is."""
        ends = self.before, self.after
        sizes = [parse_duration(end) if isinstance(end, str) else end for end in ends]
        # Ticks and durations make no sum: of one each both must be 0.
        is_one_kind = len({isinstance(end, str) for end in ends}) == 1
        return sum(sizes) == 0 if is_one_kind else not any(sizes)

    def margins(self, tick: Tick) -> tuple[int, int]:
        """Before and after, in ticks.

        Raises
        ------
        ConditionError
            If one is no whole number of ticks, or the event would be over before it begins.
        """
        before, after = tick.count(self.before), tick.count(self.after)
        if before + after < 0:
            raise ConditionError(
                f"{call('around', self.time)} would end events before they begin (found before"
                f" {self.before!r}, after {self.after!r}). If one is negative, the other must be"
                " at least as long."
            )
        return before, after


@dataclass(frozen=True)
class AroundByRow:
    """Timestamps of one side that are as long as each row says. Made by `around`."""

    time: str
    before: str
    after: str
    unit: str | None = None


@overload
def around(
    time: str,
    width: Duration | None = None,
    *,
    before: Duration | None = None,
    after: Duration | None = None,
) -> Around: ...


@overload
def around(time: str, *, column: str | tuple[str, str], unit: str | None = None) -> AroundByRow: ...


def around(
    time: str,
    width: Duration | None = None,
    *,
    before: Duration | None = None,
    after: Duration | None = None,
    column: str | tuple[str, str] | None = None,
    unit: str | None = None,
) -> Around | AroundByRow:
    """Say how far off the clock of a side may be: each event was within `width` of its stamp.

    Parameters
    ----------
    time : str
        Column of the stamps.
    width : int, str or timedelta, optional
        The most by which a stamp is early or late: ``around("t", "10ms")`` is t ± 10 ms.
    before, after : int, str or timedelta, optional
        In place of `width` where the two differ: an event was between `before` before its stamp and
        `after` after it; what is not given is 0. One may be negative: ``around("t", before="20ms",
        after="-5ms")`` says that stamps are 5 to 20 ms late.
    column : str or (str, str), optional
        In place of `width` where each row has its own: ``around("t", column="error_ms", unit="ms")``. Two
        columns give `before` and `after`. Numbers, which are rounded to ticks; rows in which one is
        missing, not finite or negative are invalid.
    unit : str, optional
        What these numbers count. Default: what the numbers in `time` count; timestamps need it.

    Returns
    -------
    Around or AroundByRow
        For ``left_time`` or ``right_time`` of `coincide.correlate`: uniform on the interval, which is
        closed.

    Raises
    ------
    ConditionError
        If the column is no name, nothing is said, or a width is negative.

    Examples
    --------
    >>> around("t", "10ms")
    Around(time='t', before='10ms', after='10ms')
    """
    check_column_name("time", time)
    if column is not None:
        if not (width is None and before is None and after is None):
            raise ConditionError(
                "around takes half-widths from a column, or one for all rows (found both). Remove"
                " one of them."
            )
        return _by_row(time, column, unit)
    if unit is not None:
        raise ConditionError(
            f"around without a column of half-widths takes no unit. Remove {argument('unit')}."
        )
    if width is None and before is None and after is None:
        raise ConditionError(
            f"{call('around', time)} needs to know how far off the clock may be, such as '10ms'."
            f" Give it, or use {time!r} alone if the clock is exact."
        )
    if width is None:
        return _checked(
            Around(time, *(0 if each is None else plain(each) for each in (before, after)))
        )
    if before is not None or after is not None:
        raise ConditionError(
            "around takes a width, or before and after (found both). Remove one of them."
        )
    if size_of(width) < 0:
        raise ConditionError(f"{argument('width')} must not be negative (found {brief(width)}).")
    return Around(time, plain(width), plain(width))


def resolution(time: str, step: Duration) -> Around:
    """Say how coarse the stamps of a side are: a stamp t means some time in [t, t + step].

    Parameters
    ----------
    time : str
        Column of the stamps, which were cut, not rounded.
    step : int, str or timedelta
        From one stamp to the next: ``resolution("t", "1ms")``.

    Returns
    -------
    Around
        As `around` with ``after=step``.

    Raises
    ------
    ConditionError
        If the column is no name, or the step is negative.

    Examples
    --------
    >>> resolution("t", "1s")
    Around(time='t', before=0, after='1s')
    """
    check_column_name("time", time)
    if size_of(step) < 0:
        raise ConditionError(f"{argument('step')} must not be negative (found {brief(step)}).")
    return Around(time, 0, plain(step))


def intervals(earliest: str, latest: str) -> tuple[str, str]:
    """Say that two columns hold the ends of a side's timestamps; the pair of names alone does, too.

    Examples
    --------
    >>> intervals("min_time", "max_time")
    ('min_time', 'max_time')
    """
    for name in (earliest, latest):
        check_column_name("time", name)
    return earliest, latest


def instants(time: str) -> str:
    """Say that a column holds exact times; its name alone does, too.

    Examples
    --------
    >>> instants("t")
    't'
    """
    check_column_name("time", time)
    return time


def _by_row(time: str, column: str | tuple[str, str], unit: str | None) -> AroundByRow:
    names = (column, column) if isinstance(column, str) else column
    if not isinstance(names, (tuple, list)) or len(names) != 2:
        raise ConditionError(
            f"{argument('column')} must be the name of a column, or of two, before and after"
            f" (found {brief(column)})."
        )
    for name in names:
        check_column_name("column", name)
    return AroundByRow(time, names[0], names[1], None if unit is None else unit_name(unit))


def _checked(found: Around) -> Around:
    """Refuse what ends before it begins, as far as that shows without a tick."""
    given = found.before, found.after
    if (0 in given or type(given[0]) is type(given[1])) and sum(map(size_of, given)) < 0:
        found.margins(Tick("ns"))
    return found


def check_column_name(name: str, given: object) -> None:
    """Refuse what names no column."""
    if not isinstance(given, str) or not given:
        raise ConditionError(
            f"{argument(name)} must be the name of a column (found {brief(given)})."
        )


@dataclass(frozen=True)
class Histograms:
    """Timestamps of one side that are histograms. Made by `histograms`.

    Parameters
    ----------
    time : str
        Column of the time at which an event was seen.
    template : str
        Column of its template's id.
    templates : Templates
    """

    time: str
    template: str
    templates: Templates

    def table(self, tick: Tick) -> TemplateTable:
        """The templates in ticks: `Templates.table`."""
        return self.templates.table(tick)


def histograms(
    time: str, *, template: str, templates: object, unit: str | None = None
) -> Histograms:
    """Say that the timestamps of a side are histograms: Mok, Woo & Lee (2006), Definition 1.

    Parameters
    ----------
    time : str
        Column of times. The last edge of an event's template comes to lie there; of templates of
        delays, each delay is counted back from there.
    template : str
        Column of the id of each event's template: text or integers.
    templates : Templates, mapping, path or table
        The templates: ``{"a": (edges, masses)}``, a .parquet, .csv or .arrow file, or anything that
        offers Arrow's C stream. Tables and files hold a row per bucket, of columns ``template``,
        ``lower``, ``upper``, ``mass`` (``delay_lower``, ``delay_upper`` for delays), or a row per
        template, of ``template``, ``edges`` (or ``delays``) and ``masses``.
    unit : str, optional
        The unit of edges that are plain numbers, such as ``"ms"``; None: ticks of the time columns.

    Returns
    -------
    Histograms
        For ``left_time`` or ``right_time`` of `coincide.correlate`.

    Raises
    ------
    ConditionError
        If a column is no name, or the unit is unknown.
    SchemaError, DataError
        If the templates make none.

    Examples
    --------
    >>> phi = {"a": ([0, 20, 30, 40], [0.1, 0.3, 0.6])}
    >>> histograms("seen_at", template="device", templates=phi).time
    'seen_at'
    """
    check_column_name("time", time)
    check_column_name("template", template)
    from coincide.engine.events.template_frames import templates_of  # loads readers of files

    return Histograms(time, template, templates_of(templates, unit))
