"""Arguments of every dynamics function: leading axes, sizes, values; and results that belong to the caller."""

import re
from dataclasses import astuple
from itertools import product

import numpy as np
import pytest
from dynamics.small_robots import looped, mixed, rod, state

import lissom as ls


def mass_with_forces(found):
    """M, h and τ as one array."""
    return np.concatenate([found.mass, found.bias[..., None], found.force[..., None]], axis=-1)


# name: (call, its arguments among q, v, a, u)
CALLS = {
    "inverse_dynamics": (ls.inverse_dynamics, "qva"),
    "external_force": (ls.external_force, "qv"),
    "forward_dynamics": (ls.forward_dynamics, "qvu"),
    "inverse_dynamics_derivatives": (lambda *x: np.stack(ls.inverse_dynamics_derivatives(*x), axis=-3), "qva"),
    "forward_dynamics_derivatives": (lambda *x: np.concatenate(ls.forward_dynamics_derivatives(*x), axis=-1), "qvu"),
    "mass_matrix": (ls.mass_matrix, "q"),
    "mass_inverse_dynamics": (lambda *x: mass_with_forces(ls.mass_inverse_dynamics(*x)), "qva"),
    "coriolis_matrix": (ls.coriolis_matrix, "qv"),
    "energy": (lambda *x: ls.energy(*x).total, "qv"),
    "momentum": (ls.momentum, "qv"),
    "center_of_mass": (ls.center_of_mass, "q"),
    "actuation_matrix": (ls.actuation_matrix, "q"),
    "path_lengths": (ls.path_lengths, "q"),
    "spring_lengths": (ls.spring_lengths, "q"),
    "tendon_tensions": (ls.tendon_tensions, "qu"),
    "internal_wrench": (lambda m, *x: ls.internal_wrench(m, *x, next(iter(m.rods)), [0.2, 0.9]).total, "qvau"),
    "joint_wrench": (lambda m, *x: ls.joint_wrench(m, *x, m.links.names[-1]), "qvau"),
    "forward_kinematics": (ls.forward_kinematics, "q"),
    "frame_pose": (lambda m, q: ls.frame_pose(m, q, m.links.names[-1], 0.4), "q"),
    "frame_pose at points": (lambda m, q: ls.frame_pose(m, q, next(iter(m.rods)), [0.2, 0.9]), "q"),
    "frame_twist": (lambda m, q, v: ls.frame_twist(m, q, v, m.links.names[-1]), "qv"),
    "frame_acceleration": (lambda m, q, v, a: ls.frame_acceleration(m, q, v, a, m.links.names[-1]), "qva"),
    "frame_jacobian": (lambda m, q: ls.frame_jacobian(m, q, next(iter(m.rods)), [0.2, 0.9]), "q"),
    "frame_jacobian_derivative": (lambda m, q, v: ls.frame_jacobian_derivative(m, q, v, next(iter(m.rods))), "qv"),
    "inverse_dynamics_tangent": (lambda m, q, v, a: ls.inverse_dynamics_tangent(m, q, v, a, dq=np.ones(m.nv)), "qva"),
    "frame_twist_derivatives": (
        lambda m, q, v: np.stack(ls.frame_twist_derivatives(m, q, v, m.links.names[-1], 0.4), axis=-3),
        "qv",
    ),
    "frame_acceleration_derivatives": (
        lambda m, *x: np.stack(ls.frame_acceleration_derivatives(m, *x, next(iter(m.rods)), [0.2, 0.9]), axis=-3),
        "qva",
    ),
    "loop_residual": (ls.loop_residual, "q"),
    "constraint_jacobian": (ls.constraint_jacobian, "q"),
    "constraint_jacobian_derivative": (ls.constraint_jacobian_derivative, "qv"),
    "constraint_derivatives": (lambda *x: np.stack(astuple(ls.constraint_derivatives(*x)), axis=-3), "qva"),
    "constraint_force_derivative": (
        lambda m, q: ls.constraint_force_derivative(m, q, np.ones(m.n_multipliers)),
        "q",
    ),
    "loop_wrenches": (lambda m, q: ls.loop_wrenches(m, q, np.ones(m.n_multipliers)), "q"),
    "integrate": (ls.integrate, "qv"),
    "difference": (lambda m, q: ls.difference(m, m.neutral(), q), "q"),
}
NAMED = {"integrate": {"v": "dv"}, "difference": {"q": "q1"}}
MODELS = {"rod": rod, "mixed": mixed, "looped": looped}

