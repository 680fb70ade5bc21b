"""Motions of a batch of models: each is that of its model alone, to the last bit, together in kernels or one by one."""

import warnings

import numpy as np
import pytest
from dynamics.small_robots import describe_looped, describe_pendulum, describe_rod
from touching_robots import moved

import lissom as ls
from lissom.simulation import batches

ARRAYS = ("q", "v", "a", "u", "multipliers", "z", "anchors")
TIMES = np.linspace(0.0, 0.1, 6)
STEPS = {"method": "generalized_alpha", "dt": 0.01}


def describe_falling():
    """A ball on a rod that falls onto a table and sticks there, in a wind."""
    robot = describe_rod()
    robot.set_fluid(1.0, current=(0.5, 0.0, 0.0))
    law = {"stiffness": 2e3, "friction": 0.4, "slip_speed": 0.1, "stick_stiffness": 1e3, "stick_damping": 0.01}
    robot.add_contact("table", "rod", ls.ShapePlane(), placement=moved(0.0, 0.0, -0.05), **law)
    return robot


def describe_driven():
    """A pendulum on a rod whose base is led."""
    robot = describe_rod(ls.JointRevolute((0, 1, 0)))
    robot.add_joint_motion("led", "rod", position=lambda t: 0.3 * np.sin(4.0 * t))
    robot.add_link("bob", ls.RigidBody.sphere(0.02, density=800.0), ls.JointRevolute((0, 1, 0), damping=0.01), "rod")
    return robot


DESCRIBE = {"rod": describe_rod, "falling": describe_falling, "looped": describe_looped, "driven": describe_driven}
PATHS = {"looped": "arm"}


def models_of(kind):
    """Three models of a robot that differ in their material, their tendon and gravity."""
    robot, part = DESCRIBE[kind](), PATHS.get(kind, "rod")
    values = {f"{part}.material.young": (1e6, 2e6, 0.7e6), f"{part}.material.density": (1000.0, 1200.0, 1000.0)}
    values |= {
        "tendon.offset": ((0.0, 0.01), (0.0, 0.012), (0.005, 0.0)),
        "gravity": ((0, 0, -9.81),) * 2 + ((0, 1, -9),),
    }
    return robot.build().batch(*(x for pair in values.items() for x in pair))


def assert_each_as_alone(models, many, q0, u, **options):
    """That the motions of a batch are those of its models."""
    for k, model in enumerate(models):
        alone = ls.simulate(model, 0.1, None if q0 is None else q0[k], u=u[k], t_eval=TIMES, **options)
        for name in ARRAYS:
            assert np.array_equal(getattr(many, name)[k], getattr(alone, name), equal_nan=True), name


@pytest.mark.parametrize("kind", DESCRIBE)
@pytest.mark.parametrize("options", [STEPS, {"method": "esdirk"}, {"method": "bdf"}], ids=["fixed", "esdirk", "bdf"])
def test_motions(kind, options):
    """Loops, contact that sticks, fluid and motions: fixed and adaptive steps, in kernels where they run there."""
    models = models_of(kind)
    if kind == "falling" and options["method"] == "bdf":
        with pytest.raises(ls.ModelError, match="stick_stiffness needs a method that stores the anchors"):
            ls.simulate(models, 0.1, t_eval=TIMES, **options)
        return
    q0 = ls.assemble(models) if kind == "looped" else None
    u = np.array([[0.5], [0.0], [2.0]])
    many = ls.simulate(models, 0.1, q0, u=u, t_eval=TIMES, **options)
    assert many.q.shape == (3, 6, models.nq)
    assert_each_as_alone(models, many, q0, u, **options)


