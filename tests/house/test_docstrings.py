"""What `help` shows of public names: all that they take, although no text is written twice."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import coincide
from coincide.model.docstrings import documented


def documents() -> Iterator[Any]:
    """All public functions, classes and methods of classes, by name."""
    for name in coincide.__all__:
        found = getattr(coincide, name)
        if not callable(found):
            continue
        yield pytest.param(found, id=name)
        for method, own in vars(found).items() if inspect.isclass(found) else ():
            if not method.startswith("_") and inspect.isfunction(own):
                yield pytest.param(own, id=f"{name}.{method}")


def section(text: str, title: str) -> dict[str, str]:
    """For each parameter of a section the text about it."""
    _, _, rest = text.partition(f"{title}\n{'-' * len(title)}\n")
    body = re.split(r"\n\n\w[\w ]*\n-+\n|\n\n\.\. |\n\n(?=>>>)", rest)[0]
    entries: dict[str, str] = {}
    for part in re.split(r"\n(?=\S)", body) if body.strip() else []:
        header, _, about = part.partition("\n")
        for name in header.partition(" : ")[0].split(","):
            entries[name.strip()] = inspect.cleandoc(about)
    return entries


@pytest.mark.parametrize("found", list(documents()))
def test_help_says_it_there(found: Any) -> None:
    text = inspect.getdoc(found) or ""
    assert not re.search(r"\b[Aa]s in\s+`(coincide\.)?[a-z_]\w*`", text)


@pytest.mark.parametrize("found", list(documents()))
def test_all_parameters_are_there_in_order(found: Any) -> None:
    named = [name.lstrip("*") for name in section(inspect.getdoc(found) or "", "Parameters")]
    if not named or not inspect.isfunction(found):
        return
    taken = [name for name in inspect.signature(found).parameters if name != "self"]
    assert sorted(named) == sorted(taken)


def test_correlate_tables_says_what_it_takes() -> None:
    said = section(inspect.getdoc(coincide.correlate_tables) or "", "Parameters")
    short = [name for name, about in said.items() if len(about) < 40]
    assert short == []
    assert '``within="250ms"``, is the window from -250 ms to 250 ms' in said["within"].replace(
        "\n", " "
    )


def test_both_joins_say_the_same() -> None:
    own, other = (
        section(inspect.getdoc(each) or "", "Parameters")
        for each in (coincide.correlate_tables, coincide.correlate)
    )
    for name in {*own} - {"left", "right", "report"}:
        assert other[name].startswith(own[name])
    assert "Rows of DataFrames have no number" in other["left_columns"].replace("\n", " ")


def source(a: int, b: int, c: int) -> int:
    """Add.

    Parameters
    ----------
    a, b : int
        The first
        two.
    c : int
        The third.

    Returns
    -------
    int
        The sum.

    Raises
    ------
    TypeError
        As in `coincide.source`.
    """
    return a + b + c


def test_entries_are_those_of_the_source() -> None:
    @documented(source)
    def target(c: int, b: int, d: int) -> None:
        """Add too.

        Parameters
        ----------
        c, b
            As in `coincide.source`. They are
            negative.
        d : int
            The fourth.

        Returns
        -------
        float
            As in `coincide.source`. It is rounded.

        Examples
        --------
        >>> 1
        """

    assert (target.__doc__ or "").splitlines() == [
        *("Add too.", "", "Parameters", "----------", "b : int", "    The first", "    two."),
        *("c : int", "    The third.", "    They are negative.", "d : int", "    The fourth.", ""),
        *("Returns", "-------", "float", "    The sum.", "    It is rounded.", ""),
        *("Examples", "--------", ">>> 1"),
    ]

    @documented(target)
    def third(b: int) -> None:
        """Add again.

        Parameters
        ----------
        b
            As in `coincide.target`.
        """

    assert (third.__doc__ or "").splitlines()[-3:] == ["b : int", "    The first", "    two."]


def test_without_docstrings_nothing_is_done() -> None:
    def bare() -> None: ...

    assert documented(source)(bare).__doc__ is None
