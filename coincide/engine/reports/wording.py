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
_OPTIONS = re.compile(r"options=CorrelateOptions\((.*?)\)")
_OF_INPUTS = re.compile(r"--(csv-[a-z]+|(?:left|right)-csv|format|invalid|unit|tick)\b")


# Words that are no others: names of options with more than one part, but not in quotes, after a dot, or of
# a file's path.
_OF_PARTS = re.compile(
    r"(?<![\w.'`/\\-])(left_columns|right_columns|left_time|right_time|left_unit|right_unit|left_longest"
    r"|right_longest|case_fold|largest_group|batch_pairs|most_pairs)(?![\w'`=(/\\]|[.-]\w)"
)
# Words that are, where a message speaks of them.
_FIRST = re.compile(
    rf"^({'|'.join(_NAMES)}|case_fold|closed|confidences|left_columns|right_columns|shifts|where|by)"
    r"(?= (?:must|takes|is|are|has|have|says|makes|needs|cannot)\b)(?! threshold)"
)
_LEFT_OUT = re.compile(
    rf"\b(leave (?:out )?)({'|'.join(_NAMES)}|shifts|where|by|closed)(?= out\b|[;,]|\.(?!\w)|$)"
)
_CALLED = re.compile(r"\b(around|resolution)\('([^']*)'\)")


def for_command_line(text: str) -> str:
    """A message with arguments as options of the command line: ``--unit us``, ``--probability``.

    The one place where words of Python become those of the command line: all messages pass it.
    """
    text = re.sub(r"another one with (\w+)", _named, text)
    text = _FIRST.sub(lambda m: _option(m[1]), text)
    text = _OF_PARTS.sub(lambda m: _option(m[1]), text)
    text = _LEFT_OUT.sub(lambda m: m[1] + _option(m[2]), text)
    text = re.sub(r"\bin by(?=[,;:]|$)", "in --by", text)
    text = re.sub(r"\bwhere=(?=['\"])", "--where ", text)
    text = re.sub(r"\b(left|right|cause|effect)_columns='\*'", r"--\1-columns '*'", text)
    text = text.replace("say stream=None", "say --stream -")
    text = re.sub(r"\bas right$", "as RIGHT", text)
    text = _CALLED.sub(lambda m: f"the clock '{m[2]}'", text)
    return _ARGUMENT.sub(lambda m: f"--{m[1].replace('_', '-')}{_given(m)}{_rest(m)}", text)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _named(match: re.Match[str]) -> str:
    return f"another one with --{match[1].replace('_', '-')}"


def for_sql(text: str) -> str:
    """A message with arguments as options of a data source: ``unit 'us'``, ``csv_null 'NA'``."""
    text = _OF_INPUTS.sub(lambda m: m[1].replace("-", "_"), text)
    return _ARGUMENT.sub(lambda m: f"{m[1]} '{m[2] or m[3].lower()}'{_rest(m)}", text)


def for_columns(text: str) -> str:
    """A message with arguments of functions that make columns, which have no options: ``unit='us'``."""
    return _OPTIONS.sub(r"\1", text)


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
