"""Starts Warp, and finds a place for what it compiles where the usual one cannot be written."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path

import warp as wp

from lissom.errors import CacheWarning

_ROOM = 2**21  # [B] that a module may take
_REMEDY = "set WARP_CACHE_PATH to a folder that can be written and has room for some 20 MB"


def start_warp() -> None:
    """Start Warp without its greeting and without the note that a machine has no CUDA driver.

    The note is written by native code straight to file descriptor 2, which is therefore turned aside meanwhile.
    """
    if wp.config.log_level == wp.LOG_INFO:
        wp.config.log_level = wp.LOG_WARNING
    try:
        saved = os.dup(2)
    except OSError:  # the process has no standard error to protect
        _tell(_start())
        return
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 2)
    try:
        told = _start()
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(sink)
    _tell(told)


def _start() -> str:
    """Start Warp; what is to be told."""
    try:
        wp.init()
    except OSError as error:
        told = _moved(error)
        wp.init()
        return told
    return ""


def _tell(told: str) -> None:
    if told:
        warnings.warn(told, CacheWarning, stacklevel=3)


def can_be_kept(folder: Path) -> bool:
    """Whether a folder takes a file as large as that of a module."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_ROOM))
            file.flush()
    except OSError:
        return False
    return True


def keep_elsewhere(error: Exception) -> None:
    """Keep what is compiled in a folder of this process, and tell so.

    Raises:
        OSError: there is no room there either, and what to set.
    """
    _tell(_moved(error))


def _moved(error: Exception) -> str:
    what, here = f"kernels cannot be kept ({error})", Path(tempfile.mkdtemp(prefix="lissom-kernels-"))
    if not can_be_kept(here):
        raise OSError(f"{what}, nor in {here}; {_REMEDY}") from error
    wp.config.kernel_cache_dir = str(here)
    return f"{what}: this process compiles them for itself; {_REMEDY}"
