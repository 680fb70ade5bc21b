"""Stability where coordinates are unlike: thin rods, damping, coordinates that nothing holds."""

import mpmath as mp
import numpy as np
import pytest
import scipy
from statics.cantilevers import beck_load, loaded

import lissom as ls
from lissom.statics.blas_threads import LARGE, _libraries, one_thread
from lissom.statics.stability import Reduced, _is_surely_damped, growing_exponents, negative_eigenvalues

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


def test_negative_eigenvalues_by_a_factorisation():
    """Purpose: L Δ Lᵀ counts as many negative eigenvalues as there are, with blocks of two rows too."""
    rng, blocks = np.random.default_rng(5), 0
    for _ in range(200):
        n = rng.integers(1, 12)
        A = rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.6)
        K = A + A.T
        K[np.diag_indices(n)] *= rng.choice([0.0, 1.0])
        K += 1e-3 * np.eye(n)
        blocks += (scipy.linalg.lapack.dsytrf(K, lower=1)[1] < 0).any()
        assert negative_eigenvalues(K) == (np.linalg.eigvalsh(K) < 0.0).sum()
    assert blocks > 50


def test_damping_that_proves_stability():
    """Purpose: where the factorisations say that damping outweighs circulatory forces, sixty digits find no growing
    mode; they say so of a third of these systems, and never without damping."""
    rng, said, stable = np.random.default_rng(7), 0, 0
    for k in range(60):
        n = 4
        K, M, D, skew = rng.normal(size=(4, n, n))
        K, M = K @ K.T + 0.3 * np.eye(n), M @ M.T + np.eye(n)
        D = 10.0 ** rng.uniform(-2, 0.5) * (D @ D.T + 0.3 * np.eye(n))
        K = K + 10.0 ** rng.uniform(-2.5, 0.5) * (skew - skew.T)
        own = np.diag(np.diag(K))
        none = len(exact_growing(K, D, M)) == 0
        proved = _is_surely_damped(Reduced(np.eye(n), K, D, M, own))
        assert none or not proved, k
        said, stable = said + proved, stable + none
        assert not _is_surely_damped(Reduced(np.eye(n), K, 0.0 * D, M, own))
        assert not _is_surely_damped(Reduced(np.eye(n), K, D + 0.1 * (skew - skew.T), M, own))  # gyroscopic
    assert stable < 60 and said > 0.3 * stable


def turning_load(viscosity):
    """A rod under its weight and a moment about a fixed axis at its tip, which has no potential in space."""
    robot = ls.Robot("turned")
    material = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=viscosity)
    basis = ls.BasisLegendre(torsion=1, bending_y=2, bending_z=2, elongation=0)
    robot.add_link("rod", ls.Rod(0.3, ls.SectionCircle(0.01), basis, material))
    robot.add_point_load("turn", "rod", moment=(0.004, 0.003, -0.002))
    return robot.build()


EIGENVALUES = [(np.linalg, ("eig", "eigvals", "eigh", "eigvalsh", "svd")),
               (scipy.linalg, ("eig", "eigvals", "eigh", "eigvalsh", "svd", "null_space"))]  # fmt: skip


def test_no_eigenvalues_unless_asked(monkeypatch):
    """Purpose: with stable=False no eigenvalue is computed, nor with stable=True where damping proves stability; what
    is computed later is what the exponents say."""
    undamped, damped = turning_load(0.0), turning_load(1e4)
    calls = []
    for module, names in EIGENVALUES:
        for name in names:
            own = getattr(module, name)

            def counted(*args, own=own, name=name, **options):
                calls.append(name)
                return own(*args, **options)

            monkeypatch.setattr(module, name, counted)
    found = ls.solve_statics(undamped, stable=False)
    proved = ls.solve_statics(damped)
    assert calls == [] and proved.is_stable and calls == []
    K = ls.tangent_stiffness(undamped, found.q)
    assert np.abs(K - K.T).max() > 0.05 * np.diag(K).min()
    M, flutter = ls.mass_matrix(undamped, found.q), 0
    own = np.linalg.eigvals(np.linalg.solve(M, K))
    flutter = int(2 * (np.abs(own.imag) > 1e-6 * np.abs(own)).sum() // 2 + (own.real < 0).sum())
    calls.clear()
    assert found.unstable_count == flutter and calls
    assert found.is_stable == (flutter == 0)
    calls.clear()
    assert found.unstable_count == flutter and not calls  # kept


def test_stability_on_demand_of_a_batch():
    """Purpose: rows and models of a batch have the stability that each has alone."""
    robot = ls.Robot("column", gravity=(0.0, 0.0, 0.0))
    section = ls.SectionGeneral((1.0, 1.0, 1.0, 1e4, 1e4, 1e4), inertia=(1e-3, 1e-3, 1e-3, 1.0, 1.0, 1.0))
    robot.add_link("rod", ls.Rod(1.0, section, ls.BasisLegendre(bending_y=4)))
    robot.add_wrench_input("press", "rod", directions=(0, 0, 0, -1, 0, 0), frame="world")
    model = robot.build()
    u = np.array([[1.0], [2.0], [3.0], [30.0]])
    found = ls.solve_statics(model, u=u, stable=False)
    euler = (np.pi / 2 * np.array([1, 3])) ** 2
    np.testing.assert_array_equal(found.unstable_count, (u > euler).sum(axis=1))
    np.testing.assert_array_equal(found.is_stable, found.unstable_count == 0)
    for row, count in zip(u, found.unstable_count):
        assert ls.solve_statics(model, u=row, stable=False).unstable_count == count


def test_one_thread_for_small_matrices():
    """Purpose: BLAS has one thread inside, nested or not, as many as before outside, and all of them for large
    matrices."""
    threads = [get() for get, _ in _libraries()]

    def now():
        return [get() for get, _ in _libraries()]

    with one_thread(LARGE):
        assert now() == threads
    with one_thread(10):
        assert now() == [1] * len(threads)
        with pytest.raises(ZeroDivisionError), one_thread(20):
            raise ZeroDivisionError
        assert now() == [1] * len(threads)
    assert now() == threads
