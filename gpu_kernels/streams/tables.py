"""What a correlator knows of regions and of the decision, in device memory."""

from __future__ import annotations

from typing import Any, NamedTuple

from coincide.streams.shared import Regions, Rules
from gpu_kernels.device.arrays import on_device, tuple_on_device


class Tables(NamedTuple):
    """`Regions` and the rule in device memory, the former by base side, and those that they are a copy of.

    Parameters
    ----------
    source : Regions
    rule : NamedTuple
        `Rules.pair_rule`.
    bands, tops, target_tops, keep : lists of arrays
        Of `Regions`.
    """

    source: Regions
    rule: Any
    bands: list[Any]
    tops: list[Any]
    target_tops: list[Any]
    keep: list[Any]

    @classmethod
    def of(cls, regions: Regions, rules: Rules) -> Tables:
        """Copies."""
        fields = ([on_device(table) for table in field] for field in regions)
        return cls(regions, tuple_on_device(rules.pair_rule), *fields)
