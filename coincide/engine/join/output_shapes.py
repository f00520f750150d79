"""From a finished join to Arrow batches: a class for each shape of output."""

import pyarrow as pa

from coincide.engine.events.sides import Side
from coincide.engine.join.emission import Best, Counts, Emission, LeftRows, Lists, Pairs
from coincide.engine.join.matched import Chosen, Mutual, Optimal, Unambiguous
from coincide.engine.join.spec import AnySpec
from coincide.model.match_choice import Matching
from coincide.model.options import Emit

_SHAPES: dict[Emit, type[Emission]] = {
    "pairs": Pairs,
    "lists": Lists,
    "counts": Counts,
    "best": Best,
}
_MATCHINGS: dict[Matching, type[Emission]] = {
    "mutual": Mutual,
    "optimal": Optimal,
    "unambiguous": Unambiguous,
}


def emission_of(left: Side, right: Side, spec: AnySpec, schema: pa.Schema) -> Emission:
    """The output batches of one join of two sides, in the columns of `output_schema`."""
    return _shape_of(spec)(spec.pairing(left, right), schema)


def _shape_of(spec: AnySpec) -> type[Emission]:
    if spec.one_row_per_event:
        return LeftRows
    if spec.matching is not None:
        return _MATCHINGS[spec.matching]
    if spec.emit == "best" and not spec.choice.is_most_probable:
        return Chosen
    return _SHAPES[spec.emit]
