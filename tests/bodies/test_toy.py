"""The toy example of Pustina 2025, a planar body of constant curvature, unit length, radius and density, by SymPy.

Everything is derived afresh from f and compared with the integrals. The printed formulas are right for f, the tip's
transformation, the centre of mass and the projectors. Elsewhere:

- p in the tip's frame has q where it needs q (1 − x_3);
- the gravity terms have the sign of a gravity of (0, 0, −g_0), not of the (0, 0, g_0) of the text;
- F* and π* have the sign of mass times acceleration, without the minus of (39) and (31); F* lacks terms besides, and
  does not stay finite at q = 0; T* has −2 times the right coefficient at q̇², and another factor of q̈;
- π* leaves out the thickness of the sections, of which it needs the term π q̈/24;
- the visco-elastic force π/4 (q − q̇) comes out as π/2 q of W = C (I_1 − 3), and as π (1 + q²/2) q̇ of a damping with
  the same shear modulus, half of that with the paper's own damping; both act against the motion.
"""

from functools import lru_cache

import numpy as np
import pytest

from lissom.bodies.body import DeformableBody
from lissom.bodies.domains import DomainCylinder
from lissom.bodies.kinematics import KinematicsFunction
from lissom.bodies.materials import HyperelasticNeoHookean
from lissom.bodies.strains import KinematicsStrain

sp = pytest.importorskip("sympy")
pytest.importorskip("jax")
LINE = KinematicsStrain.constant_curvature(1.0, planar=True)
BODY = DeformableBody(
    KinematicsFunction(lambda x, q: LINE.map(x, -q), 1),  # the paper bends towards −x_1
    DomainCylinder(1.0, 1.0, 4, degree_along=34),
    HyperelasticNeoHookean(1.0, damping_time=1.0),  # not for motions like this one: only its integrals are looked at
    density=1.0,
    tip=("tip", "tip_y", "tip_z"),
)
PAPER = [1, 2, 0]  # its axes x_1, x_2, x_3 are our y, z, x
STATES = [(0.6, 1.3, -0.7), (1.7, -0.4, 2.0), (2.9, 0.8, 0.3)]


@lru_cache(maxsize=1)
def derived():
    """Names and functions of (q, q̇, q̈) of SymPy's results in the frame of the tip. Of each integral over the body the
    integrand along s is given."""
    q, v, a, s, x1 = sp.symbols("q v a s x1", positive=True)
    line = sp.Matrix([(sp.cos(q * s) - 1) / q, 0, sp.sin(q * s) / q])
    f = line + x1 * sp.Matrix([sp.cos(q * s), 0, sp.sin(q * s)])
    R = sp.Matrix([[sp.cos(q), 0, -sp.sin(q)], [0, 1, 0], [sp.sin(q), 0, sp.cos(q)]])
    t = line.subs(s, 1)
    local = (R.T * (f - t)).applyfunc(sp.expand)
    acceleration = (R.T * (f.diff(q) * a + f.diff(q, 2) * v**2)).applyfunc(sp.expand)

    def over_disk(e):
        """∫ over the unit disk, where ∫x_1² is π/4 and odd powers vanish."""
        e = sp.expand(e)
        return e.coeff(x1, 0) * sp.pi + e.coeff(x1, 2) * sp.pi / 4

    found = {
        "R": R,
        "t": t,
        "v": R.T * t.diff(q),
        "com along s": local.applyfunc(over_disk) / sp.pi,
        "com_q along s": local.diff(q).applyfunc(over_disk) / sp.pi,
        "a along s": acceleration.applyfunc(over_disk),
        "turn along s": sp.Matrix([over_disk(local[2] * acceleration[0] - local[0] * acceleration[2])]),
        "pi along s": sp.Matrix([over_disk((local.diff(q).T * acceleration)[0])]),
    }
    return {name: sp.lambdify((q, v, a, s), value, "numpy") for name, value in found.items()}


def expected(*state):
    """SymPy's results at a state, their integrals along s by Gauss's rule of 40 points, exact to round-off here."""
    x, weights = np.polynomial.legendre.leggauss(40)
    found = {}
    for name, function in derived().items():
        if name.endswith(" along s"):
            values = (w / 2 * np.asarray(function(*state, (1 + y) / 2), dtype=np.float64) for y, w in zip(x, weights))
            found[name.removesuffix(" along s")] = sum(values)
        else:
            found[name] = np.asarray(function(*state, 0.0), dtype=np.float64)
    R, com, F = found["R"], found["com"][:, 0], found["a"][:, 0]
    return {name: found[name] for name in ("R", "t", "com", "v")} | {
        "F": -found["a"],
        "T": -(found["turn"][0, 0] - (com[2] * F[0] - com[0] * F[2])),
        "pi": -found["pi"][0, 0],
        "F_gravity": np.pi * R.T @ np.array([[0.0], [0.0], [1.0]]),
        "pi_gravity": np.pi * found["com_q"][:, 0] @ R.T @ (0.0, 0.0, 1.0),
    }


