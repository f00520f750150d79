"""What a correlator reports about itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coincide.streams.shared import (
    BUFFER_MAX,
    BUFFER_SUM,
    EVALUATIONS,
    HITS,
    INVALIDATED,
    LATE,
    PAIRS,
    RESPONSE_MAX,
    RESPONSE_SUM,
    SAMPLES,
    SURE,
    TALLY_SIZE,
)


@dataclass(frozen=True)
class StreamStats:
    """What a correlator has looked at, found and kept so far.

    Parameters
    ----------
    pairs : int
        Pairs found.
    evaluations : int
        Evaluations of the probability formula.
    sure : int
        Pairs admitted by the satisfaction region, without evaluation.
    hits : int
        Candidates in probe regions that the look-up table decided.
    response_mean, response_max : float or None
        Response time of the pairs, ticks: the clock at which a pair was found less the larger max_time
        of its two events; Lee & Lee (2010), section 5.1. The clock is the stream's, so time spent in
        computing is not in it. Negative where a pair was found before that max_time, since its events
        came before they were over. 0 if there are no pairs. None unless the correlator was made with
        ``response=True``.
    buffer_mean, buffer_max : (float, float), (int, int)
        Events in the buffers, left and right, correlated or waiting: mean and maximum over the
        arrivals of both sides, taken right after each.
    invalidated : (int, int)
        Events removed as obsolete, left and right.
    late : (int, int)
        Events that came later than the delay permits, left and right.
    arrived : (int, int)
        Events pushed, late ones included, left and right.
    """

    pairs: int
    evaluations: int
    sure: int
    hits: int
    response_mean: float | None
    response_max: float | None
    buffer_mean: tuple[float, float]
    buffer_max: tuple[int, int]
    invalidated: tuple[int, int]
    late: tuple[int, int]
    arrived: tuple[int, int]

    @property
    def probed(self) -> int:
        """Candidates in probe regions: evaluated, or decided by the look-up table."""
        return self.evaluations + self.hits

    @property
    def hit_ratio(self) -> float:
        """hits / probed, Lee & Lee (2010), Figure 7; 0 if nothing was probed."""
        return self.hits / self.probed if self.probed else 0.0


def new_tally() -> np.ndarray:
    """All zero: int64 array, shape (TALLY_SIZE,)."""
    return np.zeros(TALLY_SIZE, np.int64)


def new_response() -> np.ndarray:
    """No sum, and no maximum yet, which may turn out negative: float64 array, shape (2,)."""
    return np.array([0.0, -np.inf])


def stats_of(tally: np.ndarray, response: np.ndarray | None, arrived: np.ndarray) -> StreamStats:
    """Put a tally into words.

    Parameters
    ----------
    tally : int64 array, shape (TALLY_SIZE,)
    response : float64 array, shape (2,), or None
    arrived : int64 array, shape (2,)
    """

    def sides(entry: int) -> tuple[int, int]:
        return int(tally[entry]), int(tally[entry + 1])

    sums = sides(BUFFER_SUM)
    samples, pairs = max(1, int(tally[SAMPLES])), int(tally[PAIRS])
    mean = longest = None
    if response is not None:
        mean = float(response[RESPONSE_SUM]) / max(1, pairs)
        longest = float(response[RESPONSE_MAX]) if pairs else 0.0
    return StreamStats(
        pairs=pairs,
        evaluations=int(tally[EVALUATIONS]),
        sure=int(tally[SURE]),
        hits=int(tally[HITS]),
        response_mean=mean,
        response_max=longest,
        buffer_mean=(sums[0] / samples, sums[1] / samples),
        buffer_max=sides(BUFFER_MAX),
        invalidated=sides(INVALIDATED),
        late=sides(LATE),
        arrived=(int(arrived[0]), int(arrived[1])),
    )
