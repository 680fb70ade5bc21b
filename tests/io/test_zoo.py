"""Robots of public files fall on a floor: none falls through it, and none gains energy.

The files are those of the packages with which other tests compare. A floor lies 0.2 m below the collision geometry of
each robot, which starts at rest within its stops; robots of URDF files are free. All of it is slow.
"""

import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import lissom as ls

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent / "robots"
DURATION, HEIGHT, ABOVE = 3.0, 0.2, 1e3  # [s], [m], height of a plane that all balls are below [m]
DEEPEST = 0.01  # largest depth in the floor: a few times that of the softest contacts of a fall from HEIGHT [m]
STEPS = {"fixed": {"dt": 2e-3}, "adaptive": {"rtol": 1e-3}}
REFUSED = {  # files that describe no robot that can move, and the rule that they break
    "bluevolta_bravo7_gripper.urdf": "must move some mass",
    "bravo7_gripper.urdf": "must move some mass",
    "falcon.urdf": "child: must be one of the links",
    "falcon_bravo7_gripper.urdf": "must move some mass",
    "model.urdf": "must move some mass",
    "romeo.urdf": "must move some mass",
    "romeo_laas_small.urdf": "must move some mass",
    "ur10e.urdf": "must move some mass",
    "ur3.urdf": "must have one link that hangs on no joint",
}
WITHOUT_SHAPES = {  # files whose geometry is drawn only, or set to touch nothing
    "TwoDofs.urdf",
    "alexander_v1.lowerBodyOnly.urdf",
    "human.urdf",
    "simple_humanoid_classical.urdf",
    "swimmer.xml",
    "ur10e.xml",
}


def place_of(package, *path):
    """A folder of an installed package or of its prefix; None if it is not there."""
    spec = find_spec(package)
    origin = Path(spec.origin) if spec is not None and spec.origin else None
    for parent in origin.parents if origin is not None else ():
        if (found := parent.joinpath(*path)).is_dir():
            return found
    return None


def files():
    """All robot files of the packages that are installed."""
    assets = place_of("gymnasium", "envs", "mujoco", "assets")
    data, tests = place_of("example_robot_data", "share", "example-robot-data"), place_of("mujoco", "testdata")
    found = sorted(HERE.glob("*.xml")) + sorted(HERE.glob("*.urdf"))
    for folder in filter(None, (assets, tests)):
        found += sorted(x for x in folder.rglob("*") if x.suffix == ".urdf" or is_mjcf(x))
    return found + sorted(data.rglob("*.urdf") if data else ())


def is_mjcf(path):
    """Whether a file is a MuJoCo model with bodies."""
    return path.suffix == ".xml" and "<worldbody" in path.read_text(errors="ignore")


def loaded(path):
    """The robot of a file, free if it is a URDF file."""
    if path.suffix != ".urdf":
        return ls.load_mjcf(path)
    above = [x for x in path.parents if x.name == "example-robot-data"]
    return ls.load_urdf(path, base=ls.JointFree(), packages={"example-robot-data": above[0]} if above else None)


def above_floor(robot):
    """The model of a robot above a floor, its start, and the height of the floor; None without collision geometry."""
    links = [k for k, link in robot.links.items() if isinstance(link.body, ls.RigidBody) and link.body.touches]
    if not links:
        return None
    robot.near_pairs = 10**5  # all balls of a large humanoid may be near the floor at once
    low = ABOVE - float(ls.contact_forces(*with_floor(robot, links, ABOVE)).depth.max())
    return *with_floor(robot, links, low - HEIGHT), low - HEIGHT


def with_floor(robot, links, z):
    """The model of a robot whose links touch a floor at the height z, and its start."""
    place = np.eye(4)
    place[2, 3] = z
    robot.contacts.clear()
    robot.add_contact("floor", links, ls.ShapePlane(), placement=place)
    model = robot.build()
    return model, ls.start_configuration(model)


ALL = files()


@pytest.mark.filterwarnings("ignore::lissom.LeftOutWarning", "ignore::lissom.RepairWarning")
@pytest.mark.filterwarnings("ignore::lissom.AccuracyWarning", "ignore::lissom.StepWarning")
@pytest.mark.parametrize("path", ALL, ids=[path.name for path in ALL])
@pytest.mark.parametrize("steps", STEPS)
def test_falls_on_a_floor(path, steps):
    """In 3 s no collision geometry gets below the floor, and the energy above it stays below 1.01 of its start."""
    rule = REFUSED.get(path.name)
    if rule is not None:
        with pytest.raises(ls.ModelError, match=rule):
            ls.simulate(loaded(path).build(), 0.01, dt=1e-3)
        return
    found = above_floor(loaded(path))
    assert (found is None) == (path.name in WITHOUT_SHAPES)  # else a reader lost collision geometry
    if found is None:
        return
    model, q, floor = found
    mass, gravity = float(model.links.mass.sum()), -float(model.description.gravity[2])
    t = np.linspace(0.0, DURATION, 151)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ls.PlausibilityWarning)  # a start that throws the robot
        motion = ls.simulate(model, DURATION, q, t_eval=t, u=np.zeros(model.nu), **STEPS[steps])
    depth = max((float(x.depth.max(initial=0.0)) for x in ls.contact_forces(model, motion.q)), default=0.0)
    energy = ls.energy(model, motion.q, motion.v).total - mass * gravity * floor
    assert depth < DEEPEST
    assert energy.max() <= 1.01 * energy[0] + 1e-9