@lru_cache(maxsize=4)
def ours(q, v, a):
    """The same from the library, in the paper's axes."""
    s = BODY.integrals.values(np.array([q]), np.array([v]))
    g, S = BODY.tip_pose.motion(np.array([q]))
    R, t, turn = g[:3, :3], g[:3, 3], g[:3, :3] @ S[:3, 0]
    slide = R @ S[3:, 0]
    P = s.P_j[0]
    cross = np.array([P[1, 2] - P[2, 1], P[2, 0] - P[0, 2], P[0, 1] - P[1, 0]])
    c_ddot, b = a * s.c_j[0] + s.c_v, a * cross + s.b_v
    e = s.M[0, 0] * a + s.e_v[0]
    com_rate = s.c_j[0] / s.mass - slide - np.cross(turn, s.c / s.mass - t)  # of it in the frame of the tip
    down = np.array([1.0, 0.0, 0.0])  # the paper's Z
    return {
        "R": R[np.ix_(PAPER, PAPER)],
        "t": t[PAPER, None],
        "com": (R.T @ (s.c / s.mass - t))[PAPER, None],
        "v": S[3:, 0][PAPER, None],
        "F": -(R.T @ c_ddot)[PAPER, None],
        "T": -(b - np.cross(s.c, c_ddot) / s.mass)[2],
        "pi": -(e - slide @ c_ddot - turn @ (b - np.cross(t, c_ddot))),
        "F_gravity": s.mass * (R.T @ down)[PAPER, None],
        "pi_gravity": s.mass * com_rate @ down,
        "omega": S[:3, 0][PAPER],
        "elastic": s.g[0],
        "damping": s.d[0],
    }


@pytest.mark.parametrize("state", STATES)
def test_derived_afresh(state):
    """Transformation, centre of mass, projectors, inertial terms and gravity are those that SymPy derives."""
    for name, value in expected(*state).items():
        np.testing.assert_allclose(ours(*state)[name], value, rtol=1e-10, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("state", STATES)
def test_visco_elastic_force(state):
    """π/2 q and π (1 + q²/2) q̇, from I₁ = (1 + q x₁)² + 2 and Ė = (1 + q x₁) x₁ q̇."""
    q, v, _ = state
    assert ours(*state)["elastic"] == pytest.approx(np.pi / 2 * q, rel=1e-12)
    assert ours(*state)["damping"] == pytest.approx(np.pi * (1 + q * q / 2) * v, rel=1e-12)


@pytest.mark.parametrize("state", STATES)
def test_what_the_paper_prints(state):
    """The printed terms that are right are ours; of the others it is shown how far they are off."""
    q, v, a = state
    s, c = np.sin(q), np.cos(q)
    found = ours(*state)
    np.testing.assert_allclose(found["com"][:, 0], (-(q - s) / q**2, 0, (c - 1) / q**2), atol=1e-12)
    np.testing.assert_allclose(found["v"][:, 0], ((c - 1) / q**2, 0, (q - s) / q**2), atol=1e-12)
    np.testing.assert_allclose(found["omega"], (0, -1, 0), atol=1e-12)
    np.testing.assert_allclose(found["F_gravity"][:, 0], np.pi * np.array([s, 0, c]), atol=1e-12)  # printed with −
    assert found["pi_gravity"] == pytest.approx(np.pi * (2 * c + q * s - 2) / q**3, rel=1e-10)  # printed with −
    printed = np.pi / (6 * q**6) * (18 * a * q**2 - a * q**4 + 60 * v**2 * s - 24 * a * q * s + 6 * a * q**2 * c
                                    - 12 * v**2 * q * c - 48 * v**2 * q + 4 * v**2 * q**3)  # fmt: skip
    assert found["pi"] - np.pi / 24 * a == pytest.approx(-printed, rel=1e-9)
    third = np.pi * (v**2 * (q**2 + 6 * c - 6) + q * s * (2 * v**2 - a * q) - 2 * a * q * c) / q**4
    assert found["F"][2, 0] == pytest.approx(-third - 2 * np.pi * a / q**3, rel=1e-9)
