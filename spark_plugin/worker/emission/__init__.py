"""From a finished join to Arrow batches: a class for each shape of output."""

from functools import singledispatch
from types import ModuleType

import pyarrow as pa

from coincide.options import Emit
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.backends.devices import load_task_backend
from spark_plugin.worker.emission.best import Best
from spark_plugin.worker.emission.chosen import Chosen
from spark_plugin.worker.emission.emission import Emission
from spark_plugin.worker.emission.lists import Lists
from spark_plugin.worker.emission.matched import LocalBests, LocalFew, Mutual, Unambiguous
from spark_plugin.worker.emission.optimal import Optimal
from spark_plugin.worker.emission.pairs import Pairs
from spark_plugin.worker.emission.rows import Counts, LeftRows
from spark_plugin.worker.emission.spec import AnySpec, JoinSpec
from spark_plugin.worker.emission.stream_sides import of_stream

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
