"""A heavy chain: the limit of vanishing bending stiffness."""

from math import sqrt

import numpy as np
import pytest
from closed_form.beams import DOWN, beam, tip_pose
from scipy.linalg import eigh
from scipy.special import jn_zeros

import lissom as ls

GRAVITY = 9.81
LENGTH = 1.2
INERTIA = 0.7 * np.array([0.0, 0, 0, 1, 1, 1])


def hanging_chain(EI, points=64):
    """A chain hung from a hinge, able to swing in the xz plane only."""
    robot = beam(ls.BasisLegendre(bending_y=10), EI=EI, inertia=INERTIA, gravity=(0, 0, -GRAVITY), length=LENGTH,
                 joint=ls.JointRevolute((0, 1, 0)), placement=DOWN, gauss_points=points)  # fmt: skip
    return robot.build()


def frequencies(model):
    """ω of small swings about hanging straight down [rad/s]."""
    q = model.neutral()
    K, M = ls.tangent_stiffness(model, q), ls.mass_matrix(model, q)
    np.testing.assert_allclose(K, K.T, rtol=0, atol=1e-8 * np.abs(K).max())
    d = np.sqrt(np.diag(M))
    return np.sqrt(eigh((K + K.T) / 2 / np.outer(d, d), M / np.outer(d, d), eigvals_only=True))


def test_chain_without_stiffness_swings_at_the_zeros_of_bessel():
    """ω_n = (j_0n / 2) √(g/L), with all stiffness from gravity.

    The modes J₀(j_0n √(1 − s)) are analytic and order 10 holds the first four; the error is that of the Magnus step,
    which falls short of ½∫θ² (test_buckling) and falls with the fourth power of the widest Gauss gap, 1/(n + ½).
    Without that term the next is smaller by (kh)² < 0.03 with the fourth mode's wave number k < j₀₄/L: below 2e-8 of ω.
    """
    coarse, fine = (frequencies(hanging_chain(0.0, points))[:4] for points in (64, 128))
    expected = jn_zeros(0, 4) / 2 * sqrt(GRAVITY / LENGTH)
    np.testing.assert_allclose(fine, expected, rtol=1e-6)
    ratio = (128.5 / 64.5) ** 4
    np.testing.assert_allclose(fine + (fine - coarse) / (ratio - 1), expected, rtol=2e-8)


def test_stiffness_raises_the_frequencies_from_below():
    """Bending stiffness adds to gravity's: every frequency rises with EI, from the chain's up to the hinged beam's.

    With EI → ∞ the first mode is the rigid rod's, √(3g/2L), and stays below it for any EI by Rayleigh's principle.
    """
    weight = INERTIA[3] * GRAVITY * LENGTH**3
    rows = np.array([frequencies(hanging_chain(ratio * weight))[:4] for ratio in (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1e4)])
    assert np.all(np.diff(rows, axis=0) > 0)
    assert rows[-1, 0] == pytest.approx(sqrt(1.5 * GRAVITY / LENGTH), rel=1e-4)


def test_limp_cantilever_hangs_down():
    """A limp beam clamped level hangs straight down but for a boundary layer of the size ℓ = √(EI/W).

    There the tension is the weight W, EI ψ'' = W sin ψ with ψ the angle from the vertical, so ψ' = −(2/ℓ) sin ψ/2,
    and the tip comes to x = √2 ℓ, z = −L + (2 − √2) ℓ, each to a part ℓ/L since the tension falls by that part over
    the layer. So the error relative to ℓ is of order ℓ/L and halves from one beam to the next, up to its own next
    order, again ℓ/L.
    """
    weight = INERTIA[3] * GRAVITY * LENGTH
    basis = ls.BasisLegendre(bending_y=32)
    layers = np.array([0.04, 0.02, 0.01])
    errors = []
    q = None
    for layer in layers:
        EI = weight * (layer * LENGTH) ** 2
        model = beam(basis, EI=EI, inertia=INERTIA, gravity=(0, 0, -GRAVITY), length=LENGTH, gauss_points=80).build()
        q = ls.solve_statics(model, q0=q).q
        x, _, z = tip_pose(model, q)[:3, 3]
        ell = layer * LENGTH
        errors.append([x / (sqrt(2) * ell) - 1, (z + LENGTH) / ((2 - sqrt(2)) * ell) - 1])
    errors = np.abs(errors)
    assert np.all(errors < layers[:, None])
    np.testing.assert_allclose(errors[:-1] / errors[1:], 2.0, rtol=0.1)
