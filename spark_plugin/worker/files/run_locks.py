"""Which runs live: each keeps a file in its folder locked, which the kernel unlocks when it ends."""

from __future__ import annotations

import fcntl
import os

_NAME = "lock"


def lock_if_free(folder: str) -> int | None:
    """Lock a run's folder.

    Parameters
    ----------
    folder : str
        On a file system of this machine.

    Returns
    -------
    int or None
        A descriptor, whose closing unlocks; None if the folder's run lives. On a mount without locks
        none is ever taken.

    Raises
    ------
    OSError
        If the folder is gone, or another user's.
    """
    lock = os.open(os.path.join(folder, _NAME), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except OSError:
        pass  # a mount without locks
    return lock


def is_held(lock: int, folder: str) -> bool:
    """Whether a descriptor is of the file that others will look at, which may have been removed."""
    try:
        return os.path.samestat(os.fstat(lock), os.stat(os.path.join(folder, _NAME)))
    except FileNotFoundError:
        return False
