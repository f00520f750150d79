"""Questions with data of their own, of tables in this process and of DataFrames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bench.hunt.cases import RIGHT, Case, Verdict, Way
from bench.hunt.judging import judge_error
from bench.hunt.questions import (
    ahead,
    arrays,
    clock_errors,
    clock_keys,
    corrected,
    counters,
    decimals,
    lasting,
    nested,
    open_windows,
)
from coincide import CorrelateOptions, correlate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bench.hunt.sessions import Sessions

_WEIGHT = 4
_SPARK_WAYS = ("auto", "exchange", "broadcast-left", "broadcast-right", "broadcast-both")


def _judge(wrong: Callable[..., str | None], case: Case, **given: Any) -> Verdict:
    random = np.random.default_rng([case.seed, case.number])
    try:
        found = wrong(random, **given)
    except Exception as error:
        return judge_error(error, set())
    return RIGHT if found is None else Verdict("wrong", found)


def _in_process(wrong: Callable[..., str | None], case: Case, folder: Path) -> Verdict:
    return _judge(wrong, case)


WAYS = [
    Way("arrays", partial(_in_process, arrays.wrong), weight=3 * _WEIGHT),
] + [
    Way(name, partial(_in_process, wrong), weight=_WEIGHT)
    for name, wrong in {
        "float times in where": decimals.wrong,
        "counters that wrap": counters.wrong,
        "columns of nested views": nested.wrong,
        "spans that go on": lasting.wrong,
        "windows without an end": open_windows.wrong,
        "names of clocks": clock_keys.wrong,
        "corrected clocks": corrected.wrong,
        "spans of corrected clocks": corrected.wrong_spans,
        "errors of clocks": clock_errors.wrong,
        "streams with fast clocks": ahead.wrong,
    }.items()
]


def spark_ways(sessions: Sessions) -> list[Way]:
    """Those of DataFrames, by any way."""
    found = {
        "float times in where": decimals.wrong,
        "spans that go on": lasting.wrong,
        "windows without an end": open_windows.wrong,
        "corrected clocks": corrected.wrong,
        "spans of corrected clocks": corrected.wrong_spans,
    }
    return [
        Way(f"{name} of DataFrames", partial(_on_spark, sessions, wrong), weight=_WEIGHT)
        for name, wrong in found.items()
    ]


def _on_spark(
    sessions: Sessions, wrong: Callable[..., str | None], case: Case, folder: Path
) -> Verdict:
    spark, way = sessions.of(case), case.chance("way").choice(_SPARK_WAYS)
    return _judge(wrong, case, join=partial(_joined, spark, way))


def _joined(
    spark: SparkSession, way: str, left: pa.Table, right: pa.Table, *given: Any, **asked: Any
) -> pa.Table:
    from bench.hunt.ways.spark_frames import frame_of

    options = replace(asked.pop("options", CorrelateOptions()), way=way)
    frames = (frame_of(spark, table) for table in (left, right))
    return correlate(*frames, *given, options=options, **asked).toArrow()
