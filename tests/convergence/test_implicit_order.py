"""Order and conservation of the implicit schemes on the manifold."""

from __future__ import annotations

import numpy as np
import pytest
from closed_form.test_mechanisms import Case, FourBar

import lissom as ls
from lissom.stepping.schemes import Scheme

SCHEMES = [ls.generalized_alpha(0.8), ls.generalized_alpha(0.0), ls.newmark(), ls.hht(0.1), ls.bathe(), ls.bathe(0.5)]
INERTIA = np.array([1.0, 2.0, 2.0])
SPIN = np.array([3.0, 1.0, 0.5, 0.3, 0.0, 0.1])


def swinging_rod() -> ls.Model:
    """A soft rod that hangs from a hinge, damped enough for all its waves to be resolved by the steps below."""
    robot = ls.Robot("swinging rod")
    basis = ls.BasisLegendre(bending_y=1, bending_z=1)
    material = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=1e4)
    rod = ls.Rod(length=0.3, section=ls.SectionCircle(0.01), material=material, basis=basis)
    robot.add_link("rod", rod, ls.JointRevolute(axis=(0, 1, 0)))
    return robot.build()


def free_body() -> ls.Model:
    """A top, symmetric about x, in empty space."""
    robot = ls.Robot("top", gravity=(0, 0, 0))
    robot.add_link("top", ls.RigidBody(2.0, com=(0, 0, 0), inertia=tuple(INERTIA)), ls.JointFree())
    return robot.build()


def turn(w: np.ndarray) -> np.ndarray:
    """exp of a rotation vector, shape (3, 3)."""
    return ls.lie.so3_exp(w)


def exact_top(t: float) -> np.ndarray:
    """Pose of the top at time t by Euler's solution: R = exp(t L / J₂) exp(t (1 − J₁/J₂) ω₁ e₁)."""
    g = np.eye(4)
    precession = turn(t * INERTIA * SPIN[:3] / INERTIA[1])
    g[:3, :3] = precession @ turn(np.array([t * (1.0 - INERTIA[0] / INERTIA[1]) * SPIN[0], 0.0, 0.0]))
    g[:3, 3] = t * SPIN[3:]
    return g


def fitted_order(steps: list[float], errors: list[float]) -> float:
    """Slope of log error over log step."""
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: s.name)
def test_order_two_on_a_swinging_rod(scheme: Scheme) -> None:
    """Against CVODE at 1e-11, the error of a rod that swings from rest falls with the square of the step."""
    model = swinging_rod()
    exact = ls.simulate(model, 0.5, method="bdf", rtol=1e-11, atol=1e-13, t_eval=[0.5])
    steps = [0.5 / n for n in (800, 1600, 3200)]
    errors = []
    for dt in steps:
        end = ls.simulate(model, 0.5, method=scheme, dt=dt, rtol=1e-10, atol=1e-12, t_eval=[0.5])
        errors.append(float(np.abs(end.q[-1] - exact.q[-1]).max()))
    assert abs(fitted_order(steps, errors) - 2.0) < 0.15, errors


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: s.name)
def test_order_two_on_a_spinning_body(scheme: Scheme) -> None:
    """Against Euler's closed form, the error of a symmetric top falls with the square of the step."""
    model, goal = free_body(), exact_top(2.0)
    steps, errors = [0.02, 0.01, 0.005], []
    for dt in steps:
        end = ls.simulate(model, 2.0, v0=SPIN, method=scheme, dt=dt, rtol=1e-10, atol=1e-12, t_eval=[2.0])
        errors.append(float(np.abs(ls.frame_pose(model, end.q[-1], "top") - goal).max()))
    assert abs(fitted_order(steps, errors) - 2.0) < 0.1, errors


def test_implicit_euler_is_of_first_order() -> None:
    """On the symmetric top the error of implicit Euler halves with the step."""
    model, goal = free_body(), exact_top(2.0)
    steps, errors = [0.004, 0.002, 0.001], []
    for dt in steps:
        end = ls.simulate(model, 2.0, v0=SPIN, method=ls.implicit_euler(), dt=dt, t_eval=[2.0])
        errors.append(float(np.abs(ls.frame_pose(model, end.q[-1], "top") - goal).max()))
    assert abs(fitted_order(steps, errors) - 1.0) < 0.1, errors


def test_a_hundred_turns_without_a_jump() -> None:
    """A top turns through more than 100 turns; every step moves it by the angle of its speed, and quaternions stay of
    unit length."""
    model, dt = free_body(), 0.02
    v0 = np.array([20.0, 3.0, 0.0, 0.0, 0.0, 0.0])
    run = ls.simulate(model, 32.0, v0=v0, method=ls.newmark(), dt=dt)
    moves = np.linalg.norm(ls.difference(model, run.q[:-1], run.q[1:])[:, :3], axis=1)
    assert moves.sum() > 200.0 * np.pi
    speed = np.linalg.norm(run.v[:, :3], axis=1)
    assert np.abs(moves - dt * 0.5 * (speed[:-1] + speed[1:])).max() < 1e-2 * dt * speed.max()
    assert np.abs(np.linalg.norm(run.q[:, :4], axis=1) - 1.0).max() < 1e-12


