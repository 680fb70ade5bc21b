"""Start of Warp, and its folder of compiled kernels: another folder if the usual one cannot be written, and recovery
from broken files."""

from __future__ import annotations

import atexit
import errno
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
from lissom.portable import cores_of_process, is_own_folder

_ROOM = 2**22  # largest size of a module, and of Warp's headers [B]
_MEMORY = "/dev/shm"  # a folder in memory, if the system has one
_TRIES = 4  # attempts to load a module while other processes replace the same broken files
_REMEDY = "set WARP_CACHE_PATH to a folder that can be written and has room for some {} MB"
_own: dict[Path, Path] = {}  # folders of this process in place of caches that others can write


def start_warp() -> None:
    """Start Warp without its greeting and without the note that a machine has no CUDA driver.

    Native code writes the note to file descriptor 2, which is therefore redirected during the start.
    """
    if wp.config.log_level == wp.LOG_INFO:
        wp.config.log_level = wp.LOG_WARNING
    try:
        saved = os.dup(2)
    except OSError:  # the process has no standard error
        _warn(_start())
        return
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 2)
    try:
        text = _start()
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(sink)
    _warn(text)


def _start() -> str:
    """Start Warp. Returns the text of a warning, or an empty text."""
    try:
        wp.init()
    except OSError as error:
        text = _moved(error)
        wp.init()
        return text
    return ""


def _warn(text: str) -> None:
    if text:
        warnings.warn(text, CacheWarning, stacklevel=3)


def cache_folder(name: str) -> Path:
    """The folder of a cache, beside that of Warp's kernels. Code in it runs, so that only this user may write it. If
    others can, a folder of this process takes its place, and a CacheWarning says so once."""
    folder = Path(str(wp.config.kernel_cache_dir)).parent / name
    if is_own_folder(folder):
        return folder
    if folder not in _own:
        _own[folder] = temporary_folder()
        text = f"{folder} belongs to another user: this process has a cache of its own; set WARP_CACHE_PATH"
        warnings.warn(f"{text} to a folder that only you can write", CacheWarning, stacklevel=2)
    return _own[folder]


def can_be_kept(folder: Path) -> bool:
    """Whether a folder has room for the modules that are compiled at the same time. The compiler ends the process on a
    full disk."""
    try:
        if shutil.disk_usage(folder).free < _room():
            return False
        with tempfile.TemporaryFile(dir=folder) as file:  # users may have less room than the disk
            file.write(bytes(_ROOM))
            file.flush()
    except OSError:
        return False
    return True


def place_with_room() -> Path:
    """A folder for temporary files that has room for the compiler's: the usual one, or one in memory.

    Raises:
        OSError: neither has room; what to set.
    """
    usual = tempfile.gettempdir()
    for folder in (Path(usual), Path(_MEMORY)):
        if can_be_kept(folder):
            return folder
    where = f"{usual}, nor in {_MEMORY}" if os.path.isdir(_MEMORY) else usual
    raise OSError(errno.ENOSPC, f"code cannot be compiled: there is no room in {where}; set TMPDIR")


def temporary_folder(place: Path | None = None) -> Path:
    """A new folder that only this user can read, in a place or the usual one. It is removed at the end of the
    process."""
    made, process = Path(tempfile.mkdtemp(prefix="lissom-", dir=place)), os.getpid()
    atexit.register(lambda: os.getpid() == process and shutil.rmtree(made, ignore_errors=True))
    return made


def load_whole(module: Any, make: Callable[[], Any], compiles: bool = True) -> None:
    """Load a module by a function `make` of Warp, which compiles kernels that are not in the cache.

    Files of the module in the cache that cannot be loaded are removed and compiled again. If the cache cannot be
    written or has no room, a folder of this process takes its place. A CacheWarning then gives the path.

    Args:
        compiles: whether the module is not in the cache.
    Raises:
        OSError: no folder has room, and what to set. Exception: the error of Warp for a module that cannot be compiled.
    """
    texts: list[str] = []
    for _ in range(_TRIES):
        before, cache = _in_cache(module), Path(str(wp.config.kernel_cache_dir))
        try:
            if (compiles or not before) and cache.is_dir() and not can_be_kept(cache):
                raise OSError(errno.ENOSPC, f"there is no room in {cache}")
            make()
            break
        except Exception as error:  # Warp raises the same type for a full disk and for a broken file
            if not can_be_kept(cache):
                texts.append(_moved(error))
            elif not before:
                raise
            elif _in_cache(module) == before:  # otherwise another process has replaced the files
                texts.append(_removed(before, error))
            module.mark_modified()  # otherwise Warp keeps the failure
    else:
        make()
    for text in dict.fromkeys(texts):
        _warn(text)


def clear(module: Any) -> None:
    """Remove the files of a module from the cache.

    Raises:
        OSError: a file cannot be removed.
    """
    for path in _in_cache(module):
        _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _in_cache(module: Any) -> dict[Path, list[tuple[str, int, int]]]:
    """The files of a module in the cache, by folder: name, inode and time of change, which identify their version."""
    cache, name = Path(str(wp.config.kernel_cache_dir)), re.compile(f"wp_{re.escape(module.name)}_[0-9a-f]{{7}}")
    found: dict[Path, list[tuple[str, int, int]]] = {}
    with suppress(OSError):  # another process may remove the folder
        for path in (cache / entry for entry in sorted(filter(name.fullmatch, os.listdir(cache)))):
            files = sorted(path.iterdir()) if path.is_dir() else [path]
            found[path] = [(file.name, file.lstat().st_ino, file.lstat().st_mtime_ns) for file in files]
    return found


def _removed(files: dict[Path, Any], error: Exception) -> str:
    """Remove files that cannot be loaded. Returns the text of a warning."""
    where = ", ".join(map(str, files))
    try:
        for path in files:
            _remove(path)
    except OSError as why:
        return _moved(why)
    return f"kernels in {where} cannot be loaded ({error}); they are removed and compiled again"


def _moved(error: Exception) -> str:
    """Let a folder of this process be the cache. Returns the text of a warning."""
    what = f"kernels cannot be stored ({error})"
    try:
        here = temporary_folder(place_with_room()) / "kernels"  # caches beside that of the kernels are own, too
        here.mkdir()
    except OSError as no_room:
        raise OSError(f"{what}; {no_room}; {_remedy()}") from error
    wp.config.kernel_cache_dir = str(here)
    return f"{what}: this process compiles them for itself; {_remedy()}"


def _room() -> int:
    """Size of the modules that are compiled at the same time [B]."""
    return (cores_of_process() + 1) * _ROOM


def _remedy() -> str:
    return _REMEDY.format(max(20, _room() // 10**6 + 1))
