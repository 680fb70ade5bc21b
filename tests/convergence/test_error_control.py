"""Adaptive steps of the default method keep the error of a motion near the tolerance that was asked for."""

import numpy as np
import pytest

import lissom as ls

JOINTS = (
    lambda rng: ls.JointRevolute(rng.normal(size=3)),
    lambda rng: ls.JointUniversal((0, 1, 0), (0, 0, 1)),
    lambda rng: ls.JointSpherical(),
    lambda rng: ls.JointFixed(),
    lambda rng: ls.JointPrismatic(rng.normal(size=3), stiffness=200.0, damping=2.0),
)
TIMES = np.linspace(0.0, 0.5, 26)


def rod(rng):
    """A tapered rod of random softness and damping."""
    orders = {"torsion": 2, "bending_y": 3, "elongation": 2}
    basis = ls.BasisLegendre(bending_z=int(rng.integers(1, 3)), **{x: int(rng.integers(n)) for x, n in orders.items()})
    young, viscosity = 10.0 ** rng.uniform((5.5, 2.0), (7.0, 4.5))
    material = ls.Material(young=young, poisson=0.45, density=1100.0, viscosity=viscosity)
    tip, base = np.sort(rng.uniform(0.006, 0.02, 2))
    return ls.Rod(rng.uniform(0.15, 0.5), ls.SectionCircle((base, tip)), basis, material)


def swinging(seed):
    """A random chain of up to three rods and bodies that hangs from a ball joint, and a start."""
    rng = np.random.default_rng(seed)
    robot, parent = ls.Robot(f"robot {seed}", gravity=6.0 * rng.normal(size=3)), None
    for k in range(rng.integers(1, 4)):
        joint = JOINTS[rng.integers(len(JOINTS))](rng) if k else ls.JointSpherical()
        if k and rng.random() < 0.35:
            inertia = 1e-3 * rng.uniform(1.0, 1.5, 3)
            body = ls.RigidBody(rng.uniform(0.05, 0.5), com=rng.uniform(-0.05, 0.05, 3), inertia=inertia)
        else:
            body = rod(rng)
        robot.add_link(f"link {k}", body, joint, parent)
        parent = f"link {k}"
    model = robot.build()
    return model, 2.0 * rng.normal(size=model.nv) * model.dofs.scale


def errors(seed, tolerances):
    """The largest error of q over the motion, in natural units of the largest move, over each tolerance; where errors
    grow, over the growth of a tolerance at the start."""
    model, v0 = swinging(seed)
    scale, tight = model.dofs.scale, {"t_eval": TIMES, "method": "bdf", "rtol": 1e-10, "atol": 1e-12}
    exact = ls.simulate(model, 0.5, v0=v0, **tight).q
    aside = np.random.default_rng(1).uniform(-1e-6, 1e-6, model.nv)
    moved = ls.simulate(model, 0.5, v0=v0 + aside * scale, **tight).q
    growth = 1e6 * np.abs(ls.difference(model, exact, moved) / scale).max()
    far = max(1.0, np.abs(ls.difference(model, model.neutral(), exact) / scale).max()) * max(1.0, growth)
    found = []
    for rtol in tolerances:
        motion = ls.simulate(model, 0.5, v0=v0, t_eval=TIMES, rtol=rtol, atol=1e-2 * rtol)
        assert motion.statistics.method == "esdirk"
        found.append(np.abs(ls.difference(model, exact, motion.q) / scale).max() / (rtol * far))
    return found


@pytest.mark.filterwarnings("ignore::lissom.PlausibilityWarning")
@pytest.mark.parametrize("seed", [32, 39, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (5, 59))])
def test_errors_follow_the_tolerance(seed):
    """Over five decades, with rotations that are stored as quaternions and steps that change."""
    assert max(errors(seed, (1e-3, 1e-5, 1e-7))) < 10.0


@pytest.mark.slow  # five minutes
@pytest.mark.filterwarnings("ignore::lissom.PlausibilityWarning")
def test_errors_of_two_hundred_robots():
    """Within ten times the tolerance for every one of them."""
    found = np.array([errors(seed, (1e-3, 1e-4, 1e-6)) for seed in range(200)])
    assert found.max() < 10.0, np.argwhere(found >= 10.0)
    assert np.median(found) < 1.0
