"""Build the conda package of conda/recipe.yaml, where the channel conda-forge can be reached."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from pathlib import Path

CHANNEL = "https://conda.anaconda.org/conda-forge"
ROOT = Path(__file__).resolve().parents[1]
SECONDS = 10


def unreachable() -> str | None:
    """Why the channel cannot be reached; None where it can."""
    asked = urllib.request.Request(f"{CHANNEL}/noarch/repodata.json.zst", method="HEAD")
    try:
        with urllib.request.urlopen(asked, timeout=SECONDS):
            return None
    except (urllib.error.URLError, OSError) as error:
        return str(error)


def main() -> int:
    """Build, or say plainly that nothing was built."""
    why = unreachable()
    if why is not None:
        print(f"conda package SKIPPED, not built: {CHANNEL} cannot be reached ({why})")
        return 0
    from rattler_build import build_recipes

    output = ROOT / "build" / "conda"
    build_recipes([ROOT / "conda" / "recipe.yaml"], channel=["conda-forge"], output_dir=output)
    built = sorted(output.glob("noarch/coincide-*"))
    print(f"conda package built: {', '.join(map(str, built))}")
    return 0 if built else 1


if __name__ == "__main__":
    sys.exit(main())
