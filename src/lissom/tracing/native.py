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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import warp as wp

from lissom.lie.native import own_code
from lissom.lie.types import CPU_FLAGS
from lissom.tracing.graph import Graph

_Number = ctypes.POINTER(ctypes.c_double)
_Function = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Number), ctypes.POINTER(_Number))
LANES = 4  # points that one pass of a loop evaluates
_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip
# Operations that take vectors alone; others mix vectors with numbers.
_OF_VECTORS = frozenset({"where", "max", "min", "pow", "rem", "atan2", "and", "or", "xor"})


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


@final
class _Writer:
    """Writes straight-line code for nodes of a graph, each once."""

    def __init__(self, graph: Graph, sizes: Sequence[int], rows: int | None) -> None:
        self.graph, self.rows = graph, rows
        self.starts = np.cumsum([0, *sizes])
        self.names: dict[int, str] = {}
        self.of_rows: set[int] = set()  # nodes that differ from row to row
        self.before: list[str] = []  # code before the loop over rows, and in it
        self.inside: list[str] = []

    def name(self, wanted: int) -> str:
        """The name of a node, after the code that computes it is written."""
        pending = [wanted]
        while pending:
            k = pending[-1]
            operation, *operands = self.graph.nodes[k]
            is_leaf = operation in ("number", "input")
            missing = [] if is_leaf else [x for x in operands if x not in self.names]
            if missing and k not in self.names:
                pending.extend(reversed(missing))
                continue
            pending.pop()
            if k not in self.names:
                self.define(k, operation, operands)
        return self.names[wanted]

    def define(self, k: int, operation: str, operands: list[Any]) -> None:
        if operation == "number":
            self.names[k] = _literal(operands[0])
            return
        if operation == "input":
            argument = int(np.searchsorted(self.starts, operands[0], side="right")) - 1
            place = operands[0] - self.starts[argument]
            if argument == self.rows:
                self.of_rows.add(k)
                self.names[k] = f"row[{place}]"
            else:
                self.names[k] = f"in[{argument}][{place}]"
            return
        given = [self.names[operand] for operand in operands]
        by_row = any(operand in self.of_rows for operand in operands)
        if by_row and operation in _OF_VECTORS:
            given = [x if y in self.of_rows else f"every({x})" for x, y in zip(given, operands)]
        infix = _INFIX.get(operation)
        text = f"{given[0]} {infix} {given[1]}" if infix else f"f_{operation}({', '.join(given)})"
        self.names[k] = f"x{k}"
        self.of_rows |= {k} if by_row else set()
        (self.inside if by_row else self.before).append(f"const auto x{k} = {text};")


def _literal(value: float) -> str:
    if math.isnan(value):
        return '__builtin_nan("")'
    if math.isinf(value):
        return "-__builtin_inf()" if value < 0 else "__builtin_inf()"
    return f"({value!r})" if math.copysign(1.0, value) < 0 else repr(value)


def source(graph: Graph, sizes: Sequence[int], results: Sequence[np.ndarray], rows: int | None) -> tuple[str, int]:
    """The body of a function (1) and its number of operations.

    Args:
        sizes: numbers of entries of the arguments.
        results: nodes of the entries of the results.
        rows: number of the argument that is a table of rows (`table_of_rows`). The results are then sums over its rows.
    """
    writer = _Writer(graph, sizes, rows)
    entries = [(f"out[{r}][{e}]", k) for r, nodes in enumerate(results) for e, k in enumerate(nodes.ravel().tolist())]
    if rows is None:
        ends = [f"{place} = {writer.name(k)};" for place, k in entries]
        return "\n".join([*writer.before, *ends]), len(writer.before)
    sums = {k: n for n, k in enumerate(dict.fromkeys(k for _, k in entries))}
    for k, n in sums.items():
        writer.inside.append(f"sum[{n}] += {writer.name(k)};")
    parts = [
        *writer.before,
        f"vector sum[{len(sums)}] = {{}};",
        f"const int count = (int)in[{rows}][0];",
        "for (int r = 0; r < count; ++r) {",
        f"vector row[{sizes[rows]}];",
        f"__builtin_memcpy(row, in[{rows}] + {LANES} + r * {LANES * sizes[rows]}, sizeof(row));",
        *writer.inside,
        "}",
        *(f"{place} = total(sum[{sums[k]}]);" for place, k in entries),
    ]
    return "\n".join(parts), len(writer.before) + len(writer.inside) - len(sums)


def table_of_rows(rows: np.ndarray, weighs: Sequence[int]) -> np.ndarray:
    """The table of a function that sums over rows (m, k): the number of passes of its loop, then the entries of LANES
    rows each. The last pass is filled up with the first row, whose columns `weighs` are zero there."""
    count = -(-len(rows) // LANES)
    filled = np.repeat(rows[:1], count * LANES, axis=0)
    filled[:, list(weighs)] = 0.0
    filled[: len(rows)] = rows
    return np.concatenate([np.full(LANES, float(count)), filled.reshape(count, LANES, -1).swapaxes(1, 2).ravel()])


def native_code(
    functions: Sequence[tuple[Graph, Sequence[np.ndarray]]], sizes: Sequence[int], rows: int | None = None
) -> Traced:
    """Compile functions (1) of the same arguments.

    Args:
        functions: for each function its graph, and the nodes of the entries of its results.
        sizes: numbers of entries of the arguments.
        rows: number of the argument that is a table of rows, over which the results are sums.
    """
    made = [source(graph, sizes, results, rows) for graph, results in functions]
    head = "static void run{}(const double* const* in, double* const* out) {{"
    parts = "\n".join(f"{head.format(k)}\n{body}\n}}" for k, (body, _) in enumerate(made))
    ends = "\n".join(f"address[{k}] = (unsigned long long)(void*)&Functions::run{k};" for k in range(len(made)))
    snippet = f"using namespace traced;\nstruct Functions {{\n{parts}\n}};\n{ends}"

    @wp.func_native(snippet)
    def put_addresses(address: wp.array(dtype=wp.uint64)): ...

    options = {
        "enable_backward": False,
        "cpu_compiler_flags": CPU_FLAGS,
        "fast_math": False,
        "extra_build_options": wp.ModuleBuildOptions(extra_cpu_preamble=own_code("tracing/native.h")),
    }

    @wp.kernel(module="unique", module_options=options)
    def traced_functions(address: wp.array(dtype=wp.uint64)):
        put_addresses(address)

    address = wp.zeros(len(functions), dtype=wp.uint64, device="cpu")
    wp.launch(traced_functions, 1, [address], device="cpu")
    return Traced(tuple(map(int, address.numpy())), tuple(count for _, count in made), traced_functions)
