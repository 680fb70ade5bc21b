"""Descriptions of constraints by functions: errors, robot files, copies and edits, traced functions and batches."""

from dataclasses import replace

import numpy as np
import pytest
from robot_descriptions import assert_same, assert_same_rows_on_a_table, on_a_table, round_trip
from touching_robots import moved

import lissom as ls

BODY = ls.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
ROPE = ls.Expression("sqrt(x*x + y*y + z*z) - l*k", "x, y, z, l", {"k": 2.0})


def cart():
    """A free base with a slide and a rod, a ball, and all fields of constraints given."""
    robot = ls.Robot("cart")
    robot.add_link("base", BODY, ls.JointFree())
    robot.add_link("slide", BODY, ls.JointPrismatic((0, 1, 0)), "base")
    robot.add_link("rod", ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_z=1),
                                 ls.Material(young=1e6, density=1000.0)), parent="base")  # fmt: skip
    robot.add_link("ball", BODY, ls.JointFree())
    robot.add_constraint("surface", "ball", function=ls.Expression("z - x*x", "x, z"), placement_b=moved(0.1, 0.2, 0.3))
    own = {"placement_a": moved(0.0, 0.1, 0.2), "placement_b": moved(0.2, 0.1, 0.0, (0.1, 0.2, 0.3))}
    robot.add_constraint("rope", "rod", "ball", function=ROPE, joints=["slide"], s_a=0.5, s_b=0.7, **own)
    edge = ls.Expression("vx*R11 + a_rate*z", "vx, z, R11, a_rate")
    robot.add_constraint("edge", "ball", "base", function=edge, joints=["slide"], velocity=True)
    return robot


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"link_a": "leg"}, r"constraint 'x': link_a: must be one of the links"),
        ({"link_a": None}, r"constraint 'x': link_a: must be one of the links"),
        ({"link_b": "leg"}, r"constraint 'x': link_b: must be one of the links"),
        ({"s_a": 2.0}, r"constraint 'x': s_a: must lie in \[0, 1\] \(got 2.0\)"),
        ({"placement_a": np.ones((4, 4))}, r"constraint 'x': placement_a: its rotation must be orthonorm"),
        ({"velocity": 1}, r"constraint 'x': velocity: must be true or false \(got 1\)"),
        ({"joints": "slide"}, r"constraint 'x': joints: must be a list of names"),
        ({"joints": ["slide", "slide"]}, r"constraint 'x': joints: must be 10 names at most, each of another joint"),
        ({"function": ls.Expression("z - l", "z, l"), "joints": ["base"]}, r"joint 'base': each joint must have one"),
        ({"function": ls.Expression("z - l", "z, l"), "joints": ["leg"]}, r"constraint 'x': joints: must be one of"),
        ({"joints": ["slide"]}, r"function: must have as variables some of x, y, z, R11, ..., R33, and one"),
        ({"function": ls.Expression("z - l", "z, l")}, r"and one name for each of its 0 joints \(got 'z, l'\)"),
        ({"function": ls.Expression("z", "z, l"), "joints": ["slide"]}, r"must depend on each joint; leave out those"),
        ({"function": ls.Expression("l - 1", "l"), "joints": ["slide"]}, r"must depend on the pose .*add_coupling"),
        ({"function": ls.Expression("abs(z)", "z")}, r"must have derivatives: abs, sign, minimum and maximum"),
        ({"function": ls.Expression("z - vx", "z, vx")}, r"must have no velocities; set velocity=True"),
        ({"function": ls.Expression(["z", "x"], "x, z")}, r"must be one ls.Expression, or an ls.TracedFunction"),
        ({"function": lambda g: g[0, 3]}, r"function: must be one ls.Expression, or an ls.TracedFunction"),
        ({"function": ls.Expression("z", "z"), "velocity": True}, r"must be linear in velocities, and zero at rest"),
        ({"function": ls.Expression("vx*vx", "vx"), "velocity": True}, r"must be linear in velocities"),
        ({"function": ls.Expression("vx - 1", "vx"), "velocity": True}, r"must be linear in velocities"),
        ({"function": ls.Expression("sin(vx)", "vx"), "velocity": True}, r"must be linear in velocities"),
        ({"function": ls.Expression("z/(1 + vx)", "vx, z"), "velocity": True}, r"must be linear in velocities"),
        ({"function": ls.Expression("z**vx", "vx, z"), "velocity": True}, r"must be linear in velocities"),
        ({"function": ls.Expression("vx + a_rate*wy", "vx, wy, a_rate"), "velocity": True, "joints": ["slide"]},
         r"must be linear in velocities"),
    ],
)  # fmt: skip
def test_bad_descriptions(given, message):
    """The error names the part, the rule and the value."""
    robot = cart()
    robot.add_constraint("x", **({"link_a": "ball", "function": ls.Expression("z", "z")} | given))
    with pytest.raises(ls.ModelError, match=message):
        robot.build()


