"""How causes and effects are found through a bounded window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from coincide.causal_windows.policies import POLICIES, Policy
from coincide.causal_windows.state import Following
from coincide.errors import ConditionError
from coincide.options import Invalid, check_choice, check_count
from coincide.units import Duration, size_of, unit_name

MOST_TUPLES = 10_000_000
"""Of a window: each takes some 300 bytes, beside its columns."""

_GHOSTS = 256


@dataclass(frozen=True)
class WindowOptions:
    """Options of `WindowedCausality` and `window_recall`.

    Parameters
    ----------
    window : int
        Tuples that are kept: the paper's n_W.
    policy : {"fifo", "fhfo", "fcfo", "fhcfo", "expected"}
        Which tuple goes when another one comes: `coincide.causal_windows.policies`.
    max_stay : int or str, optional
        Of ``"fcfo"``: the paper's t_max_stay, which needs an arrival column. None: as many arrivals as
        the window has tuples, which is what the paper sets it to.
    sample : int, optional
        One tuple in so many is followed when it has gone, so that `recall` can be estimated, and for
        ``"expected"`` to learn from; 256 or half a window of these are kept, the latest. None: 8, or more
        where that is needed to follow each through 8 windows. 0: none, and nothing is estimated.
    invalid : {"raise", "drop"}
        What to do with impossible times and places, and with arrivals that go back: an error, or leave
        them out and count them. A role that is no role is an error either way.
    unit, tick : str or None
        As `CorrelateOptions`.

    Raises
    ------
    ConditionError
        If a value makes no sense.
    """

    window: int = 500
    policy: Policy = "expected"
    max_stay: Duration | None = None
    sample: int | None = None
    invalid: Invalid = "raise"
    unit: str | None = None
    tick: str | None = None

    def __post_init__(self) -> None:
        if self.window is None:
            raise ConditionError("window must be a number of tuples; found None")
        check_count("window", self.window, most=MOST_TUPLES)
        check_count("sample", self.sample, 0, 1 << 20)
        check_choice("policy", self.policy, POLICIES)
        check_choice("invalid", self.invalid, get_args(Invalid))
        for name in ("unit", "tick"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, unit_name(value))
        if self.max_stay is not None:
            if size_of(self.max_stay) <= 0:
                raise ConditionError(f"max_stay must be above 0; found {self.max_stay!r}")
            if self.policy != "fcfo":
                raise ConditionError(
                    f"max_stay is of policy 'fcfo'; {self.policy!r} has none: leave it out"
                )
        if self.policy == "expected" and self.sample == 0:
            raise ConditionError(
                "policy 'expected' learns from the tuples that are followed: sample must be at least 1"
            )

    @property
    def following(self) -> Following:
        """How tuples are followed and learnt from."""
        if self.sample == 0:
            return Following(0, 0)
        ghosts = max(_GHOSTS, self.window // 2)
        return Following(self.sample or max(8, -(-8 * self.window // ghosts)), ghosts)
