"""The stream correlators of Lee & Lee (2010): arrays of two streams without keys, for comparisons.

`coincide.stream_tables` joins streams by an engine of its own.
"""

from bench.papers.streams.algorithms import ALGORITHMS, stream_correlator

__all__ = ["ALGORITHMS", "stream_correlator"]
