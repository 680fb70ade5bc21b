"""The single-rod benches of Boyer 2023: constants of free flight, and errors that must fall with the step."""

import importlib.util
import sys
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from gallery.examples import example

import lissom as ls

KEPT = ("linear momentum off the impulse", "change of angular momentum", "spread of energy", "centre off its line")


@lru_cache(maxsize=1)
def rods():
    """The example as a module."""
    return example("single_rods")


@lru_cache(maxsize=1)
def planar():
    """The methods without the library, as a module."""
    path = Path(__file__).parents[2] / "benchmarks" / "planar_rod.py"
    spec = importlib.util.spec_from_file_location("planar_rod_methods", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def alone(name, stiffer=1.0, n_modes=3):
    """A cantilever without the library."""
    data = {key: value for key, value in rods().CANTILEVERS[name].items() if key != "force"}
    data["young"] *= stiffer
    return planar().PlanarRod(**data, n_modes=n_modes)


def in_plane(model, q):
    """Tips (..., 2) down and aside."""
    return ls.frame_pose(model, q, "rod")[..., [2, 0], 3] * (-1, 1)


def test_all_four_rods_and_their_picture(tmp_path):
    """At steps of 10 ms: energies and momenta within the error of the scheme's order, and a picture.

    The soft rod in flight turns at 3 rad/s: (ω h)² = 1e-3 is the size of the errors, and the momentum that has turned
    by (ω h)² ω / 12 for 10 s, 2e-3, takes the centre of mass 4e-3 of its length from the line.
    """
    import matplotlib

    matplotlib.use("Agg")
    path = tmp_path / "rods.png"
    numbers = rods().main(out=str(path))
    assert path.stat().st_size > 50_000
    assert numbers["soft cantilever"]["largest rise of energy"] < 1e-5
    assert abs(numbers["soft cantilever"]["energy at the end"] - 1.0) < 1e-4
    assert numbers["stiff cantilever"]["largest rise of energy"] < 0.05, "its vibrations are not resolved"
    assert numbers["stiff cantilever"]["energy at the end"] < 1.0
    soft, stiff = numbers["soft flying rod"], numbers["stiff flying rod"]
    assert [soft[key] < bound for key, bound in zip(KEPT, (3e-3, 3e-4, 1e-4, 5e-3))] == [True] * 4, soft
    assert all(stiff[key] < 1e-4 for key in KEPT), stiff
    for rod in (soft, stiff):
        assert abs(rod["trend of energy"]) < rod["spread of energy"], "no more than the end of an oscillation"


@pytest.mark.parametrize("name", ["soft", "stiff"])
def test_flight_errors_are_of_second_order(name):
    """Half the step leaves a quarter of the errors of linear momentum and of the path of the centre of mass."""
    whole, half = (rods().fly(name, dt)[0] for dt in (0.01, 0.005))
    for key in (KEPT[0], KEPT[3]):
        assert whole[key] / half[key] == pytest.approx(4.0, rel=0.1), key


@pytest.mark.parametrize("name", ["soft", "stiff"])
def test_bdf_flies_without_drift(name):
    """By bdf momenta and energy stay within 100 rtol, and the centre within 100 rtol of the length of its line.

    The loads have corners at 2.5 and 5 s, which the adaptive steps have to find.
    """
    rtol = 1e-7
    numbers = rods().fly(name, None, method="bdf", rtol=rtol, atol=0.01 * rtol)[0]
    assert all(numbers[key] < 100 * rtol for key in KEPT), numbers


def test_cantilevers_start_from_equilibrium():
    """Under the force the start has no acceleration, without it the tip goes back; the stiff rod is a hook."""
    module = rods()
    for name, data in module.CANTILEVERS.items():
        free, q0 = module.cantilever(name)
        pull = ls.frame_jacobian(free, q0, "rod").T @ np.r_[0.0, 0.0, 0.0, _in_tip_axes(free, q0, data["force"])]
        needed = ls.inverse_dynamics(free, q0, np.zeros(free.nv), np.zeros(free.nv))
        np.testing.assert_allclose(needed, pull, rtol=0, atol=1e-8 * np.abs(pull).max())
        a = ls.frame_jacobian(free, q0, "rod")[3:] @ ls.forward_dynamics(free, q0, np.zeros(free.nv))
        assert (ls.frame_pose(free, q0, "rod")[:3, :3] @ a)[0] < 0.0
    assert ls.frame_pose(free, q0, "rod")[0, 3] > 0.9 * module.CANTILEVERS["stiff"]["length"]


def _in_tip_axes(model, q, force):
    return ls.frame_pose(model, q, "rod")[:3, :3].T @ np.array([force, 0.0, 0.0])


def test_soft_cantilever_falls_like_its_finer_steps():
    """The tip at 2 s comes a quarter nearer to bdf's at 1e-8 with half the step, and is within 1e-3 of the length."""
    module = rods()
    model, q0 = module.cantilever("soft")
    exact = ls.simulate(model, 2.0, q0, rtol=1e-8, atol=1e-10, t_eval=[2.0]).q[-1]
    tips = [ls.frame_pose(model, q, "rod")[:3, 3]
            for q in (exact, *(module.swing("soft", dt, 2.0)[2].q[-1] for dt in (0.01, 0.005)))]  # fmt: skip
    errors = np.linalg.norm(tips[1:] - tips[0], axis=1)
    assert errors[0] < 1e-3 * 10.0
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


def test_stiff_cantilever_gains_energy_to_second_order():
    """The energy that its scheme gives the stiff rod falls to a quarter with half the step."""
    rises = [rods().swing("stiff", dt)[0]["largest rise of energy"] for dt in (0.01, 0.005)]
    assert rises[0] / rises[1] == pytest.approx(4.0, rel=0.2)


@pytest.mark.parametrize("stiffer", [0.01, 0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("name", ["soft", "stiff"])
def test_long_steps_are_stable_at_every_stiffness(name, stiffer):
    """With steps of 0.1 s, in which the stiff rods vibrate many times, implicit Euler never gains energy.

    The paper's range of stiffness. Schemes that damp less follow more, but the stiffest motions not at this step.
    """
    model, q0 = rods().cantilever(name, stiffer)
    motion = ls.simulate(model, 10.0, q0, method="implicit_euler", dt=0.1)
    E = ls.energy(model, motion.q, motion.v).total
    hanging = ls.energy(model, model.neutral(), np.zeros(model.nv)).total
    assert E.max() - E[0] < 1e-6 * (E[0] - hanging)


def test_the_tangent_of_the_reference():
    """The derivatives of the rod without the library are its central differences, to ten digits."""
    rng = np.random.default_rng(0)
    for name in ("soft", "stiff"):
        rod = alone(name)
        q, v, a = rng.normal(size=(3, 3)) / np.sqrt(rod.length)
        J = rod.residual(q, v, a, (3.0, 5.0))[1]
        h = 1e-5
        ends = [[rod.residual(q + s * e, v + 3.0 * s * e, a + 5.0 * s * e)[0] for s in (h, -h)] for e in np.eye(3)]
        np.testing.assert_allclose(
            J.T, [(ahead - behind) / (2 * h) for ahead, behind in ends], atol=1e-8 * np.abs(J).max()
        )


@pytest.mark.parametrize("name", ["soft", "stiff"])
def test_the_rod_without_the_library_agrees(name):
    """Its equilibrium is the library's, up to the ten Gauss points of the example; Algorithm 1 with the force until t =
    0 takes the tip where the library's Newmark takes it, and explicit steps take it where bdf takes it."""
    rod, force = alone(name), 50.0 if name == "soft" else 0.01
    q = rod.rest(force)
    model, start = rods().cantilever(name, force=force, held=True)
    near = 2e-4 * rod.length
    np.testing.assert_allclose(rod.tip(q), in_plane(model, start), atol=near)
    steps = rod.newmark(q, 0.01, 0.5)
    found = ls.simulate(model, 0.5, start, method="newmark", dt=0.01)
    np.testing.assert_allclose(steps.tip, in_plane(model, found.q), atol=5 * near)
    exact = ls.simulate(model, 0.5, start, method="bdf", rtol=1e-8, atol=1e-10, t_eval=steps.t)
    np.testing.assert_allclose(rod.explicit(q, 0.5, 1e-8).tip, in_plane(model, exact.q), atol=5 * near)


LONG = (0.01, 0.1, 1.0, 10.0, 100.0)


def long_steps(name, stiffer, force):
    """Number of steps and the largest energy over the first one, by Newmark's scheme in steps of 0.1 s for 10 s, with
    20 points as in the paper."""
    model, q0 = rods().cantilever(name, stiffer, force, held=True, points=20)
    motion = ls.simulate(model, 10.0, q0, method="newmark", dt=0.1)
    E = ls.energy(model, motion.q, motion.v).total - ls.energy(model, model.neutral(), np.zeros(model.nv)).total
    return motion.statistics.steps, E.max() / E[0]


@pytest.mark.parametrize("stiffer", LONG)
def test_newmark_holds_the_soft_cantilever_in_long_steps(stiffer):
    """The paper's claim for the soft rod under its 50 N: steps of 0.1 s hold at each stiffness, without any gain."""
    steps, gain = long_steps("soft", stiffer, 50.0)
    assert steps == 100 and gain <= 1.0 + 1e-9


@pytest.mark.parametrize("stiffer", LONG[2:])
def test_newmark_holds_the_stiff_cantilever_under_its_force(stiffer):
    """The paper's claim for the stiff rod under its 10 N, from its own stiffness to a hundred times as much: no gain of
    energy, though steps are shortened where Newton's method fails."""
    steps, gain = long_steps("stiff", stiffer, 10.0)
    assert gain <= 1.0 + 1e-9 and steps < 600


@pytest.mark.parametrize("stiffer", LONG)
def test_newmark_holds_the_stiff_cantilever_under_a_gentle_pull(stiffer):
    """Under 0.1 N (f l² / EI = 10) steps of 0.1 s hold at each stiffness; the softest rod, which 0.1 N pulls into a
    hook, gains a quarter of its energy. Under 0.01 N no rod gains any, in a hundred steps and a few shorter ones."""
    steps, gain = long_steps("stiff", stiffer, 0.1)
    assert gain < 1.3 and steps < 250
    assert gain <= 1.0 + 1e-9 or stiffer < 1.0
    steps, gain = long_steps("stiff", stiffer, 0.01)
    assert gain <= 1.0 + 1e-9 and steps < 130


def test_the_softest_stiff_rod_does_not_hold():
    """Under 10 N and at 0.01 times its stiffness (f l² / EI = 1e5) the stiff rod stops the library's steps of 0.1 s,
    and the paper's own Algorithm 1 as well, whose Newton iteration diverges before 1 s."""
    with pytest.raises(ls.ConvergenceError):
        long_steps("stiff", 0.01, 10.0)
    rod = alone("stiff", 0.01)
    with np.errstate(all="ignore"), pytest.raises(planar().Stopped) as stop:
        rod.newmark(rod.rest(10.0), 0.1, 10.0)
    assert stop.value.args[0] < 1.0


@pytest.mark.parametrize("stiffer", LONG)
def test_algorithm_1_holds_under_a_gentle_pull(stiffer):
    """A pull of 0.1 N (f l² / EI = 10) lets the paper's Algorithm 1 take its 100 steps of 0.1 s at each stiffness, with
    gains of energy below an eighth and ten iterations at most."""
    rod = alone("stiff", stiffer)
    motion = rod.newmark(rod.rest(0.1), 0.1, 10.0, iterations=10)
    assert len(motion.t) == 101 and motion.energy.max() < 1.125 * motion.energy[0]


def test_explicit_steps_follow_the_stiffness():
    """A hundred times the stiffness takes explicit steps about ten times as many evaluations, and the paper's implicit
    steps no more."""
    counts = []
    for stiffer in (1.0, 100.0):
        rod = alone("stiff", stiffer)
        q = rod.rest(0.01 * stiffer)
        counts.append((rod.explicit(q, 1.0).evaluations, rod.newmark(q, 0.01, 1.0).evaluations))
    assert 7.0 < counts[1][0] / counts[0][0] < 13.0
    assert counts[1][1] < 1.5 * counts[0][1]


def test_shooting_where_it_can_and_where_it_cannot():
    """Shooting along the stiff rod, without modes, takes the tip where ten modes take it. Along the soft one errors
    grow by e³³ in steps of 10 ms, and it fails, as the paper says; so does the stiff one at rest under its 10 N, with
    e³²."""
    rod = alone("stiff", n_modes=10)
    shots = rod.shooting(0.01, 0.01, 0.1)
    exact = rod.explicit(rod.rest(0.01), 0.1, 1e-8)
    np.testing.assert_allclose(shots.tip[0], exact.tip[0], atol=1e-7)
    moved = np.linalg.norm(exact.tip[-1] - exact.tip[0])
    assert np.linalg.norm(shots.tip[-1] - exact.tip[-1]) < 0.2 * moved  # steps of first order at the start
    soft = alone("soft")
    growth = [(4.0 * x.mass / x.bending) ** 0.25 / np.sqrt(0.01) * x.length / np.sqrt(2) for x in (rod, soft)]
    assert 7.5 < growth[0] < 8.5 and 32.0 < growth[1] < 34.0
    assert rod.length * np.sqrt(10.0 / rod.bending) == pytest.approx(32.0, abs=0.5)
    for one, force in ((soft, 50.0), (rod, 10.0)):
        with np.errstate(all="ignore"), pytest.raises(planar().Stopped):
            one.shooting(force, 0.01, 0.1)
