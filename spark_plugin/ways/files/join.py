"""Joins of Parquet files on Spark: by tasks that read them, or by DataFrames where they cannot."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import starmap

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import types as T

from coincide.engine.backends import check_task_devices
from coincide.engine.events.schemas import type_of
from coincide.engine.files.common_schema import check_files
from coincide.engine.files.credentials import NOT_FOR_SPARK, holds_settings, shown
from coincide.engine.files.finding import (
    ColumnNames,
    Given,
    find_files,
    local_path,
    words_of,
)
from coincide.engine.files.footers import file_schemas, read_footers
from coincide.engine.files.planning import (
    NotDirect,
    called,
    check_for_tasks,
    direct_summary,
    plan_files,
    settled,
)
from coincide.engine.files.publishing import Output
from coincide.engine.files.slice_join import DirectJoin
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.join import AlonePlan, MirroredPlan
from coincide.engine.reports.join_report import JoinReport, JoinSummary, StepSeconds
from coincide.engine.reports.metrics import JoinTally, with_numbers
from coincide.engine.reports.warnings import warn
from coincide.engine.room import check_most
from coincide.model import errors
from coincide.model.errors import CoincideError, DataError, DroppedRowsWarning, SchemaError, marked
from coincide.model.remembered import remembered
from coincide.model.sides import LEFT, RIGHT
from spark_plugin.cluster.connect import parallelism
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.cluster.spark_errors import spark_errors_as_ours
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames.coarse_times import refuse_beyond_microseconds
from spark_plugin.frames.columns import check_microseconds, spark_type, wire_kind, with_file_name
from spark_plugin.frames.folder_columns import unescaped
from spark_plugin.frames.output_columns import (
    Named,
    decoded,
    metrics_name,
    output_columns,
    put_back,
    wire_schema,
    with_rights,
)
from spark_plugin.frames.plain_reads import GLOB
from spark_plugin.frames.stage import Stage, counted_by_tasks, gpu_profile
from spark_plugin.tasks.file_slices import BatchTask, Columns, FileTask, SliceReport
from spark_plugin.ways.chosen_pairs import Counts, check_identifiable, chosen_pairs, output_names
from spark_plugin.ways.correlation import BATCH_PAIRS, Correlation, plan_correlation

_log = logging.getLogger("coincide")


@dataclass(frozen=True)
class FilesJoin:
    """A join of two sets of Parquet files on Spark, or of one with itself: without `right`."""

    spark: SparkSession
    left: Given
    right: Given | None
    arguments: JoinArguments

    def dataframe(self, report: JoinReport | None) -> DataFrame:
        """The matches, computed when they are asked for."""
        join, _ = self._direct(compares_slices=True)
        if join is not None:
            return direct_frame(self.spark, join, report)
        planned = self._by_dataframes(observe=report is not None)
        planned.tell(report)
        return planned.dataframe

    def written(
        self, output: str | os.PathLike[str], overwrite: bool, report: JoinReport | None
    ) -> JoinSummary:
        """Write the matches to a folder, which appears whole or not at all."""
        join, why = self._direct()
        target = Output(output, overwrite, starmap(find_files, self._given))
        started = time.perf_counter()
        with target as folder:
            if join is None:
                done = self._written_by_dataframes(folder, why)
            else:
                slices = written_slices(self.spark, join, folder.filesystem, folder.aside)
                done = summary_of(join, slices, time.perf_counter() - started, why)
                self._check_most(done)
                folder.publish({slice_.path for slice_ in slices})
        JoinReport.tell(done, report)
        return done

    def _check_most(self, done: JoinSummary) -> None:
        """Refuse to publish more pairs than are allowed, of all tasks."""
        if done.counters is not None:
            check_most(done.counters.pairs, self.arguments.options.max_pairs)

    def _direct(self, compares_slices: bool = False) -> tuple[DirectJoin | None, str]:
        """The join by the direct way, or None; and why."""
        way = self.arguments.options.way
        if way not in ("auto", "files"):
            return None, "as asked"
        try:
            self._check_held()
            join = plan_direct(
                self.spark, self.left, self.right, self.arguments, compares_slices=compares_slices
            )
        except NotDirect as closed:
            if way == "files":
                raise
            _log.warning(
                "correlate_files: way 'files' is not possible, so Spark reads DataFrames: %s",
                closed,
            )
            return None, marked(closed)
        _log.info("correlate_files: by files, %s", join.plan.describe())
        return join, join.plan.describe()

    def _by_dataframes(self, observe: bool) -> Correlation:
        arguments = settled(self.arguments, self.left, self.right)
        sides = self._sides
        for (side, files, names, told), times in zip(sides, arguments.time_columns, strict=False):
            held = [name for name in names if name not in told]
            check_for_dataframes(self.spark, side, files, held, times)
        with spark_errors_as_ours():
            left, *right = (_spark_frame(self.spark, *side) for side in sides)
            return plan_correlation(left, right[0] if right else None, arguments, observe=observe)

    def _check_held(self) -> None:
        """Refuse columns that folders name: what these mean, Spark knows."""
        for side, *_, told in self._sides:
            if told:
                raise NotDirect(
                    f"folders name {' and '.join(map(repr, told))} of {side}. Use"
                    " correlate(spark.read.parquet(...), ...), whose tasks read such files."
                )

    @remembered
    def _sides(self) -> list[tuple[str, Given, Sequence[str], list[str]]]:
        """What messages call each side, its files, the needed columns, and those that folders name."""
        needed = settled(self.arguments, self.left, self.right).columns
        return [
            (side, given, names, named_by_folders(side, given, names))
            for (side, given), names in zip(self._given, needed, strict=False)
        ]

    @property
    def _given(self) -> list[tuple[str, Given]]:
        """What messages call each side, and its files; of one stream one."""
        left, right = self.arguments.sides
        return [(left, self.left), *([] if self.right is None else [(right, self.right)])]

    def _written_by_dataframes(self, folder: Output, why: str) -> JoinSummary:
        started = time.perf_counter()
        plan = self._by_dataframes(observe=True)
        with closing(plan), spark_errors_as_ours():
            plan.dataframe.write.mode("append").parquet(folder.uri)
        rows, size = folder.rows(), folder.size()
        summary = plan.summary()
        self._check_most(summary)
        folder.publish()
        seconds = time.perf_counter() - started
        why = f"{plan.why}; not by files: {why}"
        return replace(summary, rows=rows, size=size, seconds=seconds, why=why)


def plan_direct(
    spark: SparkSession,
    left: Given,
    right: Given | None,
    arguments: JoinArguments,
    *,
    compares_slices: bool = False,
    names: tuple[ColumnNames, ColumnNames] | None = None,
) -> DirectJoin:
    """Plan a direct join for Spark's workers."""
    check_task_devices(arguments.options)
    tasks = parallelism(spark)
    join = plan_files(
        left, right, arguments, parallelism=tasks, compares_slices=compares_slices, names=names
    )
    check_for_tasks(join)
    if join.tables.spec.compares_tasks:
        tables = join.tables
        check_identifiable(tables.spec, tables.times, tables.by, tables.payload)
    check_workers(spark)
    options = arguments.options
    return join.with_spec(
        threads=options.threads or 1, batch_pairs=options.batch_pairs or BATCH_PAIRS
    )


