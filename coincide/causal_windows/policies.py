"""Which tuple a full window lets go: the four policies of Kwon & Li (2009), and one of ours."""

from __future__ import annotations

from typing import Literal, get_args

Policy = Literal["fifo", "fhfo", "fcfo", "fhcfo", "expected"]
"""
``"fifo"``
    The tuple that arrived first.
``"fhfo"``
    First happens, first out (Definition 2): the one of least valid time.
``"fcfo"``
    First closely located, first out (Definition 3): the one that arrived first if it has stayed longer
    than allowed, else the one nearest to where the window is.
``"fhcfo"``
    First happens and closely located, first out (Definition 4): the one of least valid time if it can
    cause the new one no more, else the one nearest to where the window is.
``"expected"``
    The one of which the least matches are to be expected yet, less what its stay would cost others; what
    to expect is learnt by place and age: `cpu_fallback.causality.windowed.learning`. The new one may
    be sent away itself.

Of equals the one that arrived first goes.
"""

POLICIES: tuple[Policy, ...] = get_args(Policy)
FIFO, FHFO, FCFO, FHCFO, EXPECTED = range(len(POLICIES))
"""Policies as kernels have them: places in `POLICIES`."""

BY_DISTANCE = ("fcfo", "fhcfo")
"""Policies that ask how far tuples are from where the window is."""
