"""Steps that Newton's method cannot take at once: cut in the kernel as with Python between them."""

import numpy as np
import pytest

import lissom as ls
from lissom.stepping.driver import Motions


def hooked_rod():
    """A springy rod that hangs, let go from the hook into which ten newtons pull it, and its start.

    Its fastest vibrations take a fifth of the steps of 10 ms used here, and they are violent.
    """
    down = np.eye(4)
    down[[0, 2], 0], down[[0, 2], 2] = (0.0, -1.0), (1.0, 0.0)
    robot = ls.Robot("hooked rod")
    material = ls.Material(young=2e10, poisson=0.5, density=8000)
    rod = ls.Rod(0.4, ls.SectionCircle(0.001), ls.BasisLegendre(bending_y=2), material, gauss_points=10)
    robot.add_link("rod", rod, placement=down)
    model = robot.build()
    robot.add_point_load("pull", "rod", force=(10.0, 0.0, 0.0))
    return model, ls.solve_statics(robot.build()).q


@pytest.mark.parametrize("every_step", [True, False])
def test_cut_in_the_kernel_as_outside(every_step, monkeypatch):
    """The same path to Newton's tolerance through the first cuts, more steps than asked for, and rows where asked.

    rtol = 1e-8 bounds the residual of each step's iteration; the violent motion makes a thousand times that of it.
    """
    model, q0 = hooked_rod()
    times = None if every_step else np.array([0.0, 0.03, 0.06])
    options = {"method": "generalized_alpha", "dt": 0.01, "rtol": 1e-8, "atol": 1e-10, "t_eval": times}
    inside = ls.simulate(model, 0.06, q0, **options)
    monkeypatch.setattr(Motions, "can_run", staticmethod(lambda *_: False))
    outside = ls.simulate(model, 0.06, q0, **options)
    assert inside.statistics.steps == outside.statistics.steps > 6, "some were cut"
    np.testing.assert_allclose(inside.t, outside.t, rtol=0, atol=1e-15)
    np.testing.assert_allclose(inside.t, np.linspace(0, 0.06, 7) if every_step else times, rtol=0, atol=1e-15)
    for name in ("q", "v", "a"):
        one, other = getattr(inside, name), getattr(outside, name)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5 * np.abs(other).max())


def test_an_iteration_that_wanders_does_not_end_on_another_root():
    """Newmark's scheme follows the rod for a second and damps nothing: its energy stays within three times the first.

    The equations of so long a step have many solutions; on one of them the rod has a thousand times the energy.
    """
    model, q0 = hooked_rod()
    motion = ls.simulate(model, 1.0, q0, method="newmark", dt=0.01)
    E = ls.energy(model, motion.q, motion.v).total
    assert E.max() < 3.0 * E[0]


def test_a_step_that_cannot_be_cut_enough_says_so():
    """Where nothing helps, the error names the time and what to try, and carries the motion so far."""
    robot = ls.Robot("pulled")
    rod = ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1), ls.Material(young=1e6, density=1000))
    robot.add_link("rod", rod)
    robot.add_point_load("jerk", "rod", moment=lambda t: (0.0, 1e9 if t > 0.05 else 0.0, 0.0))
    with pytest.raises(ls.ConvergenceError, match=r"at t=0\.0\d+ s after \d+ steps: Newton's method finds no") as found:
        ls.simulate(robot.build(), 0.1, method="generalized_alpha", dt=0.01)
    assert 5 <= len(found.value.partial.t) <= 7


def test_a_lost_motion_leaves_nothing_to_the_next():
    """Loads of time act at their own times in motions after one that found no step, to the last bit."""

    def built():
        robot = ls.Robot("pulled")
        rod = ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1), ls.Material(young=1e6, density=1000))
        robot.add_link("rod", rod)
        robot.add_point_load("jerk", "rod", moment=lambda t: (0.0, 1e9 if t > 0.05 else 0.1 * np.sin(40.0 * t), 0.0))
        return robot.build()

    used, options = built(), {"method": "generalized_alpha", "dt": 0.01}
    with pytest.raises(ls.ConvergenceError):
        ls.simulate(used, 0.1, **options)
    np.testing.assert_array_equal(ls.simulate(used, 0.05, **options).q, ls.simulate(built(), 0.05, **options).q)
    stepper, fresh = ls.Stepper(used, 0.01), ls.Stepper(built(), 0.01)
    with pytest.raises(ls.ConvergenceError):
        stepper.step(steps=10)
    stepper.set_state(t=0.0)
    for one in (stepper, fresh):
        one.step(steps=5)
    np.testing.assert_array_equal(stepper.state.q, fresh.state.q)
