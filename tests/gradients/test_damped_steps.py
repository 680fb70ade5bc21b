"""Steps with damped Newton iterations: equal to those of the kernel, and exact if the kernel finds none."""

from functools import lru_cache

import numpy as np
import pytest
from gradients.moving_robots import ROBOTS, changes, differenced, mismatch, start
from simulation.test_loops import driven

import lissom as ls
from lissom.gradients.steps import CONSTANT_INPUTS
from lissom.stepping.newton_stages import BEGIN, CONVERGED, FAILED, UNSOLVED
from lissom.stepping.python_stages import ImplicitSteps
from lissom.stepping.schemes import ORDER_SHARE, StepState
from lissom.stepping.state import StateDerivative
from lissom.stepping.step_rows import DAMPED

pytestmark = pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
DT = 0.04


@lru_cache(maxsize=1)
def touching():
    """A hanging arm with a tendon, next to a post."""
    robot = ls.Robot("arm")
    down = np.eye(4)
    down[:3, :3] = np.transpose([(0, 0, -1), (0, 1, 0), (1, 0, 0)])
    material = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=3e4)
    rod = ls.Rod(0.4, ls.SectionCircle((0.015, 0.008)), ls.BasisLegendre(bending_y=2), material)
    robot.add_link("arm", rod, placement=down)
    robot.add_tendon("pull", "arm", (0.0, 0.01))
    post = np.eye(4)
    post[:3, 3] = 0.06, 0.0, -0.2
    robot.add_contact(
        "post", "arm", ls.ShapeCylinder(0.03, axis=(0, 1, 0)), placement=post, stiffness=1e5, exponent=1.5
    )
    return robot.build()


@pytest.mark.parametrize("scheme", [ls.implicit_euler(), ls.generalized_alpha(0.8), ls.esdirk()], ids=lambda x: x.name)
@pytest.mark.parametrize("name", ROBOTS)
def test_a_damped_iteration_finds_the_same_step(name, scheme):
    """Both iterations find the same step, with stored poses, loops, prescribed motions, contact and water."""
    model = ROBOTS[name]().build()
    q, v = start(model)
    motion = ls.rollout(model, q, v, np.full(model.nu, 1.5), dt=1e-3, steps=2, method=scheme)
    path = motion.path
    here = path.state(1)
    here = {name: x[0] for name, x in here.items()}
    state = StepState(
        motion.dt, *(here[key] for key in ("q", "v", "a", "ahead")), motion.dt, here["force"], np.zeros(0), here["a"],
        here["force"],
    )  # fmt: skip
    row = path.scheme[0, 1]  # 1: a contact changes, and the step has one stage
    found = damped(model, scheme, state, motion.u[1], row)
    size = model.dofs.scale
    assert np.abs(ls.difference(model, motion.q[2], found["q"][0]) / size).max() < 1e-11
    for key, other in (("v", motion.v[2]), ("a", motion.a[2]), ("ahead", path.ahead[0, 2])):
        assert np.abs((found[key][0] - other) / size).max() < 1e-8 * max(1.0, np.abs(other / size).max())
    left = 0.0 if row else found["earlier"].reshape(-1, 3, model.nv)[: len(scheme.stages) - 1]
    np.testing.assert_allclose(left, path.earlier[0, 1], rtol=1e-7, atol=1e-8 * np.abs(path.earlier).max(initial=1.0))


def damped(model, scheme, state, u, row):
    """The buffers after a step with the weights of a row in which the iterations of all stages are damped."""
    f = StateDerivative(model, CONSTANT_INPUTS)
    f.constant_u = u
    steps = ImplicitSteps(model, f, scheme, 1e-11, (1e-14, 1e-14), False, ORDER_SHARE, damps=True)
    w = steps._buffers()
    steps._put(w, state, state.h, row)
    w.host["inputs"][0, 0, : len(scheme.stages) * model.nu] = np.tile(u, len(scheme.stages))
    for k in range(1 if row else len(scheme.stages)):
        for part in (BEGIN, UNSOLVED):
            w.host["pause"][0] = 1, part, k, row
            w.run()
        while w.host["pause"][0, 1] < FAILED:
            w.run()
        assert w.host["pause"][0, 1] == CONVERGED
    assert w.host["counts"][0, DAMPED] == 1
    return w.host


def test_long_steps_into_an_obstacle():
    """Damped steps are solutions: their residual vanishes, their derivatives equal differences, and backward
    derivatives equal forward ones."""
    model = touching()
    u = np.random.default_rng(0).uniform(0.0, 25.0, (20, 1))  # as an optimiser may try them

    def moved(x):
        return ls.rollout(model, u=u + x * np.sin(np.arange(20.0))[:, None], dt=DT, method="implicit_euler")

    motion = moved(0.0)
    assert motion.statistics.damped > 5 and sum(len(ls.contact_forces(model, q).contact) > 0 for q in motion.q) > 5
    rates = ls.difference(model, motion.q[:-1], motion.q[1:]) / DT
    np.testing.assert_allclose(motion.v[1:], rates, rtol=0, atol=1e-9 * np.abs(rates).max())
    pulled = ls.actuation_matrix(model, motion.q[1:])[..., 0] * u
    forces = ls.inverse_dynamics(model, motion.q[1:], rates, np.diff(motion.v, axis=0) / DT)
    np.testing.assert_allclose(forces, pulled, rtol=0, atol=1e-9 * np.abs(pulled).max())
    du = np.sin(np.arange(20.0))[:, None]
    change = motion.forward(du=du)
    exact = change.q, change.v, change.a
    assert mismatch(model, exact, differenced(lambda x: changes(model, motion, moved(x)), 1e-3)) < 1e-8
    weights = np.random.default_rng(0).normal(size=(3, 21, model.nv))
    forwards = sum(np.sum(w * x) for w, x in zip(weights, exact))
    assert np.sum(motion.backward(*weights).u * du) == pytest.approx(forwards, rel=1e-11)
    both = ls.rollout(model, u=np.stack([0.01 * u, u]), dt=DT, method="implicit_euler")  # one fails, one does not
    np.testing.assert_allclose(both.q[1], motion.q, rtol=0, atol=1e-9)


def test_a_loop_at_rest_stays():
    """From exact rest, changes are of the size of rounding at once, for any tolerance."""
    robot = driven()
    del robot.motions["spin"]
    model = robot.build()
    rest = ls.solve_statics(model, u=[1.0]).q
    for scheme in ("implicit_euler", "generalized_alpha", "bathe"):
        motion = ls.rollout(model, rest, u=[1.0], dt=4e-3, steps=10, method=scheme)
        assert np.abs(ls.difference(model, rest, motion.q) / model.dofs.scale).max() < 1e-10


def test_steps_that_are_damped_together():
    """Motions of a batch with damping at different steps equal single motions to the last bit. The statistics contain
    the number of damped steps and their share of the time."""
    model, rng = touching(), np.random.default_rng(3)
    u = rng.uniform(0.0, 40.0, (4, 12, 1))
    options = {"dt": DT, "method": "implicit_euler"}
    both = ls.rollout(model, u=u, **options)
    damped = 0
    for one, q in zip(u, both.q):
        alone = ls.rollout(model, u=one, **options)
        damped += alone.statistics.damped
        np.testing.assert_array_equal(q, alone.q)
    cost = both.statistics
    assert (cost.method, cost.steps, cost.damped) == ("implicit_euler", 48, damped) and 8 < damped < 48
    assert cost.evaluations > cost.jacobians > 48 and 0.0 < cost.damped_time < cost.wall_time
