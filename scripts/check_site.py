"""Checks a built site: every link inside leads somewhere, and no page fetches anything from elsewhere.

`python scripts/check_site.py build/site` prints what is wrong, one line each, and how many links lead to
other sites, which are not followed; `--external` lists these.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {
    **dict.fromkeys(("script", "img", "iframe", "video"), ("src",)),
    "source": ("src", "srcset"),
}
"""Attributes of tags that a browser fetches by itself; a srcset names one picture."""
FETCHED_RELATIONS = {"stylesheet", "preload", "modulepreload", "icon", "preconnect", "dns-prefetch"}


@dataclass
class _Page(HTMLParser):
    """Anchors of a page, links that it offers and what it fetches."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and FETCHED_RELATIONS & set(given.get("rel", "").split()):
            self.fetched.append(given.get("href", ""))
        self.fetched += filter(None, map(given.get, FETCHED.get(tag, ())))


def check(site: Path) -> tuple[list[str], set[str]]:
    """Look at all pages of a site.

    Parameters
    ----------
    site : Path
        Folder of HTML files.

    Returns
    -------
    problems : list of str
        One line each: the page, the link, what is wrong with it.
    external : set of str
        Links to other sites.

    Raises
    ------
    FileNotFoundError
        If there is no page.
    """
    pages = {path.resolve(): _read(path) for path in sorted(site.rglob("*.html"))}
    if not pages:
        raise FileNotFoundError(f"there is no page in {site}; build it with make docs")
    problems: list[str] = []
    external: set[str] = set()
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        fetched, offered = (set(filter(_is_external, each)) for each in (page.fetched, page.links))
        problems += [f"{name}: fetches {link} from elsewhere" for link in sorted(fetched)]
        external |= offered
        for link in dict.fromkeys(page.fetched + page.links):
            if not _is_external(link) and (wrong := _wrong(link, path, site.resolve(), pages)):
                problems.append(f"{name}: {link} {wrong}")
    return problems, external


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text("utf-8"))
    return page


def _is_external(link: str) -> bool:
    parts = urlsplit(link)
    return bool(parts.netloc) or parts.scheme in ("http", "https", "mailto")


def _wrong(link: str, path: Path, site: Path, pages: dict[Path, _Page]) -> str:
    """What is wrong with a link within the site; nothing if it is right."""
    parts = urlsplit(link)
    if parts.scheme in ("data", "javascript"):
        return ""
    # 404.html is shown at any address, so its links begin at the root
    folder = site if parts.path.startswith("/") else path.parent
    target = (folder / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_relative_to(site):
        return "leads out of the site"
    if not target.is_file():
        return "leads nowhere"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors | {"__top"}:
        return "names an anchor that is not there"
    return ""


def main(words: list[str]) -> int:
    """Check the site that is named; 1 if something is wrong."""
    problems, external = check(Path(words[0]))
    for line in [*problems, *(sorted(external) if "--external" in words else ())]:
        print(line)
    print(f"{len(problems)} broken links; {len(external)} links to other sites, not followed")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