every_call = pytest.mark.parametrize("name", CALLS)
every_model = pytest.mark.parametrize("kind", MODELS)


def test_every_function_is_here():
    """A new public function of the dynamics must join this sweep."""
    public = {name for home, names in ls._PUBLIC.items() if home.startswith("dynamics.") for name in names}
    of_one_configuration = {"linearize", "modes", "stiffness_matrix", "damping_matrix", "assemble"}
    of_one_configuration |= {"contact_forces", "contact_anchors", "accuracy", "start_configuration", "stress"}
    of_one_configuration |= {"assemble_velocities"}
    functions = {name for name in public if name[0].islower()} - of_one_configuration
    assert functions == {name.split()[0] for name in CALLS}


def arguments(name, model, lead=(), seed=0):
    """The arguments of a call, in their order."""
    values = dict(zip("qvau", state(model, lead, seed)))
    return [values[key] for key in CALLS[name][1]]


def named(name, key):
    """The name of an argument in messages."""
    return NAMED.get(name, {}).get(key, key)


@every_call
@every_model
def test_batches(name, kind):
    """A batch is the single results at their places; 40 instances are split over threads."""
    model, (call, _) = MODELS[kind](), CALLS[name]
    for lead in ((1,), (3, 1, 2), (40,)):
        values = arguments(name, model, lead)
        many = call(model, *values)
        for at in [(0,) * len(lead), tuple(n - 1 for n in lead)]:
            one = call(model, *(x[at] for x in values))
            assert many.shape == lead + np.shape(one)
            np.testing.assert_allclose(many[at], one, rtol=1e-12, atol=1e-12 * np.abs(one).max(initial=0.0))


@every_call
@every_model
def test_empty_batches(name, kind):
    """An empty batch gives an empty result of the right shape."""
    model, (call, _) = MODELS[kind](), CALLS[name]
    one = call(model, *arguments(name, model))
    for lead in ((0,), (2, 0)):
        empty = [np.zeros(lead + x.shape) for x in arguments(name, model)]
        assert call(model, *empty).shape == lead + np.shape(one)


