"""What the site of documentation takes from beyond docs/: README as its home, results, examples.

MkDocs calls these functions; `mkdocs.yml` names this file.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
EXECUTED = ROOT / "build" / "notebooks"
"""Where `make notebooks` leaves the notebooks with what they print and draw."""
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "SECURITY.md": "security.md",
}
"""Pages of the repository's root, and what they are called on the site."""
NAMED = re.compile(r"(?<![\[\w/`])`((?:docs/)?[\w/-]+\.md)`(?!\])")
"""A page that the text names as code, as readers of the repository want it."""
PICTURE = re.compile(
    r'<picture><source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">'
    r'<img src="([^"]+)"([^>]*)></picture>'
)
"""A drawing, dark and light."""
CLAIMS = re.compile(r"^<!-- claims: ([\w -]+) -->$", re.MULTILINE)
"""Where a page wants what papers say next to what experiments have found."""


LEVELS: dict[str, list[str]] = tomllib.loads(
    (ROOT / "docs" / "reference" / "levels.toml").read_text("utf-8")
)
"""The public names by how firm they are."""


@event_priority(100)  # before mkdocs-jupyter looks for notebooks
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add README and the like, charts and results, scripts and notebooks."""
    for source, name in PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text("utf-8")))
    for path in sorted((ROOT / "bench" / "results").glob("*")):
        if path.suffix in (".json", ".png"):
            name = f"results/{path.name}"
            files.append(File.generated(config, name, abs_src_path=str(path)))
    for path in sorted((ROOT / "examples" / "notebooks").glob("*.ipynb")):
        folder = str(_executed(path).parent.parent)  # mkdocs-jupyter wants a real file, so named
        name = f"notebooks/{path.name}"
        files.append(File(name, folder, config.site_dir, config.use_directory_urls))
    files.append(File.generated(config, "examples.md", content=_examples()))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Make what leads out of docs/ lead to the site's pages, and names of pages links."""
    here = page.file.src_uri
    ups = "../" * here.count("/")
    for source, name in PAGES.items():
        markdown = re.sub(rf"\]\((?:\.\./)*{source}(#[\w-]+)?\)", rf"]({ups}{name}\1)", markdown)
    if here == PAGES["README.md"]:
        page.meta["hide"] = ["navigation"]  # it has one entry; code takes its room
    if here in PAGES.values():
        markdown = markdown.replace('"docs/images/', '"images/').replace("](docs/", "](")
    # Pictures follow the site's own toggle, not the system's.
    markdown = PICTURE.sub(r'<img src="\2#only-light"\3><img src="\1#only-dark"\3>', markdown)
    markdown = markdown.replace("../bench/results/", f"{ups}results/")
    markdown = markdown.replace("[bench/results](../bench/results)", "`bench/results`")
    markdown = markdown.replace("<!-- levels -->", levels())
    markdown = CLAIMS.sub(lambda found: claims(found[1].split(), ups), markdown)
    if here == PAGES["CHANGELOG.md"]:
        return markdown  # speaks of pages as they were

    def linked(found: re.Match[str]) -> str:
        name = found[1]
        target = PAGES.get(name, name.removeprefix("docs/"))
        if target == here or files.get_file_from_path(target) is None:
            return found[0]
        return f"[`{name}`]({ups}{target})"

    return NAMED.sub(linked, markdown)


def claims(experiments: list[str], ups: str) -> str:
    """A table of what the paper says, what was seen and whether the two agree, from bench/results."""
    words = {None: "open", True: "yes", False: "**no**"}
    lines = ["| the paper says | seen here | agrees |", "|---|---|---|"]
    for name in experiments:
        result = json.loads((ROOT / "bench" / "results" / f"{name}.json").read_text("utf-8"))
        for claim in result["claims"]:
            cells = (claim["claim"], claim["seen"], words[claim["agrees"]])
            lines.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
    runs = ", ".join(f"[`run {name}`]({ups}results/{name}.json)" for name in experiments)
    return "\n".join([*lines, "", f"Measured by {runs}."])


def levels() -> str:
    """A table of how firm each public name is, from docs/reference/levels.toml."""
    told = {
        "core": "changes with a deprecation only: what worked does so for a minor version, with a warning",
        "provisional": "may change in a minor version; the changelog says how",
        "experimental": "may change or go in any version",
    }
    lines = ["| level | a name of this level | names |", "|---|---|---|"]
    for level, names in LEVELS.items():
        cells = [
            f"`{name}`" if name.startswith("__") else f"[`{name}`][coincide.{name}]"
            for name in sorted(names, key=str.lower)
        ]
        lines.append(f"| *{level}* | {told[level]} | {', '.join(cells)} |")
    return "\n".join(lines)


def _executed(notebook: Path) -> Path:
    """The notebook with its output, if that was made of these very cells."""
    from nbformat import read

    made = EXECUTED / notebook.name
    if not made.exists():
        return notebook
    sources = ([cell.source for cell in read(path, 4).cells] for path in (notebook, made))
    return made if next(sources) == next(sources) else notebook


def _examples() -> str:
    """A page of the scripts of examples/, each with its first line as a heading."""
    parts = ["# Examples\n\nScripts that run as they are; tests run them, too.\n"]
    for path in sorted((ROOT / "examples").glob("*.py")):
        text = path.read_text("utf-8")
        title = text.partition("\n")[0].strip('"').rstrip(".")
        parts.append(f"## {title}\n\n`python examples/{path.name}`\n\n```python\n{text}```\n")
    return "\n".join(parts)
