"""Kernels composed for a model, compiled the first time a machine needs them, on all cores and with a progress bar.

A kernel depends on the kinds of nodes of a model and on the forces that act on it; models with the same kinds and
forces share it. Warp compiles a module when one of its kernels is first launched, and finds it in a cache on the disk
from then on. Compiling takes seconds for each module, and modules are independent. All modules of an algorithm are
therefore loaded ahead, at once. Processes that fill the same cache do not disturb each other: each module is written
aside and then renamed.

Modules that the cache lacks may come compiled for a kind of processors. They lie in a folder, by version of Warp,
system and kind, under the names that Warp's cache has for their modules: a name is a hash of the module, so that
nothing else is ever found under it. The folder is that within the library, which a wheel may bring, or the one that
the environment variable LISSOM_KERNELS names.
"""

from __future__ import annotations

import logging
import os
import platform
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, as_completed, wait
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from pathlib import Path
from threading import Timer
from typing import Any

import warp as wp

from lissom.errors import CacheWarning, ModelError
from lissom.forces.terms import Acting, acting_on, nothing_on
from lissom.launch.cores import compilers, cores_of_process, making
from lissom.launch.progress import PATIENCE
from lissom.launch.warp_private import (
    compile_into_cache,
    is_compiled,
    is_read,
    is_whole,
    load_object,
    name_in_cache,
    object_for,
    read_headers,
    share_hashes,
    write_once,
)
from lissom.lie.start import load_whole
from lissom.lie.types import CPU_FLAGS
from lissom.model.model import Model

share_hashes()

_FREE: set[Any] = set()  # factories whose kernels know nothing of forces


def free_of_forces(factory: Callable[[Acting], Any]) -> Callable[[Acting], Any]:
    """Marks a function that makes a kernel from the kinds of nodes alone, which robots share whatever acts on them."""
    _FREE.add(factory)
    return factory


def kernel_for(kernel: Any, model: Model) -> Any:
    """The kernel that a model needs: itself, or what a function makes of all that acts on the model.

    Such a function returns a kernel in a module of its own, which Warp compiles the first time a robot needs it and
    keeps on disk like any other; robots on which the same acts share it.
    """
    if isinstance(kernel, wp.Kernel):
        return kernel
    return _made(kernel, nothing_on(model) if kernel in _FREE else acting_on(model))


@cache
def _made(factory: Callable[[Acting], Any], acting: Acting) -> Any:
    return factory(acting)


_AVX2 = frozenset({"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"})
_AVX512 = _AVX2 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
# Kinds of processors, those that can more first: what the compiler is told, and what a processor of the kind lists.
TARGETS: dict[str, tuple[str, frozenset[str]]] = {
    "x86-64-v4": ("-target-cpu x86-64-v4 -mprefer-vector-width=512", _AVX512),
    "x86-64-v3": ("-target-cpu x86-64-v3", _AVX2),
    "aarch64": ("-target-cpu generic", frozenset()),
}
_WITHIN = Path(__file__).parents[1] / "compiled"


def targets_here() -> tuple[str, ...]:
    """The kinds that this processor is of, the best first."""
    machine = platform.machine().lower().replace("amd64", "x86_64").replace("arm64", "aarch64")
    if machine == "aarch64":
        return ("aarch64",)
    listed = _instructions()
    return tuple(name for name, (_, needs) in TARGETS.items() if machine == "x86_64" and needs and needs <= listed)


