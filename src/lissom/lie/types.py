"""Warp types and options shared by every kernel."""

from __future__ import annotations

from typing import Any

import warp as wp

from lissom.lie.native import own_code, shared_code
from lissom.lie.start import start_warp
from lissom.lie.warp_private import leave_out_dependents

start_warp()
leave_out_dependents()  # before the first function of a kernel

vec6 = wp.types.vector(length=6, dtype=wp.float64)
vec8 = wp.types.vector(length=8, dtype=wp.float64)
vec10 = wp.types.vector(length=10, dtype=wp.float64)
mat6 = wp.types.matrix(shape=(6, 6), dtype=wp.float64)
vec3 = wp.vec3d
mat3 = wp.mat33d
mat4 = wp.mat44d


# The search for vectors in straight code (SLP) takes a fifth of the compile time, and no kernel gained from it: code
# for vector instructions has loops over blocks of eight numbers. Without 16-bit numbers Warp's headers are parsed in
# two thirds of the time. The compiler's own checks and the names of values took a tenth for the same code.
CPU_FLAGS = (
    "-march=native -mllvm=-inline-threshold=3000 -mllvm=-inline-cold-callsite-threshold=1000 -ffp-contract=fast"
    " -fno-slp-vectorize -DWP_NO_BFLOAT16= -discard-value-names -disable-llvm-verifier"
)
# Warp writes functions for each struct that only derivatives call. As inline functions they are dropped by the
# compiler, which saves a quarter of a second for each module. The comment is a part of the key of the disk cache, so
# that kernels from before they took structs by address (warp_private) are compiled again.
_CPU_ALONE = "#undef CUDA_CALLABLE\n#define CUDA_CALLABLE inline\n// structs by address\n"


NATIVE = shared_code()


def by_reference(struct: Any) -> Any:
    """The type of a struct argument of functions in kernels, which is passed by its address. Kernels take the struct.

    By value, each call copies all arrays of the struct and of its inner structs, some kilobytes. The compiler for the
    CPU removes the copies; the one for CUDA took minutes for a kernel with many calls.
    """
    return wp.ref[struct]


FEATURES = "FEATURES"  # all optional features of passes/features, except kinds of nodes and contact shapes
SHAPES = "SHAPES"  # contact shapes that few robots have
CONTACTS = "CONTACTS"  # contacts and stored poses alone, which compile faster than FEATURES
RIGID = "RIGID"  # with CONTACTS: no rods, tendons, other channels, point loads, nor springs of spherical or free joints
RARE = ("MAP", "BODY", SHAPES, CONTACTS, FEATURES)  # options of kernels that plain robots do not need


def served(kind: str) -> str:
    """The macro of native code that is 1 if its kernel serves one of RARE."""
    return f"LISSOM_SERVES_{kind}"


EXPRESSIONS = "EXPRESSIONS"  # served by kernels that evaluate expressions
PROGRAMS = "PROGRAMS"  # served by kernels of robots whose couplings or constraints have expressions
TRACED = "TRACED"  # served by kernels that contain code of traced functions


def kernel_options(kinds: tuple[str, ...] = RARE) -> dict[str, Any]:
    """Module options of every module that holds kernels or native functions.

    Args:
        kinds: the members of RARE that the kernels serve, EXPRESSIONS if they evaluate these, PROGRAMS if constraints
            do, TRACED if they contain code of traced functions, and RIGID if all their robots are rigid.
    """
    preamble = "".join(f"#define {served(kind)} {int(kind in kinds)}\n" for kind in RARE) + NATIVE
    for kind in (EXPRESSIONS, PROGRAMS, RIGID):
        if kind in kinds:
            preamble = f"#define {served(kind)} 1\n{preamble}"
    preamble += own_code("tracing/native.h") if TRACED in kinds else ""
    return {
        "enable_backward": False,
        "cpu_compiler_flags": CPU_FLAGS,
        "fast_math": False,
        "extra_build_options": wp.ModuleBuildOptions(
            extra_cpu_preamble=preamble + _CPU_ALONE, extra_cuda_preamble=preamble
        ),
    }
