"""Differential fuzzing: every way of joining against the reference, case by numbered case."""
