"""Paths into functions, placements that are None and names with a star: values, files, and derivatives by them."""

import numpy as np
import pytest
from scipy.interpolate import BSpline

import lissom as ls
from lissom.gradients import designs

MATERIAL = ls.Material(young=1e6, density=1000.0, viscosity=3e3)
BASE = BSpline([0, 0, 0, 0, 0.5, 1, 1, 1, 1], np.array([0.02, 0.021, 0.018, 0.017, 0.016]), 3)
RADII = {
    "table": ls.Tabulated([0.0, 0.3, 0.7, 1.0], [0.02, 0.019, 0.017, 0.016]),
    "expression": ls.Expression("base - taper*s**2", constants={"base": 0.02, "taper": 0.004}),
    "spline": BASE,
}
WORDS = {"table": "values", "expression": "taper", "spline": "c"}


def describe(radius=0.02):
    """Two rods, the second on the first without a placement, and a tendon through both."""
    robot = ls.Robot("two rods")
    for k, parent in ((1, None), (2, "rod 1")):
        basis = ls.BasisLegendre(bending_y=1, bending_z=0)
        robot.add_link(f"rod {k}", ls.Rod(0.2, ls.SectionCircle(radius), basis, MATERIAL), parent=parent)
    robot.add_tendon("lift", path=[ls.PathRod("rod 1", (0.002, 0.01)), ls.PathRod("rod 2", (0.002, 0.01))])
    return robot


def tip(model, start=None):
    """Position of the tip under tension."""
    return ls.frame_pose(model, ls.solve_statics(model, [8.0], start).q, "rod 2")[:3, 3]


def assert_derivatives(model, path, changed, size):
    """The derivatives of the equilibrium by a path are converged differences of equilibria; `changed` gives the value
    for numbers added to it."""
    rest = ls.solve_statics(model, [8.0])
    found = ls.equilibrium_derivatives(rest, parameters=[path]).parameters[path]
    flat = found.reshape(model.nv, -1)
    for k in range(flat.shape[1]):
        ends = []
        for x in (2.0, 1.0, -1.0, -2.0):
            step = np.zeros(flat.shape[1])
            step[k] = x * size
            other = model.with_({path: changed(step)})
            ends.append(ls.solve_statics(other, [8.0], rest.q).q)
        slope = (8.0 * (ends[1] - ends[2]) - ends[0] + ends[3]) / (12.0 * size)
        np.testing.assert_allclose(flat[:, k], slope, rtol=1e-6, atol=1e-7 * np.abs(slope).max())


@pytest.mark.parametrize("kind", RADII)
def test_derivatives_by_numbers_of_functions(kind):
    """Purpose: values of a table, constants of an expression and control points of a B-spline are design values."""
    model = describe(RADII[kind]).build()
    path = f"rod 1.section.radius.{WORDS[kind]}"
    known = model.description.described_values()
    assert path in known
    start = np.asarray(known[path], dtype=float)
    assert_derivatives(model, path, lambda x: (start + x.reshape(start.shape)).tolist(), 2e-5)


def test_derivatives_by_a_placement_that_is_none():
    """Purpose: a link without a placement has derivatives by an increment on the right of the identity."""
    assert_derivatives(describe().build(), "rod 2.placement", ls.lie.se3_exp, 1e-3)


def test_a_name_with_a_star_is_one_value_of_all():
    """Purpose: a star in a name gives all that fit one value, and derivatives are the sum of those of each."""
    model = describe().build()
    assert_derivatives(model, "rod*.section.radius", lambda x: 0.02 + float(x[0]), 2e-5)
    rest = ls.solve_statics(model, [8.0])
    paths = ["rod*.section.radius", "rod 1.section.radius", "rod 2.section.radius"]
    both, one, two = ls.equilibrium_derivatives(rest, parameters=paths).parameters.values()
    np.testing.assert_allclose(both, one + two, rtol=1e-7, atol=1e-9 * np.abs(both).max())
    thin = model.with_({"rod ?.section.radius": 0.01}).description.described_values()
    assert thin["rod 1.section.radius"] == thin["rod 2.section.radius"] == 0.01


def test_entries_are_replaced_alone():
    """Purpose: one entry of a table, a constant and a control point are replaced, and nothing else."""
    robot = describe(RADII["table"]).with_({"rod 1.section.radius.values[2]": 0.01})
    assert robot.links["rod 1"].body.section.radius.values == [0.02, 0.019, 0.01, 0.016]
    assert robot.links["rod 2"].body.section.radius == RADII["table"]
    robot = describe(RADII["expression"]).with_({"rod 1.section.radius.constants.base": 0.03})
    assert robot.links["rod 1"].body.section.radius(1.0) == pytest.approx(0.026, rel=1e-14)
    robot = describe(BASE).with_({"rod 1.section.radius.c[4]": 0.01})
    assert float(robot.links["rod 1"].body.section.radius(1.0)) == pytest.approx(0.01) and BASE.c[4] == 0.016


