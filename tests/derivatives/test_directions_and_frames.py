"""The tangent inverse dynamics and the derivatives of kinematics, on random hybrid trees."""

from functools import lru_cache

import numpy as np
import pytest
from robots import build, random_state, random_tree

import lissom as ls

TIME = 0.3


@lru_cache(maxsize=2)
def described(seed):
    """A random tree, its model and a state. Tests of one tree follow each other."""
    robot = random_tree(seed)
    return robot, build(robot), *random_state(robot, seed)[:3]


def difference(function, h=1e-5):
    """Derivative of function(x) at x = 0 by fourth-order differences."""
    one, two = ((function(k * h) - function(-k * h)) / (2 * k * h) for k in (1, 2))
    return (4 * one - two) / 3


def difference_of_rows(function, x, h=1e-5):
    """The same along a direction x (nv,), of a function that takes and gives rows, and its values at 0."""
    zero, ahead, behind, far_ahead, far_behind = function(np.outer((0.0, h, -h, 2 * h, -2 * h), x))
    return (4 * (ahead - behind) / (2 * h) - (far_ahead - far_behind) / (4 * h)) / 3, zero


@pytest.mark.parametrize("seed", range(50), scope="module")
def test_tangent_is_the_derivatives_along_a_direction(seed):
    """Purpose: two sweeps without columns give the products of the three matrices, for every joint, body, basis and
    load."""
    _, model, q, v, a = described(seed)
    directions = np.random.default_rng(seed).normal(size=(3, model.nv))
    matrices = ls.inverse_dynamics_derivatives(model, q, v, a, t=TIME)
    found = ls.inverse_dynamics_tangent(model, q, v, a, t=TIME, **dict(zip(("dq", "dv", "da"), directions)))
    parts = [matrix @ x for matrix, x in zip(matrices, directions)]
    np.testing.assert_allclose(found, sum(parts), rtol=0, atol=1e-10 * max(np.abs(part).max() for part in parts))
    for k, name in enumerate(("dq", "dv", "da")):
        alone = ls.inverse_dynamics_tangent(model, q, v, a, t=TIME, **{name: directions[k]})
        np.testing.assert_allclose(alone, parts[k], rtol=0, atol=1e-10 * np.abs(parts[k]).max() + 1e-13)


@pytest.mark.parametrize("options", [{"gravity": False}, {"elastic": False}, {"loads": False}], ids=str)
def test_tangent_against_differences(options):
    """Purpose: independent of the matrices; with each of the terms left out; in batches."""
    _, model, q, v, a = described(3)
    dq, dv, da = np.random.default_rng(1).normal(size=(3, model.nv))

    def tau(x):
        return ls.inverse_dynamics(model, ls.integrate(model, q, x * dq), v + x * dv, a + x * da, t=TIME, **options)

    expected = difference(tau)
    found = ls.inverse_dynamics_tangent(model, q, v, a, dq=dq, dv=dv, da=da, t=TIME, **options)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * np.abs(expected).max())
    batch = ls.inverse_dynamics_tangent(model, q, v, a, dq=np.array([dq, 2 * dq]), dv=dv, da=da, t=TIME, **options)
    np.testing.assert_allclose(batch[0], found, rtol=1e-12, atol=1e-12 * np.abs(found).max())


def test_tangent_refuses_wrong_shapes():
    """Purpose: a direction of the wrong size is named."""
    _, model, q, v, a = described(0)
    with pytest.raises(ls.ShapeError, match="dv: expected shape"):
        ls.inverse_dynamics_tangent(model, q, v, a, dv=np.zeros(model.nv + 1))


@pytest.mark.parametrize("seed", range(20), scope="module")
def test_derivatives_of_twists_and_accelerations(seed):
    """Purpose: of every link's end, of points along rods and of the world's side, against differences."""
    robot, model, q, v, a = described(seed)
    for name, link in robot.links.items():
        places = (0.3, 1.0) if isinstance(link.body, ls.Rod) else (1.0,)
        for s in places:
            twist = ls.frame_twist_derivatives(model, q, v, name, s)
            acc = ls.frame_acceleration_derivatives(model, q, v, a, name, s)
            x = np.random.default_rng(seed).normal(size=model.nv)
            along = [
                (twist[0], lambda d, n=name, s=s: ls.frame_twist(model, ls.integrate(model, q, d), v, n, s)),
                (twist[1], lambda d, n=name, s=s: ls.frame_twist(model, q, v + d, n, s)),
                (acc[0], lambda d, n=name, s=s: ls.frame_acceleration(model, ls.integrate(model, q, d), v, a, n, s)),
                (acc[1], lambda d, n=name, s=s: ls.frame_acceleration(model, q, v + d, a, n, s)),
                (acc[2], lambda d, n=name, s=s: ls.frame_acceleration(model, q, v, a + d, n, s)),
            ]
            for matrix, function in along:
                expected, value = difference_of_rows(function, x)
                size = max(np.abs(expected).max(), np.abs(value).max(), 1e-3)
                np.testing.assert_allclose(matrix @ x, expected, rtol=0, atol=1e-7 * size)


def test_frame_derivatives_of_several_points_and_states():
    """Purpose: abscissae and batches give leading axes; the derivative with respect to v is the Jacobian."""
    rod = ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=2), ls.Material(young=1e6, density=1e3))
    robot = ls.Robot("rod")
    robot.add_link("rod", rod)
    model = robot.build()
    q, v, a = np.random.default_rng(0).normal(size=(3, 2, model.nv))
    dq, dv, da = ls.frame_acceleration_derivatives(model, q, v, a, "rod", [0.0, 0.5, 1.0])
    assert dq.shape == dv.shape == da.shape == (2, 3, 6, model.nv)
    assert not dq[:, 0].any() and not da[:, 0].any()
    np.testing.assert_allclose(da[0, 1], ls.frame_jacobian(model, q[0], "rod", 0.5), atol=1e-14)
    assert ls.frame_twist_derivatives(model, q, v, "rod")[0].shape == (2, 6, model.nv)
