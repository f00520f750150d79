"""Columns that a DataFrame calls otherwise than the files which it reads do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spark_plugin.ways.files.planning import NotDirect
from spark_plugin.worker.arguments import JoinArguments
from spark_plugin.worker.arrow.time_columns import time_names
from spark_plugin.worker.clocks import Around, AroundByRow
from spark_plugin.worker.histograms import Histograms
from spark_plugin.worker.timestamps.names import GivenTimes

Names = Mapping[str, str]
"""What files call a column, by what a DataFrame calls it."""


def in_files(arguments: JoinArguments, left: Names, right: Names) -> JoinArguments:
    """Arguments on DataFrames as arguments on the files that they read.

    Parameters
    ----------
    arguments : JoinArguments
        Settled.
    left, right : Names
        Of all columns that are needed.

    Raises
    ------
    NotDirect
        If columns are renamed, and a condition on pairs or a histogram names columns.
    """
    if all(own == name for names in (left, right) for own, name in names.items()):
        return arguments
    if arguments.where is not None:
        raise NotDirect("columns are renamed, and where= says what they are called after that")
    own, others = arguments.payload
    return replace(
        arguments,
        left_time=_times(arguments.left_time, left),
        right_time=_times(arguments.right_time, right),
        by=tuple(zip(_each(arguments.keys, left), _each(arguments.right_keys, right), strict=True)),
        left_columns=_each(own, left),
        right_columns=_each(others, right),
    )


def _each(given: list[str], names: Names) -> tuple[str, ...]:
    return tuple(names[name] for name in given)


def _times(given: GivenTimes, names: Names) -> GivenTimes:
    if isinstance(given, Histograms):
        raise NotDirect("columns are renamed, and templates say what they are called after that")
    if isinstance(given, Around):
        return replace(given, time=names[given.time])
    if isinstance(given, AroundByRow):
        time, before, after = _each([given.time, given.before, given.after], names)
        return replace(given, time=time, before=before, after=after)
    return _each(list(time_names("", given)), names)
