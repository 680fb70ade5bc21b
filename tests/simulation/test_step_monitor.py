"""What adaptive methods notice of their own steps: order 2 of BDF where it is faster, hints at other methods."""

import warnings

import numpy as np
import pytest

import lissom as ls
from lissom.simulation.step_monitor import StepMonitor

RADAU = (9.21826, -3.87736, 0.0)  # where radau at rtol = 1e-8 has the tip of the spin-up after 20 s


def spin_up():
    """The shaft of Simo and Vu-Quoc: an undamped rod of 10 m, turned to 6 rad/s within 15 s, stiff along its axis."""
    robot = ls.Robot("spin-up", gravity=(0, 0, 0))
    section = ls.SectionGeneral((1.4e4, 1.4e4, 1.4e4, 2.8e7, 1e7, 1e7), (1.2e-3, 6e-4, 6e-4, 1.2, 1.2, 1.2))
    basis = ls.BasisLegendre(bending_z=4, elongation=3, shear_y=3)
    robot.add_link("rod", ls.Rod(10.0, section, basis, gauss_points=8), ls.JointRevolute((0, 0, 1)))
    swing = 15.0 / (2 * np.pi)

    def angle(t):
        return 0.4 * (0.5 * t * t + swing**2 * (np.cos(t / swing) - 1.0)) if t < 15.0 else 6.0 * (t - 7.5)

    robot.add_joint_motion("turn", "rod", position=angle)
    return robot.build()


@pytest.mark.parametrize("t_eval", [None, [5.0, 10.0, 20.0]])
def test_bdf_falls_back_to_order_two_on_an_undamped_stiff_rod(t_eval):
    """The spin-up ends after some 1,500 steps instead of 200,000, says so, and has its tip where radau has it to
    a ten-thousandth of the length, with all steps and with wanted times."""
    model = spin_up()
    motion = ls.simulate(model, 20.0, method="bdf", t_eval=t_eval)
    assert motion.statistics.steps < 4000
    assert motion.statistics.remark.startswith("of order 2 from t=")
    assert np.all(np.diff(motion.t) > 0.0)
    tip = ls.frame_pose(model, motion.q[-1], "rod")[:3, 3]
    np.testing.assert_allclose(tip, RADAU, rtol=0, atol=1e-3)


def test_bdf_goes_back_within_one_sample_only():
    """Under a sampled controller, too, the spin-up falls back, and time never runs backwards in the result."""
    asked = []

    def law(t, q, v):
        asked.append(t)
        return np.zeros(0)

    motion = ls.simulate(spin_up(), 10.0, method="bdf", controller=law, period=1.0)
    assert motion.statistics.steps < 4000
    assert np.all(np.diff(motion.t) > 0.0)
    np.testing.assert_allclose(asked, np.arange(10.0), rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
def test_bdf_turns_a_four_bar_of_steel_rods():
    """One turn in one second with a wide tolerance of v: by order 2 within 2,000 steps, its loop closed throughout."""
    steel, robot = ls.Material(young=210e9, poisson=0.3, density=7850), ls.Robot("four-bar", gravity=(0, 0, 0))
    pin, ground, parent = ls.JointRevolute((0, 0, 1)), np.eye(4), None
    for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.4)):
        basis = ls.BasisLegendre(bending_z=2)
        robot.add_link(name, ls.Rod(length, ls.SectionRectangle(0.02, 0.005), basis, steel), pin, parent)
        parent = name
    ground[0, 3] = 0.5
    robot.add_loop("pin", "rocker", placement_b=ground, joint=pin)
    robot.add_joint_motion("turn", "crank", position=lambda t: 0.8 + 2 * np.pi * t - np.sin(2 * np.pi * t))
    model = robot.build()
    start, joints = model.neutral(), list(model.links.v_start[:-1])
    start[joints] = 0.8, -0.3, -2.3
    start = ls.assemble(model, start, fixed=np.setdiff1d(np.arange(model.nv), joints[1:]).tolist())
    motion = ls.simulate(model, 1.0, start, method="bdf", atol=(1e-8, 1e-4))
    assert motion.statistics.steps < 2000
    assert np.abs(ls.loop_residual(model, motion.q)).max() < 1e-11


