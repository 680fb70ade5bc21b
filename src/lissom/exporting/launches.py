"""Recorded launches as C++: code of a kernel, and statements that fill its arguments.

The arguments of a launch are structs of arrays and numbers. Arrays of model tables become constants, which all launches
and threads share. The other arrays are working memory: their places are offsets in one block, which the caller of the
exported code owns. Arrays with numbers other than zero at the start are copied there from constants.

Tables of users' functions hold addresses of cells, in which kernels find the address of a function. The exported
functions have such cells too.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportOptionalOperand=false

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np
import warp as wp

from lissom.launch.buffers import Buffers
from lissom.launch.points import FrameRowsStruct
from lissom.lie.warp_private import argument_names, generated_code, struct_of
from lissom.model.model import Model
from lissom.model.tables import TablesStruct, TermRows
from lissom.passes.blocks import BlocksStruct, FrontsStruct
from lissom.passes.columns import ColumnsStruct
from lissom.tracing.native import code_of_cell

_CONSTANT = (TablesStruct, ColumnsStruct, BlocksStruct, FrontsStruct, FrameRowsStruct)  # structs that no kernel writes
_WRITTEN = ("t.contacts.anchor",)  # arrays in such structs that steps write
_ALIGNED = 64  # bytes to which places in the working memory are rounded up


@final
@dataclass(frozen=True)
class Table:
    """A constant array of the exported code.

    Fields:
        name: its name, without the prefix of the robot.
        type: C++ type of an entry. fields: declarations of the fields of an entry that is a struct; empty for others.
        values: texts of the entries. cells: numbers of users' functions, in the entries of a table of cells.
    """

    name: str
    type: str
    values: tuple[str, ...]
    fields: tuple[str, ...] = ()
    cells: tuple[int, ...] = ()


class Place(NamedTuple):
    """An array in the working memory: its offset [bytes], the type and number of its entries, and its initial table."""

    offset: int
    type: str
    count: int
    start: str


@final
@dataclass(frozen=True, eq=False)
class Adjusted:
    """How the entries of an array depend on parameters: sums of factors times monomials of the parameters.

    Fields:
        entries: entries of float64, counted in eight bytes from the begin of the array.
        start: first term of each entry, and the number of all. monomial, factor: of each term.
        base: the array at the export, if its flags differ from those of the model.
    """

    entries: np.ndarray
    start: np.ndarray
    monomial: np.ndarray
    factor: np.ndarray
    base: np.ndarray | None = None

    @property
    def key(self) -> bytes:
        """The content."""
        return b"".join(getattr(self, name).tobytes() for name in ("entries", "start", "monomial", "factor"))


@final
@dataclass
class Launch:
    """A kernel with its arguments.

    Fields:
        name: name of the launch. code: the kernel and the functions that it calls.
        arguments, function: names in the code of the struct of arguments and of the function of one instance.
        statements: C++ that fills the struct `x` of arguments, for working memory that begins at `memory`.
        places: arrays in the working memory, by the name in the buffers.
        results: paths in `x` of the arrays that may be memory of the caller, by the name in the buffers.
    """

    name: str
    code: str
    arguments: str
    function: str
    statements: list[str]
    places: dict[str, Place]
    results: dict[str, tuple[str, ...]]


@final
@dataclass
class Program:
    """All launches of an exported robot.

    Fields:
        launches: by name. tables: constants, by type and content. size: bytes of the working memory.
        starts: arrays with other numbers than zero at the start. functions: code of users' functions, by cell.
        adjusted: arrays that depend on parameters, by launch and path. updates: their places, each once.
    """

    launches: dict[str, Launch] = field(default_factory=dict)
    tables: dict[tuple[str, bytes], Table] = field(default_factory=dict)
    size: int = 0
    starts: list[Place] = field(default_factory=list)
    functions: dict[int, str] = field(default_factory=dict)
    adjusted: Mapping[str, Adjusted] = field(default_factory=dict)
    updates: dict[int, Adjusted] = field(default_factory=dict)
    _places: dict[tuple[str, bytes], Place] = field(default_factory=dict)

    def add(self, name: str, w: Buffers, results: Sequence[str] = ()) -> Launch:
        """Add the launch of buffers, which have not run yet. The kernel may write its `results`, names of arrays in the
        buffers, to memory of the caller: it writes each number, and no other array shares their memory."""
        kernel, leaves = leaves_of(w)
        offsets = self._reserve([leaf.value for leaf in leaves if _is_array(leaf.value) and not leaf.is_constant])
        places: dict[int, Place] = {}
        statements = []
        for leaf in leaves:
            statements += self._statements(leaf, offsets, places, self.adjusted.get(f"{name}:{leaf.path}"))
        code = cleaned(generated_code(kernel.module))
        struct = re.findall(r"^struct (wp_args_\w+) \{", code, re.MULTILINE)
        function = re.findall(r"^static void (\w+_cpu_kernel_forward)\(", code, re.MULTILINE)
        if len(struct) != 1 or len(function) != 1:
            raise ValueError(f"generated code of {name} must have one kernel (got {len(function)})")
        nothing = Place(0, "", 0, "")
        named = w.on_device | {"status": w.scratch.status}
        known = {key: places[array.ptr] if array.size else nothing for key, array in named.items()
                 if not array.size or array.ptr in places}  # fmt: skip
        direct = {key: _paths_of(named[key], leaves) for key in results if named[key].size}
        self.launches[name] = made = Launch(name, code, struct[0], function[0], statements, known, direct)
        return made

    def _reserve(self, arrays: list[Any]) -> list[tuple[int, int, int]]:
        """Places of arrays in the working memory: ranges of addresses here, and the offset of each. Arrays that share
        memory here share it there."""
        spans = sorted({(int(array.ptr), int(array.ptr) + _bytes(array)) for array in arrays})
        joined: list[list[int]] = []
        for first, stop in spans:
            if joined and first < joined[-1][1]:
                joined[-1][1] = max(stop, joined[-1][1])
            else:
                joined.append([first, stop])
        found = []
        for first, stop in joined:
            found.append((first, stop, self.size))
            self.size += -(-(stop - first) // _ALIGNED) * _ALIGNED
        return found

    def reserve(self, kind: str, count: int) -> Place:
        """An array of eight bytes an entry in the working memory."""
        place = Place(self.size, kind, count, "")
        self.size += -(-8 * max(count, 1) // _ALIGNED) * _ALIGNED
        return place

    def adjusted_table(self, path: str, array: Any, change: Adjusted) -> Place:
        """The place in the working memory of a constant that depends on parameters. Equal ones share one."""
        key = self.table(path, array, change.base).name, change.key
        if key not in self._places:
            values = array.numpy() if isinstance(array, wp.array) else array
            place = self.reserve("double", -(-values.nbytes // 8))
            self._places[key] = place = place._replace(start=key[0])
            self.starts.append(place)
            self.updates[place.offset] = change
        return self._places[key]

    def _statements(
        self, leaf: Leaf, offsets: list[tuple[int, int, int]], places: dict[int, Place], change: Adjusted | None
    ) -> Iterator[str]:
        """Statements that set one argument. `change`: how its entries depend on parameters."""
        value, at = leaf.value, f"x.{leaf.path}"
        if not isinstance(value, wp.array):
            yield f"{at} = {_number(value)};"
        elif not value.size:
            yield f"empty({at}, {_dimensions(value)});"
        elif value.dtype is TermRows:
            size = wp.types.type_size_in_bytes(TermRows)
            begin, self.size = self.size, self.size + -(-size * value.size // _ALIGNED) * _ALIGNED
            yield f"terms({at}, memory + {begin}, {value.size});"
        elif leaf.is_constant and change is not None:
            place = self.adjusted_table(leaf.path, value, change)
            yield f"working({at}, memory + {place.offset}, {_dimensions(value)});"
        elif leaf.is_constant:
            yield f"table({at}, ROBOT({self.table(leaf.path, value).name}), {_dimensions(value)});"
        else:
            offset = next(to + value.ptr - first for first, stop, to in offsets if first <= value.ptr < stop)
            if value.ptr not in places:
                is_set = value.numpy().tobytes().strip(b"\0")
                base = None if change is None else change.base
                start = self.table(leaf.path, value, base).name if is_set else ""
                place = Place(offset, _type_of(value), _bytes(value) // _size_of(_type_of(value)), start)
                places[value.ptr] = place
                self.starts += [place] if start else []
                if change is not None:
                    self.updates[offset] = change
            yield f"working({at}, memory + {offset}, {_dimensions(value)});"

    def table(self, path: str, array: Any, values: np.ndarray | None = None) -> Table:
        """The constant table of an array, or of other values in its place. Equal arrays share one."""
        own = array.numpy() if isinstance(array, wp.array) else array
        values = np.ascontiguousarray(own if values is None else values)
        kind = _type_of(array) if isinstance(array, wp.array) else _TYPES[values.dtype]
        key = kind, values.tobytes()
        if key not in self.tables:
            taken = {table.name for table in self.tables.values()}
            plain = re.sub(r"\W", "_", path)
            name = next(x for x in (plain, *(f"{plain}_{k}" for k in range(2, 10**6))) if x not in taken)
            self.tables[key] = self._made(name, kind, values)
        return self.tables[key]

    def own_table(self, name: str, values: np.ndarray) -> None:
        """Add a constant table of numbers under a name of its own."""
        self.tables[name, b""] = self._made(name, _TYPES[values.dtype], values)

    def _made(self, name: str, kind: str, values: np.ndarray) -> Table:
        if values.dtype.names:
            fields = tuple(_declaration(field, values.dtype[field]) for field in values.dtype.names)
            rows = tuple(_row(row, values.dtype) for row in values.ravel())
            return Table(name, kind, rows, fields)
        if values.dtype == np.uint64:
            cells = tuple(int(cell) for cell in values.ravel())
            for cell in cells:
                if cell and cell not in self.functions:
                    self.functions[cell] = code_of_cell(cell)
            return Table(name, kind, (), (), cells)
        return Table(name, kind, tuple(map(_text, values.ravel().tolist())))


class Leaf(NamedTuple):
    """An array or a number among the arguments of a kernel, its path in them, and whether no kernel writes it."""

    path: str
    value: Any
    is_constant: bool


def leaves_of(w: Buffers) -> tuple[Any, list[Leaf]]:
    """The kernel of buffers, and the arrays and numbers among its arguments."""
    kernel, inputs = w.arguments()
    arguments = zip(argument_names(kernel), [*inputs, 0])
    return kernel, [leaf for label, value in arguments for leaf in _leaves(label, value, w.model, False)]


def _leaves(path: str, value: Any, model: Model, is_constant: bool) -> Iterator[Leaf]:
    """The arrays and numbers of an argument. Rows of terms are structs in an array; their numbers follow it."""
    struct = struct_of(value)
    if struct is not None and hasattr(struct, "vars"):
        constant = is_constant or struct in _CONSTANT
        for name in struct.vars:
            part = getattr(value, name)
            if part is not None:
                yield from _leaves(f"{path}.{name}", part, model, constant and f"{path}.{name}" not in _WRITTEN)
        return
    yield Leaf(path, value, is_constant)
    if isinstance(value, wp.array) and value.dtype is TermRows:
        for k, row in enumerate(model.cache["terms"][1]):
            for name in TermRows.vars:
                yield Leaf(f"{path}.data[{k}].{name}", getattr(row, name), True)


def _paths_of(array: Any, leaves: list[Leaf]) -> tuple[str, ...]:
    """Paths of the arguments that are an array.

    Raises:
        ValueError: an argument is another array in a part of its memory.
    """
    first, stop = array.ptr, array.ptr + _bytes(array)
    sharing = [one for one in leaves if _is_array(one.value) and one.value.ptr < stop
               and one.value.ptr + _bytes(one.value) > first]  # fmt: skip
    if any(one.value.ptr != first or _bytes(one.value) != stop - first for one in sharing):
        raise ValueError(f"memory of a result is shared by {', '.join(one.path for one in sharing)}")
    return tuple(one.path for one in sharing)


def _is_array(value: Any) -> bool:
    return isinstance(value, wp.array) and value.size > 0 and value.dtype is not TermRows


def _bytes(array: Any) -> int:
    """Bytes from the first to the last entry of an array."""
    size = wp.types.type_size_in_bytes(array.dtype)
    return size + sum((n - 1) * stride for n, stride in zip(array.shape, array.strides))


def _dimensions(array: Any) -> str:
    """Shape and strides of an array as text."""
    return f"{{{', '.join(map(str, array.shape))}}}, {{{', '.join(map(str, array.strides))}}}"


_TYPES = {np.dtype("f8"): "double", np.dtype("i4"): "int", np.dtype("?"): "bool", np.dtype("u8"): "cell"}


def _type_of(array: Any) -> str:
    """C++ type of the entries of an array: a scalar, also for vectors and matrices, or a struct."""
    values = array.numpy()
    if values.dtype.names:
        return str(array.dtype.__name__)
    return _TYPES[values.dtype]


def _size_of(kind: str) -> int:
    return {"double": 8, "int": 4, "bool": 1, "cell": 8}.get(kind, 1)


def _declaration(name: str, dtype: np.dtype[Any]) -> str:
    base, shape = dtype.subdtype or (dtype, ())
    return f"{_TYPES[base]} {name}{''.join(f'[{n}]' for n in shape)};"


def _row(row: Any, dtype: np.dtype[Any]) -> str:
    """The values of a struct as a C++ initializer."""
    parts = []
    for name in dtype.names or ():
        value = np.asarray(row[name])
        parts.append(_nested(value.tolist()) if value.ndim else _text(value.item()))
    return f"{{{', '.join(parts)}}}"


def _nested(values: Any) -> str:
    return f"{{{', '.join(map(_nested, values))}}}" if isinstance(values, list) else _text(values)


def _text(value: Any) -> str:
    """A number as C++ that reads back to the last bit."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value > -(2**31) else "(-2147483647 - 1)"
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    return repr(float(value))


def _number(value: Any) -> str:
    """A number of Python, NumPy or Warp as C++."""
    plain = value.item() if isinstance(value, np.number) else getattr(value, "value", value)
    if not isinstance(plain, bool | int | float):
        raise TypeError(f"an argument of a kernel must be an array or a number (got {type(value).__name__})")
    return _text(plain)


_BACKWARD = re.compile(r"^static (?:CUDA_CALLABLE |WP_NOINLINE )*void adj_\w+\([^{]*\)\n\{\n.*?^\}\n+", re.M | re.S)
_PLACE = re.compile(r"^// \S*?(lissom/\S+?):\d+$", re.MULTILINE)


def cleaned(code: str) -> str:
    """Generated code of a kernel without derivatives, launches of many instances, and paths of this machine."""
    code = code[: code.index("template <bool wp_linear_contiguous>\nstatic WP_FORCEINLINE void")]
    code = _PLACE.sub(r"// \1", _BACKWARD.sub("", code))
    code = re.sub(r"^#define WP_NO_CRT\n", "", code, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", code).rstrip() + "\n"
