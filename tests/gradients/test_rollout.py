"""Derivatives of rollouts: against differences of the motions, and backward against forward ones."""

from functools import lru_cache

import numpy as np
import pytest
from gradients.moving_robots import (
    PLACES,
    ROBOTS,
    changes,
    differenced,
    differenced_rows,
    mismatch,
    redesigns,
    size_of,
    start,
)

import lissom as ls

STEPS = 24
DT = {"soft": 4e-3, "loop": 4e-3, "floating": 1e-3}  # [s]
MOVED = {"soft": 1e-3, "loop": 1e-3, "floating": 2e-5}  # by differences: what touches stays so
TOLERANCE = {"soft": 1e-10, "loop": 1e-7, "floating": 1e-7}  # constraint forces round to 1e-10; divided by MOVED
SCHEMES = [ls.generalized_alpha(0.8), ls.bathe(), ls.implicit_euler(), ls.hht(0.1), ls.esdirk()]
pytestmark = pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning", "ignore::lissom.PlausibilityWarning")


@lru_cache
def built(name):
    """The model of a robot, an initial state and inputs."""
    model = ROBOTS[name]().build()
    u = np.random.default_rng(3).uniform(0.5, 2.0, (STEPS, model.nu))
    return model, *start(model), u


def directions(model, motion, seed=5):
    """Changes of q0, which satisfy the loops, of v0 and of the inputs."""
    rng = np.random.default_rng(seed)
    dq0, dv0 = rng.normal(size=(2, model.nv)) * model.dofs.scale
    return motion.start_derivatives.onto_q[0] @ dq0, dv0, rng.normal(size=motion.u.shape)


def along(name, way, x, **options):
    """The motion with initial state and inputs changed by x along a direction."""
    model, q0, v0, u = built(name)
    dq0, dv0, du = way
    moved = ls.integrate(model, q0, x * dq0), v0 + x * dv0
    return ls.rollout(model, *moved, u + x * du, dt=DT[name], tolerance=1e-13, **options)


@pytest.mark.parametrize(
    ("name", "scheme"),
    [(n, s) for n in ROBOTS for s in SCHEMES[:2]] + [("soft", s) for s in SCHEMES[2:]] + [("floating", SCHEMES[-1])],
    ids=lambda x: x if isinstance(x, str) else x.name,
)  # fmt: skip
def test_derivatives_by_start_and_inputs(name, scheme):
    """Forward derivatives equal differences. Backward derivatives have the same products with any weights."""
    model = built(name)[0]
    motion = along(name, 2 * (np.zeros(model.nv),) + (0.0,), 0.0, method=scheme)
    way = directions(model, motion)
    for k in range(3):
        own = tuple(x if k == j else 0.0 * x for j, x in enumerate(way))
        exact = motion.forward(*own)
        found = differenced(lambda x, own=own: changes(model, motion, along(name, own, x, method=scheme)), MOVED[name])
        if np.abs(found).max() > 0.0:
            assert mismatch(model, (exact.q, exact.v, exact.a), found) < TOLERANCE[name], k
    weights = np.random.default_rng(7).normal(size=(3, STEPS + 1, model.nv)) / model.dofs.scale
    gradient, exact = motion.backward(*weights), motion.forward(*way)
    given = sum(np.sum(w * x) for w, x in zip(weights, (exact.q, exact.v, exact.a)))
    back = gradient.q0 @ way[0] + gradient.v0 @ way[1] + np.sum(gradient.u * way[2])
    assert back == pytest.approx(given, rel=1e-11)


