"""Derivatives of equilibria and motions of random robots whose contacts stick, slide and begin, against two-sided
differences."""

import numpy as np
import pytest
from gradients.holding_robots import KINDS
from gradients.moving_robots import redesigned, size_of

import lissom as ls
from lissom.dynamics.contacts import friction_ratios

STEP = 1e-6  # of differences, in sizes of design values and coordinates
SHORT = 1e-7  # of those of motions: within 1e-6 a contact of gripper 8 begins a step earlier
SHARE = 1e-3  # largest error, relative to the derivative
LEAST = 1e-6  # of derivatives in these sizes: equilibria and steps are known to 1e-13, a millionth of the step
FAST = [("finger", 0), ("finger", 9), ("gripper", 1), ("gripper", 4), ("gripper", 8), ("foot", 1), ("foot", 5),
        ("foot", 9)]  # fmt: skip
FEET = [0, 1, 2, 3, 5, 6, 7, 9, 12, 13, 14, 15]  # those that stay on the ground, without a descent
ALL = [("finger", k) for k in range(14)] + [("gripper", k) for k in range(13)] + [("foot", k) for k in FEET]
DESCENDED = [("gripper", k) for k in (0, 2, 6)]  # whose equilibrium a descent reaches: it loses the way
CASES = [pytest.param(*x, marks=[] if x in FAST else [pytest.mark.slow]) for x in ALL]

pytestmark = pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning", "ignore::lissom.StabilityWarning")


def closed(model, q):
    return ls.assemble(model, q) if model.n_rows else q


def two_sided(f, h=STEP):
    return (f(h) - f(-h)) / (2.0 * h)


def agree(what, exact, wanted):
    error, size = np.abs(exact - wanted).max(), np.abs(wanted).max()
    assert error <= SHARE * size + LEAST, (what, error, size)


def design_ways(case, model, rng):
    """A direction of unit size for each design value."""
    for path in case.paths:
        is_pose = path.endswith("placement")
        way = 0.1 * rng.normal(size=6) * case.turns if is_pose else np.array(size_of(model, path))
        yield path, way


@pytest.mark.parametrize(("kind", "seed"), [x for x in CASES if x.values not in DESCENDED])
def test_equilibria(kind, seed):
    """Derivatives of an equilibrium by inputs, by the start and by design values equal differences of `solve_statics`,
    and so do those of an equilibrium that goes on from its anchors."""
    case, rng = KINDS[kind](seed), np.random.default_rng(seed)
    model, u = case.robot.build(), case.u
    S = model.dofs.scale
    rest = ls.solve_statics(model, u, case.q0, tolerance=1e-13)
    found = ls.equilibrium_derivatives(rest, parameters=case.paths)
    assert np.isfinite(rest.anchors).any()

    def moved(own, u, q0, near=rest):
        end = ls.solve_statics(own, u, closed(own, q0), tolerance=1e-13)
        return ls.difference(model, near.q, end.q) / S

    way = rng.normal(size=model.nu)
    agree("u", found.u @ way / S, two_sided(lambda x: moved(model, u + x * way, case.q0)))
    start = 0.1 * rng.normal(size=model.nv) * S
    wanted = two_sided(lambda x: moved(model, u, ls.integrate(model, case.q0, x * start)))
    along = two_sided(
        lambda x: ls.difference(model, case.q0, closed(model, ls.integrate(model, case.q0, x * start))), 1e-3
    )
    agree("q0", found.q0 @ along / S, wanted)
    for path, way in design_ways(case, model, rng):
        exact = np.tensordot(found.parameters[path], way, way.ndim) / S
        agree(path, exact, two_sided(lambda x, p=path, w=way: moved(redesigned(model, p, x * w), u, case.q0)))
    weights = rng.normal(size=model.nv)
    function = ls.equilibrium_derivatives(rest, weights, parameters=case.paths)
    for one, other in ((function.u, found.u), (function.q0, found.q0)):
        np.testing.assert_allclose(one, weights @ other, rtol=0, atol=1e-9 * np.abs(weights @ other).max())

    held, way = model.anchored(rest.anchors), rng.normal(size=model.nu)
    eased = ls.solve_statics(held, 0.9 * u, rest.q, tolerance=1e-13)
    wanted = two_sided(lambda x: moved(held, 0.9 * u + x * way, rest.q, eased))
    agree("eased", ls.equilibrium_derivatives(eased).u @ way / S, wanted)


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_motions(kind, seed):
    """Derivatives of the end of a motion by its start, inputs and design values equal differences of rollouts."""
    case, rng, steps = KINDS[kind](seed), np.random.default_rng(seed), 40
    model, q0 = case.robot.build(), case.q0
    S, u = model.dofs.scale, np.outer(np.linspace(0.5, 1.0, steps), case.u)

    def run(own=model, q=q0, v=None, u=u):
        return ls.rollout(own, closed(own, q), v, u, dt=2e-3, tolerance=1e-13)

    motion = run()
    assert np.isfinite(motion.anchors).any()
    start = motion.start_derivatives
    dq, dv, du = 0.1 * start.onto_q[0] @ (rng.normal(size=model.nv) * S), rng.normal(size=model.nv) * S, rng.normal()
    dv, du = start.onto_v[0] @ dv, du * u

    def moved(end):
        change = ls.difference(model, motion.q[-1], end.q[-1]), 1e-2 * (end.v[-1] - motion.v[-1])
        return np.concatenate(change) / np.r_[S, S]

    def exact(**changes):
        change = motion.forward(**changes)
        return np.concatenate([change.q[-1], 1e-2 * change.v[-1]]) / np.r_[S, S]

    agree("q0", exact(dq0=dq), two_sided(lambda x: moved(run(q=ls.integrate(model, q0, x * dq))), SHORT))
    agree("v0", exact(dv0=dv), two_sided(lambda x: moved(run(v=x * dv)), SHORT))
    agree("u", exact(du=du), two_sided(lambda x: moved(run(u=u + x * du)), SHORT))
    ways = dict(design_ways(case, model, rng))
    for path, way in ways.items():
        wanted = two_sided(lambda x, p=path, w=way: moved(run(redesigned(model, p, x * w))), SHORT)
        agree(path, exact(parameters={path: way}), wanted)
    weights = rng.normal(size=(2, *motion.v.shape))
    change, gradient = motion.forward(dq, dv, du, parameters=ways), motion.backward(*weights, parameters=case.paths)
    back = gradient.q0 @ dq + gradient.v0 @ dv + np.sum(gradient.u * du)
    back += sum(np.sum(gradient.parameters[path] * way) for path, way in ways.items())
    assert back == pytest.approx(np.sum(weights * [change.q, change.v]), rel=1e-8)


