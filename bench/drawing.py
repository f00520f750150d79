"""Pictures of pages, as SVG: each is drawn twice, for light and for dark pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

WIDTH = 760
"""A page of 380 pixels shows a picture at half its size."""
TEXT = 24
"""The size of text: at half of it a reader still reads it."""
_FONTS = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

Point = tuple[float, float]


@dataclass(frozen=True)
class Theme:
    """The colours of a page, light or dark; Okabe and Ito's, which colour-blind readers can tell apart."""

    name: str
    page: str
    ink: str
    grey: str
    left: str
    right: str
    found: str
    window: str


THEMES = (
    Theme("light", "#ffffff", "#1f2328", "#656d76", "#0072b2", "#c2570c", "#00805d", "#e3eef6"),
    Theme("dark", "#0d1117", "#f0f6fc", "#9aa4af", "#56b4e9", "#f0a04b", "#3ecf9f", "#1c2b3a"),
)


class Drawing:
    """A picture in one theme. Colours are names of a theme's fields."""

    def __init__(self, theme: Theme, height: float) -> None:
        self._theme = theme
        self._height = height
        self._parts: list[str] = []
        self.bar(0, 0, WIDTH, height, "page")

    def _add(self, tag: str, **attributes: object) -> None:
        words = (f'{name.replace("_", "-")}="{_word(value)}"' for name, value in attributes.items())
        self._parts.append(f"  <{tag} {' '.join(words)}/>")

    def _colour(self, name: str) -> str:
        return str(getattr(self._theme, name))

    def bar(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """A filled rectangle."""
        self._add("rect", x=x, y=y, width=width, height=height, fill=self._colour(colour))

    def line(
        self, points: Sequence[Point], colour: str, width: float = 3, dashed: bool = False
    ) -> None:
        """A line through points."""
        more = {"stroke_dasharray": "8 6"} if dashed else {}
        self._add(
            "polyline", points=_points(points), fill="none", stroke=self._colour(colour),
            stroke_width=width, **more,
        )  # fmt: skip

    def area(self, points: Sequence[Point], colour: str) -> None:
        """A filled polygon."""
        self._add("polygon", points=_points(points), fill=self._colour(colour))

    def arrow(self, begin: Point, end: Point, colour: str) -> None:
        """A line to the right with a head."""
        self.line([begin, end], colour, 2)
        x, y = end
        self.area([(x, y), (x - 14, y - 7), (x - 14, y + 7)], colour)

    def dot(self, x: float, y: float, colour: str, radius: float = 9) -> None:
        """A filled circle."""
        self._add("circle", cx=x, cy=y, r=radius, fill=self._colour(colour))

    def text(
        self, x: float, y: float, words: str, colour: str = "ink", anchor: str = "start",
        size: float = TEXT, bold: bool = False,
    ) -> None:  # fmt: skip
        """Words whose base line is at y."""
        weight = ' font-weight="700"' if bold else ""
        self._parts.append(
            f'  <text x="{_word(x)}" y="{_word(y)}" text-anchor="{anchor}" font-size="{_word(size)}"'
            f'{weight} fill="{self._colour(colour)}">{escape(words)}</text>'
        )

    def svg(self) -> str:
        """The whole picture."""
        size = f'viewBox="0 0 {WIDTH} {_word(self._height)}" width="{WIDTH}" height="{_word(self._height)}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{_FONTS}">'
        return "\n".join([head, *self._parts, "</svg>", ""])


def _word(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else escape(str(value))


def _points(points: Sequence[Point]) -> str:
    return " ".join(f"{_word(float(x))},{_word(float(y))}" for x, y in points)


def write(name: str, height: float, draw: Callable[[Drawing], None], folder: Path) -> list[Path]:
    """Draw a picture for light and for dark pages: NAME-light.svg and NAME-dark.svg."""
    written = []
    for theme in THEMES:
        drawing = Drawing(theme, height)
        draw(drawing)
        path = folder / f"{name}-{theme.name}.svg"
        path.write_text(drawing.svg(), "utf-8")
        written.append(path)
    return written
