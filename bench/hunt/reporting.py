"""What the hunt has seen, counted by way; every difference told and written to a file."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.experiment import Bench
from bench.hunt.cases import Case, Verdict, Way
from bench.hunt.describing import description, headline
from bench.hunt.running import shrunk
from bench.report import Check

_TELL_SECONDS = 60.0
_SHRUNK_ALIKE = 2
"""This many differences that read alike are made small; the others are written as they were found."""
_TOLD_ALIKE = 10
_VARIABLE = re.compile(r"\d+|'[^']*'|\([^)]*\)|\[[^\]]*\]")


class Tally:
    """Cases, differences and time, by way."""

    def __init__(self, bench: Bench, ways: Sequence[Way], shrink_seconds: float) -> None:
        self._bench, self._shrink_seconds = bench, shrink_seconds
        self._ways = [way.name for way in ways]
        self._kinds: Counter[tuple[str, str]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._alike: Counter[str] = Counter()
        self._started = self._told = time.monotonic()

    @property
    def cases(self) -> int:
        """Cases so far."""
        return self._kinds.total()

    @property
    def differences(self) -> int:
        """Differences so far."""
        return self._alike.total()

    def take(self, case: Case, verdict: Verdict, seconds: float) -> None:
        """Count a case; tell of it if it differs."""
        self._kinds[case.way.name, "difference" if verdict.is_difference else verdict.kind] += 1
        self._seconds[case.way.name] += seconds
        if verdict.is_difference:
            self._tell_of(case, verdict)
        self._bench.say(self._progress())
        if time.monotonic() - self._told > _TELL_SECONDS:
            self._told = time.monotonic()
            self._bench.tell(self._progress())

    def _progress(self) -> str:
        seconds = time.monotonic() - self._started
        return (
            f"{self.cases:,} cases in {seconds:,.0f} s, {self.cases / max(seconds, 1e-9):.1f} a"
            f" second; {self.differences:,} differences"
        )

    def _tell_of(self, case: Case, verdict: Verdict) -> None:
        alike = f"{case.way.name} {verdict.kind} {_VARIABLE.sub('#', verdict.text)[:80]}"
        self._alike[alike] += 1
        if self._alike[alike] <= _SHRUNK_ALIKE:
            case, verdict = shrunk(case, verdict, self._shrink_seconds)
        path = self._write(case, verdict)
        if self._alike[alike] <= _TOLD_ALIKE:
            where = "" if path is None else f"\n  {path}"
            self._bench.tell(f"{headline(case, verdict)}{where}")
        if self._alike[alike] == _TOLD_ALIKE:
            self._bench.tell("  (more that read like this are only counted and written)")

    def _write(self, case: Case, verdict: Verdict) -> Path | None:
        if self._bench.out is None:
            return None
        name = self._bench.report.experiment
        folder = self._bench.out / "differences"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}-seed-{case.seed}-case-{case.number}.txt"
        path.write_text(description(name, case, verdict), encoding="utf-8")
        return path

    def summarize(self) -> None:
        """Put the numbers into the report, and say what differed."""
        bench = self._bench
        for way in self._ways:
            kinds = {kind: n for (name, kind), n in self._kinds.items() if name == way}
            cases = sum(kinds.values())
            judged = cases - kinds.get("difference", 0)
            bench.report.checks.append(Check(way, {"cases": cases, "as they should": judged}))
            for column, count in (
                ("cases", cases),
                ("right answers", kinds.get("right", 0)),
                ("errors that were due", kinds.get("refused", 0)),
                ("closed", kinds.get("closed", 0)),
                ("differences", cases - judged),
            ):
                bench.figure(f"{way}: {column}", count, "")
            bench.figure(f"{way}: ms each", 1000 * self._seconds[way] / max(1, cases), "")
            counts = ", ".join(f"{n:,} {kind}" for kind, n in sorted(kinds.items()))
            bench.tell(f"{way:20} {cases:8,} cases: {counts or 'none'}")
        seconds = time.monotonic() - self._started
        bench.note(
            cases=self.cases, differences=self.differences, seconds=round(seconds, 1),
            cases_a_second=round(self.cases / max(seconds, 1e-9), 2),
        )  # fmt: skip
        bench.tell(self._progress())
        for alike, count in self._alike.most_common():
            bench.tell(f"{count:6,} x {alike}")
