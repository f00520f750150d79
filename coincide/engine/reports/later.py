"""Reports of operators whose DataFrames are computed later."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

from coincide.model.errors import ConditionError, argument, brief

S = TypeVar("S")
"""What an operator tells: its summary."""


class LaterReport(ABC, Generic[S]):
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

        Of a DataFrame, which is computed later, this waits for its first action; what that read is
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
        """Refuse what is no such report, unless there is none."""
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
