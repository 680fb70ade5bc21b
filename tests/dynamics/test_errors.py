"""Errors other than wrong arrays: names, abscissae, masses, inputs and full turns."""

import re

import numpy as np
import pytest
from dynamics.small_robots import mixed, pendulum, rod, state

import lissom as ls

FRAME_CALLS = {
    "frame_pose": lambda m, q, *where: ls.frame_pose(m, q, *where),
    "frame_twist": lambda m, q, *where: ls.frame_twist(m, q, np.zeros(m.nv), *where),
    "frame_acceleration": lambda m, q, *where: ls.frame_acceleration(m, q, np.zeros(m.nv), np.zeros(m.nv), *where),
    "frame_jacobian": lambda m, q, *where: ls.frame_jacobian(m, q, *where),
    "frame_jacobian_derivative": lambda m, q, *where: ls.frame_jacobian_derivative(m, q, np.zeros(m.nv), *where),
}
every_frame_call = pytest.mark.parametrize("name", FRAME_CALLS)


@every_frame_call
def test_unknown_links_and_frames(name):
    """An unknown name, or a value that is no text, is a ModelError that lists the links and frames there are."""
    model = mixed()
    for link in ("nobody", "", "Arm", 3, None, ["arm"]):
        message = f"link or frame: must be one of ['arm', 'base', 'hand', 'mark'] (got {link!r})"
        with pytest.raises(ls.ModelError, match=f"^{re.escape(message)}$"):
            FRAME_CALLS[name](model, model.neutral(), link)


@every_frame_call
@pytest.mark.parametrize("s", [-1e-9, 1.0 + 1e-9, np.nan, np.inf, [0.5, 1.5], [[0.5]], None, "tip"])
def test_abscissae_outside_the_rod(name, s):
    """s must be a number or a list of numbers in [0, 1], whatever it is asked of."""
    model = mixed()
    for link in ("arm", "hand", "mark"):
        with pytest.raises(ls.ModelError, match=r"^s: must lie in \[0, 1\], a number or a list \(got "):
            FRAME_CALLS[name](model, model.neutral(), link, s)


@every_frame_call
def test_no_abscissae(name):
    """An empty list of points gives no frames."""
    model = mixed()
    one = FRAME_CALLS[name](model, model.neutral(), "arm", [0.5])
    assert FRAME_CALLS[name](model, model.neutral(), "arm", []).shape == (0, *one.shape[1:])


def chain(massless):
    """Three hinges; the link named massless has no body, and is the last, the middle or the first."""
    robot = ls.Robot("chain")
    body, along = ls.RigidBody(1.0, (0.1, 0, 0), (1e-3, 1e-3, 1e-3)), np.eye(4)
    along[0, 3] = 0.3
    for k, name in enumerate(("one", "two", "three")):
        parent = ("one", "two")[k - 1] if k else None
        robot.add_link(name, None if name == massless else body, ls.JointUniversal(), parent=parent, placement=along)
    return robot.build()


@pytest.mark.parametrize("lead", [(), (3,)])
def test_a_coordinate_without_mass(lead):
    """Forward dynamics cannot divide by nothing: the ModelError names the link and which of its coordinates."""
    model = chain("three")
    zero = np.zeros((*lead, model.nv))
    with pytest.raises(ls.ModelError, match=r"^link 'three': its velocity coordinate 0 must move some mass"):
        ls.forward_dynamics(model, zero, zero)


def test_a_body_without_inertia_about_its_axis():
    """A point mass on its own axis cannot be turned: the second coordinate of the link is named."""
    robot = ls.Robot("needle")
    robot.add_link("needle", ls.RigidBody(1.0, (0.2, 0.0, 0.0)), ls.JointUniversal((0, 0, 1), (1, 0, 0)))
    with pytest.raises(ls.ModelError, match=r"^link 'needle': its velocity coordinate 1 must move some mass"):
        ls.forward_dynamics(robot.build(), [0.0, 0.0], [0.0, 0.0])


def test_massless_links_in_between_are_no_error():
    """A massless link whose children have mass moves."""
    model = chain("one")
    q, v, *_ = state(model)
    assert np.isfinite(ls.forward_dynamics(model, q, v)).all()


def test_everything_but_forward_dynamics_takes_massless_robots():
    """Kinematics, inverse dynamics, M and C need no mass."""
    model = chain("three")
    q, v, a, _ = state(model)
    assert np.isfinite(ls.inverse_dynamics(model, q, v, a)).all()
    M = ls.mass_matrix(model, q)
    assert not M[-2:].any()
    assert np.isfinite(ls.coriolis_matrix(model, q, v)).all()
    assert np.isfinite(ls.frame_pose(model, q, "three")).all()


def test_a_bad_state_is_found_before_missing_mass():
    """NaN in one instance of a batch does not hide behind a singular mass matrix."""
    model = chain("three")
    zero = np.zeros(model.nv)
    with pytest.raises(ls.ShapeError, match="q: must be finite"):
        ls.forward_dynamics(model, np.full(model.nq, np.nan), zero)


