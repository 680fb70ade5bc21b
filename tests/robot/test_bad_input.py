"""Wrong descriptions: each ends in a ModelError that names the entity, the rule and the value."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import lissom as ls

MATERIAL = ls.Material(young=1e6, density=1000.0)
NAN, INF = float("nan"), float("inf")
SHEARED = [[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def rod(**fields):
    """A good rod with some of its fields replaced."""
    good = {"length": 0.5, "section": ls.SectionCircle(0.01), "basis": ls.BasisLegendre(bending_y=2)}
    return ls.Rod(**(good | {"material": MATERIAL} | fields))


def good_robot():
    """A rigid base on a hinge and a rod, with a tendon, a motor, a load and a frame."""
    robot = ls.Robot("good")
    robot.add_link("base", ls.RigidBody.box(0.1, 0.1, 0.1, density=1000.0), ls.JointRevolute())
    robot.add_link("arm", rod(), parent="base")
    robot.add_tendon("t1", "arm", (0, 0.01))
    robot.add_joint_actuator("motor", "base")
    robot.add_point_load("weight", "arm", force=(0, 0, -1))
    robot.add_frame("tip", "arm")
    return robot


def contents(robot):
    """The contents of a robot, as text."""
    return repr([copy.copy(v) for k, v in sorted(vars(robot).items()) if k != "name"])


def link(**fields):
    """Adds a link of these fields to the good robot, called x."""
    return lambda robot: robot.add_link("x", **fields)


def body(make, *arguments, **fields):
    """Adds a link whose body is made at that moment."""
    return lambda robot: robot.add_link("x", make(*arguments, **fields))


def joint(make, *arguments, **fields):
    """Adds a rigid link on a joint made at that moment."""
    sphere = ls.RigidBody.sphere(0.1, density=1.0)
    return lambda robot: robot.add_link("x", sphere, make(*arguments, **fields))


def wrench(**fields):
    """Adds a wrench input of these fields, called x, on the arm."""
    return lambda robot: robot.add_wrench_input("x", **({"link": "arm"} | fields))


def load(**fields):
    """Adds a point load of these fields, called x, on the arm."""
    return lambda robot: robot.add_point_load("x", **({"link": "arm"} | fields))


def tendon(*arguments, **fields):
    """Adds a tendon called x."""
    return lambda robot: robot.add_tendon("x", *arguments, **fields)


def section(make, *arguments, **fields):
    """Adds a rod of that section."""
    return body(rod, section=make(*arguments, **fields))


def material(**fields):
    """Adds a rod of that material."""
    return body(rod, material=ls.Material(**({"young": 1e6, "density": 1000.0} | fields)))


def custom(function, **fields):
    """Adds a rod with that custom basis."""
    return body(rod, basis=ls.BasisCustom(function, **fields))


def raises(_):
    """A user's function that fails."""
    raise KeyError("no such table")


