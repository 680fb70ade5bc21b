"""Starts Warp, finds a place for what it compiles where the usual one cannot be written, and replaces files there that
are broken."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import warp as wp

from lissom.errors import CacheWarning

_ROOM = 2**21  # [B] that a module may take
_TRIES = 4  # to load a module, while other processes replace the same broken files
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


def load_whole(module: Any, make: Callable[[], Any]) -> None:
    """Load a module by a function of Warp that compiles what the cache has not.

    What the cache has of the module and cannot be loaded is removed and compiled again. Where the cache cannot be
    written, a folder of this process takes its place. A CacheWarning says so, with the path.

    Raises:
        OSError: there is no room anywhere, and what to set. Exception: what Warp says of a module that cannot be
        compiled.
    """
    told: list[str] = []
    for _ in range(_TRIES):
        before = _in_cache(module)
        try:
            make()
            break
        except Exception as error:  # Warp raises bare ones, for a full disk and for a broken file alike
            if not can_be_kept(Path(str(wp.config.kernel_cache_dir))):
                told.append(_moved(error))
            elif not before:
                raise
            elif _in_cache(module) == before:  # or another process has replaced it meanwhile
                told.append(_removed(before, error))
            module.mark_modified()  # or the failure is remembered
    else:
        make()
    for text in dict.fromkeys(told):
        _tell(text)


def clear(module: Any) -> None:
    """Remove what the cache has of a module.

    Raises:
        OSError: it cannot be removed.
    """
    for path in _in_cache(module):
        _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _in_cache(module: Any) -> dict[Path, list[tuple[str, int, int]]]:
    """What the cache has of a module, by folder: its files, with what tells them from files that replace them."""
    cache, name = Path(str(wp.config.kernel_cache_dir)), re.compile(f"wp_{re.escape(module.name)}_[0-9a-f]{{7}}")
    found: dict[Path, list[tuple[str, int, int]]] = {}
    with suppress(OSError):  # another process removes it
        for path in sorted(cache.iterdir()):
            if name.fullmatch(path.name):
                files = sorted(path.iterdir()) if path.is_dir() else [path]
                found[path] = [(file.name, file.lstat().st_ino, file.lstat().st_mtime_ns) for file in files]
    return found


def _removed(files: dict[Path, Any], error: Exception) -> str:
    """Remove what cannot be loaded; what is to be told."""
    where = ", ".join(map(str, files))
    try:
        for path in files:
            _remove(path)
    except OSError as why:
        return _moved(why)
    return f"kernels in {where} cannot be loaded ({error}): they are removed and compiled again"


def _moved(error: Exception) -> str:
    what, here = f"kernels cannot be kept ({error})", Path(tempfile.mkdtemp(prefix="lissom-kernels-"))
    if not can_be_kept(here):
        raise OSError(f"{what}, nor in {here}; {_REMEDY}") from error
    wp.config.kernel_cache_dir = str(here)
    return f"{what}: this process compiles them for itself; {_REMEDY}"
