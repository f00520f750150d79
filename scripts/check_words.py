"""Holds README, docs, docstrings, help texts and messages to the rule of words in docs/developers/words.md.

`python scripts/check_words.py [FILE...]` prints each phrase that is not in use, each sentence that is too
long, and each file whose sentences are too long on average. Code and tables are not sentences.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 35
AVERAGE = 20
ENOUGH = 5
"""An average says something from so many sentences on."""
BANNED = {
    r"\w+-many-eth": "say position or number",
    r"\b(?:is|are|was|were) of\b(?! course)": "say has, or name what it is",
    r"(?:\A|[,;:(–] ?)of (?:which|whom|what)\b": "begin with the subject",
    r"\Aof\b(?! course)": "begin with the subject",
    r"\bnobody\b": "say who does or does not",
    r"\b(?:is|are|was|were|be|been) told\b": "say who reports or gives it",
    r"\bin vain\b": "say what fails",
    r"\bso many\b": "give the number, or say this many",
    r"\b(?:is|are) none\b": "say there is no",
    r"\bas of\b": "say like, or for",
    r"\bbesides?\b": "say also, next to or compared with",
    r"\botherwise than\b|\b(?:sa(?:y|ys|id)|named?|called?|prints?|counts?|written|done) otherwise\b": (
        "say differently, or what"
    ),
    r"\bstands?\b(?! for\b| in for\b| alone\b)": "say is, or is written",
    r"\bhand(?:s|ed|ing)? (?:\w+ )?out\b": "say return; columns that come out are output columns",
    r"\b(?:an?|the|one|each|no|every|first|second|own) looks?\b(?!-)": "say planning job",
    r"\bwhat (?:is|was|are) asked\b": "say the question, or name it",
    r"\brows? (?:that (?:is|are) )?left out\b": "say skipped rows",
    r"\bpartners?\b": "say match",
}
"""Phrases that are not in use, and what to do about each."""
_BANNED = [(re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in BANNED.items()]
_SENTENCE = re.compile(r"\S.*?(?:[.!?](?=[\"'”)]*\s)|\Z)", re.DOTALL)
_WORD = re.compile(r"\S*\w\S*")


class Text(NamedTuple):
    """The line where a paragraph begins, and its words; code in it is one word."""

    line: int
    words: str
    is_cell: bool = False
    """Whether it is in a table, where lengths do not matter."""


def problems(texts: Iterator[Text]) -> Iterator[str]:
    """What is wrong with the paragraphs of one page: `LINE: PROBLEM`."""
    lengths = []
    for line, text, is_cell in texts:
        for begin, sentence in sentences(text):
            at = line + text.count("\n", 0, begin)
            length = 0 if is_cell else len(_WORD.findall(sentence))
            if length > LONGEST:
                yield f"{at}: {length} words in a sentence: {' '.join(sentence.split())[:60]}…"
            if length and sentence.rstrip()[-1] in ".!?":  # entries of lists are short
                lengths.append(length)
            yield from (f"{at}: {found!r}: {advice}" for found, advice in banned(sentence))
    average = sum(lengths) / max(1, len(lengths))
    if average >= AVERAGE and len(lengths) >= ENOUGH:
        yield f"0: {average:.1f} words a sentence on average; the rule is under {AVERAGE}"


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Where each sentence of a paragraph begins in it, and the sentence."""
    return (
        (found.start(), found[0]) for found in _SENTENCE.finditer(text) if _WORD.search(found[0])
    )


def banned(sentence: str) -> Iterator[tuple[str, str]]:
    """The phrases of a sentence that are not in use, and what to do about each."""
    line = " ".join(sentence.split())
    for pattern, advice in _BANNED:
        yield from ((found[0], advice) for found in pattern.finditer(line))


def texts_of(path: Path) -> Iterator[Text]:
    """The paragraphs of a page of Markdown, or those that users see of a Python module."""
    source = path.read_text("utf-8")
    if path.suffix == ".md":
        return _paragraphs(source)
    tree = ast.parse(source)
    return (
        text
        for texts in (docstrings(tree, path), helps(tree, path), messages(tree))
        for text in texts
    )


