"""What a model of timestamps gives a join, and how kernels call a model's named tuples."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import Parameter, Signature
from types import FunctionType
from typing import (
    Annotated,
    Any,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

import numpy as np
from numba import types
from numba.extending import overload_method

from coincide.model.class_choice import Population
from coincide.model.classes import ShapeClasses
from coincide.model.compiled import BORROWING, compiled
from coincide.model.sides import LEFT, RIGHT
from coincide.model.span_bounds import EndBounds

T = TypeVar("T")


class Rule(Protocol):
    """Decides pairs: a NamedTuple of numbers, C-contiguous arrays and such tuples, annotated as such.

    Its methods are compiled into the kernels, and run as they are where nothing is compiled: they may
    call what `coincide.model.compiled` has made. `s` is always max_right - max_left, ticks, and `left` and
    `right` are the shapes of the two events, whichever of the two is the base.
    """

    def lean(self, side: int, shape: T) -> T:
        """How far an event's key is below its doubled max_time, half ticks; of a shape or an array."""

    def qualifies(self, s: int, left: int, right: int) -> bool:
        """Whether a pair meets the timing condition: the decision, wherever bands leave doubt."""

    def probability(self, s: int, left: int, right: int) -> float:
        """The satisfaction probability of a pair: float64."""

    def merit(self, s: int, left: int, right: int) -> float:
        """By what pairs that qualify are ranked: the satisfaction probability, of histograms rounded."""
        # Below 0 for a pair that does not qualify.

    def distance(self, s: int, left: int, right: int) -> np.uint64:
        """How far a pair is from the middle of the window, half ticks: the nearest of equals is best."""


class Times(Protocol):
    """Timestamps of one side: a NamedTuple of arrays, in host or in device memory."""

    def key_at(self, row: int) -> int:
        """The key of one event, half ticks, in a kernel."""

    def shape_at(self, row: int) -> int:
        """Its shape."""

    def keys(self) -> Any:
        """Keys of all events: int64 array, shape (n,), in the memory that the timestamps are in."""

    def shapes(self) -> Any:
        """Shapes of all events: int64 array, shape (n,)."""

    def of(self, rows: np.ndarray) -> Times:
        """The timestamps of some events, in host memory."""


class Events(Protocol):
    """Events of one side."""

    @property
    def times(self) -> Any:
        """Their `Times`, in host memory."""

    @property
    def group(self) -> np.ndarray | None:
        """Dense code of the event's keys, negative for none: int64 array, shape (n,); None: one group."""

    @property
    def groups(self) -> int:
        """Number of codes, above every code."""

    def __len__(self) -> int: ...


def group_codes(events: Events) -> np.ndarray:
    """The code of each event's keys, 0 where there is one group: int64 array, shape (n,)."""
    return np.zeros(len(events), np.int64) if events.group is None else events.group