def direct_frame(spark: SparkSession, join: DirectJoin, report: JoinReport | None) -> DataFrame:
    """The matches of a planned join, computed when they are asked for."""
    tables, alone = join.tables, join.alone
    if alone is not None:
        assert isinstance(alone.tables, AlonePlan)
        pairs = direct_frame(spark, replace(join, alone=None), report)
        rights = direct_frame(spark, replace(alone, tables=alone.tables.bare), None)
        return with_rights(pairs, rights, len(tables.by[0]), len(tables.spec.measures))
    if tables.spec.overlap_ends:
        check_microseconds(tables.times[LEFT].scales[0])
    observed_by = _observation(spark, join, report)
    if not isinstance(tables, MirroredPlan):
        return _computed(spark, join, observed_by)
    found = _computed(spark, replace(join, tables=tables.bare), observed_by)
    kinds = [spark_type(name, tables.schema.field(name).type) for name in tables.by[RIGHT]]
    keys = list(zip(tables.by[RIGHT], kinds, strict=True))
    return put_back(found, keys, tables.payload[RIGHT], tables.payload[LEFT], tables.spec)


def _computed(spark: SparkSession, join: DirectJoin, observed_by: Observation | None) -> DataFrame:
    """The rows that tasks find, in the columns of their plan."""
    tables = join.tables
    by, left, right = (
        tuple(
            (name, spark_type(name, type_of(join.schemas[side], called(join)[side], name)))
            for name in names
        )
        for side, names in (
            (LEFT, tables.by[0]),
            (LEFT, tables.payload[0]),
            (RIGHT, tables.payload[1]),
        )
    )
    # Seen from the right side, too, keys are called as they are in the output.
    by = tuple((name, kind) for name, (_, kind) in zip(tables.schema.names, by, strict=False))
    spec = tables.spec
    if spec.compares_tasks:
        join = replace(join, tables=replace(tables, spec=spec.but(merits=True)))
    columns = output_columns(join.tables.spec, by, left, right)
    schema = wire_schema(columns)
    metrics = None if observed_by is None else metrics_name(schema.names)
    task = BatchTask(join, _wired(by), _wired(left), _wired(right), tuple(schema.names), metrics)
    stage = Stage(True, gpu_profile(spark, spec.backend), metrics, observed_by)
    found = stage.run(_numbers(spark, join), task, schema)
    if spec.compares_tasks:
        counts = Counts(len(by), len(left), len(right))
        found = chosen_pairs(found, columns, counts, spec)
        columns = output_columns(spec, by, left, right)
        found = found.selectExpr(*output_names(columns))
    return decoded(found, columns)


