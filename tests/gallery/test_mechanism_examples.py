"""The examples of closed chains: mechanisms of rigid bodies, and the continuum parallel robot of Boyer 2023."""

import warnings

import numpy as np
import pytest
from gallery.examples import example
from scipy.integrate import solve_ivp
from scipy.linalg import eigh, null_space

import lissom as ls


@pytest.fixture(scope="module")
def mechanisms():
    """The rigid mechanisms."""
    return example("mechanisms")


@pytest.fixture(scope="module")
def continuum():
    """The continuum parallel robot."""
    return example("continuum_parallel_robot")


@pytest.fixture
def redundant():
    """Planar chains are closed by hinges in space, which is meant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.RedundancyWarning)
        yield


def is_picture(path):
    """Whether a picture is there that shows something."""
    content = path.read_bytes()
    return content[:8] == b"\x89PNG\r\n\x1a\n" and len(content) > 10_000


def test_mechanisms_run_as_a_script(mechanisms, tmp_path):
    """Purpose: the numbers of the three mechanisms over a fifth of their durations, and a picture of each.

    The crank of the slider-crank is integrated: good to rtol = 1e-9 a step, hence to 1e-6 after a thousand, and its
    speed of 30 rad/s to 3e-5. The other two are held by their motions and loops: closed to 1e-9, whatever the steps.
    Their torque comes from accelerations, which magnify a residual by the square of the rates, (10 rad/s)².
    """
    numbers = mechanisms.main(tmp_path, part=0.2)
    assert all(is_picture(tmp_path / f"{name}.png") for name in ("four_bar", "slider_crank", "stewart"))
    bars, crank, platform = numbers["four-bar"], numbers["slider-crank"], numbers["Stewart platform"]
    assert max(crank["angle error [rad]"], crank["slider error [m]"]) < 1e-6 and crank["speed error [rad/s]"] < 3e-5
    assert crank["turns"] > 1
    assert max(bars["angle error [rad]"], platform["position error [m]"], platform["turn error [rad]"]) < 1e-9
    assert bars["torque error [N·m]"] < 1e-7 < 0.1 < bars["largest torque [N·m]"]
    assert max(study["loop residual"] for study in numbers.values()) < 1e-9
    assert platform["travel [m]"] > 0.02, "the platform moves"


def test_legs_carry_the_platform(mechanisms):
    """Purpose: at rest in an odd pose the multipliers are ∂V/∂l, and the forces on the platform balance.

    ∂V/∂l comes from differences, good to about 1e-8 of the forces; the balance is exact.
    """

    def pose(t):
        return mechanisms.dance(2.0)

    model = mechanisms.stewart(pose).build()
    rest = ls.solve_statics(model, q0=mechanisms.assembled_stewart(model))
    np.testing.assert_allclose(ls.frame_pose(model, rest.q, "platform"), pose(0.0), rtol=0, atol=1e-10)
    np.testing.assert_allclose(rest.multipliers[:6], mechanisms.statical_forces(pose(0.0)), rtol=1e-6)
    left = mechanisms.platform_balance(model, rest.q, rest.multipliers)
    assert np.abs(left).max() < 1e-11 * mechanisms.TOP_MASS * mechanisms.G
    assert np.ptp(rest.multipliers[:6]) > 1.0, "the legs share the weight unevenly"


def test_symmetric_platform_shares_its_weight(mechanisms):
    """Purpose: upright each leg carries a sixth of the platform, and of the legs the share of the lever ∂V/∂l.

    Virtual work of a rise δz: 6 f δl = m g δz + 6 · m_leg g (ρ + 1 − ρ) δz with δl = cos β δz, as the middles of
    both parts of a leg stand ρ h and (1 − ρ) h high for ρ = PART/2l: together they rise by δz, whatever ρ is.
    """
    model = mechanisms.stewart(mechanisms.still).build()
    rest = ls.solve_statics(model, q0=mechanisms.assembled_stewart(model))
    cosine = mechanisms.HEIGHT / mechanisms.leg_lengths(mechanisms.still(0.0))[0]
    expected = mechanisms.G * (mechanisms.TOP_MASS / 6 + mechanisms.PART_MASS) / cosine
    np.testing.assert_allclose(rest.multipliers[:6], expected, rtol=1e-10)


@pytest.mark.parametrize("name", ["PRINTED", "SOFT"])
def test_table_of_torques(continuum, name):
    """Purpose: table II as it is read: continuous, zero at 1 s, τ_hold = 0.5 N·m, three cycles up to 2 k_s."""
    case = getattr(continuum, name)
    t = np.linspace(0.0, 9.0, 9001)
    torques = np.array([case.torques(x) for x in t])
    assert np.abs(np.diff(torques, axis=0)).max() < 1.1e-3 * max(0.5, case.swing * 2 * np.pi)
    np.testing.assert_allclose(torques[[0, 1000, 3000, 6000, 9000]], [[0, 0]] + 4 * [[0.5, -0.5]], rtol=0, atol=1e-12)
    np.testing.assert_allclose(torques[[3500, 4500, 5500], 0], 0.5 + 2 * case.swing, rtol=1e-12)
    np.testing.assert_allclose(torques[:, 1], -0.5 * np.minimum(t, 1.0), rtol=0, atol=1e-12)


def test_mounted_robot_is_a_triangle_at_rest(continuum, redundant):
    """Purpose: statics closes the open robot to an equilateral triangle without strain or force."""
    model = continuum.planar(continuum.SOFT)
    q = continuum.mounted(model)
    tips = [ls.frame_pose(model, q, leg)[:3, 3] for leg in continuum.LEGS]
    np.testing.assert_allclose(tips, 2 * [[np.sqrt(0.75), 0, 0]], rtol=0, atol=1e-12)
    expected = np.zeros(model.nq)
    expected[[0, model.nq // 2]] = -np.pi / 6, np.pi / 6
    np.testing.assert_allclose(q, expected, rtol=0, atol=1e-12)
    assert np.abs(ls.solve_statics(model, [0, 0], q).multipliers).max() < 1e-12


def test_legs_of_the_mounted_robot_vibrate_as_pinned_beams(continuum, redundant):
    """Purpose: the pin of the triangle stays where it is, so that each leg has π²√(EI/ρA)/L², in both symmetries.

    Rotary inertia takes (πr/2L)²/2 = 1.2e-6 of it, and the Gauss points as much; five polynomials leave 1e-7.
    """
    case = continuum.SOFT
    model = continuum.planar(case)
    q = continuum.mounted(model)
    free = null_space(ls.constraint_jacobian(model, q), rcond=1e-9)
    K, M = (free.T @ X @ free for X in (ls.stiffness_matrix(model), ls.mass_matrix(model, q)))
    found = np.sqrt(eigh(K, M, eigvals_only=True))
    assert len(found) == model.nv - 2
    pinned = np.pi**2 * np.sqrt(continuum.YOUNG * case.moment / (continuum.DENSITY * continuum.AREA))
    np.testing.assert_allclose(found[:2], pinned, rtol=3e-6)


def test_constant_torques_bend_the_legs_to_the_elastica(continuum, redundant):
    """Purpose: under τ_hold the tip is where the elastica says, the nearer the higher the order of the basis.

    Each order divides the error by five at least, until there is left what 20 Gauss points leave: (κh)⁴/120 = 2e-5 of
    the shift, for the widest gap h = 0.08 and κ = 3 at the foot.
    """
    case = continuum.SOFT
    exact = continuum.elastica_tip(case, 0.5)
    errors = []
    for order in (1, 2, 4):
        model = continuum.planar(case, order)
        held = ls.solve_statics(model, [0.5, -0.5], continuum.mounted(model))
        tip = ls.frame_pose(model, held.q, continuum.LEGS[0])[:2, 3]
        assert abs(tip[1]) < 1e-10
        force = continuum.pin_force(model, held.q, held.multipliers)
        assert abs(force[0]) < 1e-9 < 1e-2 < abs(force[1]), "the pin pushes across the axis of symmetry"
        assert force[1] * tip[0] == pytest.approx(-0.5, rel=1e-9), "moments about the foot"
        errors.append(abs(tip[0] - exact))
    assert errors[1] < errors[0] / 5 and errors[2] < errors[1] / 5
    assert errors[2] < 2e-5 * (np.sqrt(0.75) - exact)
    assert np.sqrt(0.75) - exact > 0.08, "the tip moves towards the base, by a tenth of its distance"


def test_continuum_robot_runs_as_a_script(continuum, tmp_path):
    """Purpose: the paper's story up to the first tilt, its numbers, and the picture.

    Both robots stay mirror images of themselves while their torques are; then the first leg pulls the tip upwards.
    As printed the robot is in equilibrium all the time: 576 Hz are far above the torques, and 1e-3 of the shift is what
    their finite rates leave. The wire swings about its equilibrium, by an eighth of the shift. Newmark's periods are
    (ωΔt)²/12 too long, half a per cent of these 4 Hz: 0.4 rad of phase after 12 periods, a part of the swing.
    """
    numbers = continuum.main(tmp_path, duration=3.6)
    assert is_picture(tmp_path / "continuum_parallel_robot.png")
    for case in numbers.values():
        assert case["tip at rest [m]"] == pytest.approx(np.sqrt(0.75), rel=1e-12)
        assert max(case["strain at rest [1/m]"], case["loop residual"]) < 1e-10
        exact = case["the same by the elastica [m]"]
        assert case["tip nearer under constant torques [m]"] == pytest.approx(exact, rel=1e-4)
        closed = 1e-11  # by the loops
        assert case["asymmetry of the symmetric part [m]"] < 1e-6 * case["largest tilt [m]"] + closed
    printed, wire = (numbers[case.name] for case in continuum.CASES)
    shift = printed["tip nearer under constant torques [m]"]
    assert printed["tip nearer in the symmetric part [m]"] == pytest.approx(shift, rel=1e-3)
    assert 0 < shift < 1e-9 and printed["largest tilt [m]"] < 3e-7, "the printed bar hardly bends"
    shift = wire["tip nearer under constant torques [m]"]
    assert shift < wire["tip nearer in the symmetric part [m]"] < 1.25 * shift
    assert wire["largest tilt [m]"] > 0.08
    assert printed["tip moved by a quarter of the step [m]"] < 1e-2 * printed["largest tilt [m]"]
    swing = wire["tip nearer in the symmetric part [m]"] - shift
    assert wire["tip moved by a quarter of the step [m]"] < 0.8 * swing


def test_a_reading_that_keeps_the_printed_torques(continuum, redundant):
    """Purpose: with a thousandth of the printed second moment and all torques as printed, the ramp moves the tip by
    less than a thousandth of the leg, to the elastica, and each cycle of the torque tilts it by a third of the leg:
    three times, where the paper sees two. The loop stays closed, and the robot comes back each time."""
    case = continuum.TORQUES
    assert case.moment == pytest.approx(1.5708e-11) and case.swing == continuum.SWING
    numbers, _, motion = continuum.study(case)
    shift = numbers["the same by the elastica [m]"]
    assert 2.8e-4 < shift < 3.0e-4
    assert numbers["tip nearer under constant torques [m]"] == pytest.approx(shift, rel=1e-4)
    assert numbers["loop residual"] < 1e-10 and numbers["asymmetry of the symmetric part [m]"] < 1e-9
    assert 0.29 < numbers["largest tilt [m]"] < 0.34
    assert numbers["tip moved by a quarter of the step [m]"] < 0.1 * numbers["largest tilt [m]"]
    up = motion.tip[:, 1] > 0.15
    swinging = (motion.t > continuum.SWINGS) & (motion.t < continuum.STILL)
    assert (np.diff(up.astype(int)) == 1).sum() == 3 and not up[~swinging].any()


def test_steps_of_the_continuum_robot_are_of_second_order(continuum, redundant):
    """Purpose: tip and force of the pin on the ramp converge with the square of steps that resolve all ten modes."""
    model = continuum.planar(continuum.SOFT)
    ends = [continuum.move(model, continuum.SOFT, 0.25, 1e-3 / 2**k) for k in range(4)]
    for last in ([motion.tip[-1, 0] for motion in ends], [motion.force[-1, 1] for motion in ends]):
        moved = np.diff(last)
        assert np.log2(moved[-2] / moved[-1]) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("method", ["newmark", "generalized_alpha"])
def test_steps_of_the_slider_crank_are_of_second_order(mechanisms, redundant, method):
    """Purpose: half a step divides the error of the crank by four, and its loop is closed at every step."""
    model = mechanisms.slider_crank().build()
    q0 = ls.assemble(model, [0.5, 0.0, 0.5], fixed=("crank",))
    exact = solve_ivp(mechanisms.slider_crank_rate, (0.0, 0.5), [0.5, 0.0], "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    errors = []
    for dt in (5e-4, 2.5e-4):
        motion = ls.simulate(model, 0.5, q0, u=[mechanisms.TORQUE], method=method, dt=dt, rtol=1e-10, atol=1e-12)
        errors.append(np.abs([motion.q[-1, 0], motion.v[-1, 0]] - exact))
        assert np.abs(ls.loop_residual(model, motion.q)).max() < 1e-10
    np.testing.assert_allclose(np.log2(errors[0] / errors[1]), 2.0, rtol=0, atol=0.1)


def test_wheels(tmp_path):
    """The snakeboard follows its own equations within the tolerance, and gains speed. The car drives the circle of its
    wheels; its arm ends like one on a turntable, and no wheel lifts off."""
    numbers = example("wheels").main(tmp_path)
    board, car = numbers["snakeboard"], numbers["car"]
    assert board["off its own equations [m]"] < 1e-6
    assert board["slip of the wheels [m/s]"] < 1e-9
    assert board["way [m]"] > 3.0 and board["speed at the end [m/s]"] > 2.0
    assert car["radius of the circle [m]"] == pytest.approx(0.75)
    assert car["off the circle [m]"] < 1e-9
    assert car["arm off that on a turntable [-]"] < 1e-6
    assert 5.0 < car["least load of a wheel or the caster [N]"] < 20.0
    assert is_picture(tmp_path / "snakeboard.png") and is_picture(tmp_path / "car.png")
