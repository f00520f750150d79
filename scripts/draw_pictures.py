"""Draws the pictures of README and the pages into docs/images, each for light and for dark pages.

`python -m bench picture` draws the one of speed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from bench.drawing import Drawing, write
from cpu_fallback.reference.decision import satisfaction_probability

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"


def window(drawing: Drawing) -> None:
    """Two uncertain timestamps, and how likely it is that one is within the window of the other.

    The numbers are those of README's first example, in milliseconds.
    """
    badge, door, lo, hi = (9_600, 10_400), (11_000, 13_000), 0, 3_000
    probability = float(satisfaction_probability(*badge, *door, lo, hi))

    def at(moment: float) -> float:
        return 30 + (moment - 9_400) * 0.185

    drawing.text(at(badge[0]), 34, "badge: 10.0 s, a clock that is ± 0.4 s", "left")
    drawing.bar(at(badge[0]), 46, at(badge[1]) - at(badge[0]), 22, "left")
    drawing.text(at(door[1]), 108, "door: opened between 11 s and 13 s", "right", "end")
    drawing.bar(at(door[0]), 120, at(door[1]) - at(door[0]), 22, "right")
    drawing.arrow((20, 164), (740, 164), "grey")

    def x(delay: float) -> float:
        return 60 + delay * 0.16

    base, top = 370.0, 262.0
    drawing.bar(x(lo), 222, x(hi) - x(lo), base - 222, "window")
    drawing.text(x(lo) + 10, 248, "window: 0 to 3 s after", "grey")
    rise, flat = door[0] - badge[1], door[0] - badge[0]
    fall, end = door[1] - badge[1], door[1] - badge[0]
    cut = base - (base - top) * (end - hi) / (end - fall)
    inside = [(x(rise), base), (x(flat), top), (x(fall), top), (x(hi), cut), (x(hi), base)]
    drawing.area(inside, "found")
    drawing.area([(x(hi), base), (x(hi), cut), (x(end), base)], "right")
    drawing.text(
        (x(flat) + x(fall)) / 2, 335, f"{probability * 100:.0f} %", "page", "middle", 44, True
    )
    drawing.text(x(hi) + 30, 335, f"{100 - probability * 100:.0f} % outside", "right")
    drawing.arrow((20, base), (740, base), "grey")
    for second in range(5):
        drawing.text(x(second * 1000), 400, f"{second} s", "grey", "middle")
    said = f"{probability * 100:.0f} % is at least the confidence of 90 %: a pair"
    drawing.text(380, 446, said, "found", "middle", bold=True)
    drawing.text(20, 204, "How long after the badge did the door open?", bold=True)


def streams(drawing: Drawing) -> None:
    """Requests and answers as they arrive: what is final, and what is still open."""
    now, final = 640, 430
    drawing.bar(20, 40, final - 20, 190, "window")
    drawing.text(30, 30, "final: rows are returned", "grey")
    drawing.text(final + 10, 30, "may still change", "grey")
    drawing.line([(now, 40), (now, 230)], "ink", 3, dashed=True)
    drawing.text(now + 10, 140, "now", bold=True)
    for y, word in ((90, "left"), (190, "right")):
        drawing.arrow((20, y), (740, y), "grey")
        drawing.text(30, y - 14, "requests" if word == "left" else "answers", word)
    for request, answer in ((185, 225), (350, 400), (575, None), (270, None)):
        drawing.bar(request - 16, 80, 32, 20, "left")
        if answer is not None:
            drawing.bar(answer - 22, 180, 44, 20, "right")
            drawing.line([(request, 102), (answer, 178)], "found", 4)
    drawing.text(270, 140, "missed", "right", "middle", bold=True)
    drawing.text(575, 140, "?", "grey", "middle", bold=True)


def structured_streaming(drawing: Drawing) -> None:
    """Two streams cut into slices: those that the watermark has passed are joined, others wait."""
    edges, watermark = (20, 200, 380, 560, 740), 470
    drawing.bar(edges[0], 46, edges[2] - edges[0], 194, "window")
    drawing.text((edges[0] + edges[2]) / 2, 32, "closed: joined", "grey", "middle")
    drawing.text((edges[2] + edges[4]) / 2, 32, "open: kept in the state", "grey", "middle")
    for edge in edges:
        drawing.line([(edge, 46), (edge, 240)], "grey", 2)
    for y, word in ((100, "left"), (200, "right")):
        drawing.arrow((20, y), (745, y), "grey")
        drawing.text(28, y - 16, word, word)
    for left, right in ((120, 150), (330, 350), (430, 455), (540, 590), (650, None)):
        drawing.bar(left - 14, 90, 28, 20, "left")
        if right is not None:
            drawing.bar(right - 18, 190, 36, 20, "right")
            colour = "found" if right < edges[2] else "grey"
            drawing.line([(left, 112), (right, 188)], colour, 4, dashed=right > edges[2])
    drawing.bar(242, 190, 36, 20, "right")
    drawing.text(260, 180, "late", "right", "middle", bold=True)
    drawing.line([(watermark, 46), (watermark, 250)], "ink", 3, dashed=True)
    drawing.text(
        watermark, 276, "watermark: the slower side, less its delay", "ink", "middle", bold=True
    )


def borders(drawing: Drawing) -> None:
    """Readings of a stream, the range of a query, and the intervals in which it was entered and left."""
    lower, upper = 180, 80
    drawing.bar(20, upper, 720, lower - upper, "window")
    drawing.text(30, upper + 30, "range of a query", "grey")
    readings = [(60, 240), (200, 215), (330, 120), (470, 100), (600, 205), (700, 235)]
    drawing.line(readings, "left", 2, dashed=True)
    for x, y in readings:
        drawing.dot(x, y, "left")
    drawing.text(60, 212, "readings", "left")
    drawing.arrow((20, 300), (740, 300), "grey")
    for word, begin, end in (("enters", 200, 330), ("leaves", 470, 600)):
        drawing.bar(begin, 288, end - begin, 24, "right")
        drawing.text((begin + end) / 2, 344, word, "right", "middle", bold=True)
    for x, y in readings[1:5]:
        drawing.line([(x, y), (x, 288)], "grey", 1, dashed=True)
    drawing.text(
        380, 30, "A crossing is an interval between two readings", "ink", "middle", bold=True
    )


def causality(drawing: Drawing) -> None:
    """A cause, and the effects that lie between two speeds."""
    x, y = 60, 230
    drawing.area([(x, y), (420, 20), (720, 20), (720, 130)], "window")
    drawing.line([(x, y), (420, 20)], "grey", 2)
    drawing.line([(x, y), (720, 130)], "grey", 2)
    drawing.text(390, 34, "fastest", "grey", "end")
    drawing.text(600, 190, "slowest", "grey")
    for effect in ((350, 110), (480, 90), (620, 70)):
        drawing.line([(x, y), effect], "found", 2)
        drawing.dot(*effect, "found", 10)
    for other in ((200, 96), (440, 215)):
        drawing.dot(*other, "right", 10)
    drawing.dot(x, y, "left", 13)
    drawing.text(82, 254, "cause", "left", bold=True)
    drawing.text(626, 56, "effects", "found", bold=True)
    drawing.text(458, 224, "too late", "right")
    drawing.text(184, 104, "too early", "right", "end")
    drawing.arrow((20, 276), (740, 276), "grey")
    drawing.text(740, 308, "time", "grey", "end")
    drawing.text(20, 30, "distance", "grey")


def transitions(drawing: Drawing) -> None:
    """A short visit to a region and a long stay, with the time that divides them."""
    drawing.arrow((20, 190), (740, 190), "grey")
    for begin, end, word, colour in ((60, 210, "I>O", "left"), (380, 680, "I>!O", "found")):
        drawing.bar(begin, 110, end - begin, 60, "window")
        drawing.text((begin + end) / 2, 150, word, colour, "middle", bold=True)
        for x, event in ((begin, "I"), (end, "O")):
            drawing.bar(x - 14, 180, 28, 20, "right")
            drawing.text(x, 232, event, "right", "middle", bold=True)
        drawing.line([(begin, 84), (begin + 200, 84)], "ink", 4)
        drawing.line([(begin + 200, 76), (begin + 200, 200)], "ink", 2, dashed=True)
    drawing.text(60, 66, "within 3 min", "ink")
    drawing.text(380, 66, "3 min are over: a stay", "found")
    drawing.text(60, 278, "left again in time", "left")
    drawing.text(740, 278, "time", "grey", "end")


def histograms(drawing: Drawing) -> None:
    """A template of delays, counted back from the moment at which an event was seen."""
    base, seen = 250.0, 640.0
    masses = (0.02, 0.03, 0.05, 0.1, 0.2, 0.35, 0.2, 0.05)
    drawing.text(20, 34, "Seen now: when did it happen?", bold=True)
    for place, mass in enumerate(masses):
        height = mass * 480
        drawing.bar(80 + place * 64, base - height, 60, height, "left")
    drawing.arrow((20, base), (740, base), "grey")
    drawing.line([(seen, 80), (seen, base + 10)], "right", 4)
    drawing.text(seen - 10, 76, "seen", "right", "end", bold=True)
    drawing.text(100, 130, "rarely: a long delay", "grey")
    drawing.text(80, 284, "200 ms before", "grey")
    drawing.text(seen, 284, "0", "grey", "middle")


def window_of_tuples(drawing: Drawing) -> None:
    """A window of six tuples: a new one meets those kept, and one has to go."""
    drawing.bar(170, 90, 450, 90, "window")
    drawing.text(180, 78, "a window of 6 tuples", "grey")
    for place in range(6):
        drawing.dot(210 + place * 74, 135, "left", 16)
    drawing.dot(690, 135, "found", 16)
    drawing.text(690, 190, "new", "found", "middle", bold=True)
    for place in (3, 4):
        x = 210 + place * 74
        drawing.line([(690, 119), ((690 + x) / 2, 40), (x, 119)], "found", 3)
    drawing.text(560, 34, "pairs", "found", "middle", bold=True)
    drawing.line([(190, 135), (106, 135)], "right", 3, dashed=True)
    drawing.dot(90, 135, "right", 16)
    drawing.text(90, 190, "who goes?", "right", "middle", bold=True)
    drawing.text(20, 240, "Pairs with a tuple that has gone are missed.", "ink")


def clusters(drawing: Drawing) -> None:
    """Events that chains of pairs connect, each chain with one label."""
    chains = (
        ("left", ((80, 180), (180, 120), (280, 160), (360, 90))),
        ("found", ((520, 190), (600, 130), (690, 180))),
    )
    for colour, points in chains:
        drawing.line(list(points), colour, 3)
        for x, y in points:
            drawing.dot(x, y, colour, 14)
    drawing.dot(450, 60, "right", 14)
    drawing.text(80, 60, "cluster 0", "left", bold=True)
    drawing.text(560, 90, "cluster 5", "found", bold=True)
    drawing.text(474, 50, "alone", "right")
    drawing.arrow((20, 240), (740, 240), "grey")
    drawing.text(740, 272, "time", "grey", "end")
    drawing.text(20, 272, "a line: near in time and place", "grey")


def spans(drawing: Drawing) -> None:
    """A left span, and what right ones are to it."""
    begin, end = 180, 480
    drawing.bar(begin, 40, end - begin, 30, "left")
    drawing.text(20, 63, "left", "left", bold=True)
    for x in (begin, end):
        drawing.line([(x, 40), (x, 300)], "grey", 2, dashed=True)
    rights = (
        (100, 250, "overlapping"),
        (200, 310, "containing"),
        (480, 560, "meets"),
        (590, 680, "gap"),
    )
    for place, (start, stop, said) in enumerate(rights):
        y = 96 + place * 50
        drawing.bar(start, y, stop - start, 30, "found" if place < 2 else "right")
        if said == "gap":
            drawing.line([(end, y + 15), (start, y + 15)], "ink", 3, dashed=True)
            drawing.text(end - 12, y + 23, 'within gap="1h"', "right", "end")
        else:
            drawing.text(stop + 12, y + 23, said, "found" if place < 2 else "right")
    drawing.arrow((20, 310), (740, 310), "grey")
    drawing.text(740, 342, "time", "grey", "end")


def clocks(drawing: Drawing) -> None:
    """Differences of all pairs of events by time: those of common causes lie on a line."""
    left, right, base = 60.0, 740.0, 300.0
    drawing.text(20, 30, "right − left, of all pairs", "grey")
    drawing.arrow((20, base), (right, base), "grey")
    drawing.text(right, base + 32, "time", "grey", "end")

    def line(x: float) -> float:
        return 190 - 0.14 * (x - left)

    places = Random(2)
    for _ in range(75):
        x, y = places.uniform(left + 5, right), places.uniform(50, 290)
        if not (x < 160 and y > 235) and not (x > 630 and 140 < y < 175):  # free of words
            drawing.dot(x, y, "grey", 4)
    drawing.line([(left, line(left)), (right - 20, line(right - 20))], "found", 2)
    for _ in range(23):
        x = places.uniform(left, right - 20)
        drawing.dot(x, line(x) + places.uniform(-3, 3), "found", 6)
    drawing.line([(left, base), (left, line(left) + 8)], "right", 3)
    drawing.text(left + 10, 262, "offset", "right", bold=True)
    drawing.line([(left, line(left)), (right - 20, line(left))], "grey", 1, dashed=True)
    drawing.line([(right - 20, line(left)), (right - 20, line(right - 20) + 8)], "right", 3)
    drawing.text(right - 30, 166, "drift", "right", "end", bold=True)
    drawing.text(left, base + 32, "common causes lie on a line", "found", bold=True)


def aggregates(drawing: Drawing) -> None:
    """The values of right events around a window: those far inside add up unseen, few are looked at."""
    base, begin, end = 230.0, 190.0, 560.0
    sure = {250: 4, 300: 7, 340: 3, 390: 9, 440: 2, 495: 5}
    probed = {150: (6, False), 205: (3, True), 547: (4, True), 590: (8, False)}
    drawing.bar(begin, 60, end - begin, base - 60, "window")
    drawing.text(begin + 10, 50, "window of a left event", "left", bold=True)
    for x, value in sure.items():
        drawing.bar(x - 7, base - 16 * value, 14, 16 * value, "found")
        drawing.text(x, base + 28, str(value), "found", "middle")
    for x, (value, is_match) in probed.items():
        colour = "right" if is_match else "grey"
        drawing.bar(x - 7, base - 16 * value, 14, 16 * value, colour)
        drawing.text(x, base + 28, str(value), colour, "middle")
    drawing.arrow((20, base), (740, base), "grey")
    drawing.text(740, base + 28, "time", "grey", "end")
    drawing.line([(230, base + 44), (515, base + 44)], "found")
    drawing.text(372, base + 74, "one difference of sums", "found", "middle")
    drawing.text(205, base + 74, "probed", "right", "end")
    drawing.text(540, base + 74, "probed", "right")
    values = [*sure.values(), *(value for value, is_match in probed.values() if is_match)]
    said = f"n {len(values)}, sum {sum(values)}, mean {sum(values) / len(values):.3g}"
    drawing.text(380, base + 118, f"{said}, max {max(values)}", bold=True, anchor="middle")


def delay_histograms(drawing: Drawing) -> None:
    """Pairs by delay: a peak above what chance gives, and pairs that uncertain times spread."""
    base, width, chance = 280.0, 24.0, 60.0
    even = Random(4)
    heights = [chance + even.uniform(-6, 6) for _ in range(28)]
    heights[9:17] = 70, 96, 168, 215, 182, 110, 74, 61
    peak = 63, 68, 84, 112, 152, 180, 165, 126, 90, 71, 64
    expected = [chance] * 7 + [float(each) for each in peak] + [chance] * 10

    def x(bucket: float) -> float:
        return 40 + width * bucket

    for k, height in enumerate(heights):
        drawing.bar(x(k) + 1, base - height, width - 2, height, "left")
    steps = [(x(k + side), base - height) for k, height in enumerate(expected) for side in (0, 1)]
    drawing.line(steps, "ink", 3)
    drawing.line([(x(0), base - chance), (x(28), base - chance)], "right", 3, dashed=True)
    drawing.arrow((20, base), (745, base), "grey")
    drawing.text(745, base + 32, "delay, right − left", "grey", "end")
    drawing.text(x(14), 50, "pairs", "left", bold=True)
    drawing.line([(x(13.8), 58), (x(12.9), 76)], "left", 2)
    drawing.text(x(15), 120, "expected, pairs spread", "ink", bold=True)
    drawing.line([(x(15.2), 128), (x(14.2), 148)], "ink", 2)
    drawing.text(x(0), base - 96, "what chance gives", "right", bold=True)
    drawing.text(x(12.5), base + 32, "they belong together", "found", "middle", bold=True)


def sequences(drawing: Drawing) -> None:
    """Three events whose times are intervals, a window for each step, and the chance of the whole."""
    for place, (name, start, colour) in enumerate(
        (("click", 60, "left"), ("cart", 230, "found"), ("pay", 400, "right"))
    ):
        y = 70 + 80 * place
        drawing.text(start, y - 12, name, colour, bold=True)
        drawing.bar(start, y, 280, 24, colour)
        if place:
            drawing.line([(start - 30, y - 56), (start - 30, y + 12), (start, y + 12)], "ink", 3)
            drawing.text(start - 42, y + 22, "74 %", "ink", "end")
    drawing.arrow((20, 290), (740, 290), "grey")
    drawing.text(740, 326, "time", "grey", "end")
    drawing.text(20, 326, "both steps together: 55.6 %", "ink", bold=True)


def coincidences(drawing: Drawing) -> None:
    """Events of three stations: sets of those that are all near each other, also without one station."""
    stations = ("north", "left"), ("east", "found"), ("south", "right")
    sets = ((190, (0, 36, 84)), (440, (0, 70, None)))
    for begin, _ in sets:
        drawing.bar(begin - 14, 56, 120, 196, "window")
    for place, (name, colour) in enumerate(stations):
        y = 84 + 70 * place
        drawing.text(20, y + 8, name, colour, bold=True)
        drawing.arrow((110, y), (740, y), "grey")
    for begin, delays in sets:
        for place, (delay, (_, colour)) in enumerate(zip(delays, stations, strict=True)):
            if delay is not None:
                drawing.bar(begin + delay - 12, 72 + 70 * place, 28, 24, colour)
    drawing.bar(640, 142, 28, 24, "found")
    drawing.text(654, 128, "alone", "grey", "middle")
    drawing.text(236, 40, "within 30 ms", "ink", "middle", bold=True)
    drawing.text(486, 40, "two of three", "ink", "middle", bold=True)
    drawing.text(486, 214, "no event", "grey", "middle")
    drawing.text(740, 292, "time", "grey", "end")
    drawing.text(20, 292, "a set: events that are all near each other", "ink")


PICTURES: dict[str, tuple[float, Callable[[Drawing], None]]] = {
    "window": (460, window),
    "streams": (240, streams),
    "structured-streaming": (290, structured_streaming),
    "borders": (360, borders),
    "causality": (320, causality),
    "transitions": (300, transitions),
    "histograms": (310, histograms),
    "window-of-tuples": (260, window_of_tuples),
    "clusters": (290, clusters),
    "spans": (360, spans),
    "clocks": (344, clocks),
    "aggregates": (370, aggregates),
    "delay-histograms": (330, delay_histograms),
    "sequences": (344, sequences),
    "coincidences": (310, coincidences),
}
"""The height of each picture, and who draws it."""


def main(folder: Path = IMAGES) -> list[Path]:
    """Draw all pictures."""
    return [
        path
        for name, (height, draw) in PICTURES.items()
        for path in write(name, height, draw, folder)
    ]


if __name__ == "__main__":
    for path in main():
        print(path.relative_to(ROOT))
