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


_trees = {}  # by path; no cache of functools, which would end with each file of tests


def tree(path):
    """Syntax tree of a file. Functions keep only definitions, imports, blocks, handlers and docstrings: a tenth of the
    memory."""
    if path not in _trees:
        _trees[path] = _pruned(parsed(path))
    return _trees[path]


def parsed(path):
    """Whole syntax tree of a file. The search for reference cycles, which would take most of the time, is off."""
    gc.disable()
    try:
        return ast.parse(text(path))
    finally:
        gc.enable()


BLOCKS = "body", "orelse", "finalbody", "handlers", "cases"
KEPT = ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
KEPT |= ast.If | ast.Try | ast.For | ast.While | ast.With | ast.Match


def _pruned(node, inside=False):
    """The tree without all other statements of functions, except those of handlers."""
    inside = inside or isinstance(node, ast.FunctionDef)
    for name in BLOCKS:
        block = getattr(node, name, None)
        if not isinstance(block, list) or isinstance(node, ast.ExceptHandler):
            continue
        if inside and name in ("body", "orelse", "finalbody"):
            is_first = name == "body" and isinstance(node, ast.FunctionDef | ast.ClassDef)
            block[:] = [x for k, x in enumerate(block) if isinstance(x, KEPT) or (is_first and k == 0 and _is_text(x))]
        for below in block:
            _pruned(below, inside)
    return node


def _is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


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
