"""The check of words sees phrases that are not in use and long sentences, but not in code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from scripts.check_words import BANNED, every_file, helps, messages, problems, texts_of
from tests.helpers.places import ROOT

LONG = "You " + "really " * 34 + "do."


def found(markdown: str, tmp_path: Path, name: str = "page.md") -> list[str]:
    page = tmp_path / name
    page.write_text(markdown, "utf-8")
    return list(problems(texts_of(page)))


@pytest.mark.parametrize(
    ("sentence", "phrase"),
    [
        ("Nobody compares them.", "Nobody"),
        ("Rows are\nsorted. It is\ntold here.", "is told"),
        ("Of several pairs the first wins.", "Of"),
        ("There are two, of which one wins.", ", of which"),
        ("Columns that are handed out come first.", "handed out"),
        ("No look runs before.", "No look"),
        ("The how-many-eth it is.", "how-many-eth"),
        ("- A partner of the event.", "partner"),
        ("# Beside Spark", "Beside"),
        ("| a |\n|---|\n| so many rows |", "so many"),
        ("Timestamps, as of crossings, are columns.", "as of"),
    ],
)
def test_phrases_that_are_not_in_use_are_found(sentence: str, phrase: str, tmp_path: Path) -> None:
    (said,) = found(f"You read this.\n\n{sentence}", tmp_path)
    assert repr(phrase) in said
    lines = {"is told": 4, "so many": 5}  # the others are in a sentence that begins on line 3
    assert said.startswith(f"{lines.get(phrase, 3)}: ")


@pytest.mark.parametrize(
    "page",
    [
        "An as-of join finds the last event\nof a key, and `nobody` is code.",
        "| column | what it is |\n|---|---|\n| a | " + LONG + " |",
        "```python\nnobody = 'as of'\n```",
        "It stands for one event. A look-up follows. Of course it does. "
        + LONG.replace("really ", "", 1),
    ],
)
def test_code_tables_and_words_in_use_pass(page: str, tmp_path: Path) -> None:
    assert found(page, tmp_path) == []


def test_long_sentences_and_long_averages_are_found(tmp_path: Path) -> None:
    assert "36 words in a sentence" in found(LONG, tmp_path)[0]
    even = "You " + "really " * 18 + "do. "
    assert "20.0 words a sentence on average" in found(even * 5, tmp_path)[0]
    assert found(even * 4 + "You do.", tmp_path) == []


def test_messages_are_read_with_what_is_filled_in() -> None:
    code = "raise DataError(f'{side} is {kind}; ' f'cast it{\" now\" if old else \"\"}')"
    assert [text.words for text in messages(ast.parse(code))] == ["{side} is {kind}; cast it now"]


def test_comments_and_inner_docstrings_are_read(tmp_path: Path) -> None:
    code = """
def work() -> None:
    \"\"\"Of several pairs the first wins.\"\"\"
    a = 1  # in vain
    # Rows are sorted, and
    # nobody knows why.
"""
    code += f"    # {LONG}\n    b = 'in vain'  # noqa: of\n"
    said = [each.partition(":")[::2] for each in found(code, tmp_path, "module.py")]
    assert [(line, problem.split("'")[1]) for line, problem in said] == [
        ("3", "Of"),
        ("4", "in vain"),
        ("5", "nobody"),
    ]


def test_docstrings_help_and_messages_of_the_product_are_read() -> None:
    said = [text.words for text in texts_of(ROOT / "coincide/model/condition.py")]
    assert any("confidence" in text.lower() for text in said)
    options = ROOT / "coincide/command_line/options.py"
    assert len(list(helps(ast.parse(options.read_text("utf-8")), options))) > 50


def test_every_page_and_module_is_checked() -> None:
    named = {path.relative_to(ROOT).as_posix() for path in every_file()}
    inner = {
        "tests/engine/test_keys.py",
        "bench/hunt/intervals.py",
        "spark_plugin/tasks/slice_plan.py",
    }
    assert {"README.md", "docs/meaning.md", "coincide/model/errors.py"} | inner <= named
    assert len(BANNED) > 15
