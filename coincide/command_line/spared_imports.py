"""What PyArrow and Numba load where it is installed, though no command uses it: a third of a small join."""

from __future__ import annotations

import os
import sys

_ASKED_BY = {
    "scipy": ("numba", "numba.np.arraymath"),
    "cffi": ("numba.core.typing.cffi_utils",),
    "yaml": ("numba.core.config",),
}
"""Who asks for a package while it is itself being loaded, and does without. Others get it."""


class SparedImports:
    """A finder for `sys.meta_path` by which those packages are not there for those who ask."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raise for a package that is spared; leave others to the finders that follow."""
        if name == "pandas":  # PyArrow asks with its first array; pyspark may need it
            spared = "pyspark" not in sys.modules
        else:
            spared = any(map(_is_being_loaded, _ASKED_BY.get(name, ())))
        if name == "yaml" and os.path.exists(".numba_config.yaml"):  # which Numba reads
            spared = False
        if spared:
            raise ModuleNotFoundError(f"{name} is not loaded in commands", name=name)


def _is_being_loaded(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))
