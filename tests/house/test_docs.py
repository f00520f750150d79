"""Code in the documentation that shows its output prints just that."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.helpers.places import ROOT

BLOCK = re.compile(r"```python\n((?:(?!```).)*)```(?:\n\n```text\n((?:(?!```).)*)```)?", re.DOTALL)
CONTINUED = ("docs/tutorial.md",)
"""Pages whose blocks build on each other."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """Code of each block and what it prints, as the page says; "" where it says nothing."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def pages() -> list[str]:
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [
        path.relative_to(ROOT).as_posix()
        for path in found
        if any(output for _, output in blocks(path))
    ]


@pytest.mark.parametrize("page", pages())
def test_examples_print_what_the_page_says(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    continued = page in CONTINUED
    for code, output in blocks(ROOT / page):
        if output or continued:
            exec(compile(code, page, "exec"), names if continued else {})
            assert capsys.readouterr().out == output


def test_pages_with_examples_are_found() -> None:
    found = {Path(page).stem for page in pages()}
    assert found >= {"tutorial", "clocks", "missed-deadlines", "streams", "pipeline"}


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_code_without_output_is_python_at_least(page: Path) -> None:
    for code, _ in blocks(page):
        ast.parse(code)
