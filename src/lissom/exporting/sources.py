"""Text of the files of an exported robot: kernels, tables, the layout of the working memory, and copies of headers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import warp as wp

from lissom.exporting.launches import Launch, Place, Program, Table
from lissom.lie.native import own_code
from lissom.lie.warp_private import native_headers

_NATIVE = Path(__file__).parent / "native"
# Headers of Warp that kernels include, directly or not. Lines that include other headers are left out of the copies:
# meshes, volumes, textures and tiles.
HEADERS = (
    "api.h", "array.h", "builtin.h", "crt.h", "deterministic.h", "initializer_array.h", "mat.h", "matnn.h", "quat.h",
    "rand.h", "range.h", "spatial.h", "tuple.h", "vec.h",
)  # fmt: skip
_INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)".*$', re.MULTILINE)
_NOTICE = "// Changed: lines that include headers which this folder does not have are left out.\n"
_WIDTH = 110
_FLAGS = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-math-errno", "-fno-strict-aliasing",
          "-ffp-contract=fast", "-fno-exceptions", "-fno-rtti", "-w")  # fmt: skip
_OF_CLANG = ("-fno-slp-vectorize", "-mllvm", "-inline-threshold=3000",
             "-mllvm", "-inline-cold-callsite-threshold=1000")  # fmt: skip


def compiler_flags(compiler: str) -> tuple[str, ...]:
    """Flags for the fastest code by a compiler; CMakeLists.txt has the same. Clang inlines as for the library."""
    said = subprocess.run([*compiler.split(), "--version"], capture_output=True, text=True).stdout
    return (*_FLAGS, "-O3", *(_OF_CLANG if "clang" in said else ()))


def native(name: str) -> str:
    """Text of a file of the folder `native`."""
    return (_NATIVE / name).read_text(encoding="utf-8")


def headers() -> dict[str, str]:
    """Copies of the headers of Warp with its licence, by path."""
    folder = native_headers()
    found = {}
    for name in HEADERS:
        text = (folder / name).read_text(encoding="utf-8")
        kept = _INCLUDE.sub(lambda line: line[0] if line[1] in HEADERS else "", text)
        found[f"warp/{name}"] = kept if kept == text else f"{_NOTICE}{kept}"
    for file in distribution("warp-lang").files or ():
        if re.fullmatch(r"(?:[^/]*\.dist-info/)?(?:licenses/)?LICENSE(?:\.md|\.txt)?", str(file)):
            found["warp/LICENSE"] = file.read_text(encoding="utf-8")
    if "warp/LICENSE" not in found:
        raise OSError("the installed package of Warp has no licence, which must stand beside copies of its headers")
    return found


def prefixed(text: str, name: str) -> str:
    """A text with the name of a robot in place of `robot` in the names of functions, macros and files."""
    text = re.sub(r"\brobot_(?=\w)", f"{name}_", text)
    text = re.sub(r"\bROBOT_(?=\w)", f"{name.upper()}_", text)
    return re.sub(r"\brobot\.(?=(?:h|cpp)\b)", f"{name}.", text)


def chosen(text: str, functions: Iterable[str]) -> str:
    """A text without the parts of functions that are not exported. A part begins at a line with its name."""
    kept, known, lines = True, set(functions) | {"end"}, []
    for line in text.splitlines(keepends=True):
        mark = re.fullmatch(r"(?:/\*: (\w+) \*/|//: (\w+))\n", line)
        if mark:
            kept = (mark[1] or mark[2]) in known
        elif kept:
            lines.append(line)
    return "".join(lines)


def _wrapped(parts: Iterable[str], indent: str = "    ") -> str:
    """Texts joined by commas, in lines."""
    lines, line = [], indent
    for part in parts:
        if len(line) + len(part) + 2 > _WIDTH and line.strip():
            lines.append(line.rstrip())
            line = indent
        line += f"{part}, "
    return "\n".join([*lines, line.rstrip()])


def strings(values: Sequence[str]) -> str:
    """The initializer of an array of texts, with one entry at least."""
    quoted = ['"' + re.sub(r'(["\\])', r"\\\1", value) + '"' for value in values]
    return f"{{\n{_wrapped(quoted or ['nullptr'])}\n}}"


def integers(values: Iterable[Any]) -> str:
    """The initializer of an array of integers, with one entry at least."""
    return "{" + ", ".join([str(int(value)) for value in values] or ["0"]) + "}"


def tables_header(name: str, program: Program, cells: Mapping[int, int]) -> str:
    """Declarations of the constants."""
    lines = [
        "// Constants of the robot, shared by all kernels.",
        "#pragma once",
        "",
        f"#define ROBOT(name) {name}_own_##name",
        "",
        "typedef unsigned long long cell;  // address of a cell that holds the address of a function; 0 for none",
        "",
    ]
    declared: set[str] = set()
    for table in program.tables.values():
        if table.fields and table.type not in declared:
            declared.add(table.type)
            lines += [f"struct ROBOT({table.type}) {{", *(f"    {field}" for field in table.fields), "};", ""]
    lines.append('extern "C" {')
    lines += [f"extern void (*const ROBOT(cell_{k}))(const double* const*, double* const*);" for k in cells.values()]
    lines += [f"extern const {_type(table)} ROBOT({table.name})[{_count(table)}];" for table in program.tables.values()]
    return "\n".join([*lines, "}", ""])


def tables_source(program: Program, cells: Mapping[int, int]) -> str:
    """Definitions of the constants."""
    lines = ["// Constants of the robot.", "#include <cmath>", "", '#include "tables.h"', "", 'extern "C" {', ""]
    for table in program.tables.values():
        values: Sequence[str] = table.values
        if table.cells:
            values = [f"reinterpret_cast<cell>(&ROBOT(cell_{cells[c]}))" if c else "0" for c in table.cells]
        lines += [f"const {_type(table)} ROBOT({table.name})[{_count(table)}] = {{", _wrapped(values), "};"]
    return "\n".join([*lines, "", "}", ""])


def _type(table: Table) -> str:
    return f"ROBOT({table.type})" if table.fields else table.type


def _count(table: Table) -> int:
    return len(table.cells or table.values)


def _for_all_compilers(code: str) -> str:
    """Code whose vectors are those of Warp's compiler, for other compilers too.

    The vectors of traced functions are a type of Clang. Clang takes a reference to a vector for one that is aligned to
    its size, and the vectors of kernels are not: such parameters become values.
    """
    code = re.sub(r"\bconst (block|quad)& (\w+)", r"\1 \2", code)
    own = re.search(r"^typedef double vector __attribute__\(\(ext_vector_type\((\d+)\)\)\);$", code, re.MULTILINE)
    if own is None:
        return code
    plain = f"typedef double vector __attribute__((vector_size({8 * int(own[1])})));"
    return code.replace(own[0], f"#if defined(__clang__)\n{own[0]}\n#else\n{plain}\n#endif")


def kernel_source(launch: Launch) -> str:
    """The code of a kernel with the functions that bind and run it."""
    return "\n".join([
        f"// Kernel of {launch.name}. Warp {wp.__version__} generated the functions before `bind.h`.",
        "#ifndef NDEBUG",
        "#define NDEBUG",
        "#endif",
        "#if defined(__clang__) && __clang_major__ < 15",
        "#define _Float16 __fp16  // unused",
        "#endif",
        "#include <stddef.h>",
        "",
        '#include "tables.h"',
        "",
        "#define _wp_assert ROBOT(ignore_assert)",
        "",
        _for_all_compilers(launch.code),
        '#include "bind.h"',
        "",
        'extern "C" {',
        "",
        f"size_t ROBOT(size_of_{launch.name})() {{",
        f"    return sizeof({launch.arguments});",
        "}",
        "",
        f"void ROBOT(bind_{launch.name})(void* arguments, char* memory) {{",
        f"    {launch.arguments}& x = *static_cast<{launch.arguments}*>(arguments);",
        f"    x = {launch.arguments}();",
        "    (void)memory;",
        *(f"    {statement}" for statement in launch.statements),
        "}",
        "",
        f"void ROBOT(run_{launch.name})(void* arguments) {{",
        "    wp::launch_bounds_t<1> bounds = {};",
        "    bounds.shape[0] = 1;",
        "    bounds.size = 1;",
        "    bounds.coord_mult = 1;",
        f"    {launch.function}<true>(bounds, 0, static_cast<{launch.arguments}*>(arguments));",
        "}",
        "",
        *_aim(launch),
        "}",
        "",
    ])  # fmt: skip


def _aim(launch: Launch) -> list[str]:
    """The function that says where a kernel writes its results: to memory of the caller, or to the working memory."""
    if not launch.results:
        return []
    return [
        f"void ROBOT(aim_{launch.name})(void* arguments, char* memory, double* const* to) {{",
        f"    {launch.arguments}& x = *static_cast<{launch.arguments}*>(arguments);",
        *(
            f"    x.{path}.data = to ? to[{k}] : reinterpret_cast<double*>(memory + {launch.places[key].offset});"
            for k, (key, paths) in enumerate(launch.results.items())
            for path in paths
        ),
        "}",
        "",
    ]


_MOVING = re.compile(r"^(__builtin_memcpy\(row \+ \d+, moving, .*;)\n(moving \+= \d+;)$", re.MULTILINE)


def function_source(number: int, code: str) -> str:
    """The code of a user's function and its cell.

    Kernels pass null for the columns that move if a function does not use them; the copy of such columns, which some
    compilers keep, is left out then.
    """
    code = _MOVING.sub(r"if (moving) {\n\1\n\2\n}", code)
    return "\n".join([
        "// A function of the user.",
        "#include <cmath>",
        "",
        '#include "tables.h"',
        "",
        _for_all_compilers(own_code("tracing/native.h")),
        "namespace {",
        code,
        "}",
        'extern "C" {',
        f"void (*const ROBOT(cell_{number}))(const double* const*, double* const*) = &Functions::run;",
        "}",
        "",
    ])  # fmt: skip


def layout(program: Program, numbers: Mapping[str, Any], arrays: Mapping[str, str], more: Mapping[str, Place]) -> str:
    """Places in the working memory and constants of the exported functions.

    Args:
        numbers: values of macros. arrays: initializers of constant arrays, by declaration.
        more: further places.
    """
    lines = [
        "// Places of arrays in the working memory, and constants of the exported functions.",
        "#pragma once",
        "",
        "#include <stddef.h>",
        "",
        '#include "tables.h"',
        "",
        *(f"#define {key} {value}" for key, value in numbers.items()),
        "",
        "// Offset of an array in the working memory [bytes], and the number of its entries.",
        "struct place {",
        "    size_t offset;",
        "    int count;",
        "};",
        "",
        "// An array that does not begin with zeros.",
        "struct start {",
        "    size_t offset;",
        "    const void* from;",
        "    size_t bytes;",
        "};",
        "",
        "// A kernel: bytes of its arguments, and the functions that fill them and run it.",
        "struct launch {",
        "    size_t (*size)();",
        "    void (*bind)(void* arguments, char* memory);",
        "    void (*run)(void* arguments);",
        "};",
        "",
        'extern "C" {',
    ]
    names = list(program.launches)
    for name in names:
        lines += [
            f"size_t ROBOT(size_of_{name})();",
            f"void ROBOT(bind_{name})(void* arguments, char* memory);",
            f"void ROBOT(run_{name})(void* arguments);",
        ]
        if program.launches[name].results:
            lines += [f"void ROBOT(aim_{name})(void* arguments, char* memory, double* const* to);"]
    lines += ["}", "", f"enum launch_number {{ {', '.join([*names, 'N_LAUNCHES'])} }};", ""]
    kernels = (f"    {{ROBOT(size_of_{name}), ROBOT(bind_{name}), ROBOT(run_{name})}}," for name in names)
    lines += ["[[maybe_unused]] constexpr launch LAUNCHES[] = {", *kernels, "};", ""]
    lines += [f"constexpr size_t WORKING = {max(program.size, 1)};", ""]
    known = {
        f"{name}_{key}": place for name, launch in program.launches.items() for key, place in launch.places.items()
    }
    for key, place in (known | dict(more)).items():
        if key.isidentifier():
            lines.append(f"[[maybe_unused]] constexpr place {key} = {{{place.offset}, {place.count}}};")
    starts = [
        f"    {{{one.offset}, ROBOT({one.start}), sizeof(ROBOT({one.start}))}}," for one in program.starts
    ]  # fmt: skip
    lines += ["", "constexpr start STARTS[] = {", *(starts or ["    {0, nullptr, 0},"]), "};", ""]
    lines += [f"[[maybe_unused]] constexpr {key} = {value};" for key, value in arrays.items()]
    return "\n".join([*lines, ""])
