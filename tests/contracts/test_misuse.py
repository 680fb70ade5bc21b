"""Mistakes of users are answered in one line that names the argument and the remedy."""

import warnings
from inspect import isroutine, signature

import jax.numpy as jnp
import numpy as np
import pytest

import lissom as ls


def pendulum():
    """A bar on a hinge with a motor."""
    robot = ls.Robot("pendulum")
    robot.add_link("bar", ls.RigidBody(1.0, (0.1, 0.0, 0.0), (1e-4, 2e-3, 2e-3)), ls.JointRevolute((0, 1, 0)))
    robot.add_joint_actuator("motor", "bar")
    return robot.build()


@pytest.fixture(scope="module")
def model():
    return pendulum()


@pytest.mark.parametrize(("basis", "order"), [(ls.BasisLegendre, 2), (ls.BasisPiecewiseLinear, 2),
                                              (ls.BasisBSpline, (2, 3))])  # fmt: skip
def test_strains_of_other_names(basis, order):
    """A strain that does not exist is refused with those that do, and the nearest."""
    listed = "must be given orders of torsion, bending_y, bending_z, elongation, shear_y, shear_z"
    for name, cure in (("bending", "give bending_y= and bending_z="), ("shear_x", "did you mean 'shear_")):
        with pytest.raises(ls.ModelError, match=rf"^{basis.__name__}: {listed} \(got '{name}'\); {cure}"):
            basis(**{name: order})
    assert basis(bending_y=order) == basis(None, order)


def test_results_in_place_of_states(model):
    """A result that is given as a start names the field that is meant."""
    found = ls.inverse_kinematics(model, {"bar": [0.0, 0.0, 0.0]})
    calls = {
        "q0": [
            lambda x: ls.Stepper(model, 1e-3, q0=x),
            lambda x: ls.simulate(model, 0.01, x),
            lambda x: ls.solve_statics(model, q0=x),
            lambda x: ls.inverse_kinematics(model, {"bar": np.zeros(3)}, q0=x),
        ],
        "q": [lambda x: ls.mass_matrix(model, x)],
    }
    for name, functions in calls.items():
        for call in functions:
            with pytest.raises(ls.ShapeError, match=rf"^{name}: .*, got the InverseKinematics itself; give its q$"):
                call(found)
    motion = ls.simulate(model, 0.01, t_eval=[0.0, 0.01])
    with pytest.raises(ls.ShapeError, match=r"^q0: .*, got the Trajectory itself; give its q, such as \.q\[-1\]$"):
        ls.simulate(model, 0.01, motion)


def test_inputs_over_time_in_place_of_a_batch(model):
    """An array (times, nu) is a batch of motions: it is said where the times fit, and where they are missing."""
    times, u = np.linspace(0.0, 0.05, 6), np.zeros((6, 1))
    with pytest.warns(
        ls.PlausibilityWarning, match=r"^u of shape \(6, 1\) is a batch of motions .*ls\.Samples\(times, u\)"
    ):
        assert ls.simulate(model, 0.05, u=u, t_eval=times).q.shape == (6, 6, 1)
    with pytest.raises(
        ls.ShapeError, match=r"^t_eval: a batch of shape \(6,\) needs .*inputs over time are ls\.Samples"
    ):
        ls.simulate(model, 0.05, u=u)
    assert ls.simulate(model, 0.05, u=ls.Samples(times, u), t_eval=times).q.shape == (6, 1)
    ls.simulate(model, 0.05, u=u, t_eval=times[:5])
    ls.simulate(model, 0.05, np.zeros((6, 1)), u=u, t_eval=times)  # starts make the batch plain


NOT_FINITE = [
    (lambda q: jnp.stack([jnp.nan, q[0], 0.0]), 0),
    (lambda q: jnp.stack([q[0], 1.0 + q[0] * jnp.nan, 0.0]), 1),
    (lambda q: jnp.stack([q[0], 0.0, jnp.inf]), 2),
    (lambda q: jnp.stack([q[0], 0.0, 1.0 / (0.0 * q[0])]), 2),
]
FINITE = [
    lambda q: jnp.where(q[0] > 0.0, q, jnp.nan),
    lambda q: jnp.minimum(q, jnp.inf),
    lambda q: jnp.exp(-jnp.inf) + q,
]


