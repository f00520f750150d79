"""How many partners events have, at a few confidences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.sides import SIDES
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.emission import emission_of
from spark_plugin.worker.emission.spec import JoinSpec
from spark_plugin.worker.exploration.candidates import at_confidence
from spark_plugin.worker.pair_arguments import EVENT

_LEAST = np.array([0, 1, 2, 3, 4, 5, 6, 11, 101, 1001])
LABELS = ("0", "1", "2", "3", "4", "5", "6–10", "11–100", "101–1000", "> 1000")
"""Numbers of partners, in groups."""


def partner_table(
    left: Side, right: Side, spec: JoinSpec, confidences: Sequence[float], backend: ModuleType
) -> pa.Table:
    """Events by the number of their partners. Nothing but numbers of pairs is computed.

    Parameters
    ----------
    left, right : Side
        All events; invalid rows are none.
    spec : JoinSpec
    confidences : sequence of float
    backend : module

    Returns
    -------
    pa.Table
        Columns ``side`` (left or right; event, of one stream), ``confidence`` (float64), ``partners`` (one
        of `LABELS`) and ``events`` (int64); rows without events are there, too.
    """
    rows: list[dict[str, Any]] = []
    for side, partners in _ways(left, right, spec, backend):
        for confidence in confidences:
            counts = partners(confidence)
            groups = np.searchsorted(_LEAST, counts, side="right") - 1
            events = np.bincount(groups, minlength=_LEAST.size).tolist()
            rows += [
                {"side": side, "confidence": confidence, "partners": label, "events": number}
                for label, number in zip(LABELS, events, strict=True)
            ]
    kinds = [pa.string(), pa.float64(), pa.string(), pa.int64()]
    names = ("side", "confidence", "partners", "events")
    return pa.Table.from_pylist(rows, pa.schema(list(zip(names, kinds, strict=True))))


def _ways(
    left: Side, right: Side, spec: JoinSpec, backend: ModuleType
) -> list[tuple[str, Callable[[float], np.ndarray]]]:
    """For each side what counts the partners of its events at a confidence."""

    def join_of(own: Side, other: Side, spec: JoinSpec, confidence: float) -> Any:
        each = at_confidence(spec, confidence)
        return emission_of(own, other, each, pa.schema([]), backend).join

    if spec.is_one_stream:
        others = spec.but(pairs_once=False)
        return [(EVENT, lambda ct: join_of(left, right, others, ct).counts)]
    if spec.where is not None:
        # The condition knows which side is left.
        return [
            (SIDES[0], lambda ct: join_of(left, right, spec, ct).counts),
            (SIDES[1], lambda ct: _of_right(join_of(left, right, spec, ct), spec.batch_pairs)),
        ]
    return [
        (SIDES[0], lambda ct: join_of(left, right, spec, ct).counts),
        (SIDES[1], lambda ct: join_of(right, left, mirrored(spec), ct).counts),
    ]


def _of_right(join: Any, batch_pairs: int) -> np.ndarray:
    """Partners of each right event, in order of their positions: int64 array, shape (n_right,)."""
    positions = np.arange(join.right_order.size)
    found = np.zeros(positions.size, np.int64)
    for start, stop in join.chunks(batch_pairs):
        right = join.partners(start, stop, positions)
        if right.size:
            first = int(right.min())
            counts = np.bincount(right - first)
            found[first : first + counts.size] += counts
    return found


def mirrored(spec: JoinSpec) -> JoinSpec:
    """The join seen from the right side."""
    return spec.but(window=spec.window.mirrored(), models=spec.models[::-1])
