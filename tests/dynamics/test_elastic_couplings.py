"""Elastic couplings of joints: against closed forms, differences and rigid couplings."""

import dataclasses
import re

import numpy as np
import pytest

import lissom as ls

RATIOS = np.array([1.0, -2.0, 0.5])


def arm(offset=0.0, joints=("l0", "l2", "l3"), **law):
    """A chain of four skew joints, the last of which slides, with an elastic coupling of three of them."""
    robot = ls.Robot("arm")
    for k in range(4):
        body = ls.RigidBody.box(0.4, 0.1, 0.05, density=500.0)
        axis = (0.0, 1.0, 0.2) if k % 2 else (0.0, 0.3, 1.0)
        joint = ls.JointPrismatic(axis, stiffness=40.0) if k == 3 else ls.JointRevolute(axis)
        g = np.eye(4)
        g[:3, 3] = (0.3, 0.0, 0.02 * k) if k else 0.0
        robot.add_link(f"l{k}", body, joint, f"l{k - 1}" if k else None, placement=g)
    if law:
        robot.add_coupling("belt", list(joints), RATIOS.tolist(), offset, **law)
    return robot


def row():
    """The ratios in the order of the coordinates."""
    out = np.zeros(4)
    out[[0, 2, 3]] = RATIOS
    return out


def stop(d, rate, k, c, w):
    """The force of a stop at the depth d, written down once more."""
    if d <= 0.0:
        return 0.0
    z = min(d / w, 1.0)
    R = w * (z**3 - z**4 / 2) if d < w else d - w / 2
    return max(0.0, k * R + c * z * z * (3 - 2 * z) * rate)


TABLE = [(-1.0, -3.0), (0.0, 0.0), (0.5, 1.0), (2.0, 9.0)]
BROKEN = ls.Tabulated([-2.0, -0.3, 0.4, 2.0], [-3.4, 0.0, 0.0, 3.2], "linear")
LAWS = {
    "spring": ({"stiffness": 7.0}, lambda x, rate: 7.0 * (x - 0.3)),
    "damper": ({"damping": 3.0}, lambda x, rate: 3.0 * rate),
    "slack": ({"spring": BROKEN, "damping": 0.4}, lambda x, rate: 2.0 * (max(x - 0.7, 0.0) + min(x, 0.0)) + 0.4 * rate),
    "stops": (
        {"limits": (-0.2, 0.4), "limit_stiffness": 50.0, "limit_damping": 2.0, "limit_width": 0.3},
        lambda x, rate: stop(x - 0.4, rate, 50.0, 2.0, 0.3) - stop(-0.2 - x, -rate, 50.0, 2.0, 0.3),
    ),
}


def states(count=8):
    """Random q and v."""
    return np.random.default_rng(7).uniform(-0.8, 0.8, (count, 2, 4))


@pytest.mark.parametrize("name", LAWS)
def test_forces_equal_the_law_times_the_ratios(name):
    """The joints feel −r f(Σ r q, Σ r v); no rows of constraints, and no couplings to satisfy."""
    law, f = LAWS[name]
    model, free = arm(0.3, **law).build(), arm().build()
    assert model.n_rows == 0
    for q, v in states():
        expected = ls.inverse_dynamics(free, q, v, 0 * v) + row() * f(row() @ q, row() @ v)
        np.testing.assert_allclose(ls.inverse_dynamics(model, q, v, 0 * v), expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            ls.mass_matrix(free, q) @ ls.forward_dynamics(model, q, v), -expected, rtol=0, atol=1e-10
        )


@pytest.mark.parametrize("name", [*LAWS, "table"])
def test_derivatives_and_energy_equal_differences(name):
    """∂ID/∂q and ∂ID/∂v, and the force at rest as the gradient of the energy."""
    law = {"spring": TABLE} if name == "table" else LAWS[name][0]
    model, h = arm(0.3, **law).build(), 1e-6
    for q, v in states(3):
        by_q, by_v, _ = ls.inverse_dynamics_derivatives(model, q, v, 0 * v)
        for unit, column_q, column_v in zip(np.eye(4), by_q.T, by_v.T):
            for column, found in (
                (column_q, [ls.inverse_dynamics(model, q + x * unit, v, 0 * v) for x in (h, -h)]),
                (column_v, [ls.inverse_dynamics(model, q, v + x * unit, 0 * v) for x in (h, -h)]),
            ):
                np.testing.assert_allclose(column, (found[0] - found[1]) / (2 * h), rtol=0, atol=1e-6)
        elastic = [ls.energy(model, q + x * unit, 0 * v).elastic for unit in np.eye(4) for x in (h, -h)]
        slope = (np.array(elastic[::2]) - elastic[1::2]) / (2 * h)
        forces = [ls.inverse_dynamics(model, q, 0 * v, 0 * v, elastic=on) for on in (True, False)]
        np.testing.assert_allclose(slope, forces[0] - forces[1], rtol=0, atol=1e-6)
        if name != "table":
            change = ls.inverse_dynamics_tangent(model, q, v, 0 * v, v, q, 0 * v)
            np.testing.assert_allclose(change, by_q @ v + by_v @ q, rtol=0, atol=1e-9)


