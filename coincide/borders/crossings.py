"""A border-crossing event (Definition 2 of the BMQ paper), as numbers and as words."""

from __future__ import annotations

OUT, IN = 0, 1
"""Kind of a crossing in arrays: the stream left the query's range, or entered it."""

EVENTS = ("O", "I")
"""The word for each kind, in column `event`."""
