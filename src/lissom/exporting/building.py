"""Compilation of exported sources by a compiler of this machine: to a shared library, or to WebAssembly."""

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

_WEB = (
    "--target=wasm32-wasi", "-std=c++17", "-O2", "-msimd128", "-fno-slp-vectorize", "-fno-math-errno",
    "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti", "-mllvm", "-inline-threshold=3000",
    "-mllvm", "-inline-cold-callsite-threshold=1000", "-w",
)  # fmt: skip
_TO_WEB = ("--target=wasm32-wasi", "-mexec-model=reactor", "-Wl,--strip-all")
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


def find_web_compiler(where: str) -> str:
    """The compiler for WebAssembly that the environment variable WASM_CXX names, or clang++ of the PATH, with the C
    library of WASI.

    Raises:
        ModelError: there is none that compiles and links a program.
    """
    compiler = os.environ.get("WASM_CXX") or shutil.which("clang++") or "clang++"
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "try.cpp"
        source.write_text("#include <cmath>\n#include <cstdlib>\nint found = std::malloc(1) && std::sin(1.0) > 0.0;\n")
        command = [*compiler.split(), *_WEB, *_TO_WEB, str(source), "-o", str(source.with_suffix(".wasm"))]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
            said = "" if done.returncode == 0 else (done.stderr.strip() or "no message").splitlines()[0][-200:]
        except OSError as error:
            said = str(error)
    if said:
        raise ModelError(f"{where}: needs clang++ with the C library of WebAssembly (got: {said}); install the Debian "
                         "packages clang, lld, wasi-libc, libc++-dev-wasm32 and libclang-rt-dev-wasm32, or name the "
                         "clang++ of a WASI SDK by WASM_CXX")  # fmt: skip
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
    flags = [*compiler_flags(compiler)]
    if portable:
        flags += ["-march=x86-64-v3"] if machine() == "x86_64" else []
    else:
        flags += ["-mcpu=native" if machine() == "aarch64" else "-march=native"]
    _build(where, compiler, folder, files, library, flags, ["-shared"])


def build_web(where: str, compiler: str, folder: Path, files: Sequence[Path], module: Path) -> None:
    """Compile sources of an exported robot to a module of WebAssembly, which imports nothing; as `build_library`."""
    _build(where, compiler, folder, files, module, _WEB, _TO_WEB)


def _build(
    where: str, compiler: str, folder: Path, files: Sequence[Path], out: Path, flags: Sequence[str],
    linking: Sequence[str],
) -> None:  # fmt: skip
    command = [*compiler.split(), *flags]
    includes = [f"-I{folder}", f"-I{folder / 'warp'}"]
    with tempfile.TemporaryDirectory() as place:
        objects = [Path(place) / f"{k}.o" for k in range(len(files))]
        commands = [[*command, *includes, "-c", str(file), "-o", str(to)] for file, to in zip(files, objects)]
        with ThreadPoolExecutor(cores()) as pool:
            list(pool.map(lambda command: _run(where, command), commands))
        made = Path(place) / out.name
        _run(where, [*compiler.split(), *linking, *map(str, objects), "-o", str(made), "-lm"])
        shutil.move(made, out)


def _run(where: str, command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{where}: {command[0]} cannot compile the sources: {done.stderr[-500:]}")
