"""Public names: each listed once, with one import path, abstract or final, and documented with its units."""

import ast
import dataclasses
import importlib
import inspect
import re
from operator import attrgetter

import pytest
from house import stub
from house.sources import definitions, package_files, text, tree

import lissom as ls
from lissom.robot.contacts import Contact
from lissom.robot.fields import members

NAMES = stub.names()
FUNCTIONS = [name for name in NAMES if inspect.isfunction(attrgetter(name)(ls))]
CLASSES = [name for name in NAMES if inspect.isclass(attrgetter(name)(ls))]
# results in the units of the coordinates, or of no unit: there is no one unit to state
NO_UNIT = {
    "design_derivatives",
    "mass_matrix", "coriolis_matrix", "integrate", "difference", "frame_jacobian", "frame_jacobian_derivative",
    "tangent_stiffness", "load_robot", "save_robot", "energy", "energy_balance", "plot_trajectory",
    "bathe", "sdirk", "build_kernels", "kernel_cache",
    "esdirk",
    "implicit_euler",
    "lie.se3_Ad", "lie.se3_ad", "lie.se3_coad", "lie.se3_tangent", "lie.se3_tangent_dot", "lie.se3_tangent_ddot",
    "lie.se3_tangent_inverse", "lie.so3_tangent_inverse", "lie.se3_tangent_transpose_derivative",
}  # fmt: skip
# arguments that are no arrays, or not only: costs of other libraries, laws, tables by name, folders, drawings
NO_ARRAYS = {"acceleration", "axes", "cluster", "controller", "coordinates", "correction", "cost", "out", "robot"}
NO_ARRAYS |= {"state", "targets", "task", "velocity", "y"}
UNIT = re.compile(r"\[(rad|m|s|N|Pa|J|kg|W|-|1/m|per )[^\]]*\]")
# classes that cannot be or need not be final: their bases give them their form
FOREIGN_BASES = {"NamedTuple", "Enum", "BaseModel", "Schema", "yaml.SafeLoader", "yaml.SafeDumper"}
BASES_WITHOUT_A_LAW = {
    "Spring": "the fields every joint has; JointFixed and the others add the law",
    "PartsWarning": "a warning with a report; its members say of which parts",
}


def defined_in(file):
    """Dotted name of a module of the library."""
    return "lissom." + file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def test_every_name_is_listed_once():
    """The table of public names holds each name once, in modules that define it themselves."""
    names = [name for names in ls._PUBLIC.values() for name in names]
    assert sorted(names) == sorted(set(names))
    assert ls.__all__ == sorted(names)
    tables = {"": ls._PUBLIC} | {f"{space}.": homes for space, homes in ls._NAMESPACES.items()}
    for prefix, homes in tables.items():
        for home, own in homes.items():
            module = importlib.import_module(f"lissom.{home}")
            for name in own:
                value = getattr(module, name)
                assert value.__module__ == module.__name__, f"{name} is defined in {value.__module__}"
                assert attrgetter(prefix + name)(ls) is value


def test_namespaces_give_what_the_table_says():
    """Each namespace exports the names of the table and no other."""
    for space, homes in ls._NAMESPACES.items():
        listed = sorted(name for names in homes.values() for name in names)
        assert sorted(getattr(ls, space).__all__) == listed
        assert space in dir(ls) and space not in ls.__all__  # `import *` must not hide the package of that name


def test_names_can_be_imported_and_unknown_ones_cannot():
    """`from lissom import *` gives every name; an unknown one is an AttributeError that names it."""
    space = {}
    exec("from lissom import *", space)
    assert set(ls.__all__) <= set(space)
    assert dir(ls) == sorted([*ls.__all__, *ls._NAMESPACES])
    with pytest.raises(AttributeError, match="'lissom' has no attribute 'Roboter'"):
        _ = ls.Roboter


def test_type_checkers_see_every_name():
    """The package says that it is typed, and its stub has the names of the table."""
    assert stub.PATH.with_name("py.typed").is_file()
    assert stub.PATH.read_text(encoding="utf-8") == stub.content(), "run: python tests/house/stub.py"


