"""A case in words: options of the data source, and the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.hunt.cases import Case
from bench.hunt.jobs import UNITS, arguments
from bench.hunt.layouts import write_templates
from coincide import CorrelateOptions
from coincide.engine.events.time_arguments import Histograms
from cpu_fallback.reference.aggregates import Aggregate

_SAME = ("unit", "invalid", "slices", "classes", "batch_pairs", "threads", "left_longest",
         "right_longest")  # fmt: skip


def source_options(case: Case, folder: Path) -> dict[str, str]:
    """Options of the data source ``coincide``, but for the files; templates are written to a folder."""
    condition, given = arguments(case.data, case.job)
    predicate, options = condition.predicate, given["options"]
    lists = ("left_time", "right_time", "by", "left_columns", "right_columns")
    found = _histograms(case, given, folder)
    found |= {name: ",".join(given[name]) for name in lists}
    if not given["by"]:
        del found["by"]
    found |= {name: str(given[name]) for name in ("how", "emit", "probability")}
    if aggregates := given.get("aggregates"):
        found["aggregates"] = ",".join(_aggregate(*each) for each in aggregates.items())
    found |= {name: given[name] for name in ("weights", "including") if name in given}
    tick = case.data.tick
    found["within"] = f"{_said(predicate.lo, tick)},{_said(predicate.hi, tick)}"
    found["confidence"] = repr(condition.confidence)
    return found | _plain(options, tick)


def _aggregate(name: str, asking: Aggregate) -> str:
    return f"{name}={asking if isinstance(asking, str) else f'{asking[1]}({asking[0]})'}"


def _said(duration: int | str, tick: int | None) -> str:
    """A duration in words: a bare number is refused where times are timestamps."""
    if isinstance(duration, str) or tick is None:
        return str(duration)
    return f"{duration}{UNITS[tick]}"


def _histograms(case: Case, given: dict[str, Any], folder: Path) -> dict[str, str]:
    """The arguments of sides of histograms; `given` keeps their column of times."""
    found = {}
    written = write_templates(folder, case.data, case.chance("templates"))
    for number, side in enumerate(("left", "right")):
        time = given[f"{side}_time"]
        if isinstance(time, Histograms):
            given[f"{side}_time"] = (time.time,)
            found[f"{side}_template"] = time.template
            found[f"{side}_templates"] = str(written[number])
    return found


def _plain(options: CorrelateOptions, tick: int | None) -> dict[str, str]:
    values = {name: getattr(options, name) for name in _SAME}
    return {
        name: _said(value, tick) if name.endswith("_longest") else str(value)
        for name, value in values.items()
        if value is not None
    }


def command_words(case: Case, folder: Path, engine: str) -> list[str]:
    """Options of ``coincide join``."""
    found = source_options(case, folder)
    lo, hi = found.pop("within").split(",")
    flag = found.pop("probability") == "True"
    if engine == "local":
        found.pop("slices", None)
    if "aggregates" in found:
        found["aggregate"] = found.pop("aggregates")
    words = ["--within", lo, hi, *["--probability"] * flag]
    return [
        *words,
        *(f"--{name.replace('_', '-')}={value}" for name, value in found.items()),
        *("--engine", engine, "--json"),
    ]
