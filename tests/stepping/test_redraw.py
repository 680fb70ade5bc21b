"""Designs written into the models of a batch, against models built for them."""

import numpy as np
import pytest
from gradients.moving_robots import ROBOTS

import lissom as ls
from lissom.stepping.stepper import Copies, changeable, redraw

DRAWS = {
    "soft": ({"arm.material.young": 2e6, "arm.length": 0.5}, {"ball.mass": 0.2, "gravity": (1.0, 2.0, -3.0)}),
    "floating": ({"a.length": 0.3, "ball.mass": 0.3}, {"touch.stiffness": 3e3, "a.material.density": 900.0}),
}


@pytest.mark.parametrize("name", DRAWS)
def test_redrawn_models_are_those_of_builds(name):
    """Accelerations, poses, energies, motions and steps of copies of redrawn models equal those of built ones, bit by
    bit."""
    model = ROBOTS[name]().build()
    batch = changeable([model] * 3)
    rng = np.random.default_rng(1)
    q = ls.integrate(model, model.neutral(), 0.1 * rng.normal(size=(3, model.nv)) * model.dofs.scale)
    v = rng.normal(size=(3, model.nv)) * model.dofs.scale
    link, dt = model.links.names[-1], 1e-3

    def results(models, q, v):
        motion = ls.simulate(models, 0.01, q, v, dt=dt, t_eval=[0.01])
        yield ls.forward_dynamics(models, q, v)
        yield ls.frame_pose(models, q, link)
        yield motion.q[..., -1, :]
        yield ls.energy(models, q, v).total

    def stepped(copies, which, q, v):
        copies.place(which, q, v, np.zeros((len(q), model.nu)))
        copies.advance(np.zeros((copies.n, model.nu)))
        return copies.q.copy()

    copies = Copies(batch.common, 3, dt=dt, steps=3)
    stepped(copies, range(3), q, v)
    list(results(batch, q, v))  # records launches
    known = [model.description] * 3
    for round_, values in enumerate(DRAWS[name] + DRAWS[name]):
        k = round_ % 3
        known[k] = known[k].with_(values)
        copies.redraw(k, known[k], {})
        found, moved = list(results(batch, q, v)), stepped(copies, range(3), q, v)
        for k, robot in enumerate(known):
            built = robot.build()
            for x, y in zip(found, results(built, q[k], v[k])):
                assert np.array_equal(x[k], y)
            assert np.array_equal(moved[k], stepped(Copies(built, dt=dt, steps=3), [0], q[k : k + 1], v[k : k + 1])[0])


def test_designs_that_cannot_be_drawn_are_refused():
    """A value that changes the structure or a load, and an unknown path, get one line; the model stays as it was."""
    robot = ROBOTS["soft"]()
    robot.add_point_load("pull", "arm", force=(0.0, 1.0, 0.0))
    batch = changeable([robot.build()] * 2)
    before = ls.mass_matrix(batch[1], batch[1].neutral())
    for values, message in (
        ({"arm.basis": ls.BasisLegendre(bending_y=2)}, "must not change the structure of the robot"),
        ({"pull.force": (0.0, 2.0, 0.0)}, "must not change point loads"),
        ({"arm.lenth": 0.2}, "must be one of"),
        ({"arm.length": -0.2}, "must be > 0"),
    ):
        with pytest.raises(ls.ModelError, match=message):
            redraw(batch.common, 1, robot, values)
    assert np.array_equal(ls.mass_matrix(batch[1], batch[1].neutral()), before)