def test_options_are_written_out():
    """Tab completion and signatures show every option: `**` stands only for values by their paths."""
    free = {"Model.with_", "Robot.with_", "design_derivatives"}  # and for arguments of a given function
    found = {
        f"{name}.{key}": getattr(attrgetter(name)(ls), key) for name in CLASSES for key in vars(attrgetter(name)(ls))
    }
    methods = {
        key: value
        for key, value in found.items()
        if "._" not in key and inspect.isfunction(getattr(value, "__func__", value))
    }
    public = {name: attrgetter(name)(ls) for name in FUNCTIONS} | methods
    kinds = {name: {p.kind for p in inspect.signature(f).parameters.values()} for name, f in public.items()}
    assert {name for name, own in kinds.items() if inspect.Parameter.VAR_KEYWORD in own} == free


def test_options_of_contacts_are_those_of_contact():
    """`add_contact` has every field of Contact with its default."""
    own = inspect.signature(ls.Robot.add_contact).parameters
    fields = {item.name: item.default for item in dataclasses.fields(Contact)}
    given = {name: p.default for name, p in own.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}
    assert given == {name: fields[name] for name in given} and len(given) == len(fields) - 3


def test_arrays_are_typed_as_arrays():
    """An argument of a public function is of a type that describes it; arrays of JAX and PyTorch are their own."""
    bare = set()
    for name in FUNCTIONS:
        if not name.startswith(("jax.", "torch.")):
            own = inspect.signature(attrgetter(name)(ls)).parameters.values()
            bare |= {
                (name, p.name)
                for p in own
                if p.annotation == "Any"
                and p.name not in NO_ARRAYS
                and p.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
            }
    assert not bare
    q = inspect.signature(ls.solve_statics).parameters["q0"]
    assert q.annotation == "ArrayLike | None"


def test_types_of_arrays_cost_no_import():
    """The types of arguments are imported for type checkers alone."""
    for file, path in package_files().items():
        if "numpy.typing" not in text(path):
            continue
        paid = [node for node in tree(path).body if isinstance(node, ast.ImportFrom) and node.module == "numpy.typing"]
        assert not paid, f"{file} imports numpy.typing when it runs"


def test_subpackages_export_nothing():
    """No second import path: the __init__ of a subpackage that is no namespace defines and imports no name."""
    for file, path in package_files().items():
        if file.endswith("/__init__.py") and file.removesuffix("/__init__.py") not in ls._NAMESPACES:
            code = [node for node in tree(path).body if not isinstance(node, ast.Expr)]
            assert not code, f"{file} defines or imports names"


@pytest.mark.parametrize(
    "base, home",
    [("Joint", "joints"), ("Basis", "bases"), ("Section", "sections"), ("Shape", "shapes"), ("Body", "bodies")],
)
def test_families_are_complete(base, home):
    """Every concrete class of a family is public, bears the family's name and, unlike its base, is final."""
    module = importlib.import_module(f"lissom.robot.{home}")
    concrete = {c.__name__ for c in members(getattr(module, base))}
    assert concrete and concrete <= set(NAMES)
    if base != "Body":
        assert all(name.startswith(base) for name in concrete)


def class_definitions():
    """(file, class node) of every class of the library, without Warp structures."""
    for file, path in package_files().items():
        for node in definitions(path, ast.ClassDef) if "class " in text(path) else ():
            if "wp.struct" not in map(ast.unparse, node.decorator_list):
                yield file, node


def test_classes_are_abstract_or_final():
    """A class is abstract or final; what third-party bases shape counts as neither."""
    neither = []
    for file, node in class_definitions():
        bases = {ast.unparse(base) for base in node.bases}
        final = "final" in map(ast.unparse, node.decorator_list)
        methods = [m for m in node.body if isinstance(m, ast.FunctionDef)]
        abstract = any("abstractmethod" in map(ast.unparse, m.decorator_list) for m in methods)
        excused = bases & FOREIGN_BASES or node.name in BASES_WITHOUT_A_LAW
        if final == abstract and not excused:
            neither.append(f"{file}: {node.name}")
    assert not neither


