"""From the words of `coincide join` to its arguments; all checks that need no data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

from coincide.command_line.requests import EventRequest, checked
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.words import shifts, worded_join
from coincide.model.options import Way, check_choice


@dataclass(frozen=True, kw_only=True)
class JoinRequest(EventRequest):
    """One `coincide join`."""

    left: str
    right: str | None
    arguments: JoinArguments

    @property
    def inputs(self) -> dict[str, str]:  # noqa: D102
        called = self.arguments.sides
        return {called[0]: self.left} | ({} if self.right is None else {called[1]: self.right})

    @property
    def way(self) -> str:
        """As `CorrelateOptions.way`."""
        return self.arguments.options.way


def join_request(**words: Any) -> JoinRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide join`."""
    check_choice("--way", words["way"], get_args(Way))
    spark_only = {"--slices": words["slices"]}
    if words["way"].startswith(("broadcast", "collect")):
        spark_only[f"--way {words['way']}"] = True
    return JoinRequest(
        left=words["left"],
        right=words["right"],
        arguments=replace(worded_join(words), shifts=shifts(words["shifts"])),
        **checked(words, spark_only),
    )
