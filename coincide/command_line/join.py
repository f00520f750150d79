"""`coincide join`, on either engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_args

import pyarrow as pa

from coincide.command_line.chance import PairRequest, PlannedPairs, counted_before, shifts
from coincide.command_line.engines import opens
from coincide.command_line.event_inputs import Prepared, prepared, read_tables
from coincide.command_line.outputs import SparkOutput, SparkUri
from coincide.command_line.problems import Problem, tell_closed
from coincide.command_line.progress import Progress
from coincide.command_line.requests import InProcess, OnSpark, checked
from coincide.command_line.summary import Counted, counted_pairs
from coincide.engine.accidental.moved import MovedTables
from coincide.engine.accidental.pairs import AccidentalPairs
from coincide.engine.events.corrected import CorrectedClock
from coincide.engine.events.row_numbers import ID
from coincide.engine.events.spans import Spans
from coincide.engine.events.time_arguments import Around, AroundByRow, Histograms
from coincide.engine.events.time_columns import time_names
from coincide.engine.events.unwrapping import Counter, checked_modulus
from coincide.engine.files.common_schema import MissingColumn
from coincide.engine.files.planning import LocalFilesJoin, NotDirect
from coincide.engine.files.source import Source, path_columns
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.join import TableJoin
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.join.text_options import worded_join
from coincide.engine.reports.join_report import JoinSummary
from coincide.model.errors import SchemaError, argument, marked
from coincide.model.options import Way, check_choice
from coincide.model.sides import SIDES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from coincide.command_line.requests import OnSession


@dataclass(frozen=True, kw_only=True)
class JoinRequest(PairRequest):
    """One `coincide join`."""

    doing: ClassVar[str] = "joining"
    left: str
    right: str | None
    arguments: JoinArguments
    counter: Counter | None = None

    @property
    def inputs(self) -> dict[str, str]:  # noqa: D102
        called = self.arguments.sides
        return {called[0]: self.left} | ({} if self.right is None else {called[1]: self.right})

    @property
    def way(self) -> str:
        """As `CorrelateOptions.way`."""
        return self.arguments.options.way

    def job(self, arguments: PairArguments, tables: list[pa.Table]) -> Any:  # noqa: D102
        left, *right = tables
        return TableJoin(left, right[0] if right else None, arguments)

    def in_process(self, sources: list[Source], progress: Progress) -> InProcess:  # noqa: D102
        asked = prepared(self, sources)
        planned = _planned_directly(asked, partial(LocalFilesJoin, say=progress.note))
        moved: MovedTables | None = None
        if isinstance(planned, str):
            tables = read_tables(asked, progress.show)
            if self.counter is not None:
                tables = self.counter.unwrapped(tables, _clocks(asked.request.arguments))
            why, job = planned, self.job(asked.request.arguments, tables)
            moved = self.moved(asked.request.arguments, tables)
        else:
            why, job = planned.plan.describe(), planned
        batches = counted_before(moved, job.batches())
        return InProcess(
            batches, job.schema,
            lambda: self._counted(job.summary, why, None if moved is None else moved.pairs), job.limit,
        )  # fmt: skip

    def _counted(
        self, summary: JoinSummary | None, why: str, accidental: AccidentalPairs | None = None
    ) -> Counted:
        assert summary is not None
        counted = counted_pairs(replace(summary, why=self.hide(why)), accidental)
        if not self.arguments.row.is_best:
            return counted
        more = ", among which the best were chosen" if summary.counters else ""
        lines = [(name, said + more * (name == "pairs")) for name, said in counted.lines]
        return counted._replace(lines=lines)

    def on_spark(self, sources: list[Source]) -> OnSession:  # noqa: D102
        return partial(self._on_spark, prepared(self, sources))

    def _on_spark(
        self,
        asked: Prepared[JoinRequest],
        spark: SparkSession,
        progress: Progress,
        output: SparkOutput,
    ) -> OnSpark:
        """Workers read and write files, or else Spark does."""
        from spark_plugin.ways.files.join import plan_direct, summary_of, written_slices

        if isinstance(output, SparkUri):
            closed = _closed_if_free(self, "the output is not on this machine.")
            return self._by_spark(asked, closed)(spark, progress, output)
        planned = _planned_directly(asked, partial(plan_direct, spark))
        if isinstance(planned, str):
            return self._by_spark(asked, planned)(spark, progress, output)
        with progress.following(spark, self.doing):
            reports = written_slices(spark, planned, output.filesystem, output.aside)
        done = summary_of(planned, reports, 0.0, planned.plan.describe())
        files = {report.path for report in reports}
        return OnSpark(self._counted(done, done.why), files, done.rows)

    def _by_spark(self, asked: Prepared[JoinRequest], closed: str) -> OnSession:
        from coincide.command_line.spark import spark_frame
        from spark_plugin.ways.correlation import plan_correlation

        def plan(spark: SparkSession) -> PlannedPairs:
            left, *right = frames = [spark_frame(spark, *one) for one in asked.needed()]
            arguments = asked.request.arguments
            accidental = self.on_frames(frames, arguments)
            second = right[0] if right else None
            return PlannedPairs(plan_correlation(left, second, arguments, observe=True), accidental)

        def counted(plan: PlannedPairs) -> Counted:
            why, join = closed, plan.join
            if join.plan.way.startswith("broadcast"):
                not_direct = "" if self.way.startswith("broadcast") else f"; not by files: {closed}"
                why = join.why + not_direct
            return self._counted(join.summary(), why, plan.accidental)

        return self.planned(plan, counted)


def request(**words: Any) -> JoinRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide join`."""
    check_choice("way", words["way"], get_args(Way))
    spark_only = {"--slices": words["slices"]}
    counter = _counter(words["modulus"], words["in_order"])
    if words["way"].startswith("broadcast"):
        spark_only[f"--way {words['way']}"] = True
    rules = checked(words, spark_only)
    arguments = worded_join(words)
    if counter is not None:
        _clocks(arguments)
        rules |= _in_order_of_rows(rules["engine"], words["way"])
    if arguments.options.devices != "one":
        rules |= _on_all_devices(rules["engine"])
    return JoinRequest(
        left=words["left"], right=words["right"], arguments=arguments,
        shifts=shifts(words["shifts"]), counter=counter, **rules,
    )  # fmt: skip


