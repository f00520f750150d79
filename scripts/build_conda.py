"""Build the conda package of conda/recipe.yaml, from the channel that COINCIDE_CONDA_CHANNEL names."""

from __future__ import annotations

import os
import shutil
import sys
import urllib.request
from pathlib import Path

VARIABLE = "COINCIDE_CONDA_CHANNEL"
ROOT = Path(__file__).resolve().parents[1]
SECONDS = 10


def why_not(channel: str) -> str | None:
    """Why nothing can be built from a channel; None where it can."""
    if not channel:
        return f"{VARIABLE} is not set; it takes the address of the channel conda-forge"
    asked = urllib.request.Request(f"{channel}/noarch/repodata.json.zst", method="HEAD")
    try:
        with urllib.request.urlopen(asked, timeout=SECONDS):
            return None
    except OSError as error:
        return f"{channel} cannot be reached: {error}"


def main() -> int:
    """Build, or say plainly that nothing was built."""
    output = ROOT / "build" / "conda"
    shutil.rmtree(
        output, ignore_errors=True
    )  # a release takes what is there, which may be of older sources
    channel = os.environ.get(VARIABLE, "").rstrip("/")
    why = why_not(channel)
    if why is not None:
        print(f"conda package SKIPPED, not built: {why}")
        return 0
    from rattler_build import build_recipes

    build_recipes([ROOT / "conda" / "recipe.yaml"], channel=[channel], output_dir=output)
    built = sorted(output.glob("noarch/coincide-*"))
    print(f"conda package built: {', '.join(map(str, built))}")
    return 0 if built else 1


if __name__ == "__main__":
    sys.exit(main())
