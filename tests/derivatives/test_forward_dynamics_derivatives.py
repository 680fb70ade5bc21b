"""Derivatives of forward dynamics: by kernels one after the other, whose calls at one state are prepared."""

import numpy as np
import pytest
from robots import build, random_tree

import lissom as ls


def tree(actuated=True, moves=False):
    """A random tree; with motors its response to inputs is constant, and one of its joints may follow a motion."""
    robot = ls.Robot("tree")
    body = ls.RigidBody(0.4, com=(0.1, 0.02, 0), inertia=(2e-3, 3e-3, 4e-3))
    place = np.eye(4)
    place[0, 3] = 0.2
    for k, parent in enumerate((None, 0, 1, 1, 0, 4)):
        axis = (0, 1, 0) if k % 2 else (0, 0, 1)
        robot.add_link(f"link{k}", body, ls.JointRevolute(axis, damping=0.1), parent=f"link{parent}" if k else None,
                       placement=place)  # fmt: skip
    for k in range(3 * actuated):
        robot.add_joint_actuator(f"motor {k}", f"link{k + 1}")
    if moves:
        robot.add_joint_motion("drive", "link1", position=lambda t: 0.3 * np.sin(2.0 * t))
    return robot.build()


def state(model, seed=0):
    """A random state and inputs."""
    rng = np.random.default_rng(seed)
    q = ls.integrate(model, model.neutral(), 0.4 * rng.normal(size=model.nv) * model.dofs.scale)
    return q, rng.normal(size=model.nv) * model.dofs.scale, rng.normal(size=model.nu)


def differences(model, q, v, u):
    """The derivatives by central differences."""
    steps = 1e-6 * np.eye(model.nv) * model.dofs.scale

    def slope(plus, minus, h):
        return (ls.forward_dynamics(model, *plus) - ls.forward_dynamics(model, *minus)) / (2.0 * h)

    by_q = [slope((ls.integrate(model, q, x), v, u), (ls.integrate(model, q, -x), v, u), x.max()) for x in steps]
    by_v = [slope((q, v + x, u), (q, v - x, u), x.max()) for x in steps]
    by_u = [slope((q, v, u + x), (q, v, u - x), 0.1) for x in 0.1 * np.eye(model.nu)]
    return [np.array(x).reshape(-1, model.nv).T for x in (by_q, by_v, by_u)]


@pytest.mark.parametrize("make", [tree, lambda: tree(actuated=False), lambda: build(random_tree(3))])
def test_against_differences(make):
    """Derivatives by state and inputs agree with central differences, at the first call and at prepared ones."""
    model = make()
    for seed in range(3):
        q, v, u = state(model, seed)
        u = np.abs(u)
        for found, wanted in zip(ls.forward_dynamics_derivatives(model, q, v, u), differences(model, q, v, u)):
            assert found.shape == wanted.shape
            size = max(1.0, np.abs(wanted).max(initial=0.0))  # of stiff rods 5e6: rounding shows in differences
            assert np.abs(found - wanted).max(initial=0.0) <= 3e-6 * size


def test_prepared_calls_give_what_the_first_one_does():
    """Calls at one state give the same numbers for the second time, in a batch, and after errors; results are the
    caller's own."""
    model = tree()
    states = [state(model, k) for k in range(4)]
    q, v, u = map(np.array, zip(*states))
    a = np.random.default_rng(7).normal(size=v.shape)
    calls = {
        "forward": lambda k: ls.forward_dynamics_derivatives(model, q[k], v[k], u[k]),
        "inverse": lambda k: ls.inverse_dynamics_derivatives(model, q[k], v[k], a[k]),
    }
    batches = {
        "forward": ls.forward_dynamics_derivatives(model, q, v, u),
        "inverse": ls.inverse_dynamics_derivatives(model, q, v, a),
    }
    for name, call in calls.items():
        first = [call(k) for k in range(4)]
        with pytest.raises(ls.ShapeError, match="finite"):
            ls.forward_dynamics_derivatives(model, q[0] * np.nan, v[0], u[0])
        with pytest.raises(ls.ShapeError, match="finite"):
            ls.inverse_dynamics_derivatives(model, q[0], np.full(model.nv, np.inf), a[0])
        for k in (2, 0, 3, 1):
            again = call(k)
            for one, two, many in zip(first[k], again, batches[name], strict=True):
                assert (one == two).all()
                assert (one == many[k]).all()
                two[...] = 0.0
    with pytest.raises(ls.ShapeError):
        ls.inverse_dynamics_derivatives(model, q[0][:-1], v[0], a[0])


def test_options_of_prepared_calls():
    """A prepared call holds for its own gravity alone."""
    model = tree()
    q, v, _ = state(model)
    for _ in range(2):
        with_gravity, without = (ls.inverse_dynamics_derivatives(model, q, v, v, gravity=x) for x in (True, False))
        assert np.abs(with_gravity[0] - without[0]).max() > 1e-3
        assert np.allclose(with_gravity[2], without[2], atol=1e-14)


def test_prescribed_coordinates():
    """Rows and columns of a prescribed coordinate are zero, and the others are those of differences."""
    model = tree(moves=True)
    given = int(model.prescribed.dof[0])
    others = [k for k in range(model.nv) if k != given]
    q, v, u = state(model)
    for found, wanted in zip(ls.forward_dynamics_derivatives(model, q, v, u), differences(model, q, v, u)):
        assert not found[given].any()
        columns = others if found.shape[1] == model.nv else range(model.nu)
        assert np.allclose(found[np.ix_(others, columns)], wanted[np.ix_(others, columns)], rtol=1e-6, atol=1e-6)


def test_a_coordinate_without_mass_is_named():
    """The error names the link whose coordinate moves no mass."""
    robot = ls.Robot("massless")
    robot.add_link("base", ls.RigidBody(1.0, inertia=(1e-3, 1e-3, 1e-3)), ls.JointRevolute((0, 0, 1)))
    robot.add_link("hand", None, ls.JointRevolute((0, 0, 1)), parent="base")
    model = robot.build()
    with pytest.raises(ls.ModelError, match="hand"):
        ls.forward_dynamics_derivatives(model, model.neutral(), np.zeros(2))