@pytest.mark.parametrize(
    "text", ["0*z + 2*vx/(1 + z)", "-(vx - wy)*cos(z)", "0 + vx", "vx - 0", "(vx + wz)*x**2 - 3*vx"]
)
def test_linear_functions_are_accepted(text):
    """Sums, products with functions of the pose, and quotients by them, of velocities."""
    robot = cart()
    robot.add_constraint("x", "ball", function=ls.Expression(text, "x, z, vx, wy, wz"), velocity=True)
    assert robot.build().rate_rows[3]


def test_names_are_taken_once():
    """Two constraints of one name are refused; a loop may have the same name."""
    robot = cart()
    with pytest.raises(ls.ModelError, match="constraint name: must not be taken already"):
        robot.add_constraint("rope", "ball", function=ls.Expression("z", "z"))
    robot.add_loop("rope", "ball", "rod", joint=ls.JointSpherical())
    assert robot.build().loops.names == ("rope", "surface", "rope", "edge")


def test_rows_and_multipliers():
    """One row for each, after those of loops, skates and wheels, and before those of couplings."""
    robot = cart()
    robot.add_skate("blade", "rod", (0, 1, 0))
    model = robot.build()
    assert model.loops.kinds == ("skates", "constraints", "constraints", "constraints")
    assert model.rate_rows.tolist() == [True, False, False, True]
    assert model.n_multipliers == model.n_rows == 4


def test_robot_files(tmp_path):
    """A robot file keeps all fields; a wrong function is named."""
    robot = cart()
    assert_same(robot, round_trip(robot, tmp_path))
    path = tmp_path / "robot.yaml"
    path.write_text(path.read_text().replace("z - x*x", "abs(z - x*x)"))
    with pytest.raises(ls.ModelError, match=r"constraint 'surface': function: must have derivatives"):
        ls.load_robot(path).build()


def test_attach_moves_the_world():
    """Frame B in the world of an attached robot is one of the parent: the constraints are those of the robot alone."""
    big = on_a_table(cart())
    assert big.constraints["a_surface"].link_b == "table" and big.constraints["a_rope"].joints == ("a_slide",)
    np.testing.assert_allclose(big.constraints["a_surface"].placement_b, moved(0.2, 0.4, 0.6))
    assert_same_rows_on_a_table(big, cart())


def test_edits_follow_names():
    """A constraint goes with a link of its frames, and with the joint on which it depends. Values by path change it."""
    removed = cart().remove_link("rod", with_children=True)
    assert "constraint 'rope'" in removed and "constraint 'surface'" not in removed
    with pytest.raises(ls.ModelError, match="constraint 'rope'"):
        cart().remove_link("slide")
    with pytest.raises(ls.ModelError, match=r"must not be locked while other parts need it.*'rope'.*'edge'"):
        cart().lock("slide", [0.1])
    assert cart().described_values()["rope.function.k"] == 2.0
    changed = cart().with_({"rope.function.k": 3.0, "surface.placement_b": np.eye(4)})
    assert changed.constraints["rope"].function.constants["k"] == 3.0
    q = ls.integrate(cart().build(), cart().build().neutral(), 0.2 * np.ones(15))
    one, other = (ls.loop_residual(x.build(), q)[1] for x in (cart(), changed))
    assert other - one == pytest.approx(-q[7], abs=1e-14)


def test_traced_functions():
    """Functions of (g), (g, q), (g, eta) and (g, eta, q, v) made of jax.numpy have the rows of expressions."""
    jnp = pytest.importorskip("jax.numpy")
    traced, written = cart(), cart()
    traced.constraints.clear()
    written.constraints.clear()
    own = {"placement_a": moved(0.0, 0.1, 0.2, (0.2, 0.1, -0.4)), "placement_b": moved(0.2, 0.1, 0.0)}
    for name, function, text, names, given in (
        ("pose", lambda g: g[2, 3] - g[0, 3] ** 2 + g[1, 0] * g[0, 2] * g[3, 3], "z - x**2 + R21*R13",
         "x, z, R21, R13", {}),
        ("joint", lambda g, q: jnp.sqrt(1 + g[:3, 3] @ g[:3, 3]) - q[0], "sqrt(1 + x*x + y*y + z*z) - l", "x, y, z, l",
         {"joints": ["slide"]}),
        ("velocity", lambda g, eta: eta[:3] @ g[:3, 3] + g[0, 1] * eta[3] - eta[4] + 2 * eta[5],
         "wx*x + wy*y + wz*z + R12*vx - vy + 2*vz", "x, y, z, wx, wy, wz, vx, vy, vz, R12", {"velocity": True}),
        ("both", lambda g, eta, q, v: eta[3] * jnp.cos(q[0]) + v[0] * g[2, 2],
         "vx*cos(l) + l_rate*R33", "vx, l, l_rate, R33", {"velocity": True, "joints": ["slide"]}),
    ):  # fmt: skip
        for robot, Phi in ((traced, ls.TracedFunction(function)), (written, ls.Expression(text, names))):
            robot.add_constraint(name, "rod", "ball", function=Phi, **given, **own)
    one, other = traced.build(), written.build()
    rng = np.random.default_rng(0)
    q = ls.integrate(one, one.neutral(), 0.3 * rng.normal(size=one.nv))
    v, a = rng.normal(size=(2, one.nv))
    same = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(ls.loop_residual(one, q), ls.loop_residual(other, q), **same)
    np.testing.assert_allclose(ls.constraint_jacobian(one, q), ls.constraint_jacobian(other, q), **same)
    d, e = (ls.constraint_derivatives(m, q, v, a) for m in (one, other))
    np.testing.assert_allclose(d.acceleration_q, e.acceleration_q, **same)
    bad = cart()
    bad.add_constraint("x", "ball", function=ls.TracedFunction(lambda g: g[:3, 3]))
    with pytest.raises(ls.ModelError, match=r"constraint 'x': function: must return an array of shape \(\)"):
        bad.build()


