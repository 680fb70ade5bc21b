"""Laws of springs as traced functions: against Warp functions and converged differences, in motions, and
refused arguments."""

import os

import numpy as np
import pytest
import warp as wp
from dynamics.small_robots import MATERIAL

import lissom as ls
from lissom.forces.springs import STEP
from lissom.forces.terms import acting_on

jnp = pytest.importorskip("jax.numpy")


def band(length, rate):
    """A tension that stiffens within a millimetre, with a damping that grows with the length."""
    return 2.0 * jnp.tanh((length - 0.2) / 1e-3) + 20.0 * length**2 + length * jnp.tanh(2.0 * rate)


def hinge(x):
    """A moment that stiffens within a thousandth of a radian."""
    return 0.05 * jnp.tanh(x / 1e-3) + 0.3 * x


@wp.func
def band_of_warp(length: wp.float64, rate: wp.float64) -> wp.float64:
    """The same tension."""
    stiff = wp.float64(2.0) * wp.tanh((length - wp.float64(0.2)) / wp.float64(1e-3))
    damping = length * wp.tanh(wp.float64(2.0) * rate)
    return stiff + wp.float64(20.0) * length * length + damping


@wp.func
def hinge_of_warp(x: wp.float64) -> wp.float64:
    """The same moment."""
    return wp.float64(0.05) * wp.tanh(x / wp.float64(1e-3)) + wp.float64(0.3) * x


def sprung(law, spring, extra=()):
    """Hinges and a rod, with a spring on one hinge, one from the tip to the world, and further ones of other laws."""
    robot = ls.Robot("sprung")
    joint = ls.JointUniversal((0, 1, 0), (0, 0, 1), damping=0.01, spring=[spring, None])
    robot.add_link("upper", ls.RigidBody.cylinder(0.2, 0.02, density=1000.0), joint)
    basis = ls.BasisLegendre(torsion=0, bending_y=1)
    stop = ls.JointRevolute((0, 1, 0), limits=(-1.0, 1.0), limit_stiffness=5.0, spring=[(-1.0, -0.2), (1.0, 0.2)])
    robot.add_link("lower", ls.Rod(0.2, ls.SectionCircle(0.01), basis, MATERIAL), stop, parent="upper")
    robot.add_spring("band", ls.PathPoint(None, (0.4, 0.2, 0.0)), "lower", law=law)
    for k, other in enumerate(extra):
        robot.add_spring(f"other {k}", ls.PathPoint(None, (0.1, 0.1, 0.3)), "upper", law=other)
    return robot.build()


@pytest.fixture(scope="module")
def models():
    """The robot with traced laws, and with Warp functions."""
    return sprung(ls.TracedFunction(band), ls.TracedFunction(hinge)), sprung(band_of_warp, hinge_of_warp)


def state(model):
    """A state in which the laws are steep."""
    v, a = np.random.default_rng(2).uniform(-1, 1, (2, model.nv))
    return 1e-3 * np.arange(1.0, model.nq + 1.0), v, a


def test_forces_and_energies(models):
    """Forces and energies are those of the same laws as Warp functions, which stay in kernels too."""
    q, v, a = state(models[0])
    one, other = (ls.inverse_dynamics(model, q, v, a) for model in models)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-13 * np.abs(other).max())
    one, other = (ls.energy(model, q, v).elastic for model in models)
    assert one == pytest.approx(other, rel=1e-12) and not models[0].calls_python
    without = ls.inverse_dynamics(models[0], q, v, a, elastic=False)
    assert np.abs(without - ls.inverse_dynamics(models[0], q, v, a)).max() > 1e-2


def test_derivatives_are_exact(models):
    """Derivatives are those of converged differences to 1e-9, of laws that change within less than the step of the
    differences in kernels."""
    model = models[0]
    q, v, a = state(model)
    assert float(STEP) * 1.2 > 1e-4
    dq, dv, _ = ls.inverse_dynamics_derivatives(model, q, v, a)
    for found, at in (
        (dq, lambda h, e: (q + h * e, v)),
        (dv, lambda h, e: (q, v + h * e)),
    ):
        slopes = []
        for h in (2e-6, 4e-6):
            ends = [[ls.inverse_dynamics(model, *at(x, e), a) for e in np.eye(model.nv)] for x in (h, -h)]
            slopes.append((np.array(ends[0]) - np.array(ends[1])).T / (2.0 * h))
        expected = (4.0 * slopes[0] - slopes[1]) / 3.0
        np.testing.assert_allclose(found, expected, rtol=0, atol=3e-9 * np.abs(dq).max())
    rough = ls.inverse_dynamics_derivatives(models[1], q, v, a)[0]
    assert np.abs(rough - dq).max() > 1e-7 * np.abs(dq).max()  # differences in kernels are worse


