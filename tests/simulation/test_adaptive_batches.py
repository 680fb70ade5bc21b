"""Many motions with adaptive steps in one call: each is the same to the last bit as it is alone."""

import numpy as np
import pytest
from sampling import halved

import lissom as ls
from lissom.simulation.batches import AdaptiveBatch

COUNT, DURATION = 5, 0.3
TIMES = np.array([0.02, 0.1, 0.1003, 0.25, DURATION])


def arm(looped=False):
    """A soft arm with a tendon on a ball joint, or held at both ends."""
    robot = ls.Robot("arm", gravity=(0, 0, -9.81))
    material = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=5e3)
    rod = ls.Rod(0.4, ls.SectionCircle((0.02, 0.01)), ls.BasisLegendre(bending_y=3, bending_z=2, torsion=1), material)
    robot.add_link("arm", rod, ls.JointFixed() if looped else ls.JointSpherical())
    robot.add_tendon("t", "arm", lambda s: (0.01, 0.012 - 0.006 * s))
    if looped:
        ground = np.eye(4)
        ground[:3, 3] = 0.36, 0.0, 0.05
        robot.add_loop("pin", "arm", placement_b=ground, joint=ls.JointSpherical())
    return robot.build()


@pytest.fixture(scope="module", params=[False, True], ids=["tree", "loop"])
def model(request):
    """A robot with a stored quaternion, or with a loop."""
    return arm(request.param)


def given(model, kind, seed=0):
    """Starts, velocities and inputs of motions of a kind."""
    rng = np.random.default_rng(seed)
    q0 = ls.assemble(model) if model.n_rows else model.neutral()
    v0 = rng.normal(size=(COUNT, model.nv)) * model.dofs.scale
    t = np.linspace(0.0, 0.25, 6)
    u = {"nothing": None, "the same": [3.0], "constants": rng.uniform(0, 8, (COUNT, 1)),
         "samples": ls.Samples(t, rng.uniform(0, 8, (COUNT, 6, 1)), smooth=True)}  # fmt: skip
    return q0, v0, u[kind]


KINDS, METHODS = ("nothing", "the same", "constants", "samples"), ("auto", "generalized_alpha")


@pytest.mark.parametrize(("kind", "method"), halved(KINDS, METHODS))
def test_each_motion_is_as_it_is_alone(model, kind, method, monkeypatch):
    """In launches of a few steps each, which motions end at different times."""
    q0, v0, u = given(model, kind)
    options = {"t_eval": TIMES, "rtol": 1e-5, "atol": 1e-8, "method": method}
    runs, run = [], AdaptiveBatch.run
    monkeypatch.setattr(AdaptiveBatch, "run", lambda self, advance: runs.append(run(self, advance)))
    with monkeypatch.context() as m:
        m.setattr("lissom.stepping.step_kernel._MOST_BYTES", 2**16)
        many = ls.simulate(model, DURATION, q0, v0, u, **options)
    assert len(runs) == 1
    steps = []
    for k in range(COUNT):
        own = u
        if isinstance(u, ls.Samples):
            own = ls.Samples(u.t, u.u[k], smooth=True)
        elif kind == "constants":
            own = u[k]
        alone = ls.simulate(model, DURATION, q0, v0[k], own, **options)
        steps.append(alone.statistics.steps)
        for name in ("q", "v", "a", "u", "multipliers"):
            assert np.array_equal(getattr(many, name)[k], getattr(alone, name)), (k, name)
    assert many.statistics.steps >= sum(steps) > 8 * COUNT
    assert len(runs) == 1


def test_what_varies_otherwise_runs_one_by_one():
    """Functions of time are asked for in Python: the same motions none the less."""
    model = arm()
    q0, v0, _ = given(model, "nothing")
    options = {"t_eval": TIMES, "rtol": 1e-4}
    many = ls.simulate(model, DURATION, q0, v0, lambda t: [1.0 + t], **options)
    alone = ls.simulate(model, DURATION, q0, v0[2], lambda t: [1.0 + t], **options)
    assert np.array_equal(many.q[2], alone.q)


def test_a_motion_without_a_step_is_named():
    """The error says which one of the batch, and carries what there is of it."""
    model, times = arm(), np.linspace(0.0, 1.0, 11)
    v0 = np.zeros((3, model.nv))
    v0[1, 1] = 1e90
    with pytest.raises(ls.ConvergenceError, match=r"stopped at t=0 s after 0 steps: .*instance 1 of 3") as told:
        ls.simulate(model, 1.0, None, v0, t_eval=times)
    assert told.value.partial.q.shape == (len(told.value.partial.t), model.nq)


def test_steps_of_a_given_size_follow_adaptive_ones():
    """The step sizes of a batch do not determine those of the next one, which takes the same buffers."""
    model = arm()
    q0, v0, _ = given(model, "nothing")
    ls.simulate(model, DURATION, q0, v0, t_eval=TIMES, rtol=1e-4)
    options = {"t_eval": [DURATION], "method": "generalized_alpha", "dt": 0.01}
    many = ls.simulate(model, DURATION, q0, v0, **options)
    assert many.statistics.steps >= 30 * COUNT
    assert np.array_equal(many.q[1], ls.simulate(model, DURATION, q0, v0[1], **options).q)
