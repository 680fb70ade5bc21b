"""Derivatives of robots of one node against an inverse dynamics in 60 digits, differentiated in mpmath.

    Ω = h/2 (ξ₁ + ξ₂) + (√3 h²/12) ad(ξ₁) ξ₂,   S = T(−Ω) Z,   η = S v,   η̇ = S a + Ṡ v           (1)
    τ = Sᵀ (M (η̇ − Ad_g⁻¹ G) − ad_ηᵀ M η)                                                        (2)

Z, Ṡ and the derivatives of τ are central differences with a step of 1e-15; two are nested, which leaves about 1e-30.
"""

import mpmath
import numpy as np
import pytest

# The operators in 60 digits of the Lie layer's tests.
from lie.exact_lie import DIGITS, STEP, ad, hat, numbers, power_series, rounded

import lissom as ls

LENGTH, RADIUS, DENSITY = 0.4, 0.02, 1100.0
GRAVITY = (1.5, -2.0, -9.0)
PHI = {
    "revolute": (ls.JointRevolute((0.6, 0.0, 0.8)), [(0.6, 0.0, 0.8, 0.0, 0.0, 0.0)]),
    "helical": (ls.JointHelical((0.6, 0.0, 0.8), 0.25), [(0.6, 0.0, 0.8, 0.15, 0.0, 0.2)]),
    "prismatic": (ls.JointPrismatic((0.0, 0.6, 0.8)), [(0.0, 0.0, 0.0, 0.0, 0.6, 0.8)]),
    "cylindrical": (ls.JointCylindrical((0.0, 1.0, 0.0)), [(0, 1, 0, 0, 0, 0), (0, 0, 0, 0, 1, 0)]),
}


def twisted(s):
    """A reference strain whose two Zannah values do not commute."""
    return np.array([2.0 * s, 1.0 - s, 3.0 * s, 1.0, 0.1 * s, -0.2])


def body_on(kind, joint):
    """Model and inertia of a body on a joint."""
    robot = ls.Robot(kind, gravity=GRAVITY)
    com, moments, mass = np.array([0.1, -0.2, 0.3]), np.diag([0.03, 0.04, 0.05]), 1.7
    robot.add_link("body", ls.RigidBody(mass, tuple(com), moments), joint)
    c = np.array([[0, -com[2], com[1]], [com[2], 0, -com[0]], [-com[1], com[0], 0]])
    M = np.block([[moments - mass * c @ c, mass * c], [-mass * c, mass * np.eye(3)]])
    return robot.build(), M


def rigid_case(kind):
    """Model, (Φ₁, Φ₂, ξ*₁, ξ*₂, h, κ) and inertia of a body on a joint."""
    joint, columns = PHI[kind]
    model, M = body_on(kind, joint)
    Phi = np.array(columns, dtype=float).T
    return model, (Phi, Phi, np.zeros(6), np.zeros(6), 1.0, 0.0), M


def rod_case():
    """The same of a rod whose only Gauss point is its middle, with all six strains and the weight of its length."""
    robot = ls.Robot("rod", gravity=GRAVITY)
    basis = ls.BasisLegendre(torsion=0, bending_y=0, bending_z=0, elongation=0, shear_y=0, shear_z=0)
    material = ls.Material(young=1e6, density=DENSITY)
    section = ls.SectionCircle(RADIUS)
    robot.add_link(
        "rod", ls.Rod(LENGTH, section, basis, material, reference_strain=twisted, gauss_points=1, interval_points=2)
    )
    area, second, h = np.pi * RADIUS**2, np.pi * RADIUS**4 / 4, LENGTH / 2
    M = LENGTH * DENSITY * np.diag([2 * second, second, second, area, area, area])
    at = 0.5 * (0.5 + np.array([-1.0, 1.0]) * np.sqrt(3.0) / 6.0)
    return robot.build(), (np.eye(6), np.eye(6), twisted(at[0]), twisted(at[1]), h, np.sqrt(3.0) * h**2 / 12), M


def slope(function, x, d):
    """Derivative of function at x along d."""
    return (function(x + STEP * d) - function(x - STEP * d)) / (2 * STEP)


def operator(x, shift):
    """Σ (ad x)ᵏ / (k + shift)!, 6x6."""
    full = ad(x)
    A, B = power_series(full[:3, :3], full[3:, :3], shift)
    out = numbers(np.zeros((6, 6)))
    out[:3, :3] = out[3:, 3:] = A
    out[3:, :3] = B
    return out


