"""Advice in the words of the place where it appears: messages name arguments as Python has them."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution

_NAMES = (
    "backend", "batch_events", "batch_pairs", "classes", "confidence", "emit", "first", "how",
    "invalid", "left_longest", "overwrite", "right_longest", "left_unit", "right_unit", "pass_through",
    "probability", "processing", "repeated", "slices", "threads", "tick", "unit",
    "k", "largest_group", "matching", "prefer",
)  # fmt: skip
_ARGUMENT = re.compile(
    rf"(?:options=(?:Border|Correlate)Options\()?\b({'|'.join(_NAMES)})=(?:'(\w+)'|(\d+(?:\.\d+)?|True)\b)(\))?"
)
_OF_INPUTS = re.compile(r"--(csv-[a-z]+|(?:left|right)-csv|format|unit|tick)\b")


def for_command_line(text: str) -> str:
    """A message with arguments as options of the command line: ``--unit us``, ``--probability``."""
    text = re.sub(r"another one with (\w+)", _named, text)
    return _ARGUMENT.sub(lambda m: f"--{m[1].replace('_', '-')}{_given(m)}{_rest(m)}", text)


def _named(match: re.Match[str]) -> str:
    return f"another one with --{match[1].replace('_', '-')}"


def for_sql(text: str) -> str:
    """A message with arguments as options of a data source: ``unit 'us'``, ``csv_null 'NA'``."""
    text = _OF_INPUTS.sub(lambda m: m[1].replace("-", "_"), text)
    return _ARGUMENT.sub(lambda m: f"{m[1]} '{m[2] or m[3].lower()}'{_rest(m)}", text)


def _given(match: re.Match[str]) -> str:
    """The value of an option; a flag has none."""
    return "" if match[3] == "True" else f" {match[2] or match[3]}"


def _rest(match: re.Match[str]) -> str:
    """A closing parenthesis that is not of the options."""
    return "" if match[0].startswith("options=") else match[4] or ""


def install_gpu_packages() -> str:
    """How to install what a GPU needs: beside an installed Coincide, however it came, or from sources."""
    try:
        distribution("coincide")
    except PackageNotFoundError:
        return "pip install '.[gpu]' in the folder of Coincide's sources"
    return "pip install 'coincide[gpu]'"
