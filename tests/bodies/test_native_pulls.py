"""Tendons, chambers and pressures inside deformable bodies: native code in kernels against JAX, and what only kernels
do."""

from dataclasses import dataclass
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
import warp as wp
from bodies.kinematics_makers import PAD as LENGTH
from bodies.kinematics_makers import in_python, pad

import lissom as ls
from lissom.bodies.pulls import pulls_on
from lissom.cli.descriptions import python_functions
from lissom.dynamics.input_dynamics import input_dynamics
from lissom.dynamics.inverse_dynamics import run_inverse_dynamics
from lissom.launch.compiling import wait_for_native_functions
from lissom.lie.types import kernel_options
from lissom.model.tables import TablesStruct
from lissom.passes import pulls
from lissom.passes.scratch import ScratchStruct
from lissom.robot.actuators import BodyChamber

pytestmark = pytest.mark.filterwarnings("ignore::lissom.PlausibilityWarning")
LAW = ls.HyperelasticSaintVenantKirchhoff(young=2e5, poisson=0.3, damping_time=0.02)
DOMAIN = ls.DomainCylinder(LENGTH, 0.01, degree=4)
CHAMBER = ls.cylinder_surface(0.02, 0.08, 0.005, around=6, along=4)
OPEN = CHAMBER[0], CHAMBER[1][:36]
LINE = [(0.0, 0.004, 0.0), (0.05, 0.006, 0.002), (LENGTH, 0.005, 0.001)]
EYELETS = [(0.0, 0.0, 0.004), (0.05, 0.0, 0.005), (0.09, 0.002, 0.004)]
MOTIONS = {
    "strain": (ls.KinematicsStrain(LENGTH, ls.BasisPiecewiseConstant(bending_y=2, elongation=1)), 1.0),
    "volume": (
        ls.KinematicsVolumePreserving(
            LENGTH, [ls.PrimitiveStretch([[0.0, 1.0]]), ls.PrimitiveBending([[3.0]], "y"),
                     ls.PrimitiveTwist([[0.0, 1.0]])]
        ),
        0.5,
    ),
    "linear": (
        ls.KinematicsRitz(lambda x: jnp.stack([x * x[0], jnp.array([x[1], x[0], x[2]]) * x[0] ** 2], axis=1), 2), 0.5
    ),
}  # fmt: skip


@wp.kernel(module_options=kernel_options(), module="unique")
def tables_of_pulls(t: TablesStruct, s: ScratchStruct):
    pulls.evaluate_derivatives(t, s, 0)


def outside(x):
    """Half of the surface."""
    return x[1] > -1e-9


def driven(motion) -> ls.Robot:
    """A body on a hinge with every kind of pull."""
    robot = ls.Robot("driven")
    robot.add_link("body", ls.DeformableBody(motion, DOMAIN, LAW, 1e3), ls.JointRevolute((0.0, 1.0, 0.0), damping=0.01))
    robot.add_tendon("line", path=[ls.PathBody("body", LINE)])
    robot.add_tendon("eyelets", path=[ls.PathBody("body", EYELETS, gauss_points=None)])
    robot.add_body_chamber("shut", "body", surface=CHAMBER)
    robot.add_body_chamber("open", "body", surface=OPEN)
    robot.add_body_chamber("given", "body", volume=lambda q: 1e-5 * (1.0 + q[0]) ** 3 * jnp.cos(q[1]))
    robot.add_surface_pressure("outside", "body", outside)
    return robot


@dataclass(frozen=True, eq=False)
class Hold(ls.gym.Task):
    """Keep a body in its shape."""

    def start(self, random):
        return ls.gym.TaskStart(q=0.1 * random.normal(size=self.model.nq), goal=np.zeros(1))

    def observe(self, state):
        return np.concatenate([state.q, state.v], axis=1)

    def reward(self, state):
        return -(state.q**2).sum(axis=1)

    def terminated(self, state):
        return np.abs(state.q).max(axis=1) > 1e3

    def observation_limits(self):
        return -1e6, 1e6


INPUTS = np.array([1.0, 0.5, 2e3, 1e3, 1e2, 1e3])


@cache
def pads(native: bool) -> ls.Model:
    """The robot with the body `pad`."""
    return driven(ls.KinematicsFunction(pad if native else in_python(pad), 2)).build()


def assert_close(found, expected, tolerance=1e-11):
    scale = np.abs(expected).max() + 1e-300
    np.testing.assert_allclose(np.asarray(found) / scale, np.asarray(expected) / scale, rtol=0.0, atol=tolerance)


@pytest.mark.parametrize("name", ["strain", pytest.param("volume", marks=pytest.mark.slow), "linear"])
def test_tables(name):
    """Purpose: work, B, wrenches and their derivatives of every kind of pull stand in the tables as JAX has them."""
    motion, size = MOTIONS[name]
    model, n = driven(motion).build(), motion.n
    assert not model.calls_python
    q = size * np.random.default_rng(0).uniform(-1.0, 1.0, model.nv)
    w = run_inverse_dynamics(model, *np.stack([q, q, q])[:, None], True, True, False, 0.0)[0]
    wait_for_native_functions(tables_of_pulls, model)
    wp.launch(tables_of_pulls, 1, [w.buffers.tables, w.buffers.scratch], device="cpu")
    own = model.pulls.bodies[0].pulls
    work, B, wrench = own.values(q[None, 1:])
    B_q, wrench_q = own.derivatives(q[None, 1:])
    expected = {"work": work, "B": B, "wrench": wrench, "B_q": B_q, "wrench_q": wrench_q}
    for key, value in expected.items():
        found = getattr(w.buffers.scratch.pulls, key).numpy()[0].reshape(value[0].shape)
        assert np.isfinite(value).all()
        for one, other in zip(found, value[0]):
            assert_close(one, other)
    assert np.abs(wrench[0, 5]).max() > 0.0 and not wrench[0, :5].any()
    assert B_q.shape == (1, 6, n, n)


