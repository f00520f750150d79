"""A case in words: options of the data source, and the command line."""

from __future__ import annotations

from bench.hunt.cases import Case
from bench.hunt.jobs import arguments
from coincide import CorrelateOptions

_SAME = ("unit", "invalid", "slices", "classes", "batch_pairs", "threads", "left_longest",
         "right_longest")  # fmt: skip


def source_options(case: Case) -> dict[str, str]:
    """Options of the data source ``coincide``, but for the files."""
    condition, given = arguments(case.data, case.job)
    predicate, options = condition.predicate, given["options"]
    lists = ("left_time", "right_time", "by", "left_columns", "right_columns")
    found = {name: ",".join(given[name]) for name in lists}
    if not given["by"]:
        del found["by"]
    found |= {name: str(given[name]) for name in ("how", "emit", "probability")}
    found["within"] = f"{predicate.lo},{predicate.hi}"
    found["confidence"] = repr(condition.confidence)
    return found | _plain(options)


def _plain(options: CorrelateOptions) -> dict[str, str]:
    values = {name: getattr(options, name) for name in _SAME}
    return {name: str(value) for name, value in values.items() if value is not None}


def command_words(case: Case, engine: str) -> list[str]:
    """Options of ``coincide join``."""
    found = source_options(case)
    lo, hi = found.pop("within").split(",")
    flag = found.pop("probability") == "True"
    if engine == "local":
        found.pop("slices", None)
    words = ["--within", lo, hi, *["--probability"] * flag]
    return [
        *words,
        *(f"--{name.replace('_', '-')}={value}" for name, value in found.items()),
        *("--engine", engine, "--json"),
    ]