def test_results_are_frozen():
    """Public results and descriptions, other than Robot, a running Viewer and a Stepper, are frozen dataclasses."""
    for name in set(CLASSES) - {"Robot", "Stepper", "Viewer"}:
        c = attrgetter(name)(ls)
        if not issubclass(c, Exception):
            assert dataclasses.is_dataclass(c) and c.__dataclass_params__.frozen, name


def doc(name):
    """The docstring of a public name."""
    return inspect.getdoc(attrgetter(name)(ls)) or ""


def test_docstrings_open_with_a_sentence():
    """A docstring opens with a paragraph that ends as a sentence, or before a formula."""
    openings = {name: doc(name).split("\n\n")[0].rstrip() for name in NAMES}
    assert not [name for name, opening in openings.items() if not opening.endswith((".", ":", "]"))]


def arguments(name):
    """The names of a public function's arguments."""
    return list(inspect.signature(attrgetter(name)(ls)).parameters)


def test_docstrings_name_every_argument():
    """Every argument but the model is explained or named in the docstring."""
    pairs = [(name, argument) for name in FUNCTIONS for argument in arguments(name) if argument != "model"]
    assert not [pair for pair in pairs if not re.search(rf"\b{re.escape(pair[1])}\b", doc(pair[0]))]


def test_docstrings_say_what_comes_back():
    """A function that returns something says so under Returns, or states its shape or class in the summary."""
    silent = []
    for name in FUNCTIONS:
        returned = str(inspect.signature(attrgetter(name)(ls)).return_annotation)
        summary = doc(name).split("Args:")[0]
        if returned != "None" and not ("Returns:" in doc(name) or "shape (" in summary or returned in summary):
            silent.append(name)
    assert not [name for name in silent if name != "load_robot"]  # its name says it


def test_docstrings_say_what_is_raised():
    """A function that takes more than a model can refuse it: its docstring, or its module's for all, says how."""
    with_arguments = [name for name in FUNCTIONS if arguments(name) not in ([], ["model"])]
    texts = {name: doc(name) + (inspect.getmodule(attrgetter(name)(ls)).__doc__ or "") for name in with_arguments}
    assert not [name for name, words in texts.items() if not re.search("ShapeError|ModelError", words)]


def test_docstrings_state_units():
    """A function of physical quantities states a unit in brackets."""
    assert not [name for name in FUNCTIONS if name not in NO_UNIT and not UNIT.search(doc(name))]


def test_numbers_of_descriptions_have_units():
    """Every float field of a public class is documented with a unit, or as a ratio, an abscissa or a relative error."""
    bare = []
    for name in CLASSES:
        fields = dataclasses.fields(attrgetter(name)(ls)) if dataclasses.is_dataclass(attrgetter(name)(ls)) else ()
        for item in fields:
            at = doc(name).find(item.name)
            words = doc(name)[at : at + 160]
            ratio = re.search("ratio|dimensionless|abscissa|largest .error. over", words)
            known = at >= 0 and (UNIT.search(words) or ratio)
            if item.type == "float" and not known:
                bare.append(f"{name}.{item.name}")
    assert not bare


def test_public_methods_have_docstrings():
    """Methods and properties that a user can call have docstrings, their own or those of their base."""
    kinds = property | classmethod | staticmethod
    members = [(name, key) for name in CLASSES for key, value in vars(attrgetter(name)(ls)).items()
               if not key.startswith("_") and (callable(value) or isinstance(value, kinds))]  # fmt: skip
    assert not [(name, key) for name, key in members if not inspect.getdoc(getattr(attrgetter(name)(ls), key))]


def test_every_module_and_function_is_documented():
    """Modules, and functions and classes at their top level, have a docstring."""
    missing = []
    for file, path in package_files().items():
        module = tree(path)
        if not ast.get_docstring(module) and text(path).strip():
            missing.append(file)
        for node in module.body:
            public = isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            kernel = public and any("wp.kernel" in ast.unparse(d) for d in node.decorator_list)
            if public and not kernel and not ast.get_docstring(node):
                missing.append(f"{file}: {node.name}")
    assert not missing
