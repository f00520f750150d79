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
    source_rule : NamedTuple
    rule : NamedTuple
        `Rules.pair_rule`.
    bands, tops, target_tops, keep : lists of arrays
        Of `Regions`.
    """

    source: Regions
    source_rule: Any
    rule: Any
    bands: list[Any]
    tops: list[Any]
    target_tops: list[Any]
    keep: list[Any]

    @classmethod
    def of(cls, regions: Regions, rules: Rules) -> Tables:
        """Copies."""
        fields = ([on_device(table) for table in field] for field in regions)
        return cls(regions, rules.pair_rule, tuple_on_device(rules.pair_rule), *fields)

    def are_of(self, regions: Regions, rules: Rules) -> bool:
        """Whether these are copies of what is given: a rule is another one when its table has grown."""
        return self.source is regions and self.source_rule is rules.pair_rule
