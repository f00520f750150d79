"""What an exploration says in words: the numbers at the head, and how each chart is read."""

from __future__ import annotations

from coincide.probability import highest_probability
from spark_plugin.worker.arrow.time_words import length_words
from spark_plugin.worker.exploration.exploration import Exploration
from spark_plugin.worker.reports.emptiness import Evidence
from spark_plugin.worker.reports.reports import side_words


def head_of(found: Exploration) -> list[tuple[str, str]]:
    """Names and what there is to say."""
    tick, window = found.evidence[0].scale.tick, found.spec.window
    ends = " to ".join(length_words(end, tick) for end in (window.lo, window.hi))
    of = "T_later − T_earlier" if found.spec.is_one_stream else "T_right − T_left"
    lines = [("window", f"{ends}, of {of}")]
    for side, counts, evidence in zip(found.sides, found.rows, found.evidence, strict=True):
        rows = "; ".join([f"{counts.rows:,} rows", *side_words(counts, tick)])
        lines.append(("events" if found.spec.is_one_stream else side, rows))
        if evidence.events:
            lines.append(("", _times(evidence)))
    if found.keys is not None:
        lines.append(("keys", found.keys.describe()))
    lines.append(("candidates", f"{found.candidates:,} pairs of a probability above 0"))
    if highest := _highest(found):
        lines.append(("highest P", highest))
    if not found.sample.is_all:
        lines.append(("sample", sample_words(found)))
    if found.shifts:
        lines.append(("shifts", ", ".join(found.shifts)))
    return lines


def _highest(found: Exploration) -> str:
    """What confidence no pair can reach, or few can; nothing where all can be certain."""
    best = found.highest_probability
    if best is None:
        return ""
    words = f"{best:.4g}, which no pair exceeds"
    if found.spec.has_histograms:
        return words + ": the templates and the window allow no more" if best < 1.0 else ""
    # The same length on both sides for all: the shortest are the typical ones.
    lengths = [found.evidence[side].typical or 0 for side in (0, -1)]
    typical = highest_probability(lengths[0], lengths[1], found.spec.window.width)
    if typical == 1.0:
        return ""
    if typical == best:
        return words + ": the window is narrow for timestamps so long"
    return f"{best:.4g}; of pairs of timestamps as long as half of them or more are, {typical:.4g}"


def _times(evidence: Evidence) -> str:
    first, last = evidence.words_of_times
    tick = evidence.scale.tick
    lengths = f"{length_words(evidence.shortest, tick)} long"
    if evidence.typical is not None and evidence.typical != evidence.shortest:
        typical = length_words(evidence.typical, tick)
        lengths = f"at least {lengths}, half of them {typical} or more"
    return f"{first} to {last}; timestamps are {lengths}"


def sample_words(found: Exploration) -> str:
    """What was looked at, of a sample."""
    sample = found.sample
    events = "events as earlier ones" if found.spec.is_one_stream else "left events"
    return (
        f"pairs of {sample.events:,} of {sample.of:,} {events}, drawn at random, were looked at, and"
        f" their numbers multiplied by {sample.factor:,.4g}. Candidates and partners are counted of all"
    )


def flat_words(found: Exploration) -> str:
    """Whether it matters which confidence is asked for."""
    if not found.candidates:
        return ""
    if found.flat is None:
        return (
            "No range of confidences 0.1 wide gives the same pairs within 1 %: how many there are"
            " depends on the confidence everywhere."
        )
    low, high = found.flat
    return f"Any confidence between {low:g} and {high:g} gives the same pairs within 1 %."


def readings_of(found: Exploration) -> dict[str, str]:
    """A sentence or two for each chart, by its name."""
    apart = " These are so many that they stand apart, on a scale of their own."
    return {
        "probabilities": (
            "Each bar counts the pairs whose probability to lie in the window is in its range; the last"
            " one those that are certain. Pairs near 1 are in whatever is asked for, pairs near 0 are"
            " out; those between are the ones that the confidence decides."
            + (apart if found.certain_stand_apart else "")
        ),
        "curve": f"How many pairs a join finds at each confidence. {flat_words(found)}{_chance(found)}",
        "partners": (
            "How many events have no partner, one, or several. Events without any grow with the"
            " confidence; events with several say that the window holds more than one candidate, and"
            " that only the best one may be meant."
        ),
        "delays": _delays(found),
    }


def _chance(found: Exploration) -> str:
    if not found.shifts:
        return ""
    row = next(
        row
        for row in reversed(found.curve.to_pylist())
        if row["confidence"] <= max(found.confidence, 0.01)
    )
    spread = row["accidental_spread"]
    spread_words = "" if spread is None else f" ± {spread:,.1f}"
    return (
        f" At {row['confidence']:g} there are {row['pairs']:,}, of which chance alone would make"
        f" {row['accidental_pairs']:,.1f}{spread_words}."
    )


def _delays(found: Exploration) -> str:
    part = "hour of the day" if found.parts.is_hours else "part of the time range"
    own, other = ("earlier", "later") if found.spec.is_one_stream else ("left", "right")
    words = (
        f"By the {part} of the {own} event, how far the middle of the {other} timestamp lies after that of"
        f" the {own} one. A level other than 0 is a steady lag; one that wanders, a clock that drifts;"
        " a band without a centre, pairs by chance."
    )
    if found.far_delays:
        words += f" {found.far_delays:,} pairs lie beyond what is shown."
    return words
