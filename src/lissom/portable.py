"""Data that processes share: complete files, caches on disk, and pickles with functions of the user; and the number of
cores.

Functions that have a name in a module are pickled by this name, Warp functions too. Other functions, such as lambdas,
are pickled by cloudpickle if it is installed; otherwise the error names the function and the remedy.
"""

from __future__ import annotations

import io
import os
import pickle
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar, final

from lissom.errors import ModelError

_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
NEW = ".new"  # in the name of a file that is being written
_FAILURES = (pickle.PicklingError, AttributeError, TypeError)
_Found = TypeVar("_Found")


def cores_of_process() -> int:
    """Number of cores of the process: the environment variable LISSOM_CORES, or all that the system grants.

    Raises:
        ModelError: LISSOM_CORES is no integer >= 1.
    """
    setting = os.environ.get("LISSOM_CORES", "")
    if setting:
        if not (setting.isdecimal() and int(setting) > 0):
            raise ModelError(f"environment variable LISSOM_CORES: must be an integer >= 1 (got {setting!r})")
        return int(setting)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def optional(module: str, what: str, extra: str) -> Any:
    """A module of a package that an extra brings.

    Args:
        what: what needs the package, as the beginning of the message: "graphs need matplotlib".
    Raises:
        ModelError: it is not installed; what to install.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ModelError(f"{what}: pip install 'lissom[{extra}]' (got {error})") from None


def reduced(make: Any, state: Any, subject: str) -> tuple[Any, ...]:
    """The result of `__reduce__` for an object that `make(state)` creates again.

    Raises:
        ModelError: a function cannot be pickled; the message names it and the remedy.
    """
    return _restored, (make, packed(state, subject))


def _restored(make: Any, packed: bytes) -> Any:
    return make(pickle.loads(packed))


@final
class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        return _by_name(obj)


def _by_name(obj: Any) -> Any:
    """A Warp function as its module and its name there."""
    if not type(obj).__module__.startswith("warp") or getattr(obj, "func", None) is None:
        return NotImplemented
    module, name = obj.func.__module__, obj.func.__qualname__
    if _named(module, name) is not obj:
        raise pickle.PicklingError(f"{module}.{name} is not found by its name")
    return _named, (module, name)


def _named(module: str, name: str) -> Any:
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def packed(state: Any, subject: str) -> bytes:
    """The pickle of a state.

    Raises:
        ModelError: the function that cannot be pickled, and what to do.
    """
    stream = io.BytesIO()
    try:
        _Pickler(stream).dump(state)
    except _FAILURES as error:
        return _packed_by_value(state, subject, error)
    return stream.getvalue()


def _packed_by_value(state: Any, subject: str, error: Exception) -> bytes:
    try:
        from cloudpickle import Pickler
    except ImportError:
        path, value = _culprit(state, ())
        where = " > ".join([subject, *path])
        raise ModelError(
            f"{where}: cannot be pickled by name: define it at the top level of a module, give an ls.Expression or an "
            f"ls.Tabulated instead, or install cloudpickle (got {value!r})"
        ) from error

    @final
    class ByValue(Pickler):
        def reducer_override(self, obj: Any) -> Any:
            named = _by_name(obj)
            return super().reducer_override(obj) if named is NotImplemented else named

    stream = io.BytesIO()
    try:
        ByValue(stream).dump(state)
    except _FAILURES as failure:
        path, value = _culprit(state, ())
        where = " > ".join([subject, *path])
        raise ModelError(f"{where}: cannot be pickled: {failure} (got {value!r})") from failure
    return stream.getvalue()


def _culprit(value: Any, path: tuple[str, ...]) -> tuple[tuple[str, ...], Any]:
    """The innermost part that cannot be pickled by itself, and where it stands."""
    if isinstance(value, dict):
        parts = [(str(key), part) for key, part in value.items()]
    elif isinstance(value, list | tuple):
        parts = [(f"[{k}]", part) for k, part in enumerate(value)]
    elif is_dataclass(value) and not isinstance(value, type):
        parts = [(item.name, getattr(value, item.name)) for item in fields(value)]
    else:
        parts = []
    for name, part in parts:
        try:
            _Pickler(io.BytesIO()).dump(part)
        except _FAILURES:
            return _culprit(part, (*path, name))
    return path, value


def cell_of(name: str) -> str:
    """A name as a cell of a table. Spreadsheets take a text that begins with one of _FORMULAS for a formula, which may
    read files and start programs, unless an apostrophe stands before it."""
    return f"'{name}" if name.startswith(_FORMULAS) else name


def write_whole(path: Path, write: Callable[[Any], Any]) -> None:
    """Write a file that is there whole or not at all, by a function of a binary file.

    Raises:
        OSError: it cannot be written; nothing is left of it, and a file that was there stays as it was.
    """
    with whole(path) as new, new.open("wb") as file:
        write(file)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Where to write a file so that it is there whole or not at all: it stands under another name beside `path` until
    it is on the disk. Nobody can guess that name, and put a link there. A file that was there is replaced, with its
    permissions; a pipe or a device is written itself.

    Raises:
        OSError: as of `write_whole`.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    target = Path(os.path.realpath(path))
    new = target.with_name(f"{target.name}{NEW}{token_hex(8)}")
    os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))  # O_EXCL follows no link
    try:
        yield new
        with new.open("rb+") as file:
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, new)
        os.replace(new, target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(target.parent, os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def is_own(status: os.stat_result) -> bool:
    """Whether a file belongs to this user or to the administrator. True if the system has no such users."""
    return not hasattr(os, "getuid") or status.st_uid in (os.getuid(), 0)


def is_own_folder(folder: Path) -> bool:
    """Make a folder that only this user can write. False if there is one that others can write, or that is a link or
    the folder of another user. A folder that cannot be made counts as own: nobody writes it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        link, there = folder.lstat(), folder.stat()
        if not (is_own(link) and is_own(there)):
            return False
        if there.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and hasattr(os, "getuid"):
            folder.chmod(0o700)
    except OSError:
        return not folder.exists()
    return True


def read_cached(file: Path, read: Callable[[Path], _Found]) -> _Found | None:
    """What `read` finds in a file of a cache; None if there is no such file, another user has written it, or it is
    broken, when `read` raises an OSError, ValueError, KeyError, TypeError or EOFError."""
    with suppress(OSError, ValueError, KeyError, TypeError, EOFError):
        if not is_own(file.stat()):
            return None
        found = read(file)
        os.utime(file)
        return found
    return None


def write_cached(file: Path, write: Callable[[Any], Any], most: int) -> None:
    """Write a file of a cache by a function of a binary file. The files of its kind beside it that were not read for
    the longest time are deleted beyond `most` bytes. A folder that cannot be written is no error."""
    with suppress(OSError):
        write_whole(file, write)
        others = file.parent.glob(f"*{file.suffix}")
        known = sorted(((x.stat().st_mtime, x.stat().st_size, x) for x in others if x != file), reverse=True)
        total = file.stat().st_size
        for _, size, path in known:
            total += size
            if total > most:
                path.unlink(missing_ok=True)
