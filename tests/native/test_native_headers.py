"""Headers of native functions and their Python stubs declare the same functions."""

import ast
import re
from collections import Counter

import pytest
from house.sources import PACKAGE, definitions, package_files, text, tree

from lissom.lie import native

DECLARED = re.compile(r"^LISSOM_INLINE (\w+(?:<\w+>)?)\s+(\w+)\(([^{};]*)\) \{$", re.MULTILINE)
SCALARS = {"wp.float64": "double", "wp.int32": "int", "int": "int", "bool": "bool", "None": "void"}
ARRAYS = {"Matrix": "array<double>", "Rows": "array<double>", "Integers": "array<int>", "Numbers": "array<int>",
          "Pivots": "array<int>"}  # fmt: skip
VECTORS = ("vec3", "vec6", "mat3", "mat4", "mat6", "vec6i", "vec7i")


def headers():
    """Headers with native functions, by their path below the package."""
    found = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.h"))}
    return {name: path for name, path in found.items() if not name.startswith("lie/")}


def functions(path):
    """Return type and arguments of the native functions of a header, by name."""
    own = native._NAMESPACE.sub("", text(path))
    found = [(name, kind, " ".join(arguments.split())) for kind, name, arguments in DECLARED.findall(own)]
    names = [name for name, _, _ in found]
    assert len(set(names)) == len(names) == own.count("LISSOM_INLINE"), path
    return {name: (kind, arguments) for name, kind, arguments in found}


def in_cpp(annotation):
    """The C++ type of an annotation."""
    name = "None" if annotation is None else ast.unparse(annotation)
    if element := re.fullmatch(r"wp\.array(?:2d)?\(dtype=([\w.]+)\)", name):
        return f"array<{SCALARS.get(element[1], element[1])}>"
    return SCALARS.get(name) or ARRAYS.get(name) or (name if name in VECTORS else f"const {name}&")


def calls(path):
    """Calls of native_functions in a module."""
    if "native_functions(" not in text(path):
        return []
    nodes = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    return [node for node in nodes if ast.unparse(node.func) == "native_functions"]


def decorators(node):
    """The decorators of a function."""
    return [ast.unparse(decorator) for decorator in node.decorator_list]


def stubs():
    """(header, name, return type, arguments) of every stub in Python, types in C++."""
    found = []
    for path in package_files().values():
        used = [ast.literal_eval(node.args[0]) for node in calls(path)]
        assert len(used) < 2, f"{path} names two headers"
        for node in definitions(path) if "func_native" in text(path) else ():
            if f"wp.func_native(native('{node.name}'))" in decorators(node):
                arguments = ", ".join(f"{in_cpp(a.annotation)} {a.arg}" for a in node.args.args)
                found.append((used[0], node.name, in_cpp(node.returns), arguments))
    return found


def test_headers_and_stubs_agree():
    """Each function of each header has one stub, with the same arguments in the same order and the same types."""
    declared = [(header, name, *rest) for header, path in headers().items() for name, rest in functions(path).items()]
    assert Counter(declared) == Counter(stubs())


def test_shared_code_is_listed():
    """Each header with shared code stands in front of kernels, and each listed header has some."""
    shared = {name for name, path in headers().items() if native._NAMESPACE.search(text(path))}
    assert shared | {"lie/native.h", "lie/interval.h"} == set(native._SHARED)


def test_constants_are_used():
    """Each constant that Python gives a header stands in one of its bodies."""
    for path in package_files().values():
        for node in calls(path):
            bodies = " ".join(native._bodies(ast.literal_eval(node.args[0])).values())
            assert not [k.arg for k in node.keywords if k.arg and not re.search(rf"\b{k.arg}\b", bodies)], path


def test_comments_do_not_reach_the_compiler():
    """Kernels stay valid where a comment changes: bodies and shared code have none."""
    bodies = [body for header in headers() for body in native._bodies(header).values()]
    assert not [code for code in (native.shared_code(), *bodies) if "//" in code]


def test_an_unknown_name_is_an_error():
    """A function that a header does not have is refused when a module asks for it, with both names."""
    with pytest.raises(LookupError, match=r"systems/fronts\.h has no function no_such_function"):
        native.native_functions("systems/fronts.h")("no_such_function")


def test_python_holds_no_cpp():
    """Native code in Python is one line long, and longer code comes from a header under the name of its stub. The code
    of traced functions is generated."""
    for name, path in package_files().items():
        if name == "tracing/native.py" or "func_native" not in text(path):
            continue
        for node in definitions(path):
            for decorator in (d for d in decorators(node) if d.startswith("wp.func_native")):
                assert decorator == f"wp.func_native(native('{node.name}'))" or "return" in decorator, (path, node.name)
    lines = [line for path in package_files().values() for line in text(path).splitlines()]
    assert not [line for line in lines if re.match(r" +(const )?(double|int|block)\*? \*?\w+ = .*;$", line)]
