"""The site of documentation: each public name has a place, links lead somewhere, pages look like pages."""

from __future__ import annotations

import base64
import functools
import io
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import coincide
from scripts.check_site import check
from scripts.site_hooks import claims
from tests.helpers.levels import LEVELS
from tests.helpers.places import ROOT

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.md"))
PAGE = '<html><body><h2 id="here">Here</h2>{}</body></html>'


def named(page: Path) -> list[str]:
    return re.findall(r"^::: coincide\.(\w+)$", page.read_text("utf-8"), flags=re.MULTILINE)


def test_every_public_name_is_in_the_reference_once() -> None:
    found = Counter(name for page in REFERENCE for name in named(page))
    assert found == Counter(set(coincide.__all__) - {"__version__"}), "see docs/reference/*.md"


def test_every_page_of_the_reference_is_in_its_table() -> None:
    listed = re.findall(
        r"\]\(([\w-]+\.md)\)", (ROOT / "docs/reference/index.md").read_text("utf-8")
    )
    assert sorted(listed) == [page.name for page in REFERENCE if page.name != "index.md"]


def test_the_site_has_eight_how_tos_and_lists_all_guides() -> None:
    nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    found = {
        name: set(re.findall(r"([\w/-]+\.md)$", part, flags=re.MULTILINE))
        for name, part in re.findall(r"^  - ([\w-]+):(.*?)(?=^  - )", nav, re.MULTILINE | re.DOTALL)
    }
    pages = {f"how-to/{path.name}" for path in (ROOT / "docs" / "how-to").glob("*.md")}
    assert found["How-to"] == pages
    assert len(pages - {"how-to/index.md"}) == 8
    for index, folder in (("how-to/index.md", "how-to/"), ("guides.md", "")):
        text = (ROOT / "docs" / index).read_text("utf-8")
        listed = {
            folder + name
            for name in re.findall(r"^\|.*", text, re.MULTILINE)
            for name in links(name)
        }
        assert found["How-to" if folder else "Guides"] - {index} <= listed


def links(line: str) -> list[str]:
    return re.findall(r"\]\(([\w/-]+\.md)", line)


def test_claims_are_those_of_the_results() -> None:
    table = claims(["stream-blocks"], "../")
    result = json.loads((ROOT / "bench" / "results" / "stream-blocks.json").read_text("utf-8"))
    rows = [line for line in table.splitlines() if line.startswith("| Figure")]
    assert len(rows) == len(result["claims"]) == 2
    assert all(claim["claim"] in row for claim, row in zip(result["claims"], rows, strict=True))
    assert [row.endswith("| **no** |") for row in rows] == [
        not c["agrees"] for c in result["claims"]
    ]


