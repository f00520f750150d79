"""The vocabulary of Coincide: time, timestamps, predicates, conditions, and the formulas on them."""

from event_model.condition import TimingCondition, Window
from event_model.errors import (
    BackendError,
    CoincideError,
    ConditionError,
    DataError,
    MemoryBudgetError,
    SchemaError,
)
from event_model.options import CorrelateOptions
from event_model.predicates import Within, deadline, delay, mutual_deadline, within
from event_model.units import Tick
from event_model.warnings import (
    CoincideWarning,
    DroppedRowsWarning,
    NoPairsWarning,
    RoundedTimesWarning,
    UnmatchableRowsWarning,
)

__all__ = [
    "BackendError",
    "CoincideError",
    "CoincideWarning",
    "ConditionError",
    "CorrelateOptions",
    "DataError",
    "DroppedRowsWarning",
    "MemoryBudgetError",
    "NoPairsWarning",
    "RoundedTimesWarning",
    "SchemaError",
    "Tick",
    "TimingCondition",
    "UnmatchableRowsWarning",
    "Window",
    "Within",
    "deadline",
    "delay",
    "mutual_deadline",
    "within",
]
