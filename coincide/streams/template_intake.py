"""Events of template histograms that are pushed. Their shapes are their templates' numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.errors import DataError, SchemaError, brief
from coincide.sides import SIDES
from coincide.streams.arrays import Column, is_null
from coincide.streams.checks import OUT_OF_RANGE, first_template_trouble
from coincide.streams.intake import Batch, OneKindIntake, refuse_groups, where_tables_go
from coincide.streams.results import LateHistogramEvents
from coincide.templates.table import TemplateTable, without_offsets
from coincide.timestamps.histograms import HistogramEvents
from coincide.units import TIME_LIMIT

_TEMPLATE = Column(
    "template",
    "integers (numbers of templates) or of text (their ids)",
    "Give the ids, or number them by TemplateTable.numbered(ids)",
)


class TemplateIntake(OneKindIntake):
    """The `Intake` of `HistogramEvents` and of pairs of arrays (max_time, template).

    Parameters
    ----------
    tables : (TemplateTable, TemplateTable)
        Of the left and the right side.
    rule : NamedTuple, optional
        As `OneKindIntake`.
    """

    COLUMNS = (Column("max_time"), _TEMPLATE)

    def __init__(self, tables: tuple[TemplateTable, TemplateTable], rule: Any = None) -> None:
        super().__init__(rule)
        self._tables = tables
        self._counts = np.array([len(table) for table in tables], np.int64)

    def late(  # noqa: D102
        self, side: int, numbers: np.ndarray, max_time: np.ndarray, shapes: np.ndarray
    ) -> LateHistogramEvents:
        return LateHistogramEvents(numbers, max_time, shapes)

    def _given(self, events: Any, sides: tuple[int, ...]) -> tuple[npt.ArrayLike, npt.ArrayLike]:
        if isinstance(events, HistogramEvents):
            refuse_groups(events.group)
            for side in sides:
                self._check_table(events.table, side)
            return events.max_time, events.template
        if isinstance(events, tuple) and len(events) == 2:
            return events[0], self._numbered(events[1], sides)
        raise SchemaError(
            "events must be HistogramEvents or a pair of arrays (max_time, template); found"
            f" {type(events).__name__}{where_tables_go(events)}"
        )

    def _numbered(self, template: npt.ArrayLike, sides: tuple[int, ...]) -> npt.ArrayLike:
        """Numbers of templates; ids become numbers."""
        if not _is_text(template):
            return template
        table, name = self._tables[sides[0]], SIDES[sides[0]]
        if any(self._tables[side] != table for side in sides):
            raise SchemaError(
                "template: ids do not say of which side's templates they are in a mixed push; number"
                " them by TemplateTable.numbered(ids) of each side, or push one side at a time"
            )
        ids = [None if is_null(each) else each for each in np.asarray(template).tolist()]
        numbers = table.numbered(ids)
        if (unknown := np.flatnonzero(numbers < 0)).size:
            at = int(unknown[0])
            raise DataError(
                f"{name}: event {at} of this push has the template {brief(ids[at])}, which is none of the"
                f" {len(table):,} of {name}_templates; leave the event out, or add a template"
            )
        return numbers

    def _check_table(self, table: TemplateTable, side: int) -> None:
        own = self._tables[side]
        if table is not own and table != own and without_offsets(table) != own:
            raise SchemaError(
                f"the events have another TemplateTable than {SIDES[side]}_templates; number their"
                f" templates by {SIDES[side]}_templates.numbered(ids)"
            )

    def _first_trouble(
        self, marks: np.ndarray, first: np.ndarray, second: np.ndarray
    ) -> tuple[int, int]:
        return first_template_trouble(marks, first, second, self._counts, TIME_LIMIT)

    def _batch(
        self, marks: np.ndarray, first: np.ndarray, second: np.ndarray, arrival: np.ndarray
    ) -> Batch:
        return Batch(marks, first, second, arrival)

    def _described(self, first: int, second: int) -> str:
        return f"of template {second} at {first}"

    def _complaint(self, trouble: int, side: int, first: int, second: int) -> str:
        if trouble == OUT_OF_RANGE:
            return "reaches 2^61 ticks; use a coarser unit"
        name, count = SIDES[side], int(self._counts[side])
        unknown = "; TemplateTable.numbered gives -1 for an unknown id" if second == -1 else ""
        return (
            f"has a template that is none of {name}_templates, which are numbered 0 to {count - 1}"
            f"{unknown}; leave the event out, or add a template"
        )


def _is_text(values: npt.ArrayLike) -> bool:
    """Whether values are ids, nulls aside."""
    array = np.asarray(values)
    if array.dtype.kind == "O" and array.ndim == 1:
        return any(isinstance(each, str) for each in array.tolist())
    return array.dtype.kind in "UT" and array.ndim == 1