@pytest.mark.parametrize(
    ("method", "dt", "begins"), [("implicit_euler", 1e-3, True), ("generalized_alpha", 1e-5, False)]
)
def test_motion_is_that_of_simulate(method, dt, begins):
    """A rollout equals `simulate` with the same steps and a tight tolerance; by implicit Euler also where a contact
    begins, in steps that `simulate` solves less exactly for other methods."""
    model, q0, v0, u = built("floating")
    motion = ls.rollout(model, q0, v0, dt=dt, steps=STEPS, method=method)
    touches = [len(ls.contact_forces(model, q).contact) > 0 for q in motion.q]
    assert not touches[0] and touches[-1] == begins
    same = ls.simulate(model, motion.t[-1], q0, v0, method=method, dt=dt, rtol=1e-11, atol=1e-14, t_eval=motion.t)
    np.testing.assert_allclose(motion.q, same.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(motion.v, same.v, rtol=0, atol=1e-10)
    assert u.shape == (STEPS, 0)


def test_steps_by_themselves():
    """Products of the matrices of steps are the derivatives of the motion by its start and by each input."""
    model, q0, v0, u = built("soft")
    motion = ls.rollout(model, q0, v0, u, dt=DT["soft"])
    A, B = motion.step_matrices()
    n = model.nv
    exact = motion.forward(np.eye(n))
    begun = ls.forward_dynamics_derivatives(model, q0, v0, u[0])[0]
    x = np.vstack([np.eye(n), np.zeros((n, n)), begun, begun])
    for step in A:
        x = step @ x
    np.testing.assert_allclose(x[:n], exact.q[:, -1].T, rtol=1e-10, atol=1e-12)
    du = np.zeros_like(u)
    du[7, 1] = 1.0
    x = B[7][:, 1]
    for step in A[8:]:
        x = step @ x
    np.testing.assert_allclose(x[n : 2 * n], motion.forward(du=du).v[-1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("scheme", [ls.bathe(), ls.implicit_euler(), ls.esdirk()], ids=lambda x: x.name)
@pytest.mark.parametrize("name", ROBOTS)
def test_one_step(name, scheme):
    """step_derivatives equals a rollout of one step, for a batch of states too."""
    model, q0, v0, u = built(name)
    if model.n_rows:
        q, v = np.array([q0, q0]), np.array([v0, 0.9 * v0])
    else:
        q, v = np.array([q0, ls.integrate(model, q0, 0.01 * model.dofs.scale)]), np.array([v0, 0.9 * v0])
    step = ls.step_derivatives(model, q, v, u[0], dt=1e-3, method=scheme)
    n = model.nv
    assert step.A.shape == (2, 2 * n, 2 * n) and step.B.shape == (2, 2 * n, model.nu)
    for k in range(2):
        one = ls.rollout(model, q[k], v[k], u[:1], dt=1e-3, method=scheme)
        np.testing.assert_allclose(step.q[k], one.q[1], rtol=0, atol=1e-15)
        way, du = np.random.default_rng(k).normal(size=2 * n), np.ones((1, model.nu))
        change = one.forward(way[:n], way[n:], du)
        found, exact = step.A[k] @ way + step.B[k] @ du[0], np.concatenate([change.q[1], change.v[1]])
        np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-9 * np.abs(exact).max())


def test_fast_vibrations_at_the_start():
    """A scheme that depends on (q, v) only damps the vibration that a tension excites in a stiff arm."""
    robot = ls.Robot("stiff")
    material = ls.Material(young=1e7, poisson=0.5, density=1000, viscosity=1e2)
    basis = ls.BasisLegendre(bending_y=1, elongation=1)
    robot.add_link("arm", ls.Rod(0.4, ls.SectionCircle(0.01), basis, material))
    robot.add_tendon("pull", "arm", (0.005, 0.0))
    model = robot.build()
    motion = ls.rollout(model, u=[20.0], dt=0.02, steps=50, method="implicit_euler")
    np.testing.assert_allclose(motion.a[0], ls.forward_dynamics(model, motion.q[0], motion.v[0], [20.0]), rtol=1e-9)
    change = motion.forward(du=np.ones((50, 1)))
    numerical = differenced(lambda x: changes(model, motion, ls.rollout(
        model, u=[20.0 + x], dt=0.02, steps=50, method="implicit_euler")), 1e-2)  # fmt: skip
    assert mismatch(model, (change.q, change.v, change.a), numerical) < 1e-8


def test_batches_functions_and_directions():
    """Batches of motions, functions, directions and designs equal single ones."""
    model, q0, v0, u = built("soft")
    rng = np.random.default_rng(2)
    many = ls.rollout(model, q0, np.array([v0, 0.5 * v0]), u, dt=DT["soft"])
    weights = rng.normal(size=(3, 2, STEPS + 1, model.nv))
    gradient = many.backward(weights, parameters=["arm.material.young"])
    assert gradient.u.shape == (3, 2, STEPS, model.nu) and gradient.parameters["arm.material.young"].shape == (3, 2)
    way = rng.normal(size=(4, model.nv))
    change = many.forward(way[:, None])
    one = ls.rollout(model, q0, 0.5 * v0, u, dt=DT["soft"])
    alone = one.backward(weights[2, 1], parameters=["arm.material.young"])
    np.testing.assert_allclose(gradient.u[2, 1], alone.u, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(gradient.parameters["arm.material.young"][2, 1],
                               alone.parameters["arm.material.young"], rtol=1e-9)  # fmt: skip
    np.testing.assert_allclose(change.q[3, 1], one.forward(way[3]).q, rtol=1e-9, atol=1e-12)
    designs = model.batch("arm.material.young", [1e6, 1.3e6])
    both = ls.rollout(designs, q0, v0, u, dt=DT["soft"]).backward(weights[0], parameters=["ball.body.mass"])
    own = ls.rollout(designs[1], q0, v0, u, dt=DT["soft"]).backward(weights[0, 1], parameters=["ball.body.mass"])
    np.testing.assert_allclose(both.v0[1], own.v0, rtol=1e-9)
    np.testing.assert_allclose(both.parameters["ball.body.mass"][1], own.parameters["ball.body.mass"], rtol=1e-9)


@pytest.mark.parametrize("scheme", ["bathe", "esdirk"])
def test_designs_with_loops_by_several_stages(scheme):
    """Derivatives of a batch of models with loops equal those of each model, with constraint forces in inner stages."""
    model, q0, v0, u = built("loop")
    designs = model.batch("gravity", [(0.0, 0.0, -9.81), (0.0, 0.0, -3.0)])
    weights = np.random.default_rng(6).normal(size=(2, STEPS + 1, model.nv))
    both = ls.rollout(designs, q0, v0, u, dt=DT["loop"], method=scheme).backward(weights)
    for k in range(2):
        own = ls.rollout(designs[k], q0, v0, u, dt=DT["loop"], method=scheme).backward(weights[k])
        np.testing.assert_allclose(both.v0[k], own.v0, rtol=1e-12, atol=1e-12 * np.abs(own.v0).max())
        np.testing.assert_allclose(both.u[k], own.u, rtol=1e-12, atol=1e-12 * np.abs(own.u).max())


def test_states_kept_now_and_then():
    """With every > 1 the other states are computed once more, and derivatives are the same."""
    for name, scheme in (("soft", "bathe"), ("loop", "generalized_alpha")):
        model, q0, v0, u = built(name)
        whole = ls.rollout(model, q0, v0, u, dt=DT[name], method=scheme)
        some = ls.rollout(model, q0, v0, u, dt=DT[name], method=scheme, every=6)
        np.testing.assert_allclose(some.q, whole.q[::6], rtol=0, atol=1e-10)
        weights = np.zeros((STEPS + 1, model.nv))
        weights[::6] = np.random.default_rng(1).normal(size=weights[::6].shape)
        dense, sparse = whole.backward(weights, weights), some.backward(weights[::6], weights[::6])
        np.testing.assert_allclose(sparse.u, dense.u, rtol=1e-7, atol=1e-9 * np.abs(dense.u).max())
        change = some.forward(dv0=np.ones(model.nv)).v
        wanted = whole.forward(dv0=np.ones(model.nv)).v[::6]
        np.testing.assert_allclose(change, wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())


@pytest.mark.parametrize("name", ROBOTS)
def test_design_values(name):
    """Derivatives by numbers, arrays, functions and poses of the description, backward and forward."""
    paths = {
        "soft": ["arm.material.young", "arm.section.radius", "above.offset", "beside.offset", "arm.length", "gravity"],
        "floating": ["a.material.density", "touch.stiffness", "fluid.density", "a.placement"],
        "loop": ["soft leg.length", "knee.placement_b", "plate.joint.damping", "tendon.offset"],
    }[name]
    model, q0, v0, u = built(name)
    weights = np.random.default_rng(7).normal(size=(2, STEPS + 1, model.nv))
    motion = ls.rollout(model, q0, v0, u, dt=DT[name])
    gradient = motion.backward(*weights, parameters=paths).parameters
    for path in paths:
        way = np.random.default_rng(8).normal(size=gradient[path].shape)
        exact = motion.forward(parameters={path: way})
        assert np.sum(weights * [exact.q, exact.v]) == pytest.approx(np.sum(gradient[path] * way), rel=1e-9), path
        size = MOVED[name] * size_of(model, path)
        others = redesigns(model, path, [x * way for x in PLACES * size])
        moved = ls.rollout(others, ls.assemble(others, q0) if model.n_rows else q0, v0, u, dt=DT[name])
        found = differenced_rows(changes(model, motion, moved)[:2].swapaxes(0, 1), size)
        assert mismatch(model, (exact.q, exact.v), found) < 1e-6, path


def test_a_ball_that_goes_through_a_wall_is_told():
    """Rollouts are not divided: their error names the cause. `simulate` divides the step, and the ball comes back."""
    robot = ls.Robot("ball")
    robot.add_link("ball", ls.RigidBody.sphere(0.005, density=1200), ls.JointFree())
    robot.add_contact("wall", "ball", ls.ShapeBox(0.5, 0.5, 0.01))
    model, q, v = robot.build(), np.array([1.0, 0, 0, 0, 0, 0, 0.05]), np.array([0, 0, 0, 0, 0, -20.0])
    with pytest.raises(ls.ConvergenceError, match="t=0 s: a ball went through an obstacle in each of its steps; take"):
        ls.rollout(model, q, v, dt=5e-3, steps=4)
    assert ls.simulate(model, 0.02, q, v, dt=5e-3).q[-1, 6] > 0.05
