"""Native functions on bodies that move linearly, and on their Green strains, against NumPy."""

import numpy as np
import pytest
import warp as wp
from native.native_calls import COUNT, HERE, changed, device, random

from lissom.bodies.integrals import LinearCoefficients
from lissom.forces.green_strains import (
    add_strain_change,
    add_strain_force,
    add_strain_stiffness,
    packed_rows,
    strain_energy,
)
from lissom.lie.types import kernel_options, mat3, vec3
from lissom.model.maps import pair_rows
from lissom.model.tables import TablesStruct
from lissom.passes import deforming
from lissom.passes.columns import Matrix
from lissom.passes.scratch import ScratchStruct

wp.set_module_options(kernel_options())

BEFORE = 2  # coordinates of another body before the one that is looked at


@wp.kernel
def positions(t: TablesStruct, s: ScratchStruct, q: Matrix, n: int, i: int):
    deforming.integrate_positions(t, s, 1, BEFORE, n, i, q)


@wp.kernel
def rates(t: TablesStruct, s: ScratchStruct, q: Matrix, v: Matrix, a: Matrix, n: int, i: int):
    deforming.integrate_rates(t, s, 1, BEFORE + 1, BEFORE, n, i, q, v, a)
    deforming.integrate_slopes(t, s, 1, BEFORE, n, i, v, a)


@wp.kernel
def motion(t: TablesStruct, s: ScratchStruct, v: Matrix, a: Matrix, n: int, i: int):
    deforming.integrate_motion(t, s, 1, BEFORE, n, i, v, a)


@wp.kernel
def inertial_forces(t: TablesStruct, s: ScratchStruct, n: int, acc: vec3, w: vec3, A: mat3, i: int):
    deforming.put_inertial_forces(t, s, 1, n, i, acc, w, A)


@wp.kernel
def own_block(out: Matrix, t: TablesStruct, n: int, A: mat3, w: vec3, weights: vec3, i: int):
    deforming.add_own_block(t, 1, BEFORE, n, BEFORE + n, i, A, w, weights[0], weights[1], weights[2], out)


class Body:
    """Random constants of a body of n coordinates behind another one, as tables and as arrays."""

    def __init__(self, n):
        phi, x = random(50, n, 3), random(50, 3)
        self.n, self.c_j, self.c_0 = n, phi.sum(axis=0), x.sum(axis=0)
        self.P_0, self.P0_j = np.einsum("ka,kb->ab", x, x), np.einsum("ka,kjb->jab", x, phi)
        self.Q = np.einsum("kja,keb->jeab", phi, phi)
        self.cross, self.dot = np.cross(phi[:, :, None], phi[:, None]).sum(axis=0), np.trace(self.Q, axis1=2, axis2=3)
        self.t, self.s = TablesStruct(), ScratchStruct()
        t, first, pairs = self.t.deforming, BEFORE, BEFORE**2
        t.column_start, t.pair_start = (device([0, a, a + b], wp.int32) for a, b in ((first, n), (pairs, n * n)))
        t.c_0, t.P_0 = device([np.zeros(3), self.c_0], vec3), device([np.zeros((3, 3)), self.P_0], mat3)
        for name, dtype, value, shift in (("c_j", vec3, self.c_j, first), ("P0_j", mat3, self.P0_j, first),
                                          ("Q", mat3, self.Q, pairs), ("Q_cross", vec3, self.cross, pairs),
                                          ("Q_dot", wp.float64, self.dot, pairs)):  # fmt: skip
            shape = np.shape(dtype()) if dtype is not wp.float64 else ()
            rows = value.reshape(-1, *shape)
            setattr(t, name, device(np.concatenate([random(shift, *shape), rows]), dtype))
        for name, dtype in (("c_j", vec3), ("P_j", mat3), ("w_j", vec3), ("e", wp.float64), ("Pi_q", mat3),
                            ("b_q", vec3), ("inertial", wp.float64)):  # fmt: skip
            setattr(self.s.deforming, name, wp.zeros((COUNT, first + n), dtype=dtype, device="cpu"))
        for name, dtype in (("c", vec3), ("P", mat3), ("c_dot", vec3), ("Pi", mat3), ("c_ddot", vec3), ("b", vec3)):
            setattr(self.s.deforming, name, wp.zeros((COUNT, 2), dtype=dtype, device="cpu"))
        known = LinearCoefficients(0.0, self.c_0, self.P_0, self.c_j, self.P0_j, self.Q, None, None, None)
        rows, shift = pair_rows(known), 8
        t.pair_row_start, t.pair_rows = device([0, shift], wp.int32), device(np.concatenate([random(shift), rows]))
        self.c_v, self.b_v = random(2, COUNT, 2, 3)
        self.s.deforming.c_v, self.s.deforming.b_v = device(self.c_v, vec3), device(self.b_v, vec3)

    def put(self, name, value):
        """Random integrals of this body and the instance that is asked for."""
        getattr(self.s.deforming, name).numpy()[HERE, BEFORE:] = value
        return value

    def found(self, name):
        """Results of a kernel for this body and the chosen instance; all others must be unchanged."""
        rows = getattr(self.s.deforming, name).numpy()
        first = 1 if rows.shape[1] == 2 else BEFORE
        kept = rows[HERE, first:].copy()
        rows[HERE, first:] = 0.0
        assert not rows.any(), f"{name}: more has changed than was asked for"
        return kept[0] if first == 1 else kept


