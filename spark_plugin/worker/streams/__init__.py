"""Streams of tables: events by keys, pushed as they arrive, joined block by block."""