def test_a_stiff_coupling_is_a_rigid_one():
    """Statics under weight comes closer to the rigid coupling as 1/k, and steps agree with an integrator of SciPy."""
    rigid = arm()
    for k, link in rigid.links.items():
        rigid.links[k] = dataclasses.replace(link, joint=dataclasses.replace(link.joint, stiffness=40.0))
    soft = [dataclasses.replace(link) for link in rigid.links.values()]
    rigid.add_coupling("belt", ["l0", "l2", "l3"], RATIOS.tolist(), 0.1)
    held = ls.solve_statics(rigid.build()).q
    gaps = []
    for stiffness in (1e4, 1e5):
        robot = ls.Robot("soft")
        robot.links.update({link.name: link for link in soft})
        robot.add_coupling("belt", ["l0", "l2", "l3"], RATIOS.tolist(), 0.1, stiffness=stiffness)
        gaps.append(np.abs(ls.solve_statics(robot.build()).q - held).max())
    assert gaps[0] < 1e-2 and gaps[1] == pytest.approx(gaps[0] / 10, rel=0.05)
    model = arm(0.3, stiffness=30.0, damping=0.5).build()
    q, v = states(1)[0]
    ends = [ls.simulate(model, 0.3, q, v, method=method, rtol=1e-9, atol=1e-10).q[-1] for method in ("auto", "dop853")]
    np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=1e-6)


def test_large_trees_take_couplings_into_their_matrices():
    """A long chain solves by blocks without an elastic coupling; with one its steps equal SciPy's."""
    robot = ls.Robot("chain")
    for k in range(120):
        g = np.eye(4)
        g[0, 3] = 0.05 if k else 0.0
        body = ls.RigidBody.box(0.05, 0.02, 0.02, density=800.0)
        joint = ls.JointRevolute((0.0, 1.0, 0.0), stiffness=2.0, damping=0.05)
        robot.add_link(f"l{k}", body, joint, f"l{k - 1}" if k else None, placement=g)
    robot.add_coupling("belt", ["l3", "l90"], [1.0, 4.0], 0.2, stiffness=300.0)
    model = robot.build()
    ends = [ls.simulate(model, 0.02, method=method, rtol=1e-8, atol=1e-9).q[-1] for method in ("auto", "dop853")]
    np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=1e-6)


def test_values_of_a_coupling_can_change():
    """Paths lead to its numbers, batches of models have their own, and gradients of designs see them."""
    robot = arm(0.3, stiffness=7.0)
    model = robot.build()
    q, v = states(1)[0]
    other = model.with_({"belt.stiffness": 9.0, "belt.offset": 0.1})
    expected = arm(0.1, stiffness=9.0).build()
    np.testing.assert_array_equal(ls.inverse_dynamics(other, q, v, v), ls.inverse_dynamics(expected, q, v, v))
    batch = ls.ModelBatch([model, other])
    found = ls.forward_dynamics(batch, np.stack([q, q]), np.stack([v, v]))
    np.testing.assert_allclose(found, [ls.forward_dynamics(one, q, v) for one in (model, other)], rtol=0, atol=1e-12)


WRONG = {
    "stiffness": ({"stiffness": -1.0}, "coupling 'belt': stiffness: must be >= 0 (got -1.0)"),
    "both": ({"stiffness": 1.0, "spring": TABLE}, "'belt': stiffness: must be left out where there is a spring"),
    "limits": ({"limits": (1.0, 0.0), "limit_stiffness": 1.0}, "'belt': limits: must be (low, high), low < high"),
    "soft stop": ({"limits": (0.0, 1.0)}, "coupling 'belt': limit_stiffness: must be > 0"),
    "no limits": ({"damping": 1.0, "limit_damping": 1.0}, "limit_damping: must be left out where there are no limits"),
    "span": ({"damping": 1.0, "span": (0.0, 1.0)}, "coupling 'belt': span: must be left out where ratios are numbers"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_numbers_are_named(name):
    """By the coupling, the rule and the value."""
    law, rule = WRONG[name]
    with pytest.raises(ls.ModelError, match=re.escape(rule)):
        arm(**law).check()


def test_functions_are_for_rigid_couplings():
    """An elastic coupling has numbers as ratios."""
    robot = arm()
    robot.add_coupling("cam", ["l0", "l1"], [1.0, ls.Expression("sin(q)", "q")], stiffness=2.0)
    with pytest.raises(ls.ModelError, match="coupling 'cam': ratios: must hold numbers only, since the coupling is"):
        robot.check()


def test_gradients_by_values_of_a_coupling():
    """Derivatives of a motion by stiffness, damping, offset and limits equal differences."""
    law = {"limits": (0.1, 5.0), "limit_stiffness": 20.0, "limit_width": 0.5}
    model = arm(0.3, stiffness=7.0, damping=0.4, **law).build()
    q, v = np.full(4, 0.2), np.full(4, -0.4)
    sizes = {"belt.stiffness": 7.0, "belt.damping": 0.4, "belt.offset": 0.3, "belt.limits[0]": 0.1}
    motion, last = ls.rollout(model, q, v, dt=0.01, steps=30), np.zeros((31, 4))
    last[-1] = 1.0
    found = motion.backward(dL_dq=last, parameters=list(sizes)).parameters
    for path, value in sizes.items():
        ends = [ls.rollout(model.with_({path: value + h}), q, v, dt=0.01, steps=30).q[-1].sum() for h in (1e-4, -1e-4)]
        assert found[path] == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-5, abs=1e-9), path
        assert abs(found[path]) > 1e-6
    many = ls.rollout(ls.ModelBatch([model, model.with_({"belt.stiffness": 9.0})]), q, v, dt=0.01, steps=30)
    assert np.abs(many.q[0, -1] - many.q[1, -1]).max() > 1e-4
    np.testing.assert_allclose(many.q[0], motion.q, rtol=0, atol=1e-10)
