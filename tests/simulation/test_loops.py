"""Closed chains in time: loops that stay closed, everything together, ways of stepping against each other."""

import warnings

import numpy as np
import pytest
import warp as wp
from dynamics.small_robots import pendulum
from scipy.integrate import solve_ivp

import lissom as ls
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.lie.types import kernel_options
from lissom.model.tables import TablesStruct, device_tables
from lissom.passes.columns import ColumnsStruct, Matrix, column_tables
from lissom.simulation.inputs import control_law
from lissom.stepping.driver import Motions
from lissom.stepping.state import StateDerivative
from lissom.systems.bordered import LoopRowsStruct, assemble_bordered, fix_prescribed, loop_rows

wp.set_module_options(kernel_options())

SILICONE = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=2e4)
pytestmark = pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")


def shift(x, y=0.0, z=0.0):
    """Pose of a frame moved without a turn."""
    g = np.eye(4)
    g[:3, 3] = x, y, z
    return g


def driven(**options):
    """A plate on a soft leg and a rigid one: a loop, a prescribed joint, a tendon, a load and a spherical joint."""
    robot = ls.Robot("plate on two legs", **options)
    basis = ls.BasisLegendre(torsion=0, bending_y=1, bending_z=1, elongation=0)
    up = np.eye(4)[:, [2, 0, 1, 3]]  # x of the legs along z of the world
    robot.add_link("soft leg", ls.Rod(0.2, ls.SectionCircle(0.015), basis, SILICONE), placement=up)
    bar = ls.RigidBody(0.3, com=(0.1, 0, 0), inertia=(1e-4, 1e-3, 1e-3))
    robot.add_link("stiff leg", bar, ls.JointRevolute((0, 0, 1), damping=0.01), placement=shift(0.2) @ up)
    plate = ls.RigidBody(0.2, com=(0, 0.1, 0), inertia=(1e-3, 1e-4, 1e-3))
    robot.add_link("plate", plate, ls.JointSpherical(stiffness=0.2, damping=0.002), "soft leg")
    robot.add_link("wheel", ls.RigidBody(0.1, inertia=(1e-4, 1e-4, 1e-4)), ls.JointRevolute((1, 0, 0)), "plate")
    robot.add_loop("knee", "plate", "stiff leg", placement_a=shift(0, 0.2), placement_b=shift(0.2),
                   joint=ls.JointSpherical())  # fmt: skip
    robot.add_tendon("tendon", "soft leg", (0.0, 0.01))
    robot.add_joint_motion("spin", "wheel", position=lambda t: 0.2 * np.sin(3.0 * t))
    robot.add_point_load("push", "plate", force=(0.0, 0.3, 0.0))
    return robot


def at_rest(model, u):
    """Static equilibrium."""
    return ls.solve_statics(model, u)


@pytest.fixture(scope="module")
def model():
    """The model of `driven`."""
    return driven().build()


