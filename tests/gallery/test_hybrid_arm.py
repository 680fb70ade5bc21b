"""A UR10e with a soft arm and a soft gripper, Pustina 2025, simulation 2."""

import warnings

import numpy as np
import pytest
from gallery.examples import example

import lissom as ls

pytest.importorskip("jax")


@pytest.fixture(scope="module")
def study():
    """The example as a module."""
    return example("hybrid_arm")


@pytest.fixture(scope="module")
def model(study):
    """The robot."""
    return study.build()


def test_robot(study, model):
    """Purpose: eight bodies of eleven coordinates; without soft inputs the joints' law is the library's."""
    assert len(model.links.names) == 8 and model.nv == 11
    rng = np.random.default_rng(5)
    q, v, t = *rng.uniform(-0.3, 0.3, (2, 11)), 0.8
    q[study.HAND] *= 1e-3  # so that the squares of radii stay positive
    given = [lambda t, k=k: study.path(t)[k] for k in range(3)]
    gains = dict(zip(("proportional", "derivative"), study.JOINT_GAINS))
    rates = {"velocity": given[1], "acceleration": given[2]}
    law = ls.partial_feedback_linearization(study.build(driven=False), given[0], **gains, **rates)
    expected = law.output(t, q, v, ())
    np.testing.assert_allclose(study.torques(model, t, q, v, np.zeros(4)), expected, atol=1e-9 * np.abs(expected).max())


def test_laws_do_what_they_are_for(study, model):
    """Purpose: under tendons and pressure, too, the joints' errors obey their law; at the arm's shape, at rest, the
    tensions leave it there."""
    rng = np.random.default_rng(6)
    q, v, t = *rng.uniform(-0.3, 0.3, (2, 11)), 4.0
    q[study.HAND] *= 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.AccuracyWarning)  # far from the shape a tendon is to push
        a = ls.forward_dynamics(model, q, v, study.laws(model)[2](t, q, v))[study.JOINTS]
    wanted = -study.JOINT_GAINS[1] * v[study.JOINTS] + study.JOINT_GAINS[0] * (study.GOAL - q[study.JOINTS])
    np.testing.assert_allclose(a, wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())
    still = np.zeros(11)
    q[study.ARM] = study.SHAPE / study.LENGTH
    tensions = study.tensions(model, q, still)
    left = ls.inverse_dynamics(model, q, still, still) - ls.actuation_matrix(model, q)[:, 6:9] @ tensions
    assert np.abs(left[study.ARM]).max() < 1e-10


def test_pressure_in_the_chamber(study, model):
    """Purpose: the work of the pressure is that on a chamber whose volume is known: x ↦ ∫(1 + q s²), and radii that
    lose as much by the stretch as they gain by the source; by 32 flat sides, whose area is (2π/32)²/6 = 0.0064 too
    small."""
    stretch, source = 0.02, 2e-5
    q = np.zeros(11)
    q[study.HAND] = stretch, source
    x = np.linspace(study.FLOOR, study.GRIPPER, 20001)
    longer = lambda q_0: x + q_0 * x**3 / (3 * study.GRIPPER**2)  # noqa: E731
    slope = lambda q_0: 1 + q_0 * (x / study.GRIPPER) ** 2  # noqa: E731

    def volume(q_0, q_1):
        square = study.INNER**2 / slope(q_0) + q_1 * (longer(q_0) / study.GRIPPER) ** 2
        return np.pi * np.trapezoid(square * slope(q_0), x)

    h = 1e-6
    exact = np.array([
        (volume(stretch + h, source) - volume(stretch - h, source)) / (2 * h),
        (volume(stretch, source + h * 1e-3) - volume(stretch, source - h * 1e-3)) / (2e-3 * h),
    ])  # fmt: skip
    B = ls.actuation_matrix(model, q)[:, 9]
    assert B[10] == pytest.approx(exact[1], rel=0.0075)
    lid = np.pi * study.INNER**2 * study.GRIPPER / 3  # gain of the lid by the stretch; the wall loses almost as much
    assert B[9] == pytest.approx(exact[0], abs=0.005 * lid)
    assert np.abs(B[:9]).max() < 1e-12 * np.abs(B).max()


@pytest.mark.filterwarnings("ignore:tendon")  # the start of the regulator asks one to push
@pytest.mark.slow  # six seconds of motion whose every evaluation goes through JAX and two laws
def test_three_tasks(study, tmp_path):
    """Purpose: as the paper says, joints follow and stay, the arm comes to its shape, and pressure brings the gripper
    to its equilibrium."""
    numbers = study.main(tmp_path)
    assert numbers["joints at the end of (i), largest error [rad]"] < 1e-4
    assert numbers["joints at the end of (iii), largest error [rad]"] < 1e-4
    assert numbers["arm at the end of (ii), largest error of a bend [rad]"] < 0.01
    assert numbers["of the elongation [mm]"] < 0.1
    grown = numbers["growth of its squared radii at its end [mm²]"]
    assert grown == pytest.approx(numbers["by statics [mm²]"], rel=1e-3)
    for picture in ("shapes.png", "motion.png"):
        assert (tmp_path / picture).stat().st_size > 10_000