def _wired(columns: Named) -> Columns:
    return tuple((name, wire_kind(kind)) for name, kind in columns)


def _observation(
    spark: SparkSession, join: DirectJoin, report: JoinReport | None
) -> Observation | None:
    """What collects the counts of a DataFrame for a report, which learns how to ask for them."""
    left, right = join.tables.as_asked(called(join))
    known = JoinSummary(None, None, None, None, "files", join.tables.tick, sides=(left, right))
    if report is None:
        if join.tables.invalid == "drop":
            warn(
                "this DataFrame skips invalid rows when it is computed. To learn how many, give"
                " report=JoinReport(), and call its summary() then.",
                DroppedRowsWarning,
            )
        return None
    if is_accelerated(spark):
        report.take(known)
        return None
    observation = Observation()

    def finish() -> JoinSummary:
        found = counted_by_tasks(observation)
        if found is None:
            return known
        return direct_summary(join, with_numbers(JoinTally(), found.numbers))

    report.take(known, finish)
    return observation


def _numbers(spark: SparkSession, join: DirectJoin) -> DataFrame:
    """The numbers of the slices, one in each partition."""
    count = len(join.plan.slices)
    return spark.range(0, count, 1, count)


def written_slices(
    spark: SparkSession, join: DirectJoin, filesystem: fs.FileSystem, folder: str
) -> list[SliceReport]:
    """Let the workers write all slices to a folder, in which files of lost attempts may be left too."""
    if join.alone is not None:
        pairs = written_slices(spark, replace(join, alone=None), filesystem, folder)
        rights = written_slices(spark, join.alone, filesystem, folder)
        # The rows of both sides are counted where pairs are found.
        return [*pairs, *(replace(report, tally=JoinTally()) for report in rights)]
    task = FileTask(join, filesystem, folder)
    kind = T.StructType([T.StructField("report", T.StringType())])
    profile = gpu_profile(spark, join.tables.spec.backend)
    rows = _numbers(spark, join).mapInArrow(task, kind, profile=profile).collect()
    reports = sorted((SliceReport.from_json(r["report"]) for r in rows), key=lambda r: r.number)
    _raise_first(reports)
    return reports