def test_a_function_without_a_value():
    """The error names the constraint."""
    robot = cart()
    robot.add_constraint("log", "ball", function=ls.Expression("log(z)", "z"))
    model = robot.build()
    for function in (lambda q: ls.loop_residual(model, q), lambda q: ls.forward_dynamics(model, q, np.zeros(model.nv))):
        with pytest.raises(ls.ShapeError, match="q: the function of constraint 'log' is not finite"):
            function(model.neutral())


def test_open_constraints_are_named():
    """A start that does not satisfy a function is an error; assemble finds one that does."""
    robot = ls.Robot("bead")
    robot.add_link("bead", BODY, ls.JointFree())
    robot.add_constraint("wire", "bead", function=ls.Expression("z - x**2 - 1", "x, z"))
    model = robot.build()
    with pytest.raises(ls.ModelError, match="q0: the function of constraint 'wire' is -1 in place of zero"):
        ls.simulate(model, 0.1)
    q = ls.assemble(model)
    assert q[6] - q[4] ** 2 == pytest.approx(1.0, abs=1e-12)
    robot.add_constraint("never", "bead", function=ls.Expression("x*x + 1", "x"))
    with pytest.raises(ls.ConvergenceError, match="constraint 'never'"):
        ls.assemble(robot.build())


def test_functions_of_velocities_are_refused_where_positions_count():
    """Functions of equilibria take functions of positions, and name those of velocities."""
    with pytest.raises(
        ls.ModelError, match=r"solve_statics: must have no constraints on velocities.*constraint 'edge'\)"
    ):
        ls.solve_statics(cart().build())


def test_batches():
    """Models of a batch have the same programs with other numbers; each moves as it does alone."""
    models = [cart().with_({"rope.function.k": k, "surface.placement_b": moved(0.0, 0.0, 0.1 * k)}).build()
              for k in (2.0, 2.5)]  # fmt: skip
    start = ls.integrate(models[0], models[0].neutral(), [0.1] * 6 + [0.3, 0.2, 0.2] + [0.1] * 3 + [0.4, 0.5, 0.6])
    q = np.stack([ls.assemble(model, start) for model in models])
    v = np.stack([ls.assemble_velocities(model, x, 0.3 * np.ones(model.nv)) for model, x in zip(models, q)])
    both = ls.simulate(ls.ModelBatch(models), 0.05, q, v, dt=5e-3, t_eval=[0.0, 0.05])
    for k, model in enumerate(models):
        alone = ls.simulate(model, 0.05, q[k], v[k], dt=5e-3, t_eval=[0.0, 0.05])
        np.testing.assert_allclose(both.q[k], alone.q, atol=1e-11)
    other = cart()
    other.constraints["rope"] = replace(other.constraints["rope"], function=ls.Expression("x*l", "x, l"))
    with pytest.raises(ls.ModelError, match=r"operations in functions of constraints .*'rope': 'time time multiply'"):
        ls.ModelBatch([cart().build(), other.build()])


def test_info_names_them(tmp_path, capsys):
    """`lissom info` has a line for each, and `lissom statics` names the reaction of one."""
    from lissom.cli.main import main

    ls.save_robot(cart(), tmp_path / "cart.yaml")
    main(["info", str(tmp_path / "cart.yaml")])
    shown = capsys.readouterr().out
    assert "constraint 'surface': z - x*x is zero for 'ball' in the world" in shown
    assert "constraint 'edge': vx*R11 + a_rate*z, a velocity, is zero for 'ball' in 'base', with joints slide" in shown
    robot = ls.Robot("strip")
    robot.add_link("strip", ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_z=2, bending_y=2),
                                   ls.Material(young=1e6, density=1000.0)))  # fmt: skip
    robot.add_constraint("shelf", "strip", function=ls.Expression("z", "z"))
    ls.save_robot(robot, tmp_path / "strip.yaml")
    main(["statics", str(tmp_path / "strip.yaml"), "--out", str(tmp_path)])
    assert "constraint shelf: the world on strip: force 0, 0, " in capsys.readouterr().out
