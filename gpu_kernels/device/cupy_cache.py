"""A folder for the kernels that CuPy compiles."""

from __future__ import annotations

import os
import tempfile

from coincide.kernel_cache import is_writable

_VARIABLE = "CUPY_CACHE_DIR"


def let_cupy_cache() -> None:
    """See to a folder for CuPy's kernels: without one it cannot even be imported.

    The users of containers often have no home.
    """
    if _VARIABLE in os.environ or is_writable(os.path.expanduser("~/.cupy/kernel_cache")):
        return
    user = os.getuid()
    folder = os.path.join(tempfile.gettempdir(), f"cupy-{user}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    # What is loaded from there runs on the GPU: it must be this user's own.
    mine = os.stat(folder).st_uid == user and is_writable(folder)
    os.environ[_VARIABLE] = folder if mine else tempfile.mkdtemp(prefix="cupy-")
