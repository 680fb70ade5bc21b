"""Kernels composed for a model, compiled the first time a machine needs them, on all cores and with a progress bar.

A kernel depends on the kinds of nodes of a model and on the forces that act on it. Models with the same kinds and
forces share it. Warp compiles a module at the first launch of one of its kernels, and later takes it from a cache on
disk. Compiling takes seconds for each module, and modules are independent. All modules of an algorithm are therefore
compiled in parallel before its first launch. Several processes may fill the same cache: each module is written to a
temporary folder and then renamed.

Precompiled modules serve where the cache has none. They are compiled for a class of processors (a target). Their folder
is sorted by version of Warp, system and target. Their names are those of Warp's cache, which contain a hash of the
module, so that a name never stands for another module. The folder is part of the library, if the wheel contains one, or
given by the environment variable LISSOM_KERNELS.
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

import numpy as np
import warp as wp

from lissom.errors import CacheWarning, ModelError
from lissom.forces.terms import Acting, acting_on, native_cells, no_terms
from lissom.launch.cores import build_lock, compilers
from lissom.launch.progress import PATIENCE
from lissom.lie.types import CPU_FLAGS
from lissom.lie.warp_private import (
    compile_into_cache,
    is_compiled,
    is_tested,
    is_whole,
    load_object,
    load_with_room,
    name_in_cache,
    object_for,
    read_headers,
    share_generated_code,
    share_hashes,
)
from lissom.model.model import Model
from lissom.portable import cores_of_process
from lissom.tracing.native import begin_functions, wait_for_functions

share_hashes()

_WITHOUT_FORCES: set[Any] = set()  # factories whose kernels do not depend on forces


def free_of_forces(factory: Callable[[Acting], Any]) -> Callable[[Acting], Any]:
    """Mark a function whose kernel depends on the kinds of nodes only, so that models with other forces share it."""
    _WITHOUT_FORCES.add(factory)
    return factory


_WITHOUT_DERIVATIVES: set[Any] = set()  # factories whose kernels call no derivatives of users' functions


def without_derivatives(factory: Callable[[Acting], Any]) -> Callable[[Acting], Any]:
    """Mark a function whose kernel calls no derivatives of users' functions (curve_function, derivatives_function and
    second_function of the tables, and all but the first cell of a row of a term), so that its first launch does not
    wait until they are compiled."""
    _WITHOUT_DERIVATIVES.add(factory)
    return factory


def _native_functions(kernel: Any, model: Model) -> np.ndarray:
    """The cells of the functions of users that a kernel calls."""
    cells = [model.maps.place_function, model.deforming.values_function, model.pulls.values_function]
    if kernel not in _WITHOUT_DERIVATIVES:
        cells += [model.maps.curve_function, model.deforming.derivatives_function]
        cells += [model.pulls.derivatives_function, model.pulls.second_function]
    found = model.cached(("native code of terms",), lambda: native_cells(model))
    cells += found if kernel not in _WITHOUT_DERIVATIVES else found[:1]
    return np.concatenate(cells)


def begin_native_functions(kernel: Any, model: Model) -> None:
    """Start the compilation, in threads, of those functions of users that a kernel calls."""
    begin_functions(_native_functions(kernel, model))


def wait_for_native_functions(kernel: Any, model: Model) -> None:
    """Wait until those functions of users are compiled that a kernel calls."""
    wait_for_functions(_native_functions(kernel, model))


def kernel_for(kernel: Any, model: Model) -> Any:
    """`kernel` itself if it is a Warp kernel; if it is a function, the kernel that it composes for a model.

    Such a function returns a kernel in a module of its own from the kinds of nodes and the forces of the model. Models
    with the same kinds and forces share it.
    """
    if isinstance(kernel, wp.Kernel):
        return kernel
    return _composed_kernel(kernel, no_terms(model) if kernel in _WITHOUT_FORCES else acting_on(model))


@cache
def _composed_kernel(factory: Callable[[Acting], Any], acting: Acting) -> Any:
    return factory(acting)


_AVX2 = frozenset({"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"})
_AVX512 = _AVX2 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
# Targets, those with more instructions first: flags of the compiler, and required flags of the processor.
TARGETS: dict[str, tuple[str, frozenset[str]]] = {
    "x86-64-v4": ("-target-cpu x86-64-v4 -mprefer-vector-width=512", _AVX512),
    "x86-64-v3": ("-target-cpu x86-64-v3", _AVX2),
    "aarch64": ("-target-cpu generic", frozenset()),
}
_PACKAGED = Path(__file__).parents[1] / "compiled"


def targets_here() -> tuple[str, ...]:
    """Targets whose code this processor runs, the fastest first."""
    machine = platform.machine().lower().replace("amd64", "x86_64").replace("arm64", "aarch64")
    if machine == "aarch64":
        return ("aarch64",)
    listed = _processor_features()
    return tuple(name for name, (_, needs) in TARGETS.items() if machine == "x86_64" and needs and needs <= listed)


@lru_cache
def _processor_features() -> frozenset[str]:
    """Flags of this processor as Linux names them; none if the system does not list them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), ()))