def summary_of(
    join: DirectJoin, reports: list[SliceReport], seconds: float, why: str
) -> JoinSummary:
    """The reports of all slices as one summary."""
    tally = sum((report.tally for report in reports), JoinTally())
    return replace(
        direct_summary(join, tally),
        seconds=seconds,
        rows=sum(report.rows for report in reports),
        size=sum(report.size for report in reports),
        slices=len(reports),
        why=why,
        steps=sum((report.steps for report in reports), StepSeconds()),
    )


def _raise_first(reports: list[SliceReport]) -> None:
    """Raise what a slice has told of its data, as if it had happened here."""
    for report in reports:
        if report.error:
            kind = getattr(errors, report.error, CoincideError)
            raise kind(report.text)


def named_by_folders(side: str, given: Given, names: Sequence[str]) -> list[str]:
    """The needed columns that folders below a given one name, as in ``day=2026-01-01/``."""
    words = words_of(given)
    root = local_path(words[0]) if len(words) == 1 else None
    if root is None or not os.path.isdir(root) or GLOB & set(root):
        return []
    files = find_files(side, given)
    told = [
        {unescaped(step.partition("=")[0]) for step in path.split("/")[:-1] if "=" in step}
        for path in (os.path.relpath(path, root) for path in files.paths)
    ]
    # What a table's log tells is known without folders.
    asked = {name for name in names if name not in files.names.constants}
    found = sorted(set().union(*told).intersection(asked))
    lacking = next((i for i, own in enumerate(told) if not own.issuperset(found)), None)
    if lacking is not None:
        raise DataError(
            f"{side}: the folders of {files.paths[lacking]} do not name"
            f" {' and '.join(map(repr, found))}, as those of other files do. Move the file."
        )
    return found


def _spark_frame(
    spark: SparkSession, side: str, given: Given, names: Sequence[str], told: Sequence[str]
) -> DataFrame:
    files = find_files(side, given)
    files.check_held(names)
    if told:  # as a user would have Spark read it: what folders name goes before what files hold
        (word,) = words_of(given)
        return with_file_name(spark.read.parquet(f"file://{local_path(word)}"), names)
    if files.filesystem.type_name == "local":
        paths = [f"file://{path}" for path in files.paths]
        return with_file_name(spark.read.parquet(*paths), names)
    for word in words_of(given):
        if holds_settings(word):
            raise DataError(f"{side}: {shown(word)} {NOT_FOR_SPARK}")
    return with_file_name(spark.read.parquet(*words_of(given)), names)


_NANOS_AS_LONG = "spark.sql.legacy.parquet.nanosAsLong"
_DIRECTLY = "write the files so that way='files' is possible, which reads it"


def check_for_dataframes(
    spark: SparkSession, side: str, given: Given, names: Sequence[str], times: Sequence[str]
) -> None:
    """Refuse files that do not go together, or have times that Spark cannot read."""
    files = find_files(side, given)
    footers = read_footers(files, names)
    schemas = file_schemas(files, footers)
    check_files(side, schemas, names, times)
    reads_nanoseconds = spark.conf.get(_NANOS_AS_LONG) == "true"
    for path, schema in schemas:
        for field in schema:
            if field.name in names and pa.types.is_duration(field.type):
                raise SchemaError(
                    f"{side}: Spark reads the column {field.name!r} as plain numbers (found"
                    f" {field.type} in {path}). Cast it, or {_DIRECTLY}."
                )
            is_fine = pa.types.is_timestamp(field.type) and field.type.unit == "ns"
            # Also in columns that are not needed: Spark takes its schema from all columns of some file.
            if is_fine and not reads_nanoseconds:
                raise SchemaError(
                    f"{side}: Spark reads no nanoseconds, which the column {field.name!r} has"
                    f" (found {field.type} in {path}). Write it in microseconds, or {_DIRECTLY}."
                )
    refuse_beyond_microseconds(files, footers, names, _DIRECTLY)
