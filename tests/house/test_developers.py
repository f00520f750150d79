"""The pages for developers name what is there."""

from __future__ import annotations

import ast
import re

import pytest

from tests.helpers.places import ROOT

WALK = ROOT / "docs" / "developers" / "a-join.md"
STEP = re.compile(r"^\| \d+ \| `([\w/]+\.py)` \| ([^|]+) \|", re.MULTILINE)
PAGES = sorted((ROOT / "docs" / "developers").glob("*.md"))
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]*)`")


def steps() -> list[tuple[str, list[str]]]:
    """Files of the walk, with the names to read there."""
    found = STEP.findall(WALK.read_text("utf-8"))
    return [(path, re.findall(r"`(\w+)`", names)) for path, names in found]


def defined(path: str) -> set[str]:
    """Functions and classes of a module."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def test_a_reader_of_the_walk_opens_at_most_twelve_files() -> None:
    assert 8 < len({path for path, _ in steps()}) <= 12


@pytest.mark.parametrize(("path", "names"), steps())
def test_the_walk_names_what_is_in_its_files(path: str, names: list[str]) -> None:
    assert names
    assert set(names) <= defined(path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_paths_that_are_there(page) -> None:
    """Paths of the repository: code spans with a slash that begin with one of its folders."""
    text = page.read_text("utf-8")
    named = {each for each in PATH.findall(text) if (ROOT / each.split("/")[0]).is_dir()}
    made = ("build/", "dist/", ".cache/", "bench/results")
    missing = [
        each
        for each in sorted(named)
        if not each.startswith(made) and not list(ROOT.glob(each.rstrip("/").replace("*", "**")))
    ]
    assert missing == []


def test_contributing_is_short() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_bytes()) <= 3_100
