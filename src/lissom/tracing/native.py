"""Native code of traced functions: straight-line C++ from a graph of scalar operations, and its address.

A traced function has the signature

    void f(const double* const* in, double* const* out)                                                   (1)

with one pointer for each argument and for each result. It is compiled by Warp in a module of its own, whose name
contains a hash of the code, so that it is compiled once on a machine. Kernels that call it read its address from a
table: one compiled kernel serves all functions.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportInvalidTypeForm=false

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import warp as wp

from lissom.lie.types import CPU_FLAGS
from lissom.tracing.graph import LOGICAL, Graph

_Number = ctypes.POINTER(ctypes.c_double)
_Function = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Number), ctypes.POINTER(_Number))
_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip
_CALLS = {
    "pow": "::pow({}, {})", "rem": "::fmod({}, {})", "atan2": "::atan2({}, {})", "abs": "::fabs({})",
    "max": "({0} > {1} || {0} != {0} ? {0} : {1})", "min": "({0} < {1} || {0} != {0} ? {0} : {1})",
    "asinh": "::copysign(::log(::fabs({0}) + ::sqrt({0} * {0} + 1.0)), {0})",
    "acosh": "::log({0} + ::sqrt({0} * {0} - 1.0))", "atanh": "0.5 * ::log((1.0 + {0}) / (1.0 - {0}))",
    "round": "::rint({})", "sign": "double(({0} > 0.0) - ({0} < 0.0))", "is_finite": "({0} - {0} == 0.0)",
    "not": "!{}", "where": "({} ? {} : {})", "neg": "-{}",
}  # fmt: skip


@final
@dataclass(frozen=True)
class Traced:
    """Compiled functions (1) of the same arguments.

    Fields:
        address: address of each function, for the tables of kernels.
        operations: number of scalar operations of each.
    """

    address: tuple[int, ...]
    operations: tuple[int, ...]
    kernel: Any  # keeps the code in memory

    def call(self, k: int, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        """Call function k with contiguous arrays of float64."""
        ends = [(_Number * len(group))(*(x.ctypes.data_as(_Number) for x in group)) for group in (arguments, results)]
        _Function(self.address[k])(*ends)


def source(graph: Graph, sizes: Sequence[int], results: Sequence[np.ndarray]) -> tuple[str, int]:
    """The body of a function (1) and its number of operations.

    Args:
        sizes: numbers of entries of the arguments.
        results: nodes of the entries of the results.
    """
    starts = np.cumsum([0, *sizes])
    names: dict[int, str] = {}
    lines: list[str] = []

    def literal(value: float) -> str:
        if math.isnan(value):
            return "__builtin_nan(\"\")"
        if math.isinf(value):
            return "-__builtin_inf()" if value < 0 else "__builtin_inf()"
        return f"({value!r})" if value < 0 or math.copysign(1.0, value) < 0 else repr(value)

    def define(k: int) -> None:
        operation, *operands = graph.nodes[k]
        if operation == "number":
            names[k] = literal(operands[0])
            return
        if operation == "input":
            argument = int(np.searchsorted(starts, operands[0], side="right")) - 1
            names[k] = f"in[{argument}][{operands[0] - starts[argument]}]"
            return
        given = [names[operand] for operand in operands]
        if operation in _INFIX:
            text = f"{given[0]} {_INFIX[operation]} {given[1]}"
        else:
            text = _CALLS.get(operation, f"::{operation}({{}})").format(*given)
        names[k] = f"x{k}"
        lines.append(f"const {'bool' if operation in LOGICAL else 'double'} x{k} = {text};")

    for r, nodes in enumerate(results):
        for place, k in enumerate(nodes.ravel().tolist()):
            pending = [k]
            while pending:
                here = pending[-1]
                if here in names:
                    pending.pop()
                    continue
                node = graph.nodes[here]
                missing = [] if node[0] in ("number", "input") else [x for x in node[1:] if x not in names]
                if missing:
                    pending.extend(reversed(missing))
                else:
                    define(here)
                    pending.pop()
            lines.append(f"out[{r}][{place}] = {names[k]};")
    return "\n".join(lines), len(lines) - sum(nodes.size for nodes in results)


def module_of(graph: Graph, sizes: Sequence[int], functions: Sequence[Sequence[np.ndarray]]) -> Any:
    """A kernel that writes the addresses of functions (1) of one graph to an array, and their numbers of operations."""
    made = [source(graph, sizes, results) for results in functions]
    head = "static void run{}(const double* const* in, double* const* out) {{"
    parts = "\n".join(f"{head.format(k)}\n{body}\n}}" for k, (body, _) in enumerate(made))
    ends = "\n".join(f"address[{k}] = (unsigned long long)(void*)&Functions::run{k};" for k in range(len(made)))
    snippet = f"struct Functions {{\n{parts}\n}};\n{ends}"

    @wp.func_native(snippet)
    def put_addresses(address: wp.array(dtype=wp.uint64)): ...

    options = {"enable_backward": False, "cpu_compiler_flags": CPU_FLAGS, "fast_math": False}

    @wp.kernel(module="unique", module_options=options)
    def traced_functions(address: wp.array(dtype=wp.uint64)):
        put_addresses(address)

    return traced_functions, tuple(count for _, count in made)


def native_code(graph: Graph, sizes: Sequence[int], functions: Sequence[Sequence[np.ndarray]]) -> Traced:
    """Compile functions (1) of one graph.

    Args:
        sizes: numbers of entries of the arguments.
        functions: for each function the nodes of the entries of its results.
    """
    kernel, operations = module_of(graph, sizes, functions)
    address = wp.zeros(len(functions), dtype=wp.uint64, device="cpu")
    wp.launch(kernel, 1, [address], device="cpu")
    return Traced(tuple(map(int, address.numpy())), operations, kernel)
