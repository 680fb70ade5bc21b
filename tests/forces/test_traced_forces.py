"""Forces of jax.numpy, called by kernels: against the same function in Python, in batches, and refused arguments."""

import numpy as np
import pytest
import warp as wp
from dynamics.small_robots import MATERIAL

import lissom as ls
from lissom.forces.terms import acting_on
from lissom.lie.types import vec6
from lissom.robot.poses import compiled

jnp = pytest.importorskip("jax.numpy")


def magnet(t, g, eta):
    """A pull towards a moving place that fades with the distance, and a moment that turns x of the frame along it."""
    place = jnp.stack([0.4 + 0.1 * jnp.sin(3.0 * t), 0.2, 0.0 * t])
    away = place - g[:3, 3]
    pull = away * jnp.exp(-3.0 * (away @ away)) * jnp.sinc(0.5 * away[0]) + 0.01 * jnp.log1p(t)
    return jnp.concatenate([0.02 * jnp.cross(jnp.array([1.0, 0.0, 0.0]), g[:3, :3].T @ away), g[:3, :3].T @ pull])


def drag(t, g, eta):
    """Resistance to turning and moving, more of it above the ground."""
    return -jnp.where(g[2, 3] > 0.0, 0.2, 0.1) * jnp.concatenate([1e-3 * eta[:3], eta[3:] * jnp.abs(eta[3:])])


@wp.func
def drag_of_warp(R: wp.mat33d, p: wp.vec3d, eta: vec6, s: wp.float64, t: wp.float64) -> vec6:
    """The same resistance."""
    k = wp.where(p[2] > wp.float64(0.0), wp.float64(0.2), wp.float64(0.1))
    turn = wp.float64(-1e-3) * k
    return vec6(
        turn * eta[0], turn * eta[1], turn * eta[2], -k * eta[3] * wp.abs(eta[3]), -k * eta[4] * wp.abs(eta[4]),
        -k * eta[5] * wp.abs(eta[5]),
    )  # fmt: skip


def robot(*forces):
    """A free stone and a rod on it, under forces on both."""
    made = ls.Robot("pulled")
    made.add_link("stone", ls.RigidBody.sphere(0.05, density=2700.0), ls.JointFree())
    rod = ls.Rod(0.3, ls.SectionCircle(0.015), ls.BasisLegendre(bending_y=1, bending_z=0), MATERIAL)
    made.add_link("rod", rod, parent="stone")
    for k, force in enumerate(forces):
        made.add_force(f"stone {k}", "stone", force)
        made.add_force(f"rod {k}", "rod", force)
    return made.build()


def in_python(force):
    """The same force, called in Python. JAX compiles it, since its single operations take a hundred times as long."""
    quick = compiled(force)
    return lambda t, g, eta: np.asarray(quick(t, g, eta))


@pytest.fixture(scope="module")
def models():
    """The robot with both forces in kernels, and with both in Python."""
    pair = magnet, drag
    return robot(*map(ls.TracedFunction, pair)), robot(*map(in_python, pair))


def state(model, lead=()):
    """A start with turned quaternions, and velocities."""
    rng = np.random.default_rng(2)
    step, v, a = 0.2 * rng.uniform(-1, 1, (3, *lead, model.nv))
    return ls.integrate(model, model.neutral(), step), v, a


def test_wrenches(models):
    """Inverse dynamics is that of the same functions in Python, at two times."""
    native, python = models
    assert python.calls_python and not native.calls_python
    q, v, a = state(native)
    for t in (0.0, 0.7):
        one, other = (ls.inverse_dynamics(model, q, v, a, t=t) for model in models)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13 * np.abs(other).max())
    without = ls.inverse_dynamics(native, q, v, a, loads=False)
    assert np.abs(without - one).max() > 1e-2 * np.abs(one).max()


def test_derivatives(models):
    """Derivatives of inverse dynamics are those of converged differences."""
    model, t = models[0], 0.7
    q, v, a = state(model)
    dq, dv, _ = ls.inverse_dynamics_derivatives(model, q, v, a, t=t)
    for e in np.eye(model.nv)[[0, 4, 6, 8]]:
        for found, at in (
            (dq @ e, lambda h, e=e: (ls.integrate(model, q, h * e), v)),
            (dv @ e, lambda h, e=e: (q, v + h * e)),
        ):

            def slope(h, at=at):
                ends = (ls.inverse_dynamics(model, *at(x), a, t=t) for x in (h, -h))
                return np.subtract(*ends) / (2.0 * h)

            expected = (4.0 * slope(2e-4) - slope(4e-4)) / 3.0
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(dq).max())


