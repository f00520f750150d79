"""Which experiments there are: every module of `bench.experiments` that has an `EXPERIMENT`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import bench.experiments
from bench.experiment import Experiment


@cache
def experiments() -> dict[str, Experiment]:
    """The experiments by name, which is the name of their file."""
    found = {}
    for module in iter_modules(bench.experiments.__path__):
        home = import_module(f"{bench.experiments.__name__}.{module.name}")
        experiment = getattr(home, "EXPERIMENT", None)
        if experiment is not None:
            found[module.name.replace("_", "-")] = experiment
    return found
