"""The two soft robots with closed chains: a fin-ray finger and a platform on three pillars (Mathew 2025 §5.2, §6.1)."""

import warnings

import numpy as np
import pytest
from gallery.examples import drawn, example

import lissom as ls

CUTS = {"feet": (63, 10), "spherical": (59, 6), "all feet": (69, 16)}
FORCE, MOMENT = (0.4, -0.3, 0.2), (0.03, 0.02, -0.04)


@pytest.fixture(autouse=True)
def plane_chains_are_redundant():
    """The finger's loops are, on purpose, closed by joints in space."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.RedundancyWarning)
        yield


@pytest.fixture(scope="module")
def finger():
    """The example of the finger."""
    return example("fin_ray_finger")


@pytest.fixture(scope="module")
def parallel():
    """The example of the parallel robot."""
    return example("parallel_robot")


# ---- the parallel robot


@pytest.mark.parametrize(("cut", "coordinates", "rows"), [(cut, *size) for cut, size in CUTS.items()])
def test_sizes_of_the_parallel_robot(parallel, cut, coordinates, rows):
    """Purpose: the paper's 63 coordinates; 53 degrees of freedom wherever the loops are cut; closed when unstrained."""
    model = parallel.build(cut)
    A = ls.constraint_jacobian(model, model.neutral())
    assert (model.nv, model.n_multipliers) == (coordinates, rows)
    assert np.linalg.matrix_rank(A) == rows and coordinates - rows == 53
    assert np.abs(ls.loop_residual(model, model.neutral())).max() < 1e-15


def test_plate_is_the_prism(parallel):
    """Purpose: mass, centre and inertia of the plate equal sums over a fine grid of the triangle."""
    body = parallel.plate()
    n = 400
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    centres = [((i + 1 / 3) / n, (j + 1 / 3) / n, i + j < n), ((i + 2 / 3) / n, (j + 2 / 3) / n, i + j < n - 1)]
    edges = parallel.CORNERS[1:] - parallel.CORNERS[0]
    points = np.concatenate([a[keep][:, None] * edges[0] + b[keep][:, None] * edges[1] for a, b, keep in centres])
    dm = 1000.0 * np.linalg.norm(np.cross(*edges)) / 2 * 0.01 / len(points)
    assert len(points) == n * n
    assert body.mass == pytest.approx(dm * len(points), rel=1e-12)
    np.testing.assert_allclose(body.com, points.mean(axis=0), rtol=0, atol=1e-12)  # rounding of the sum
    x, y, _ = (points - body.com).T
    thick = 0.01**2 / 12 * body.mass
    moments = dm * np.array([(y**2).sum(), (x**2).sum(), (x**2 + y**2).sum()]) + (thick, thick, 0.0)
    np.testing.assert_allclose(body.inertia, moments, rtol=4 / n**2)


def ground_wrench(model, parallel, wrenches, first):
    """Sum of the wrenches on the feet from `first` on, about the world's origin, in world axes: moment, force."""
    total = np.zeros(6)
    for k, (moment, force) in enumerate(wrenches.reshape(-1, 2, 3), first):
        g = parallel.upright(k, np.zeros(3), down=True)
        force = g[:3, :3] @ force
        total += np.concatenate([g[:3, :3] @ moment + np.cross(g[:3, 3], force), force])
    return total


def weight(parallel, q):
    """Total mass [kg] and its first moment [kg·m], from the potentials of gravity along the three axes."""
    zero = {"force": (0, 0, 0), "moment": (0, 0, 0)}
    models = [parallel.build("all feet", gravity=axis, **zero) for axis in np.eye(3)]
    moment = -np.array([ls.energy(model, q, np.zeros(model.nv)).gravitational for model in models])
    return parallel.plate().mass + 3 * 1000.0 * 0.15 * 0.03 * 0.015, moment


