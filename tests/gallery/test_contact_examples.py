"""The examples with contact: a soft arm in a pipe (Mathew 2025 §6.2), three soft fingers that hold a ball, and
three that lift a mug."""

import numpy as np
import pytest
from gallery.examples import drawn, example

import lissom as ls


@pytest.fixture(scope="module")
def pipe():
    """The arm in the pipe."""
    return example("cdm_contact")


@pytest.fixture(scope="module")
def gripper():
    """The gripper."""
    return example("resoft_gripper")


# ---- the arm in the pipe


def test_balls_are_the_papers_points(pipe):
    """Purpose: twelve balls, at the ten Gauss points and both ends, each as wide as the arm; the foot never touches."""
    model = pipe.robot().build()
    s, radius = pipe.balls(model)
    gauss = (1 + np.polynomial.legendre.leggauss(10)[0]) / 2
    np.testing.assert_allclose(s, [0, *gauss, 1], rtol=0, atol=1e-14)
    np.testing.assert_allclose(radius, 0.03 - 0.015 * s, rtol=1e-12)
    np.testing.assert_allclose(model.contacts.ball_radius, radius, rtol=1e-12)
    assert len(model.contacts.pair) == 11


def test_arm_in_the_pipe(pipe, tmp_path):
    """Purpose: over the first three seconds the arm is pressed into the wall; generalised-α is near BDF, nearer with
    half the step, though not of second order: steps in which balls begin to touch have weights of implicit Euler; the
    depth follows k^(−1/p); exact derivatives agree with differences."""
    numbers = pipe.main(tmp_path, duration=3.0, states=16)
    assert 5e-4 < numbers["deepest"] < 2e-3 and numbers["part of the time in contact"] > 0.5
    long, short = (numbers[f"tip distance generalized_alpha {step} ms"] for step in (2, 1))
    assert short < long < 1e-4
    assert numbers["exponent at rest"] == pytest.approx(-1 / 1.5, abs=2e-3)
    assert numbers["exponent of the motion"] == pytest.approx(-1 / 1.5, abs=0.02)  # a stiffer wall is hit a bit harder
    assert numbers["mismatch of d/dq"] < 2e-4  # of differences by some µm where balls are a fraction of a mm deep
    assert numbers["mismatch of d/dv"] < 1e-9
    assert numbers["one by one over exact"] > 5  # measured: some thirty; the paper: ten
    assert all(drawn(tmp_path / f"{name}.png") for name in ("motion", "numbers"))


def test_wall_carries_what_the_tendon_pulls(pipe):
    """Purpose: held against the wall, the arm's forces and those of the wall, k δ^p along the radius, balance."""
    model = pipe.robot().build()
    found = ls.solve_statics(model, pipe.HELD, pipe.start_of_statics())
    bare = pipe.robot(None).build()
    still = np.zeros(model.nv)
    left = ls.inverse_dynamics(bare, found.q, still, still) - ls.actuation_matrix(bare, found.q) @ pipe.HELD
    s, _ = pipe.balls(model)
    depth = np.maximum(pipe.depths(model, found.q), 0.0)
    pushed = np.zeros(model.nv)
    for x, d in zip(s, depth):
        g, J = ls.frame_pose(bare, found.q, "arm", x), ls.frame_jacobian(bare, found.q, "arm", x)
        out = g[:3, 3] * [1, 1, 0]
        if d > 0:
            force = -pipe.STIFFNESS * d**pipe.EXPONENT * out / np.linalg.norm(out)
            pushed += J[3:].T @ g[:3, :3].T @ force
    assert np.abs(pushed).max() > 0.1
    np.testing.assert_allclose(left, pushed, rtol=0, atol=1e-9 * np.abs(pushed).max())


# ---- the gripper


def test_gripper_holds_what_it_pulls_hard_enough(gripper, tmp_path):
    """Purpose: at 2.5 N the settled ball moves by less than 1 mm in five seconds, and the contacts carry its weight
    within 1 %; at 1.5 N it falls by more than its diameter."""
    numbers = gripper.main(tmp_path)
    assert gripper.END - gripper.SETTLED == 5.0 and gripper.table_height(gripper.SETTLED) == -gripper.DROP
    assert numbers["creep of a firm grasp"] < 1e-3
    assert numbers["fall from a firm grasp"] < 2e-3
    assert numbers["missing of the weight"] < 0.01
    assert numbers["fall from a loose grasp"] > 2 * gripper.BALL
    assert all(drawn(tmp_path / f"{name}.png") for name in ("grasp", "numbers"))


