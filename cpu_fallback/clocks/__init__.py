"""The error of a clock from the events themselves, on the CPU."""

from cpu_fallback.clocks.estimate import clock_error

__all__ = ["clock_error"]
