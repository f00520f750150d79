"""Warnings in the name of who called us."""

from __future__ import annotations

import sys
import warnings

from coincide.warnings import CoincideWarning

_OURS = ("coincide", "cpu_fallback", "gpu_kernels", "spark_plugin")


def warn(text: str, kind: type[CoincideWarning]) -> None:
    """Warn, in the name of the line outside this package that called it."""
    level, frame = 1, sys._getframe()
    while (
        frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS
    ):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, kind, stacklevel=level)
