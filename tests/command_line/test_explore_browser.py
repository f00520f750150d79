"""The page of `coincide explore` in a real browser, from disk and without a network."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from coincide import explore_tables

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

pytestmark = [pytest.mark.slow, pytest.mark.browser]

CHARTS = ("probabilities", "curve", "matches", "delays")
MARKS = {
    "probabilities": "g.mark-rect path",
    "curve": "g.mark-symbol.role-mark path",
    "matches": "g.mark-rect.role-mark path",
    "delays": "g.mark-rect.role-mark path",
}
"""Where Vega's SVG has the marks of data."""
VISIBLE = """
return [...arguments[0].querySelectorAll(arguments[1])].filter(mark => {
  const box = mark.getBoundingClientRect();
  return box.width >= 1 && box.height >= 1;
}).length;
"""
BROWSERS, DRIVERS = ("chromium", "chromium-browser", "google-chrome"), ("chromedriver",)
SECONDS = 60


def found_program(names: tuple[str, ...]) -> str:
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip(f"there is no {names[0]}; scripts/apt-install.sh chromium-driver installs it")
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    """Chromium without a window, which finds no host by any name."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = found_program(BROWSERS)
    for argument in (
        *("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"),
        *("host-resolver-rules=MAP * ~NOTFOUND", "disable-background-networking"),
        "window-size=1000,3200",
    ):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, Service(found_program(DRIVERS)))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(2)
    start = np.datetime64("2024-05-01T00:00", "us").astype(np.int64)
    true = np.sort(rng.integers(0, 86_400_000_000, 2000)) + start
    sides = []
    for _ in range(2):
        low = true + rng.integers(-300_000, 300_000, 2000)
        times = [pa.array(each, pa.timestamp("us", "UTC")) for each in (low, low + 400_000)]
        sides.append(pa.table(times, ["min_time", "max_time"]))
    found = explore_tables(*sides, within=("-400ms", "400ms"), shifts=["30s", "-30s", "47s"])
    path = tmp_path_factory.mktemp("page") / "explore.html"
    found.save(path, command="coincide explore left.parquet right.parquet")
    return path


@pytest.fixture(scope="module")
def drawn(browser: Chrome, page: Path) -> Chrome:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(page.as_uri())
    WebDriverWait(browser, SECONDS).until(
        lambda driver: driver.execute_script("return document.body.dataset.drawn") == "yes"
    )
    return browser


def chart_of(driver: Chrome, name: str) -> WebElement:
    return driver.find_element("css selector", f"#{name} svg.marks")


def pixels_of(png: bytes) -> np.ndarray:
    import matplotlib.image

    return matplotlib.image.imread(io.BytesIO(png))[..., :3]


def entries(driver: Chrome, kind: str) -> list[dict[str, Any]]:
    return driver.get_log(kind)  # type: ignore[no-untyped-call, no-any-return]


def test_each_chart_is_drawn(drawn: Chrome) -> None:
    for name in CHARTS:
        chart = chart_of(drawn, name)
        assert 700 < chart.size["width"] < 1000, name
        assert 250 < chart.size["height"] < 700, name
        assert drawn.execute_script(VISIBLE, chart, MARKS[name]) >= 5, name
        words = chart.text
        assert "pairs" in words or "events" in words, name


def test_a_tooltip_tells_the_numbers(drawn: Chrome) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.support.ui import WebDriverWait

    bars = chart_of(drawn, "probabilities").find_elements("css selector", MARKS["probabilities"])
    tallest = max(bars, key=lambda bar: bar.size["height"])
    ActionChains(drawn).move_to_element(tallest).perform()
    tooltip = drawn.find_element("css selector", "#vg-tooltip-element")
    WebDriverWait(drawn, SECONDS).until(lambda _: "visible" in tooltip.get_attribute("class"))
    assert "probability" in tooltip.text
    assert "pairs" in tooltip.text


def test_a_screenshot_is_not_blank(drawn: Chrome) -> None:
    for name in CHARTS:
        picture = pixels_of(chart_of(drawn, name).screenshot_as_png)
        inked = (picture.min(axis=2) < 0.9).mean()
        assert 0.01 < inked < 0.9, (name, inked)
        assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 20, name


def test_nothing_was_asked_for_and_nothing_failed(drawn: Chrome, page: Path) -> None:
    """Last, when all the others have used the page."""
    messages = [json.loads(each["message"])["message"] for each in entries(drawn, "performance")]
    urls = {
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    }
    assert page.as_uri() in urls
    assert not [url for url in urls if not url.startswith(("file:", "data:"))]
    assert not entries(drawn, "browser")


@pytest.mark.parametrize("width", [320, 400])
def test_a_telephone_shows_all_of_it(browser: Chrome, tmp_path: Path, width: int) -> None:
    """Six confidences make the widest legend, and a path without blanks the widest text."""
    from selenium.webdriver.support.ui import WebDriverWait

    times = pa.array(np.arange(0, 900_000_000, 1_000_000), pa.timestamp("us", "UTC"))
    later = pa.array(np.arange(500_000, 900_500_000, 1_000_000), pa.timestamp("us", "UTC"))
    events = pa.table([times, later], ["min_time", "max_time"])
    shown = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
    found = explore_tables(events, within=("0s", "5s"), confidences=shown)
    found.save(tmp_path / "page.html", command="coincide explore /" + "without-any-blanks/" * 9)
    size = {"width": width, "height": 3000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.get((tmp_path / "page.html").as_uri())
        WebDriverWait(browser, SECONDS).until(
            lambda driver: driver.execute_script("return document.body.dataset.drawn") == "yes"
        )
        wide = browser.execute_script(
            "return [document.documentElement, ...document.querySelectorAll('.chart, table, pre')]"
            ".filter(each => each.scrollWidth > each.clientWidth).map(each => each.id || each.tagName)"
        )
        assert wide == []
        for name in CHARTS:
            assert chart_of(browser, name).size["width"] > width / 2, name
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
