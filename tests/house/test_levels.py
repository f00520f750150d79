"""Each public name has one level, the reference says it, and core names keep their signatures."""

from __future__ import annotations

from collections import Counter

import pytest

import coincide
from scripts.site_hooks import levels
from tests.helpers.levels import LEVELS, RENEW, STORED, core_signatures


def test_each_public_name_has_one_level() -> None:
    counted = Counter(name for names in LEVELS.values() for name in names)
    assert list(LEVELS) == ["core", "provisional", "experimental"]
    assert counted == Counter(coincide.__all__), "see docs/reference/levels.toml"


def changes(stored: list[str], found: list[str]) -> str | None:
    """What became of the signatures of core names, and what to do; None if they are as stored."""
    lost = [line for line in stored if line not in found]
    new = [line for line in found if line not in stored]
    if lost:
        return (
            f"core names lost what users may rely on (lost {lost}, new {new}). Keep it working for a minor"
            f" version, with a DeprecationWarning that names what to write, and a line in CHANGELOG.md."
            f" After that version run {RENEW}."
        )
    if new:
        return f"core names have new parts (found {new}). Run {RENEW}, and commit what it writes."
    return None


def test_core_names_keep_their_signatures() -> None:
    stored = STORED.read_text("utf-8").splitlines()
    assert len(stored) > 300
    problem = changes(stored, core_signatures())
    assert problem is None, problem


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (["f()", "f(0 a)"], None),
        (["f()", "f(0 a)", "f(- b=1)"], "Run python -m"),
        (["f()", "f(1 a)", "f(0 b)"], "DeprecationWarning"),
        (["f()"], "DeprecationWarning"),
    ],
)
def test_a_change_says_what_is_due(found: list[str], said: str | None) -> None:
    problem = changes(["f()", "f(0 a)"], found)
    assert problem is None if said is None else said in str(problem)


def test_the_page_of_levels_names_all() -> None:
    page = levels()
    for level, names in LEVELS.items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| *{level}*")]
        assert all(f"`{name}`" in row for name in names)