@pytest.mark.parametrize("project", [True, False])
def test_fused_and_separate_steps_agree(model, project, monkeypatch):
    """Steps in one kernel and steps with Python between them are the same."""
    start = at_rest(model, [1.0]).q
    options = {"u": [3.0], "method": "generalized_alpha", "dt": 5e-3, "rtol": 1e-10, "atol": 1e-12}
    fused = ls.simulate(model, 0.3, start, **options, project_velocity=project)
    monkeypatch.setattr(Motions, "can_run", staticmethod(lambda *_: False))
    separate = ls.simulate(model, 0.3, start, **options, project_velocity=project)
    np.testing.assert_allclose(fused.q, separate.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(fused.v, separate.v, rtol=0, atol=1e-7)
    np.testing.assert_allclose(fused.multipliers, separate.multipliers, rtol=0, atol=1e-5)


@pytest.mark.parametrize("scheme", [ls.generalized_alpha(0.8), ls.generalized_alpha(0.0), ls.newmark(), ls.hht(0.1),
                                    ls.implicit_euler(), ls.bathe()], ids=lambda s: s.name)  # fmt: skip
def test_loops_stay_closed(model, scheme):
    """Residual below 1e-10 m and rate below 1e-8 at every step, of every scheme, and A v is that of the motion."""
    motion = ls.simulate(model, 1.0, at_rest(model, [0.0]).q, u=lambda t: [4.0 * np.sin(9.0 * t) ** 2], method=scheme,
                         dt=0.01)  # fmt: skip
    assert np.abs(ls.loop_residual(model, motion.q)).max() < 1e-10
    rate = np.einsum("tij,tj->ti", ls.constraint_jacobian(model, motion.q), motion.v)
    assert np.abs(rate[:, 1:]).max() < 1e-8
    np.testing.assert_allclose(rate[:, 0], [model.motions(t)[1][0] for t in motion.t], rtol=0, atol=1e-12)


def test_without_projection_the_residual_stays_small(model):
    """The index-3 form alone keeps e < 1e-10, and A v to the accuracy of the scheme."""
    options = {"u": [3.0], "method": "generalized_alpha", "project_velocity": False}
    rates = []
    for dt in (4e-3, 2e-3):
        motion = ls.simulate(model, 0.4, at_rest(model, [1.0]).q, dt=dt, rtol=1e-9, atol=1e-11, **options)
        assert np.abs(ls.loop_residual(model, motion.q)).max() < 1e-10
        rates.append(np.abs(np.einsum("tij,tj->ti", ls.constraint_jacobian(model, motion.q), motion.v)[:, 1:]).max())
    assert rates[1] < 0.4 * rates[0]


def test_methods_agree(model):
    """bdf, radau, dop853 and generalised-α give one motion and one set of multipliers."""
    start, times = at_rest(model, [1.0]).q, np.linspace(0.0, 0.3, 7)
    runs = {method: ls.simulate(model, 0.3, start, u=[3.0], method=method, t_eval=times, rtol=1e-8, atol=1e-10)
            for method in ("bdf", "radau", "dop853")}  # fmt: skip
    runs["generalized_alpha"] = ls.simulate(model, 0.3, start, u=[3.0], method="generalized_alpha", dt=2e-4,
                                            t_eval=times)  # fmt: skip
    reference = runs["radau"]
    for name, motion in runs.items():
        gap = np.abs(ls.difference(model, reference.q, motion.q) / model.dofs.scale).max()
        assert gap < (1e-4 if name == "generalized_alpha" else 1e-5), name
        np.testing.assert_allclose(motion.multipliers[1:], reference.multipliers[1:], rtol=0, atol=5e-3, err_msg=name)


@pytest.mark.parametrize(("rtol", "atol"), [(1e-4, 1e-6), (1e-6, 1e-8)])
def test_bdf_keeps_to_the_loops_by_itself(model, rtol, atol, monkeypatch):
    """Before the last correction the residual is within ten times the tolerance, on a robot of 0.2 m."""
    monkeypatch.setattr("lissom.simulation.trajectory.project_onto_loops", lambda model, q, v: (q, v))
    drive = {"u": lambda t: [4.0 * np.sin(9.0 * t) ** 2], "rtol": rtol, "atol": atol}
    motion = ls.simulate(model, 2.0, at_rest(model, [0.0]).q, method="bdf", **drive)
    assert 0.0 < np.abs(ls.loop_residual(model, motion.q)).max() < 10.0 * rtol


@pytest.mark.parametrize("method", ["bdf", "radau", "dop853"])
def test_adaptive_methods_hand_out_closed_loops(model, method):
    """At default tolerances every row has residuals below 1e-11 m and rad, and rates below 1e-9 of what moves."""
    motion = ls.simulate(model, 0.3, at_rest(model, [1.0]).q, u=[3.0], method=method)
    assert np.abs(ls.loop_residual(model, motion.q)).max() < 1e-11
    rate = np.einsum("tij,tj->ti", ls.constraint_jacobian(model, motion.q), motion.v)
    assert np.abs(rate[:, 1:]).max() < 1e-9


def slow_loop(size=100.0):
    """A pendulum of two bars of 100 m that a third one holds: it swings within half a minute."""
    robot = ls.Robot("slow loop", gravity=(0, 0, -9.81))
    bar = ls.RigidBody(1.0, com=(0.5 * size, 0, 0), inertia=(1.0, size**2 / 12, size**2 / 12))
    pin = ls.JointRevolute((0, 1, 0))
    robot.add_link("left", bar, pin)
    robot.add_link("middle", bar, pin, "left", placement=shift(size))
    robot.add_link("right", bar, pin, "middle", placement=shift(size))
    robot.add_loop("foot", "right", placement_a=shift(size), placement_b=shift(1.5 * size), joint=pin)
    return robot.build()


def test_the_pull_of_loops_follows_the_steps(monkeypatch):
    """dop853 takes a tenth of the steps that a pull of 100/s allows on a slow robot, and keeps within 1e-6 of its size
    of the loops before the last correction."""
    model = slow_loop()
    start = ls.assemble(model, [0.9, 0.5, 0.9])
    monkeypatch.setattr("lissom.simulation.trajectory.project_onto_loops", lambda model, q, v: (q, v))
    free = ls.simulate(model, 20.0, start, method="dop853", rtol=1e-6)
    monkeypatch.setattr("lissom.stepping.state.StateDerivative.ended", lambda self, t: None)
    fixed = ls.simulate(model, 20.0, start, method="dop853")
    assert free.statistics.steps < fixed.statistics.steps / 10
    assert np.abs(ls.loop_residual(model, free.q)).max() < 1e-6 * 100.0


@pytest.mark.parametrize("time", [0.02, 0.1])
def test_gaps_close_at_the_baumgarte_time(model, time):
    """From a gap of 0.1 mm at rest the distance in the knee is e₀ (1 + t/T) exp(−t/T), by SciPy's integration of the
    rate."""
    law = control_law(model, np.zeros(model.nu), None, None)
    f = StateDerivative(model, law, baumgarte_time=time)
    q = at_rest(model, [0.0]).q
    dq = np.zeros(model.nv)
    dq[6] = 5e-4  # the stiff leg [rad]
    start = np.concatenate([ls.integrate(model, q, dq), np.zeros(model.nv)])

    def rate(t, x):
        out = np.empty_like(x)
        f(t, x, out)
        f.ended(t)
        return out

    t = np.linspace(0.0, 4.0 * time, 9)
    found = solve_ivp(rate, (0.0, t[-1]), start, t_eval=t, rtol=1e-9, atol=1e-12)
    gap = np.linalg.norm(ls.loop_residual(model, found.y[: model.nq].T), axis=1)
    assert gap[0] > 5e-5
    np.testing.assert_allclose(gap / gap[0], (1 + t / time) * np.exp(-t / time), rtol=0, atol=2e-3)


def test_the_baumgarte_time_is_an_option(model):
    """Motions by bdf are the same within their tolerance; schemes and robots that have no use for it refuse it."""
    start = {"q0": at_rest(model, [1.0]).q, "u": [3.0], "method": "bdf", "t_eval": [0.1, 0.2], "rtol": 1e-8}
    free, given = (ls.simulate(model, 0.2, **start, baumgarte_time=time) for time in (None, 0.05))
    apart = ls.difference(model, free.q, given.q) / model.dofs.scale
    assert 0.0 < np.abs(apart).max() < 1e-5
    with pytest.raises(ls.ModelError, match="the implicit schemes close loops in each step"):
        ls.simulate(model, 0.2, baumgarte_time=0.05)
    with pytest.raises(ls.ModelError, match="baumgarte_time: must be"):
        ls.simulate(model, 0.2, method="bdf", baumgarte_time=0.0)
    with pytest.raises(ls.ModelError, match="needs a robot with loops or couplings"):
        ls.simulate(pendulum(), 0.2, method="bdf", baumgarte_time=0.05)


def test_a_damped_motion_ends_in_the_static_equilibrium(model):
    """With everything still, the robot comes to rest where statics finds it, with the same forces in the loop."""
    robot = driven()
    robot.motions.clear()
    robot.add_joint_motion("hold", "wheel", position=0.3)
    still = robot.build()
    rest = at_rest(still, [3.0])
    motion = ls.simulate(still, 20.0, at_rest(still, [1.0]).q, u=[3.0], method=ls.generalized_alpha(0.0), dt=0.02)
    apart = ls.difference(still, rest.q, motion.q[-1]) / still.dofs.scale
    assert np.abs(apart).max() < 1e-8
    np.testing.assert_allclose(motion.multipliers[-1], rest.multipliers, rtol=0, atol=1e-7)
    assert rest.residual < 1e-12


def test_global_equilibrium(model):
    """What ground and knee exert on the stiff leg carries its weight: forces to 1e-9 N."""
    robot = driven()
    robot.links["stiff leg"] = ls.Link("stiff leg", robot.links["stiff leg"].body, ls.JointFree(),
                                       placement=robot.links["stiff leg"].placement)  # fmt: skip
    foot = robot.links["stiff leg"].placement
    robot.add_loop("foot", "stiff leg", placement_b=foot, joint=ls.JointRevolute((0, 0, 1)))
    whole = robot.build()
    found = at_rest(whole, [2.0])
    wrenches = ls.loop_wrenches(whole, found.q, found.multipliers)
    on_leg = foot[:3, :3] @ wrenches[1, 3:]
    knee = ls.frame_pose(whole, found.q, "stiff leg")[:3, :3] @ wrenches[0, 3:]  # on the plate, in axes of the leg
    np.testing.assert_allclose(on_leg - knee + [0, 0, -0.3 * 9.81], 0.0, rtol=0, atol=1e-9)


def test_energy_balance_with_loops(model):
    """Work of tendon, motion and load, less what dampers take, is the change of energy; loops do no work."""
    motion = ls.simulate(model, 0.5, at_rest(model, [1.0]).q, u=[3.0], method="radau", rtol=1e-9, atol=1e-11,
                         t_eval=np.linspace(0, 0.5, 2001))  # fmt: skip
    assert ls.energy_balance(model, motion).residual < 1e-6


def test_batches(model):
    """A batch of starts and inputs is the single motions; statics too."""
    starts = np.array([at_rest(model, [u]).q for u in (0.0, 1.0)])
    options = {"method": "generalized_alpha", "dt": 0.01, "t_eval": [0.1, 0.2]}
    many = ls.simulate(model, 0.2, starts, u=np.array([[2.0], [3.0]]), **options)
    one = ls.simulate(model, 0.2, starts[1], u=[3.0], **options)
    np.testing.assert_allclose(many.q[1], one.q, rtol=0, atol=1e-14)
    assert many.multipliers.shape == (2, 2, model.n_multipliers)
    both = ls.solve_statics(model, [[0.0], [1.0]])
    np.testing.assert_allclose(both.q, starts, rtol=0, atol=1e-10)


def test_own_actuators_with_loops(model):
    """An actuator in Python takes the other way through statics and steps, to the same numbers."""
    robot = driven()
    robot.actuators.clear()
    robot.add_custom_actuator("tendon", lambda q: ls.actuation_matrix(model, q))
    own = robot.build()
    np.testing.assert_allclose(at_rest(own, [3.0]).q, at_rest(model, [3.0]).q, rtol=0, atol=1e-9)
    start, options = at_rest(model, [1.0]).q, {"u": [3.0], "method": "generalized_alpha", "dt": 0.01}
    a, b = (ls.simulate(m, 0.1, start, **options) for m in (own, model))
    np.testing.assert_allclose(a.q, b.q, rtol=0, atol=1e-7)


@wp.kernel
def border_kernel(t: TablesStruct, x: ColumnsStruct, K: Matrix, loops: LoopRowsStruct, size: wp.array(dtype=wp.int32)):
    """What steps do before they factor their matrix."""
    size[0] = assemble_bordered(t, x, 0, K, loops.A_q, loops)
    fix_prescribed(t, size[0], loops.width, 0, loops.units, loops.matrix, loops.unknown)


def bordered_matrix(model, K, A, A_q):
    """The matrix that a step factors, and its σ."""
    x, loops, size = column_tables(model), loop_rows(model, 1), wp.zeros(1, dtype=wp.int32, device="cpu")
    filled = []
    for rows in (K, A, A_q):
        filled.append(np.zeros((1, len(rows), x.width)))
        filled[-1][0, :, : model.nv] = rows
    stored, loops.A, loops.A_q = (wp.array(rows.reshape(1, -1), dtype=wp.float64, device="cpu") for rows in filled)
    wp.launch(border_kernel, dim=1, inputs=[device_tables(model), x, stored, loops, size], device="cpu")
    n = int(size.numpy()[0])
    return loops.matrix.numpy()[0].reshape(-1, loops.width)[:n, :n].copy(), float(loops.sigma.numpy()[0])


def test_condition_as_the_step_goes_to_zero(model):
    """The matrix of a step in its own units has a bounded condition number; unscaled it grows as h⁻²."""
    q, still = at_rest(model, [1.0]).q, np.zeros(model.nv)
    conditions, plain = [], []
    for h in (1e-2, 1e-4, 1e-6, 1e-8):
        dq, dv, da, w = residual_derivatives(model, q, still, still, np.array([1.0]), 0.0)
        K = da / h**2 + dv / h + dq
        matrix, sigma = bordered_matrix(model, K, row_results(model, w, "A"), row_results(model, w, "A_q"))
        size = np.sqrt(np.abs(np.diag(K)))
        size[model.prescribed.dof] = 1.0  # held by a row of the identity
        units = np.concatenate([1.0 / size, np.full(len(matrix) - model.nv, 1.0 / np.sqrt(sigma))])
        conditions.append(np.linalg.cond(matrix * units * units[:, None]))
        raw = matrix.copy()
        raw[: model.nv, model.nv :] /= sigma
        raw[model.nv :, : model.nv] /= sigma
        plain.append(np.linalg.cond(raw))
    assert max(conditions[1:]) < 2.0 * conditions[1]
    assert plain[-1] > 1e8 * plain[0]


def test_a_start_with_an_open_loop_is_refused(model):
    """The error names the loop, by how much it is open, and the remedy."""
    with pytest.raises(ls.ModelError, match=r"q0: loop 'knee' stays open by .* m; close it by assemble"):
        ls.simulate(model, 0.1, ls.integrate(model, at_rest(model, [0.0]).q, 0.1 * np.ones(model.nv)))


def test_the_start_velocity_is_moved_onto_the_loops(model):
    """v0 loses what opens the loops, by the least change in kinetic energy; what does not stays."""
    q = at_rest(model, [0.0]).q
    v = np.random.default_rng(0).uniform(-1, 1, model.nv)
    start = ls.simulate(model, 0.01, q, v, method="bdf", t_eval=[0.0, 0.01])
    again = ls.simulate(model, 0.01, q, start.v[0], method="bdf", t_eval=[0.0, 0.01])
    np.testing.assert_allclose(again.v[0], start.v[0], rtol=0, atol=1e-12)
    A, M = ls.constraint_jacobian(model, q), ls.mass_matrix(model, q)
    assert np.abs(A[1:] @ start.v[0]).max() < 1e-12
    allowed = np.linalg.svd(A * model.dofs.scale)[2][len(A) :].T * model.dofs.scale[:, None]
    lost = v - start.v[0]
    lost[model.prescribed.dof] = 0.0
    np.testing.assert_allclose(allowed.T @ M @ lost, 0.0, atol=1e-12)


def test_redundant_rows_are_reported_once():
    """A pin in a plane warns with its counts, once for a model; its forces out of the plane are zero."""
    robot = ls.Robot("triangle")
    robot.add_link("bar", ls.RigidBody(1.0, com=(0.5, 0, 0)), ls.JointRevolute((0, 1, 0), stiffness=3.0))
    robot.add_link("rod", ls.RigidBody(1.0, com=(0.5, 0, 0)), ls.JointRevolute((0, 1, 0)), "bar", placement=shift(1.0))
    robot.add_loop("pin", "rod", placement_a=shift(1.0), placement_b=shift(1.2), joint=ls.JointRevolute((0, 1, 0)))
    triangle = robot.build()
    q0 = np.array([-0.9, 1.9])
    with pytest.warns(ls.RedundancyWarning, match="of the 5 rows of its loops 2 are independent"):
        found = ls.solve_statics(triangle, q0=q0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ls.solve_statics(triangle, q0=q0)
    (wrench,) = ls.loop_wrenches(triangle, found.q, found.multipliers)
    np.testing.assert_allclose(wrench[[0, 2, 4]], 0.0, atol=1e-12)
