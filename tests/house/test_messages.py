"""Messages say PROBLEM (found X). FIX., in the words that are in use; one page shows them all."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from subprocess import check_output

import pytest

from scripts.check_words import LONGEST, banned, sentences
from tests.helpers.places import ROOT
from tests.messages import every_module, messages

_WORD = re.compile(r"\S*\w\S*")
_FIX_IN_A_CLAUSE = re.compile(
    r"[;:] (?:leave|use|give|say|write|name|cast|rename|add|make|remove|drop|mend|round)\b"
)


def faults(text: str) -> list[str]:
    """What is wrong with a message."""
    plain = re.sub(r"\{[^{}]*\}", "X", text)
    found = [phrase for phrase, _ in banned(plain)]
    found += ["too long" for _, one in sentences(plain) if len(_WORD.findall(one)) > LONGEST]
    found += ["found X belongs in parentheses"] if re.search(r"[;,:] found X", plain) else []
    return [*found, *_FIX_IN_A_CLAUSE.findall(plain)]


@pytest.mark.parametrize("path", every_module(), ids=lambda path: str(path.relative_to(ROOT)))
def test_messages_follow_the_rule(path: Path) -> None:
    wrong = {f"{line}: {text}": why for line, text in messages(path) if (why := faults(text))}
    assert not wrong


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("k must be an int; found {k}", "found X belongs in parentheses"),
        ("k is of pairs. Remove it.", "is of"),
        ("k has no meaning; leave it out", "; leave"),
        (f"k {'really ' * 40}is 1. Remove it.", "too long"),
    ],
)
def test_faults_are_seen(text: str, why: str) -> None:
    assert why in faults(text)
    assert not faults("k must be an int of at least 1 (found {k}). Give one.")


def test_one_page_has_all_messages() -> None:
    page = check_output([sys.executable, "-m", "tests.messages"], text=True, cwd=ROOT)
    for path in every_module():
        for line, text in messages(path):
            assert f"  {line}: {text}" in page
    assert "{k} must be an int of at least 1 (found None)." in page