def test_motions(models):
    """Adaptive steps run in the kernel and in batches, to the last bit as alone, and move as under Python forces."""
    q0, v0, _ = state(models[0], (3,))
    given = {"method": "esdirk", "rtol": 1e-8, "atol": 1e-10, "t_eval": [0.01, 0.02]}
    motions = ls.simulate(models[0], 0.02, q0, v0, **given)
    assert "one motion after the other" not in motions.statistics.remark
    alone = [ls.simulate(models[0], 0.02, q, v, **given) for q, v in zip(q0, v0)]
    np.testing.assert_array_equal(motions.q, [one.q for one in alone])
    other = ls.simulate(models[1], 0.02, q0[0], v0[0], **given)
    np.testing.assert_allclose(alone[0].q, other.q, rtol=0, atol=1e-7)


def test_numbers_are_those_at_build():
    """A number that a force reads is that of the build; the next build has the present one."""
    size = [1.0]
    force = ls.TracedFunction(lambda t, g, eta: size[0] * jnp.arange(6.0))
    ends = []
    for number in (1.0, 3.0):
        size[0] = number
        model = robot(force)
        size[0] = 100.0
        free = ls.inverse_dynamics(model, model.neutral(), np.zeros(model.nv), np.zeros(model.nv), loads=False)
        ends.append(free - ls.inverse_dynamics(model, model.neutral(), np.zeros(model.nv), np.zeros(model.nv)))
    np.testing.assert_allclose(ends[1], 3.0 * ends[0], rtol=1e-12, atol=1e-13)
    assert np.abs(ends[0]).max() > 1.0


def test_all_functions_share_one_kernel():
    """Kernels call forces by their addresses, so that another function, or another number in it, compiles none; a robot
    may have several, and Warp functions beside them."""
    models = [robot(ls.TracedFunction(lambda t, g, eta, k=k: k * g[0, 3] * eta)) for k in (1.0, 2.0)]
    assert acting_on(models[0]) is acting_on(models[1])
    q, v, a = state(models[0])
    free = ls.inverse_dynamics(models[0], q, v, a, loads=False)
    pulls = [ls.inverse_dynamics(model, q, v, a) - free for model in models]
    np.testing.assert_allclose(pulls[1], 2.0 * pulls[0], rtol=0, atol=1e-13 * np.abs(free).max())
    mixed = robot(ls.TracedFunction(drag), drag_of_warp, ls.TracedFunction(drag))
    alone = robot(ls.TracedFunction(drag))
    one, three = (
        [ls.inverse_dynamics(model, q, v, a) - free, *ls.inverse_dynamics_derivatives(model, q, v, a)[:2]]
        for model in (alone, mixed)
    )
    rest = ls.inverse_dynamics_derivatives(alone, q, v, a, loads=False)
    np.testing.assert_allclose(three[0], 3.0 * one[0], rtol=0, atol=1e-12 * np.abs(free).max())
    for found, once, without in zip(three[1:], one[1:], rest):
        np.testing.assert_allclose(found - without, 3.0 * (once - without), rtol=0, atol=1e-8 * np.abs(without).max())


class Wear:
    """A force that weakens from call to call."""

    def __init__(self):
        self.left = 1.0

    def __call__(self, t, g, eta):
        self.left *= 0.99
        return self.left * eta


REFUSED = {
    "memory": (Wear(), "computes another result when it is called again"),
    "branch": (lambda t, g, eta: eta if t > 1.0 else -eta, "branches"),
    "numpy": (lambda t, g, eta: np.sin(eta), "gives NumPy"),
    "shape": (lambda t, g, eta: eta[:3], "must return an array of shape (6,), got shape"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_forces_that_cannot_be_traced(case):
    """What cannot be traced is refused by `build`, in one line that names the force and says why."""
    function, words = REFUSED[case]
    with pytest.raises(ls.ModelError) as caught:
        robot(ls.TracedFunction(function))
    text = str(caught.value)
    assert text.startswith("force 'stone 0': function: ") and words in text and "\n" not in text
