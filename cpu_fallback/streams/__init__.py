"""Stream correlators: blocks of events in, final pairs out, in any order of arrival within a delay.

Six algorithms behind one interface: the five of Lee & Lee (2010), section 4.2, and the lazy one with
length classes. They find the same pairs and differ in what they look at to find them.
"""

from coincide.model.streams.correlator import StreamCorrelator
from coincide.model.streams.results import LateEvents, Matches, StreamStats
from cpu_fallback.streams.correlators import ALGORITHMS, LiveBlocks, stream_correlator

__all__ = [
    "ALGORITHMS",
    "LateEvents",
    "LiveBlocks",
    "Matches",
    "StreamCorrelator",
    "StreamStats",
    "stream_correlator",
]
