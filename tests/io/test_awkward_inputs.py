"""Awkward inputs: each is refused or reported in one clear line that names the entity, the rule and the value."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from one_sided import projective_plane

import lissom as ls

BOX = ls.Mesh.of_shape(ls.ShapeBox(0.2, 0.3, 0.4))
SIDES = np.asarray(BOX.triangles)
INERTIA = '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.025"/>'


def gripper():
    """Two fingers that slide on a palm, coupled, and a loose wheel."""
    robot = ls.Robot("gripper")
    robot.add_link("palm", ls.RigidBody.box(0.1, 0.1, 0.02, density=1000.0))
    for name in ("left", "right", "third"):
        robot.add_link(name, ls.RigidBody.box(0.02, 0.02, 0.06, density=1000.0), ls.JointPrismatic(), "palm")
    robot.add_coupling("mimic", ["left", "right"], [1.0, -1.0])
    return robot


def touched(mesh):
    """Build a robot whose only body touches a mesh."""
    robot = ls.Robot("ball")
    robot.add_link("ball", ls.RigidBody.sphere(0.05, density=1000), ls.JointFree())
    robot.add_contact("cup", "ball", ls.ShapeMesh(mesh))
    robot.build()


def filled(triangles):
    """Build a robot whose body touches a plane by a mesh."""
    mesh = ls.Mesh(vertices=BOX.vertices, triangles=triangles)
    robot = ls.Robot("cup")
    body = ls.RigidBody(1.0, inertia=(1.0, 1.0, 1.0), shapes=(ls.PlacedShape(ls.ShapeMesh(mesh)),), balls=4)
    robot.add_link("cup", body, ls.JointFree())
    robot.add_contact("ground", "cup", ls.ShapePlane())
    robot.build()


def cycle():
    """Three couplings, of which the last follows from the others."""
    robot = gripper()
    robot.add_coupling("second", ["right", "third"], [1.0, -1.0])
    robot.add_coupling("third", ["third", "left"], [1.0, -1.0])
    robot.check()


def fixed():
    """A coupling of a joint that does not move."""
    robot = gripper()
    robot.add_coupling("grip", ["palm", "left"], [1.0, -1.0])
    robot.check()


def negative_mass():
    """A body with a negative mass."""
    robot = gripper()
    robot.add_link("load", ls.RigidBody(-1.0), parent="palm")
    robot.check()


def of_urdf(tmp_path, mass=1.0, mimics=("", "")):
    """Read a URDF file of two joints strictly."""
    links = f'<inertial><mass value="{mass}"/>{INERTIA}</inertial>'
    joints = "".join(
        f"""<link name="l{k}">{links}</link><joint name="j{k}" type="continuous"><parent link="base"/>
        <child link="l{k}"/>{'<mimic joint="' + mimic + '"/>' if mimic else ""}</joint>"""
        for k, mimic in enumerate(mimics)
    )
    path = tmp_path / "robot.urdf"
    path.write_text(f'<robot name="r"><link name="base"/>{joints}</robot>', encoding="utf-8")
    ls.load_urdf(path, strict=True)


REFUSED = {
    "negative mass": (lambda _: negative_mass(), "link 'load' > body: mass: must be >= 0 (got -1.0)"),
    "negative mass in URDF": (lambda path: of_urdf(path, -0.5), "link 'l0': body: mass: must be >= 0 (got -0.5)"),
    "cyclic coupling": (
        lambda _: cycle(),
        "coupling 'third': must not follow from the couplings before it; remove one of this cycle (got ",
    ),
    "cyclic mimic": (
        lambda path: of_urdf(path, mimics=("j1", "j0")), "joint 'j0' must not mimic itself ('j0' > 'j1' > 'j0')"
    ),
    "coupling of a fixed joint": (
        lambda _: fixed(), "coupling 'grip': joint 'palm': each joint must have one coordinate (got 0)"
    ),
    "lock of a coupled joint": (
        lambda _: gripper().lock("left", 0.01),
        "link 'left' > joint: must not be locked while other parts need it; remove them first (got [\"coupling 'mimic",
    ),
    "open mesh": (
        lambda _: touched(ls.Mesh(vertices=BOX.vertices, triangles=SIDES[:-1])),
        "contact 'cup' > shape: mesh must be closed: 3 of its 18 edges have a triangle on one side only; close its ",
    ),
    "mesh without sides": (
        lambda _: touched(projective_plane()),
        "contact 'cup' > shape: mesh must have triangles that are all turned outwards: at ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_awkward_inputs_are_refused_in_one_line(tmp_path, name):
    """The line names the entity, the rule and the value."""
    make, text = REFUSED[name]
    with pytest.raises(ls.ModelError) as error:
        make(tmp_path)
    assert text in str(error.value) and "\n" not in str(error.value)


def test_collision_meshes_may_be_open_or_inside_out():
    """An open mesh counts as its hull, which the warning says; triangles that are turned inside out are turned back."""
    hulls = "collision meshes of link 'cup' count as their convex hulls"
    for triangles, hint in (
        (SIDES[:-1], f"{hulls} (open)"),
        ([*SIDES[:-1], SIDES[-1][::-1]], ""),
        (SIDES[:, ::-1], ""),
        ([*SIDES[:-1], *SIDES[:-1, ::-1]], f"{hulls} (no volume inside)"),
    ):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            filled(triangles)
        assert [str(warning.message) for warning in told] == [hint] * bool(hint)
        assert all(warning.category is ls.AccuracyWarning for warning in told)


LARGE = """
import resource, sys, time
from pathlib import Path
import numpy as np
import lissom as ls
from lissom.model import distance_grids
distance_grids.cache_folder = lambda name: Path(sys.argv[1])  # an empty cache
n = 708
a, b = np.meshgrid(np.linspace(0, np.pi, n), np.arange(n) * 2 * np.pi / n, indexing="ij")
r = 0.1 * (1 + 0.1 * np.sin(5 * a) ** 2 * np.cos(4 * b))
points = np.stack([r * np.sin(a) * np.cos(b), r * np.sin(a) * np.sin(b), r * np.cos(a)], axis=-1).reshape(-1, 3)
k, j = np.meshgrid(np.arange(n - 1), np.arange(n), indexing="ij")
corner = [(k + x) * n + (j + y) % n for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))]
rows = np.stack([corner[0], corner[1], corner[2], corner[0], corner[2], corner[3]], axis=-1)
mesh = ls.Mesh(vertices=points, triangles=rows.reshape(-1, 3))
robot = ls.Robot("ball")
robot.add_link("ball", ls.RigidBody.sphere(0.01, density=1000), ls.JointFree())
robot.add_contact("stone", "ball", ls.ShapeMesh(mesh))
began = time.process_time()
robot.build()
print(len(rows.reshape(-1, 3)), time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


@pytest.mark.slow  # some 20 s
def test_a_mesh_of_a_million_triangles(tmp_path):
    """It takes less than a minute of processor time, and less than 1.5 GB in all."""
    run = [sys.executable, "-c", LARGE, str(tmp_path)]
    out = subprocess.run(run, capture_output=True, text=True, check=True)
    count, seconds, memory = map(float, out.stdout.split())
    assert count > 1e6 - 5e3 and seconds < 60.0 and memory < 1.5
