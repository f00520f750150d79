"""docs/benchmarks.md, written from the results of the experiments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.experiment import Experiment
from bench.report import short

Result = dict[str, Any]

FIELDS = (
    *("quick", "date", "commit", "machine", "timings"),
    *("figures", "checks", "charts", "claims"),
)
"""What a result must have to be shown."""
INTRODUCTION = Path(__file__).with_name("introduction.md")


def write_report(catalogue: dict[str, Experiment], results: Path, page: Path) -> list[str]:
    """Write the page; what it returns are the experiments without a result, which its end names."""
    parts, missing = [INTRODUCTION.read_text(encoding="utf-8")], []
    for name, experiment in catalogue.items():
        path = results / f"{name}.json"
        if path.exists():
            result = _read(path)
            parts.append("\n".join(_section(name, experiment, result, _link(results, page))))
        else:
            missing.append(name)
    if missing:
        parts.append(f"Not measured yet: {', '.join(f'`run {name}`' for name in missing)}.\n")
    page.write_text("\n".join(parts), encoding="utf-8")
    return missing


def _read(path: Path) -> Result:
    again = f"run `python -m bench run {path.stem}` again, or take the file away"
    try:
        result: Result = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON ({error}); {again}") from error
    lacking = [key for key in FIELDS if key not in result] if isinstance(result, dict) else FIELDS
    if lacking:
        raise ValueError(f"{path} is of another version and lacks {', '.join(lacking)}; {again}")
    if result["quick"]:
        raise ValueError(f"{path} is of a quick run, whose figures say nothing; {again}")
    return result


def _link(results: Path, page: Path) -> str:
    """From the page's folder to the results."""
    home = page.resolve().parent
    ups = 0
    while not results.resolve().is_relative_to(home):
        home, ups = home.parent, ups + 1
    return "../" * ups + results.resolve().relative_to(home).as_posix()


def _section(name: str, experiment: Experiment, result: Result, folder: str) -> Iterator[str]:
    yield f"## {experiment.title or name}\n"
    if experiment.about:
        yield experiment.about
    yield f"{_provenance(name, result, folder)}\n"
    yield from _figures(result["figures"])
    # Lines show what was timed; bars of steps only part of it.
    if all(chart.get("bars") for chart in result["charts"]):
        yield from _timings(result["timings"])
    for chart in result["charts"]:
        yield f"![{chart['title']}]({folder}/{name}-{chart['name']}.png)\n"
    yield from _claims(result["claims"])


def _provenance(name: str, result: Result, folder: str) -> str:
    machine = result["machine"]
    checks = len(result["checks"])
    agreed = f"; {checks} comparisons of answers, all equal" if checks else ""
    return (
        f"`run {name}`, {result['date'][:10]}, commit `{result['commit'][:10]}`"
        f"{' with changes' if result['commit'].endswith('dirty') else ''}, {machine['cores']} cores of"
        f" {machine['cpu']}, {machine['memory_gib']:.0f} GiB, load {machine['load']} before{agreed}."
        f" Everything else is in [{name}.json]({folder}/{name}.json)."
    )


def _figures(figures: list[dict[str, Any]]) -> Iterator[str]:
    if not figures:
        return
    matrix = _matrix(figures)
    if matrix:
        columns = list(next(iter(matrix.values())))
        yield from _table(["", *columns], [[row, *cells.values()] for row, cells in matrix.items()])
        return
    rows = [
        [f["name"], _value(f), _spread(f), _bar(f), {None: "", True: "yes", False: "**no**"}[f["reached"]]]
        for f in figures
    ]  # fmt: skip
    yield from _table(["figure", "value", "spread", "bar", "reached"], rows)


def _matrix(figures: list[dict[str, Any]]) -> dict[str, dict[str, str]] | None:
    """Figures called "row: column", without bars and each row with the same columns, as a matrix."""
    rows: dict[str, dict[str, str]] = {}
    for figure in figures:
        row, found, column = figure["name"].partition(": ")
        if not found or figure["bar"] is not None:
            return None
        spread = _spread(figure)
        cell = f"{_value(figure)} ({spread})" if spread else _value(figure)
        rows.setdefault(row, {})[column] = cell
    columns = {tuple(cells) for cells in rows.values()}
    return rows if len(columns) == 1 and len(rows) > 1 else None


def _timings(timings: dict[str, dict[str, float]]) -> Iterator[str]:
    rows = [
        [name, *(f"{timing[k]:.3f} s" for k in ("median", "low", "high"))]
        for name, timing in timings.items()
    ]
    if rows:
        yield from _table(["time of", "median", "lowest", "highest"], rows)


def _claims(claims: list[dict[str, Any]]) -> Iterator[str]:
    if claims:
        words = {None: "open", True: "yes", False: "**no**"}
        rows = [[c["claim"], c["seen"], words[c["agrees"]]] for c in claims]
        yield from _table(["the paper says", "seen here", "agrees"], rows)


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |"
    yield ""


def _value(figure: dict[str, Any]) -> str:
    unit = "×" if figure["unit"] == "x" else figure["unit"]
    return f"{short(figure['value'])} {unit}".rstrip()


def _spread(figure: dict[str, Any]) -> str:
    low, high = figure["low"], figure["high"]
    return "" if low == high else f"{short(low)} … {short(high)}"


def _bar(figure: dict[str, Any]) -> str:
    if figure["bar"] is None:
        return ""
    return f"{'≥' if figure['at_least'] else '≤'} {short(figure['bar'])}"
