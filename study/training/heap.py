"""Memory of the CPU that a step frees and the next one needs again."""

import ctypes
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""glibc's `mallopt` calls them so (malloc.h)."""
KEPT = 2**30


def keep_freed_memory() -> None:
    """Have the process keep freed memory, up to 1 GiB in one piece, instead of giving it back to the system.

    Each step of a trial needs the same large tensors. Without this glibc asks the system for them each time, and the
    system's clearing of pages is up to a fifth of a small network's step. The peak of memory stays. Without glibc
    nothing happens.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(TRIM_THRESHOLD, KEPT)
        mallopt(MMAP_THRESHOLD, KEPT)
