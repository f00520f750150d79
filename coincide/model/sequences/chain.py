"""The probability of a chain: a window from each event to the next.

Where the steps before it hold, the time of event i has a density g_i, which the times before shape:
g_(i+1)(t) = f_(i+1)(t) (G_i(t - lo_i) - G_i(t - hi_i)), where G_i is the integral of g_i. With densities
that are constant in buckets, G_i is a polynomial of degree i between sums of edges and bounds. The last
value of the last G is the probability of the whole.
"""

from __future__ import annotations

from coincide.model.compiled import either, product


@either
def chain_probability(ends, laws, buckets, lows, highs, one, work):
    """The probability that lows[i] <= T_(i+1) - T_i <= highs[i] for every i.

    The law of event i is ``laws[i]`` of ``buckets``, and its last edge lies at ``ends[i]``. With ``one``
    a float the answer is one; with a fraction, and the `chain_work` of objects, it is exact.
    """
    # `known` says where pieces of G begin, the last of these where they end, and has for each a polynomial
    # of how far a time is in it, from 0 to 1. Before them G is 0, after them `whole`.
    before, after, rise, fall = work
    size, whole = 0, one
    for i in range(ends.size):
        window = (lows[i - 1], highs[i - 1]) if i else (0, 0)
        shift, law = ends[i], laws[i]
        known = before[0], before[1], size, whole, i, one
        size, reached = 0, 0 * one
        for b in range(buckets.starts[law], buckets.starts[law + 1] - 1):
            low, high = shift + buckets.edges[b], shift + buckets.edges[b + 1]
            if low == high:
                share = _share(known, window, low)
                reached = reached + product(one * buckets.masses[b], share)
            else:
                given = low, high, one * buckets.masses[b], size, reached
                size, reached = _add_bucket(known, window, given, after, rise, fall)
        after[0][size] = shift
        before, after = after, before
        whole = reached
    return whole


@either
def _share(known, window, time):
    """The probability of all windows so far where an event is at a time."""
    if known[4] == 0:
        return known[5]
    return _value(known, time - window[0], True) - _value(known, time - window[1], False)


@either
def _add_bucket(known, window, given, after, rise, fall):
    """Write the pieces of G in a bucket; how many there are now, and what G comes to."""
    low, high, mass, size, reached = given
    cuts, _, count, _, degree, one = known
    lo, hi = window
    opened = closed = 0
    rise[0], fall[0] = one, 0 * one
    start = low
    while start < high:
        stop = high
        if degree:
            while opened <= count and cuts[opened] + lo <= start:
                opened += 1
            while closed <= count and cuts[closed] + hi <= start:
                closed += 1
            if opened <= count:
                stop = min(stop, cuts[opened] + lo)
            if closed <= count:
                stop = min(stop, cuts[closed] + hi)
            _part(known, opened, start - lo, stop - start, rise)
            _part(known, closed, start - hi, stop - start, fall)
        share = mass * (stop - start) / (high - low)
        after[0][size], after[1][size, 0] = start, reached
        for d in range(degree + 1):
            term = share * (rise[d] - fall[d]) / (d + 1)
            after[1][size, d + 1] = term
            reached = reached + term
        size += 1
        start = stop
    return size, reached


@either
def _value(known, time, is_closed):
    """G at a time, or what it comes to before that: where times are exact it jumps."""
    cuts, pieces, size, whole, degree, one = known
    k = 0
    while k <= size and (cuts[k] <= time if is_closed else cuts[k] < time):
        k += 1
    if k == 0:
        return 0 * one
    if k > size:
        return whole
    begin, end = cuts[k - 1], cuts[k]
    at = one * (time - begin) / (end - begin)
    found = pieces[k - 1, degree]
    for d in range(degree):
        found = product(found, at) + pieces[k - 1, degree - 1 - d]
    return found


@either
def _part(known, k, start, span, out):
    """G from a time on, for a span that lies in one piece, as a polynomial from 0 to 1."""
    cuts, pieces, size, whole, degree, one = known
    if k == 0 or k > size:
        out[0] = whole if k else 0 * one
        for d in range(1, degree + 1):
            out[d] = 0 * one
        return
    begin = cuts[k - 1]
    width = cuts[k] - begin
    at, scale = one * (start - begin) / width, one * span / width
    for d in range(degree + 1):
        out[d] = pieces[k - 1, d]
    # Taylor's shift by Horner's scheme, then a power of the scale for each.
    for d in range(degree):
        for e in range(degree - 1, d - 1, -1):
            out[e] = out[e] + product(at, out[e + 1])
    power = one
    for d in range(1, degree + 1):
        power = power * scale
        out[d] = out[d] * power