def moved(c_j, P_j, v, a):
    """(3) of a body whose points move linearly."""
    turned = np.einsum("j,jab->ab", a, P_j)
    around = np.array([turned[1, 2] - turned[2, 1], turned[2, 0] - turned[0, 2], turned[0, 1] - turned[1, 0]])
    return {"c_dot": v @ c_j, "Pi": np.einsum("j,jab->ab", v, P_j), "c_ddot": a @ c_j, "b": around}


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 20])  # rows shorter and longer than blocks of eight and of thirty-two
def test_sums_over_pairs(n):
    """Purpose: all integrals of linear motions are the sums that (1) and (2) say, whatever the number of shapes."""
    body, (q, v, a) = Body(n), random(3, COUNT, BEFORE + n)
    x, x_dot, x_ddot = q[HERE, BEFORE:], v[HERE, BEFORE:], a[HERE, BEFORE:]
    wp.launch(positions, dim=1, inputs=[body.t, body.s, device(q), n, HERE], device="cpu")
    P_j = body.P0_j + np.einsum("e,ejab->jab", x, body.Q)
    across = np.einsum("j,jab->ab", x, body.P0_j)
    P = body.P_0 + across + across.T + np.einsum("j,e,jeab->ab", x, x, body.Q)
    placed = {"P_j": P_j, "c_j": body.c_j, "c": body.c_0 + x @ body.c_j, "P": P}
    for name, values in placed.items():
        np.testing.assert_allclose(body.found(name), values, rtol=0, atol=1e-12)
    q = np.concatenate([random(COUNT, 1), q], axis=1)
    wp.launch(rates, dim=1, inputs=[body.t, body.s, device(q), device(v), device(a), n, HERE], device="cpu")
    Pi_q = np.einsum("e,ejab->jba", x_dot, body.Q)
    expected = {"w_j": np.einsum("e,eja->ja", x_dot, body.cross), "e": body.dot @ x_ddot, "Pi_q": Pi_q,
                "b_q": np.einsum("e,jea->ja", x_ddot, body.cross), **placed, **moved(c_j=body.c_j, P_j=P_j, v=x_dot,
                a=x_ddot)}  # fmt: skip
    for name, values in expected.items():
        np.testing.assert_allclose(body.found(name), values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [1, 9])
def test_motion(n):
    """Purpose: sums over coordinates and what stands for no acceleration are those of (3)."""
    body, (v, a) = Body(n), random(2, COUNT, BEFORE + n)
    c_j, P_j = body.put("c_j", random(n, 3)), body.put("P_j", random(n, 3, 3))
    wp.launch(motion, dim=1, inputs=[body.t, body.s, device(v), device(a), n, HERE], device="cpu")
    expected = moved(c_j=c_j, P_j=P_j, v=v[HERE, BEFORE:], a=a[HERE, BEFORE:])
    expected["c_ddot"] += body.c_v[HERE, 1]
    expected["b"] += body.b_v[HERE, 1]
    for name, values in expected.items():
        np.testing.assert_allclose(body.found(name), values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [1, 9])
def test_inertial_forces(n):
    """Purpose: each coordinate needs the sum of three products, with its own integrals."""
    body, acc, w, A = Body(n), random(3), random(3), random(3, 3)
    c_j, P_j, w_j = (body.put(name, random(n, *shape)) for name, shape in (("c_j", [3]), ("P_j", [3, 3]), ("w_j", [3])))
    expected = body.put("e", random(n)) + c_j @ acc + 2.0 * w_j @ w
    wp.launch(inertial_forces, dim=1, inputs=[body.t, body.s, n, vec3(*acc), vec3(*w), mat3(A), HERE], device="cpu")
    expected += np.einsum("ab,jab->j", A, P_j)
    np.testing.assert_allclose(body.found("inertial"), expected, rtol=0, atol=1e-12)


