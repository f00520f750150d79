"""Which stream correlators a GPU has."""

from __future__ import annotations

from coincide.model.errors import BackendError, argument

ALGORITHMS = ("lazy", "classes")
"""Those whose block step runs on a GPU."""


def check_algorithm(name: str) -> None:
    """Refuse an algorithm that only the CPU has."""
    if name not in ALGORITHMS:
        raise BackendError(
            f"the GPU has no stream correlator {name!r}, as a look-up table gains nothing there."
            f" Use 'classes' or 'lazy', or {argument('backend', 'cpu')}."
        )