# the input of the user, and the words that the message of robot.check() must contain
CHECKED = {
    # rods
    "length negative": (body(rod, length=-1.0), "link 'x' > body: length: must be > 0 (got -1.0)"),
    "length zero": (body(rod, length=0), "link 'x' > body: length: must be > 0 (got 0)"),
    "length nan": (body(rod, length=NAN), "link 'x' > body: length: must be > 0 (got nan)"),
    "length infinite": (body(rod, length=INF), "link 'x' > body: length: must be > 0 (got inf)"),
    "length text": (body(rod, length="0.5"), "link 'x' > body: length: must be > 0 (got '0.5')"),
    "length list": (body(rod, length=[0.5]), "link 'x' > body: length: must be > 0 (got [0.5])"),
    "no section": (body(rod, section=0.01), "link 'x' > body: section: must be a Section (got 0.01)"),
    "no basis": (body(rod, basis=4), "link 'x' > body: basis: must be a Basis (got 4)"),
    "material of wrong kind": (
        body(rod, material=1e6),
        "link 'x' > body: material: must be a Material (got 1000000.0)",
    ),
    "material missing": (body(rod, material=None), "link 'x' > body > section: needs a material (got None)"),
    "reference of 5": (body(rod, reference_strain=(0,) * 5), "reference_strain: must be a finite 6-vector"),
    "reference nan": (body(rod, reference_strain=(0, 0, 0, NAN, 0, 0)), "link 'x' > body: reference_strain: must be"),
    "reference function": (body(rod, reference_strain=lambda s: s), "values of shape (6,) at 0 (got 0.0)"),
    "gauss points zero": (body(rod, gauss_points=0), "body: gauss_points: must be an integer >= 1 (got 0)"),
    "interval points one": (
        body(rod, interval_points=1),
        "body: interval_points: must be an integer >= 2 (got 1)",
    ),
    "gauss points half": (body(rod, gauss_points=2.5), "body: gauss_points: must be an integer >= 1 (got 2.5)"),
    # materials
    "young negative": (material(young=-1.0), "link 'x' > body > material: young: must be > 0 (got -1.0)"),
    "density zero": (material(density=0.0), "link 'x' > body > material: density: must be > 0 (got 0.0)"),
    "poisson large": (material(poisson=0.6), "material: poisson: must lie in (-1, 0.5] (got 0.6)"),
    "poisson -1": (material(poisson=-1), "material: poisson: must lie in (-1, 0.5] (got -1)"),
    "viscosity negative": (material(viscosity=-1e3), "material: viscosity: must be >= 0 (got -1000.0)"),
    "damping time nan": (material(damping_time=NAN), "material: damping_time: must be >= 0 (got nan)"),
    # sections
    "radius negative": (section(ls.SectionCircle, -0.01), "body > section: radius: must be > 0 (got -0.01)"),
    "radius true": (section(ls.SectionCircle, True), "body > section: radius: must be > 0 (got True)"),
    "radius zero": (section(ls.SectionCircle, (0.0, 0)), "body > section: radius: must be > 0 (got 0.0)"),
    "radius of three": (
        section(ls.SectionCircle, (1, 2, 3)),
        "radius: must be a number, (base, tip) or a function of s",
    ),
    "radius falls below 0": (section(ls.SectionCircle, lambda s: 0.4 - s), "radius at s=0.5: must be > 0 (got -0."),
    "radius fails": (section(ls.SectionCircle, raises), "radius: the function failed at 0 (KeyError: 'no such table')"),
    "radius vector": (section(ls.SectionCircle, lambda s: (s, s)), "radius: the function must return finite values"),
    "hole larger than the tube": (
        section(ls.SectionAnnulus, 0.01, 0.02),
        "inner: must be < outer (0.01) at s=0 (got 0.02)",
    ),
    "width complex": (section(ls.SectionRectangle, 1, 1j), "section: width_z: must be > 0 (got 1j)"),
    "nothing general": (section(ls.SectionGeneral), "section: stiffness: is needed without a shape (got None)"),
    "general without inertia": (section(ls.SectionGeneral, 1.0), "section: inertia: is needed without a shape"),
    "stiffness of 5": (section(ls.SectionGeneral, (1,) * 5, 1.0), "stiffness: must have shape (), (6,) or (6, 6)"),
    "stiffness indefinite": (
        section(ls.SectionGeneral, (1, 1, 1, 1, 1, -1), 1.0),
        "section: stiffness: must be symmetric positive semi-definite",
    ),
    "stiffness skew": (section(ls.SectionGeneral, np.eye(6) + np.eye(6, k=1), 1.0), "stiffness: must be symmetric"),
    "stiffness fails": (section(ls.SectionGeneral, raises, 1.0), "stiffness: the function failed at 0 (KeyError"),
    "shape of wrong kind": (section(ls.SectionGeneral, 1.0, 1.0, shape=3), "section: shape: must be a Section (got 3)"),
    # bases
    "no modes": (body(rod, basis=ls.BasisLegendre()), "body > basis: at least one strain must have an order"),
    "order negative": (
        body(rod, basis=ls.BasisLegendre(torsion=-1)),
        "link 'x' > body > basis: torsion order: must be an integer >= 0 (got -1)",
    ),
    "order float": (body(rod, basis=ls.BasisMonomial(shear_y=2.0)), "shear_y order: must be an integer >= 0 (got 2.0)"),
    "order true": (body(rod, basis=ls.BasisFourier(shear_z=True)), "shear_z order: must be an integer >= 0 (got True)"),
    "no elements": (body(rod, basis=ls.BasisHermite(torsion=0)), "torsion order: must be an integer >= 1 (got 0)"),
    "no pieces": (body(rod, basis=ls.BasisPiecewiseConstant(torsion=0)), "torsion order: must be an integer >= 1"),
    "custom is no function": (custom(np.eye(6)), "basis: function: must be a function of s"),
    "custom of 5 rows": (custom(lambda s: np.eye(5)), "function must return finite values of shape (6, -1) at 0.5"),
    "custom without modes": (custom(lambda s: np.zeros((6, 0))), "basis: at least one mode is needed"),
    "custom dependent": (
        custom(lambda s: np.ones((6, 2))),
        "basis: function: its 2 modes must be linearly independent (got 'rank 1')",
    ),
    "custom knots outside": (custom(lambda s: np.eye(6), knots=(0.5, 1.0)), "knots: must rise strictly inside (0, 1)"),
    "custom knots fall": (custom(lambda s: np.eye(6), knots=(0.5, 0.4)), "knots: must rise strictly inside (0, 1)"),
    # rigid bodies
    "mass negative": (body(ls.RigidBody, -1.0), "link 'x' > body: mass: must be >= 0 (got -1.0)"),
    "com of two": (body(ls.RigidBody, 1.0, (0, 0)), "link 'x' > body: com: must be a finite 3-vector (got (0, 0))"),
    "inertia triangle": (
        body(ls.RigidBody, 1.0, inertia=(1, 1, 3)),
        "link 'x' > body: inertia: its largest principal moment must not exceed the sum of the others (got (1, 1, 3))",
    ),
    "inertia negative": (
        body(ls.RigidBody, 1.0, inertia=(1, 1, -1)),
        "inertia: must be symmetric positive semi-definite",
    ),
    "inertia skew": (body(ls.RigidBody, 1.0, inertia=np.eye(3) + np.eye(3, k=1)), "inertia: must be symmetric"),
    "outline flat": (body(ls.RigidBody, 1.0, outline=(0, 1, 1)), "body: outline: must be > 0 (got (0, 1, 1))"),
    "body of wrong kind": (
        link(body="rod"),
        "link 'x' > body: must be a Rod, a RigidBody or a DeformableBody (got 'rod')",
    ),
    # joints
    "joint of wrong kind": (link(joint="revolute"), "link 'x' > joint: must be a Joint (got 'revolute')"),
    "joint class": (link(joint=ls.JointFree), "link 'x' > joint: must be a Joint"),
    "axis zero": (joint(ls.JointRevolute, (0, 0, 0)), "link 'x' > joint: axis: must not be zero (got (0, 0, 0))"),
    "axis of two": (joint(ls.JointPrismatic, (1, 0)), "link 'x' > joint: axis: must be a finite 3-vector (got (1, 0))"),
    "axis nan": (joint(ls.JointRevolute, (NAN, 0, 1)), "joint: axis: must be a finite 3-vector (got (nan, 0, 1))"),
    "axes parallel": (joint(ls.JointUniversal, (1, 0, 0), (-2, 0, 0)), "axis_2: must not be parallel to axis_1"),
    "pitch infinite": (joint(ls.JointHelical, pitch=INF), "joint: pitch: must be a finite number (got inf)"),
    "spring negative": (
        joint(ls.JointRevolute, stiffness=-1),
        "stiffness: must be symmetric positive semi-definite (got -1)",
    ),
    "spring of two": (
        joint(ls.JointRevolute, stiffness=(1, 2)),
        "stiffness: must have shape (), (1,) or (1, 1) (got (1, 2))",
    ),
    "damper nan": (joint(ls.JointRevolute, damping=NAN), "link 'x' > joint: damping: must be finite (got nan)"),
    "rest of three": (joint(ls.JointSpherical, rest=(0, 0, 0)), "joint: rest: must have shape (4,) (got [0, 0, 0])"),
    "quaternion too long": (
        joint(ls.JointSpherical, rest=(1, 1e-2, 0, 0)),
        "rest: its quaternion must have unit length (got [1.0, 0.01, 0.0, 0.0])",
    ),
    "quaternion zero": (joint(ls.JointFree, rest=np.zeros(7)), "rest: its quaternion must have unit length"),
    "rest without coordinates": (
        joint(ls.JointFixed, rest=0.1),
        "rest: a joint without coordinates has none (got 0.1)",
    ),
    # links and the tree
    "parent unknown": (
        link(parent="bse"),
        "link 'x': parent: must be one of the links ['arm', 'base'] (got 'bse'); did you mean 'base'?",
    ),
    "parent itself": (link(parent="x"), "link 'x': parent: must not close a cycle (got 'x -> x')"),
    "parent list": (link(parent=["base"]), "link 'x': parent: must be one of the links"),
    "parent is a frame": (link(parent="tip"), "link 'x': parent: must be one of the links"),
    "at beyond the rod": (link(parent="arm", at=1.2), "link 'x': at: must lie in [0, 1] (got 1.2)"),
    "at nan": (link(parent="arm", at=NAN), "link 'x': at: must be a finite number (got nan)"),
    "placement 3x3": (link(placement=np.eye(3)), "link 'x': placement: must be a finite 4x4 matrix"),
    "placement sheared": (link(placement=SHEARED), "placement: its rotation must be orthonormal with determinant +1"),
    "placement mirrored": (link(placement=np.diag([1, 1, -1, 1])), "placement: its rotation must be orthonormal"),
    "placement last row": (link(placement=np.eye(4) + np.eye(4, k=-3)), "placement: its last row must be (0, 0, 0, 1)"),
    "placement nan": (link(placement=np.full((4, 4), NAN)), "link 'x': placement: must be a finite 4x4 matrix"),
    # actuators
    "tendon over a rigid body": (tendon("base", (0, 0)), "'x' > path[0]: link: must carry a Rod (got 'base')"),
    "tendon of nowhere": (tendon("leg", (0, 0)), "actuator 'x' > path[0]: link: must be one of the links"),
    "offset of three": (tendon("arm", (0, 0, 0)), "path[0]: offset: must be (y, z), rows (s, y, z) or a function of s"),
    "offset ragged": (tendon("arm", [[0, 0, 0], [1, 0]]), "path[0]: offset: must be (y, z), rows (s, y, z)"),
    "offset of one point": (tendon("arm", [[0, 0, 0]]), "path[0]: offset: table: needs at least 2 points (got 1)"),
    "offset fails": (tendon("arm", raises), "path[0]: offset: the function failed at 0 (KeyError"),
    "offset nan": (tendon("arm", lambda s: (0, NAN)), "offset: the function must return finite values of shape (2,)"),
    "stretch of no length": (tendon("arm", (0, 0), start=0.5, stop=0.5), "path[0]: start and stop must differ"),
    "start before the rod": (tendon("arm", (0, 0), start=-0.1), "path[0]: start: must lie in [0, 1] (got -0.1)"),
    "path empty": (
        tendon(path=[]),
        "actuator 'x': path: must be a list of PathRod, PathPoint, PathBody and PathWrap items (got ())",
    ),
    "path of names": (
        tendon(path=["arm"]),
        "actuator 'x' > path[0]: must be a PathRod, a PathPoint, a PathBody or a PathWrap (got 'arm')",
    ),
    "path of a point": (tendon(path=[ls.PathPoint("base")]), "path: one point alone has no length"),
    "point of two": (tendon(path=[ls.PathPoint("base", (0, 0))] * 2), "path[0]: position: must be a finite 3-vector"),
    "area negative": (
        lambda robot: robot.add_chamber("x", "arm", area=-1.0),
        "actuator 'x': area: must be > 0 (got -1.0)",
    ),
    "chamber force": (
        lambda robot: robot.add_chamber("x", "arm", area=1e-4, force="up"),
        "actuator 'x': force: must be one of ('tangent', 'volume') (got 'up')",
    ),
    "chamber on a rigid body": (
        lambda robot: robot.add_chamber("x", "base", area=1e-4),
        "actuator 'x' > path[0]: link: must carry a Rod (got 'base')",
    ),
    "motor on a fixed joint": (
        lambda robot: robot.add_joint_actuator("x", "arm"),
        "actuator 'x': link: its joint must move (got 'arm')",
    ),
    "motor of nothing": (
        lambda robot: robot.add_joint_actuator("x", None),
        "link: must be the name of a link (got None)",
    ),
    "wrench on nothing": (wrench(link="leg"), "actuator 'x': link: must be one of the links ['arm', 'base'] (got"),
    "wrench beyond the rod": (wrench(s=1.5), "actuator 'x': s: must lie in [0, 1] (got 1.5)"),
    "wrench of five": (wrench(directions=np.eye(5)), "'x': directions: must be a finite matrix of shape (6, n), or"),
    "wrench of nan": (wrench(directions=[NAN] * 6), "'x': directions: must be a finite matrix of shape (6, n), or"),
    "wrench of zero": (wrench(directions=np.zeros((6, 1))), "directions: must hold wrenches that are not zero"),
    "wrench of none": (wrench(directions=np.zeros((6, 0))), "must hold wrenches that are not zero (got [[]"),
    "wrench in no frame": (wrench(frame="tip"), "actuator 'x': frame: must be one of ('body', 'world') (got 'tip')"),
    "wrench at two": (wrench(position=(0, 1)), "actuator 'x': position: must be a finite 3-vector (got (0, 1))"),
    "wrench coupled": (
        lambda robot: (robot.add_wrench_input("six", "arm"), robot.couple_inputs("both", {"six": 1.0})),
        "input 'both' > six: must have one input of its own (got 6)",
    ),
    "custom actuator": (
        lambda robot: robot.add_custom_actuator("x", np.eye(2)),
        "actuator 'x': function: must be a function of q",
    ),
    "custom actuator without inputs": (
        lambda robot: robot.add_custom_actuator("x", lambda q: q, size=0),
        "actuator 'x': size: must be an integer >= 1 (got 0)",
    ),
    # couplings
    "coupling of nothing": (lambda robot: robot.couple_inputs("x", {}), "input 'x': must couple at least one actuator"),
    "coupling unknown": (
        lambda robot: robot.couple_inputs("x", {"t2": 1}),
        "input 'x' > actuator: must be one of the actuators ['motor', 't1'] (got 't2')",
    ),
    "coupling gain": (
        lambda robot: robot.couple_inputs("x", {"t1": NAN}),
        "input 'x' > t1: gain: must be a finite number (got nan)",
    ),
    "coupled twice": (
        lambda robot: (robot.couple_inputs("x", {"t1": 1}), robot.couple_inputs("y", {"t1": 1})),
        "input 'y' > t1: must not be driven by another input ('x') (got 't1')",
    ),
    "coupling of two inputs": (
        lambda robot: (
            robot.add_custom_actuator("wide", lambda q: q, size=2),
            robot.couple_inputs("x", {"wide": 1}),
        ),
        "input 'x' > wide: must have one input of its own (got 2)",
    ),
    # loads and frames
    "load of nothing": (load(), "load 'x': needs a force or a moment (got None)"),
    "force of two": (load(force=(0, 1)), "load 'x': force: must be a finite 3-vector or a function of t (got (0, 1))"),
    "force infinite": (load(force=(0, 0, INF)), "load 'x': force: must be a finite 3-vector or a function of t"),
    "moment fails": (load(moment=raises), "load 'x': moment: the function failed at 0 (KeyError"),
    "load frame": (load(force=(0, 0, 1), frame="tip"), "load 'x': frame: must be one of ('world', 'body') (got 'tip')"),
    "load beyond": (load(force=(0, 0, 1), s=-0.1), "load 'x': s: must lie in [0, 1] (got -0.1)"),
    "load of nowhere": (load(force=(0, 0, 1), link="leg"), "load 'x': link: must be one of the links"),
    "frame of nowhere": (lambda robot: robot.add_frame("x", "leg"), "frame 'x': link: must be one of the links"),
    "frame beyond": (lambda robot: robot.add_frame("x", "arm", s=2), "frame 'x': s: must lie in [0, 1] (got 2)"),
    "frame sheared": (
        lambda robot: robot.add_frame("x", "arm", placement=SHEARED),
        "frame 'x': placement: its rotation must be orthonormal",
    ),
    # the robot
    "gravity of two": (
        lambda robot: setattr(robot, "gravity", (0, 0)),
        "robot 'good': gravity: must be a finite 3-vector",
    ),
    "gravity text": (
        lambda robot: setattr(robot, "gravity", "down"),
        "gravity: must be a finite 3-vector (got 'down')",
    ),
    "name a number": (lambda robot: setattr(robot, "name", 5), "robot: name: must be a text (got 5)"),
    "no links": (lambda robot: robot.links.clear(), "robot 'good': needs at least one link"),
}