def _counter(modulus: int | None, in_order: bool) -> Counter | None:
    if modulus is not None:
        return Counter(checked_modulus(modulus), in_order)
    if in_order:
        raise Problem("--in-order belongs to --modulus. Remove it, or give --modulus M.")
    return None


def _in_order_of_rows(engine: str, way: str) -> dict[str, str]:
    """The engine for a clock that wraps, as only this process knows the order of rows."""
    if engine == "spark" or way == "files":
        raise Problem(
            "--modulus needs the order of rows, which one process alone keeps. Use --engine local,"
            " without --way files and options of Spark."
        )
    return {"engine": "local", "engine_why": "a clock that wraps needs the order of rows"}


def _on_all_devices(engine: str) -> dict[str, str]:
    """The engine for a join on all GPUs of one process."""
    if engine == "spark":
        raise Problem(
            "--devices all deals a join over the GPUs of one process, and a task of Spark has one. Use"
            " --engine local, without options of Spark."
        )
    return {"engine": "local", "engine_why": "all GPUs of one process"}


def _clocks(arguments: JoinArguments) -> list[tuple[str, str]]:
    """The columns of times of both sides whose clock may wrap."""
    found = []
    for side, given in zip(SIDES, (arguments.left_time, arguments.right_time), strict=True):
        if isinstance(given, (CorrectedClock, Spans)):
            raise Problem(
                f"--modulus unwraps instants and intervals (found --{side}-clock or spans). Unwrap the"
                " columns first, with coincide.unwrapped in Python."
            )
        name = given.time if isinstance(given, (Around, AroundByRow, Histograms)) else given
        found.append(time_names(f"{side}_time", name))
    return found


Planned = TypeVar("Planned")


def _planned_directly(
    asked: Prepared[JoinRequest], plan: Callable[[str, str | None, JoinArguments], Planned]
) -> Planned | str:
    """What `plan` makes of both inputs, or why the direct way is closed."""
    request = asked.request
    closed = _closed(asked)
    if closed is None:
        try:
            _check_slices(request)
            right = None if request.right is None else asked.inputs[1].source.text
            return plan(asked.inputs[0].source.text, right, request.arguments)
        except MissingColumn:
            raise
        except NotDirect as error:
            if request.way == "auto":
                tell_closed(request.hide(error))
            closed = marked(error)
        except SchemaError as error:
            # What is wrong with columns is said by the other way, which may also bridge it.
            closed = marked(error)
    return _closed_if_free(request, closed)


def _check_slices(request: JoinRequest) -> None:
    """Refuse what reads a slice more than once."""
    if request.shifts is not None:
        raise NotDirect(
            f"{argument('shifts')} count the pairs of all slices again, which needs tables in memory, a"
            " broadcast or an exchange."
        )


def _closed_if_free(request: JoinRequest, closed: str) -> str:
    """Why the direct way is closed, where it was not asked for."""
    if request.way == "files":
        raise Problem(f"--way files is not possible: {closed} Or use --way auto.")
    return closed


def _closed(asked: Prepared[JoinRequest]) -> str | None:
    """Why the direct way is closed; None if it may be open."""
    request, inputs, types = asked
    if request.counter is not None:
        return "a clock that wraps needs the order of rows."
    if request.way not in ("auto", "files"):
        return "as asked"
    prefixes = request.arguments.prefixes
    for given, columns, unknown, prefix in zip(
        inputs, request.columns, types, prefixes, strict=True
    ):
        source = given.source
        if not source.format.has_row_groups:
            return f"{source.side} is not Parquet."
        if source.is_uri and not opens(source.side, source.text):
            return f"PyArrow cannot open {source.text}."
        if given.makes_ids(columns):
            return (
                f"{source.side} has no column {ID!r}, and slices do not number rows. Name columns with"
                f" {argument(f'{prefix}_columns')}."
            )
        if told := sorted(path_columns(source).intersection(columns)):
            return f"only the paths of {source.side} tell {' and '.join(map(repr, told))}."
        if unknown:
            return f"the files of {source.side} give {' and '.join(map(repr, unknown))} no type."
    return None
