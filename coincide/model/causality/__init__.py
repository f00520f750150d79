"""Causes and effects in space and time."""