@lru_cache
def _instructions() -> frozenset[str]:
    """What this processor can, by the names of Linux; nothing where the system does not list it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), ()))


def ready_made(module: Any, device: str) -> tuple[Path, Path] | None:
    """Compiled code and description of a module, for the best kind that this processor is of; None without."""
    if not (wp.get_device(device).is_cpu and is_read(wp.__version__)):
        return None
    folders = _folders_here()
    name = name_in_cache(module) if folders else None
    for folder in folders:
        if (folder / f"{name}.o").is_file() and (folder / f"{name}.meta").is_file():
            return folder / f"{name}.o", folder / f"{name}.meta"
    return None


def is_any_ready() -> bool:
    """Whether any module came compiled for processors like the one at hand."""
    return bool(_folders_here())


def _folders_here() -> list[Path]:
    """Folders of compiled kernels for kinds that this processor is of, the best first."""
    root = Path(os.environ.get("LISSOM_KERNELS", "") or _WITHIN)
    return [folder for target in targets_here() if (folder := _folder(root, target)).is_dir()]


def make_ready(module: Any, target: str, out: Path) -> None:
    """Compile a module for a kind of processors, into a folder."""
    flags, folder = CPU_FLAGS.replace("-march=native", TARGETS[target][0]), _folder(out, target)
    folder.mkdir(parents=True, exist_ok=True)
    name = name_in_cache(module)
    if not is_whole(folder / f"{name}.o", folder / f"{name}.meta"):
        object_for(module, flags, folder, name)


def check_target(target: str) -> None:
    """Whether this machine can compile for a kind: Warp's compiler knows its own architecture alone.

    Raises:
        ModelError: it cannot.
    """
    ours = "aarch64" if "aarch64" in targets_here() else "x86-64"
    known = [name for name in TARGETS if name.startswith(ours)]
    if target not in known:
        raise ModelError(f"target: must be one of {', '.join(known)} on this machine (got {target!r})")


def _folder(root: Path, target: str) -> Path:
    return root / wp.__version__ / f"{platform.system().lower()}-{target}"


QUIET = "LISSOM_QUIET"  # environment variable that keeps scripts from saying that kernels are compiled
_MANY = 8  # modules, more than an algorithm takes
_said: list[str] = []  # whether a script was told, once in a process
_reading: list[Future[None]] = []  # of Warp's headers, once in a process
_loaded: set[tuple[str, Any]] = set()  # devices and modules
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reading.clear)  # a child has none of the threads


def ahead(model: Model, algorithm: str, *kernels: Any, then: tuple[Any, ...] = ()) -> None:
    """Load what an algorithm launches on a model, all of it together, the first time it runs.

    `then` names kernels of what is mostly asked next. They are compiled along where there is something to compile, and
    another core to do it: the largest module keeps one core busy for longer than the others of an algorithm together.
    """
    key = f"kernels of {algorithm}"
    if key not in model.cache:
        with making():
            _begin_on_new_machine(model.device)
            begin(kernel_for(kernels[0], model).module, model.device)
            now, later = ([kernel_for(kernel, model).module for kernel in some] for some in (kernels, then))
            waits = cores_of_process() > 1 and any(_is_missing(module, model.device) for module in now)
            load([*now, *(later if waits else ())], model.device)
        model.cache[key] = True


def load(modules: Iterable[Any], device: str, *, anew: bool = False) -> None:
    """Load modules of kernels for a device, those that the cache does not have compiled together.

    Args:
        anew: compile for this very processor what came compiled for its kind, for the next processes.
    Raises:
        OSError: the compiler's results cannot be written, and what to set.
    """
    wanted = [module for module in dict.fromkeys(modules) if anew or (device, module) not in _loaded]
    if not wanted:
        return
    pool = _compilers(len(wanted))
    with _bar([_name(module) for module in wanted]) as done:
        any(begin(module, device, anew) for module in wanted)
        try:
            for one in as_completed([pool.submit(_load, module, device, anew) for module in wanted]):
                one.result()
                done()
        finally:
            wait(_reading)  # which cannot be on a full disk, and says so
    _loaded.update((device, module) for module in wanted)


def begin(module: Any, device: str, anew: bool = False) -> bool:
    """Begin to read Warp's headers, while Python writes the first module, if this one will have to be compiled; whether
    they are read."""
    if not _reading and wp.get_device(device).is_cpu and _is_missing(module, device, anew):
        _read()
    return bool(_reading)


def _begin_on_new_machine(device: str) -> None:
    """Begin to read Warp's headers, before it is known of what the first module is made, where nothing is compiled."""
    known = Path(str(wp.config.kernel_cache_dir)).glob("wp_*")
    if not _reading and wp.get_device(device).is_cpu and not any(known) and not is_any_ready():
        _read()


def _read() -> None:
    _reading.append(compilers(cores_of_process()).submit(read_headers, CPU_FLAGS))


def build(modules: Iterable[Any], target: str, out: Path) -> None:
    """Compile modules for a kind of processors into a folder, on all cores."""
    wanted = list(dict.fromkeys(modules))
    pool = _compilers(len(wanted))
    with _bar([_name(module) for module in wanted]) as done:
        for one in as_completed([pool.submit(make_ready, module, target, out) for module in wanted]):
            one.result()
            done()


def _say_once(label: str) -> None:
    """Say in scripts why they wait, unless QUIET is set or the logger has said so."""
    if not (_said or os.environ.get(QUIET) or logging.getLogger("lissom").isEnabledFor(logging.INFO)):
        _said.append(label)
        print(f"lissom: {label}; {QUIET}=1 keeps this quiet", file=sys.stderr, flush=True)


def _compilers(count: int) -> Executor:
    """Threads for so many modules: for many one more than cores, since Python writes one module at a time, and a core
    that waits for that has something to compile."""
    return compilers(cores_of_process() + (count > _MANY))


def _name(module: Any) -> str:
    return module.name.split("__locals__")[0]


def _is_missing(module: Any, device: str, anew: bool = False) -> bool:
    """Whether a module will have to be compiled, if that can be told."""
    return is_compiled(module, device) is False and (anew or ready_made(module, device) is None)


def _load(module: Any, device: str, anew: bool) -> None:
    found = ready_made(module, device) if is_compiled(module, device) is False else None
    if found is not None and not anew:
        try:
            load_object(module, *found)
            return
        except Exception as error:  # Warp raises bare ones
            text = f"kernels that came in {found[0]} cannot be loaded ({error}): they are compiled here"
            warnings.warn(text, CacheWarning, stacklevel=2)
    write_once(module, before_compiling=partial(wait, _reading))  # each reads headers itself that are not there
    block = 1 if wp.get_device(device).is_cpu else None  # as launches there have it
    make = partial(wp.force_load, device, [module], block_dim=block, max_workers=0)
    if found is not None and anew:
        make = partial(compile_into_cache, module)
    load_whole(module, make)


@contextmanager
def _bar(names: list[str]) -> Iterator[Callable[[], None]]:
    """A function to call when one more is there. After PATIENCE a bar says what is waited for, on a terminal; elsewhere
    the logger "lissom" does, and, once in a process, a line of standard error."""
    label, there = "compiling kernels, once on this machine", [False] * len(names)
    shown: list[Any] = []

    def say() -> None:
        logging.getLogger("lissom").info("%s: %s", label, ", ".join(names))
        if not sys.stderr.isatty():
            _say_once(label)
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        bar = Progress(*columns, console=Console(stderr=True), transient=True)
        bar.add_task(label, total=len(names), completed=sum(there))
        bar.start()
        shown.append(bar)

    def done() -> None:
        there[sum(there)] = True
        for bar in shown:
            bar.update(bar.task_ids[0], completed=sum(there))

    waiting = Timer(PATIENCE, say)
    waiting.daemon = True
    waiting.start()
    try:
        yield done
    finally:
        waiting.cancel()
        waiting.join()
        for bar in shown:
            bar.stop()
