"""Imports point downwards only as the layers of the library say, and importing the library costs nothing."""

import re
import subprocess
import sys

from house.sources import PACKAGE, imports, package_files, text

# each layer may import itself and what stands before it
LAYERS = ("errors", "portable", "lie", "tracing", "robot", "bodies", "model", "passes", "forces", "systems", "launch",
          "dynamics", "statics", "stepping", "simulation", "gradients", "control", "inverse", "bridges", "io", "sweeps",
          "kernels", "viewing", "exporting", "studio", "gym", "cli")  # fmt: skip
# layers that may import only some of those below
ONLY = {
    "errors": (),
    "portable": ("errors",),
    "lie": ("errors", "portable"),  # portable: private folders of caches
    "tracing": ("errors", "portable", "lie"),  # user functions to native code
    "robot": ("errors", "portable", "tracing"),  # plain data: no numerics of ours
    "bodies": ("errors", "portable", "robot", "tracing"),  # integrals over bodies, by NumPy and JAX alone
    "model": ("errors", "portable", "lie", "robot", "bodies"),
    "passes": (
        "errors",
        "lie",
        "tracing",
        "robot",
        "model",
    ),  # traversals, columns, moves and small linear algebra, in kernels
    "forces": ("errors", "lie", "robot", "model", "passes"),  # everything that acts, with its derivatives and energy
    "systems": ("errors", "lie", "robot", "model", "passes", "forces"),  # residuals, Newton matrices, bordered systems
    "io": (
        "errors",
        "portable",
        "robot",
        "bodies",
        "model",
    ),  # files describe robots; integrals along rods by NumPy alone
}
# (file, imported module): why this import may point upwards
UPWARDS = {
    ("robot/robot.py", "lissom.model.build"): "Robot.build() is the public door to the build; imported when called",
    ("robot/robot.py", "lissom.dynamics.contacts"): "Robot.add_mutual_contacts() asks which links overlap; when called",
    ("simulation/trajectory.py", "lissom.viewing.render"): "Trajectory.animate() is the public door; imported late",
    ("robot/robot.py", "lissom.model.model"): "the type of what Robot.build() returns; for type checkers only",
}
OPTIONAL = {"matplotlib", "mpl_toolkits", "viser", "pyvista", "vtkmodules", "PIL", "imageio_ffmpeg", "jax", "jaxlib",
            "yourdfpy", "imageio", "pinocchio", "shapely", "skfem", "meshio", "pyarrow", "pandas", "xarray",
            "distributed", "cloudpickle",
            "trimesh", "mujoco", "h5py", "rerun", "crocoddyl", "aligator", "torch", "nicegui", "pxr"}  # fmt: skip
FOREIGN = {
    "errors": set(),
    "lie": {"numpy", "warp"},
    "tracing": {"numpy", "jax", "warp"},
    "robot": {
        "numpy",
        "scipy",
        "jax",
        "shapely",
        "skfem",
        "trimesh",
    },  # but for NumPy where they are needed, imported late
    "bodies": {"numpy", "scipy", "jax", "meshio"},
    "model": {"numpy", "warp"},
}


# Only the dispatcher, the tests that it calls, and the kinds of nodes, which are the modules that it imports, may ask
# for the kind of a node in kernels.
IMPORTED = re.search(r"^from lissom\.passes import (.+)$", text(PACKAGE / "passes/kinds.py"), re.MULTILINE)
OF_KINDS = IMPORTED[1].split(", ")
KINDS = {"passes/kinds.py", "passes/features.py"}
KINDS |= {f"passes/{name}.{ending}" for name in OF_KINDS if name != "inertia" for ending in ("py", "h")}
IS_KIND = {"is_exp", "has_stored_pose"}  # and the tests that kinds have in their own modules
for name in OF_KINDS:
    IS_KIND |= set(re.findall(r"^def (is_\w+)\(kind: int\)", text(PACKAGE / f"passes/{name}.py"), re.MULTILINE))
ASKS_FOR_KIND = re.compile(
    rf"\b(?:{'|'.join(sorted(IS_KIND))})\("
    r"|\.node(?:\.data)?\[[^\n]*?\]\.(?:kind|has_quaternion)\b"
    r"|\bMotionKind\b|\bnodes\.kind\b"
)
NAMES_KINDS = ("robot", "model")  # rooms that describe and build nodes, where a kind is a value
FILLS_ROWS = {"launch/points.py"}  # makes rows of nodes that are points


