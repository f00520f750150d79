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

__all__ = [
    "BackendError",
    "CoincideError",
    "ConditionError",
    "CorrelateOptions",
    "DataError",
    "MemoryBudgetError",
    "SchemaError",
    "Tick",
    "TimingCondition",
    "Window",
    "Within",
    "deadline",
    "delay",
    "mutual_deadline",
    "within",
]