def test_own_block():
    """Purpose: each weight alone adds its term, to the block of the body and nowhere else."""
    n = 7
    body, out, A, w = Body(n), random(COUNT, (BEFORE + n) ** 2), random(3, 3), random(3)
    parts = (np.einsum("ab,ejab->je", A, body.Q), 2.0 * np.einsum("a,eja->je", w, body.cross), body.dot)
    for k, part in enumerate(parts):
        weights = vec3(*(2.5 * (np.arange(3) == k)))
        (found,) = changed(own_block, [out], body.t, n, mat3(A), vec3(*w), weights)
        expected = out[HERE].reshape(BEFORE + n, -1).copy()
        expected[BEFORE:, BEFORE:] += 2.5 * part
        np.testing.assert_allclose(found.reshape(BEFORE + n, -1), expected, rtol=0, atol=1e-12)


@wp.kernel
def force(tau: Matrix, number: Matrix, first: int, n: int, q: Matrix, v: Matrix, i: int):
    add_strain_force(number, first, n, 1, 2, i, q, v, tau)


@wp.kernel
def energy(out: Matrix, number: Matrix, first: int, n: int, q: Matrix, i: int):
    out[i, 0] = strain_energy(number, first, n, 1, i, q)


@wp.kernel
def stiffness(
    out: Matrix, number: Matrix, first: int, n: int, q: Matrix, v: Matrix, by_q: wp.float64, by_v: wp.float64, i: int
):
    add_strain_stiffness(number, first, n, 1, 2, n + 2, i, q, v, by_q, by_v, out)


@wp.kernel
def change(tau: Matrix, number: Matrix, first: int, n: int, q: Matrix, v: Matrix, dq: Matrix, dv: Matrix, i: int):
    add_strain_change(number, first, n, 1, 2, i, q, v, dq, dv, tau)


def strains(x):
    """ε of green_strains (1), and ∂ε/∂θ."""
    j, k = np.triu_indices(len(x))
    half, one = np.where(j == k, 0.5, 1.0), np.eye(len(x))
    Z = half[:, None] * (one[j] * x[k][:, None] + x[j][:, None] * one[k])
    return np.concatenate([x, half * x[j] * x[k]]), np.concatenate([one, Z])


@pytest.mark.parametrize(("n", "eta"), [(1, 0.3), (4, 0.3), (5, 0.3), (13, 0.3), (13, 0.0), (16, 0.3), (32, 0.3)])
def test_green_strains(n, eta):
    """Purpose: force, energy and derivatives are those of U = ½ εᵀ𝒦ε and its damping, for sizes that fill blocks and
    that do not, with derivatives that are symmetric and that are not."""
    size = n + n * (n + 1) // 2
    K = random(size, size)
    K, q, v, dq, dv = K @ K.T, *random(4, COUNT, n + 2)
    number, first = packed_rows([(0.0, np.ones((2, 2))), (eta, K)])
    x, y = q[HERE, 1 : 1 + n], v[HERE, 2:]

    def exact(x, y):
        strain, Z = strains(x)
        return Z.T @ K @ (strain + eta * Z @ y)

    common = device(number), first[1], n, device(q)
    (found,) = changed(energy, [random(COUNT, 1)], *common)
    np.testing.assert_allclose(found, 0.5 * strains(x)[0] @ K @ strains(x)[0], rtol=1e-12)
    tau = random(COUNT, n + 2)
    (found,) = changed(force, [tau], *common, device(v))
    scale = np.abs(exact(x, y)).max()
    np.testing.assert_allclose(found - tau[HERE], np.r_[0.0, 0.0, exact(x, y)], rtol=0, atol=1e-13 * scale)
    h, one = 1e-2, np.eye(n)  # differences of order 4 are exact for cubic forces
    by_q = np.array([8 * (exact(x + h * e, y) - exact(x - h * e, y)) - exact(x + 2 * h * e, y) +
                     exact(x - 2 * h * e, y) for e in one]).T / (12 * h)  # fmt: skip
    by_v = eta * strains(x)[1].T @ K @ strains(x)[1]
    for weights in ((2.0, 0.0), (0.0, 3.0), (2.0, 3.0)):
        out = random(COUNT, (n + 2) ** 2)
        (found,) = changed(stiffness, [out], *common, device(v), *weights)
        added = np.zeros((n + 2, n + 2))
        added[2:, 2:] = weights[0] * by_q + weights[1] * by_v
        np.testing.assert_allclose(found - out[HERE], added.ravel(), rtol=0, atol=1e-11 * scale)
    (found,) = changed(change, [tau], *common, *(device(part) for part in (v, dq, dv)))
    along = by_q @ dq[HERE, 2:] + by_v @ dv[HERE, 2:]
    np.testing.assert_allclose(found - tau[HERE], np.r_[0.0, 0.0, along], rtol=0, atol=1e-11 * scale)
