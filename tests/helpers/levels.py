"""How firm public names are, and the signatures of core names as text.

`python -m tests.helpers.levels` renews the stored signatures.
"""

from __future__ import annotations

import dataclasses
import inspect
import tomllib
from collections.abc import Iterator

import coincide
from tests.helpers.places import ROOT
from tests.helpers.wheels import PACKAGES

LEVELS: dict[str, list[str]] = tomllib.loads(
    (ROOT / "docs" / "reference" / "levels.toml").read_text("utf-8")
)
STORED = ROOT / "tests" / "house" / "core_signatures.txt"
RENEW = "python -m tests.helpers.levels"
MADE_FOR_USERS = {
    "Around",
    "BorderSummary",
    "Histograms",
    "JoinSummary",
    "StreamJoin",
    "StreamSummary",
}
"""Classes whose objects functions return: how these are constructed is not public."""
_LONGEST = 40


def core_signatures() -> list[str]:
    """A line for each base, parameter and member of each core name."""
    names = sorted(set(LEVELS["core"]) - {"__version__"})
    return [line for name in names for line in _lines(name, getattr(coincide, name))]


def _lines(name: str, found: object) -> Iterator[str]:
    if not isinstance(found, type):
        yield from _parameters(name, found)
        return
    bases = [base.__name__ for base in found.__mro__[1:] if _is_seen(base)]
    yield f"{name} is a {', '.join(bases) or 'class'}"
    if not issubclass(found, Exception) and name not in MADE_FOR_USERS:
        yield from _parameters(name, found)
    for member, value in sorted(_members(found).items()):
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if inspect.isfunction(value):
            yield from _parameters(f"{name}.{member}", value)
        else:
            yield f"{name}.{member}"


def _is_seen(base: type) -> bool:
    """Whether users may ask for instances of a base."""
    return issubclass(base, BaseException) or base.__name__ in coincide.__all__ or base is tuple


def _members(found: type) -> dict[str, object]:
    """The public fields, and members that our packages define, the nearest definition of each."""
    fields = (
        [each.name for each in dataclasses.fields(found)] if dataclasses.is_dataclass(found) else []
    )
    ours = [base for base in found.__mro__ if base.__module__.partition(".")[0] in PACKAGES]
    defined = {name: value for base in reversed(ours) for name, value in vars(base).items()}
    found_all: dict[str, object] = dict.fromkeys(fields) | defined
    return {name: value for name, value in found_all.items() if not name.startswith("_")}


def _parameters(name: str, function: object) -> Iterator[str]:
    """A line for each parameter: its place where it has one, its name, its default."""
    yield f"{name}()"
    given = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    for place, each in enumerate(each for each in given if each.name != "self"):
        is_free = each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is each.empty else f"={_brief(each.default)}"
        yield f"{name}({place if is_free else '-'} {stars}{each.name}{default})"


def _brief(default: object) -> str:
    """A default as text, of our classes by their name alone: these have lines of their own."""
    if type(default).__module__.partition(".")[0] in PACKAGES:
        return f"{type(default).__name__}(…)"
    text = repr(default)
    return text if len(text) <= _LONGEST and " at 0x" not in text else "…"


if __name__ == "__main__":
    STORED.write_text("".join(f"{line}\n" for line in core_signatures()), "utf-8")
