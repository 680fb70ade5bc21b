"""Native code of traced functions: straight-line C++ from a graph of scalar operations, and its address.

A traced function has the signature

    void f(const double* const* in, double* const* out)                                                   (1)

with one pointer for each argument and for each result. Warp's compiler compiles it, without the headers of Warp's
kernels. A cache on disk contains the compiled code. Kernels that call the function find its address by a table: one
compiled kernel serves all functions. The kernels of a robot are compiled at the same time. Derivatives are compiled
for the first kernel that calls them, so that the first inverse dynamics do not wait for them.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportInvalidTypeForm=false

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache, partial
from threading import Lock
from typing import Any, NamedTuple, final
from weakref import WeakValueDictionary

import numpy as np
import warp as wp

from lissom.lie.native import own_code
from lissom.lie.start import cache_folder
from lissom.lie.types import CPU_FLAGS, mat3, vec3, vec6
from lissom.lie.warp_private import function_of_object, is_tested, object_of
from lissom.portable import cores_of_process, read_cached, write_cached
from lissom.tracing.graph import GAUSS, LEAVES, Graph, copied, require_few

_Number = ctypes.POINTER(ctypes.c_double)
_Function = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Number), ctypes.POINTER(_Number))
_FunctionOfAddresses = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)  # no type checks, for many calls
LANES = 4  # points that one pass of a loop evaluates
_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip
_LOGICAL = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "not", "is_finite"})
_MOST_IN_ONE, _PART = 3000, 250  # operations of a function that is not split, and of a part of one that is
_EXPRESSION = 8  # largest number of operations of an expression
_PARAMETERS = (
    "const double* const* in, double* const* out, const vector* outer, const vector* row, vector* __restrict w,"
    " vector* __restrict sum"
)
_NAME = re.compile(r"\bx\d+\b|\bc\d+_\d+\b")
_BARRIER = 'asm volatile("" : : "r"(sum) : "memory");'  # keeps the compiler from holding all sums in registers
_ON_DISK = 400_000_000  # largest size of the cache of compiled functions [bytes]
_ONE = "sin cos tan asin acos atan sinh cosh tanh exp exp2 log cbrt erf erfc floor ceil trunc rint sqrt fabs"
# Declarations of the C functions that native.h calls. Modules of Warp have them from its headers.
_MATHEMATICS = "\n".join([
    'extern "C" {',
    *(f"double {name}(double);" for name in _ONE.split()),
    *(f"double {name}(double, double);" for name in ("pow", "fmod", "atan2")),
    "}",
])  # fmt: skip
STUMPFF = 12  # length of an array of Stumpff functions, as in the header
# Operations that take vectors alone; others mix vectors with numbers.
_OF_VECTORS = frozenset({"where", "max", "min", "pow", "rem", "atan2", "and", "or", "xor"})


@final
class Function:
    """A compiled function (1). Threads write and compile its code, so that others can be traced meanwhile.

    Kernels read the address of the function from `cell`, where it is when the function is compiled; see
    `wait_for_functions`.

    Args:
        write: returns the code.
        begins: whether it is compiled at once; otherwise when it is first needed. The code is written at once.
    """

    def __init__(self, write: Callable[[], str], *, begins: bool) -> None:
        self.cell = np.zeros(1, dtype=np.uint64)
        self.code: Any = None  # a kernel that keeps the code in memory
        self.tasks: list[Future[Any]] = [_compilers().submit(write)]
        _functions[self.cell.ctypes.data] = self
        if begins:
            self.begin()

    def begin(self) -> None:
        """Let a thread compile it, once."""
        with _lock:
            if len(self.tasks) == 1:
                self.tasks.append(_compilers().submit(self._compiled))

    @property
    def address(self) -> int:
        """Its address. Waits until it is compiled."""
        self.begin()
        return self.tasks[1].result()

    def _compiled(self) -> int:
        found = _address(self, self.tasks[0].result())
        self.cell[0] = found
        return found


_functions: WeakValueDictionary[int, Function] = WeakValueDictionary()  # by address of the cell
_lock = Lock()  # of the tasks of functions
_registering = Lock()  # Warp registers one function at a time


@cache
def _compilers() -> ThreadPoolExecutor:
    """Threads that compile, one for each core but that of the thread that traces."""
    return ThreadPoolExecutor(max(cores_of_process() - 1, 1), thread_name_prefix="lissom-tracer")


def begin_functions(cells: np.ndarray) -> list[Function]:
    """Let threads compile the functions of cells, given by the addresses of the cells; 0 stands for none."""
    functions = [_functions[cell] for cell in cells.tolist() if cell]
    for function in functions:
        function.begin()
    return functions


def wait_for_functions(cells: np.ndarray) -> None:
    """Wait until the functions of cells are compiled, given as in `begin_functions`."""
    for function in begin_functions(cells):
        _ = function.address


def code_of_cell(cell: int) -> str:
    """The code of `Functions::run` of the function of a cell, given by the address of the cell, for other compilers.

    Raises:
        LookupError: no function has this cell.
    """
    if cell not in _functions:
        raise LookupError(f"no function has the cell {cell}")
    return str(_functions[cell].tasks[0].result())


def _wait_for_all() -> None:
    wait([task for function in list(_functions.values()) for task in function.tasks])


if hasattr(os, "register_at_fork"):  # a child process has no threads that compile
    os.register_at_fork(before=_wait_for_all, after_in_child=_compilers.cache_clear)


@final
@dataclass(frozen=True, eq=False)
class Traced:
    """Compiled functions (1) of the same arguments.

    Fields:
        name: the same for equal code.
    """

    name: str
    functions: tuple[Function, ...]

    @property
    def address(self) -> tuple[int, ...]:
        """Address of each function. Waits until they are compiled."""
        for function in self.functions:
            function.begin()
        return tuple(function.address for function in self.functions)

    @property
    def cell(self) -> tuple[int, ...]:
        """Address of the cell of each function, for the tables of kernels. Does not wait."""
        return tuple(function.cell.ctypes.data for function in self.functions)

    def call(self, k: int, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        """Call function k with contiguous arrays of float64."""
        ends = [(_Number * len(group))(*(x.ctypes.data_as(_Number) for x in group)) for group in (arguments, results)]
        _Function(self.functions[k].address)(*ends)

    def call_rows(self, k: int, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        """Call function k for each row of contiguous arrays (n, ...) of float64."""
        function, count = _FunctionOfAddresses(self.functions[k].address), len(arguments[0])
        rows = np.arange(count, dtype=np.uint64)[:, None]
        parts = [
            np.array([(x.ctypes.data, x[:1].nbytes) for x in group], np.uint64).T for group in (arguments, results)
        ]
        tables = [first + rows * size for first, size in parts]  # the pointers of each row
        ends = [range(x.ctypes.data, x.ctypes.data + x.nbytes, 8 * x.shape[1]) for x in tables]
        for given, found in zip(*ends):
            function(given, found)


@final
@dataclass(frozen=True, eq=False)
class Table:
    """Rows over which a function is a sum, in groups of equal `outer` columns (such as cross-sections of a body).

    Numbers that depend on the entries of a row alone are columns, computed once. A function evaluates LANES groups at a
    time; numbers that depend on the state and on outer columns alone are computed once for a group.

    Fields:
        graph: graph of the function.
        rows: input nodes of the entries of a row. The first one distinguishes groups.
        weights: indices of the entries that are zero in a row without effect.
        outer, inner: nodes of the columns.
        operations: numbers of operations of a group and of a row.
        moving: input nodes whose values are different in each row and in each call. They are the argument before that
            of the rows: LANES values of each node, row by row, in the order of `slots`.
    """

    graph: Graph
    rows: tuple[int, ...]
    weights: tuple[int, ...]
    outer: tuple[int, ...]
    inner: tuple[int, ...]
    operations: tuple[int, int]
    moving: tuple[int, ...] = ()

    def alone(self) -> Table:
        """The same table with a graph that has the nodes of its columns only."""
        graph = Graph()
        places = {self.graph.nodes[k][1]: graph.input(self.graph.nodes[k][1]) for k in self.rows}
        wanted = [np.array(nodes, dtype=np.int64) for nodes in (self.rows, self.outer, self.inner)]
        rows, outer, inner = (tuple(copied(graph, self.graph, nodes, places).tolist()) for nodes in wanted)
        return Table(graph, rows, self.weights, outer, inner, self.operations)

    def columns(self, values: np.ndarray) -> np.ndarray:
        """The columns for rows of entries (m, k), those of groups first, shape (m, c)."""
        known = self.graph.evaluated([*self.outer, *self.inner], dict(zip(self.rows, values.T)))
        return np.array(known).reshape(-1, len(values)).T

    def slots(self, values: np.ndarray) -> np.ndarray:
        """The place of each of the rows (m, k) among all places, of which LANES belong to one evaluation."""
        group, member, count, _ = self._grouped(values)
        return (group // LANES * count + member) * LANES + group % LANES

    def _grouped(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, int, int]:
        """The group of each row, its number in the group, the largest number of rows of a group, and the number of
        loops over groups."""
        _, group = np.unique(values[:, 0], return_inverse=True)
        count = int(np.bincount(group).max())
        alone, loops = (-(-size // LANES) for size in (len(values), int(group.max()) + 1))
        per_group, per_row = self.operations
        if alone * (per_group + per_row) <= loops * (per_group + count * per_row):
            group, count, loops = np.arange(len(values)), 1, alone
        order = np.argsort(group, kind="stable")
        member = np.empty_like(group)
        member[order] = np.arange(len(values)) - np.searchsorted(group[order], group[order])
        return group, member, count, loops

    def filled(self, values: np.ndarray) -> np.ndarray:
        """The argument of the function for rows of entries (m, k): the number of loops over groups and of members,
        then columns of LANES groups and their members."""
        group, member, count, loops = self._grouped(values)
        blank = values[0].copy()
        blank[list(self.weights)] = 0.0
        padded = np.tile(blank, (loops * LANES, count, 1))
        for g in range(int(group.max()) + 1):  # of one group, so that all have the same outer columns
            padded[g, :, 0] = values[group == g][0, 0]
        padded[group, member] = values
        flat = padded.reshape(-1, values.shape[1])
        columns = self.columns(flat).T.reshape(-1, loops, LANES, count).transpose(1, 3, 0, 2)
        n = len(self.outer)
        parts = np.concatenate([
            columns[:, 0, :n].reshape(loops, -1), columns[:, :, n:].reshape(loops, -1)
        ], axis=1)  # fmt: skip
        return np.concatenate([[loops, count, 0.0, 0.0], parts.ravel()])


class ByDirection(NamedTuple):
    """A result (o, n, m) of a function of n coordinates, as nodes (o, m) of its derivative along one direction.

    The nodes depend on one input for each coordinate: the rates. Code evaluates them for LANES directions at a time, in
    a loop, so that it is n times shorter than code of all derivatives. Each direction is that of one coordinate.
    """

    nodes: np.ndarray


def table_of(
    graph: Graph,
    results: Sequence[Sequence[np.ndarray]],
    rows: Sequence[int],
    weights: Sequence[int],
    moving: Sequence[int] = (),
    common: int = 0,
) -> Table:
    """The table for functions of the same rows.

    Args:
        results: nodes of the results of each function.
        rows, weights, moving: fields of Table.
        common: number of the last entries of a row that are the same in all rows.
    """
    of_groups = {rows[0], *rows[len(rows) - common :]} if rows else set()
    bits: dict[int, int] = {}
    outer, inner, count = {}, {}, [0, 0]
    state, free = 4, 8
    wanted = [k for nodes in results for part in nodes for k in part.ravel().tolist()]
    for k in graph.reached(wanted):
        operation, *operands = graph.nodes[k]
        if operation == "input":
            bits[k] = state if k not in rows else _OUTER if k in of_groups else _INNER
        elif operation == "variable":
            bits[k] = free << k
        elif operation == "number":
            bits[k] = 0
        elif operation == "integral":
            x, h, s = operands
            bits[k] = bits[x] | (bits[h] & ~bits[s])
        else:
            bits[k] = 0
            for operand in operands:
                bits[k] |= bits[operand]
        if 0 < bits[k] < state:
            continue
        for operand in operands if operation not in LEAVES else ():
            if 0 < bits[operand] < state:
                (inner if bits[operand] & _INNER else outer).setdefault(operand)
        if bits[k] & (_OUTER | _INNER):
            count[1 if bits[k] & _INNER else 0] += 1
    for k in wanted:
        if 0 < bits[k] < state:
            (inner if bits[k] & _INNER else outer).setdefault(k)
    return Table(graph, tuple(rows), tuple(weights), tuple(outer), tuple(inner), (count[0], count[1]), tuple(moving))


class _Line(NamedTuple):
    """A statement: its code, the names that it defines, those that it uses, and its number of operations."""

    text: str
    makes: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    size: int = 1


class _Value(NamedTuple):
    """A node of the graph in C++: its name or expression, whether it is a vector, the names that it uses, and the
    number of operations of the expression."""

    text: str
    is_vector: bool
    takes: tuple[str, ...] = ()
    size: int = 0


@final
class _Scope:
    """A place of code: before the loop over rows, in it, or in the loop of an integral.

    Fields:
        parent: the scope around it.
        own: bit of the inputs or of the variable whose nodes it holds.
        lines: its code.
        values: its nodes. Keys below 0 are arrays, which belong to no node.
    """

    def __init__(self, parent: _Scope | None, own: int) -> None:
        self.parent, self.own = parent, own
        self.lines: list[_Line] = []
        self.values: dict[int, _Value] = {}


_STATE, _OUTER, _INNER, _VARIABLE = 0, 1, 2, 2  # bits: none for the state, columns of rows; variables have higher ones


def _level(bits: int) -> int:
    """A number of the scope of a node, from the bits of the quantities that the node depends on."""
    return bits >> _VARIABLE << _VARIABLE or bits & _INNER or bits


@final
class _Writer:
    """Writes code for nodes of a graph, each once. A node that one other node uses becomes a part of the expression of
    that node, since compilers need half the time for a statement less.

    Args:
        graph: the nodes.
        leaf: code of an input.
        columns: code of the nodes that are columns of a table, and the bit of the rows that they belong to; that of
            the state if there is one row only.
        results: nodes that are wanted.
    """

    def __init__(
        self, graph: Graph, leaf: Callable[[int], str], columns: dict[int, tuple[str, int]], results: Sequence[int]
    ) -> None:
        self.graph, self.leaf, self.columns = graph, leaf, columns
        self.before = _Scope(None, _STATE)
        self.outer = _Scope(self.before, _OUTER)
        self.inner = _Scope(self.outer, _INNER)
        self.operations = 0
        self.kinds: dict[str, str] = {}  # type of each name
        self.bits: dict[int, int] = {}  # of each node, the inputs and variables that it depends on
        self.uses: Counter[int] = Counter()  # of each node; more than one if an expression cannot hold it
        self.integrals: dict[tuple[int, int, int], list[int]] = {}  # those with one limit and one variable
        self.turns: dict[int, dict[str, int]] = {}  # the sine and the cosine of a node
        for k in graph.reached(results, columns):
            self._classify(k, *graph.nodes[k])

    def _classify(self, k: int, operation: str, *operands: Any) -> None:
        if k in self.columns:
            self.bits[k] = self.columns[k][1]
        elif operation in ("number", "input"):
            self.bits[k] = 0
        elif operation == "variable":
            self.bits[k] = 1 << (_VARIABLE + operands[0])
        elif operation == "integral":
            x, h, s = operands
            self.bits[k] = self.bits[x] | (self.bits[h] & ~self.bits[s])
            self.integrals.setdefault((x, s, self.bits[k]), []).append(k)
            self.uses.update((x, x, h, h))
        else:
            bits = 0
            for operand in operands:
                bits |= self.bits[operand]
            self.bits[k] = bits
            if operation in ("sin", "cos"):
                self.turns.setdefault(operands[0], {})[operation] = k
            for operand in operands:
                is_inside = _level(self.bits[operand]) == _level(bits) and operation != "stumpff"
                self.uses[operand] += 1 if is_inside else 2

    def ends(self, results: Iterable[tuple[str, int]], scope: _Scope) -> None:
        """Write statements at the end of a scope, each given by its code up to the node that completes it."""
        results = list(results)
        for _, k in results:
            self.uses[k] += 1 if self._owner(k, scope) is scope else 2
        for target, k in results:
            value = self.value(k, scope)
            scope.lines.append(_Line(f"{target}{value.text};", (), value.takes, 1 + value.size))

    def value(self, wanted: int, scope: _Scope) -> _Value:
        """A node in a scope, after the code that computes it is written."""
        nodes, columns, pending = self.graph.nodes, self.columns, [wanted]
        while pending:
            k = pending[-1]
            if not self._is_known(k, scope):
                operation, *operands = nodes[k]
                if operation in LEAVES or k in columns:
                    operands = []
                elif operation == "integral":
                    operands = operands[:1]
                missing = [x for x in operands if not self._is_known(x, scope)]
                if missing:
                    pending.extend(reversed(missing))
                    continue
                self._define(k, self._owner(k, scope), operation)
            pending.pop()
        return self._known(wanted, scope)

    def _owner(self, k: int, scope: _Scope) -> _Scope:
        bits = self.bits[k]
        while scope.parent is not None and not bits & scope.own:
            scope = scope.parent
        return scope

    def _is_known(self, k: int, scope: _Scope) -> bool:
        return k in self._owner(k, scope).values

    def _known(self, k: int, scope: _Scope) -> _Value:
        return self._owner(k, scope).values[k]

    def _define(self, k: int, scope: _Scope, operation: str) -> None:
        operands = self.graph.nodes[k][1:]
        if k in self.columns:
            scope.values[k] = _Value(self.columns[k][0], self.columns[k][1] != _STATE)
            return
        if operation in ("number", "input"):
            scope.values[k] = _Value((_literal if operation == "number" else self.leaf)(operands[0]), False)
            return
        if operation == "integral":
            self._integrate(k, scope)
            return
        self.operations += 1
        if operation == "stumpff":
            scope.values[k] = self._stumpff(scope, *operands)
            return
        if operation in ("sin", "cos") and len(self.turns[operands[0]]) == 2:
            self._turn(scope, operands[0])
            return
        given = [self._known(operand, scope) for operand in operands]
        is_vector = any(value.is_vector for value in given)
        texts = [value.text if value.is_vector or not is_vector or operation not in _OF_VECTORS
                 else f"every({value.text})" for value in given]  # fmt: skip
        infix = _INFIX.get(operation)
        text = f"{texts[0]} {infix} {texts[1]}" if infix else f"f_{operation}({', '.join(texts)})"
        takes = tuple(name for value in given for name in value.takes)
        size = 1 + sum(value.size for value in given)
        if self.uses[k] == 1 and size <= _EXPRESSION:
            scope.values[k] = _Value(f"({text})" if infix else text, is_vector, takes, size)
            return
        logical, name = operation in _LOGICAL, f"x{k}"
        kind = ("flags" if logical else "vector") if is_vector else "bool" if logical else "double"
        self.kinds[name] = kind
        scope.values[k] = _Value(name, is_vector, (name,))
        scope.lines.append(_Line(f"const {kind} {name} = {text};", (name,), takes, size))

    def _stumpff(self, scope: _Scope, t: int, order: int) -> _Value:
        x = self._known(t, scope)
        key, array = -1 - t, f"c{t}"
        if key not in scope.values:
            scope.values[key] = _Value(array, x.is_vector, (array,))
            self.kinds[array] = "vector*" if x.is_vector else "double*"
            scope.lines.append(_Line(f"f_stumpff({x.text}, {array});", (array,), x.takes))
        place = int(self.graph.nodes[order][1])
        name, kind = f"{array}_{place}", "vector" if x.is_vector else "double"
        self.kinds[name] = kind
        scope.lines.append(_Line(f"const {kind} {name} = {array}[{place}];", (name,), (array,)))
        return _Value(name, x.is_vector, (name,))

    def _turn(self, scope: _Scope, angle: int) -> None:
        """Both the sine and the cosine of a node, at the cost of one."""
        self.operations += 1
        x, names = self._known(angle, scope), [f"x{self.turns[angle][operation]}" for operation in ("sin", "cos")]
        kind = "vector" if x.is_vector else "double"
        for operation, name in zip(("sin", "cos"), names):
            scope.values[self.turns[angle][operation]] = _Value(name, x.is_vector, (name,))
            self.kinds[name] = kind
        text = f"{kind} {', '.join(names)};\nf_turn({kind}({x.text}), {', '.join(names)});"
        scope.lines.append(_Line(text, tuple(names), x.takes, 2 + x.size))

    def _integrate(self, k: int, scope: _Scope) -> None:
        """A loop for all integrals with the limit and the variable of node k. If they depend on the state alone, one
        pass evaluates LANES points of the rule; otherwise the lanes belong to rows of a table."""
        x, _, s = self.graph.nodes[k][1:]
        members = self.integrals[x, s, self.bits[k]]
        limit = self.value(x, scope)
        in_lanes = not limit.is_vector and not any(self.bits[self.graph.nodes[m][2]] & ~self.bits[s] for m in members)
        loop = _Scope(scope, self.bits[s])
        at = f"s{k}"
        loop.values[s] = _Value(at, in_lanes or limit.is_vector, (at,))
        sums, heads = [], []
        for member in members:
            h = self.value(self.graph.nodes[member][2], loop)
            name, is_vector = f"x{member}", not in_lanes and (limit.is_vector or h.is_vector)
            heads.append(f"{'vector' if in_lanes or is_vector else 'double'} sum{member} = {{}};")
            sums.append(_Line(f"sum{member} += {h.text} * weight{k};", (), h.takes))
            scope.values[member] = _Value(name, is_vector, (name,))
            self.kinds[name] = "vector" if is_vector else "double"
        inside = [*loop.lines, *sums]
        made = {name for line in inside for name in line.makes} | {at}
        kind, step, whole = ("vector", LANES, "total(sum{})") if in_lanes else ("double", 1, "sum{}")
        text = [
            *heads,
            f"for (int r{k} = 0; r{k} < GAUSS; r{k} += {step}) {{",
            f"{kind} point{k}, weight{k};",
            f"__builtin_memcpy(&point{k}, gauss_at + r{k}, sizeof(point{k}));",
            f"__builtin_memcpy(&weight{k}, gauss_weight + r{k}, sizeof(weight{k}));",
            f"const auto {at} = {limit.text} * point{k};",
            *_code(inside, self.kinds),
            "}",
            *(f"const auto x{member} = {whole.format(member)} * {limit.text};" for member in members),
        ]
        takes = dict.fromkeys([*limit.takes, *(name for line in inside for name in line.takes if name not in made)])
        size = sum(line.size for line in inside)
        scope.lines.append(_Line("\n".join(text), tuple(f"x{member}" for member in members), tuple(takes), size))


def _code(lines: Sequence[_Line], kinds: dict[str, str]) -> list[str]:
    """The code of lines, with the arrays that they fill."""
    arrays = [name for line in lines for name in line.makes if kinds[name].endswith("*")]
    return [*(f"{kinds[name][:-1]} {name}[STUMPFF];" for name in arrays), *(line.text for line in lines)]


def _parts(lines: list[_Line]) -> Iterator[list[_Line]]:
    """The lines in groups of about _PART operations."""
    first, size = 0, 0
    for k, line in enumerate(lines):
        size += line.size
        if size >= _PART or k == len(lines) - 1:
            yield lines[first : k + 1]
            first, size = k + 1, 0


def _split(scopes: Sequence[_Scope], kinds: dict[str, str], prefix: str) -> tuple[str, list[list[str]], int]:
    """Functions of some lines each, since compilers need more than twice the time for a function of twice the length.
    Numbers that more than one of them needs are in an array w of vectors.

    Returns:
        The code of the functions, their calls in each scope, and the length of w.
    """
    parts = [(level, lines) for level, scope in enumerate(scopes) for lines in _parts(scope.lines)]
    home = {name: e for e, (_, lines) in enumerate(parts) for line in lines for name in line.makes}
    last: dict[str, int] = {}  # part after which a number is not needed; those of outer loops are kept
    for e, (level, lines) in enumerate(parts):
        for name in (name for line in lines for name in line.takes if home.get(name, e) < e):
            last[name] = max(last.get(name, 0), e if parts[home[name]][0] == level else len(parts))
    ending: dict[int, list[str]] = {}  # names of which nothing is needed after a part
    starting: dict[int, list[str]] = {}  # names that need a place from a part on
    for name in (name for name in home if name in last or kinds[name].endswith("*")):
        starting.setdefault(home[name], []).append(name)
        ending.setdefault(last.get(name, home[name]), []).append(name)
    place, size, free = {}, 0, {1: [], STUMPFF: []}
    functions, calls = [], [[] for _ in scopes]
    for e, (level, lines) in enumerate(parts):
        for name in starting.get(e, ()):
            room = STUMPFF if kinds[name].endswith("*") else 1
            place[name], size = (free[room].pop(), size) if free[room] else (size, size + room)
        text, here, stored = [], set(), {}
        for line in lines:
            for name in (name for name in (*line.takes, *line.makes) if name in place and name not in here):
                here.add(name)
                kind, at = kinds[name], f"w + {place[name]}"
                if kind.endswith("*"):
                    text.append(f"{kind} const {name} = ({kind})({at});")
                elif home[name] < e and kind == "vector":
                    stored[name] = f"w[{place[name]}]"
                elif home[name] < e:
                    text.append(f"{kind} {name};\n__builtin_memcpy(&{name}, {at}, sizeof({name}));")
            text.append(_replaced(line.text, stored) if any(name in stored for name in line.takes) else line.text)
            for name in (name for name in line.makes if name in place and not kinds[name].endswith("*")):
                is_plain = kinds[name] == "vector"
                at = place[name]
                text.append(f"w[{at}] = {name};" if is_plain else
                            f"__builtin_memcpy(w + {at}, &{name}, sizeof({name}));")  # fmt: skip
        for name in ending.get(e, ()):
            free[STUMPFF if kinds[name].endswith("*") else 1].append(place.pop(name))
        body = "\n".join(text)
        functions.append(f"static __attribute__((noinline)) void {prefix}_{e}({_PARAMETERS}) {{\n{body}\n}}")
        calls[level].append(f"{prefix}_{e}(in, out, outer, row, w, sum);")
    return "\n".join(functions), calls, size


def _replaced(text: str, places: Mapping[str, str]) -> str:
    """Code with places instead of names."""
    return _NAME.sub(lambda found: places.get(found[0], found[0]), text)


def _in_directions(inside: list[str], along: Sequence[tuple[int, np.ndarray]], n: int) -> list[str]:
    """The loop over n directions around the code `inside`, for results with numbers and nodes (o, m) `along` them."""
    if not along:
        return []
    scatter, first = [], 0
    for r, nodes in along:
        m = nodes.shape[-1]
        scatter += [
            f"for (int e = 0; e < {nodes.size // m}; ++e)",
            f"for (int i = 0; i < {m}; ++i)",
            f"out[{r}][(e * {n} + c) * {m} + i] = sum[{first} + e * {m} + i][c - from];",
        ]
        first += nodes.size
    return [
        f"for (int from = 0; from < {n}; from += {LANES}) {{",
        f"for (int k = 0; k < {n}; ++k)",
        f"row[k] = vector{{{', '.join(f'(double)(k == from + {lane})' for lane in range(LANES))}}};",
        *inside,
        f"for (int c = from; c < {n} && c < from + {LANES}; ++c) {{",
        *scatter,
        "}",
        _BARRIER,
        "}",
    ]


def _totals(sums: Sequence[Sequence[int]]) -> list[str]:
    """Code that puts sums over rows into results, given the number of the sum for each entry of each result. As one
    statement for each entry it would take the compiler as long as all other code."""
    starts = np.cumsum([0, *map(len, sums)]).tolist()
    flat = [k for one in sums for k in one]
    return [
        f"static const int number[] = {{{', '.join(map(str, flat))}}};",
        f"static const int start[] = {{{', '.join(map(str, starts))}}};",
        f"for (int r = 0; r < {len(sums)}; ++r)",
        "for (int e = start[r]; e < start[r + 1]; ++e)",
        "out[r][e - start[r]] = total(sum[number[e]]);",
    ]


def _literal(value: float) -> str:
    if math.isnan(value):
        return '__builtin_nan("")'
    if math.isinf(value):
        return "-__builtin_inf()" if value < 0 else "__builtin_inf()"
    return f"({value!r})" if math.copysign(1.0, value) < 0 else repr(value)


def source(
    name: str,
    graph: Graph,
    sizes: Sequence[int],
    results: Sequence[np.ndarray | ByDirection],
    table: Table | None,
    row: Table | None,
    is_sum: bool,
    rates: Sequence[int],
) -> str:
    """The code of a function (1).

    Args:
        sizes: numbers of entries of the arguments.
        results: nodes of the entries of the results, as of `code_of`.
        table, row: as of `code_of`.
        is_sum: False if the function has one result for each row of the table: LANES values of each entry, row by row.
        rates: as of `code_of`.
    """
    leaf, columns = partial(_entry, np.cumsum([0, *sizes])), dict[int, tuple[str, int]]()
    if table is not None:
        for array, bit, nodes in (("outer", _OUTER, table.outer), ("row", _INNER, table.inner)):
            for c, k in enumerate(nodes):
                test = " != 0.0" if graph.nodes[k][0] in _LOGICAL else ""
                columns[k] = f"({array}[{c}]{test})" if test else f"{array}[{c}]", bit
        columns |= {k: (f"row[{len(table.inner) + c}]", _INNER) for c, k in enumerate(table.moving)}
    elif row is not None:
        for c, k in enumerate((*row.outer, *row.inner)):
            entry = f"in[{len(sizes) - 1}][{c}]"
            columns[k] = f"({entry} != 0.0)" if graph.nodes[k][0] in _LOGICAL else entry, _STATE
    columns |= {k: (f"row[{c}]", _INNER) for c, k in enumerate(rates)}
    along = [(r, one.nodes) for r, one in enumerate(results) if isinstance(one, ByDirection)]
    plain = [(r, one) for r, one in enumerate(results) if not isinstance(one, ByDirection)]
    entries = [(r, e, k) for r, nodes in plain for e, k in enumerate(nodes.ravel().tolist())]
    directed = [k for _, nodes in along for k in nodes.ravel().tolist()]
    sums = {k: n for n, k in enumerate(dict.fromkeys(k for _, _, k in entries))}
    is_sum = is_sum and table is not None
    writer = _Writer(graph, leaf, columns, [*sums, *directed])
    scopes = [writer.before, writer.outer, writer.inner]
    count = len(sums) if is_sum else len(entries)
    if table is None:
        writer.ends(((f"out[{r}][{e}] = ", k) for r, e, k in entries), writer.before)
        writer.ends(((f"sum[{n}] = vector{{}} + ", k) for n, k in enumerate(directed)), writer.inner)
    elif is_sum:
        writer.ends(((f"sum[{n}] += ", k) for k, n in sums.items()), writer.inner)
    else:
        writer.ends(((f"sum[{n}] = vector{{}} + ", k) for n, (_, _, k) in enumerate(entries)), writer.inner)
    helpers, calls, size = _divided(writer, scopes, name)
    if table is None:
        loops, ends = [*calls[0], *_in_directions(calls[2], along, len(rates))], []
    else:
        columns_of = (len(table.outer), len(table.inner))
        moved, rows = len(table.moving) * LANES, _argument(np.cumsum([0, *sizes]), graph.nodes[table.rows[0]][1])
        moves = [
            f"__builtin_memcpy(row + {columns_of[1]}, moving, {moved} * sizeof(double));", f"moving += {moved};"
        ] if moved else []  # fmt: skip
        own = [] if is_sum else ["__builtin_memcpy(to, sum, sizeof(sum));", f"to += {count * LANES};"]
        loops = [
            *calls[0],
            *([f"const double* moving = in[{rows - 1}];"] if moved else []),
            *([] if is_sum else ["double* to = out[0];"]),
            f"const double* at = in[{rows}];",
            "const int groups = (int)at[0], members = (int)at[1];",
            f"at += {LANES};",
            "for (int g = 0; g < groups; ++g) {",
            f"__builtin_memcpy(outer, at, {columns_of[0] * LANES} * sizeof(double));",
            f"at += {columns_of[0] * LANES};",
            *calls[1],
            "for (int r = 0; r < members; ++r) {",
            f"__builtin_memcpy(row, at, {columns_of[1] * LANES} * sizeof(double));",
            f"at += {columns_of[1] * LANES};",
            *moves,
            *calls[2],
            *own,
            _BARRIER,
            "}\n}",
        ]
        ends = _totals([[sums[k] for k in nodes.ravel().tolist()] for _, nodes in plain]) if is_sum else []
    columns_of = (len(table.outer), len(table.inner) + len(table.moving)) if table else (0, len(rates))
    counts = [count if table else len(directed) + 1, size + 1, columns_of[0] + 1, columns_of[1] + 1]
    arrays = [f"vector {array}[{count}];" for array, count in zip(("sum", "w", "outer", "row"), counts)]
    body = "\n".join([*arrays, "__builtin_memset(sum, 0, sizeof(sum));", *loops, *ends])
    return f"{helpers}\nstatic void {name}(const double* const* in, double* const* out) {{\n{body}\n}}"


def source_in_lanes(
    name: str, graph: Graph, sizes: Sequence[int], moving: Sequence[int], results: Sequence[np.ndarray]
) -> str:
    """The code of a function of LANES points at a time, for other code,

        void f(const double* const* in, const vector* row, vector* sum)

    Args:
        sizes: numbers of entries of the arguments.
        moving: input nodes whose values are those of the points, in `row`. The other arguments are `in`.
        results: nodes of the entries of `sum`, one result after the other.
    """
    nodes = [k for part in results for k in part.ravel().tolist()]
    columns = {k: (f"row[{c}]", _INNER) for c, k in enumerate(moving)}
    writer = _Writer(graph, partial(_entry, np.cumsum([0, *sizes])), columns, nodes)
    writer.ends(((f"sum[{n}] = vector{{}} + ", k) for n, k in enumerate(nodes)), writer.inner)
    helpers, calls, size = _divided(writer, [writer.before, writer.outer, writer.inner], name)
    unused = "double* const* const out = nullptr;\nconst vector* const outer = nullptr;\n(void)out;\n(void)outer;"
    body = "\n".join([f"vector w[{size + 1}];\n(void)w;", unused, *(line for lines in calls for line in lines)])
    head = f"static void {name}(const double* const* in, const vector* row, vector* __restrict sum)"
    return f"{helpers}\n{head} {{\n{body}\n}}"


def _argument(starts: np.ndarray, place: int) -> int:
    """The number of the argument with an input, from the starts of arguments."""
    return int(np.searchsorted(starts, place, side="right")) - 1


def _entry(starts: np.ndarray, place: int) -> str:
    """The code of an input."""
    argument = _argument(starts, place)
    return f"in[{argument}][{place - starts[argument]}]"


def _divided(writer: _Writer, scopes: Sequence[_Scope], name: str) -> tuple[str, list[list[str]], int]:
    """As `_split` for large functions; for others no functions, and the code of each scope."""
    if writer.operations > _MOST_IN_ONE:
        return _split(scopes, writer.kinds, name)
    return "", [_code(scope.lines, writer.kinds) for scope in scopes], 0


@final
class _Named:
    """Warp's decorator of native functions, each under a name of its own. Warp takes the type of a result only from
    functions whose decorator is called `func_native`."""

    @staticmethod
    def func_native(snippet: str) -> Callable[[Any], Any]:
        """The decorator."""

        def made(function: Any) -> Any:
            function.__qualname__ = f"traced_{hashlib.sha256(snippet.encode()).hexdigest()[:16]}"
            return wp.func_native(snippet)(function)

        return made


def _returning(code: Sequence[str], results: Sequence[str]) -> str:
    """A snippet of lines of code that returns their results as a vector of six numbers."""
    ends = (f"found[{k}] = {name};" for k, name in enumerate(results))
    return "\n".join(["using namespace traced;", *code, "wp::vec_t<6, double> found;", *ends, "return found;"])


@cache
def compiled_force(code: tuple[str, ...], results: tuple[str, ...]) -> Any:
    """The Warp function of (R, p, eta, s, t) that returns the wrench of `force_code`. Equal code is one function."""

    @_Named.func_native(_returning(code, results))
    def force(R: mat3, p: vec3, eta: vec6, s: wp.float64, t: wp.float64) -> vec6: ...

    force.is_traced = True  # kernels that call it need the code of tracing/native.h
    return force


def force_code(graph: Graph, wrench: np.ndarray) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines of code of a wrench (6,) that depends on t, g (4, 4) and eta (6,), the inputs of a graph in this order, and
    the names of its entries.

    Raises:
        Refused: too many operations.
    """

    def leaf(place: int) -> str:
        row, column = divmod(place - 1, 4)
        if place == 0:
            return "t"
        if place > 16:
            return f"eta[{place - 17}]"
        return f"R.data[{row}][{column}]" if column < 3 else f"p[{row}]"

    return _lines(graph, wrench, leaf)


