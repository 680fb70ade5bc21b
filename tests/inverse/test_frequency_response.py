"""Frequency responses and state spaces: an oscillator, the receptance of a cantilever, loops, steady motion."""

import numpy as np
import pytest

import lissom as ls

FREQUENCIES = np.array([0.0, 3.0, 11.0, 40.0])


def slider(mass=2.0, stiffness=300.0, damping=5.0):
    """A mass on a spring and a damper along x, with a motor."""
    robot = ls.Robot("slider", gravity=(0, 0, 0))
    joint = ls.JointPrismatic((1, 0, 0), stiffness=stiffness, damping=damping)
    robot.add_link("mass", ls.RigidBody(mass, inertia=(1e-3,) * 3), joint)
    robot.add_joint_actuator("motor", "mass")
    return robot


def test_an_oscillator():
    """H = 1/(k + iωc − mω²) of a mass on a spring and a damper, also as state space, with its poles."""
    m, k, c = 2.0, 300.0, 5.0
    model = slider(m, k, c).build()
    rest = ls.solve_statics(model)
    found = ls.frequency_response(model, rest, "motor", ls.SensorPosition("mass", 1e-3), FREQUENCIES)
    w = FREQUENCIES
    np.testing.assert_allclose(found[:, 0], 1.0 / (k + 1j * w * c - m * w**2), rtol=1e-12)
    assert found.shape == (4, 3) and not found[:, 1:].any()
    space = ls.state_space(model, rest, "motor", ls.SensorTwist("mass", 1e-3))
    speed = space.frequency_response(FREQUENCIES)[:, 3, 0]
    np.testing.assert_allclose(speed, 1j * w / (k + 1j * w * c - m * w**2), rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.sort_complex(space.poles), np.sort_complex(np.roots([m, c, k])), rtol=1e-9)
    assert space.inputs == ("motor",) and space.A.shape == (2, 2) and not space.D.any()


def test_a_cantilever_has_its_analytic_receptance():
    """Tip deflection by a tip force of an Euler–Bernoulli beam with Kelvin–Voigt damping:
    (sin x cosh x − cos x sinh x)/(E I λ³ (1 + cos x cosh x)) with x = λ L and λ⁴ = ρ A ω²/(E I (1 + iωμ)).

    The order 8 resolves four modes; rotary inertia of the rod changes the fourth by 1e-5.
    """
    L, r, E, rho, mu = 1.0, 1e-3, 2e11, 7850.0, 1e-4
    robot = ls.Robot("beam", gravity=(0, 0, 0))
    material = ls.Material(young=E, poisson=0.3, density=rho, damping_time=mu)
    robot.add_link("rod", ls.Rod(L, ls.SectionCircle(r), ls.BasisLegendre(bending_y=8), material))
    robot.add_wrench_input("shaker", "rod", directions=(0, 0, 0, 0, 0, 1.0), frame="world")
    model = robot.build()
    EI, rho_A = E * np.pi * r**4 / 4, rho * np.pi * r**2
    natural = np.array([1.8751041, 4.6940911, 7.8547574, 10.9955407]) ** 2 * np.sqrt(EI / (rho_A * L**4))
    w = np.concatenate([natural, [0.3 * natural[0], 1.7 * natural[1], 0.95 * natural[3]]])
    found = ls.frequency_response(model, ls.solve_statics(model), "shaker", ls.SensorPosition("rod", 1e-3), w)[:, 2]
    stiff = EI * (1.0 + 1j * w * mu)
    lam = (rho_A * w**2 / stiff) ** 0.25
    x = lam * L
    over = np.sin(x) * np.cosh(x) - np.cos(x) * np.sinh(x)
    expected = over / (stiff * lam**3 * (1.0 + np.cos(x) * np.cosh(x)))
    np.testing.assert_allclose(found, expected, rtol=2e-3)
    static = ls.frequency_response(model, ls.solve_statics(model), "shaker", ls.SensorPosition("rod", 1e-3), [0.0])
    assert static[0, 2].real == pytest.approx(L**3 / (3 * EI), rel=1e-9)


