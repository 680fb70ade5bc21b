"""Derivatives of motions of robots of the gallery over one second, against differences of the motions."""

import numpy as np
import pytest
from gallery.examples import EXAMPLES, example

import lissom as ls

STEPS, DT = 1000, 1e-3
MOVES = (1e-1, 3e-2, 1e-2, 3e-3)
ROBOTS = {
    "cdm": lambda: ls.load_robot(EXAMPLES / "robots" / "cdm.yaml").build(),
    "hybrid arm": lambda: ls.load_robot(EXAMPLES / "robots" / "hybrid_arm.yaml").build(),
    "serial robot": lambda: ls.load_robot(EXAMPLES / "robots" / "serial_robot.yaml").build(),
    "ur10": lambda: ls.load_robot(EXAMPLES / "robots" / "ur10.yaml").build(),
    "in a pipe": lambda: example("cdm_contact").robot().build(),
    "propeller": lambda: example("flagellum_propeller").propeller(),
    "drones": lambda: example("drones").robot().build(),
    "parallel robot": lambda: example("parallel_robot").build(),
    "follower beam": lambda: example("follower_beam").beam(3),
}


def changes(model, motion, other):
    """By how much q and v of another motion differ, in natural sizes, (2, n, nv)."""
    return np.array([ls.difference(model, motion.q, other.q), other.v - motion.v]) / model.dofs.scale


@pytest.mark.slow  # nine robots, each moved sixteen times through a thousand steps
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROBOTS)
def test_motions_of_the_gallery(name):
    """Along a direction of the velocity at the start and of all inputs the derivatives are those of differences to
    1e-7, of which the two with neighbouring steps that agree best count; products backwards and forwards agree."""
    model, rng = ROBOTS[name](), np.random.default_rng(1)
    q0 = ls.solve_statics(model).q if model.n_rows else model.neutral()
    u = 0.1 * rng.uniform(0.5, 1.0, (STEPS, model.nu))
    options = {"dt": DT, "tolerance": 1e-13}
    v0 = ls.rollout(model, q0, 0.002 * rng.normal(size=model.nv) * model.dofs.scale, u, **options).v[0]
    motion = ls.rollout(model, q0, v0, u, **options)
    dv0, du = 0.01 * rng.normal(size=model.nv) * model.dofs.scale, 0.01 * rng.normal(size=u.shape)
    change, weights = motion.forward(dv0=dv0, du=du), rng.normal(size=(2, STEPS + 1, model.nv))
    gradient = motion.backward(*weights)
    forwards, size = np.sum(weights * [change.q, change.v]), np.linalg.norm([change.q, change.v])
    assert abs(gradient.v0 @ dv0 + np.sum(gradient.u * du) - forwards) < 1e-11 * size

    def moved(x):
        return changes(model, motion, ls.rollout(model, q0, v0 + x * dv0, u + x * du, **options))

    slopes = np.array([(8 * (moved(h) - moved(-h)) - moved(2 * h) + moved(-2 * h)) / (12 * h) for h in MOVES])
    best = int(np.argmin(np.abs(np.diff(slopes[:, 0], axis=0)).max(axis=(-2, -1)))) + 1
    exact = np.array([change.q, change.v]) / model.dofs.scale
    largest = np.abs(exact).max(axis=(-2, -1))
    assert np.all(np.abs(slopes[best] - exact).max(axis=(-2, -1)) < 1e-7 * largest)