@pytest.mark.parametrize("u", [[], [1.0, 2.0], 1.0, "pull", [np.nan], [np.inf]])
def test_wrong_inputs(u):
    """u of a wrong size, kind or value is a ShapeError that names u."""
    model = pendulum()
    with pytest.raises(ls.ShapeError, match=r"^u: "):
        ls.forward_dynamics(model, [0.1], [0.0], u)


def test_no_input_is_zero_input():
    """u=None is zero, and a robot without actuators takes an empty u."""
    model = pendulum()
    assert np.array_equal(ls.forward_dynamics(model, [0.1], [0.0]), ls.forward_dynamics(model, [0.1], [0.0], [0.0]))
    robot = ls.Robot("bare")
    robot.add_link("bob", ls.RigidBody(1.0, (0, 0, -1.0)), ls.JointRevolute((0, 1, 0)))
    bare = robot.build()
    assert bare.nu == 0
    assert np.array_equal(ls.forward_dynamics(bare, [0.1], [0.0], []), ls.forward_dynamics(bare, [0.1], [0.0]))
    assert ls.actuation_matrix(bare, [0.1]).shape == (1, 0)
    assert ls.path_lengths(bare, [[0.1]]).shape == (1, 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, q: ls.inverse_dynamics(m, q, 0 * q, 0 * q),
        lambda m, q: ls.forward_dynamics(m, q, 0 * q),
        ls.mass_matrix,
        lambda m, q: ls.coriolis_matrix(m, q, 0 * q),
        ls.forward_kinematics,
        lambda m, q: ls.energy(m, q, 0 * q),
        lambda m, q: ls.momentum(m, q, 0 * q),
        ls.center_of_mass,
        ls.actuation_matrix,
        lambda m, q: ls.frame_jacobian(m, q, "rod"),
        lambda m, q: ls.frame_pose(m, q, "rod", 0.7),
    ],
)
def test_an_interval_must_turn_less_than_a_full_turn(call):
    """Bending so far that one interval turns by 2π or more is refused, just before it is not."""
    model = rod()
    longest = model.nodes.h.max()
    assert np.isfinite(model.nodes.h).all()
    call(model, np.array([0.99 * 2 * np.pi / longest, 0.0, 0.0]))
    with pytest.raises(ls.ShapeError, match=r"^q: a rod interval turns by 2π or more; use more Gauss points"):
        call(model, np.array([1.01 * 2 * np.pi / longest, 0.0, 0.0]))


def test_what_overflows_is_not_a_silent_nan():
    """Finite but absurd rates, whose products overflow, are refused or give infinity, never NaN."""
    model = rod()
    q, zero = model.neutral(), np.zeros(model.nv)
    with pytest.raises(ls.ShapeError, match="finite"):
        ls.inverse_dynamics(model, q, np.full(model.nv, 1e200), zero)


def test_a_centre_of_mass_needs_mass():
    """A robot of frames only has none, and says so; its momentum is zero."""
    robot = ls.Robot("ghost")
    robot.add_link("hand", None, ls.JointRevolute())
    model = robot.build()
    assert np.array_equal(ls.momentum(model, [0.3], [1.0]), np.zeros(6))
    with pytest.raises(ls.ModelError, match=r"^robot 'ghost': a centre of mass needs a mass > 0 \(got 0.0\)$"):
        ls.center_of_mass(model, [0.3])


@pytest.mark.parametrize("call", [ls.linearize, ls.modes])
def test_linearization_takes_one_configuration(call):
    """A batch, NaN or a wrong u is refused by name, as everywhere."""
    model = pendulum()
    for q, u, name in ((np.zeros((2, 1)), None, "q"), ([np.nan], None, "q"), ([0.0], [1.0, 2.0], "u"),
                       ([0.0], [np.nan], "u")):  # fmt: skip
        with pytest.raises(ls.ShapeError, match=f"^{name}: "):
            call(model, q, u)


@pytest.mark.parametrize("call", [ls.linearize, ls.modes])
def test_linearization_needs_mass(call):
    """A coordinate without mass has no frequency: the same ModelError as forward dynamics'."""
    model = chain("three")
    with pytest.raises(ls.ModelError, match=r"^link 'three': its velocity coordinate 0 must move some mass"):
        call(model, np.zeros(model.nq))


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("call", [
    lambda m, q, v: ls.inverse_dynamics_derivatives(m, q, v, v), lambda m, q, v: ls.modes(m, q, v=v),
    lambda m, q, v: ls.forward_dynamics_derivatives(m, q, v), lambda m, q, v: ls.linearize(m, q, v=v),
])  # fmt: skip
def test_derivatives_that_overflow_are_refused(call):
    """Arguments whose squares leave the range of numbers give an error, as they do in the functions themselves."""
    model = rod()
    with pytest.raises(ls.ShapeError, match="the result is not finite; the arguments are too large"):
        call(model, model.neutral(), np.full(model.nv, 1e160))