def _paragraphs(markdown: str, line: int = 1) -> Iterator[Text]:
    cell = False
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        cell = {
            "td_open": True,
            "th_open": True,
            "paragraph_open": False,
            "heading_open": False,
        }.get(token.type, cell)
        if token.type == "inline" and token.map is not None:
            yield Text(line + token.map[0], "".join(map(_words, token.children or ())), cell)


def _words(token: Token) -> str:
    kinds = {
        "code_inline": "CODE",
        "softbreak": "\n",
        "hardbreak": "\n",
        "image": "",
        "html_inline": "",
    }
    return kinds.get(token.type, token.content)


def docstrings(tree: ast.Module, path: Path) -> Iterator[Text]:
    """The paragraphs of the docstrings of public names, and of their public methods."""
    names = _public().get(path, set())
    for node in tree.body:
        if getattr(node, "name", None) in names:
            yield from _docstring(node)
            for member in getattr(node, "body", ()):
                if not getattr(member, "name", "_").startswith("_"):
                    yield from _docstring(member)


def _public() -> dict[Path, set[str]]:
    homes: dict[Path, set[str]] = {}
    for node in ast.parse((ROOT / "coincide" / "__init__.pyi").read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            path = ROOT / f"{(node.module or '').replace('.', '/')}.py"
            homes.setdefault(path, set()).update(alias.name for alias in node.names)
    return homes


def _docstring(node: ast.AST) -> Iterator[Text]:
    if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or ast.get_docstring(node) is None:
        return
    first = node.body[0]
    text = inspect.cleandoc(ast.get_docstring(node, clean=False) or "")
    # Heads of sections and the names, types or errors that they list are no sentences.
    text = re.sub(r"^(\w[\w ]*)\n-{3,}$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"^\S.*\n(?=    )|^[\w*, ]+ : .*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"^ *(?:>>>|\.\.\. ).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^ +", "", text, flags=re.MULTILINE)
    yield from _paragraphs(text, first.lineno)


def helps(tree: ast.Module, path: Path) -> Iterator[Text]:
    """The paragraphs of what commands say of themselves; what is in colour is code."""
    if path.parent.name != "command_line" or path.name not in ("options.py", "help_texts.py"):
        return
    for node in ast.walk(
        ast.Module([each for each in tree.body if isinstance(each, ast.Assign)], [])
    ):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.count(" ") > 3
        ):
            text = re.sub(r"\[cyan\].*?\[/cyan\]", "CODE", node.value, flags=re.DOTALL)
            text = re.sub(r"\[/?\w+\]", "", text)
            yield from (Text(node.lineno, each) for each in re.split(r"\n\s*\n", text))


_RAISED = re.compile(r"(?:Error|Warning|[Pp]roblem|NotDirect|warn)$")
"""How classes and functions are called that take a message."""


def messages(tree: ast.Module) -> Iterator[Text]:
    """The messages of errors and warnings, with what is filled in as one word."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _RAISED.search(ast.unparse(node.func)):
            for argument in node.args[:1]:
                if text := _written(argument):
                    yield Text(node.lineno, text)


def _written(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_written, node.values))
    if isinstance(node, ast.BinOp):
        return _written(node.left) + _written(node.right)
    if isinstance(node, ast.IfExp):
        return max(_written(node.body), _written(node.orelse), key=len)
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.IfExp):
        return _written(node.value)
    return f"{{{ast.unparse(node.value)}}}" if isinstance(node, ast.FormattedValue) else ""


def every_file() -> list[Path]:
    """Pages and modules that the rule is for."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    rooms = ("coincide", "cpu_fallback", "gpu_kernels", "spark_plugin")
    modules = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    return sorted({*pages, *modules})


def main(arguments: list[str]) -> int:
    """Print what is wrong; the exit code is 1 if anything is."""
    found = [
        f"{path.relative_to(ROOT)}:{problem}"
        for path in [Path(each).resolve() for each in arguments] or every_file()
        for problem in problems(texts_of(path))
    ]
    print("\n".join(found) or "The words are those in use.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
