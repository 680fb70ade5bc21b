"""Derivatives of equilibria and of frequencies about them, and gradients checked by differences."""

import numpy as np
import pytest
from gradients.moving_robots import differenced, redesigned, size_of, soft, start
from simulation.test_loops import driven

import lissom as ls

pytestmark = pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
INPUTS = {"soft": [2.0, 1.0, 0.1], "loop": [2.0]}
PATHS = {"soft": ["arm.material.young", "arm.length", "above.offset", "ball.placement"],
         "loop": ["soft leg.length", "knee.placement_b", "tendon.offset"]}  # fmt: skip


@pytest.fixture(scope="module")
def models():
    """Models of an arm and of a robot with a loop."""
    return {"soft": soft().build(), "loop": driven().build()}


@pytest.mark.parametrize("name", INPUTS)
def test_equilibria_and_frequencies(models, name):
    """Derivatives by inputs and design values equal differences of equilibria and of their frequencies. Derivatives of
    a function equal its gradient times those of q."""
    model, u = models[name], np.array(INPUTS[name])
    still = np.zeros(model.nv)
    rest = ls.solve_statics(model, u, v=still)
    found = ls.equilibrium_derivatives(rest, parameters=PATHS[name])
    modes = ls.mode_derivatives(rest, parameters=PATHS[name])
    np.testing.assert_allclose(modes.frequencies, ls.modes(model, rest.q, u, v=still).frequencies, rtol=1e-12)
    weights = np.random.default_rng(1).normal(size=model.nv)
    function = ls.equilibrium_derivatives(rest, weights, parameters=PATHS[name])
    np.testing.assert_allclose(function.u, weights @ found.u, rtol=1e-10)

    def moved(own, given):
        end = ls.solve_statics(own, given, rest.q, v=still, stable=False, tolerance=1e-13)
        return np.concatenate([ls.difference(model, rest.q, end.q), ls.modes(own, end.q, given, v=still).frequencies])

    rng, n = np.random.default_rng(2), model.nv
    way = rng.normal(size=model.nu)
    wanted = differenced(lambda x: moved(model, u + x * way), 1e-3)
    agree(np.concatenate([found.u @ way, modes.u @ way]), wanted, n)
    for path in PATHS[name]:
        way = rng.normal(size=function.parameters[path].shape)
        flat = tuple(range(-way.ndim, 0))
        exact = [np.sum(x * way, axis=flat) for x in (found.parameters[path], modes.parameters[path])]
        wanted = differenced(
            lambda x, p=path, w=way: moved(redesigned(model, p, x * w), u), 1e-4 * size_of(model, path)
        )
        agree(np.concatenate(exact), wanted, n)
        assert np.sum(function.parameters[path] * way) == pytest.approx(weights @ exact[0], rel=1e-9)


@pytest.mark.parametrize("rounding", [6e-19, -1e-33, 1e-300])
def test_numbers_may_be_zero_but_for_rounding(models, rounding):
    """Derivatives by numbers such as r cos(π/2) are those at zero. Steps relative to such a number lose all digits."""
    arms = [(models["soft"].with_({"above.offset": (x, 0.01)}), [2.0, x, 0.1]) for x in (rounding, 0.0)]
    rests = [ls.solve_statics(arm, u, v=np.zeros(arm.nv)) for arm, u in arms]
    for of in (ls.equilibrium_derivatives, ls.mode_derivatives):
        found, wanted = (of(rest, parameters=["above.offset"]) for rest in rests)
        for one, other in ((found.u, wanted.u), (found.parameters["above.offset"], wanted.parameters["above.offset"])):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * np.abs(other).max())


def agree(exact, wanted, n):
    """Assert that changes of q and of frequencies agree, relative to the largest."""
    for part in (slice(0, n), slice(n, None)):
        assert np.abs(exact - wanted)[part].max() < 1e-7 * np.abs(wanted[part]).max()


def test_many_equilibria(models):
    """Derivatives of a batch equal those of its single equilibria."""
    model, u = models["soft"], np.array([[2.0, 1.0, 0.1], [0.5, 3.0, 0.0]])
    many = ls.equilibrium_derivatives(ls.solve_statics(model, u), parameters=["arm.length"])
    one = ls.equilibrium_derivatives(ls.solve_statics(model, u[1]), parameters=["arm.length"])
    np.testing.assert_allclose(many.u[1], one.u, rtol=1e-8)
    np.testing.assert_allclose(many.parameters["arm.length"][1], one.parameters["arm.length"], rtol=1e-7)


def test_gradients_are_checked(models):
    """The check accepts a right gradient, and rejects one with a relative error of 1e-6."""
    model = models["loop"]
    motion = ls.rollout(model, *start(model), u=[1.5], dt=4e-3, steps=6)
    weights = np.zeros_like(motion.v)
    weights[-1] = motion.v[-1]
    gradient = motion.backward(dL_dv=weights, parameters=["soft leg.length"])
    found = ls.check_gradient(motion, lambda x: 0.5 * float(x.v[-1] @ x.v[-1]), gradient)
    assert found.worst < 1e-7 and max(found.uncertainty.values()) < 1e-7, found
    wrong = ls.Gradient(gradient.q0, gradient.v0 * (1.0 + 1e-4), gradient.u, {})
    assert ls.check_gradient(motion, lambda x: 0.5 * float(x.v[-1] @ x.v[-1]), wrong).error["v0"] > 1e-6


def test_prescribed_coordinates_answer_to_nothing():
    """The input of a joint with a prescribed motion changes nothing, and other joints have the same derivatives without
    it."""
    robot = soft()
    robot.add_link("wrist", ls.RigidBody.box(0.1, 0.02, 0.02, density=800), ls.JointRevolute(stiffness=0.4),
                   parent="ball")  # fmt: skip
    robot.add_joint_actuator("wrist motor", "wrist")
    free = ls.solve_statics(robot.build(), [2.0, 1.0, 0.1, 0.02])
    robot.add_joint_motion("turn", "arm", position=float(free.q[0]))
    held = ls.solve_statics(robot.build(), free.u, free.q)
    found = ls.equilibrium_derivatives(held)
    assert not found.u[0].any() and not found.u[:, 2].any()
    way = np.array([1.0, -0.5, 0.0, 0.01])
    wanted = differenced(lambda x: ls.solve_statics(held.model, held.u + x * way, held.q, tolerance=1e-13).q, 1e-3)
    assert np.abs(found.u @ way - wanted).max() < 1e-8 * np.abs(wanted).max()


def test_a_link_that_floats_is_named():
    """A sled without gravity has no unique equilibrium. The error names the sled."""
    robot = ls.Robot("sled", gravity=(0.0, 0.0, 0.0))
    robot.add_link("arm", ls.RigidBody.box(0.1, 0.02, 0.02, density=800), ls.JointRevolute(stiffness=0.4))
    robot.add_link("sled", ls.RigidBody.box(0.1, 0.1, 0.1, density=800), ls.JointPrismatic((0, 0, 1)))
    rest = ls.solve_statics(robot.build())
    with pytest.raises(ls.ConvergenceError, match=r"tangent stiffness is regular, .*: link 'sled' floats freely; hold"):
        ls.equilibrium_derivatives(rest)
