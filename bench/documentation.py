"""docs/benchmarks.md, written from the results of the experiments."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.experiment import Experiment
from bench.report import short

Result = dict[str, Any]

FIELDS = (
    *("quick", "date", "commit", "machine"),
    *("figures", "checks", "charts"),
)
"""What a result must have to be shown."""
SECTION = 3
"""Figures with a bar from which on an experiment has a section of its own on the page."""
INTRODUCTION = Path(__file__).with_name("introduction.md")


def write_report(catalogue: dict[str, Experiment], results: Path, page: Path) -> list[str]:
    """Write the page; what it returns are the experiments without a result, which its end names."""
    folder = _link(results, page)
    found = {
        name: _read(results / f"{name}.json")
        for name in catalogue
        if (results / f"{name}.json").exists()
    }
    missing = [name for name in catalogue if name not in found]
    long = [name for name, result in found.items() if _is_long(result["figures"])]
    parts = [INTRODUCTION.read_text(encoding="utf-8")]
    for name in long:
        parts.append("\n".join(_section(name, catalogue[name], found[name], folder)))
    rest = [_line(name, catalogue[name], found[name], folder) for name in found if name not in long]
    if rest:
        parts.append("\n".join(["## Further experiments\n", *rest, ""]))
    if missing:
        parts.append(f"Not measured yet: {', '.join(f'`run {name}`' for name in missing)}.\n")
    page.write_text("\n".join(parts), encoding="utf-8")
    return missing


def _read(path: Path) -> Result:
    again = f"run `python -m bench run {path.stem} --record` again, or take the file away"
    try:
        result: Result = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON ({error}); {again}") from error
    lacking = [key for key in FIELDS if key not in result] if isinstance(result, dict) else FIELDS
    if lacking:
        raise ValueError(f"{path} has another version and lacks {', '.join(lacking)}; {again}")
    if result["quick"]:
        raise ValueError(f"{path} holds a quick run, whose figures say nothing; {again}")
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
    yield f"{_text(name, experiment, result, folder)}\n"
    yield from _figures(result["figures"])


def _is_long(figures: list[dict[str, Any]]) -> bool:
    return len(_with_bar(figures)) >= SECTION


def _line(name: str, experiment: Experiment, result: Result, folder: str) -> str:
    bars = "; ".join(f"{f['name']} {_cell(f)}" for f in _with_bar(result["figures"]))
    text = _text(name, experiment, result, folder)
    return f"- **{experiment.title or name}.** {f'{bars}. ' if bars else ''}{text}"


def _text(name: str, experiment: Experiment, result: Result, folder: str) -> str:
    """What was measured, when and where, and where the rest is."""
    machine, checks = result["machine"], len(result["checks"])
    changed = " with changes" if result["commit"].endswith("dirty") else ""
    parts = [
        " ".join(experiment.about.split()),
        f"`run {name}`, {result['date'][:10]}, commit `{result['commit'][:10]}`{changed},"
        f" {machine['cores']} cores of {machine['cpu']}{_device(result['settings'])}.",
        f"{checks} comparisons of answers, all equal." if checks else "",
        f"All figures and times: [{name}.json]({folder}/{name}.json).",
        _charts(name, result["charts"], folder),
    ]
    return " ".join(filter(None, parts))


def _device(settings: Mapping[str, Any]) -> str:
    return f" and an {settings['device']}" if "device" in settings else ""


def _charts(name: str, charts: list[dict[str, Any]], folder: str) -> str:
    links = (f"[{each['title']}]({folder}/{name}-{each['name']}.png)" for each in charts)
    return f"Charts: {'. '.join(links)}." if charts else ""


def _figures(figures: list[dict[str, Any]]) -> Iterator[str]:
    """Figures called "row: column" as a matrix where columns recur; else those that have a bar."""
    columns = Counter(_place(figure)[1] for figure in figures)
    rows: dict[str, dict[str, str]] = {}
    for figure in figures:
        row, column = _place(figure)
        if column and columns[column] > 1:
            rows.setdefault(row, {})[column] = _cell(figure)
    rows = {row: cells for row, cells in rows.items() if len(cells) > 1}
    if rows:
        common = list(dict.fromkeys(column for cells in rows.values() for column in cells))
        cells = [
            [row, *(found.get(column, "") for column in common)] for row, found in rows.items()
        ]
        yield from _table(["", *common], cells)
    alone = [f for f in figures if _place(f)[1] not in rows.get(_place(f)[0], {})]
    if judged := _with_bar(alone):
        yield from _table(["figure", "value"], [[f["name"], _cell(f)] for f in judged])


def _place(figure: dict[str, Any]) -> tuple[str, str]:
    row, _, column = figure["name"].partition(": ")
    return row, column


def _with_bar(figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [figure for figure in figures if figure["bar"] is not None]


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |"
    yield ""


def _cell(figure: dict[str, Any]) -> str:
    """Value, spread and bar, as the introduction explains them."""
    unit = "×" if figure["unit"] == "x" else figure["unit"]
    text, (low, high) = f"{short(figure['value'])} {unit}".rstrip(), (figure["low"], figure["high"])
    if low != high:
        text += f" ({short(low)} … {short(high)})"
    if figure["bar"] is None:
        return text
    bar = f"{'≥' if figure['at_least'] else '≤'} {short(figure['bar'])}"
    return f"{text}, {bar}" if figure["reached"] else f"{text}, **not {bar}**"