@pytest.mark.parametrize(
    ("markup", "problem"),
    [
        ('<a href="other.html#there">', ""),
        ('<a href="#here">', ""),
        ('<a href="other.html#nowhere">', "names an anchor that is not there"),
        ('<a href="#nowhere">', "names an anchor that is not there"),
        ('<a href="gone.html">', "leads nowhere"),
        ('<img src="gone.png">', "leads nowhere"),
        ('<picture><source srcset="gone.svg"></picture>', "leads nowhere"),
        ('<a href="../../secret.txt">', "leads out of the site"),
        ('<script src="https://cdn.example/x.js">', "from elsewhere"),
        ('<link rel="stylesheet" href="//fonts.example/x.css">', "from elsewhere"),
        ('<a href="https://elsewhere.example/">', ""),
    ],
)
def test_links_are_checked(markup: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(PAGE.format(markup), "utf-8")
    (tmp_path / "other.html").write_text('<h1 id="there">There</h1>', "utf-8")
    problems, external = check(tmp_path)
    assert len(problems) == (1 if problem else 0)
    assert all(each.startswith("index.html: ") and problem in each for each in problems)
    assert external <= {"https://elsewhere.example/"}


def test_no_site_is_no_good_site(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="make docs"):
        check(tmp_path)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does; in CI that of `make docs` itself, once it is there.

    A variable names the file to which CI writes how `make docs` ended.
    """
    if (named := os.environ.get("COINCIDE_DOCS_CODE")) is not None:
        code = Path(named)
        while not code.exists() or not code.read_text():
            time.sleep(0.5)
        assert code.read_text().strip() == "0", "make docs failed"
        return ROOT / "build" / "site"
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    built = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=250, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    """Chromium that reaches nothing but this machine."""
    from selenium import webdriver

    chromium, driver = (
        shutil.which("chromium") or shutil.which("chromium-browser"),
        shutil.which("chromedriver"),
    )
    if chromium is None or driver is None:
        pytest.skip("chromium and chromedriver are not here: scripts/apt-install.sh installs them")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--window-size=1280,1000",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options, webdriver.ChromeService(driver))
    started.set_page_load_timeout(60)
    yield started
    started.quit()


@pytest.mark.slow
def test_headings_of_the_reference_show_levels(site: Path) -> None:
    level_of = {name: level for level, names in LEVELS.items() for name in names}
    for page in REFERENCE:
        built = (site / "reference" / page.with_suffix(".html").name).read_text("utf-8")
        for name in named(page):
            (heading,) = re.findall(
                rf'<h\d id="coincide\.{name}" .*?</h\d>', built, flags=re.DOTALL
            )
            labels = set(re.findall(r'doc-label"?[^>]*><code>(\w+)', heading)) & LEVELS.keys()
            assert labels == {level_of[name]}, name


@pytest.mark.slow
def test_the_site_has_no_broken_link_and_fetches_nothing(site: Path) -> None:
    problems, external = check(site)
    assert problems == []
    assert all(link.startswith("https://") for link in external)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize(
    ("page", "heading", "shown"),
    [
        ("index.html", "Coincide", "When to use it"),
        ("tutorial.html", "The first join", "When nothing is found"),
        ("reference/joins.html", "Joins", "correlate_tables"),
        ("papers/interval-correlation.html", "Interval timing correlation", "the paper says"),
        ("notebooks/clocks.html", "Clocks that are ±", "correlate_tables"),
        ("benchmarks.html", "Benchmarks", "Which to use when"),
        ("at-a-glance.html", "Coincide at a glance", "Spark Structured Streaming"),
    ],
)
def test_pages_look_like_pages(
    page: str, heading: str, shown: str, address: str, browser: Chrome
) -> None:
    browser.get(f"{address}/{page}")
    assert browser.find_element("css selector", "article h1").text.startswith(heading)
    assert shown in browser.find_element("css selector", "article").text
    tabs = [each.text for each in browser.find_elements("css selector", "nav.md-tabs a")]
    assert {"Home", "Tutorial", "At a glance", "How-to", "Reference", "Benchmarks"} <= set(tabs)
    broken = browser.execute_script(
        "return [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
    )
    assert broken == []
    assert_not_blank(browser.get_screenshot_as_png())
    said = [each for each in browser.get_log("browser") if each["level"] in ("SEVERE", "WARNING")]
    assert said == []


@pytest.mark.slow
@pytest.mark.browser
def test_all_operators_print_on_few_sheets(address: str, browser: Chrome) -> None:
    browser.get(f"{address}/at-a-glance.html")
    printed = base64.b64decode(browser.print_page())
    (sheets,) = re.findall(rb"/Type /Pages\s*/Count (\d+)", printed)
    assert 3 <= int(sheets) <= 4


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("page", ["index.html", "how-to/index.html"])
@pytest.mark.parametrize("from_disk", [False, True])
def test_the_search_finds_a_name(
    from_disk: bool, page: str, site: Path, address: str, browser: Chrome
) -> None:
    from selenium.webdriver.support.wait import WebDriverWait

    browser.get(f"{site.as_uri() if from_disk else address}/{page}?q=window_recall")
    browser.find_element("css selector", "[data-md-component=search-query]").send_keys(" ")
    found = WebDriverWait(browser, 60).until(
        lambda here: [
            link.get_attribute("href")
            for link in here.find_elements("css selector", ".md-search-result__link")
        ]
    )
    assert any("windowed-causality" in link for link in found)


def assert_not_blank(png: bytes) -> None:
    from matplotlib.image import imread

    pixels = imread(io.BytesIO(png))[..., :3]
    assert min(pixels.shape[:2]) >= 600
    text = pixels.mean(axis=2) < 0.5  # dark on light
    assert 0.002 < text.mean() < 0.6
    assert (text.any(axis=1)).mean() > 0.3  # over much of the page, not a line at its top
