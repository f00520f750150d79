"""The probability that all three windows between three events hold: a sequence with a bound on the whole.

Where the middle event is at t, the first lies in an interval X, the last in an interval Z, and their
difference in a window. The share of such places is an area that a strip cuts from a rectangle, whose
sides move with t. Between the times at which a side stops, or a corner meets the strip, it is a
polynomial of degree 2, which three values give.
"""

from __future__ import annotations

from coincide.model.compiled import either, product


@either
def triangle_probability(ends, laws, buckets, lows, highs, one):
    """The probability that T_2 - T_1, T_3 - T_2 and T_3 - T_1 lie between `lows` and `highs`.

    The law of event i is ``laws[i]`` of ``buckets``, and its last edge lies at ``ends[i]``. With ``one``
    a float the answer is one; with a fraction it is exact.
    """
    whole = 0 * one
    first, middle, last = laws[0], laws[1], laws[2]
    for b in range(buckets.starts[middle], buckets.starts[middle + 1] - 1):
        low, high = ends[1] + buckets.edges[b], ends[1] + buckets.edges[b + 1]
        of_middle = 0 * one
        for c in range(buckets.starts[first], buckets.starts[first + 1] - 1):
            of_first = 0 * one
            x = ends[0] + buckets.edges[c], ends[0] + buckets.edges[c + 1]
            for d in range(buckets.starts[last], buckets.starts[last + 1] - 1):
                z = ends[2] + buckets.edges[d], ends[2] + buckets.edges[d + 1]
                mass = one * buckets.masses[b] * buckets.masses[c] * buckets.masses[d]
                if mass == 0:
                    continue
                if low == high:
                    share = _share(x, z, low, 0 * one, lows, highs, one)
                    of_first = of_first + product(mass, share)
                    continue
                start = low
                while start < high:
                    stop = _next_cut(x, z, lows, highs, start, high)
                    span = stop - start
                    # Exact up to cubic polynomials, without the ends, where the share may jump.
                    middle_share = _share(
                        x, z, start, product(one * span, one / 2), lows, highs, one
                    )
                    outer = _share(x, z, start, product(one * span, one / 4), lows, highs, one)
                    outer = outer + _share(
                        x, z, start, product(one * span, 3 * one / 4), lows, highs, one
                    )
                    mean = (outer + outer - middle_share) / 3
                    of_first = of_first + product(mass * mean, one * span / (high - low))
                    start = stop
            of_middle = of_middle + of_first
        whole = whole + of_middle
    return whole


@either
def _next_cut(x, z, lows, highs, start, high):
    """The next time of the middle event at which the share changes its formula, or the bucket's end."""
    stop = high
    for k in range(2):
        step, following = (highs[0], highs[1]) if k else (lows[0], lows[1])
        for m in range(2):
            edge, end = x[m], z[m]
            stop = _sooner(edge + step, start, stop)
            stop = _sooner(end - following, start, stop)
            for h in range(2):
                total = highs[2] if h else lows[2]
                stop = _sooner(end - total + step, start, stop)
                stop = _sooner(edge + total - following, start, stop)
    return stop


@either
def _sooner(cut, start, stop):
    return cut if start < cut < stop else stop


@either
def _share(x, z, start, after, lows, highs, one):
    """The share of places of the first and last event that meet all windows, by time of the middle one."""
    # The time is `after` ticks after `start`. Each end is counted from near the interval that is left, in
    # whole ticks before any float is made.
    x_from = max(x[0] - start, -highs[0])
    z_from = max(z[0] - start, lows[1])
    apart = z_from - x_from
    x_low, x_high = one * (x[0] - start - x_from), one * (x[1] - start - x_from)
    z_low, z_high = one * (z[0] - start - z_from), one * (z[1] - start - z_from)
    x_least = max(x_low, after + (-highs[0] - x_from))
    x_most = min(x_high, after + (-lows[0] - x_from))
    z_least = max(z_low, after + (lows[1] - z_from))
    z_most = min(z_high, after + (highs[1] - z_from))
    if x_least > x_most or z_least > z_most:
        return 0 * one
    lo, hi = lows[2] - apart, highs[2] - apart
    x_size, z_size = one * (x[1] - x[0]), one * (z[1] - z[0])
    if x[0] == x[1] and z[0] == z[1]:
        return one if lows[2] <= z[0] - x[0] <= highs[2] else 0 * one
    if x[0] == x[1]:
        found = min(z_most, x_low + hi) - max(z_least, x_low + lo)
        return max(found, 0 * one) / z_size
    if z[0] == z[1]:
        found = min(x_most, z_low - lo) - max(x_least, z_low - hi)
        return max(found, 0 * one) / x_size
    sides = x_most - x_least, z_most - z_least
    nearest, farthest = z_least - x_most, z_most - x_least
    found = _below(hi, nearest, farthest, sides, one) - _below(lo, nearest, farthest, sides, one)
    return found / x_size / z_size


@either
def _below(bound, nearest, farthest, sides, one):
    """The area of a rectangle in which the difference of its coordinates is below a bound."""
    beyond, lacking = bound - nearest, farthest - bound
    shorter, longer = min(sides), max(sides)
    if beyond <= 0:
        return 0 * one
    if lacking <= 0:
        return product(shorter, longer)
    if beyond <= shorter:
        return product(beyond, beyond / 2)
    if beyond <= longer:
        return product(beyond + beyond - shorter, shorter / 2)
    return product(shorter, longer) - product(lacking, lacking / 2)
