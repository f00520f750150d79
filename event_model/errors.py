"""The one tree of errors. Each is also the built-in that a caller would expect."""


class CoincideError(Exception):
    """Base of every error that Coincide raises on purpose."""


class SchemaError(CoincideError, TypeError):
    """A column is missing, or has a type that cannot mean what was asked of it."""


class ConditionError(CoincideError, ValueError):
    """A predicate, threshold, duration or option that makes no sense."""


class DataError(CoincideError, ValueError):
    """Rows that cannot be joined: min > max, NaN, a time out of range."""


class BackendError(CoincideError, RuntimeError):
    """The asked-for backend is not here."""


class MemoryBudgetError(CoincideError, MemoryError):
    """The work does not fit the memory that the options allow."""