def exact_inverse_dynamics(node, M):
    """τ(q, v, a) by (1) and (2), of arrays of mpmath numbers."""
    Phi1, Phi2, xi1, xi2, h, kappa = (numbers(x) for x in node)
    M, G = numbers(M), numbers((0.0, 0.0, 0.0, *GRAVITY))
    known = {}  # S by q: most derivatives are at the same q

    def omega(q):
        one, two = Phi1.dot(q) + xi1, Phi2.dot(q) + xi2
        return h.item() / 2 * (one + two) + kappa.item() * ad(one).dot(two)

    def subspace(q):
        return known[tuple(q)] if tuple(q) in known else known.setdefault(tuple(q), columns(q))

    def columns(q):
        Z = np.array([slope(omega, q, e) for e in numbers(np.eye(len(q)))]).T
        return operator(-omega(q), 1).dot(Z)

    def tau(q, v, a):
        S = subspace(q)
        eta = S.dot(v)
        eta_dot = S.dot(a) + slope(subspace, q, v).dot(v)
        acceleration = eta_dot - operator(-omega(q), 0).dot(G)
        return S.T.dot(M.dot(acceleration) - ad(eta).T.dot(M.dot(eta)))

    return tau


@pytest.mark.parametrize("kind", [*PHI, "rod"])
def test_derivatives_of_one_node(kind):
    """τ and its derivatives with respect to q, v and a equal the 60-digit ones, at random and near-zero coordinates."""
    model, node, M = rod_case() if kind == "rod" else rigid_case(kind)
    tau = exact_inverse_dynamics(node, M)
    rng = np.random.default_rng(7)
    for scale in (1.0, 1e-9):
        q, v, a = scale * rng.normal(size=model.nq), rng.normal(size=model.nv), rng.normal(size=model.nv)
        found = ls.inverse_dynamics_derivatives(model, q, v, a, elastic=False)
        with mpmath.workdps(DIGITS):
            state = [numbers(x) for x in (q, v, a)]
            value = rounded(tau(*state))
            exact = [_jacobian(tau, state, k) for k in range(3)]
        assert np.allclose(ls.inverse_dynamics(model, q, v, a, elastic=False), value, rtol=0, atol=1e-12 * _size(value))
        for ours, theirs in zip(found, exact, strict=True):
            assert np.abs(ours - theirs).max() <= 1e-10 * _size(theirs)


def exact_group_dynamics(q, M, size):
    """τ(δ, v, a) of a spherical or free joint at q ⊕ δ: S = Φ, the first columns of the identity, in (2)."""
    x = numbers(q[:4])
    w, u = x[0], x[1:4]
    square = w * w + u.dot(u)
    G = numbers(GRAVITY)
    turned = ((w * w - u.dot(u)) * G + 2 * u * u.dot(G) + 2 * w * hat(G).dot(u)) / square  # Rᵀ G
    Phi, M, G_B = numbers(np.eye(6)[:, :size]), numbers(M), np.concatenate([numbers(np.zeros(3)), turned])

    def tau(d, v, a):
        eta = Phi.dot(v)
        acceleration = Phi.dot(a) - operator(-Phi.dot(d), 0).dot(G_B)
        return Phi.T.dot(M.dot(acceleration) - ad(eta).T.dot(M.dot(eta)))

    return tau


@pytest.mark.parametrize("joint", [ls.JointSpherical(), ls.JointFree()], ids=["spherical", "free"])
def test_derivatives_of_one_group_joint(joint):
    """The same for joints that hold a pose: their derivatives along q ⊕ δ at fixed v and a."""
    model, M = body_on("group", joint)
    rng = np.random.default_rng(8)
    q = rng.normal(size=model.nq)
    q[:4] /= np.linalg.norm(q[:4])
    v, a = rng.normal(size=(2, model.nv))
    found = ls.inverse_dynamics_derivatives(model, q, v, a)
    with mpmath.workdps(DIGITS):
        tau = exact_group_dynamics(q, M, model.nv)
        state = [numbers(x) for x in (np.zeros(model.nv), v, a)]
        value = rounded(tau(*state))
        exact = [_jacobian(tau, state, k) for k in range(3)]
    assert np.allclose(ls.inverse_dynamics(model, q, v, a), value, rtol=0, atol=1e-12 * _size(value))
    for ours, theirs in zip(found, exact, strict=True):
        assert np.abs(ours - theirs).max() <= 1e-10 * _size(theirs)


def _jacobian(tau, state, k):
    """Derivative of τ with respect to argument k of the state, in float64."""
    steps = numbers(np.eye(len(state[k])))
    columns = [slope(lambda x: tau(*state[:k], x, *state[k + 1 :]), state[k], e) for e in steps]
    return rounded(np.array(columns).T)


def _size(x):
    """The largest entry, or 1e-3 where everything is nearly zero."""
    return max(np.abs(x).max(), 1e-3)
