"""Robots whose motions are differentiated, and differences of these motions."""

import numpy as np
from simulation.test_loops import driven
from touching_robots import LAW, RADIUS, hybrid, moved

import lissom as ls
from lissom.dynamics.assembly import consistent_start
from lissom.dynamics.contacts import anchors_after
from lissom.dynamics.forward_dynamics import run_residual
from lissom.gradients.designs import Designs
from lissom.gradients.stage_systems import StageStates
from lissom.robot.paths import value_at


def soft():
    """A hinge, a tapered rod with two tendons and a ball at its end."""
    robot = ls.Robot("soft arm")
    material = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=1e4)
    basis = ls.BasisLegendre(torsion=0, bending_y=1, bending_z=1, elongation=0)
    rod = ls.Rod(0.4, ls.SectionCircle((0.03, 0.015)), basis, material)
    robot.add_link("arm", rod, ls.JointRevolute(stiffness=1.0, damping=0.05))
    robot.add_link("ball", ls.RigidBody.sphere(0.03, density=500), parent="arm", placement=moved(0.02, 0.0, 0.0))
    robot.add_tendon("above", "arm", (0.0, 0.01))
    robot.add_tendon("beside", "arm", lambda s: (0.01 - 0.002 * s, 0.0))
    robot.add_joint_actuator("motor", "arm")
    return robot


def floating():
    """A free base with two rods and a spherical joint in water, which meets an obstacle."""
    robot = hybrid("free")
    robot.add_contact(
        "touch", ["a", "ball"], ls.ShapeSphere(0.1), placement=moved(0.6, 0.15, 0.0), radius=RADIUS, **LAW
    )
    robot.set_fluid(200.0, current=(0.2, 0.0, 0.0), default=ls.Hydrodynamics(drag_normal=1.1, drag_tangent=0.01))
    return robot


PLACES = np.array([1.0, -1.0, 2.0, -2.0])  # where functions are differenced, in steps
ROBOTS = {"soft": soft, "floating": floating, "loop": driven}


def start(model, seed=1, size=0.05):
    """An initial state that satisfies loops and prescribed motions."""
    rng = np.random.default_rng(seed)
    q = ls.integrate(model, model.neutral(), size * rng.normal(size=model.nv) * model.dofs.scale)
    v = rng.normal(size=model.nv) * model.dofs.scale
    return consistent_start(model, 0.0, ls.assemble(model, q), v) if model.n_rows else (q, v)


def differenced(function, h):
    """Derivative of function(x) at x = 0, by differences of fourth order."""
    return differenced_rows([function(x) for x in PLACES * h], h)


def differenced_rows(values, h):
    """The same from the values of the function at PLACES times h."""
    ahead, behind, far_ahead, far_behind = values
    return (8.0 * (ahead - behind) - far_ahead + far_behind) / (12.0 * h)


def changes(model, motion, other):
    """Differences of q, v and a between two motions, (3, n, nv), or between one and those of a batch."""
    return np.array([ls.difference(model, motion.q, other.q), other.v - motion.v, other.a - motion.a])


def mismatch(model, exact, numerical):
    """Largest difference of (3, n, nv) in natural sizes, relative to the largest entry of q, of v and of a."""
    exact, numerical = np.asarray(exact) / model.dofs.scale, np.asarray(numerical) / model.dofs.scale
    size = np.abs(numerical).max(axis=(-2, -1), keepdims=True)
    return (np.abs(exact - numerical) / size).max()


def redesigned(model, path, change):
    """The model with a changed design value."""
    return redesigns(model, path, [change])[0]


def redesigns(model, path, increments):
    """The models with a design value that is changed by each increment."""
    return model.batch(path, [changed(value_at(model.description, path), x) for x in increments])


def changed(value, change):
    """A design value after a change: a function plus a constant, a pose times an increment on its right."""
    if callable(value):
        return lambda s: np.asarray(value(s)) + change
    array = np.asarray(value, dtype=float)
    if array.shape == (4, 4):
        return array @ ls.lie.se3_exp(change)
    if array.ndim == 0:
        return float(array + change)
    return type(value)(list(array + change)) if isinstance(value, tuple | list) else array + change


def size_of(model, path):
    """The largest number of a design value."""
    value = value_at(model.description, path)
    return float(np.abs(value(0.0) if callable(value) else value).max())


def assert_design_slopes(model, paths, states, h, rng):
    """Derivatives of the residual by design values, and of the next anchors of contacts, equal differences of rebuilt
    robots with steps h along random directions. The states are q, v, a (n, ...) and the anchors, or None."""
    q, v, a, held = states
    n, t, u = len(q), np.zeros(len(q)), np.zeros((len(q), 0))
    designs = Designs(model, tuple(paths), n)
    found = [designs.slopes(StageStates(q, v, a, u, None, t, None, None, held)).residual]
    found += [designs.anchor_slopes(held, q, v)] if held is not None else []
    is_open = None if held is None else np.isnan(anchors_after(model, held, q, v))

    def values(one):
        yield run_residual(one, q, v, a, u, t, 1.0, 0.0, held).host["tau"].copy()
        if held is not None:
            yield np.where(is_open, 0.0, anchors_after(one, held, q, v)).reshape(n, -1)

    for path in paths:
        way = rng.normal(size=designs.shapes[path]) * (1.0 if path.endswith("placement") else size_of(model, path))
        along = designs.joined({one: way if one == path else np.zeros(shape) for one, shape in designs.shapes.items()})
        moved = zip(*(values(redesigned(model, path, h * x * way)) for x in PLACES))
        for exact, rows in zip(found, moved):
            wanted = differenced_rows(rows, h)
            assert np.abs(along @ exact - wanted).max() < 1e-6 * np.abs(wanted).max() + 1e-9, path
