"""Stability where coordinates are unlike: thin rods, damping, coordinates that nothing holds."""

import mpmath as mp
import numpy as np
import pytest
from statics.cantilevers import beck_load, loaded

import lissom as ls
from lissom.statics.stability import growing_exponents

BENDING = ls.BasisLegendre(bending_y=10)
EVERY_WAY = ls.BasisLegendre(bending_y=10, bending_z=10, torsion=3, elongation=6, shear_y=6, shear_z=6)
MAGNUS = 3.6e-9  # see test_continuation


def exact_growing(K, D, M):
    """The growing s of s² M + s D + K with sixty digits."""
    n = len(K)
    with mp.workdps(60):
        inverse, A = mp.inverse(mp.matrix(M.tolist())), mp.zeros(2 * n)
        A[:n, n:] = mp.eye(n)
        A[n:, :n], A[n:, n:] = -inverse * mp.matrix(K.tolist()), -inverse * mp.matrix(D.tolist())
        s = mp.eig(A, left=False, right=False)
        return np.array([complex(x) for x in s if x.real > 1e-12 * abs(x)])


@pytest.mark.parametrize("damped", [False, True])
def test_frequencies_six_decades_apart(damped):
    """As many exponents grow as sixty digits say, and with the same real parts, however unlike the coordinates are."""
    rng, n, seen = np.random.default_rng(3), 4, []
    for _ in range(25):
        K, M, skew = rng.normal(size=(3, n, n))
        heavy = 10.0 ** rng.uniform(-3, 3, n)
        stiff = heavy * 10.0 ** rng.uniform(-3, 3, n)
        K = (K @ K.T + 0.3 * np.eye(n) + rng.choice([0.3, 1.0, 3.0]) * (skew - skew.T)) * np.outer(stiff, stiff)
        M = (M @ M.T + np.eye(n)) * np.outer(heavy, heavy)
        D = np.diag(10.0 ** rng.uniform(-4, 0) * stiff**2) if damped else np.zeros((n, n))
        found, exact = growing_exponents(K, D, M, np.diag(np.diag(K))), exact_growing(K, D, M)
        assert len(found) == len(exact)
        np.testing.assert_allclose(np.sort(np.real(found)), np.sort(np.real(exact)), rtol=1e-3)
        seen.append(len(exact))
    assert 0 in seen and 2 in seen


@pytest.mark.parametrize("EA", [1e6, 1e10])
def test_thin_round_column(EA):
    """It buckles at P_E (1 + P_E/EA − P_E/GA) up to squares, in two planes at once, however thin it is."""
    model = loaded(EVERY_WAY, force=(-1.0, 0, 0), EA=EA, GA=EA / 3)
    (event,) = ls.continuation(model, factor_range=(0.0, 4.0), step=0.2).events
    euler = np.pi**2 / 4
    assert (event.kind, event.count) == ("bifurcation", 2)
    assert -1e-10 < event.factor / euler - (1 - 2 * euler / EA) < MAGNUS


def test_thin_beck_column():
    """A thin rod that stretches, shears and twists begins to flutter where the inextensible one does."""
    EA = 1e10
    model = loaded(EVERY_WAY, force=(-1.0, 0, 0), frame="body", EA=EA, GA=EA, inertia=(2 / EA, 1 / EA, 1 / EA, 1, 1, 1))
    branch = ls.continuation(model, factor_range=(0.0, 40.0), step=0.2)
    (event,) = branch.events
    assert (event.kind, event.count) == ("flutter", 4)
    assert event.factor == pytest.approx(beck_load(), rel=5e-7)
    np.testing.assert_array_equal(branch.unstable_count, 4 * (branch.factor > event.factor))


def tangential(basis, joint, EA, damping):
    """Flutter load of a cantilever under a tangential force, on a joint."""
    robot = ls.Robot("tangential", gravity=(0, 0, 0))
    stiffness = np.array([1, 1, 1, EA, EA, EA])
    section = ls.SectionGeneral(stiffness, inertia=(2 / EA, 1 / EA, 1 / EA, 1, 1, 1), damping=damping * stiffness)
    robot.add_link("beam", ls.Rod(1.0, section, basis, gauss_points=48), joint)
    robot.add_point_load("tip", "beam", force=(-1.0, 0, 0), frame="body")
    (event,) = ls.continuation(robot.build(), factor_range=(0.0, 30.0), step=0.2).events
    assert event.kind == "flutter"
    return event.factor


@pytest.mark.parametrize("damping", [0.0, 1e-3])
def test_thin_rod_that_may_spin(damping):
    """A rod that may turn about its own axis flutters as the clamped inextensible one does: nothing holds that turn, so
    its exponents are 0 twice over, and do not grow."""
    clamped = tangential(BENDING, ls.JointFixed(), 1e9, damping)
    assert tangential(EVERY_WAY, ls.JointRevolute((1, 0, 0)), 1e9, damping) == pytest.approx(clamped, rel=1e-7)