@pytest.mark.parametrize("name", [name for name, (_, keys) in CALLS.items() if len(keys) > 1])
@every_model
def test_arguments_broadcast(name, kind):
    """One q with many v, and rows against columns."""
    model, (call, _) = MODELS[kind](), CALLS[name]
    first, *others = arguments(name, model, (2,))
    grid = call(model, first[:, None], *(np.stack([x[0], x[1], x[0] + x[1]]) for x in others))
    assert grid.shape[:2] == (2, 3)
    np.testing.assert_allclose(grid[1, 0], call(model, first[1], *(x[0] for x in others)), rtol=1e-13, atol=1e-13)
    single = call(model, first[0], *others)
    np.testing.assert_allclose(single[1], call(model, first[0], *(x[1] for x in others)), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", [name for name, (_, keys) in CALLS.items() if len(keys) > 1])
def test_leading_axes_that_do_not_fit(name):
    """Leading axes that do not broadcast are a ShapeError that shows them."""
    model, (call, _) = mixed(), CALLS[name]
    (first, *_), (_, *others) = arguments(name, model, (2,)), arguments(name, model, (3,))
    with pytest.raises(ls.ShapeError, match=r"leading axes do not broadcast: q \(2, \d+\), .*\(3, \d+\)"):
        call(model, first, *others)


@every_call
@every_model
def test_wrong_sizes(name, kind):
    """A wrong size, also a plain number, names the argument, the expected and the received shape."""
    model, (call, keys) = MODELS[kind](), CALLS[name]
    for k, key in enumerate(keys):
        values = arguments(name, model)
        size = len(values[k])
        for bad, got in ((np.zeros(size + 1), f"({size + 1},)"), (np.zeros((2, 0)), "(2, 0)"), (1.0, "()")):
            values[k] = bad
            message = f"{named(name, key)}: expected shape (..., {size}), got {got}"
            with pytest.raises(ls.ShapeError, match=f"^{re.escape(message)}$"):
                call(model, *values)


@every_call
def test_what_is_not_a_number(name):
    """Texts and ragged lists are a ShapeError that names the argument."""
    model, (call, keys) = rod(), CALLS[name]
    for k, key in enumerate(keys):
        for bad in ("abc", [[1.0, 2.0], [3.0]], {"x": 1.0}):
            values = arguments(name, model)
            values[k] = bad
            with pytest.raises(ls.ShapeError, match=rf"^{named(name, key)}: expected"):
                call(model, *values)


@every_call
@every_model
def test_not_finite(name, kind):
    """NaN and infinity are refused at the door, wherever they stand, and the message names the argument."""
    model, (call, keys) = MODELS[kind](), CALLS[name]
    for k, key in enumerate(keys):
        for at, value in product((0, -1), (np.nan, np.inf, -np.inf)):
            values = arguments(name, model)
            values[k][at] = value
            rule = "must be finite, got NaN or infinity"
            if kind != "rod" and key == "q" and np.isinf(value):  # in a quaternion, either rule is broken
                rule = f"({rule}|a quaternion must have unit length)"
            with pytest.raises(ls.ShapeError, match=rf"^{named(name, key)}: {rule}"):
                call(model, *values)


@pytest.mark.parametrize("name", [name for name in CALLS if name not in ("integrate", "difference")])
def test_one_bad_instance_in_a_batch(name):
    """A bad instance is named by its place in the batch, and refuses the whole."""
    model, (call, _) = mixed(), CALLS[name]
    values = arguments(name, model, (40,))
    values[0][33, 2] = np.nan
    with pytest.raises(ls.ShapeError, match=r"q \(instance 33 of 40\): must be finite"):
        call(model, *values)


@every_call
def test_quaternions_must_have_unit_length(name):
    """Up to 1e-6 a quaternion is normalised, beyond it is an error; zero is one, too."""
    model, (call, _) = mixed(), CALLS[name]
    values = arguments(name, model)
    expected = call(model, *values)
    start = [k for k in range(model.nq - 3) if abs(np.linalg.norm(values[0][k : k + 4]) - 1) < 1e-12]
    assert len(start) == 2
    for at, link in zip(start, ("base", "hand")):
        stretched = [values[0].copy(), *values[1:]]
        stretched[0][at : at + 4] *= 1 + 0.9e-6
        size = np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(call(model, *stretched), expected, rtol=0, atol=1e-11 * size)
        for factor in (1 + 1.2e-6, 1 - 1.2e-6, 0.0):
            stretched[0][at : at + 4] = factor * values[0][at : at + 4]
            got = rf"\(got {factor:.9g}, of link '{link}'\)"
            with pytest.raises(ls.ShapeError, match=rf"^q1?: a quaternion must have unit length to 1e-6 {got}$"):
                call(model, *stretched)


@every_call
@every_model
def test_inputs_are_never_modified(name, kind):
    """Arguments keep their values; read-only, reversed and integer arrays and lists are taken."""
    model, (call, _) = MODELS[kind](), CALLS[name]
    values = arguments(name, model, (3,))
    copies = [x.copy() for x in values]
    expected = call(model, *values)
    assert all(np.array_equal(x, y) for x, y in zip(values, copies))
    backwards = [x[::-1] for x in values]
    for x in backwards:
        x.setflags(write=False)
    assert np.array_equal(call(model, *backwards), expected[::-1])
    assert np.array_equal(call(model, *(x.tolist() for x in values)), expected)
    assert np.array_equal(call(model, *(np.asfortranarray(x) for x in values)), expected)


@every_call
def test_integers_and_single_precision_count_as_float64(name):
    """Integer and float32 arrays give what their float64 copies give."""
    model, (call, _keys) = rod(), CALLS[name]
    values = [np.ones(len(x)) for x in arguments(name, model)]
    expected = call(model, *values)
    for kind in (int, np.float32):
        assert np.array_equal(call(model, *(x.astype(kind) for x in values)), expected)


@every_call
@every_model
@pytest.mark.parametrize("lead", [(), (2,)])
def test_results_are_fresh(name, kind, lead):
    """A result is the caller's own: writable, float64, untouched by later calls, which it cannot disturb."""
    model, (call, _) = MODELS[kind](), CALLS[name]
    values, others = arguments(name, model, lead), arguments(name, model, lead, seed=1)
    first = np.asarray(call(model, *values))
    kept = first.copy()
    second = np.asarray(call(model, *others))
    assert np.array_equal(first, kept)
    assert not np.shares_memory(first, second)
    assert first.dtype == np.float64
    if name != "energy" or lead:
        assert first.flags.writeable
        first[...] = np.nan
        second[...] = np.nan
    assert np.array_equal(call(model, *values), kept)
