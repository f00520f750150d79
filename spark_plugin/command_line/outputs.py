"""Where the output goes: it is written aside and takes its place at the end, or not at all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from spark_plugin.command_line.inputs import Source
from spark_plugin.command_line.problems import Problem
from spark_plugin.worker.files.credentials import NOT_FOR_SPARK, check_encoded, holds_settings
from spark_plugin.worker.files.finding import local_path
from spark_plugin.worker.files.outputs import Output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OTHER_FORMATS = (".csv", ".arrow", ".arrows", ".feather", ".ipc", ".json")


class SparkUri:
    """A folder in another file system. Spark's committer writes it; nothing is moved afterwards."""

    def __init__(self, text: str, overwrite: bool, sources: Sequence[Source]) -> None:
        check_encoded("the output", text)
        if holds_settings(text):
            raise Problem(f"the output {text} {NOT_FOR_SPARK}")
        for source in sources:
            folder = source.text.rstrip("/*")
            if text == folder or text.startswith(folder + "/"):
                raise Problem(
                    f"the output {text} lies inside the {source.side} input; write elsewhere"
                )
        self.uri, self.mode = text, "overwrite" if overwrite else "errorifexists"

    def __enter__(self) -> SparkUri:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def rows(self) -> int | None:
        """Unknown."""
        return None

    def publish(self, paths: Collection[str] | None = None) -> None:
        """Spark has done it."""


def local_output(text: str, overwrite: bool, sources: Sequence[Source]) -> Output:
    """Where the local engine writes its file. Raises `CoincideError` if it cannot."""
    _check_name(text)
    inputs = [source.found for source in sources]
    return Output(text, overwrite, inputs, is_folder=False, replaces_files=True)


def spark_output(text: str, overwrite: bool, sources: Sequence[Source]) -> Output | SparkUri:
    """Where Spark writes its folder. Raises `CoincideError` if it cannot."""
    _check_name(text)
    if local_path(text) is None:
        return SparkUri(text.rstrip("/"), overwrite, sources)
    inputs = [source.found for source in sources if not source.is_uri]
    return Output(text, overwrite, inputs, replaces_files=True)


def write_frame(frame: DataFrame, output: Output | SparkUri) -> None:
    """Let Spark write a DataFrame to an output."""
    mode = output.mode if isinstance(output, SparkUri) else "append"
    frame.write.mode(mode).parquet(output.uri)


def _check_name(text: str) -> None:
    if not text.strip():
        raise Problem("the output has no name; say where to write, with -o")
    if text.lower().endswith(_OTHER_FORMATS):
        raise Problem(f"the output is Parquet, but {text} is named otherwise; end it in .parquet")
