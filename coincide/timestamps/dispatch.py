"""How kernels call the methods of a model's named tuples: by their type, when they are compiled.

A kernel writes ``rule.qualifies(s, left, right)``. Compiled, that is the function of the tuple's class,
inlined; so a kernel is compiled once for each type of rule, and at run time nothing chooses. Where
nothing is compiled, such as in the CUDA simulator, it is Python's own call. A new model needs no entry
here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from numba import types
from numba.extending import overload_method

from coincide.array_owners import BORROWING
from coincide.compiled import compiled
from coincide.sides import LEFT, RIGHT

_NUMBERS = {int: types.int64, float: types.float64, bool: types.boolean}


def lean(self, side, shape):
    """`Rule.lean` of a type of rule; so are those that follow, of `Rule` and `Times`."""
    return _method(self, "lean")


def qualifies(self, s, left, right):  # noqa: D103
    return _method(self, "qualifies")


def probability(self, s, left, right):  # noqa: D103
    return _method(self, "probability")


def merit(self, s, left, right):  # noqa: D103
    return _method(self, "merit")


def distance(self, s, left, right):  # noqa: D103
    return _method(self, "distance")


def meets(self, gap, dh, s, left, right):
    """`coincide.cause_and_effect.rule.PairRule.meets` of a type of rule."""
    return _method(self, "meets")


def chance(self, gap, dh, s, left, right):  # noqa: D103
    return _method(self, "chance")


def apart(self, s, left, right):  # noqa: D103
    return _method(self, "apart")


def window_at(self, distance2):  # noqa: D103
    return _method(self, "window_at")


def distance2_of(self, gap, dh):  # noqa: D103
    return _method(self, "distance2_of")


def distance_of(self, gap, dh):  # noqa: D103
    return _method(self, "distance_of")


def key_at(self, row):  # noqa: D103
    return _method(self, "key_at")


def shape_at(self, row):  # noqa: D103
    return _method(self, "shape_at")


def event_of(self, entry):
    """Of GPU kernels, as `takes`: `gpu_kernels.kernels.layout`."""
    return _method(self, "event_of")


def takes(self, event, target):  # noqa: D103
    return _method(self, "takes")


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
    """Let a target of Numba find the methods of named tuples.

    Parameters
    ----------
    overload : callable
        The target's `overload_method`.
    **options
        Of its compiler.
    """
    for method in (
        lean,
        qualifies,
        probability,
        merit,
        distance,
        meets,
        chance,
        apart,
        window_at,
        distance2_of,
        distance_of,
        key_at,
        shape_at,
        event_of,
        takes,
    ):
        overload(types.BaseNamedTuple, method.__name__, jit_options=options)(method)


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
    """The type by which Numba knows a NamedTuple, from its annotations.

    Parameters
    ----------
    kind : type
        Its fields are annotated as int, float, bool, as another such NamedTuple, or as
        ``Annotated[np.ndarray, type]`` with the array's type.
    """
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
    raise TypeError(f"a field of a rule cannot be annotated as {hint!r}")
