"""Joins event streams whose clocks cannot be trusted. Every public name of Coincide is found here.

Names are loaded when first used: `import coincide` needs neither Spark nor a GPU, nor does what is done
without them. Where PySpark is missing, a name of Spark says so when it is used, and
``from coincide import *`` skips it. ``__init__.pyi`` lists the names, for type checkers and for this
module.
"""

import ast
import os
from importlib import import_module
from typing import Any


def _homes() -> dict[str, str]:
    """For each public name the module that holds it, as the stub imports them."""
    # The loader reads from zip archives as well.
    text = __loader__.get_data(os.path.join(os.path.dirname(__file__), "__init__.pyi"))
    imports = [node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


_HOMES = _homes()
_OF_SPARK = {name for name, home in _HOMES.items() if home.startswith("spark_plugin.")}
_SPARK_NEEDS = "pyspark", "pandas"


def _usable() -> list[str]:
    """The names that can be loaded here."""
    from importlib.util import find_spec

    hidden = set() if all(map(find_spec, _SPARK_NEEDS)) else _OF_SPARK
    return sorted([*(_HOMES.keys() - hidden), "__version__"])


__all__ = _usable()


def __getattr__(name: str) -> Any:
    if name == "__version__":
        found: Any = _version()
    elif name in _HOMES:
        if name in _OF_SPARK:
            _require_spark()
        found = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("coincide")
    except PackageNotFoundError:  # run from its sources, such as a zip archive of them
        return "unknown"


def _require_spark() -> None:
    from coincide.model.extras import SPARK, require

    require(SPARK, *_SPARK_NEEDS)


def __dir__() -> list[str]:
    return __all__
