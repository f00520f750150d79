"""What a checkpoint depends on: every argument, but for those that are named as no part of it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

FORMAT = 6
"""The version of settings and of what streams remember; another one cannot go on."""


def told(arguments: Any, but: Collection[str] = ()) -> dict[str, Any]:
    """The fields of arguments and their values, so that a new one is part of it until it is named."""
    names = [each.name for each in fields(arguments)]
    assert set(but) <= set(names), set(but) - set(names)
    return {name: getattr(arguments, name) for name in names if name not in but}


def as_bytes(settings: Mapping[str, Any]) -> bytes:
    """Settings as they are kept, and held against those of a later start."""
    return json.dumps({"format": FORMAT, **settings}, sort_keys=True, default=repr).encode()
