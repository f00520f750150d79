"""Numbers of things in messages."""

from __future__ import annotations


def several(count: int, thing: str) -> str:
    """``0 rows``, ``1 row``, ``1,200 rows``."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
