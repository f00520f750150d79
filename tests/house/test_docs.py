"""Code in the documentation prints just what is shown, and the files that pages name are there."""

from __future__ import annotations

import ast
import pkgutil
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


ROOMS = "coincide|cpu_fallback|gpu_kernels|spark_plugin|bench|tests|docs|scripts|examples"
FILES = re.compile(rf"`((?:{ROOMS})/[\w./-]*)`")
MODULES = re.compile(rf"`((?:coincide\.(?:model|engine)|{ROOMS.partition('|')[2]})\.[\w.]+)`")
NAMING = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", NAMING, ids=lambda page: page.stem)
def test_what_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [name for name in FILES.findall(text) if not (ROOT / name).exists()] == []
    for name in MODULES.findall(text):
        assert pkgutil.resolve_name(name), name