def test_ground_carries_weight_and_wrench(parallel):
    """Purpose: with all feet as loops, their wrenches balance the applied one and the weight to 1e-9; a hinge holds no
    moment about its axis; the other cut finds the same wrenches on the two feet that it has."""
    model = parallel.build("all feet", force=FORCE, moment=MOMENT)
    found = ls.solve_statics(model)
    q = found.q
    wrenches = ls.loop_wrenches(model, q, found.multipliers)
    mass, first_moment = weight(parallel, q)
    g = np.array([0.0, 0.0, -9.81])
    at = ls.frame_pose(model, q, "plate")
    middle = at[:3, :3] @ -parallel.CORNERS[0] + at[:3, 3]
    applied = np.concatenate([MOMENT + np.cross(middle, FORCE) + np.cross(first_moment, g), FORCE + mass * g])
    ground = ground_wrench(model, parallel, wrenches, 0)
    assert np.abs(applied).max() > 3.0
    np.testing.assert_allclose(ground, -applied, rtol=0, atol=1e-9)
    assert np.abs(wrenches[1:, 1]).max() < 1e-9 < 1e-3 < np.abs(wrenches[1:, [0, 2]]).max()
    other = parallel.build("feet", force=FORCE, moment=MOMENT)
    same = ls.solve_statics(other)
    np.testing.assert_allclose(parallel.corners(other, same.q), parallel.corners(model, q), rtol=0, atol=1e-9)
    np.testing.assert_allclose(ls.loop_wrenches(other, same.q, same.multipliers), wrenches[1:], rtol=0, atol=1e-8)


def test_spherical_loops_hold_no_moment(parallel):
    """Purpose: cut at the plate, the loops carry forces alone, and the equilibrium is that of the other cut."""
    model, other = (parallel.build(cut, force=FORCE, moment=MOMENT) for cut in ("spherical", "feet"))
    found, same = ls.solve_statics(model), ls.solve_statics(other)
    wrenches = ls.loop_wrenches(model, found.q, found.multipliers)
    assert np.abs(wrenches[:, :3]).max() < 1e-12 < 0.1 < np.abs(wrenches[:, 3:]).max()
    np.testing.assert_allclose(parallel.corners(model, found.q), parallel.corners(other, same.q), rtol=0, atol=1e-9)


def test_the_cut_does_not_change_the_motion(parallel):
    """Purpose: half a second of motion is the same, within the tolerance, wherever the loops are cut; they stay closed.

    Strains and Gauss points do not tell the two ends of a pillar apart, so that the three models are one.
    """
    times = np.linspace(0.0, 0.5, 11)
    seen = []
    for cut in CUTS:
        model = parallel.build(cut)
        q0 = ls.solve_statics(model).q
        motion = ls.simulate(model, 0.5, q0, t_eval=times, rtol=1e-8, atol=1e-10)
        assert np.abs(ls.loop_residual(model, motion.q)).max() < 1e-7
        seen.append(parallel.corners(model, motion.q))
    assert np.ptp(seen[0], axis=0).max() > 1e-3, "the plate moves"
    assert max(np.abs(other - seen[0]).max() for other in seen[1:]) < 1e-8


def test_the_cut_does_not_change_the_vibrations(parallel):
    """Purpose: about the loaded equilibrium the three models have the same 53 frequencies, all of them real."""
    models = [parallel.build(cut, force=(0, 0, -1.0)) for cut in CUTS]
    first, *others = (ls.modes(model, ls.solve_statics(model).q).frequencies for model in models)
    assert len(first) == 53 and first[0] > 1.0
    for frequencies in others:
        np.testing.assert_allclose(frequencies, first, rtol=1e-9)


def test_parallel_robot_by_steps_and_adaptively(parallel):
    """Purpose: generalised-α at 10 ms misses the adaptive motion by its own second order; derivatives agree to 1e-6."""
    numbers = parallel.dynamics_study(parallel.build(), 0.5, rate=20.0)
    assert numbers["corner travel"] > 1e-3
    assert numbers["corner distance bdf 1e-3"] < 1e-4
    assert numbers["corner distance generalized_alpha"] < 1e-3
    assert max(numbers[f"open by {name}"] for name in parallel.METHODS) < 1e-6
    assert numbers["mismatch of d/dq"] < 1e-6
    assert numbers["mismatch of d/dv"] < 1e-6