def test_energy_and_momentum_of_newmark_stay_bounded() -> None:
    """Over 30 s the energy and the spatial angular momentum of a top under Newmark's scheme oscillate within a
    bound that falls with the square of the step; they are not conserved to rounding."""
    model = free_body()
    drifts = []
    for dt in (0.02, 0.01):
        run = ls.simulate(model, 30.0, v0=SPIN, method=ls.newmark(), dt=dt, rtol=1e-9, atol=1e-11)
        energy = ls.energy(model, run.q, run.v).total
        R = ls.frame_pose(model, run.q, "top")[:, :3, :3]
        momentum = np.einsum("nij,nj->ni", R, INERTIA * run.v[:, :3])
        drifts.append((np.abs(energy / energy[0] - 1.0).max(),
                       np.linalg.norm(momentum - momentum[0], axis=1).max() / np.linalg.norm(momentum[0])))  # fmt: skip
    print(f"Newmark, 30 s: (energy, momentum) drift at h = 20 ms {drifts[0]}, at 10 ms {drifts[1]}")
    assert drifts[1][0] < 1e-3 and drifts[1][0] < 0.3 * drifts[0][0]
    assert drifts[1][1] < 1e-2 and drifts[1][1] < 0.3 * drifts[0][1]


def test_adaptive_steps_keep_the_tolerance() -> None:
    """Without dt, a tenth of a thousandth of rtol makes the error of the swinging rod fall in proportion."""
    model = swinging_rod()
    exact = ls.simulate(model, 0.5, method="bdf", rtol=1e-11, atol=1e-13, t_eval=[0.5])
    errors, counts = [], []
    for rtol in (1e-4, 1e-7):
        run = ls.simulate(model, 0.5, method="generalized_alpha", rtol=rtol, atol=0.01 * rtol, t_eval=[0.5])
        errors.append(float(np.abs(run.q[-1] - exact.q[-1]).max()))
        counts.append(run.statistics.steps)
    assert errors[0] < 0.1 and errors[1] < 0.03 * errors[0], errors
    assert 5 < counts[1] / counts[0] < 20, counts


def free_rod() -> tuple[ls.Model, np.ndarray, np.ndarray]:
    """A tapered rod that nothing holds or damps, thrown bent and spinning: model, q and v."""
    basis = ls.BasisLegendre(torsion=1, bending_y=1, bending_z=1)
    material = ls.Material(young=1e6, poisson=0.5, density=1000)
    robot = ls.Robot("free rod", gravity=(0, 0, 0))
    robot.add_link("rod", ls.Rod(0.5, ls.SectionCircle((0.02, 0.01)), basis, material), ls.JointFree())
    model = robot.build()
    q, v = model.neutral(), np.zeros(model.nv)
    q[-4], v[:6] = 1.0, (3.0, -1.0, 2.0, 0.1, 0.2, 0.3)
    return model, q, v


@pytest.mark.parametrize("scheme", [ls.newmark(), ls.generalized_alpha()], ids=lambda s: s.name)
def test_momentum_of_a_free_rod_falls_to_the_shortest_steps(scheme: Scheme) -> None:
    """At the default tolerances the change of linear and of angular momentum falls with h² over more than three
    decades of itself, without a rest of Newton's iteration that stays or adds up."""
    model, q, v = free_rod()
    steps, changes = [0.75 / 2**n for n in range(8, 15)], []
    for dt in steps:
        run = ls.simulate(model, 0.75, q, v, method=scheme, dt=dt)
        momentum = ls.momentum(model, run.q, run.v)
        parts = momentum[:, :3], momentum[:, 3:]
        changes.append([np.linalg.norm(x - x[0], axis=1).max() / np.linalg.norm(x, axis=1).max() for x in parts])
    found = np.array(changes)
    print(f"{scheme.name}: changes of momentum {found.tolist()} at steps {steps}")
    assert np.all(found[0] > 1e3 * found[-1])
    for column in found.T:
        assert abs(fitted_order(steps, column.tolist()) - 2.0) < 0.1, found
    assert np.all((found[:-1] / found[1:] > 3.3) & (found[:-1] / found[1:] < 5.0)), found


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")  # a planar loop in space
@pytest.mark.parametrize("project", [True, False])
def test_order_two_on_a_four_bar_to_the_shortest_steps(project: bool) -> None:
    """At the default tolerances the errors of generalised-α in q, v and the loop's force, against the mechanism's own
    equation, fall with h² over more than three decades, with velocities projected and without."""
    case, times = Case(FourBar()), np.linspace(0.0, 0.5, 11)
    exact = case.reference(times)
    steps = [0.05 / 4**n for n in range(2, 6)]
    options = {"method": "generalized_alpha", "project_velocity": project}
    errors = np.array([case.errors(exact, case.simulate(times, dt=dt, **options)) for dt in steps])
    print(f"four-bar, projected {project}: errors of q, v and force {errors.tolist()} at steps {steps}")
    assert np.all(errors[0] > 1e3 * errors[-1])
    for column in errors.T:
        assert abs(fitted_order(steps, column.tolist()) - 2.0) < 0.1, errors
