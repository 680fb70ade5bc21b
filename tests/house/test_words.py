"""Words and numbers of equations mean something where they stand: citations, the table of symbols, constants."""

import ast
import io
import re
import tokenize
from functools import cache

from house.sources import ROOT, definitions, package_files, text, tree

CITED = re.compile(r"(?<![\w\])])(?<!  )\((\d{1,2})\)")
DEFINED = re.compile(r"\s{2,}\((\d{1,2})\)")
PAPER = re.compile(r"(Mathew|Boyer|SoRoSim|Pustina|Armanini)\D*20\d\d")
THEORY = ROOT / "docs" / "theory.md"


@cache
def docstrings(path):
    """All docstrings of a module, its own first."""
    return [ast.get_docstring(node) or "" for node in definitions(path, (ast.Module, ast.ClassDef, ast.FunctionDef))]


def comments(path):
    """Comments of a module, if a line of it may have a comment with a number in brackets."""
    if not re.search(r"#.*\(\d", text(path)):
        return []
    tokens = tokenize.generate_tokens(io.StringIO(text(path)).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


@cache
def defined(path):
    """Numbers of the equations that stand in the docstrings of a module."""
    return {number for string in docstrings(path) for number in DEFINED.findall(string)}


CITATIONS = (r"[\w.]+`?,? \(\d+\)", r"\(\d+\),? (?:of|in) [\w.]+", r"[Ee]quations? [^.]*")


def sources(string):
    """Words by which a text may name the module of an equation: "touching (1)", "(2) of bordered", "equations are those
    of implicit_steps"."""
    return set(re.findall(r"\w+", " ".join(word for form in CITATIONS for word in re.findall(form, string))))


def test_cited_equations_exist():
    """A number in brackets is that of an equation in the same module, in one it names, or of a paper it names."""
    files, lost, paths = package_files(), [], {}
    for path in files.values():
        paths.setdefault(path.stem, []).append(path)
    for file, path in files.items():
        head = " ".join(re.findall(CITATIONS[2], ast.get_docstring(tree(path)) or ""))
        for string in dict.fromkeys([*docstrings(path), *comments(path)]):
            cited = CITED.findall(string)
            if not cited or PAPER.search(string):
                continue
            words = sources(string) | sources(head)
            named = [other for word in words for other in paths.get(word, ())]
            known = defined(path).union(*map(defined, named))
            lost += [f"{file}: ({k}) in {string[:60]!r}" for k in cited if k not in known]
    assert not lost


def symbols():
    """Rows of the table from the papers' symbols to names in code."""
    part = text(THEORY).partition("## From the papers' symbols to the code")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")]
    return rows[2:]


def test_symbols_have_names_in_code():
    """Each name that the table of symbols gives stands in the code, and each row explains its symbol."""
    code = "\n".join(text(path) for path in package_files().values())
    words = set(re.findall(r"\w+", code))
    assert len(symbols()) > 20
    for row in symbols():
        assert len(row) == 4 and all(row), row
        names = re.findall(r"`([^`]+)`", row[2])
        assert names, f"{row[0]} has no name in code"
        missing = [word for name in names for word in re.findall(r"\w+", name) if word not in words]
        assert not missing, f"{row[0]}: {missing}"


def test_no_constant_is_dead():
    """Every constant and every field at module level or in a class is used somewhere in the library."""
    files = package_files().values()
    count = {}
    for path in files:
        for word in re.findall(r"[A-Za-z_]\w*", text(path)):
            count[word] = count.get(word, 0) + 1
    targets = [(path, target) for path in files for node in tree(path).body
               if isinstance(node, ast.Assign) for target in node.targets]  # fmt: skip
    names = [(path, name.id) for path, target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    dead = [f"{path.name}: {name}" for path, name in names if count[name] == 1 and not name.startswith("__")]
    assert not dead


def test_no_constant_is_written_twice():
    """A constant in capitals that two modules assign the same value is imported by one from the other."""
    seen, twice = {}, []
    for file, path in package_files().items():
        for node in tree(path).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, value = node.targets[0].id, ast.unparse(node.value)
                if name.isupper() and not name.startswith("_") and len(name) > 4:
                    twice += [f"{name} in {seen[name, value]} and {file}"] if (name, value) in seen else []
                    seen[name, value] = file
    assert not twice
