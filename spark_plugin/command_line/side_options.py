"""Options that a command has once for each side, whatever its sides are called."""

from __future__ import annotations

from typing import Any

from spark_plugin.command_line.panels import data, result


def same_of(metavar: str, side: str) -> Any:
    """The option of the second side that has the help of the first's."""
    return data(metavar=metavar, help=f"The same, of {side}.")


def around_of(side: str, more: str = "") -> Any:  # noqa: D103
    return data(
        metavar="D",
        help=f"How far off the clock of {side} may be, such as 10ms, or BEFORE,AFTER.{more}",
    )


def around_column_of(side: str) -> Any:  # noqa: D103
    return data(
        metavar="NAME",
        help=f"The column that says how far off each stamp of {side} may be, or BEFORE,AFTER.",
    )


def around_unit() -> Any:  # noqa: D103
    return data(metavar="UNIT", help="What the numbers in that column count, such as ms.")


def resolution_of(side: str) -> Any:  # noqa: D103
    return data(
        metavar="D",
        help=f"How coarse the stamps of {side} are: with 1ms, t means some time from t to t + 1 ms.",
    )


def template_of(side: str, more: str = "") -> Any:  # noqa: D103
    return data(
        metavar="COLUMN",
        help=f"Column that names the template of each event of {side}, whose timestamps are histograms"
        f" then.{more}",
    )


def columns_of(side: str, more: str = "") -> Any:  # noqa: D103
    return result(metavar="A,B,…", help=f"Columns of {side} to hand out. Default: id.{more}")


def partners_of(events: str, partners: str) -> Any:
    """How many partners."""
    return result(
        "--k",
        metavar="K",
        help=f"With --emit best, how many {partners} of each {events}, ranked from 1.",
    )
