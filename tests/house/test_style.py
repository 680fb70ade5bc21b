"""House rules that a linter does not check."""

import ast
import re
import tokenize
from collections import Counter

from house.sources import definitions, package_files, suite_files, text, tree

FILES = {f"src/lissom/{name}": path for name, path in package_files().items()}
SUITES = {f"tests/{name}": path for name, path in suite_files().items()}
EVERYTHING = FILES | SUITES


def nodes(files, kinds):
    """(file, node) of every statement of some kinds."""
    for file, path in files.items():
        yield from ((file, node) for node in definitions(path, kinds))


def test_nothing_is_left_to_do():
    """No notes for later stay in the code."""
    words = re.compile(r"\b({})\b".format("|".join(("TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK"))))
    assert not [file for file, path in EVERYTHING.items() if words.search(text(path))]


def test_no_error_is_swallowed():
    """No handler is bare, and only one of named, narrow errors may have `pass` as its whole body."""
    swallowed = []
    handling = {file: path for file, path in EVERYTHING.items() if "except" in text(path)}
    for file, node in nodes(handling, ast.ExceptHandler):
        empty = all(isinstance(s, ast.Pass) or ast.unparse(s) == "..." for s in node.body)
        if node.type is None or (empty and ast.unparse(node.type) in ("Exception", "BaseException")):
            swallowed.append(f"{file}:{node.lineno}")
    assert not swallowed


def test_identifiers_are_ascii():
    """Identifiers are ASCII; mathematics stands in docstrings and comments."""
    odd = []
    for file, path in FILES.items():
        with tokenize.open(path) as source:
            names = (token for token in tokenize.generate_tokens(source.readline) if token.type == tokenize.NAME)
            odd += [f"{file}:{token.start[0]}: {token.string}" for token in names if not token.string.isascii()]
    assert not odd


def test_no_names_without_meaning():
    """No Manager, Handler or Util."""
    empty = re.compile(r"(?i)manager|handler|util|helper")
    definitions = nodes(FILES, ast.ClassDef | ast.FunctionDef)
    assert not [f"{file}: {node.name}" for file, node in definitions if empty.search(node.name)]


def test_nothing_is_uncalled():
    """Every function and class of the library at module level is public, or used somewhere in the library."""
    words = Counter(word for path in FILES.values() for word in re.findall(r"[A-Za-z_]\w*", text(path)))
    top = [(file, node) for file, path in FILES.items() for node in tree(path).body]
    definitions = [(file, node.name) for file, node in top if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    once = [f"{file}: {name}" for file, name in definitions if words[name] == 1]
    assert not [name for name in once if not name.endswith(("__getattr__", "__dir__"))]


def test_every_test_states_its_purpose():
    """Each test begins with a docstring whose first line states its purpose; so does each test module."""
    tests = {file: path for file, path in SUITES.items() if "/test_" in file}
    silent = []
    for file, node in nodes(tests, ast.Module | ast.FunctionDef):
        name = getattr(node, "name", "")
        is_test = isinstance(node, ast.Module) or name.startswith("test_")
        if is_test and not (ast.get_docstring(node) or "").split("\n")[0].strip():
            silent.append(f"{file}: {name}")
    assert not silent