@pytest.mark.parametrize(("kind", "seed"), [("finger", 1), ("finger", 5), ("finger", 13), ("gripper", 1)])
def test_contacts_at_their_limit_stick_in_small_motions(kind, seed):
    """At an equilibrium whose contacts slid to it, stiffness and frequencies are those of contacts that stick, whatever
    the rounding errors, and the derivatives of frequencies follow the anchors."""
    case, rng = KINDS[kind](seed), np.random.default_rng(seed)
    model, still = case.robot.build(), np.zeros(case.robot.build().nv)

    def sounds(own, u):
        rest = ls.solve_statics(own, u, case.q0, tolerance=1e-13)
        return ls.modes(own.anchored(rest.anchors), rest.q, u, v=still).frequencies

    rest = ls.solve_statics(model, case.u, case.q0, tolerance=1e-13)
    held = model.anchored(rest.anchors)
    ratios = friction_ratios(held, rest.q)
    assert ratios.max() < 1.0 and ratios.max() == pytest.approx(1.0, rel=1e-7)
    loose = redesigned(model, "touch.friction", 1e-6 * size_of(model, "touch.friction")).anchored(rest.anchors)
    S = model.dofs.scale
    K, wanted = (ls.tangent_stiffness(own, rest.q, case.u) * S * S[:, None] for own in (held, loose))
    assert np.abs(K - wanted).max() < 1e-5 * np.abs(K).max()
    found = ls.mode_derivatives(rest, parameters=["touch.friction", "touch.stiffness"])
    way = rng.normal(size=model.nu)
    agree("u", found.u @ way, two_sided(lambda x: sounds(model, case.u + x * way), 1e-5))
    for path in found.parameters:
        way = size_of(model, path)
        wanted = two_sided(lambda x, p=path, w=way: sounds(redesigned(model, p, x * w), case.u), 1e-5)
        agree(path, found.parameters[path] * way, wanted)


def test_a_batch_has_the_derivatives_of_its_rows():
    """Each equilibrium of a batch has a path of its own, also in a batch of models."""
    case = KINDS["finger"](1)
    model, path = case.robot.build(), "touch.friction"
    inputs = np.stack([case.u, 1.1 * case.u])
    many = ls.equilibrium_derivatives(ls.solve_statics(model, inputs, case.q0), parameters=[path])
    designs = ls.solve_statics(model.batch(path, [0.4, 0.6]), case.u, case.q0)
    of_models = ls.equilibrium_derivatives(designs, parameters=[path])
    for k in range(2):
        one = ls.equilibrium_derivatives(ls.solve_statics(model, inputs[k], case.q0), parameters=[path])
        np.testing.assert_allclose(many.q0[k], one.q0, rtol=0, atol=1e-9 * np.abs(one.q0).max())
        np.testing.assert_allclose(many.parameters[path][k], one.parameters[path], rtol=1e-8)
        own = ls.solve_statics(model.with_({path: (0.4, 0.6)[k]}), case.u, case.q0)
        one = ls.equilibrium_derivatives(own, parameters=[path])
        np.testing.assert_allclose(of_models.u[k], one.u, rtol=0, atol=1e-8 * np.abs(one.u).max())


def test_anchors_that_a_descent_moved_are_held():
    """A foot that reaches its equilibrium by a descent, on which its contact opened and closed, has the derivatives of
    the contact that sticks where it is, and says so."""
    case = KINDS["foot"](10)
    model = case.robot.build()
    rest = ls.solve_statics(model, case.u, case.q0, tolerance=1e-13)
    with pytest.warns(ls.AccuracyWarning, match="a descent to this equilibrium moved anchors"):
        found = ls.equilibrium_derivatives(rest)
    assert found.q0 is None
    held, way = model.anchored(rest.anchors), np.array([0.7, -0.4])
    again = two_sided(lambda x: ls.solve_statics(held, case.u + x * way, rest.q, tolerance=1e-13).q)
    agree("u", found.u @ way, again)


@pytest.mark.parametrize("seed", [0, 6])
def test_a_descent_that_fails_with_anchors_that_follow_holds_them(seed):
    """A ball slips through fingers that bend. Newton's method fails from the end of a descent along which anchors
    follow, and reaches a stable equilibrium, with the ball in the fingers, from one along which they stay."""
    case = KINDS["gripper"](seed)
    rest = ls.solve_statics(case.robot.build(), case.u, case.q0)
    assert rest.is_stable
    model = rest.model
    touch, weight = ls.contact_forces(model, rest.q, np.zeros(model.nv)), 9.81 * ls.mass_matrix(model, rest.q)[-1, -1]
    assert {"touch", "tray"} == set(touch.contact)
    np.testing.assert_allclose(touch.force.sum(axis=0), [0.0, 0.0, weight], atol=1e-6)
