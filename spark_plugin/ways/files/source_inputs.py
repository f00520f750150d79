"""What the data source reads, by its options: Parquet by row groups, CSV and Arrow IPC by blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coincide.errors import ConditionError
from coincide.options import check_choice
from coincide.sides import SIDES
from spark_plugin.ways.files.other_inputs import told_of_other_inputs
from spark_plugin.ways.files.planning import plan_files
from spark_plugin.ways.files.scans import plan_scans
from spark_plugin.ways.files.worker.slice_join import Sliced
from spark_plugin.worker.arguments import JoinArguments
from spark_plugin.worker.files.finding import find_files
from spark_plugin.worker.inputs.csv_files import check_said
from spark_plugin.worker.inputs.csv_rules import csv_rules
from spark_plugin.worker.inputs.csv_sides import check_own, side_rules
from spark_plugin.worker.inputs.source import FORMATS, format_of, source_of
from spark_plugin.worker.words import names

_LISTS = ("csv_null", "csv_type", "csv_names")
INPUT_OPTIONS = (
    "format",
    "csv_delimiter",
    "csv_quote",
    "csv_decimal",
    "csv_skip",
    "csv_encoding",
    "csv_time_format",
    *_LISTS,
    "left_csv",
    "right_csv",
)
"""Options that say what files are, named as those of the command line."""


def planned_inputs(
    left: list[str],
    right: list[str] | None,
    arguments: JoinArguments,
    given: Mapping[str, str],
    parallelism: int,
) -> Sliced:
    """The planned join of files of any format.

    Parameters
    ----------
    left, right : list of str
        Files, folders or globs; without `right` one stream.
    arguments : JoinArguments
    given : mapping of str to str
        `INPUT_OPTIONS` that were given, others beside them.
    parallelism : int
        Tasks to aim at where all files are Parquet.

    Raises
    ------
    CoincideError
        If an option makes no sense, or the files cannot be joined so.
    """
    words = _words(given)
    common, sides = csv_rules(words, is_all=False), [side_rules(words, side) for side in SIDES]
    if "format" in given:
        check_choice("format", given["format"], tuple(FORMATS))
    with told_of_other_inputs(left, right):
        texts = [left] if right is None else [left, right]
        sources = []
        for side, texts_of_side, (rules, _) in zip(arguments.sides, texts, sides, strict=False):
            found = find_files(side, texts_of_side)
            # Of names that tell nothing the first bytes do, and a Parquet file may have any.
            kind = given.get("format") or format_of(found.paths) or "parquet"
            sources.append(source_of(", ".join(texts_of_side), found, kind, rules))
        check_said(common, sources)
        for i, (_, own) in enumerate(sides):
            check_own(SIDES[i], own, sources[i] if i < len(sources) else None)
        if all(source.file_format == "parquet" for source in sources):
            return plan_files(left, right, arguments, parallelism=parallelism)
        return plan_scans(sources, arguments)


def _words(given: Mapping[str, str]) -> dict[str, Any]:
    """The options of CSV as the command line has them."""
    words: dict[str, Any] = {
        name: given[name] for name in INPUT_OPTIONS if name != "format" and name in given
    }
    words["invalid"] = given.get("invalid")
    for name in set(_LISTS) & set(words):
        words[name] = names(f"the option {name}", [words[name]])
    if "csv_skip" in words:
        try:
            words["csv_skip"] = int(words["csv_skip"])
        except ValueError:
            raise ConditionError(
                f"the option 'csv_skip' must be a number; found {words['csv_skip'][:60]!r}"
            ) from None
    return words