def test_motions_and_gradients(models):
    """A motion is that of the Warp functions, in batches too, and gradients of rollouts are those of differences."""
    model, q0 = models[0], state(models[0])[0]
    options = {"method": "esdirk", "rtol": 1e-9, "atol": 1e-11, "t_eval": [0.05, 0.1]}
    one, other = (ls.simulate(own, 0.1, q0, **options).q for own in models)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(ls.simulate(model, 0.1, np.array([q0, 2.0 * q0]), **options).q[0], one)
    motion = ls.rollout(model, q0, dt=1e-3, steps=20)
    weights = np.random.default_rng(1).normal(size=(2, 21, model.nv))
    gradient = motion.backward(*weights, parameters=["lower.material.young"])
    found = ls.check_gradient(motion, lambda x: float(np.sum(weights[0] * x.q) + np.sum(weights[1] * x.v)), gradient)
    assert found.worst < 1e-7
    batch = model.batch("lower.material.young", [8e5, 1.2e6])
    motions = ls.simulate(batch, 0.1, q0, **options)
    np.testing.assert_array_equal(motions.q[1], ls.simulate(batch[1], 0.1, q0, **options).q)


def test_several_laws():
    """Traced laws, Warp functions and tables act together, each on its own spring."""
    other = ls.TracedFunction(lambda length, rate: 5.0 * length - rate)
    rows = [(0.1, 0.0), (0.5, 3.0)]
    mixed = sprung(ls.TracedFunction(band), ls.TracedFunction(hinge), (other, band_of_warp, rows))
    q, v, a = state(mixed)
    want = ls.inverse_dynamics(sprung(band_of_warp, hinge_of_warp, (rows,)), q, v, a)
    bare = ls.inverse_dynamics(sprung(band_of_warp, hinge_of_warp), q, v, a)
    parts = [sprung(band_of_warp, hinge_of_warp, (law,)) for law in (other, band_of_warp)]
    want = want + sum(ls.inverse_dynamics(part, q, v, a) - bare for part in parts)
    np.testing.assert_allclose(ls.inverse_dynamics(mixed, q, v, a), want, rtol=0, atol=1e-12 * np.abs(want).max())


def test_numbers_are_those_at_build():
    """A number that a law reads is that of the build; the next build has the present one."""
    size, forces = [1.0], []
    law = ls.TracedFunction(lambda length, rate: size[0] * length)
    spring = ls.TracedFunction(lambda x: size[0] * x)
    for number in (1.0, 3.0):
        size[0] = number
        model = sprung(law, spring)
        size[0] = 100.0
        q, v, a = state(model)
        forces.append(ls.inverse_dynamics(model, q, v, a) - ls.inverse_dynamics(model, q, v, a, elastic=False))
    rest = sprung(ls.TracedFunction(lambda length, rate: 0.0 * length), ls.TracedFunction(lambda x: 0.0 * x))
    own = ls.inverse_dynamics(rest, q, v, a) - ls.inverse_dynamics(rest, q, v, a, elastic=False)
    np.testing.assert_allclose(forces[1] - own, 3.0 * (forces[0] - own), rtol=1e-9, atol=1e-12)
    assert np.abs(forces[0] - own).max() > 0.01


def test_all_laws_share_one_kernel():
    """Kernels call laws by their addresses, so that another law, or another number in it, compiles none."""
    laws = [[ls.TracedFunction(f) for f in pair] for pair in ((band, hinge), (lambda x, rate: 3.0 * x, lambda x: x**3))]
    assert acting_on(sprung(*laws[0])) is acting_on(sprung(*laws[1]))


REFUSED = {
    "branch": (lambda length, rate: length if rate > 0.0 else -length, "branches"),
    "numpy": (lambda length, rate: np.sin(length), "gives NumPy"),
    "shape": (lambda length, rate: jnp.stack([length, rate]), "must return an array of shape"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_laws_that_cannot_be_traced(case):
    """What cannot be traced is refused by `build`, in one line that names the spring and says why."""
    function, words = REFUSED[case]
    with pytest.raises(ls.ModelError) as caught:
        sprung(ls.TracedFunction(function), None)
    text = str(caught.value)
    assert text.startswith("spring 'band': law: ") and words in text and "\n" not in text
    with pytest.raises(ls.ModelError, match="link 'upper' > joint: spring: "):
        sprung(band_of_warp, ls.TracedFunction(lambda x: function(x, x)))


def test_other_numbers_beside_a_law():
    """A law that has the rate leaves no place for a damping."""
    robot = ls.Robot("one")
    robot.add_link("slider", ls.RigidBody(1.0), ls.JointPrismatic((1, 0, 0)))
    with pytest.raises(ls.ModelError, match="damping, slack: must be left out where the law is a function"):
        robot.add_spring("s", ls.PathPoint(None), "slider", law=ls.TracedFunction(band), damping=1.0)
        robot.build()


def test_robot_files():
    """A traced law is refused by robot files, which cannot hold functions, and named."""
    joint = ls.JointRevolute((0, 1, 0), spring=ls.TracedFunction(hinge))
    for where, change in (
        ("joint", lambda robot: robot.add_link("b", ls.RigidBody(1.0), joint, parent="a")),
        ("band", lambda robot: robot.add_spring("band", ls.PathPoint(None), "a", law=ls.TracedFunction(band))),
    ):
        robot = ls.Robot("filed")
        robot.add_link("a", ls.RigidBody(1.0), ls.JointPrismatic((1, 0, 0)))
        change(robot)
        with pytest.raises(ls.ModelError, match=rf"{where}.*: a traced function cannot be saved"):
            ls.save_robot(robot, os.devnull)