def test_a_smooth_motion_keeps_its_order():
    """Nothing is said of a damped motion."""
    robot = ls.Robot("pendulum")
    robot.add_link("bar", ls.RigidBody(1.0, com=(0.5, 0, 0)), ls.JointRevolute((0, 1, 0), damping=0.1))
    motion = ls.simulate(robot.build(), 5.0, method="bdf")
    assert motion.statistics.remark == ""


def fed(pace, rate, turns=0.0, count=1200, step=None):
    """Feed `count` steps at `rate` a second of a motion that goes on, or turns `turns` times a second."""
    stopped = []
    for k in range(count):
        t = (k + 1) / rate
        if pace.step(t, np.array([np.cos(2 * np.pi * turns * t) if turns else t])):
            stopped.append(k + 1)
    return stopped


def test_a_hint_comes_where_the_motion_does_not_need_the_steps():
    """Radau with 5,000 steps in prospect for a motion without turns warns once, after 1,000 of them."""
    with pytest.warns(ls.StepWarning, match=r"radau would take about 1e\+05 steps, 17 times .* method=\"bdf\" or "
                      r"method=\"generalized_alpha\" with dt=2e-03 or longer") as told:  # fmt: skip
        assert fed(StepMonitor("radau", 10.0, 10**6, 1e-6, np.ones(1)), 1e4, count=5000) == []
    assert len(told) == 1


def test_no_hint_where_the_motion_turns_or_the_end_is_near():
    """A motion needs fifty steps a turn; and few steps are never too many."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fed(StepMonitor("radau", 100.0, 10**6, 1e-6, np.ones(1)), 1e4, turns=200.0, count=5000)
        fed(StepMonitor("radau", 0.2, 10**6, 1e-6, np.ones(1)), 1e4, count=2000)


def undamped_pendulum():
    """A steel wire of 0.3 m that swings from a hinge, with elastic vibrations without damping."""
    robot = ls.Robot("wire")
    steel = ls.Material(young=2e11, poisson=0.3, density=7850)
    rod = ls.Rod(0.3, ls.SectionCircle(5e-4), ls.BasisLegendre(bending_y=3), steel)
    robot.add_link("wire", rod, ls.JointRevolute((0, 1, 0)))
    return robot.build()


@pytest.mark.parametrize("batch", [False, True])
def test_the_default_warns_of_vibrations(batch):
    """Some ten swings of an undamped wire would take 170,000 steps: the hint comes after the first thousands, alone and
    in a batch, with a step that the swings need. A tenth of a second is short enough, and says nothing."""
    model = undamped_pendulum()
    q0 = np.zeros((2, model.nq)) if batch else None
    hint = r"esdirk would take about .* times as many .*; method=\"generalized_alpha\" with dt=\de-0[23] or longer"
    with warnings.catch_warnings():
        warnings.simplefilter("error", ls.StepWarning)
        ls.simulate(model, 0.1, q0, t_eval=[0.1])
        with pytest.raises(ls.StepWarning, match=hint):  # as an error it ends the run
            ls.simulate(model, 10.0, q0, t_eval=[10.0])


def test_order_five_comes_back_where_order_two_is_no_faster():
    """The trial begins at 1,000 steps and ends 500 later, with the order it came from."""
    pace = StepMonitor("bdf", 100.0, 10**6, 1e-6, np.ones(1))
    assert fed(pace, 1e3, turns=20.0) == [1000]
    assert pace.order == 2
    assert pace.start(np.linspace(0.0, 1.0, 1001)) == 0
    assert fed(pace, 1e3, turns=20.0, count=400) == [300]
    assert (pace.order, pace.remark) == (5, "")


def test_the_error_names_the_method_to_take(monkeypatch):
    """More steps than there may be: the message says what vibrations without damping ask for."""
    monkeypatch.setattr("lissom.simulation.external_integrators._MAX_STEPS", 300)
    rule = r"more than 300 steps; .*method=\"generalized_alpha\" with a fixed dt"
    with pytest.raises(ls.ConvergenceError, match=rule) as told:
        ls.simulate(spin_up(), 20.0, method="bdf")
    assert 0.0 < told.value.partial.t[-1] < 20.0
