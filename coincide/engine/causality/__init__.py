"""Causes and effects of tables."""
