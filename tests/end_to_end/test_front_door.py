"""`import coincide`: every public name, loaded when it is first used."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

import coincide


def test_every_name_is_there() -> None:
    assert dir(coincide) == sorted(coincide.__all__)
    for name in coincide.__all__:
        assert getattr(coincide, name) is not None
    assert coincide.correlate.__module__ == "spark_plugin.operators.join"


def test_no_module_hides_a_name() -> None:
    """Python makes a module an attribute of its package when it is imported, whatever was there."""
    modules = {module.name for module in pkgutil.iter_modules(coincide.__path__)}
    assert not modules.intersection(coincide.__all__)


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'corelate'"):
        _ = coincide.corelate


def test_importing_it_loads_no_room_but_its_own() -> None:
    program = (
        "import sys, coincide; coincide.TimingCondition(coincide.within(-2, 2), 0.5);"
        " heavy = {'pyspark', 'numba.cuda', 'cupy', 'spark_plugin', 'cpu_fallback', 'gpu_kernels'};"
        " assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