# inputs that are refused immediately and leave the robot unchanged
REFUSED = {
    "link twice": (lambda robot: robot.add_link("arm"), "link name: must not be taken already (got 'arm')"),
    "link named as a frame": (lambda robot: robot.add_link("tip"), "link name: must not be taken already (got 'tip')"),
    "link without a name": (lambda robot: robot.add_link(""), "link name: must be a text that is not empty (got '')"),
    "link of blanks": (lambda robot: robot.add_link(" "), "link name: must be a text that is not empty (got ' ')"),
    "link called 5": (lambda robot: robot.add_link(5), "link name: must be a text that is not empty (got 5)"),
    "frame twice": (lambda robot: robot.add_frame("tip", "arm"), "frame name: must not be taken already (got 'tip')"),
    "tendon twice": (lambda robot: robot.add_tendon("t1", "arm", (0, 0)), "tendon name: must not be taken already"),
    "chamber named as a tendon": (
        lambda robot: robot.add_chamber("t1", "arm", area=1),
        "chamber name: must not be taken already (got 't1')",
    ),
    "motor twice": (lambda robot: robot.add_joint_actuator("motor", "base"), "joint actuator name: must not be taken"),
    "custom named as a tendon": (
        lambda robot: robot.add_custom_actuator("t1", lambda q: q),
        "custom actuator name: must not be taken already (got 't1')",
    ),
    "input named as an actuator": (
        lambda robot: robot.couple_inputs("t1", {"t1": 1}),
        "input name: must not be taken already (got 't1')",
    ),
    "gains of wrong kind": (
        lambda robot: robot.couple_inputs("x", 5),
        "input 'x': gains: must be gains by actuator name",
    ),
    "load twice": (
        lambda robot: robot.add_point_load("weight", "arm", force=(0, 0, 1)),
        "load name: must not be taken",
    ),
    "tendon without an offset": (
        tendon("arm"),
        "tendon 'x': needs a link and an offset, or a path (got ('arm', None))",
    ),
    "tendon with two ways": (
        tendon("arm", (0, 0), path=[]),
        "tendon 'x': takes a link and an offset, or a path, not both",
    ),
    "path that is no list": (
        tendon(path=ls.PathRod("arm", (0, 0))),
        "tendon 'x': path: must be a list of PathRod, PathPoint, PathBody and PathWrap items",
    ),
    "box side negative": (body(ls.RigidBody.box, 1, -1, 1, density=1), "RigidBody.box > size_y: must be > 0 (got -1)"),
    "cylinder nan": (
        body(ls.RigidBody.cylinder, NAN, 1, density=1),
        "RigidBody.cylinder > length: must be > 0 (got nan)",
    ),
    "sphere density": (body(ls.RigidBody.sphere, 1, density=0), "RigidBody.sphere > density: must be > 0 (got 0)"),
}