def find_precompiled(module: Any, device: str) -> tuple[Path, Path] | None:
    """Paths of the precompiled code and of its description for a module, for the fastest target; None if there are
    none."""
    if not (wp.get_device(device).is_cpu and is_tested(wp.__version__)):
        return None
    folders = _folders_here()
    name = name_in_cache(module) if folders else None
    for folder in folders:
        if (folder / f"{name}.o").is_file() and (folder / f"{name}.meta").is_file():
            return folder / f"{name}.o", folder / f"{name}.meta"
    return None


def has_precompiled() -> bool:
    """Whether there are precompiled modules for this processor."""
    return bool(_folders_here())


def _folders_here() -> list[Path]:
    """Folders of precompiled modules that this processor runs, the fastest first."""
    root = Path(os.environ.get("LISSOM_KERNELS", "") or _PACKAGED)
    return [folder for target in targets_here() if (folder := _folder(root, target)).is_dir()]


def precompile(module: Any, target: str, out: Path) -> None:
    """Compile a module for a target into a subfolder of `out`, unless it is there."""
    flags, folder = CPU_FLAGS.replace("-march=native", TARGETS[target][0]), _folder(out, target)
    folder.mkdir(parents=True, exist_ok=True)
    name = name_in_cache(module)
    if not is_whole(folder / f"{name}.o", folder / f"{name}.meta"):
        object_for(module, flags, folder, name)


def check_target(target: str) -> None:
    """Check that this machine can compile for a target. Warp's compiler supports its own architecture only.

    Raises:
        ModelError: the targets that it can compile for, and the given one.
    """
    ours = "aarch64" if "aarch64" in targets_here() else "x86-64"
    known = [name for name in TARGETS if name.startswith(ours)]
    if target not in known:
        raise ModelError(f"target: must be one of {', '.join(known)} on this machine (got {target!r})")


def _folder(root: Path, target: str) -> Path:
    return root / wp.__version__ / f"{platform.system().lower()}-{target}"


QUIET = "LISSOM_QUIET"  # environment variable: print no message while kernels are compiled
_MANY_MODULES = 8  # more modules than one algorithm has
_announced: list[str] = []  # the message, once it was printed in this process
_header_tasks: list[Future[None]] = []  # the task that precompiles Warp's headers, once in a process
_loaded: set[tuple[str, Any]] = set()  # devices and modules
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_header_tasks.clear)  # a child process has no such threads


def load_kernels(model: Model, algorithm: str, *kernels: Any, then: tuple[Any, ...] = ()) -> None:
    """Load all kernels of an algorithm for a model, the first time it runs.

    Args:
        algorithm: its name. kernels: its kernels, or functions that compose them, the largest first.
        then: kernels that mostly follow. They are compiled in the same go if a kernel of the algorithm must be compiled
            and there are several cores. The largest module takes one core longer than all other modules.
    """
    key = f"kernels of {algorithm}"
    if key not in model.cache:
        for kernel in kernels:
            begin_native_functions(kernel, model)
        with build_lock():
            _begin_headers_on_new_machine(model.device)
            begin_headers(kernel_for(kernels[0], model).module, model.device)
            now, later = ([kernel_for(kernel, model).module for kernel in group] for group in (kernels, then))
            compiles = cores_of_process() > 1 and any(_is_missing(module, model.device) for module in now)
            load([*now, *(later if compiles else ())], model.device)
        model.cache[key] = True