def pushes(gripper, model, q, v):
    """Forces on the ball of all balls of the fingers, by the law itself: pushes N (m,), force of each in the world and
    its friction over μ N."""
    law = gripper.CONTACT
    g, (w_b, v_b) = ls.frame_pose(model, q, "ball"), ls.frame_twist(model, q, v, "ball").reshape(2, 3)
    centre, w_b, v_b = g[:3, 3], g[:3, :3] @ w_b, g[:3, :3] @ v_b
    found = []
    for link, s, r in zip(model.contacts.ball_link, model.contacts.ball_s, model.contacts.ball_radius):
        if link not in gripper.FINGERS:
            continue
        h, (w, u) = ls.frame_pose(model, q, link, s), ls.frame_twist(model, q, v, link, s).reshape(2, 3)
        away = h[:3, 3] - centre
        n, depth = away / np.linalg.norm(away), gripper.BALL + r - np.linalg.norm(away)
        if depth <= 0:
            continue
        speed = h[:3, :3] @ u - v_b - np.cross(w_b, away)
        slip = speed - n * (n @ speed) - r * np.cross(h[:3, :3] @ w - w_b, n)
        N = law["stiffness"] * depth ** law["exponent"] * (1 - law["damping"] * (n @ speed))
        share = slip / np.sqrt(slip @ slip + law["slip_speed"] ** 2)
        found.append((N, -N * (n - law["friction"] * share), np.linalg.norm(share)))
    return tuple(map(np.array, zip(*found)))


def test_friction_holds_the_ball(gripper):
    """Purpose: the forces on the held ball, found again from the law of contact with NumPy, are those of inverse
    dynamics and its weight; every finger touches, friction lifts, and less than 0.7 of it is asked for."""
    model = gripper.robot().build()
    found = gripper.grasp(model, gripper.FIRM, end=3.0)
    q, v = found.motion.q[-1], found.motion.v[-1]
    N, force, share = pushes(gripper, model, q, v)
    np.testing.assert_allclose(force.sum(axis=0), found.force[-1], rtol=0, atol=1e-6 * gripper.weight())
    np.testing.assert_allclose(force.sum(axis=0), [0, 0, gripper.weight()], rtol=0, atol=1e-3 * gripper.weight())
    assert len(N) >= 3 and share.max() < 0.7
    still = pushes(gripper, model, q, np.zeros(model.nv))[1].sum(axis=0)
    assert still[2] < 0.8 * gripper.weight(), "without friction it would fall"


def test_one_motor_pulls_all_fingers(gripper):
    """Purpose: the one input bends the three fingers alike, on their mean bending with its arm times the length."""
    model = gripper.robot().build()
    assert model.nu == 1
    rows = ls.actuation_matrix(model, model.neutral())[: gripper.ball_rows(model)[1], 0].reshape(3, -1)
    lean = np.arctan(0.8 * np.ptp(gripper.THICK) / gripper.LENGTH)  # of the tendon against the finger
    arm = 0.8 * np.mean(gripper.THICK) * np.cos(lean)
    np.testing.assert_allclose(np.abs(rows).max(axis=1), gripper.LENGTH * arm, rtol=1e-10)
    np.testing.assert_allclose(rows - rows[0], 0.0, atol=1e-15)


# ---- the mug


def test_three_fingers_lift_a_mug(tmp_path):
    """Purpose: the mug, whose mesh is closed, rises with the hand by 12 cm and stays within 0.1 mm of its place in the
    hand; no ball is deeper than 0.5 mm in it, a tenth of the handle. Without friction it slips out of the hand."""
    mug = example("mug")
    assert mug.mug_mesh().is_watertight
    numbers = mug.main(tmp_path)
    assert numbers["rise [m]"] > 0.11 and numbers["fingers that touch"] == 3
    assert numbers["drift while it is held [m]"] < 1e-4 and numbers["tilt [deg]"] < 3.0
    assert 0.0 < numbers["deepest touch [m]"] < 5e-4
    assert numbers["slip in the hand while it rises [m]"] < 0.01
    assert numbers["rise without friction [m]"] < 0.05
    assert drawn(tmp_path / "mug.png")
