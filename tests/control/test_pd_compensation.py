"""PD control with compensation of potential forces: the reference is reached, and energy only falls."""

import numpy as np
import pytest
from control.controlled_robots import SOFT, routed, some_state, tipped
from dynamics.small_robots import looped

import lissom as ls

GAINS = {"proportional": 20.0, "derivative": 4.0}


@pytest.mark.parametrize("cancel", [False, True])
def test_driven_joints_with_a_passive_tip(cancel):
    """Motors bring a rigid arm to its reference and the soft tip to where gravity leaves it, by either compensation."""
    model = tipped()
    q_d = ls.solve_statics(model, u=[-4.0, -1.0], q0=[0.3, 0.3, 0, 0]).q
    law = ls.pd_compensation(model, q_d, cancel=cancel, **GAINS)
    run = ls.simulate(model, 4.0, controller=law, method="generalized_alpha", dt=0.01)
    away = np.abs(run.q - q_d).max(axis=1)
    assert away[0] > 1.0 and away[-1] < 5e-3
    np.testing.assert_allclose(run.u[-1], [-4.0, -1.0], rtol=0.02)


@pytest.mark.filterwarnings("ignore:tendon:lissom.AccuracyWarning")
def test_energy_of_the_closed_loop_falls():
    """V of the module falls by ẏᵀK_Dẏ + vᵀDv: its rate by differences along the exact acceleration."""
    model = routed()
    q_d = ls.solve_statics(model, u=[2.0, 5.0, 3.0]).q
    K_P, K_D = np.diag([800.0, 900.0, 700.0]), 30.0 * np.eye(3)
    law = ls.pd_compensation(model, q_d, proportional=K_P, derivative=K_D)
    u_d = law.output(0.0, q_d, np.zeros(6), ())
    np.testing.assert_allclose(u_d, [2.0, 5.0, 3.0], rtol=1e-6)

    def storage(q, v):
        e = ls.actuation_coordinates(model, q_d) - ls.actuation_coordinates(model, q)
        return ls.energy(model, q, v).total + 0.5 * e @ K_P @ e - u_d @ ls.actuation_coordinates(model, q)

    q, v = some_state(model, 9)
    a = ls.forward_dynamics(model, q, v, law.output(0.0, q, v, ()))
    rates, h = ls.actuation_matrix(model, q).T @ v, 1e-5
    found = (storage(q + h * v, v + h * a) - storage(q - h * v, v - h * a)) / (2 * h)
    np.testing.assert_allclose(found, -rates @ K_D @ rates - v @ ls.damping_matrix(model) @ v, rtol=1e-6)


def test_three_references_one_after_the_other():
    """A piecewise constant-strain arm with a force on each coordinate goes through three references, as its Controller
    is exchanged; y is given for the user's own actuator."""
    robot = ls.Robot("driven everywhere", gravity=(9.81, 0, 0))
    basis = ls.BasisLegendre(bending_y=0, bending_z=0, elongation=0)
    for k in range(2):
        rod = ls.Rod(0.2, ls.SectionCircle(0.02), basis, SOFT)
        robot.add_link(f"rod {k}", rod, parent=None if k == 0 else "rod 0")
    robot.add_custom_actuator("everywhere", lambda q: np.eye(6), size=6)
    model = robot.build()
    size = np.array([1.0, 1.0, 0.02, 1.0, 1.0, 0.02])
    references = size * np.array([[3, -2, 0, 2, 1, 0], [-1, 2, 1, -3, 0, 1], [0, 1, -1, 1, -1, 0]])
    gains = {"proportional": 0.05 / size**2, "derivative": 0.02 / size**2, "coordinates": lambda q: q}
    laws = [ls.pd_compensation(model, q_d, **gains) for q_d in references]
    switched = ls.Controller(lambda t, q, v, z: laws[min(int(t / 1.5), 2)].output(t, q, v, z))
    run = ls.simulate(model, 4.5, controller=switched, method="generalized_alpha", dt=0.01)
    for k, q_d in enumerate(references):
        first, last = np.searchsorted(run.t, [1.5 * k, 1.5 * k + 1.485])
        assert np.abs((run.q[last] - q_d) / size).max() < 0.06 < 0.9 < np.abs((run.q[first] - q_d) / size).max()
    np.testing.assert_allclose(laws[0].output(0.0, references[0], np.zeros(6), ()),
                               ls.inverse_dynamics(model, references[0], np.zeros(6), np.zeros(6)))  # fmt: skip


def test_loops_bear_their_part():
    """In closed chains the compensation is the input under which statics found the reference."""
    model = looped()
    held = ls.solve_statics(model, u=[3.0])
    law = ls.pd_compensation(model, held.q, **GAINS)
    np.testing.assert_allclose(law.output(0.0, held.q, np.zeros(model.nv), ()), [3.0], rtol=1e-7)


def test_references_that_nothing_holds():
    """A bent passive tip is no equilibrium: the error says how much force is left, and what to do."""
    with pytest.raises(ls.ModelError, match=r"q: must be an equilibrium.*leave 0\.\d+ of.*solve_statics"):
        ls.pd_compensation(tipped(), [0.5, 0.5, 3.0, 0.0], **GAINS)
    with pytest.raises(ls.ShapeError, match="q: expected shape"):
        ls.pd_compensation(tipped(), [0.5, 0.5], **GAINS)
    with pytest.raises(ls.ModelError, match=r"as many as the actuated coordinates, 6 \(got 3\)"):
        ls.pd_compensation(routed(), np.zeros(6), cancel=True, **GAINS)