def test_loops_take_no_states():
    """Two sliders that a loop joins move as one mass, with one degree of freedom and two springs."""
    robot = slider(2.0, 300.0, 5.0)
    joint = ls.JointPrismatic((1, 0, 0), stiffness=100.0)
    robot.add_link("other", ls.RigidBody(1.0, inertia=(1e-3,) * 3), joint)
    robot.add_loop("tie", "mass", "other", joint=ls.JointFixed())
    model = robot.build()
    with pytest.warns(ls.RedundancyWarning):
        rest = ls.solve_statics(model)
    found = ls.frequency_response(model, rest, ["motor"], [ls.SensorPosition("other", 1e-3)], FREQUENCIES)
    w = FREQUENCIES
    np.testing.assert_allclose(found[:, 0, 0], 1.0 / (400.0 + 5j * w - 3.0 * w**2), rtol=1e-9)
    space = ls.state_space(model, rest, None, ls.SensorPosition("other", 1e-3))
    assert space.A.shape == (2, 2) and space.N.shape == (2, 1)
    np.testing.assert_allclose(space.frequency_response(w), found, rtol=1e-9, atol=1e-15)


def test_a_mass_on_a_turning_arm():
    """On an arm that turns at Ω a spring along the arm is softened by the centrifugal force: 1/(k − mΩ² − mω²)."""
    turn, m, k = 8.0, 0.5, 200.0
    robot = ls.Robot("rotor", gravity=(0, 0, 0))
    robot.add_link("arm", ls.RigidBody(1.0, inertia=(1e-2,) * 3), ls.JointRevolute((0, 0, 1)))
    robot.add_joint_motion("drive", "arm", position=lambda t: turn * t)
    place = np.eye(4)
    place[0, 3] = 0.3
    joint = ls.JointPrismatic((1, 0, 0), stiffness=k)
    robot.add_link("mass", ls.RigidBody(m, inertia=(1e-3,) * 3), joint, parent="arm", placement=place)
    robot.add_joint_actuator("motor", "mass")
    model = robot.build()
    steady = ls.solve_statics(model)
    assert steady.v[0] == pytest.approx(turn)
    w = np.array([0.0, 5.0, 30.0])
    found = ls.frequency_response(model, steady, "motor", ls.SensorPosition("mass", 1e-3), w)
    np.testing.assert_allclose(found[:, 0], 1.0 / (k - m * turn**2 - m * w**2), rtol=1e-6)


def test_wrong_arguments():
    """Each error names the argument and its rule; a frequency at an undamped mode is one."""
    model = slider().build()
    rest, seen = ls.solve_statics(model), ls.SensorPosition("mass", 1e-3)
    for given, error, told in (
        ((rest, "engine", seen, [1.0]), ls.ModelError, "input: must be among motor"),
        ((rest, "motor", "mass", [1.0]), ls.ModelError, "output: must be a sensor"),
        ((rest, "motor", ls.SensorPosition("moss", 1e-3), [1.0]), ls.ModelError, "moss"),
        ((rest, "motor", seen, [-1.0]), ls.ShapeError, "frequencies: expected finite numbers >= 0"),
        ((rest, "motor", seen, [np.nan]), ls.ShapeError, "frequencies: "),
        ((rest, "motor", seen, 1.0), ls.ShapeError, "frequencies: "),
        ((np.zeros(1), "motor", seen, [1.0]), ls.ShapeError, "equilibrium > q: expected shape"),
    ):
        with pytest.raises(error, match=told):
            ls.frequency_response(model, *given)
    free = slider(1.0, 0.0, 0.0).build()
    with pytest.raises(ls.ModelError, match="an undamped mode has this frequency"):
        ls.frequency_response(free, ls.solve_statics(free), "motor", seen, [0.0])