def test_groups_and_further_axes(monkeypatch):
    """Motions that do not all fit in run in groups, which divide those of one model, too; two starts of each model."""
    models = models_of("rod")
    monkeypatch.setattr(batches, "_MOST_GROUP_BYTES", 1)
    monkeypatch.setattr(batches, "_LEAST_GROUP", 4)
    q0 = 0.1 * np.random.default_rng(0).normal(size=(3, 2, models.nq))
    many = ls.simulate(models, 0.1, q0, t_eval=TIMES, **STEPS)
    for k, model in enumerate(models):
        alone = ls.simulate(model, 0.1, q0[k], t_eval=TIMES, **STEPS)
        assert np.array_equal(many.q[k], alone.q) and np.array_equal(many.a[k], alone.a)


def test_loads_that_differ():
    """Loads are those of each model: where they differ motions run one by one, where they are the same together."""
    robot = describe_rod()
    robot.add_point_load("load", "rod", force=(0.0, 0.0, 0.1))
    model = robot.build()
    force = [(0.0, 0.0, 0.1), (0.1, 0.0, 0.0)]
    for models in (model.batch("load.force", force), model.batch("rod.length", [0.4, 0.5])):
        many = ls.simulate(models, 0.1, t_eval=TIMES, **STEPS)
        assert_each_as_alone(models, many, None, [None, None], **STEPS)
    assert not np.array_equal(many.q[0], many.q[1])


def test_controllers_and_energy():
    """A controller acts on each model; the energy of each motion balances."""
    models = describe_pendulum().build().batch("bob.mass", [1.0, 2.0, 4.0])

    def law(t, q, v):
        return -3.0 * q - 0.5 * v

    start, times = np.array([0.5]), np.linspace(0.0, 0.2, 101)
    many = ls.simulate(models, 0.2, start, controller=law, t_eval=times, **STEPS)
    balance = ls.energy_balance(models, many)
    for k, model in enumerate(models):
        alone = ls.simulate(model, 0.2, start, controller=law, t_eval=times, **STEPS)
        assert np.array_equal(many.q[k], alone.q)
        one = ls.energy_balance(model, alone)
        assert balance.residual[k] == one.residual and np.array_equal(balance.work[k], one.work)
    with pytest.raises(ls.ShapeError, match=r"expected one motion of each model, shape \(3,\)"):
        ls.energy_balance(models, alone)


def test_statics():
    """Equilibria, their least stiffness and branches are those of each model."""
    models = models_of("rod")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ls.solve_statics(models, [[0.5], [1.0], [2.0]])
        for k, model in enumerate(models):
            one = ls.solve_statics(model, [[0.5], [1.0], [2.0]][k])
            assert np.array_equal(found.q[k], one.q) and found.least_stiffness[k] == one.least_stiffness
            assert found.is_stable[k] == one.is_stable
    assert found.model is models


def test_what_has_no_batch():
    """A stream takes one motion; errors say which model."""
    models = models_of("rod")
    with pytest.raises(ls.ShapeError, match="a batch of shape \\(3,\\) needs common times"):
        ls.simulate(models, 0.1)
    with pytest.raises(ls.ShapeError, match="leading axes do not broadcast"):
        ls.simulate(models, 0.1, np.zeros((2, 3)), t_eval=TIMES)
    one = ls.simulate(models[:1], 0.1, t_eval=TIMES, **STEPS)
    assert np.array_equal(one.q[0], ls.simulate(models[0], 0.1, t_eval=TIMES, **STEPS).q)


def test_branches():
    """Branches of equilibria are those of each model, as a tuple."""
    models = models_of("rod")
    options = {"max_points": 4, "events": False}
    found = ls.continuation(models, u=[[0.5], [1.0], [2.0]], **options)
    several = ls.branches(models, u=np.array([[[0.5], [1.0]], [[0.5], [0.2]], [[1.0], [2.0]]]), **options)
    for k, model in enumerate(models):
        one = ls.continuation(model, u=[[0.5], [1.0], [2.0]][k], **options)
        assert np.array_equal(found[k].q, one.q)
    assert [len(some) for some in several] == [2, 2, 2]
    assert np.array_equal(several[0][1].q, ls.continuation(models[0], u=[1.0], **options).q)
