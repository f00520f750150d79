"""What a join reports about itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class JoinCounters:
    """What a join looked at and found.

    Parameters
    ----------
    candidates : int
        Pairs in the outer ranges: those not excluded unseen.
    probed : int
        Candidates in the shell, decided by the probability formula.
    pairs : int
        Qualifying pairs.
    """

    candidates: int = 0
    probed: int = 0
    pairs: int = 0

    def __add__(self, other: JoinCounters) -> JoinCounters:
        return JoinCounters(
            self.candidates + other.candidates, self.probed + other.probed, self.pairs + other.pairs
        )
