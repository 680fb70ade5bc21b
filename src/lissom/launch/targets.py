"""Kernels that were compiled elsewhere, for any processor of a kind, and of which kinds the one at hand is.

They lie in a folder, by version of Warp, system and kind, under the names that Warp's cache has for their modules: a
name holds what its module is made of, so that nothing else is ever found under it. The folder is that within the
library, which a wheel may bring, or the one that the environment variable LISSOM_KERNELS names.
"""

from __future__ import annotations

import os
import platform
from functools import lru_cache
from pathlib import Path
from typing import Any

import warp as wp

from lissom.errors import ModelError
from lissom.launch.warp_private import is_read, is_whole, name_in_cache, object_for
from lissom.lie.types import CPU_FLAGS

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
