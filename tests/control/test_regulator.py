"""Linear quadratic regulators: gains and eigenvalues of SciPy, loops, and motions at the predicted rate."""

import numpy as np
import pytest
from scipy.linalg import expm, null_space, solve_continuous_are, solve_discrete_are
from simulation.test_loops import driven

import lissom as ls

SOFT = ls.Material(young=1e6, density=1000.0, viscosity=2e4)


@pytest.fixture(scope="module")
def upright():
    """A rigid link on a driven spherical joint, with a soft tip, upright along x: quaternions, and unstable."""
    robot = ls.Robot("upright", gravity=(-9.81, 0.0, 0.0))
    end = np.eye(4)
    end[0, 3] = 0.4
    robot.add_link("arm", ls.RigidBody(1.0, (0.2, 0, 0), (0.01, 0.02, 0.03)), ls.JointSpherical())
    tip = ls.Rod(0.4, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=0, bending_z=0), SOFT)
    robot.add_link("tip", tip, parent="arm", placement=end)
    robot.add_joint_actuator("shoulder", "arm")
    return robot.build()


@pytest.fixture(scope="module")
def costs():
    """Q and R that are neither diagonal nor multiples of the identity."""
    X = np.random.default_rng(0).normal(size=(10, 10))
    return X @ X.T + 0.1 * np.eye(10), np.array([[1.0, 0.2, 0.0], [0.2, 2.0, 0.1], [0.0, 0.1, 0.5]])


def test_gains_are_scipys(upright, costs):
    """K, P and eigenvalues, continuous and sampled, are those of SciPy's solvers on linearize; the open loop grows."""
    q = upright.neutral()
    Q, R = costs
    found = ls.linearize(upright, q, v=np.zeros(upright.nv))
    A, B = found.A, found.B
    assert np.linalg.eigvals(A).real.max() > 3.0
    P = solve_continuous_are(A, B, Q, R)
    K = np.linalg.solve(R, B.T @ P)
    law = ls.lqr(upright, q, state=Q, inputs=R)
    np.testing.assert_allclose(law.gain, K, rtol=1e-8, atol=1e-8 * np.abs(K).max())
    np.testing.assert_allclose(law.riccati, P, rtol=1e-8, atol=1e-8 * np.abs(P).max())
    assert law.eigenvalues.real.max() < 0.0
    same_values(law.eigenvalues, np.linalg.eigvals(A - B @ K))
    T = 0.02
    both = expm(T * np.block([[A, B], [np.zeros((3, 13))]]))
    F, G = both[:10, :10], both[:10, 10:]
    P = solve_discrete_are(F, G, T * Q, T * R)
    K = np.linalg.solve(T * R + G.T @ P @ G, G.T @ P @ F)
    law = ls.lqr(upright, q, state=Q, inputs=R, period=T)
    np.testing.assert_allclose(law.gain, K, rtol=1e-8, atol=1e-8 * np.abs(K).max())
    np.testing.assert_allclose(law.riccati, P, rtol=1e-8, atol=1e-8 * np.abs(P).max())
    assert np.abs(law.eigenvalues).max() < 1.0
    same_values(law.eigenvalues, np.linalg.eigvals(F - G @ K))


def same_values(one, other):
    """Assert that two sets of eigenvalues agree, each with the nearest."""
    assert len(one) == len(other)
    far = np.abs(one[:, None] - other)
    assert max(far.min(axis=0).max(), far.min(axis=1).max()) < 1e-7 * np.abs(other).max()


def test_disturbances_decay_as_predicted(upright):
    """From a small disturbance along the slowest motion of the closed loop, x = Re(c exp(s t)), the robot returns as
    that says, to rounding and the square of the disturbance; left alone it falls."""
    q, nv = upright.neutral(), upright.nv
    law = ls.lqr(upright, q, state=np.repeat([100.0, 1.0], nv), inputs=1.0)
    found = ls.linearize(upright, q, v=np.zeros(nv))
    values, shapes = np.linalg.eig(found.A - found.B @ law.gain)
    slowest = np.argmax(values.real)
    s = values[slowest]
    assert s.real == pytest.approx(law.eigenvalues[0].real, rel=1e-7)
    c = 1e-4 * shapes[:, slowest] / np.abs(shapes[:nv, slowest]).max()
    span = 4.0 / abs(s.real)
    start, speed = ls.integrate(upright, q, c.real[:nv]), c.real[nv:]
    options = {"t_eval": np.linspace(0.0, span, 5), "rtol": 1e-8, "atol": 1e-12, "method": "esdirk"}
    motion = ls.simulate(upright, span, start, speed, controller=law.controller(), **options)
    move = ls.difference(upright, q, motion.q)
    wanted = np.real(c * np.exp(s * motion.t)[:, None])
    assert np.abs(np.hstack([move, motion.v]) - wanted).max() < 1e-3 * np.abs(wanted).max()
    left = np.abs(move[-1]).max()
    assert left < 0.03 * np.abs(move[0]).max()
    alone = ls.simulate(upright, span, start, speed, u=np.zeros(3), **options)
    assert np.abs(ls.difference(upright, q, alone.q[-1])).max() > 20.0 * left


