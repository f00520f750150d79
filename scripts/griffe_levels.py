"""Puts the level of each public name next to its heading in the reference; `mkdocs.yml` names this file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from griffe import Extension, Object

_ROOT = Path(__file__).resolve().parent.parent
_LEVELS = tomllib.loads((_ROOT / "docs" / "reference" / "levels.toml").read_text("utf-8"))
_LEVEL_OF = {name: level for level, names in _LEVELS.items() for name in names}


class Levels(Extension):
    """Makes the level a label of what a module defines under a public name."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Label one object."""
        parent = obj.parent
        if obj.name in _LEVEL_OF and not obj.is_module and parent is not None and parent.is_module:
            obj.labels.add(_LEVEL_OF[obj.name])
