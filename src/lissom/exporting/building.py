"""Compilation of exported sources to a shared library, by a compiler of this machine."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lissom.errors import ModelError
from lissom.exporting.sources import compiler_flags
from lissom.launch.cores import cores

_SUFFIXES = {"linux": ".so", "darwin": ".dylib", "windows": ".dll"}


def find_compiler(where: str) -> str:
    """The C++ compiler that the environment variable CXX names, or clang++ or g++ of the PATH.

    Raises:
        ModelError: there is none.
    """
    compiler = os.environ.get("CXX") or shutil.which("clang++") or shutil.which("g++")
    if not compiler:
        raise ModelError(f"{where}: needs a C++ compiler (got no g++ and no clang++); install one, or name it by CXX")
    return compiler


def system() -> str:
    """The operating system: linux, darwin or windows."""
    name = platform.system().lower()
    return name if name in _SUFFIXES else "linux"


def machine() -> str:
    """The processor, such as x86_64 or aarch64."""
    return platform.machine().lower().replace("amd64", "x86_64").replace("arm64", "aarch64")


def suffix() -> str:
    """Suffix of shared libraries."""
    return _SUFFIXES[system()]


def build_library(
    where: str, compiler: str, folder: Path, files: Sequence[Path], library: Path, *, portable: bool = False
) -> None:
    """Compile sources of an exported robot, one process for each core, and link them.

    Args:
        where: what asks for it, in messages. folder: folder of the sources. files: sources. library: file to write.
        portable: whether other processors with AVX2 shall run it too.
    Raises:
        OSError: the compiler fails; with its last words.
    """
    flags = [*compiler.split(), *compiler_flags(compiler)]
    if portable:
        flags += ["-march=x86-64-v3"] if machine() == "x86_64" else []
    else:
        flags += ["-mcpu=native" if machine() == "aarch64" else "-march=native"]
    includes = [f"-I{folder}", f"-I{folder / 'warp'}"]
    with tempfile.TemporaryDirectory() as place:
        objects = [Path(place) / f"{k}.o" for k in range(len(files))]
        commands = [[*flags, *includes, "-c", str(file), "-o", str(to)] for file, to in zip(files, objects)]
        with ThreadPoolExecutor(cores()) as pool:
            list(pool.map(lambda command: _run(where, command), commands))
        made = Path(place) / library.name
        _run(where, [*compiler.split(), "-shared", *map(str, objects), "-o", str(made), "-lm"])
        shutil.move(made, library)


def _run(where: str, command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{where}: {command[0]} cannot compile the sources: {done.stderr[-500:]}")
