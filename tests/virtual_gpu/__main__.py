"""Print the environment of a virtual GPU, for a shell to evaluate."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path

from tests.virtual_gpu import environment

if __name__ == "__main__":
    log = Path(tempfile.gettempdir()) / "virtual-gpu.log"
    for name, value in environment(log).items():
        print(f"export {name}={shlex.quote(value)}")
