"""Causality through a bounded window."""