# functions that are wrong as soon as they are written
FUNCTIONS = {
    "import": (lambda: ls.Expression("__import__('os')"), "only numbers, 's', + - * / **, pi, e and the functions"),
    "attribute": (lambda: ls.Expression("s.real"), "(got 's.real')"),
    "index": (lambda: ls.Expression("s[0]"), "(got 's[0]')"),
    "lambda": (lambda: ls.Expression("(lambda: 1)()"), "are allowed (got"),
    "comprehension": (lambda: ls.Expression("[s for s in s]"), "are allowed (got"),
    "text": (lambda: ls.Expression("'a' * 9"), "are allowed (got \"'a'\")"),
    "comparison": (lambda: ls.Expression("s < 1"), "(got 's < 1')"),
    "floor": (lambda: ls.Expression("s // 2"), "(got 's // 2')"),
    "truth value": (lambda: ls.Expression("True"), "(got 'True')"),
    "complex": (lambda: ls.Expression("1j"), "(got '1j')"),
    "keyword argument": (lambda: ls.Expression("sin(x=s)"), "(got 'sin(x=s)')"),
    "starred argument": (lambda: ls.Expression("sin(*s)"), "are allowed (got"),
    "two arguments": (lambda: ls.Expression("sin(s, s)"), "(got 'sin(s, s)')"),
    "function as a value": (lambda: ls.Expression("sin"), "(got 'sin')"),
    "another variable": (lambda: ls.Expression("t"), "only numbers, 's'"),
    "statement": (lambda: ls.Expression("s = 1"), "is not a valid expression (got 's = 1')"),
    "walrus": (lambda: ls.Expression("(s := 1)"), "are allowed (got"),
    "empty": (lambda: ls.Expression(""), "is not a valid expression (got '')"),
    "no text": (lambda: ls.Expression(None), "must be a text of at most 1000 characters (got None)"),
    "huge": (lambda: ls.Expression("+".join("s" * 501)), "must be a text of at most 1000 characters"),
    "huge number": (lambda: ls.Expression("9" * 999), "holds a number too large"),
    "deep": (lambda: ls.Expression("-" * 995 + "1"), "nested too deeply"),
    "ragged": (lambda: ls.Expression(["s", ["s", "s"]]), "its lists must be arrays of one shape"),
    "zero byte": (lambda: ls.Expression("1\0"), "is not a valid expression"),
    "points fall": (
        lambda: ls.Tabulated([0, 1, 1], [0, 0, 0], "linear"),
        "table > points: must be strictly increasing",
    ),
    "points nan": (
        lambda: ls.Tabulated([0, NAN], [0, 0], "linear"),
        "table > points: must be a list of finite numbers",
    ),
    "one point": (lambda: ls.Tabulated([0], [0], "linear"), "table: needs at least 2 points (got 1)"),
    "three cubic points": (
        lambda: ls.Tabulated([0, 0.5, 1], [0, 0, 0]),
        "a cubic table needs at least 4 points (got 3)",
    ),
    "values short": (lambda: ls.Tabulated([0, 1], [0], "linear"), "must hold one value for each of the 2 points"),
    "values ragged": (
        lambda: ls.Tabulated([0, 1], [[0], [0, 1]], "linear"),
        "table > values: must be arrays of one shape",
    ),
    "values infinite": (lambda: ls.Tabulated([0, 1], [0, INF], "linear"), "table > values: must be finite"),
    "interpolation": (lambda: ls.Tabulated([0, 1], [0, 0], "magic"), "interpolation: must be one of"),
}


