"""Connected events, by union-find over pairs, which are not kept."""

from __future__ import annotations

from coincide.model.compiled import compiled


@compiled(allocates=True)
def connect_pairs(own, others, parent):
    """Connect the events of pairs; `parent` is by row, and no parent is above its child."""
    for k in range(own.size):
        connect(parent, root_of(parent, own[k]), root_of(parent, others[k]))


@compiled(allocates=True)
def flatten(parent):
    """Make each event the child of its root."""
    for i in range(parent.size):
        parent[i] = root_of(parent, i)


@compiled(allocates=True)
def root_of(parent, i):
    """The least position that is known to be connected with i; the way to it is shortened."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@compiled(allocates=True)
def connect(parent, a, b):
    """Connect two roots, which may be one; the root of both."""
    if a < b:
        parent[b] = a
        return a
    parent[a] = b
    return b


@compiled(allocates=True)
def merge(parent, other):
    """Connect in `parent` what is connected in `other`."""
    for i in range(parent.size):
        connect(parent, root_of(parent, i), root_of(parent, other[i]))
