"""The library's and the tests' sources, parsed once for the house tests."""

import ast
import gc
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "lissom"
TESTS = ROOT / "tests"


@cache
def package_files():
    """Every module of the library, by its path relative to the package."""
    return {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def suite_files():
    """Every module below tests/, by its path relative to it."""
    return {str(path.relative_to(TESTS)): path for path in sorted(TESTS.rglob("*.py"))}


@cache
def text(path):
    """Text of a file."""
    return path.read_text(encoding="utf-8")


@cache
def tree(path):
    """Syntax tree of a file of the library, which is kept."""
    return parsed(path)


def parsed(path):
    """Syntax tree of a file. The search for reference cycles, which takes most of the time, is off while it is made."""
    gc.disable()
    try:
        return ast.parse(text(path))
    finally:
        gc.enable()


BLOCKS = "body", "orelse", "finalbody", "handlers", "cases"


def statements(root):
    """(node, whether it runs when the module is imported) of a syntax tree, its statements and their handlers. The nine
    nodes in ten that are expressions are not visited."""
    left = [(root, True)]
    while left:
        node, top = left.pop()
        yield node, top
        deferred = isinstance(node, ast.FunctionDef) or (
            isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        )
        for name in BLOCKS:
            below = getattr(node, name, ())
            left += [(child, top and not deferred) for child in below if isinstance(below, list)]


def definitions(path, kinds=ast.FunctionDef):
    """The functions of a file of the library, or nodes of other kinds of statements."""
    return [node for node, _ in statements(tree(path)) if isinstance(node, kinds)]


@cache
def imports(path):
    """(module, names, line, whether at module level and run) of every import in a file."""
    found = []
    for node, top in statements(tree(path)):
        if isinstance(node, ast.Import):
            found += [(alias.name, (), node.lineno, top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            found.append(("." * node.level + (node.module or ""), names, node.lineno, top))
    return found