def test_the_good_robot_is_good():
    """Purpose: each wrong case adds exactly one fault to a robot that passes."""
    good_robot().check()


@pytest.mark.parametrize("case", CHECKED)
def test_check_names_entity_rule_and_value(case):
    """Purpose: a wrong description is found by check() and its message can be acted on."""
    change, expected = CHECKED[case]
    robot = good_robot()
    change(robot)
    with pytest.raises(ls.ModelError) as caught:
        robot.check()
    assert type(caught.value) is ls.ModelError and expected in str(caught.value), str(caught.value)


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_call_leaves_the_robot_unchanged(case):
    """Purpose: names and shapes that can never be right are refused by the call itself, without a trace."""
    change, expected = REFUSED[case]
    robot = good_robot()
    before = contents(robot)
    with pytest.raises(ls.ModelError) as caught:
        change(robot)
    assert expected in str(caught.value), str(caught.value)
    assert contents(robot) == before
    robot.check()


@pytest.mark.parametrize("case", FUNCTIONS)
def test_a_wrong_function_is_refused_when_it_is_written(case):
    """Purpose: expressions hold nothing but arithmetic, and tables are complete."""
    make, expected = FUNCTIONS[case]
    with pytest.raises(ls.ModelError) as caught:
        make()
    assert expected in str(caught.value), str(caught.value)


