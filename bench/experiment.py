"""What an experiment is, and what it is given: timing, figures and checks, noted in a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from bench.charts import Chart
from bench.report import Check, Claim, Figure, Report
from bench.timing import Timing, alternate

T = TypeVar("T")

_HOPELESS = 3.0
"""How many times the best a variant may take before it is tried no further."""


class CheckFailedError(AssertionError):
    """Contestants disagree about the answer, so their times cannot be compared."""


@dataclass(frozen=True)
class Option:
    """An option of one experiment on the command line."""

    kind: Any  # ``int`` or ``float``, or either or None
    default: float | None
    help: str
    least: int = 0


@dataclass(frozen=True)
class Experiment:
    """One experiment."""

    summary: str  # one line for ``list``
    run: Callable[[Bench], None]  # imports of engines belong inside, so that listing stays quick
    title: str = ""  # heading on the page of benchmarks, as `about` is its text
    about: str = ""
    needs: str = ""  # what must be installed, next to the library
    # Optional parts, each with its help text.
    flags: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Option] = field(default_factory=dict)  # what else the command line takes


class Bench:
    """What an experiment works with: its report, and what the command line says of the run."""

    def __init__(
        self,
        report: Report,
        *,
        cores: int = 2,
        rounds: int | None = None,
        flags: frozenset[str] = frozenset(),
        options: Mapping[str, Any] | None = None,
        say: Callable[[str], None] = lambda text: None,
        tell: Callable[[str], None] = lambda text: None,
        out: Path | None = None,
    ) -> None:
        self.report, self.cores, self.flags, self.say = report, cores, flags, say
        self.options, self.tell, self.out = dict(options or {}), tell, out
        self._rounds = rounds
        self.note(cores=cores)

    @property
    def quick(self) -> bool:
        """Whether sizes must be tiny."""
        return self.report.quick

    def pick(self, full: T, quick: T) -> T:
        """A size for full or quick runs."""
        return quick if self.quick else full

    def rounds(self, full: int) -> int:
        """Rounds to time: as asked for on the command line, else as given, 1 in quick runs."""
        return self._rounds or self.pick(full, 1)

    def note(self, **settings: Any) -> None:
        """Keep what the figures depend on: sizes, rates, the variant of a peer."""
        self.report.settings.update(settings)

    def keep(self, *, last: bool = False) -> None:
        """Write what there is so far: a long run that ends early has not been for nothing.

        Quick runs are short, and would draw each chart again each time: they keep what is last alone.
        """
        if self.out is not None and (last or not self.quick):
            self.report.write(self.out)

    def alternate(
        self,
        label: str,
        contestants: Mapping[str, Callable[[], Any]],
        *,
        rounds: int = 5,
        warmups: int = 1,
    ) -> dict[str, Timing]:
        """Time contestants in alternating rounds; a timing is noted as ``label: contestant``."""
        rounds, warmups = self.rounds(rounds), self.pick(warmups, 0)
        timings = alternate(contestants, rounds, warmups, lambda text: self.say(f"{label}, {text}"))
        self.report.timings.update({f"{label}: {name}": timing for name, timing in timings.items()})
        return timings

    def compared(
        self, label: str, contestants: Mapping[str, Callable[[], Any]], *, rounds: int
    ) -> dict[str, Timing]:
        """As `alternate`, of contestants whose answers must be the same."""
        timings = self.alternate(label, contestants, rounds=rounds)
        self.check_equal(label, {name: timing.answer for name, timing in timings.items()})
        return timings

    def fastest(
        self,
        label: str,
        contestants: Mapping[str, Callable[[], Any]],
        *,
        rounds: int = 2,
    ) -> str:
        """The name of the fastest variant, by its best round; one that warms up far too slowly is out.

        A single one of quick runs is not run to be chosen: it runs where it is compared.
        """
        if self.quick and len(contestants) == 1:
            return next(iter(contestants))

        def say(text: str) -> None:
            self.say(f"{label}, {text}")

        timings = alternate(contestants, 1, 0, say)
        if rounds and not self.quick:
            limit = _HOPELESS * min(timing.low for timing in timings.values())
            hopeful = {n: work for n, work in contestants.items() if timings[n].low <= limit}
            timings |= alternate(hopeful, rounds, 0, say)
        self.note(**{label: {name: round(timing.low, 4) for name, timing in timings.items()}})
        return min(timings, key=lambda name: timings[name].low)

    def ratio(self, name: str, peer: Timing, ours: Timing, bar: float | None = None) -> None:
        """Note how many times as long as ours the peer took; the spread is over single rounds."""
        each = [a / b for a, b in zip(peer.seconds, ours.seconds, strict=True)]
        self.figure(name, peer.median / ours.median, "x", bar, spread=each)

    def ratio_of_fastest(
        self,
        name: str,
        above: Timing,
        below: Timing,
        bar: float | None = None,
        *,
        at_least: bool = True,
    ) -> None:
        """Note the ratio of the fastest rounds, where rounds swing; the spread is over single rounds."""
        each = [a / b for a, b in zip(above.seconds, below.seconds, strict=True)]
        self.figure(name, above.low / below.low, "x", bar, at_least=at_least, spread=each)

    def figure(
        self,
        name: str,
        value: float,
        unit: str,
        bar: float | None = None,
        *,
        at_least: bool = True,
        spread: Sequence[float] = (),
    ) -> None:
        """Note a figure, and the bar that it should reach (or stay below, if not `at_least`)."""
        low, high = (min(spread), max(spread)) if len(spread) else (value, value)
        self.report.figures.append(
            Figure(name, value, low, high, unit, bar, at_least, judged=not self.quick)
        )

    def seconds(self, name: str, timing: Timing, bar: float, unit: str = "s") -> None:
        """Note a time, in s or ms, that should stay below a bar."""
        each = [s * {"s": 1, "ms": 1000}[unit] for s in timing.seconds]
        self.figure(name, median(each), unit, bar, at_least=False, spread=each)

    def rate(
        self, name: str, amount: float, timing: Timing, unit: str, bar: float | None = None
    ) -> None:
        """Note how much of an amount was done a second."""
        each = [amount / seconds for seconds in timing.seconds]
        self.figure(name, amount / timing.median, unit, bar, spread=each)

    def check_equal(self, name: str, answers: Mapping[str, Any]) -> None:
        """Note that all contestants gave the same answer; a `CheckFailedError` if they did not."""
        check = Check(name, dict(answers))
        self.report.checks.append(check)
        if not check.passed:
            raise CheckFailedError(f"{name} differ: {check.answers}")

    def chart(self, *given: Any, **named: Any) -> None:
        """Note a `Chart`; it is drawn when the report is written."""
        self.report.charts.append(Chart(*given, **named))

    def claim(self, claim: str, seen: str, agrees: bool | None) -> None:
        """Note what the paper claims and what was seen; None: not measured. Quick runs decide nothing."""
        self.report.claims.append(Claim(claim, seen, None if self.quick else agrees))
