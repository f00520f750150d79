"""Holds pages, docstrings, comments, help texts and messages to the rule of docs/developers/words.md.

`python scripts/check_words.py [FILE...]` prints each phrase that is not in use, each sentence that is too
long, and each file whose sentences are too long on average. Code and tables are not sentences. In
comments, and of docstrings that users do not see, only phrases are checked.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 35
AVERAGE = 20
ENOUGH = 5
"""An average says something from this many sentences on."""
BANNED = {
    r"\w+-many-eth": "say position or number",
    r"\b(?:is|are|was|were) of\b(?! course)": "say has, or name what it is",
    r"(?:\A|[,;:(–] ?)of (?:which|whom|what)\b": "begin with the subject",
    r"\Aof\b(?! course)": "begin with the subject",
    r"\bnobody\b": "say who does or does not",
    r"\b(?:is|are|was|were|be|been) told\b(?! apart\b| from\b)": "say who reports or gives it",
    r"\bin vain\b": "say what fails",
    r"\bso many\b": "give the number, or say this many",
    r"\b(?:is|are) (?-i:none)\b": "say there is no",
    r"\bas of\b": "say like, or for",
    r"\bbesides?\b": "say also, next to or compared with",
    r"\botherwise than\b|\b(?:sa(?:y|ys|id)|named?|called?|prints?|counts?|written|done) otherwise\b": (
        "say differently, or what"
    ),
    r"\bstands?\b(?! for\b| in for\b| alone\b| out\b|-in\b)": "say is, or is written",
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
    is_free: bool = False
    """Whether lengths do not matter, as in a table, a comment or an inner docstring."""


def problems(texts: Iterator[Text]) -> Iterator[str]:
    """What is wrong with the paragraphs of one page: `LINE: PROBLEM`."""
    lengths = []
    for line, text, is_free in texts:
        for begin, sentence in sentences(text):
            at = line + text.count("\n", 0, begin)
            length = 0 if is_free else len(_WORD.findall(sentence))
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
    """The paragraphs of a page of Markdown, or of a Python module."""
    source = path.read_text("utf-8")
    if path.suffix == ".md":
        yield from _paragraphs(source)
        return
    tree = ast.parse(source)
    public = list(_seen_by_users(tree, path))
    for texts in (docstrings(public), helps(tree, path), messages(tree)):
        yield from texts
    inner = (node for node in ast.walk(tree) if isinstance(node, ast.Expr) and node not in public)
    for text in (*docstrings(inner), *comments(source)):
        yield text._replace(is_free=True)


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


def docstrings(statements: Iterable[ast.stmt]) -> Iterator[Text]:
    """The paragraphs of the statements that are texts."""
    for node in statements:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield from _docstring(node.value)


def _seen_by_users(tree: ast.Module, path: Path) -> Iterator[ast.stmt]:
    """The first statements of public names, and of their public methods."""
    names = _public().get(path, set())
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name in names:
            yield node.body[0]
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                    yield member.body[0]


def _public() -> dict[Path, set[str]]:
    homes: dict[Path, set[str]] = {}
    for node in ast.parse((ROOT / "coincide" / "__init__.pyi").read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            path = ROOT / f"{(node.module or '').replace('.', '/')}.py"
            homes.setdefault(path, set()).update(alias.name for alias in node.names)
    return homes


def _docstring(node: ast.Constant) -> Iterator[Text]:
    text = inspect.cleandoc(node.value) if isinstance(node.value, str) else ""
    # Heads of sections and the names, types or errors that they list are no sentences.
    text = re.sub(r"^(\w[\w ]*)\n-{3,}$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"^\S.*\n(?=    )|^[\w*, ]+ : .*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"^ *(?:>>>|\.\.\. ).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^ +", "", text, flags=re.MULTILINE)
    yield from _paragraphs(text, node.lineno)


def comments(source: str) -> Iterator[Text]:
    """The paragraphs of comments; those on lines of their own that follow each other are one text."""
    begin, lines, goes_on = 0, [""], False
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            is_alone = token.line.lstrip().startswith("#")
            if not (goes_on and is_alone and token.start[0] == begin + len(lines)):
                yield from _paragraphs("\n".join(lines), begin)
                begin, lines = token.start[0], []
            lines.append(_DIRECTIVE.sub("", token.string).lstrip("# "))
            goes_on = is_alone
    yield from _paragraphs("\n".join(lines), begin)


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


_DIRECTIVE = re.compile(r"#\s*(?:noqa|type:|fmt:|pragma).*")
"""What a comment says to tools."""
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
    rooms = ("coincide", "cpu_fallback", "gpu_kernels", "spark_plugin", "bench", "scripts", "tests")
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
