"""Causality through a bounded window: Arrow tables in, pairs out."""
