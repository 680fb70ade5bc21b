"""The library's and the tests' sources, parsed once for the house tests."""

import ast
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
    """Syntax tree of a file."""
    return ast.parse(text(path))


def imports(path):
    """(module, names, line, whether at module level and run) of every import in a file."""
    for node, top in _walk(tree(path), True):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, (), node.lineno, top
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or ""), tuple(a.name for a in node.names), node.lineno, top


def _walk(node, top):
    """All nodes with whether they run when the module is imported."""
    for child in ast.iter_child_nodes(node):
        deferred = isinstance(child, ast.FunctionDef | ast.Lambda) or (
            isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        )
        yield child, top
        yield from _walk(child, top and not deferred)
