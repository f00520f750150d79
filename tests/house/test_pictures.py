"""Pictures of pages are as their scripts draw them, and large enough to be read at half their size."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.command_line import RESULTS
from bench.drawing import WIDTH
from bench.speed import picture
from scripts.draw_pictures import IMAGES, main

LEAST_TEXT = 22


def test_pictures_are_those_that_are_drawn(tmp_path: Path) -> None:
    drawn = [*main(tmp_path), *picture(RESULTS, tmp_path)]
    assert {path.name for path in drawn} == {path.name for path in IMAGES.glob("*.svg")}
    stale = [path.name for path in drawn if path.read_bytes() != (IMAGES / path.name).read_bytes()]
    assert stale == [], "run scripts/draw_pictures.py and python -m bench picture"


@pytest.mark.parametrize("path", sorted(IMAGES.glob("*.svg")), ids=lambda path: path.stem)
def test_words_of_a_picture_can_be_read(path: Path) -> None:
    said = path.read_text("utf-8")
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)"', said)]
    assert min(sizes) >= LEAST_TEXT
    assert f'viewBox="0 0 {WIDTH} ' in said


def test_a_picture_of_speed_needs_results(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Run `python -m bench run peers --record`"):
        picture(tmp_path, tmp_path)
