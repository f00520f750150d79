"""Planned joins, and joins of files by a way, with their arguments one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import coincide
from coincide import CorrelateOptions, TimingCondition
from coincide.engine.files import planning
from coincide.engine.files import planning as local
from coincide.engine.join import join
from coincide.engine.join.arguments import JoinArguments

if TYPE_CHECKING:
    from coincide.engine.files.slice_join import DirectJoin
    from spark_plugin.ways.correlation import Correlation


def table_join(
    left: pa.Table, right: pa.Table, condition: TimingCondition, **arguments: Any
) -> join.TableJoin:
    return join.TableJoin(left, right, JoinArguments(condition, **arguments))


def plan_tables(
    left: pa.Schema, right: pa.Schema, condition: TimingCondition, **arguments: Any
) -> join.TablePlan:
    return join.plan_tables(left, right, JoinArguments(condition, **arguments))


def plan_correlation(
    left: Any, right: Any, condition: TimingCondition, *, observe: bool = False, **arguments: Any
) -> Correlation:
    from spark_plugin.ways import correlation

    given = JoinArguments(condition, **arguments)
    return correlation.plan_correlation(left, right, given, observe=observe)


def plan_files(
    left: Any, right: Any, condition: TimingCondition, *, parallelism: int, **arguments: Any
) -> DirectJoin:
    given = JoinArguments(condition, **arguments)
    return planning.plan_files(left, right, given, parallelism=parallelism)


def join_files(
    *sides: Any, way: str = "auto", options: CorrelateOptions = CorrelateOptions(), **arguments: Any
) -> Any:
    return coincide.correlate_files(*sides, options=replace(options, way=way), **arguments)


def local_files_join(left: Any, right: Any, condition: TimingCondition, **arguments: Any) -> Any:
    return local.LocalFilesJoin(left, right, JoinArguments(condition, **arguments))
