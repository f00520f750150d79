"""How likely one template's time exceeds another's: floats with an error known beforehand.

Of two independent times X and Y, each relative to its max, the tail P(Y - X > z) is the mean of
P(Y > x + z) over x, and where a bucket of X meets one of Y that is linear in x. So one walk along the
buckets of both gives it, instead of the paper's sum over pairs of buckets (Lemma 1, Theorem 1). All terms
are positive, so that the error is a small multiple of the tail itself, and a tail near 0 is as exact as
one near 1. The other tail, P(Y - X < z), is P(X - Y > -z).
"""

from __future__ import annotations

from coincide.compiled import compiled
from coincide.rounding import product

UNIT = 2.0**-52


@compiled(forceinline=True)
def relative_error(x, i, y, j):
    """A bound on the relative error of `tail` for template i of x and template j of y: `Buckets`."""
    own = x.starts[i + 1] - x.starts[i]
    other = y.starts[j + 1] - y.starts[j]
    return UNIT * (own + 2 * other + 16)


@compiled
def tail(x, i, y, j, z):
    """P(Y - X > z), and the density of Y - X at z.

    Parameters
    ----------
    x, y : Buckets
    i, j : int64
        Templates of X and of Y.
    z : int64
        Ticks.

    Returns
    -------
    float64, float64
        The density is for searching: it leaves out buckets of length 0.
    """
    k, k_end, q, q_end = x.starts[i], x.starts[i + 1] - 1, y.starts[j], y.starts[j + 1] - 1
    x_edges, x_densities, y_edges, y_densities = x.edges, x.densities, y.edges, y.densities
    masses, beyond = x.masses, y.beyond
    total = density = 0.0
    at, lowest = x_edges[k] + z, y_edges[q]
    while k < k_end and at < lowest:
        stop = x_edges[k + 1] + z
        if stop > lowest:
            total += product(x_densities[k], float(lowest - at))
            at = lowest
        else:
            total += masses[k]
            at = stop
            k += 1
    while q < q_end and y_edges[q + 1] <= at:
        q += 1
    # From here on `at` is in bucket k of X, moved by z, and in bucket q of Y.
    while k < k_end and q < q_end:
        x_stop, y_stop = x_edges[k + 1] + z, y_edges[q + 1]
        if x_stop == at:  # a bucket of length 0
            above = beyond[q + 1] + product(y_densities[q], float(y_stop - at))
            total += product(masses[k], above)
            k += 1
            continue
        stop = min(x_stop, y_stop)
        mean_rest = 0.5 * (float(y_stop - at) + float(y_stop - stop))
        above = beyond[q + 1] + product(y_densities[q], mean_rest)
        mass = product(x_densities[k], float(stop - at))
        total += product(mass, above)
        density += product(mass, y_densities[q])
        at = stop
        k += x_stop <= stop
        while q < q_end and y_edges[q + 1] <= at:
            q += 1
    return total, density


@compiled
def window_tails(x, i, y, j, lo, hi):
    """P(Y - X < lo) + P(Y - X > hi): how likely the difference is outside of a window."""
    return tail(y, j, x, i, -lo)[0] + tail(x, i, y, j, hi)[0]
