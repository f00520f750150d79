"""Histogram timestamps as users name them: a time column, a template column, and the templates."""

from __future__ import annotations

from dataclasses import dataclass

from coincide.errors import ConditionError, brief
from coincide.templates.given import Templates
from coincide.templates.table import TemplateTable
from coincide.units import Tick
from spark_plugin.worker.arrow.template_frames import templates_of


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
        Of edges that are plain numbers, such as ``"ms"``; None: ticks of the time columns.

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
    for name, given in (("time", time), ("template", template)):
        if not isinstance(given, str) or not given:
            raise ConditionError(f"{name} must be the name of a column; found {brief(given)}")
    return Histograms(time, template, templates_of(templates, unit))
