"""Templates as somebody gives them: edges in any unit, made ticks when a join knows its tick."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

import numpy as np

from coincide.errors import ConditionError, DataError, brief
from coincide.templates.table import TemplateTable, template_table
from coincide.templates.template import Template
from coincide.units import NANOSECONDS_PER_UNIT, Tick, parse_duration, plain, unit_name

Edge = int | float | Decimal | str
"""A number counts `unit`; a string is a duration such as ``"40ms"``."""


@dataclass(frozen=True)
class GivenTemplate:
    """One template.

    Parameters
    ----------
    edges : tuple of int, float, Decimal or str, length n + 1
        Ends of the buckets, not falling. Timedeltas become strings.
    masses : tuple of float, length n
        Probabilities of the buckets, summing to 1.
    delays : bool
        Whether the edges are delays of detection: an event seen at t took place at t less its delay.
        Else the last edge comes to lie at the time that an event carries.
    """

    edges: tuple[Edge, ...]
    masses: tuple[float, ...]
    delays: bool = False

    def __post_init__(self) -> None:
        edges: tuple[Any, ...] = self.edges
        # NumPy's timedeltas call themselves integers.
        if any(isinstance(edge, timedelta | np.timedelta64) for edge in edges):
            object.__setattr__(self, "edges", tuple(map(_as_text, edges)))


@dataclass(frozen=True)
class Templates:
    """A table of template histograms (Mok, Woo & Lee, 2006, Definition 4), by their ids.

    Parameters
    ----------
    given : mapping of str to GivenTemplate
    unit : str or None
        Of edges that are numbers: ``"ns"`` ... ``"d"``. None: the ticks of the join's time columns.

    Raises
    ------
    ConditionError
        If the unit is unknown.
    DataError
        If there is no template, or one of them makes no histogram.
    """

    given: Mapping[str, GivenTemplate]
    unit: str | None = None

    def __post_init__(self) -> None:
        if self.unit is not None:
            object.__setattr__(self, "unit", unit_name(self.unit))
        if not self.given:
            raise DataError("the table of templates is empty; give at least one template histogram")

    def __len__(self) -> int:
        return len(self.given)

    def table(self, tick: Tick) -> TemplateTable:
        """The templates in ticks; edges are rounded to whole ones.

        Parameters
        ----------
        tick : Tick
            Of the time columns that are joined.

        Raises
        ------
        DataError
            If a template makes no histogram.
        ConditionError
            If an edge has a unit, and the time columns are plain numbers of unknown unit.
        """
        return template_table({name: self._in_ticks(name, tick) for name in self.given})

    def _in_ticks(self, name: str, tick: Tick) -> Template:
        given = self.given[name]
        edges = [self._ticks(name, edge, tick) for edge in given.edges]
        make = Template.of_delays if given.delays else Template
        return make(edges, given.masses, name=name)

    def _ticks(self, name: str, edge: Edge, tick: Tick) -> int:
        if isinstance(edge, str):
            return self._of_nanoseconds(name, _duration(name, edge), tick)
        number = _exact(edge)
        if number is None:
            raise DataError(
                f"template {brief(name)}: an edge must be a finite number or a duration such as '40ms';"
                f" found {brief(edge)}"
            )
        if self.unit is not None:
            return self._of_nanoseconds(name, number * NANOSECONDS_PER_UNIT[self.unit], tick)
        if number.denominator != 1:
            raise ConditionError(
                f"template {brief(name)}: the edge {edge} is no whole number of ticks; say in which unit"
                " edges are (unit='s')"
            )
        return int(number)

    def _of_nanoseconds(self, name: str, nanoseconds: Fraction, tick: Tick) -> int:
        if tick.nanoseconds is None:
            raise ConditionError(
                f"template {brief(name)}: its edges have a unit, but the time columns are plain numbers of"
                " unknown unit. Give the unit of the columns, as by options=CorrelateOptions(unit='us')"
            )
        return round(nanoseconds / tick.nanoseconds)


def _as_text(edge: Any) -> Edge:
    return plain(edge) if isinstance(edge, timedelta | np.timedelta64) else edge


def comparable(name: str, edge: Any) -> Any:
    """An edge by which buckets are ordered: a duration in nanoseconds, a number as it is."""
    return _duration(name, edge) if isinstance(edge, str) else edge


def _duration(name: str, edge: str) -> Fraction:
    try:
        return parse_duration(edge)
    except ConditionError as error:
        raise ConditionError(f"template {brief(name)}: {error}") from error


def _exact(edge: object) -> Fraction | None:
    """A number exactly; None for what is no finite number."""
    if isinstance(edge, bool):
        return None
    if isinstance(edge, Rational):
        return Fraction(int(edge.numerator), int(edge.denominator))  # NumPy's would overflow
    if isinstance(edge, Decimal):
        return Fraction(edge) if edge.is_finite() else None
    return Fraction(float(edge)) if isinstance(edge, Real) and math.isfinite(edge) else None
