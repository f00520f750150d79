"""How many partners events have, at a few confidences."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.sides import SIDES
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.emission import emission_of
from spark_plugin.worker.emission.spec import JoinSpec
from spark_plugin.worker.exploration.candidates import at_confidence

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
        Columns ``side`` (left or right), ``confidence`` (float64), ``partners`` (one of `LABELS`) and
        ``events`` (int64); rows without events are there, too.
    """
    rows: list[dict[str, Any]] = []
    ways = (left, right, spec), (right, left, mirrored(spec))
    for side, (own, other, condition) in zip(SIDES, ways, strict=True):
        for confidence in confidences:
            each = at_confidence(condition, confidence)
            counts = emission_of(own, other, each, pa.schema([]), backend).join.counts
            groups = np.searchsorted(_LEAST, counts, side="right") - 1
            events = np.bincount(groups, minlength=_LEAST.size).tolist()
            rows += [
                {"side": side, "confidence": confidence, "partners": label, "events": number}
                for label, number in zip(LABELS, events, strict=True)
            ]
    kinds = [pa.string(), pa.float64(), pa.string(), pa.int64()]
    names = ("side", "confidence", "partners", "events")
    return pa.Table.from_pylist(rows, pa.schema(list(zip(names, kinds, strict=True))))


def mirrored(spec: JoinSpec) -> JoinSpec:
    """The join seen from the right side."""
    return spec.but(window=spec.window.mirrored(), models=spec.models[::-1])
