"""Where a package of an extra is missing, its door says in one line what to install."""

import json
import os
import subprocess
import sys

import pytest

DOORS = {  # what is done, and the extra that its error must name, or the command
    "ls.plot_trajectory(model, motion, path='a.png')": "view",
    "ls.plot_shapes(model, motion.q, path='a.png')": "view",
    "ls.render(model, motion.q[0], 'a.png')": "render",
    "motion.animate('a.mp4')": "render",
    "ls.view(model, motion.q[0])": "viewer",
    "studio('a.yaml')": "studio",
    "ls.jax.rollout(model, dt=1e-3)": "jax",
    "ls.torch.rollout(model, dt=1e-3)": "torch",
    "ls.gym.environment(ls.gym.TaskBalance())": "gym",
    "ls.gym.stable_baselines_environment(ls.gym.TaskBalance(), 2)": "gym",
    "ls.crocoddyl.problem(model, [0.0], dt=1e-3, steps=2)": "crocoddyl",
    "ls.aligator.problem(model, [0.0], dt=1e-3, steps=2)": "conda install -c conda-forge aligator",
    "motion.to_hdf5('a.h5')": "hdf5",
    "motion.to_rerun('a.rrd')": "rerun",
    "ls.load_mjcf('a.xml')": "mjcf",
    "ls.save_usd(model, 'a.usda')": "usd",
    "ls.Mesh(file='a.obj').surface()": "urdf",
    "ls.sweep(lambda trial: {'y': 1.0}, {'x': [1.0]}, out='swept', workers=1)": "sweep",
    "ls.sweep(lambda trial: {'y': 1.0}, {'x': [1.0]}, out='swept', cluster='tcp://127.0.0.1:1')": "sweep",
    "custom(lambda q: q).build()": "jax",
    "forced(ls.TracedFunction(lambda t, g, eta: eta)).build()": "jax",
    "polygon().build()": "sections",
}
CODE = """
import json, sys, warnings
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {missing}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
import numpy as np
import lissom as ls
from lissom.studio.serving import studio
from lissom.simulation.trajectory import Statistics, Trajectory
robot = ls.Robot("r")
robot.add_link("b", ls.RigidBody(1.0, inertia=(1, 1, 1)), ls.JointRevolute())
model, x, none = robot.build(), np.zeros((3, 1)), np.zeros((3, 0))
motion = Trajectory(np.arange(3.0), x, x, x, none, none, none, Statistics("none", 0, 0, 0, 0.0), model=model)
open("a.obj", "w").write("v 0 0 0")
open("a.xml", "w").write("<mujoco/>")
def custom(function):
    r = ls.Robot("c")
    r.add_link("b", ls.RigidBody(1.0, inertia=(1, 1, 1)), ls.JointCustom(function, 1))
    return r
def forced(function):
    r = ls.Robot("c")
    r.add_link("b", ls.RigidBody(1.0, inertia=(1, 1, 1)), ls.JointFree())
    r.add_force("f", "b", function)
    return r
def polygon():
    r, section = ls.Robot("p"), ls.SectionPolygon([(0, 0), (0.01, 0), (0, 0.01)], saint_venant=True)
    r.add_link("b", ls.Rod(0.3, section, ls.BasisLegendre(torsion=1), ls.Material(young=1e6, density=1000)))
    return r
said = {{}}
for door in {doors}:
    try:
        eval(door)
        said[door] = "no error"
    except (ls.ModelError, ImportError) as error:
        said[door] = str(error)
    except Exception as error:
        said[door] = f"{{type(error).__name__}}: {{error}}"
print(json.dumps(said))
"""
MISSING = [
    "matplotlib", "mpl_toolkits", "viser", "pyvista", "vtkmodules", "PIL", "imageio_ffmpeg", "imageio", "jax", "jaxlib",
    "shapely", "skfem", "meshio", "pyarrow", "pandas", "xarray", "distributed", "cloudpickle", "trimesh", "mujoco",
    "h5py", "rerun", "crocoddyl", "aligator", "torch", "gymnasium", "stable_baselines3", "cyipopt", "nicegui", "pxr",
]  # fmt: skip


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """The messages of all doors in a process that has none of the optional packages."""
    folder = tmp_path_factory.mktemp("bare")
    here = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    code = CODE.format(missing=MISSING, doors=list(DOORS))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=here, cwd=folder, capture_output=True,
                          text=True, timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not (folder / "swept").exists()  # nothing is computed or written first
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("door", DOORS)
def test_a_missing_package_is_named_with_its_extra(said, door):
    """One line, with the command that installs the package."""
    command = DOORS[door] if " " in DOORS[door] else f"pip install 'lissom[{DOORS[door]}]'"
    assert command in said[door] and "\n" not in said[door], said[door]
