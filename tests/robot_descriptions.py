"""Plain descriptions for the tests of robot files, and their comparison."""

from __future__ import annotations

import dataclasses

import families
import numpy as np
from touching_robots import moved

import lissom as ls
from lissom.robot.shapes import Shape

ABSCISSAE = np.linspace(0.0, 1.0, 41)
MATERIAL = ls.Material(young=1e6, density=1000.0)
SHAPES = [
    ls.ShapePlane((0, 1, 1)),
    ls.ShapeSphere(0.1 + 0.2),
    ls.ShapeBox(0.1, 0.2, 0.3),
    ls.ShapeCylinder(0.1),
    ls.ShapeCylinder(0.1, axis=np.array([0.0, 0, 1]), inside=True),
    ls.ShapeCylinder(0.1, 0.5),
    ls.ShapeCapsule(0.1, 0.5, (0, 1, 0)),
    *families.all_made(Shape),
]


def assert_same(a, b, where="robot"):
    """Two descriptions agree: classes and fields, numbers exactly, functions exactly or, once tabulated, to 1e-13."""
    if isinstance(a, ls.Robot):
        assert vars(a).keys() == vars(b).keys()
        for part in vars(a):
            if part == "forces":  # functions of a pose and a twist
                assert list(a.forces) == list(b.forces)
            else:
                assert_same(getattr(a, part), getattr(b, part), part)
    elif isinstance(a, dict):
        assert list(a) == list(b), where
        for key in a:
            assert_same(a[key], b[key], f"{where} > {key}")
    elif dataclasses.is_dataclass(a) and not (callable(a) and type(a) is not type(b)):
        assert type(a) is type(b), where
        for field in dataclasses.fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name), f"{where} > {field.name}")
    elif callable(a):
        expected, read = (np.array([function(s) for s in ABSCISSAE]) for function in (a, b))
        np.testing.assert_allclose(read, expected, rtol=0, atol=1e-13 * np.abs(expected).max(), err_msg=where)
    elif isinstance(a, list | tuple) and any(dataclasses.is_dataclass(item) or np.ndim(item) for item in a):
        assert len(a) == len(b), where
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{where}[{k}]")
    elif a is None or isinstance(a, bool | str):
        assert a == b and type(a) is type(b), where
    else:
        assert np.array_equal(np.asarray(a), np.asarray(b)), f"{where}: {a} != {b}"


def round_trip(robot, tmp_path):
    """The robot that is read from its written file."""
    ls.save_robot(robot, tmp_path / "robot.yaml")
    return ls.load_robot(tmp_path / "robot.yaml")


def rod(**fields):
    """A plain rod with some of its fields replaced."""
    plain = {"length": 0.5, "section": ls.SectionCircle(0.01), "basis": ls.BasisLegendre(bending_y=2)}
    return ls.Rod(**(plain | {"material": MATERIAL} | fields))


def one_rod(**fields):
    """A robot of one rod called arm."""
    robot = ls.Robot("one")
    robot.add_link("arm", rod(**fields))
    return robot


