"""Derivatives of composed motions and of antiderivatives, against those of the whole by JAX and closed forms."""

import numpy as np
import pytest
from bodies.kinematics_makers import RADIUS, L, composed

from lissom.bodies import jets
from lissom.bodies.body import DeformableBody
from lissom.bodies.domains import DomainCylinder
from lissom.bodies.jets import antiderivative
from lissom.bodies.materials import HyperelasticNeoHookean
from lissom.bodies.pulls import BodyPulls, pulls_on
from lissom.bodies.volume_preserving import KinematicsVolumePreserving, PrimitiveTwist
from lissom.robot.actuators import PathBody
from lissom.robot.poses import in_double

jax = pytest.importorskip("jax")
jnp = jax.numpy


def test_parts_give_the_derivatives_of_the_whole():
    """Derivatives made primitive by primitive are those that JAX takes of the composed motion at once."""
    kinematics, size = composed(["stretch", "twist", "shear_z"])
    rng = np.random.default_rng(0)
    points = rng.uniform((0.0, -RADIUS, -RADIUS), (L, RADIUS, RADIUS), (3, 3))
    q, v = size * rng.uniform(-1, 1, (2, kinematics.n))

    def by_parts(q, v):
        return kinematics.first_derivatives(points, q, v), kinematics.second_derivatives(points, q, v)

    def at_once(q, v):
        def motion(q):
            return kinematics.positions(points, q).T, kinematics.deformations(points, q).transpose(1, 2, 0)

        return jets.first_derivatives(motion, q, v), jets.second_derivatives(motion, q, v)

    found, expected = (in_double(jax.jit(function))(q, v) for function in (by_parts, at_once))
    for parts, whole in zip(found, expected):
        for name in parts._fields:
            exact = np.asarray(getattr(whole, name))
            difference = np.abs(np.asarray(getattr(parts, name)) - exact).max()
            assert difference < 1e-13 * np.abs(exact).max(), name


def test_frames_follow_the_slopes():
    """Columns of frames that turn with the area, and of one that does not, are derivatives of their poses; theirs are
    derivatives of columns, and so on along a rate, for which two derivatives suffice."""
    kinematics, size = composed(["stretch", "twist", "shear_z"])
    body = DeformableBody(kinematics, DomainCylinder(L, RADIUS, 2), HyperelasticNeoHookean(1e5), 1e3)
    frames = [
        body.frames.at(x, turns=t) for x, t in (((L, 0, 0), True), ((0.7 * L, 0.01, 0), True), ((L, 0, 0.01), False))
    ]
    q, v = size * np.random.default_rng(1).uniform(-0.5, 0.5, (2, kinematics.n))

    def at(q):
        return [part[0] for part in body.frames.derivatives(frames, q[None])]

    def slope(k):
        """Of the k-th part of `at`, by central differences of fourth order."""
        rows = []
        for e in 2e-3 * np.diag(size):
            one, two = ((at(q + n * e)[k] - at(q - n * e)[k]) / (2 * n * e.sum()) for n in (1, 2))
            rows.append((4 * one - two) / 3)
        return np.array(rows)

    g, S, S_q, S_qq = at(q)
    change = np.linalg.inv(g) @ slope(0)
    rate = [change[..., 2, 1], change[..., 0, 2], change[..., 1, 0], *np.moveaxis(change[..., :3, 3], -1, 0)]
    along = body.frames.derivatives(frames, q[None], v[None]).S_qq[0]
    second = [np.einsum("kjcer,c,e->kjr", part, v, v) for part in (along, S_qq)]
    pairs = (
        (S, np.moveaxis(rate, (0, 1), (2, 1))),
        (S_q, np.moveaxis(slope(1), 0, 2)),
        (S_qq, np.moveaxis(slope(2), 0, 3)),
    )
    for found, expected in (*pairs, second):
        assert np.abs(found - expected).max() < 1e-8 * np.abs(expected).max()
    assert np.abs(S[:2, :, :3]).max() > 0.1 and not S[2, :, :3].any()
    summed = body.frames.derivatives(frames, q[None], v[None], curved=False, sloped=False)
    assert np.array_equal(summed.S[0], S)
    sums = [np.einsum("kjcr,j,c->kr", part, v, v) for part in (summed.S_q[0], S_q)]
    assert np.abs(sums[0] - sums[1]).max() < 1e-13 * np.abs(sums[1]).max()


def test_tendons_follow_the_slopes():
    """Tendons along material lines and through eyelets, their forces and the derivatives of these, are those that JAX
    takes of lengths; so are their products with a rate."""
    kinematics, size = composed(["stretch", "twist", "shear_z"])
    body = DeformableBody(kinematics, DomainCylinder(L, RADIUS, 2), HyperelasticNeoHookean(1e5), 1e3)
    line = np.array([(0.1 * L, 0.01, 0.0), (0.5 * L, 0.01, 0.005), (L, 0.0, 0.01)])
    found = pulls_on(body, (PathBody("", line, gauss_points=3), PathBody("", line, gauss_points=None)))
    whole = BodyPulls(kinematics, found.pulls)
    q, v = size * np.random.default_rng(2).uniform(-0.5, 0.5, (2, kinematics.n))
    one, other = (
        [*part.values(q[None]), *part.derivatives(q[None]), part.second_along(q, v)] for part in (found, whole)
    )
    for here, there in zip(one, other):
        np.testing.assert_allclose(here, there, rtol=0, atol=1e-13 * np.abs(there).max(initial=1e-3))
    bent = np.einsum("pjl,j,l->p", one[3][0], v, v)
    assert np.abs(one[5] - bent).max() < 1e-13 * np.abs(bent).max()


def test_antiderivative():
    """∫₀ˣ cos(θs) ds and its derivatives by θ and x up to the third are those of sin(θx)/θ, over three turns."""
    x = np.linspace(-0.4, 1.3, 7)
    numeric = lambda t, x: antiderivative(lambda t, s: jnp.cos(t * s), t, x)  # noqa: E731
    closed = lambda t, x: jnp.sin(t * x) / t  # noqa: E731

    def rates(function):
        """Along (1, −0.3) and (1, 0.7) from (θ, x)."""
        first = lambda t, x: jax.jvp(function, (t, x), (1.0, -0.3 + 0.0 * x))  # noqa: E731
        second = lambda t, x: jax.jvp(first, (t, x), (1.0, 0.7 + 0.0 * x))  # noqa: E731
        return lambda t: jnp.concatenate(jax.tree.leaves(jax.jvp(second, (t, x), (0.5, 1.0 + 0.0 * x))))

    found, expected = (np.asarray(in_double(jax.jit(rates(function)))(11.0)) for function in (numeric, closed))
    np.testing.assert_allclose(found, expected, atol=1e-13 * np.abs(expected).max())


def test_bodies_of_one_make_share_what_is_compiled():
    """Equal parts give the same integrals; another density does not."""
    domain, law = DomainCylinder(L, RADIUS, 2), HyperelasticNeoHookean(1e5)

    def made(density):
        twist = KinematicsVolumePreserving(L, (PrimitiveTwist(((0.0, 1.0),)),))
        return DeformableBody(twist, domain, law, density)

    first, second, heavier = made(1e3), made(1e3), made(2e3)
    assert first.integrals is second.integrals
    assert first.integrals is not heavier.integrals
