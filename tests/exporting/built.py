"""Exported robots, compiled here and called by ctypes."""

import ctypes
import re
import shutil
import subprocess
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_size_t, c_void_p
from pathlib import Path

import numpy as np
import pytest

import lissom as ls
from lissom.exporting.functions import FUNCTIONS

COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]
FIRST = next(iter(COMPILERS), "")  # where there is none, all tests that use it are skipped
needs_compiler = pytest.mark.skipif(not COMPILERS, reason="there is no C++ compiler")
COMMON = ("-std=c++17", "-fPIC", "-fno-math-errno", "-fno-strict-aliasing", "-fvisibility=hidden")
OUR_WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
_ARRAY = POINTER(c_double)


def compiled(folder, compiler=FIRST, *flags, out="robot.so"):
    """The shared library of an exported robot. Our own files are free of warnings; kernels are generated."""
    folder, objects = Path(folder), []
    for path in sorted(folder.rglob("*.cpp")):
        is_ours = path.parent == folder
        to = folder / f"{path.stem}_{path.parent.name if not is_ours else 'own'}.{out}.o"
        warnings = OUR_WARNINGS if is_ours else ("-w",)
        command = [compiler, *COMMON, *flags, *warnings, f"-I{folder}", f"-I{folder}/warp", "-c", path, "-o", to]
        _run(command)
        objects.append(to)
    _run([compiler, "-shared", *flags, *objects, "-o", folder / out])
    return folder / out


def compiled_test(folder, compiler, *flags, out="test"):
    """The test program of an exported robot, with its sources."""
    folder, objects = Path(folder), sorted(Path(folder).glob("*.so.o"))
    c = {"g++": "gcc", "clang++": "clang"}[compiler]
    _run([c, "-std=c99", *OUR_WARNINGS, *flags, f"-I{folder}", "-c", folder / "test.c", "-o", folder / f"{out}.o"])
    _run([compiler, *flags, folder / f"{out}.o", *objects, "-o", folder / out, "-lm"])
    return folder / out


def _run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]


class Library:
    """An exported robot by ctypes. `make` returns workspaces; a workspace is an address."""

    def __init__(self, path, name, model):
        self.name, self.model, self.lib = name, model, ctypes.CDLL(str(path))
        self.of("create").argtypes = [POINTER(c_void_p), c_void_p, c_size_t, c_int]
        self.of("destroy").argtypes = [c_void_p]
        self.of("copy").argtypes = [c_void_p, c_void_p]
        self.of("evaluate").argtypes = [c_void_p, c_int, _ARRAY, c_size_t, _ARRAY, c_size_t]
        self.of("sizes").argtypes = [c_int, POINTER(c_size_t), POINTER(c_size_t)]
        self.of("memory_size").restype = c_size_t
        self.of("status_text").restype = c_char_p

    def of(self, name):
        """A function of the C interface, without its prefix."""
        return getattr(self.lib, f"{self.name}_{name}")

    def text(self, status):
        """What a status means."""
        return self.of("status_text")(status).decode()

    def make(self):
        """A new workspace."""
        made = c_void_p()
        assert self.of("create")(byref(made), None, 0, 1) == 0
        return made

    def sizes(self, function):
        """Numbers of entries of the arguments and of the results."""
        given, found = c_size_t(), c_size_t()
        assert self.of("sizes")(list(FUNCTIONS).index(function), byref(given), byref(found)) == 0
        return given.value, found.value

    def evaluate(self, w, function, given):
        """Results of a function of states, or its status."""
        n_in, n_out = self.sizes(function)
        assert len(given) == n_in
        found = np.full(n_out, np.nan)  # the function writes each number
        status = self.of("evaluate")(w, list(FUNCTIONS).index(function), pointer(given), n_in, pointer(found), n_out)
        return status or found