def pushed(function):
    """Three joints that a traced function of their coordinates pushes."""
    robot = ls.Robot("r")
    for k, axis in enumerate(np.eye(3)):
        body = ls.RigidBody(1.0, inertia=(1, 1, 1)) if k == 2 else None
        robot.add_link(f"b{k}", body, ls.JointPrismatic(axis), f"b{k - 1}" if k else None)
    robot.add_custom_actuator("f", ls.TracedFunction(lambda q, u: function(q)), size=1, linear=False)
    return robot


@pytest.mark.parametrize(("function", "place"), NOT_FINITE)
def test_constants_that_are_not_finite(function, place):
    """A traced function whose result has a number that is never finite is refused when it is traced."""
    rule = rf"^actuator 'f': function: must return finite numbers, but number {place} of its result never is one$"
    with pytest.raises(ls.ModelError, match=rule):
        pushed(function).build()


@pytest.mark.parametrize("function", FINITE)
def test_numbers_that_are_chosen_may_be_infinite(function):
    """Infinite numbers and NaN in branches and limits are no mistakes."""
    pushed(function).build()


def test_curves_of_tables():
    """jax.numpy.interp has no compiled form; the line says what to write, which is the same curve."""
    x, y = np.array([-1.0, 0.0, 0.5, 1.0]), np.array([0.0, 1.0, -1.0, 2.0])
    with pytest.raises(
        ls.ModelError, match=r"interp and searchsorted use it: .*sum of slopes times maximum\(x - x_k, 0\)"
    ):
        pushed(lambda q: jnp.interp(q, x, y)).build()
    slopes = np.diff(np.diff(y) / np.diff(x), prepend=0.0, append=0.0)
    curve = lambda q: y[0] + sum(k * jnp.maximum(q - at, 0.0) for k, at in zip(slopes, x, strict=True))  # noqa: E731
    for q in np.linspace(-1.5, 1.5, 13):
        assert float(curve(q)) == pytest.approx(float(np.interp(q, x, y)), abs=1e-6)
    pushed(curve).build()


SIZES = {"q": 2, "q0": 2, "q1": 2, "v": 2, "v0": 2, "a": 2, "u": 1, "u0": 1, "dq": 2, "dv": 2, "da": 2, "tau": 2,
         "points": 3}  # fmt: skip
GIVEN = {"link": "arm", "link_or_frame": "arm", "s": 0.5, "duration": 0.01, "targets": {"arm": [0.2, 0.0, 0.1]},
         "y": {"t": 0.001}, "dt": 1e-3, "method": "sdirk", "steps": 3, "multipliers": np.zeros(0), "force": np.zeros(0),
         "parameters": ["arm.material.young"], "measured": {"arm": np.zeros((1, 3))}, "frames": ["arm"], "t": 0.0,
         "derivative": 0.1, "proportional": 1.0, "inputs": 1.0, "state": 1.0, "law": lambda t, q, v, gains: gains,
         "gains": np.zeros(1), "path": "never_written.mat", "accelerations": np.zeros(2)}  # fmt: skip


def takers():
    """Public functions of a model with an argument of SIZES, and these arguments."""
    for name in ls.__all__:
        function = getattr(ls, name)
        known = list(signature(function).parameters) if isroutine(function) else []
        if known[:1] == ["model"] and not SIZES.keys().isdisjoint(known):
            yield name


@pytest.fixture(scope="module")
def arm():
    """A rod of two modes with a tendon."""
    robot, silicone = ls.Robot("arm"), ls.Material(young=1e6, density=1000, viscosity=2e3)
    robot.add_link("arm", ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1), silicone))
    robot.add_tendon("t", "arm", (0.0, 0.008))
    return robot.build()


@pytest.mark.parametrize("name", list(takers()))
def test_states_and_inputs_are_finite(arm, name):
    """No function takes a state or an input that is not a number in silence, or fails past its door: the error is that
    of a wrong argument, and names it."""
    function, known = getattr(ls, name), signature(getattr(ls, name)).parameters
    needed = [key for key, p in known.items() if p.default is p.empty and key != "model"]
    plain = {key: np.zeros(SIZES[key]) if key in SIZES else GIVEN[key] for key in needed}
    for bad in SIZES.keys() & known.keys():
        more = {"rollout": {"steps": 3}, "fit": {"u": np.zeros((1, 1))}}.get(name, {})
        more |= {"t": [0.0, 1.0, 2.0, 3.0], "points": np.zeros((4, 1, 3))} if name == "static_reference" else {}
        with pytest.raises((ls.ShapeError, ls.ModelError), match=rf"\b{bad}\b"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = plain | more
            function(arm, **given | {bad: np.nan * np.zeros_like(given.get(bad, np.zeros(SIZES[bad])))})
