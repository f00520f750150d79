"""Which readings of a batch are taken: those that come after all of their stream before them."""

from __future__ import annotations

from coincide.compiled import compiled


@compiled(allocates=True)
def accepted(streams, times, is_gap, known, last_times):
    """Which readings come after all of their stream before them.

    Parameters
    ----------
    streams, times : int64 arrays, shape (n,)
        By stream, in order of arrival.
    is_gap : bool array, shape (n,)
        Readings that are none.
    known : bool array, last_times : int64 array, by stream

    Returns
    -------
    bool array, shape (n,)
    int, int
        Late ones, and ones that repeat a time.
    """
    kept = ~is_gap
    late = repeated = 0
    stream, begun, last = -1, False, 0
    for k in range(streams.size):
        if streams[k] != stream:
            stream = streams[k]
            begun, last = known[stream], last_times[stream]
        if is_gap[k]:
            continue
        if begun and times[k] <= last:
            kept[k] = False
            if times[k] == last:
                repeated += 1
            else:
                late += 1
        else:
            begun, last = True, times[k]
    return kept, late, repeated