def test_random_wrenches_find_equilibria(parallel):
    """Purpose: every one of twenty random wrenches has its equilibrium: closed, balanced and stable."""
    numbers = parallel.statics_study(20)
    assert numbers["converged"] == numbers["stable"] == 20
    assert numbers["largest residual"] < 1e-12  # of forces up to 3.7 N
    assert numbers["largest gap"] < 1e-12
    assert numbers["largest shift of a corner"] > 5e-3


# ---- the finger


def test_sizes_of_the_finger(finger):
    """Purpose: the paper's 17 links and 74 coordinates; 31 rows, 13 of them independent; closed without strain."""
    model = finger.robot().build()
    A = ls.constraint_jacobian(model, model.neutral())
    assert (len(model.links.names), model.nv, model.n_multipliers) == (17, 74, 1 + 31)
    assert np.linalg.matrix_rank(A[1:] * model.dofs.scale, tol=1e-9) == 13
    assert np.abs(ls.loop_residual(model, model.neutral())).max() < 1e-15


def planar_rows(finger, model, q):
    """The 13 closing conditions of the plane and their derivatives, from the poses and Jacobians of the tree alone."""
    gaps, rows = [], []
    for k in range(1, finger.PIECES + 1):
        weld = k == finger.PIECES
        ends = f"driven {k}" if weld else f"rib {k}", f"clamped {k}"
        (g_a, J_a), (g_b, J_b) = ((ls.frame_pose(model, q, name), ls.frame_jacobian(model, q, name)) for name in ends)
        gaps += list((g_a - g_b)[[0, 2], 3])
        rows += list((g_a[:3, :3] @ J_a[3:] - g_b[:3, :3] @ J_b[3:])[[0, 2]])
        if weld:
            turn = g_b[:3, :3].T @ g_a[:3, :3]
            gaps.append(np.arctan2(turn[0, 2], turn[0, 0]) + 2 * finger.LEAN)
            rows.append((J_a - J_b)[1])
    return np.array(gaps), np.array(rows)


def test_slow_drive(finger):
    """Purpose: along the drive the 13 conditions of the plane hold, and forces in their directions balance the rods."""
    drive = finger.drive_study(np.linspace(0.0, finger.STROKE, 6))
    model = finger.robot().build()
    still, free = np.zeros(model.nv), np.setdiff1d(np.arange(model.nv), model.prescribed.dof)
    for q in drive["q"]:
        gap, rows = planar_rows(finger, model, q)
        assert np.abs(gap).max() < 1e-10
        r, scale = ls.inverse_dynamics(model, q, still, still)[free], model.dofs.scale[free]
        force = np.linalg.lstsq((rows[:, free] * scale).T, r * scale, rcond=None)[0]
        assert np.abs(r - rows[:, free].T @ force).max() < 1e-9 < 1e-4 < np.abs(r).max()
    assert drive["gap"].max() < 1e-10 and drive["residual"].max() < 1e-9
    assert 2 * finger.STROKE < np.linalg.norm(drive["tip"][-1] - drive["tip"][0]) < 5 * finger.STROKE


@pytest.mark.parametrize("displacement", [1e-3, 8e-3])
def test_force_of_the_slide_is_the_slope_of_the_energy(finger, displacement):
    """Purpose: virtual work: dV/dd by central differences over 0.1 and 0.2 mm, extrapolated, is the multiplier."""
    drive = finger.drive_study(displacement + 1e-4 * np.array([-2, -1, 0, 1, 2]))
    V = drive["energy"]
    slope = (8 * (V[3] - V[1]) - (V[4] - V[0])) / 12e-4
    assert abs(drive["force"][2]) > 0.1
    assert slope == pytest.approx(drive["force"][2], rel=1e-6)


