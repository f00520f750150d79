"""From the words of `coincide explore` to its arguments; all checks that need no data."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

from spark_plugin.command_line.arguments import JoinRequest, join_request
from spark_plugin.command_line.problems import Problem
from spark_plugin.worker.arguments import JoinArguments
from spark_plugin.worker.exploration.arguments import ExploreArguments
from spark_plugin.worker.exploration.saving import is_page
from spark_plugin.worker.pair_arguments import PairArguments
from spark_plugin.worker.words import numbers

_OWN = ("png", "confidences", "most_pairs")
_PLAIN = ("left", "right")


@dataclass(frozen=True, kw_only=True)
class ExploreRequest(JoinRequest):
    """One `coincide explore`.

    Parameters
    ----------
    explore : ExploreArguments
    png : str or None
        Where pictures go.
    command : str
        As it was typed, for the page.
    """

    explore: ExploreArguments
    png: str | None
    command: str

    def of(self, arguments: PairArguments) -> ExploreRequest:  # noqa: D102
        assert isinstance(arguments, JoinArguments)
        explore = replace(self.explore, join=arguments)
        return replace(self, arguments=arguments, explore=explore)


def explore_request(**words: Any) -> ExploreRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide explore`.

    Raises
    ------
    CoincideError
        If an option makes no sense.
    """
    if words["engine"] != "local":
        raise Problem(
            "coincide explore runs in one process, and looks at a sample where there is too much; leave"
            " --engine out"
        )
    own = {name: words[name] for name in _OWN}
    _check_outputs(words["output"], own["png"])
    # What the join is told beyond, it is told nothing of here.
    others = {name: each.default for name, each in _parameters("join").items()}
    shared = {name: word for name, word in words.items() if name not in _OWN}
    request = join_request(**{**others, **shared})
    join = replace(request.arguments, left_columns=(), right_columns=(), probability=True)
    given = {} if own["confidences"] is None else {
        "confidences": tuple(numbers("--confidences", own["confidences"]))
    }  # fmt: skip
    explore = ExploreArguments(join, most_pairs=own["most_pairs"], **given)
    fields = {name: getattr(request, name) for name in JoinRequest.__dataclass_fields__}
    return ExploreRequest(
        **{**fields, "arguments": join},
        explore=explore, png=own["png"], command=_command(words),
    )  # fmt: skip


def _parameters(command: str) -> Any:
    from spark_plugin.command_line import app

    return signature(getattr(app, command)).parameters


def _check_outputs(page: str, png: str | None) -> None:
    if not page.strip():
        raise Problem("the output has no name; say where to write the page, with -o")
    if not is_page(page):
        raise Problem(f"the output is a page, but {page} is named otherwise; end it in .html")
    if png is None:
        return
    if not png.strip():
        raise Problem("--png has no name; name a picture .png, or a folder for pictures")
    ending = os.path.splitext(png)[1]
    if ending and ending.lower() != ".png" and not os.path.isdir(png):
        raise Problem(f"--png takes a picture NAME.png, or a folder for pictures; found {png}")


def _command(words: dict[str, Any]) -> str:
    """What was typed, in one order; what stands at its default is left out."""
    parameters = _parameters("explore")
    typed = ["coincide", "explore", *(words[name] for name in _PLAIN if words[name] is not None)]
    for name, word in words.items():
        if name in _PLAIN or word == parameters[name].default:
            continue
        option = "-o" if name == "output" else f"--{name.replace('_', '-')}"
        if isinstance(word, bool):
            typed.append(option)
        elif isinstance(word, list):
            typed += [option, ",".join(word)]
        else:
            typed += [option, *map(str, word if isinstance(word, tuple) else [word])]
    return shlex.join(typed)