def state() -> list[np.ndarray]:
    return list(np.random.default_rng(1).uniform(-0.4, 0.4, (2, pads(True).nv)))


def test_kernels_have_the_functions_of_python():
    """Purpose: accelerations under inputs, their derivatives, lengths, B and its rate equal those of JAX."""
    native, python = pads(True), pads(False)
    assert not native.calls_python and python.calls_python
    q, v = state()
    for call, values in (
        (ls.forward_dynamics, (q, v, INPUTS)), (ls.forward_dynamics_derivatives, (q, v, INPUTS)),
        (ls.actuation_matrix, (q,)), (ls.path_lengths, (q,)),
    ):  # fmt: skip
        found, expected = call(native, *values), call(python, *values)
        for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected)), strict=True):
            assert_close(one, other, 1e-10)
    rates = [input_dynamics(model, q, v).bend[:5] for model in (native, python)]  # a pressure has no length
    assert_close(*rates, 1e-10)
    found, expected = ls.solve_statics(native, u=0.1 * INPUTS), ls.solve_statics(python, u=0.1 * INPUTS)
    np.testing.assert_allclose(found.q, expected.q, atol=1e-9)


def test_inputs_of_an_earlier_launch_do_not_act():
    """Purpose: derivatives of inverse dynamics, in the buffers of a pressed body, are those without inputs."""
    model, (q, v) = pads(True), state()
    before = ls.inverse_dynamics_derivatives(model, q, v, 0 * v)
    ls.forward_dynamics_derivatives(model, q, v, INPUTS)
    for one, other in zip(ls.inverse_dynamics_derivatives(model, q, v, 0 * v), before):
        np.testing.assert_array_equal(one, other)


def test_batches_are_single_motions():
    """Purpose: motions with adaptive steps in one launch have the bits of single ones, and so have those of models."""
    model, (q, v) = pads(True), state()
    starts = q + 0.02 * np.arange(3)[:, None]
    given = {"v0": v, "u": 0.2 * INPUTS, "t_eval": [0.0, 0.02, 0.05]}
    together = ls.simulate(model, 0.05, q0=starts, **given)
    for k, start in enumerate(starts):
        np.testing.assert_array_equal(together.q[k], ls.simulate(model, 0.05, q0=start, **given).q)
    models = model.batch("body.density", [1e3, 1.2e3])
    rows = ls.forward_dynamics(models, np.stack([q, q]), np.stack([v, v]), np.stack([INPUTS] * 2))
    for k in range(2):
        np.testing.assert_array_equal(rows[k], ls.forward_dynamics(models[k], q, v, INPUTS))


def test_gradients_are_those_of_differences():
    """Purpose: the backward pass of a rollout under inputs is exact."""
    model, (q, v) = pads(True), state()
    u = np.tile(0.2 * INPUTS, (6, 1))
    weights = np.random.default_rng(2).normal(size=model.nq)

    def roll(u):
        return ls.rollout(model, q, 0.1 * v, u, dt=0.005, tolerance=1e-13)

    path = roll(u)
    seeds = np.zeros_like(path.q)
    seeds[-1] = weights
    found = path.backward(seeds, np.zeros_like(path.v))
    move = INPUTS * np.random.default_rng(3).uniform(-1.0, 1.0, u.shape)
    steps = [1e-3, 5e-4]
    slopes = [weights @ (roll(u + h * move).q[-1] - roll(u - h * move).q[-1]) / (2.0 * h) for h in steps]
    expected = (4.0 * slopes[1] - slopes[0]) / 3.0
    assert (found.u * move).sum() == pytest.approx(expected, rel=1e-7)


def test_environments_are_single_ones():
    """Purpose: copies in a vector environment have the bits of an environment alone."""
    task = Hold(pads(True), most=0.2 * INPUTS, period=0.01, steps=2, limit=10)
    together = ls.gym.vector_environment(task, 3)
    begun, _ = together.reset(seed=5)
    alone = ls.gym.vector_environment(task, 1)
    first, _ = alone.reset(seed=5)
    np.testing.assert_array_equal(begun[0], first[0])
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (2, 3, 6))
    for action in actions:
        many, one = together.step(action)[0], alone.step(action[:1])[0]
        np.testing.assert_array_equal(many[0], one[0])
    assert np.abs(many - begun).max() > 1e-3


def test_reasons_are_given():
    """Purpose: `lissom info` names the body and the operation."""
    assert python_functions(pads(True)) == []
    (line,) = [line for line in python_functions(pads(False)) if "tendons and chambers" in line]
    assert "body 'body' are evaluated in Python: it has a loop whose length" in line
    body = ls.DeformableBody(ls.KinematicsFunction(pad, 2), DOMAIN, LAW, 1e3)
    item = BodyChamber("x", "body", volume=lambda q: 1e-5 * jnp.linalg.eigvalsh(jnp.diag(q) + 1.0).max())
    assert "eigh" in pulls_on(body, (item,)).native[1]
