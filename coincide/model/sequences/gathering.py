"""The probability that several events lie within a width of each other.

One of them comes first, at t, and all others come in [t, t + width]: the sum over who is first of the
integral of f_i(t) times P(t <= T_j <= t + width) of all others. Between edges, and edges less the width,
each factor is linear, and their product a polynomial. If exact times are equal, the one given first
comes first.
"""

from __future__ import annotations

from coincide.model.compiled import either, product


@either
def gathering_probability(ends, laws, buckets, width, one, factors):
    """The probability that the largest and the smallest time differ by `width` at most.

    The law of event i is ``laws[i]`` of ``buckets``, and its last edge lies at ``ends[i]``. With ``one``
    a float the answer is one; with a fraction, and `factors` an array of objects, it is exact.
    """
    whole = 0 * one
    for i in range(ends.size):
        law = laws[i]
        for b in range(buckets.starts[law], buckets.starts[law + 1] - 1):
            low, high = ends[i] + buckets.edges[b], ends[i] + buckets.edges[b + 1]
            mass = one * buckets.masses[b]
            if low == high:
                for j in range(ends.size):
                    if j != i:
                        end = ends[j], laws[j]
                        before = _until(buckets, *end, low, j < i, one)
                        near = _until(buckets, *end, low + width, True, one) - before
                        mass = product(mass, near)
                whole = whole + mass
                continue
            start = low
            while start < high:
                stop = _next_cut(ends, laws, buckets, i, width, start, high)
                span = one * (stop - start) / (high - low)
                mean = _mean(ends, laws, buckets, i, width, start, stop, one, factors)
                whole = whole + product(mass * span, mean)
                start = stop
    return whole


@either
def _next_cut(ends, laws, buckets, i, width, start, high):
    """The next time at which a factor bends, or the bucket's end."""
    stop = high
    for j in range(ends.size):
        if j != i:
            for e in range(buckets.starts[laws[j]], buckets.starts[laws[j] + 1]):
                edge = ends[j] + buckets.edges[e]
                if edge - width > start:
                    stop = min(stop, edge - width)
                elif edge > start:
                    stop = min(stop, edge)
    return stop


@either
def _mean(ends, laws, buckets, i, width, start, stop, one, factors):
    """The mean of the product of all factors, where each is linear."""
    degree = 0
    factors[0] = one
    for j in range(ends.size):
        if j == i:
            continue
        end = ends[j], laws[j]
        first = _until(buckets, *end, start + width, True, one)
        first = first - _until(buckets, *end, start, True, one)
        last = _until(buckets, *end, stop + width, False, one)
        rise = last - _until(buckets, *end, stop, False, one) - first
        factors[degree + 1] = 0 * one
        for d in range(degree + 1, 0, -1):
            factors[d] = product(factors[d], first) + product(factors[d - 1], rise)
        factors[0] = product(factors[0], first)
        degree += 1
    found = 0 * one
    for d in range(degree + 1):
        found = found + factors[d] / (d + 1)
    return found


@either
def _until(buckets, end, law, time, is_closed, one):
    """The mass up to a time, with or without what lies at it."""
    found = 0 * one
    for b in range(buckets.starts[law], buckets.starts[law + 1] - 1):
        low, high = end + buckets.edges[b], end + buckets.edges[b + 1]
        if high < time or (is_closed and high == time) or (low < high and high == time):
            found = found + buckets.masses[b]
        elif low < time:
            found = found + product(one * buckets.masses[b], one * (time - low) / (high - low))
    return found