class PairModel(Protocol):
    """The timestamps of two sides and the condition on them."""

    @property
    def rule(self) -> Any:
        """The `Rule`, its arrays in host memory."""

    def for_events(self, left: Events, right: Events) -> tuple[PairModel, Events, Events]:
        """The model for given events, and the events in the shapes that it knows: asked before a join."""

    def choose_classes(
        self, left: Population, right: Population, groups: int, classes: int | None
    ) -> tuple[ShapeClasses, ShapeClasses]:
        """Classes of both sides of a join, which hold every shape that occurs.

        Parameters
        ----------
        left, right : Population
        groups : int
            Number of codes of keys.
        classes : int or None
            Most classes a side; None: as many as pay.
        """

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """Bounds on the key of a target less that of a base event, by their classes.

        Parameters
        ----------
        base_side : int
        own, other : ShapeClasses
            K1 of base events, K2 of targets.

        Returns
        -------
        int64 array, shape (K1, K2, 4)
            As `coincide.model.bands.band_table`. Between inner low and inner high every pair qualifies;
            below outer low and above outer high none does.
        """

    def reach(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> tuple[int, int]:
        """Least and largest max_time of a target less that of a base event, if a pair can qualify."""
        # Ticks; of any shapes of these classes.


@runtime_checkable
class DecidedByEnds(Protocol):
    """A `PairModel` of intervals whose pairs may need no more than to begin and to end in time."""

    def end_bounds(self, left: Events, right: Events) -> EndBounds | None:
        """The bounds of these events; None where they do not suffice."""


_NUMBERS = {int: types.int64, float: types.float64, bool: types.boolean}


_METHODS = {
    **{"lean": "side shape", "qualifies": "s left right", "probability": "s left right"},
    **{"merit": "s left right", "distance": "s left right", "key_at": "row", "shape_at": "row"},
    # For `coincide.model.causality.deciding.PairRule`.
    **{"meets": "gap dh s left right", "chance": "gap dh s left right", "apart": "s left right"},
    **{"window_at": "distance2", "distance2_of": "gap dh", "distance_of": "gap dh"},
    # For `cpu_fallback.join.kernels.walk_block`.
    **{"take": "sides e row first inner shell last"},
    # For GPU kernels: `gpu_kernels.kernels.join`.
    **{"event_of": "entry", "takes": "event target"},
}
"""What kernels may call of named tuples, and the parameters."""


def _method(kind: Any, name: str) -> Callable[..., Any] | None:
    function = getattr(kind.instance_class, name, None)
    return None if function is None else _bare(function)


@cache
def _bare(function: FunctionType) -> FunctionType:
    """The function without annotations, which Numba would take for a part of its signature."""
    return FunctionType(
        function.__code__, function.__globals__, function.__name__, None, function.__closure__
    )


def teach(overload: Callable[..., Any], **options: Any) -> None:
    """Let a target of Numba find the methods of named tuples."""
    for name, parameters in _METHODS.items():
        found = _finder(name, ["self", *parameters.split()])
        overload(types.BaseNamedTuple, name, jit_options=options)(found)


def _finder(name: str, parameters: list[str]) -> Callable[..., Any]:
    """What finds a method by the types that it is called with: Numba reads the signature."""

    def found(kind: Any, *_: Any) -> Callable[..., Any] | None:
        return _method(kind, name)

    given = [Parameter(each, Parameter.POSITIONAL_OR_KEYWORD) for each in parameters]
    found.__signature__ = Signature(given)  # type: ignore[attr-defined]
    return found


teach(overload_method, forceinline=True, error_model="numpy", **BORROWING)


@compiled(forceinline=True)
def max_time_of(rule, side, key, shape):
    """The max_time of an event of a side, ticks."""
    return (key + rule.lean(side, shape)) >> 1


@compiled(forceinline=True)
def difference(rule, left_key, left_shape, right_key, right_shape):
    """The s of a pair: max_right - max_left, ticks."""
    left = left_key + rule.lean(LEFT, left_shape)
    return difference_from(rule, left, right_key, right_shape)


@compiled(forceinline=True)
def difference_from(rule, left, right_key, right_shape):
    """As `difference`, of a left event whose doubled max_time is known, half ticks."""
    return (right_key + rule.lean(RIGHT, right_shape) - left) >> 1


def numba_type(kind: type) -> Any:
    """The type by which Numba knows a NamedTuple, from its annotations."""
    hints = get_type_hints(kind, include_extras=True)
    fields = [_type_of(hints[name]) for name in kind._fields]  # type: ignore[attr-defined]
    return types.BaseTuple.from_types(fields, kind)


def _type_of(hint: Any) -> Any:
    if get_origin(hint) is Annotated:
        return get_args(hint)[1]
    if hint in _NUMBERS:
        return _NUMBERS[hint]
    if hasattr(hint, "_fields"):
        return numba_type(hint)
    raise TypeError(f"a field of a rule cannot be annotated as {hint!r}.")
