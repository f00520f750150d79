"""Rows that are lost, late or rounded, in words; warnings in the name of who called us, also later."""

from __future__ import annotations

import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Generic, TypeVar

from coincide.engine.events.ticks import HALF, length_words
from coincide.engine.reports.lines import Line, Told
from coincide.model.errors import (
    AheadRowsWarning,
    CoincideWarning,
    ConditionError,
    DroppedRowsWarning,
    LateRowsWarning,
    RoundedTimesWarning,
    argument,
    brief,
    several,
)
from coincide.model.units import NANOSECONDS_PER_UNIT, Tick

_FEW = 10
"""This many of a unit say a length well enough; for fewer the next finer unit is taken."""


def warn_of_late(table: str, rows: int, late: int, by: int, tick: Tick, cure: str) -> None:
    """Warn of rows that came too late, if there are any."""
    if late:
        words = cure.format(delay=delay_argument(by, tick))
        warn(
            f"{table}, {several(rows, 'row')}: skipped {late:,} that came too late, by up to"
            f" {length_words(by, tick, digits=4)}. {words}.",
            LateRowsWarning,
        )


def warn_of_ahead(
    table: str, rows: int, ahead: int, by: int, furthest: str, tick: Tick, cure: str
) -> None:
    """Warn of rows that were set aside, which are too far ahead of the last ones."""
    warn(
        f"{table}, {several(rows, 'row')}: set aside {ahead:,} too far ahead of the last rows, by up to"
        f" {length_words(by, tick, digits=4)} (found {furthest}). {cure}.",
        AheadRowsWarning,
    )


def warn_of_repeated(table: str, rows: int, repeated: int, cure: str) -> None:
    """Warn of rows that are passed over, as another one of their stream and time counts."""
    if repeated:
        warn(
            f"{table}, {several(rows, 'row')}: skipped {repeated:,} that repeat a time of their stream."
            f" {cure}.",
            LateRowsWarning,
        )


def are_most(some: int, rows: int) -> bool:
    """Whether some of the rows are more than half of them."""
    return 2 * some > rows


def delay_argument(ticks: int, tick: Tick) -> str:
    """A delay that is at least so long, as one writes it in Python: ``'64min'``, or ``5000`` bare ticks."""
    if tick.nanoseconds is None:
        return str(ticks)
    size = ticks * tick.nanoseconds
    units = [u for u, step in NANOSECONDS_PER_UNIT.items() if tick.nanoseconds <= step]
    fitting = [u for u in units if NANOSECONDS_PER_UNIT[u] * _FEW <= size]
    unit = fitting[-1] if fitting else units[0]
    return f"'{-(-size // NANOSECONDS_PER_UNIT[unit])}{unit}'"


Loss = tuple[type[CoincideWarning], str]
"""The category of a warning, and its words."""


def losses(
    dropped: Mapping[str, int],
    words: Mapping[str, str],
    rounded: float,
    tick: Tick | None,
    hint: str = "",
) -> list[Loss]:
    """What is lost of rows."""
    found: list[Loss] = []
    count = sum(dropped.values())
    if count:
        reasons = ", ".join(f"{dropped[why]:,} {words[why]}" for why in words if dropped.get(why))
        told = f"skipped {several(count, 'invalid row')} ({reasons})"
        found.append((DroppedRowsWarning, f"{told}: {hint}" if hint else told))
    if rounded and tick is not None:
        told = f"times rounded by up to {length_words(rounded, tick, digits=3)}"
        if rounded > HALF:
            step = length_words(2.0 * rounded, tick, digits=3)
            told += (
                f", as 32-bit floats have steps of {step} there: write such times as 64-bit floats"
            )
        found.append((RoundedTimesWarning, told))
    return found


def warn_of_losses(table: str, rows: int, lost: Iterable[Loss]) -> None:
    """Warn of each, in the name of a table that has some rows."""
    for kind, words in lost:
        warn(f"{table}, {several(rows, 'row')}: {words}.", kind)


_OURS = ("coincide", "cpu_fallback", "gpu_kernels", "spark_plugin")


def warn(text: str, kind: type[CoincideWarning]) -> None:
    """Warn, in the name of the line outside this package that called it."""
    level, frame = 1, sys._getframe()
    while (
        frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS
    ):
        level, frame = level + 1, frame.f_back
    warnings.warn(kind(text), stacklevel=level)


S = TypeVar("S", bound=Told)
"""What an operator tells: its summary."""


class LaterReport(Told, Generic[S]):
    """Takes what an operator tells, at once or when its result was computed."""

    operator: ClassVar[str]
    """The public function that takes it."""

    def __init__(self) -> None:
        self._known: S | None = None
        self._finish: Callable[[], S] | None = None

    @staticmethod
    @abstractmethod
    def warn_of(summary: S) -> None:
        """Warn of what is lost."""

    @staticmethod
    def news(summary: S, planned: S | None) -> S:
        """What was not known, and warned of, when the result was planned."""
        return summary

    def summary(self) -> S:
        """What was found.

        For a DataFrame, which is computed later, this waits for its first action; what that read is
        counted. Warnings are given then.

        Raises
        ------
        ConditionError
            If nothing has reported here yet, or Spark has not counted.
        """
        if self._finish is not None:
            planned, self._known, self._finish = self._known, self._finish(), None
            self.warn_of(self.news(self._known, planned))
        return self._so_far

    def __repr__(self) -> str:
        return str(self)

    @property
    def lines(self) -> list[Line]:
        """What the command of the operator prints, as far as it is known without waiting."""
        called = type(self).__name__
        if self._known is None and self._finish is None:
            return [(called, "nothing has reported here yet")]
        known = [] if self._known is None else self._known.lines
        seconds = getattr(self._known, "seconds", None)
        timed = [] if seconds is None else [("seconds", f"{seconds:.2f}")]
        if self._finish is None:
            return [*known, *timed]
        return [*known, (called, "its summary() has all numbers once the result was used")]

    @property
    def _so_far(self) -> S:
        if self._known is None:
            raise ConditionError(
                f"nothing has reported here yet. Give this report to {self.operator}(...,"
                " report=report), and use its result first."
            )
        return self._known

    def take(self, known: S | None, finish: Callable[[], S] | None = None) -> None:
        """What is known, or how to ask for it once a result was computed."""
        self._known, self._finish = known, finish

    @classmethod
    def check(cls, report: object) -> None:
        """Refuse what is no such report; None is allowed."""
        if report is not None and not isinstance(report, cls):
            raise ConditionError(
                f"{argument('report')} must be a {cls.__name__}() (found {brief(report)})."
            )

    @classmethod
    def tell(
        cls, summary: S, report: LaterReport[S] | None, finish: Callable[[], S] | None = None
    ) -> None:
        """Hand a summary to a report, if there is one, and warn of what is lost."""
        if report is not None:
            report.take(summary, finish)
        cls.warn_of(summary)