def with_null_and_random_numbers(folder, library, rng, count=20):
    """Call each function that the header declares with valid memory, with null in each place, and with random numbers.
    Returns their statuses, which are integers, by name; a crash ends the process."""
    header = (Path(folder) / f"{library.name}.h").read_text(encoding="utf-8")
    plain = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    found = re.findall(rf"_API (int|void|size_t|const [\w ]+\*) {library.name}_(\w+)\(([^)]*)\);", plain)
    assert found and len(found) == len(re.findall(r"^[A-Z_0-9]+_API ", plain, re.MULTILINE))
    statuses = {}
    for result, name, listed in found:
        kinds = [] if listed.strip() == "void" else [_kind(one) for one in listed.split(",")]
        call = getattr(ctypes.CDLL(library.lib._name), f"{library.name}_{name}")  # with types of its own
        call.argtypes = [{"w": c_void_p, "p": c_void_p, "i": c_int, "n": c_size_t, "d": c_double}[k] for k in kinds]
        call.restype = c_int if result == "int" else c_size_t if result == "size_t" else c_void_p
        pointers = [k for k, kind in enumerate(kinds) if kind in "wp"]
        statuses[name] = []
        for k in [*([where] for where in pointers), pointers, *[[]] * count]:
            if name == "destroy" and not k:
                continue  # ends the workspace
            room = [np.zeros(4096) for _ in kinds]
            w = library.make()
            values = {
                "i": int(rng.choice([-(2**31), -1, 0, 1, 5, 64, 2**31 - 1])),
                "d": rng.choice([0.0, np.nan, 1e-3]),
                "n": int(rng.choice([0, 1, 8, room[0].nbytes])) if room else 0,
            }
            given = [None if j in k else w if kind == "w" else room[j].ctypes.data if kind == "p" else values[kind]
                     for j, kind in enumerate(kinds)]  # fmt: skip
            statuses[name].append((tuple(k), call(*given)))
            library.of("destroy")(w)
    return statuses


def _kind(text):
    """What an argument is: a workspace, another pointer, an int, a size or a double."""
    if "*" in text:
        return "w" if "_workspace*" in text.replace(" ", "") and "**" not in text else "p"
    return "n" if "size_t" in text else "d" if "double" in text else "i"


def pointer(values):
    """The address of an array of float64, which must live on."""
    return values.ctypes.data_as(_ARRAY)


def machine():
    """A link that follows an expression of time and carries a closed chain, a ball that falls to the ground, where it
    sticks, and a force that changes with time: what plain robots lack."""
    robot = ls.Robot("machine")
    rod = ls.RigidBody.cylinder(0.3, 0.01, density=2700.0)
    axis, at_end, above = (0.0, 1.0, 0.0), np.eye(4), np.eye(4)
    at_end[0, 3], above[2, 3] = 0.15, 0.06  # the ball touches the ground after 45 ms
    robot.add_link("crank", body=rod, joint=ls.JointRevolute(axis))
    robot.add_link("coupler", parent="crank", body=rod, joint=ls.JointRevolute(axis), placement=at_end)
    robot.add_link("slider", body=rod, joint=ls.JointPrismatic((1.0, 0.0, 0.0)))
    robot.add_loop("pin", "coupler", "slider", placement_a=at_end, joint=ls.JointRevolute(axis))
    robot.add_joint_motion("drive", "crank", position=ls.Expression("0.2*sin(6*t)", "t"))
    robot.add_link("ball", body=ls.RigidBody.sphere(0.05, density=500.0), joint=ls.JointFree(), placement=above)
    robot.add_contact("ground", "ball", ls.ShapePlane(), stiffness=2e3, damping=2.0, friction=0.5, stick_stiffness=5e2)
    robot.add_point_load("breeze", "ball", force=ls.Expression(["0.3*sin(9*t)", "0.1", "0"], "t"))
    return robot


def finger():
    """A hinged link with a short rod, two tendons and a motor: small, with all that plain robots have."""
    robot, joint = ls.Robot("soft finger"), ls.JointRevolute(axis=(0.0, 1.0, 0.0), stiffness=0.5, damping=0.01)
    robot.add_link("palm", body=ls.RigidBody.box(0.05, 0.03, 0.02, density=1200.0), joint=joint)
    robot.add_link(
        "finger",
        parent="palm",
        body=ls.Rod(
            length=0.1,
            section=ls.SectionCircle(0.008),
            material=ls.Material(young=5e5, poisson=0.5, density=1100.0, viscosity=200.0),
            basis=ls.BasisLegendre(bending_y=2, bending_z=1, torsion=0),
        ),
    )
    for k, side in enumerate((1.0, -1.0)):
        robot.add_tendon(f"tendon {k}", "finger", offset=(0.0, side * 0.006))
    robot.add_joint_actuator("motor", "palm")
    robot.add_frame("tip", "finger", s=1.0)
    return robot
