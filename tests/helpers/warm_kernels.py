"""``coincide doctor --warm``, and then one line: how many signatures each compiled function has, as JSON.

CI runs this before all tests: else each worker, and each process that tests start, would compile its own.
"""

from __future__ import annotations

import importlib
import json
import pkgutil

from numba.core.dispatcher import Dispatcher

import coincide.model
import cpu_fallback
from coincide.command_line import doctor


def main() -> None:
    assert doctor.run(warm=True) == 0
    kernels = {}
    for package in (coincide.model, cpu_fallback):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            for name, each in vars(module).items():
                if isinstance(each, Dispatcher) and each.py_func.__module__ == found.name:
                    kernels[f"{found.name}.{name}"] = len(each.signatures)
    print(json.dumps(kernels))


if __name__ == "__main__":
    main()
