"""Warp types and options shared by every kernel."""

from __future__ import annotations

from typing import Any

import warp as wp

from lissom.lie.native import shared_code
from lissom.lie.start import start_warp

start_warp()

vec6 = wp.types.vector(length=6, dtype=wp.float64)
vec8 = wp.types.vector(length=8, dtype=wp.float64)
vec10 = wp.types.vector(length=10, dtype=wp.float64)
mat6 = wp.types.matrix(shape=(6, 6), dtype=wp.float64)
vec3 = wp.vec3d
mat3 = wp.mat33d


# Looking for vectors in straight code (SLP) takes a fifth of the time to compile, and no kernel was faster for it: what
# gains from vectors has loops over blocks of eight numbers. Without numbers of 16 bits Warp's headers are read in two
# thirds of the time. The compiler's own checks, and names in what it makes on the way, took a tenth for the same code.
CPU_FLAGS = (
    "-march=native -mllvm=-inline-threshold=3000 -mllvm=-inline-cold-callsite-threshold=1000 -ffp-contract=fast"
    " -fno-slp-vectorize -DWP_NO_BFLOAT16= -discard-value-names -disable-llvm-verifier"
)
# Warp writes functions for each struct that derivatives would call. The compiler leaves out those that nobody calls, if
# they are for this file alone: a quarter of a second for each module.
_CPU_ALONE = "#undef CUDA_CALLABLE\n#define CUDA_CALLABLE inline\n"


NATIVE = shared_code()


def by_reference(struct: Any) -> Any:
    """A struct of arrays as the argument of functions in kernels, which take its address; kernels take the struct.

    By value, each call copies every array of the struct and of those within, some kilobytes. The compiler for the CPU
    sees through the copies; the one for CUDA took minutes over a kernel of many calls.
    """
    return wp.ref[struct]


MORE = "MORE"  # what plain robots do not have: all that passes/features lists but kinds of nodes
RARE = ("MAP", "BODY", MORE)  # kinds of nodes that few robots have, and MORE


def served(kind: str) -> str:
    """What native code calls whether its kernel serves one of RARE."""
    return f"LISSOM_SERVES_{kind}"


EXPRESSIONS = "EXPRESSIONS"  # what kernels serve that evaluate expressions


def kernel_options(kinds: tuple[str, ...] = RARE) -> dict[str, Any]:
    """Module options of every module that holds kernels or native functions.

    Args:
        kinds: those of RARE that the kernels serve, and EXPRESSIONS where they evaluate these.
    """
    preamble = "".join(f"#define {served(kind)} {int(kind in kinds)}\n" for kind in RARE) + NATIVE
    if EXPRESSIONS in kinds:
        preamble = f"#define {served(EXPRESSIONS)} 1\n{preamble}"
    return {
        "enable_backward": False,
        "cpu_compiler_flags": CPU_FLAGS,
        "fast_math": False,
        "extra_build_options": wp.ModuleBuildOptions(
            extra_cpu_preamble=preamble + _CPU_ALONE, extra_cuda_preamble=preamble
        ),
    }