def everything():
    """A robot in which each field of each part is given somewhere."""
    turn = np.array([[0.0, -1, 0, 0.1], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    robot = ls.Robot("all", near_pairs=7)
    stops = {"limits": (-1.0, 2.0), "limit_stiffness": 50.0, "limit_damping": 0.1, "limit_width": 2e-3}
    own = {"damping": 0.2, "rest": 0.1}
    wheel = ls.JointRevolute((0, 1, 0), spring=[(-1.0, -2.0), (0.0, 0.0), (1.0, 3.0)], start=0.02, **own, **stops)
    rubs = {"friction": 0.3, "static_friction": 0.4, "stribeck_speed": 0.05, "slip_speed": 0.01}
    hinge = ls.JointRevolute((1, 0, 0), stiffness=3.0, armature=0.02, **rubs)
    mesh = ls.Mesh(vertices=[[0, 0, 0], [1, 0, 0], [0, 1, 0]], triangles=[[0, 1, 2]])
    skin = ls.Material(young=1e6, density=900.0, friction=0.7, restitution=0.6)
    solid = dataclasses.replace(
        ls.RigidBody.sphere(0.1, density=100.0), com=(0.01, 0, 0), meshes=(mesh,), material=skin, balls=[(0, 0, 0, 0.1)]
    )
    points = {"gauss_points": 6, "interval_points": 3, "exponentials": 1}
    robot.add_link("arm", rod(reference_strain=(0, 1, 0, 1, 0, 0), **points), wheel)
    robot.add_link("ball", solid,
                   hinge, parent="arm", at=0.5, placement=turn)  # fmt: skip
    robot.add_frame("eye", "arm", s=0.3, placement=turn)
    robot.add_tendon("t", "arm", (0.0, 0.01))
    robot.couple_inputs("pull", {"t": 2.0})
    wrench = {"force": (0, 0, 1), "moment": ls.Expression(["t", "0", "0"], "t"), "position": (0, 0.1, 0)}
    robot.add_point_load("push", "arm", s=0.5, frame="body", **wrench)
    robot.add_loop(
        "pin", "arm", "ball", s_a=0.9, s_b=0.8, placement_a=turn, placement_b=turn, joint=ls.JointSpherical()
    )
    robot.add_skate("blade", "arm", (0, 1, 0.2), point=(0, 0.01, 0), s=0.3, ground="ball", s_ground=0.5)
    own = {"axis": (1, 0, 0.1), "centre": (0.01, 0, 0), "s": 0.9, "s_ground": 0.4, "placement": turn, "height": False}
    robot.add_rolling("tyre", "ball", 0.2, ground="arm", **own)
    own = {"s_a": 0.3, "s_b": 0.6, "placement_a": turn, "placement_b": turn, "joints": ["ball"], "velocity": True}
    slip = ls.Expression("k*vx + a_rate*sin(z)", "vx, z, a_rate", {"k": 0.3})
    robot.add_constraint("slip", "arm", "ball", function=slip, **own)
    sine = [ls.Expression(text, "t") for text in ("sin(t)", "cos(t)", "-sin(t)")]
    robot.add_joint_motion("swing", "arm", position=sine[0], velocity=sine[1], acceleration=sine[2])
    law = {"stiffness": 3.0, "damping": 0.1, "rest": 0.2, "preload": 0.5, "slack": True}
    robot.add_spring("stay", ls.PathPoint("arm", (0, 0.1, 0), 0.4), ls.PathPoint(None, (0, 0, 1)), **law)
    robot.add_spring("band", "arm", "ball", law=ls.Tabulated([0.1, 0.2, 0.4], [0.0, 1.0, 5.0], "linear"))
    wrap = ls.PathWrap("ball", ls.ShapeSphere(0.01), placement=turn, side=(0.0, 0.0, 1.0))
    branches = [ls.SpringBranch([ls.PathPoint("arm", s=0.5), ls.PathPoint("ball")], -0.5)]
    via = [ls.PathPoint("arm", (0.0, 0.2, 0.0)), wrap]
    robot.add_spring("rope", "arm", ls.PathPoint(None, (0, 0, 1)), stiffness=2.0, rest=-0.1, via=via, branches=branches)
    law = {"stiffness": 1e3, "exponent": 2, "damping": 0.3, "friction": 0.5, "slip_speed": 0.01, "stick_stiffness": 2e4}
    law |= {"stick_damping": 2e-3, "radius": (0.02, 0.01), "per_interval": 2, "s": 0.5, "placement": turn, "on": "ball"}
    robot.add_contact("lid", ["arm"], ls.ShapeSphere(0.1), **law)
    robot.add_contact("push", "arm", others="ball", restitution=0.4, impact_speed=0.3)
    robot.add_contact("bed", "ball", ls.ShapePlane(), material=skin, surface=4)
    robot.add_coupling("gear", ["arm", "ball"], [1.0, ls.Expression("0.1*q**2", "q")], offset=0.2, span=(-1.0, 1.0))
    law = {"damping": 0.7, "limits": (-2.0, 3.0), "limit_stiffness": 9.0, "limit_damping": 0.4, "limit_width": 0.02}
    robot.add_coupling("belt", ["arm", "ball"], [1.0, -2.0], 0.3, stiffness=4.0, **law)
    robot.add_coupling("band", ["arm", "ball"], [1.0, 2.0], spring=ls.Tabulated([0.1, 0.4], [0.0, 5.0], "linear"))
    whole = ls.Expression("x*y + k*sin(y)", "x, y", {"k": 0.3})
    robot.add_coupling("curve", ["arm", "ball"], offset=0.1, function=whole)
    robot.add_state("home", {"arm": 0.3, "ball": [0.2]}, {"ball": 1.5}, {"pull": 2.0})
    robot.exclude_contacts("apart", ["arm"], ["ball"])
    robot.pair_contacts("near", ["arm"], ["ball"], friction=0.8)
    robot.limit_input("pull", -1.0, 5.0)
    felt = {
        "arm": ls.Hydrodynamics(1.2, 0.02, 0.3, 0.9, True, np.eye(6), 2 * np.eye(6)),
        "ball": ls.Hydrodynamics(volume=1.0),
    }
    flow = ls.Expression(["sin(t)", "0", "0"], "t")
    robot.set_fluid(998.0, current=flow, default=ls.Hydrodynamics(lift=0.3), links=felt)
    return robot


def on_a_table(robot):
    """A robot attached to a free table, off its centre, with "a_" before its names."""
    big = ls.Robot("big")
    big.add_link("table", ls.RigidBody(5.0, inertia=(1.0, 1.0, 1.0)), ls.JointFree())
    big.attach(robot, "table", moved(0.1, 0.2, 0.3), prefix="a_")
    return big


def assert_same_rows_on_a_table(big, robot):
    """Constraint rows of a robot `on_a_table`, at a random state of both, are those of the robot alone."""
    model, own = big.build(), robot.build()
    rng = np.random.default_rng(0)
    q = ls.integrate(own, own.neutral(), 0.3 * rng.normal(size=own.nv))
    table = ls.integrate(model, model.neutral(), np.append(rng.normal(size=6), np.zeros(own.nv)))[:7]
    both = np.append(table, q)
    np.testing.assert_allclose(ls.loop_residual(model, both), ls.loop_residual(own, q), atol=1e-13)
    A, B = ls.constraint_jacobian(model, both), ls.constraint_jacobian(own, q)
    np.testing.assert_allclose(A[:, 6:], B, atol=1e-13)
