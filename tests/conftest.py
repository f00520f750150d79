"""What all tests share: where Numba caches, how Hypothesis runs, and the seismic picks."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
COMPILED_PACKAGES = ("event_model", "cpu_fallback", "spark_plugin", "gpu_kernels")


def _numba_cache() -> Path:
    """A folder per state of the sources: Numba does not see that an inlined callee changed."""
    digest = hashlib.sha256()
    for package in COMPILED_PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return ROOT / ".cache" / f"numba-{digest.hexdigest()[:16]}"


# Numba reads this when it is first imported, so it stands before any test module.
os.environ.setdefault("NUMBA_CACHE_DIR", str(_numba_cache()))

# No deadline: the first example may have to wait for the compiler.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


class SeismicPicks(NamedTuple):
    """Picks of one day by two pickers, times widened by phase."""

    stalta: pa.Table
    phasenet: pa.Table


@pytest.fixture(scope="session")
def seismic() -> SeismicPicks:
    folder = ROOT.parent / "shared" / "data" / "seismic_italy"
    files = [folder / f"{picker}_picks.parquet" for picker in SeismicPicks._fields]
    missing = [file.name for file in files if not file.exists()]
    if missing:
        pytest.skip(f"the seismic picks are not here: {', '.join(missing)}")
    return SeismicPicks(*(pq.read_table(file) for file in files))