def _lines(graph: Graph, nodes: np.ndarray, leaf: Callable[[int], str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines of code of nodes (n,), and the names of their values. `leaf` returns the code of an input."""
    require_few(graph.count([nodes]))
    writer = _Writer(graph, leaf, {}, nodes.tolist())
    names = [f"result_{k}" for k in range(len(nodes))]
    writer.ends(((f"const double {name} = ", k) for name, k in zip(names, nodes.tolist())), writer.before)
    return tuple(_code(writer.before.lines, writer.kinds)), tuple(names)


@cache
def compiled_current(code: tuple[str, ...], results: tuple[str, ...]) -> Any:
    """The Warp function of (x, t) that returns the velocity and the acceleration of `current_code`. Equal code is one
    function."""

    @_Named.func_native(_returning(code, results))
    def current(x: vec3, t: wp.float64) -> vec6: ...

    current.is_traced = True  # kernels that call it need the code of tracing/native.h
    return current


def current_code(graph: Graph, nodes: np.ndarray) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines of code of numbers (6,) that depend on a point x (3,) and on t, the inputs of a graph in this order, and
    the names of the numbers.

    Raises:
        Refused: too many operations.
    """
    return _lines(graph, nodes, ("x[0]", "x[1]", "x[2]", "t").__getitem__)


@cache
def compiled_law(*codes: tuple[tuple[str, ...], str]) -> Any:
    """The Warp function of (x, rate) that returns the first number of `law_code`. Its `slopes` return the others. Equal
    code is one function."""
    made = []
    for code, result in codes:
        snippet = "\n".join(["using namespace traced;", *code, f"return {result};"])

        @_Named.func_native(snippet)
        def law(x: wp.float64, rate: wp.float64) -> wp.float64: ...

        law.is_traced = True  # kernels that call it need the code of tracing/native.h
        made.append(law)
    made[0].slopes = tuple(made[1:])
    return made[0]


def law_code(graph: Graph, results: Sequence[int]) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Lines of code of each of several numbers that depend on x and its rate, the inputs of a graph in this order, and
    the name of the number.

    Raises:
        Refused: too many operations.
    """
    found = []
    for node in results:
        require_few(graph.count([np.array([node])]))
        writer = _Writer(graph, ("x", "rate").__getitem__, {}, [node])
        writer.ends([("const double result = ", node)], writer.before)
        found.append((tuple(_code(writer.before.lines, writer.kinds)), "result"))
    return tuple(found)


class Code(NamedTuple):
    """Code of functions (1) of the same arguments.

    Fields:
        functions: for each function, what writes its code, in which it is `Functions::run`.
        table: the rows over which the results are sums, or the one on which they depend; None without either.
        name: the same for equal code; empty if unknown.
    """

    functions: tuple[Callable[[], str], ...]
    table: Table | None
    name: str = ""


def code_of(
    functions: Sequence[tuple[Graph, Sequence[np.ndarray | ByDirection]]],
    sizes: Sequence[int],
    table: Table | None = None,
    by_row: Sequence[int] = (),
    row: Table | None = None,
    rates: Sequence[int] = (),
) -> Code:
    """The code of functions (1) of the same arguments. It is written later; the graphs must stay as they are.

    Args:
        functions: for each function its graph, and the nodes of the entries of its results.
        sizes: numbers of entries of the arguments.
        table: rows over which the results are sums; their columns are the argument of their entries. None: the results
            are no sums.
        by_row: numbers of the functions that have one result for each row, in place of sums.
        row: instead of a table, the description of one row on which the results depend. The last argument are its
            columns.
        rates: instead of a table, input nodes of the rates of results by direction.
    """
    rows = table or row
    parts = (
        partial(_text, graph, sizes, results, table, row, k not in by_row, rates)
        for k, (graph, results) in enumerate(functions)
    )
    return Code(tuple(parts), None if rows is None else rows.alone())


def code_with(
    header: str,
    graph: Graph,
    functions: Mapping[str, Sequence[np.ndarray]],
    sizes: Sequence[int],
    moving: Sequence[int],
    calls: Sequence[str],
) -> Code:
    """The code of functions (1) that a header of the package defines, which calls traced functions of LANES points.

    Args:
        header: path of the header below the package. Its code stands in a struct with the traced functions.
        functions: nodes of the results of traced functions by name.
        sizes, moving: as of `source_in_lanes`.
        calls: names of the functions of the header that become the functions of the code.
    """

    def text(call: str) -> str:
        parts = [source_in_lanes(name, graph, sizes, moving, results) for name, results in functions.items()]
        run = f"static void run(const double* const* in, double* const* out) {{ {call}(in, out); }}"
        return _in_struct("\n".join([*parts, own_code(header), run]))

    return Code(tuple(partial(text, call) for call in calls), None)


def _text(*given: Any) -> str:
    """The code of a function `Functions::run`, from the arguments of `source` after the name."""
    return _in_struct(source("run", *given))


def _in_struct(code: str) -> str:
    """The code of functions as those of `Functions`, with what it needs."""
    rules = "\n".join(
        f"static constexpr double gauss_{name}[GAUSS] = {{{', '.join(map(repr, values.tolist()))}}};"
        for name, values in zip(("at", "weight"), GAUSS)
    )
    head = f"using namespace traced;\nconstexpr int GAUSS = {len(GAUSS[0])};\n{rules}"
    return f"{head}\nstruct Functions {{\n{code}\n}};"


_loaded: WeakValueDictionary[str, Traced] = WeakValueDictionary()


def compiled_functions(code: Code) -> Traced:
    """Functions of a code. Threads compile the first one at once, the others when they are needed. While they live,
    equal codes return the same functions."""
    functions, _, name = code
    if not name:
        texts = [write() for write in functions]
        name = hashlib.sha256("\0".join(texts).encode()).hexdigest()
        functions = [partial(str, text) for text in texts]
    known = _loaded.get(name)
    if known is not None:
        return known
    return _loaded.setdefault(
        name, Traced(name, tuple(Function(write, begins=k == 0) for k, write in enumerate(functions)))
    )


def _address(function: Function, text: str) -> int:
    """Compile the code of `Functions::run`, and return the address of that function."""
    flags, level = CPU_FLAGS + " -relaxed-aliasing", 1  # level 2 takes a third longer for code that runs as fast
    if not is_tested(wp.__version__):
        return _address_by_kernel(function, text, flags, level)
    whole = "\n".join([
        _MATHEMATICS, own_code("tracing/native.h"), "namespace {", text, "}",
        'extern "C" void traced_function(const double* const* in, double* const* out) { Functions::run(in, out); }',
    ])  # fmt: skip
    key = "\0".join([whole, str(level), wp.get_cpu_kernel_cache_key(cpu_compiler_flags=flags)])
    file = cache_folder("lissom-traced") / f"{hashlib.sha256(key.encode()).hexdigest()}.o"
    found = read_cached(file, lambda file: function_of_object(file.read_bytes(), "traced_function", function))
    if found is None:
        code = object_of(whole, flags, level)
        found = function_of_object(code, "traced_function", function)
        write_cached(file, lambda stream: stream.write(code), _ON_DISK)
    return found


def _address_by_kernel(function: Function, text: str, flags: str, level: int) -> int:
    """`_address` by the public part of Warp, which takes a second longer."""
    options = {
        "enable_backward": False,
        "cpu_compiler_flags": flags,
        "fast_math": False,
        "optimization_level": level,
        "extra_build_options": wp.ModuleBuildOptions(extra_cpu_preamble=own_code("tracing/native.h")),
    }
    with _registering:

        @wp.func_native(f"{text}\naddress[0] = (unsigned long long)(void*)&Functions::run;")
        def put_address(address: wp.array(dtype=wp.uint64)): ...

        @wp.kernel(module="unique", module_options=options)
        def traced_function(address: wp.array(dtype=wp.uint64)):
            put_address(address)

    function.code = traced_function
    address = wp.zeros(1, dtype=wp.uint64, device="cpu")
    wp.launch(traced_function, 1, [address], device="cpu")
    return int(address.numpy()[0])