def test_law_and_its_limits(upright):
    """The law's derivatives are its differences, far from the equilibrium too; inputs are cut off at their limits."""
    q, nv = upright.neutral(), upright.nv
    law = ls.lqr(upright, q, state=10.0, inputs=1.0)
    free, cut = law.controller(), law.controller((-0.5, [0.2, 0.3, 0.4]))
    rng = np.random.default_rng(2)
    far, v = ls.integrate(upright, q, rng.uniform(-1, 1, nv)), rng.uniform(-1, 1, nv)
    by_q, by_v = free.derivatives(0.0, far, v, np.zeros(0))
    way, h = rng.normal(size=nv), 1e-5
    sides = [free.output(0.0, ls.integrate(upright, far, side * h * way), v, np.zeros(0)) for side in (1.0, -1.0)]
    np.testing.assert_allclose(by_q @ way, (sides[0] - sides[1]) / (2 * h), rtol=1e-7)
    np.testing.assert_allclose(by_v, -law.gain[:, nv:])
    u = free.output(0.0, far, v, np.zeros(0))
    np.testing.assert_array_equal(cut.output(0.0, far, v, np.zeros(0)), np.clip(u, -0.5, [0.2, 0.3, 0.4]))
    inside = (u > -0.5) & (u < [0.2, 0.3, 0.4])
    assert not inside.all()
    for own, whole in zip(cut.derivatives(0.0, far, v, np.zeros(0)), (by_q, by_v)):
        np.testing.assert_array_equal(own, np.where(inside[:, None], whole, 0.0))
    assert (np.abs(u) > 0.5).any() and np.all(free.output(0.0, q, np.zeros(nv), np.zeros(0)) == 0.0)


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
def test_loops_and_prescribed_joints():
    """With a loop and a prescribed joint K and the eigenvalues are those on any basis of the allowed motions."""
    model, u = driven().build(), [2.0]
    q = ls.solve_statics(model, u, v=np.zeros(model.nv)).q
    weights = np.random.default_rng(3).uniform(1.0, 10.0, 2 * model.nv)
    law = ls.lqr(model, q, u, state=weights, inputs=0.3)
    N = null_space(ls.constraint_jacobian(model, q), rcond=1e-9)
    E = np.kron(np.eye(2), N)
    found = ls.linearize(model, q, u, v=np.zeros(model.nv))
    A, B = E.T @ found.A @ E, E.T @ found.B
    K = np.linalg.solve([[0.3]], B.T @ solve_continuous_are(A, B, E.T @ np.diag(weights) @ E, [[0.3]]))
    np.testing.assert_allclose(law.gain @ E, K, rtol=1e-6, atol=1e-7 * np.abs(K).max())
    same_values(law.eigenvalues, np.linalg.eigvals(A - B @ K))
    assert law.eigenvalues.real.max() < 0.0 and len(law.eigenvalues) < 2 * model.nv


def test_refusals(upright):
    """What cannot be regulated is refused with the value and what to do."""
    q, cost = upright.neutral(), {"state": 1.0, "inputs": 1.0}
    with pytest.raises(ls.ModelError, match=r"q: must be an equilibrium under u.*solve_statics"):
        ls.lqr(upright, ls.integrate(upright, q, [0, 0.3, 0, 0, 0]), **cost)
    with pytest.raises(ls.ModelError, match=r"q: must be an equilibrium"):
        ls.lqr(upright, q, [0.0, 0.1, 0.0], **cost)
    with pytest.raises(ls.ModelError, match="state: must be symmetric positive semidefinite"):
        ls.lqr(upright, q, state=-1.0, inputs=1.0)
    with pytest.raises(ls.ModelError, match="inputs: must be symmetric positive definite"):
        ls.lqr(upright, q, state=1.0, inputs=0.0)
    with pytest.raises(ls.ModelError, match="period: must be > 0"):
        ls.lqr(upright, q, period=0.0, **cost)
    with pytest.raises(ls.ShapeError, match="q: expected shape"):
        ls.lqr(upright, [q, q], **cost)
    with pytest.raises(ls.ModelError, match="limits: must be low <= u_e <= high"):
        ls.lqr(upright, q, **cost).controller((1.0, 2.0))
    with pytest.raises(ls.ShapeError, match="limits: expected"):
        ls.lqr(upright, q, **cost).controller((0.0, [1.0, 2.0]))


def test_what_no_input_moves_is_named():
    """A motion that grows and that no input reaches is named by its exponent."""
    robot = ls.Robot("two pendulums", gravity=(-9.81, 0.0, 0.0))
    for name in ("held", "lost"):
        robot.add_link(name, ls.RigidBody(1.0, (0.2, 0, 0), (0.01, 0.02, 0.02)), ls.JointRevolute((0, 1, 0)))
    robot.add_joint_actuator("motor", "held")
    model = robot.build()
    rate = np.sqrt(9.81 * 0.2 / (0.02 + 0.04))
    with pytest.raises(ls.ModelError, match=rf"none controls that of exponent {rate:.3g}"):
        ls.lqr(model, [0.0, 0.0], state=1.0, inputs=1.0)
