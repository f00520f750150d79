"""From a finished join to Arrow batches: a class for each shape of output."""

from functools import singledispatch
from types import ModuleType

import pyarrow as pa

from coincide.engine.backends import load_task_backend
from coincide.engine.events.sides import Side
from coincide.engine.join.emission import Best, Counts, Emission, LeftRows, Lists, Pairs
from coincide.engine.join.matched import Chosen, LocalBests, LocalFew, Mutual, Optimal, Unambiguous
from coincide.engine.join.one_stream import of_stream
from coincide.engine.join.spec import AnySpec, JoinSpec
from coincide.model.options import Emit

_SHAPES: dict[Emit, type[Emission]] = {
    "pairs": Pairs,
    "lists": Lists,
    "counts": Counts,
    "best": Best,
}


def emission_of(
    left: Side, right: Side, spec: JoinSpec, schema: pa.Schema, backend: ModuleType
) -> Emission:
    """The output batches of one join of two sides; parameters as of `Emission`."""
    return _shape_of(spec)(*of_stream(left, right, spec), schema, backend)


def _shape_of(spec: JoinSpec) -> type[Emission]:
    if spec.one_row_per_event:
        return LeftRows
    if spec.partners.matching == "mutual":
        return LocalBests if spec.merits else Mutual
    if spec.partners.matching == "unambiguous":
        return LocalFew if spec.merits else Unambiguous
    if spec.partners.matching == "optimal":
        return Optimal
    if spec.emit == "best" and not spec.partners.is_most_probable:
        return Chosen
    return _SHAPES[spec.emit]


@singledispatch
def task_emission(spec: AnySpec, left: Side, right: Side, schema: pa.Schema) -> Emission:
    """The output batches of one join in a Spark task; each kind of condition registers its own."""
    raise NotImplementedError(spec)


@task_emission.register
def _(spec: JoinSpec, left: Side, right: Side, schema: pa.Schema) -> Emission:
    return emission_of(left, right, spec, schema, load_task_backend(spec.backend))