def load(modules: Iterable[Any], device: str, *, recompile: bool = False) -> None:
    """Load modules of kernels for a device. Modules that are not compiled yet are compiled in parallel.

    Args:
        recompile: compile precompiled modules for this very processor, for the next processes.
    Raises:
        OSError: the compiler cannot write its results; names the setting that helps.
    """
    modules = [module for module in dict.fromkeys(modules) if recompile or (device, module) not in _loaded]
    if not modules:
        return
    pool = _compilers(len(modules))
    with _compile_progress([_name(module) for module in modules]) as done:
        any(begin_headers(module, device, recompile) for module in modules)
        try:
            for task in as_completed([pool.submit(_load, module, device, recompile) for module in modules]):
                task.result()
                done()
        finally:
            wait(_header_tasks)  # on a full disk it fails too; its message comes before this function returns
    _loaded.update((device, module) for module in modules)


def begin_headers(module: Any, device: str, recompile: bool = False) -> bool:
    """Begin to precompile Warp's headers in a thread if the module must be compiled; whether that has begun.

    Meanwhile Python generates the code of the first module.
    """
    if not _header_tasks and wp.get_device(device).is_cpu and _is_missing(module, device, recompile):
        _submit_headers()
    return bool(_header_tasks)


def _begin_headers_on_new_machine(device: str) -> None:
    """Begin to precompile Warp's headers on a machine without compiled modules, before the first one is composed."""
    compiled = Path(str(wp.config.kernel_cache_dir)).glob("wp_*")
    if not _header_tasks and wp.get_device(device).is_cpu and not any(compiled) and not has_precompiled():
        _submit_headers()


def _submit_headers() -> None:
    _header_tasks.append(compilers(cores_of_process()).submit(read_headers, CPU_FLAGS))


def build(modules: Iterable[Any], target: str, out: Path) -> None:
    """Compile modules for a target into a folder, on all cores."""
    modules = list(dict.fromkeys(modules))
    pool = _compilers(len(modules))
    with _compile_progress([_name(module) for module in modules]) as done:
        for task in as_completed([pool.submit(precompile, module, target, out) for module in modules]):
            task.result()
            done()


def _announce_once(label: str) -> None:
    """Print once why a script waits, unless QUIET is set or the logger has printed it."""
    if not (_announced or os.environ.get(QUIET) or logging.getLogger("lissom").isEnabledFor(logging.INFO)):
        _announced.append(label)
        print(f"lissom: {label}; {QUIET}=1 keeps this quiet", file=sys.stderr, flush=True)


def _compilers(count: int) -> Executor:
    """Threads that compile `count` modules: one for each core, and one more for many modules.

    Python generates the code of one module at a time. The additional thread compiles while another one waits for that.
    """
    return compilers(cores_of_process() + (count > _MANY_MODULES))


def _name(module: Any) -> str:
    return module.name.split("__locals__")[0]


def _is_missing(module: Any, device: str, recompile: bool = False) -> bool:
    """Whether a module must be compiled; False if that is unknown for this version of Warp."""
    return is_compiled(module, device) is False and (recompile or find_precompiled(module, device) is None)


def _load(module: Any, device: str, recompile: bool) -> None:
    """Load a module from the cache or the precompiled files, or compile it."""
    found = find_precompiled(module, device) if is_compiled(module, device) is False else None
    if found is not None and not recompile:
        try:
            load_object(module, *found)
            return
        except Exception as error:  # Warp raises plain exceptions
            text = f"precompiled kernels in {found[0]} cannot be loaded ({error}): they are compiled here"
            warnings.warn(text, CacheWarning, stacklevel=2)
    # A thread that finds no precompiled headers would read them itself.
    share_generated_code(module, before_compiling=partial(wait, _header_tasks))
    block = 1 if wp.get_device(device).is_cpu else None  # as in launches on the CPU
    make = partial(wp.force_load, device, [module], block_dim=block, max_workers=0)
    if found is not None and recompile:
        make = partial(compile_into_cache, module)
    load_with_room(module, device, make, recompile)


@contextmanager
def _compile_progress(names: list[str]) -> Iterator[Callable[[], None]]:
    """A function to call after each module that is loaded.

    After PATIENCE seconds a terminal shows a progress bar. Elsewhere the logger "lissom" gets a line, and standard
    error one line per process.
    """
    label, there = "compiling kernels, once on this machine", [False] * len(names)
    shown: list[Any] = []

    def say() -> None:
        logging.getLogger("lissom").info("%s: %s", label, ", ".join(names))
        if not sys.stderr.isatty():
            _announce_once(label)
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