def test_ribs_without_weight_carry_along_their_ends(finger):
    """Purpose: without gravity a rib is loaded at its two hinges alone, so that the force of its loop points from one
    to the other; it has no moment about the hinge, and nothing acts across the plane."""
    model = finger.robot(position=0.01, velocity=None, acceleration=None, gravity=(0, 0, 0)).build()
    found = ls.solve_statics(model)
    wrenches = ls.loop_wrenches(model, found.q, found.multipliers)
    size = np.abs(wrenches[:, [3, 5]]).max()
    assert size > 0.1
    for k, wrench in enumerate(wrenches[:-1], 1):
        seat = ls.frame_pose(model, found.q, f"clamped {k}")[:3, :3] @ finger.pose(np.pi / 2 + finger.LEAN)[:3, :3]
        start, end = ls.frame_pose(model, found.q, f"rib {k}", s=np.array([0.0, 1.0]))[:, :3, 3]
        assert abs(np.cross(end - start, seat @ wrench[3:])[1]) < 1e-10
        assert np.abs(wrench[[0, 1, 2, 4]]).max() < 1e-9 * size
    assert np.abs(wrenches[-1, [0, 2, 4]]).max() < 1e-9 * size


def test_motion_of_the_finger(finger):
    """Purpose: over 0.5 s of the slow drive steps of 10 ms and 2.5 ms are with BDF to 1e-7 m; the loops stay closed;
    derivatives agree with differences to 1e-6."""
    numbers = finger.dynamics_study(0.5, 1e-2, rate=20.0)
    assert numbers["tip travel"] > 2e-3
    assert numbers["tip distance short steps"] < numbers["tip distance long steps"] < 1e-7
    assert max(numbers[f"open by {word}"] for word in ("radau", "long steps", "short steps")) < 1e-8
    assert numbers["mismatch of d/dq"] < 1e-6
    assert numbers["mismatch of d/dv"] < 1e-6


def test_fast_drive_has_order_two(finger):
    """Purpose: pushed by 4 mm within 0.05 s, with 1g and more at the tip, steps of generalised-α miss BDF by an error
    of second order: half the step leaves a quarter.

    The displacement 1 mm (1 − cos ωt)² starts with its first three derivatives zero, as the start at rest asks. Half a
    period holds the whole push, with the largest accelerations.
    """
    w = 2 * np.pi / 0.1
    model = finger.robot(
        position=lambda t: 1e-3 * (1 - np.cos(w * t)) ** 2,
        velocity=lambda t: 2e-3 * w * (1 - np.cos(w * t)) * np.sin(w * t),
        acceleration=lambda t: 2e-3 * w**2 * (np.sin(w * t) ** 2 + (1 - np.cos(w * t)) * np.cos(w * t)),
    ).build()
    q0, times = ls.solve_statics(model).q, np.linspace(0.0, 0.05, 11)
    exact = finger.tip(model, ls.simulate(model, 0.05, q0, t_eval=times, rtol=1e-6, atol=1e-8).q)
    errors = []
    for dt in (1e-3, 5e-4):
        motion = ls.simulate(model, 0.05, q0, method="generalized_alpha", dt=dt, t_eval=times)
        errors.append(np.abs(finger.tip(model, motion.q) - exact).max())
    assert np.ptp(exact[:, 0]) > 0.01 and errors[0] < 1e-6
    assert np.abs(np.diff(exact[:, 0], 2)).max() / 0.005**2 > 9.81
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


# ---- the scripts


def test_scripts_return_their_numbers_and_draw(finger, parallel, tmp_path):
    """Purpose: both scripts in short: their figures, and finite numbers of every study."""
    studies = [finger.main(tmp_path, duration=0.06), parallel.main(tmp_path, n=4, duration=0.06)]
    assert [list(found) for found in studies] == [["finger", "drive", "dynamics"], ["robot", "dynamics", "statics"]]
    assert all(np.isfinite(list(numbers.values())).all() for found in studies for numbers in found.values())
    assert all(drawn(tmp_path / f"{name}.png") for name in ("finger_dynamics", "parallel_dynamics", "parallel_statics"))