def test_constants_are_kept_in_files_and_kernels(tmp_path):
    """Purpose: an expression with constants equals the one with numbers: in files, pickles and as a load in kernels."""
    load = ls.Expression(["0", "0", "a*sin(w*t)"], "t", constants={"a": 0.3, "w": 5.0})
    plain = ls.Expression(["0", "0", "0.3*sin(5.0*t)"], "t")
    motions = []
    for force in (load, plain):
        robot = describe(RADII["expression"])
        robot.add_point_load("push", "rod 2", force=force)
        ls.save_robot(robot, tmp_path / "robot.yaml")
        again = ls.load_robot(tmp_path / "robot.yaml")
        assert again.links["rod 1"].body.section.radius == RADII["expression"]
        model = again.build()
        motions.append([ls.simulate(model, 0.2, dt=0.01).q[-1], ls.simulate(model, 0.2).q[-1]])
    np.testing.assert_array_equal(*motions)


def test_a_fit_and_a_search_take_these_paths():
    """Purpose: a fit finds values of a table and a common modulus from positions of the tip."""
    model = describe(RADII["table"]).build()
    truth = model.with_({"rod*.material.young": 1.2e6})
    u = np.linspace(1.0, 8.0, 5)[:, None]
    seen = ls.frame_pose(truth, ls.solve_statics(truth, u).q, "rod 2")[:, :3, 3]
    found = ls.fit(model, ["rod*.material.young"], u, {"rod 2": seen})
    assert found.values["rod*.material.young"] == pytest.approx(1.2e6, rel=1e-6)


@pytest.mark.parametrize(
    "path, text",
    [
        ("tube*.section.radius", r"a name with \* or \? must fit a part, such as rod 1, rod 2, lift"),
        ("rod*.section.width", r"'rod\*' fits rod 1, rod 2"),
        ("rod 1.section.radius.tapir", "must be one of base, taper, constants; the nearest is 'taper'"),
        ("rod 1.section.radius.taper[0]", "has no entries in brackets"),
    ],
)
def test_errors_name_what_fits(path, text):
    """Purpose: a path that fits no part or no value says which there are."""
    with pytest.raises(ls.ModelError, match=text):
        describe(RADII["expression"]).with_({path: 0.01})


def test_a_star_over_different_values_has_no_derivative():
    """Purpose: one value for all has no derivative if they differ, and the error gives the values."""
    model = describe().with_({"rod 2.section.radius": 0.015}).build()
    with pytest.raises(ls.ModelError, match=r"must lead to equal values.*rod 2\.body\.section\.radius.*0\.015"):
        ls.equilibrium_derivatives(ls.solve_statics(model, [8.0]), parameters=["rod*.section.radius"])


@pytest.mark.parametrize(
    "constants, text",
    [
        ({"s": 1.0}, "a name must be a word that is no variable"),
        ({"sin": 1.0}, "a name must be a word that is no variable"),
        ({"a b": 1.0}, "a name must be a word"),
        ({"a": np.nan}, "constants > a"),
        ([1.0], "must be numbers by name"),
    ],
)
def test_wrong_constants_are_refused(constants, text):
    """Purpose: names that mean something else and values that are no numbers raise one line."""
    with pytest.raises(ls.ModelError, match=text):
        ls.Expression("s", constants=constants)


def test_the_rest_of_a_spring_is_a_design_value():
    """A slider on a spring rests at rest + F/k, and oscillates about it as rest + F/k (1 - cos ωt)."""
    robot = ls.Robot("slider", gravity=(0, 0, -9.81))
    joint = ls.JointPrismatic((0, 0, 1), stiffness=50.0, rest=(0.3,))
    robot.add_link("mass", ls.RigidBody(2.0, inertia=(1e-3, 1e-3, 1e-3)), joint)
    model = robot.build()
    paths = ["mass.joint.rest", "mass.joint.stiffness"]
    rest, stiffness = ls.equilibrium_derivatives(ls.solve_statics(model), parameters=paths).parameters.values()
    assert rest == pytest.approx(np.ones((1, 1)), rel=1e-9)
    assert stiffness == pytest.approx(np.array([2.0 * 9.81 / 50.0**2]), rel=1e-7)
    steps, dt = 400, 1e-3
    motion = ls.rollout(model, dt=dt, steps=steps)
    last = np.zeros_like(motion.v)
    last[-1] = 1.0
    found = motion.backward(last, parameters=paths).parameters["mass.joint.rest"]
    assert found == pytest.approx([1.0 - np.cos(5.0 * steps * dt)], abs=2e-5)  # error of the steps


def test_work_for_each_number(monkeypatch):
    """Elastic and viscous numbers need no residual at the states of a motion, others two, whatever they change."""
    robot = describe()
    joint = ls.JointRevolute((0, 1, 0), stiffness=2.0, damping=0.1, rest=(0.1,))
    robot.add_link("tip", ls.RigidBody(0.1, inertia=(1e-4, 1e-4, 1e-4)), joint, parent="rod 2")
    model = robot.build()
    motion = ls.rollout(model, u=np.ones((3, 1)), dt=1e-3)
    plain, calls = designs.run_residual, []
    monkeypatch.setattr(designs, "run_residual", lambda *args: calls.append(1) or plain(*args))
    for paths, count in (
        (["rod 1.material.young", "rod 1.material.viscosity"], 0),
        (["tip.joint.stiffness", "tip.joint.damping", "tip.joint.rest"], 0),
        (["tip.mass"], 2),
        (["rod 1.length"], 2),
        (["tip.mass", "rod 1.length", "rod 1.material.density"], 5),  # one without changes for both masses
    ):
        calls.clear()
        motion.backward(np.ones_like(motion.v), parameters=paths)
        assert len(calls) == 2 * count, paths  # at the stages and at the start