def layer(file):
    """The layer of a file, by its first folder or its own name; namespaces of other libraries are those of bridges."""
    name = file.split("/")[0].removesuffix(".py")
    return "bridges" if file in ("aligator.py", "crocoddyl.py", "jax.py", "torch.py") else name


def ours(file):
    """Imports of the library's own modules in a file: (module, layer, line, top)."""
    for module, names, line, top in imports(package_files()[file]):
        if module == "lissom" and names and names != ("__version__",):
            yield module, names[0], line, top
        elif module.startswith("lissom."):
            yield module, module.split(".")[1], line, top


FILES = [file for file in package_files() if file != "__init__.py"]


def test_every_file_belongs_to_a_layer():
    """A new folder must take its place in the order of layers."""
    assert {layer(file) for file in FILES} <= set(LAYERS)


def test_imports_point_downwards():
    """A file imports only its own layer and layers below, and no relative paths."""
    upwards = []
    for file in FILES:
        here = layer(file)
        allowed = {here, *ONLY.get(here, LAYERS[: LAYERS.index(here)])}
        for module, target, line, _ in ours(file):
            if target not in allowed and here != "cli" and (file, module) not in UPWARDS:
                upwards.append(f"{file}:{line} imports {module}")
        upwards += [
            f"{file}:{line}: relative" for module, _, line, _ in imports(package_files()[file]) if module[0] == "."
        ]
    assert not upwards


def test_exceptions_are_used_and_deferred():
    """Each allowed upward import still exists, and does not run when its module is imported."""
    for (file, module), reason in UPWARDS.items():
        found = [top for name, _, _, top in imports(package_files()[file]) if name == module]
        assert found, f"{file} no longer imports {module}: drop the exception ({reason})"
        assert not any(found), f"{file} imports {module} at module level"


def test_one_file_branches_on_kinds_of_nodes():
    """Sweeps, systems and forces do not ask for the kind of a node: passes/kinds.py calls the functions of each kind,
    which are in the file of that kind."""
    headers = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.h"))}
    outside = {}
    for file, path in (package_files() | headers).items():
        if file not in KINDS | FILLS_ROWS and layer(file) not in NAMES_KINDS:
            outside[file] = ASKS_FOR_KIND.findall(text(path))
    assert not {file: found for file, found in outside.items() if found}
    assert {"is_mapped", "is_body"} <= IS_KIND and {"passes/mapped.py", "passes/interval.h"} <= KINDS
    assert all(ASKS_FOR_KIND.search(text(PACKAGE / file)) for file in ("passes/kinds.py", "passes/interval.h"))


def foreign():
    """(file, line, package, whether at module level) of every import from outside the library."""
    for file in FILES:
        for module, _, line, top in imports(package_files()[file]):
            if (name := module.split(".")[0]) != "lissom":
                yield file, line, name, top


def test_optional_packages_are_imported_late():
    """Heavy optional packages are imported inside the functions that use them."""
    assert not [f"{file}:{line} imports {name}" for file, line, name, top in foreign() if top and name in OPTIONAL]


def test_lower_layers_use_few_packages():
    """The lower layers depend on the standard library, NumPy and, where kernels live, Warp."""
    outside = [(file, line, name) for file, line, name, _ in foreign() if name not in sys.stdlib_module_names]
    assert not [f"{f}:{line} imports {name}" for f, line, name in outside if name not in FOREIGN.get(layer(f), {name})]


def loaded_after(code):
    """The modules that a fresh interpreter holds after running code."""
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_import_costs_nothing():
    """`import lissom` loads no numerical package at all, and `dir` and `__version__` neither."""
    loaded = loaded_after("import lissom\nassert lissom.__version__ and 'Robot' in dir(lissom)")
    assert not loaded & {"numpy", "warp", "scipy", "matplotlib", "sksundae", "pydantic", "yaml", "rich"}


def test_describing_a_robot_needs_no_warp():
    """A robot is described, and its names are used, without Warp, SciPy or SUNDIALS."""
    code = """
import lissom as ls
robot = ls.Robot("r")
material = ls.Material(young=1e6, density=1e3)
robot.add_link("arm", ls.Rod(0.5, ls.SectionCircle((0.02, 0.01)), ls.BasisLegendre(bending_y=2), material))
robot.add_tendon("t", "arm", (0.0, 0.01))
robot.check()
"""
    assert not loaded_after(code) & {"warp", "scipy", "matplotlib", "sksundae", "pydantic", "rich"}
