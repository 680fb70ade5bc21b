"""Prepared calls at one state give the results of first calls, for all their arguments, and refuse the same
arguments."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import lissom as ls
from lissom.launch.workspace import call_of, no_prepared_call


def arm():
    """Two hinges, and a thruster at the end of a slider."""
    made = ls.Robot("arm")
    for k, joint in enumerate((ls.JointRevolute((0, 1, 0)), ls.JointRevolute((1, 0, 0)), ls.JointPrismatic())):
        body = ls.RigidBody(1.0 + k, (0.1, 0.02, 0.0), (0.02, 0.03, 0.01))
        made.add_link(f"link{k}", body, joint, parent=f"link{k - 1}" if k else None)
    made.add_wrench_input("thrust", "link2", directions=(0, 0, 0, 1.0, 0, 0))
    return made


@pytest.fixture(scope="module")
def model():
    """A robot whose calls are prepared by the tests."""
    return arm().build()


@pytest.fixture(scope="module")
def states():
    """Two states (q, v, a)."""
    return np.random.default_rng(4).uniform(-1.0, 1.0, (2, 3, 3))


def calls(model):
    """Functions of states whose calls are prepared, and how many of q, v and a they take."""
    first, last = model.links.names[0], model.links.names[-1]
    return {
        "inverse_dynamics": (ls.inverse_dynamics, 3),
        "inverse_dynamics without gravity": (lambda *x: ls.inverse_dynamics(*x, gravity=False), 3),
        "inverse_dynamics without loads": (lambda *x: ls.inverse_dynamics(*x, elastic=False, loads=False), 3),
        "forward_dynamics": (ls.forward_dynamics, 2),
        "mass_matrix": (ls.mass_matrix, 1),
        "coriolis_matrix": (ls.coriolis_matrix, 2),
        "forward_kinematics": (ls.forward_kinematics, 1),
        "frame_pose": (lambda m, q: ls.frame_pose(m, q, first), 1),
        "frame_pose of another": (lambda m, q: ls.frame_pose(m, q, last), 1),
    }


def test_the_same_as_first_calls(model, states):
    """Calls in turn, each prepared by the one before, for arguments of all kinds; earlier results stay unchanged."""
    found = {}
    for turn in range(3):
        for name, (call, count) in calls(model).items():
            for k, state in enumerate(states):
                arguments = state[:count]
                fresh = call(arm().build(), *arguments) if turn == 0 else found[name, k][0]
                kinds = [arguments, [list(x) for x in arguments], [np.repeat(x, 2)[::2] for x in arguments]]
                for given in kinds:
                    result = call(model, *given)
                    np.testing.assert_array_equal(result, fresh)
                found.setdefault((name, k), (result, result.copy()))
    for kept, copy in found.values():
        assert np.array_equal(kept, copy)  # none of them is a view of a buffer
    for family in ("forward_dynamics", "mass_matrix", "poses", "coriolis_matrix"):
        assert call_of(model, family) is not no_prepared_call
    for options in ((True, True, True), (False, True, True), (True, False, False)):
        assert call_of(model, "inverse_dynamics", *options) is not no_prepared_call
    assert call_of(model, "inverse_dynamics", False, False, False) is no_prepared_call  # nobody asked


def test_what_is_refused(model, states):
    """Wrong sizes, batches and numbers that are not finite, after the same call was prepared."""
    for call, count in calls(model).values():
        good = states[0][:count]
        one = call(model, *good)
        for k in range(count):
            wrong = [x.copy() for x in good]
            wrong[k][0] = np.nan
            with pytest.raises(ls.ShapeError, match=f"{'qva'[k]}.*must be finite"):
                call(model, *wrong)
            with pytest.raises(ls.ShapeError, match="expected shape"):
                call(model, *good[:k], good[k][1:], *good[k + 1 :])
            with pytest.raises(ls.ShapeError, match="expected"):
                call(model, *good[:k], "none", *good[k + 1 :])
        many = call(model, *(np.stack([x, x]) for x in good))
        assert many.shape == (2, *one.shape)
        np.testing.assert_array_equal(call(model, *good), one)
        np.testing.assert_array_equal(call(model, *(x.astype(np.float32) for x in good)),
                                      call(model, *(x.astype(np.float32).astype(float) for x in good)))  # fmt: skip


def test_inputs_that_are_not_finite(model, states):
    """They are named."""
    q, v, _ = states[0]
    known = [ls.forward_dynamics(model, q, v, np.ones(1)) for _ in range(2)]
    assert np.array_equal(*known) and not np.array_equal(known[0], ls.forward_dynamics(model, q, v))
    for bad in (np.inf, np.nan):
        with pytest.raises(ls.ShapeError, match="u: must be finite"):
            ls.forward_dynamics(model, q, v, np.array([bad]))


def test_what_depends_on_time_is_not_prepared():
    """A load that varies is felt as it is at each time."""
    made = arm()
    made.add_point_load("pulled", "link2", force=lambda t: (t, 0.0, t))
    model, zero = made.build(), np.zeros(3)
    for call in (ls.inverse_dynamics, lambda m, q, v, _, t: ls.forward_dynamics(m, q, v, t=t)):
        at = [call(model, zero, zero, zero, t=t) for t in (0.0, 1.0, 2.0, 1.0)]
        assert np.array_equal(at[1], at[3]) and np.abs(at[1] - at[0]).max() > 0.1
        np.testing.assert_allclose(at[2] - at[0], 2.0 * (at[1] - at[0]), rtol=1e-12, atol=1e-12)


def pulled(kind):
    """The arm under something of time: a load, a current, or a Python force of the state."""
    made = arm()
    if kind == "load":
        made.add_point_load("pulled", "link2", force=lambda t: (0.0, 0.0, t))
    if kind == "current":
        material, basis = ls.Material(young=1e6, poisson=0.4, density=1000.0), ls.BasisLegendre(bending_y=1)
        made.add_link("rod", ls.Rod(0.3, ls.SectionCircle(0.02), basis, material), parent="link2")
        made.set_fluid(1000.0, current=lambda t: (0.0, t, 0.0), default=None, links={"rod": ls.Hydrodynamics()})
    if kind == "force":
        made.add_force("pulled", "link2", lambda t, g, eta: (0.0, 0.0, 0.0, 1.0 + g[0, 3], t, eta[3]))
    return made.build()


@pytest.mark.parametrize("kind", ["load", "current", "force"])
def test_options_do_not_outlive_their_call(kind):
    """Calls without loads, with them, at other times and without gravity, in turn, are those of a fresh model."""
    model = pulled(kind)
    q, v, a = np.random.default_rng(2).uniform(-1.0, 1.0, (3, model.nv))
    asked = [{"loads": False}, {"t": 5.0}, {"t": 2.0}, {"t": 5.0}, {"gravity": False}, {"gravity": False, "t": 1.0}]
    for options in (*asked, *reversed(asked)):
        fresh = ls.inverse_dynamics(pulled(kind), q, v, a, **options)
        np.testing.assert_array_equal(ls.inverse_dynamics(model, q, v, a, **options), fresh)
    felt = [ls.inverse_dynamics(model, q, v, a, **options) for options in ({"t": 5.0}, {"loads": False})]
    assert np.abs(felt[0] - felt[1]).max() > 0.01


def test_shapes_do_not_outlive_their_call(model, states):
    """One abscissa, a list of one, and a batch, in turn."""
    q = states[0][0]
    for _ in range(2):
        for s, shape in ((1.0, (4, 4)), ([1.0], (1, 4, 4)), ([1.0], (1, 4, 4)), ([1.0, 1.0], (2, 4, 4))):
            assert ls.frame_pose(model, q, "link2", s).shape == shape
            assert ls.frame_pose(model, q[None], "link2", s).shape == (1, *shape)


def test_threads_have_their_own(model, states):
    """Two threads that ask at once for different states get the results that each gets alone."""
    want = [ls.inverse_dynamics(model, *state) for state in states]

    def ask(k):
        return all(np.array_equal(ls.inverse_dynamics(model, *states[k % 2]), want[k % 2]) for _ in range(300))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(4)))