def test_a_longer_cycle_shows_its_links():
    """Purpose: the message of a cycle spells the chain of parents."""
    robot = ls.Robot()
    for name, parent in (("a", "c"), ("b", "a"), ("c", "b")):
        robot.add_link(name, parent=parent)
    with pytest.raises(ls.ModelError, match=r"link 'a': parent: must not close a cycle .*a -> c -> b -> a"):
        robot.check()


def test_a_parent_may_be_named_before_it_is_added():
    """Purpose: the order of add_link does not limit the tree."""
    robot = ls.Robot()
    robot.add_link("hand", parent="arm")
    with pytest.raises(ls.ModelError, match="link 'hand': parent: must be one of the links"):
        robot.check()
    robot.add_link("arm", rod())
    robot.check()


def test_rounding_of_a_rotation_is_removed_and_more_is_refused():
    """Purpose: placements typed with 8 digits pass and become exact rotations; with 4 digits they do not."""
    from lissom.robot import checks

    turn = np.array([[0.6, -0.8, 0, 0], [0.8, 0.6, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    g = checks.pose(turn + 1e-8 * np.eye(4, k=1), "placement")
    assert np.abs(g[:3, :3] @ g[:3, :3].T - np.eye(3)).max() < 1e-15
    with pytest.raises(ls.ModelError, match="orthonormal"):
        checks.pose(turn * [[1.0001], [1], [1], [1]], "placement")


def test_long_values_are_cut_in_messages():
    """Purpose: a message stays readable when the value is an array of thousands."""
    robot = ls.Robot()
    robot.add_link("x", placement=np.zeros((50, 50)))
    with pytest.raises(ls.ModelError) as caught:
        robot.check()
    assert len(str(caught.value)) < 250


@pytest.mark.filterwarnings("ignore::lissom.errors.PlausibilityWarning")
@pytest.mark.parametrize(
    "parts, entity, rule",
    [
        ({"section": ls.SectionCircle(1e100)}, "link 'x' > body > section", "of a size that can be multiplied"),
        ({"length": 1e300}, "link 'x'", "of a size that can be multiplied"),
        ({"reference_strain": (1e16, 0, 0, 1, 0, 0)}, "link 'x' > body", "more than 1000 Gauss points"),
    ],
)
def test_numbers_too_large_for_arithmetic_are_refused(parts, entity, rule):
    """Purpose: what overflows, or would take all memory, is an error that names the part."""
    robot = ls.Robot()
    given = {"length": 1.0, "section": ls.SectionCircle(0.01), "basis": ls.BasisLegendre(bending_y=1)} | parts
    robot.add_link("x", ls.Rod(**given, material=ls.Material(young=1e6, density=1e3)))
    with pytest.raises(ls.ModelError, match=f"^{entity}: .*{rule}"):
        robot.build()
