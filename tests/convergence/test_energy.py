"""Energy of a rod released under gravity: conserved without damping, never gained with it, better with the tolerance.

The energy exchanged, by which errors are measured, is the sum of the ranges of its three parts.
"""

from functools import lru_cache

import numpy as np
import pytest

import lissom as ls

DURATION = 0.75


def tapered_rod(viscosity, order=2, gravity=(0, -9.81, 0), **link):
    """A soft rod that may twist and bend both ways, clamped level, with gravity across; bent 1 rad/m sideways."""
    material = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=viscosity)
    basis = ls.BasisLegendre(torsion=order, bending_y=order, bending_z=order)
    robot = ls.Robot("rod", gravity=gravity)
    robot.add_link("rod", ls.Rod(0.5, ls.SectionCircle((0.02, 0.01)), basis, material), **link)
    model = robot.build()
    q0 = model.neutral()
    q0[model.nq - 2 * (order + 1)] = 1.0
    return model, q0


@lru_cache
def released(viscosity, rtol):
    """Total energy at every step (n,), and the energy exchanged [J]."""
    model, q0 = tapered_rod(viscosity)
    motion = ls.simulate(model, DURATION, q0, method="bdf", rtol=rtol, atol=0.1 * rtol)
    E = ls.energy(model, motion.q, motion.v)
    return E.total, np.ptp(E.kinetic) + np.ptp(E.gravitational) + np.ptp(E.elastic)


def drift(rtol):
    """Largest change of the total energy without damping, over the energy exchanged."""
    total, exchanged = released(0.0, rtol)
    return np.abs(total - total[0]).max() / exchanged


def test_undamped_energy_is_conserved():
    """Within 1e-6 of the energy exchanged at rtol = 1e-9, over a fall and a rebound of some 3000 steps.

    The local errors of 3000 steps at 1e-9 add up to 3e-6 at worst, all of one sign; they are not.
    """
    assert drift(1e-9) < 1e-6


def test_energy_error_falls_with_the_tolerance():
    """A hundred times smaller rtol makes the drift at least ten times smaller.

    The global error of a variable-order method is rtol to a power p/(p + 1) of at least 1/2 (p = 1), and near 1.
    """
    errors = [drift(rtol) for rtol in (1e-5, 1e-7, 1e-9)]
    assert errors[1] < 0.1 * errors[0]
    assert errors[2] < 0.1 * errors[1]


@pytest.mark.parametrize("rtol", [1e-5, 1e-7, 1e-9])
def test_damped_energy_never_rises(rtol):
    """The total never comes back above its lowest value so far by more than the integration error, 1000 rtol."""
    total, exchanged = released(1e4, rtol)
    rise = (total - np.minimum.accumulate(total)).max()
    assert rise < 1000 * rtol * exchanged
    assert total[-1] < total[0] - 0.1 * exchanged, "it has lost a good part"


def test_balance_accounts_for_damping_and_inputs():
    """E(t) − E(0) = work of a tendon and a tip load − dissipation, at rtol = 1e-9 within 1e-6 of the exchange.

    Powers are integrated by Simpson's rule over the integrator's own steps, h⁴ of which is below the local error.
    """
    material = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=1e4)
    robot = ls.Robot("rod", gravity=(0, -9.81, 0))
    basis = ls.BasisLegendre(torsion=1, bending_y=1, bending_z=1)
    robot.add_link("rod", ls.Rod(0.5, ls.SectionCircle((0.02, 0.01)), basis, material))
    robot.add_tendon("t", "rod", (0.008, 0.004))
    robot.add_point_load("push", "rod", force=lambda t: (0, 0, 0.3 * np.sin(8 * t)), frame="body")
    model = robot.build()
    motion = ls.simulate(model, 1.0, u=lambda t: np.array([2.0 * np.sin(5 * t) ** 2]), rtol=1e-9, atol=1e-10)
    balance = ls.energy_balance(model, motion)
    assert np.ptp(balance.work) > 1e-3 and balance.dissipated[-1] > 1e-3
    assert balance.residual < 1e-6


def test_free_rod_keeps_its_momentum():
    """A free rod without gravity, thrown bent and spinning, keeps its linear and angular momentum and its energy.

    The free joint's rows of M v are the whole robot's momentum in the axes of its base. 1e-6 as for the energy.
    """
    model, q0 = tapered_rod(0.0, order=1, gravity=(0, 0, 0), joint=ls.JointFree())
    v0 = np.zeros(model.nv)
    v0[:6] = 3.0, -1.0, 2.0, 0.1, 0.2, 0.3
    motion = ls.simulate(model, DURATION, q0, v0, rtol=1e-9, atol=1e-10, t_eval=np.linspace(0, DURATION, 40))
    momentum = []
    for q, v in zip(motion.q, motion.v):
        g_WB = ls.frame_pose(model, q, "rod", s=0.0)
        # a wrench moves to the world by the inverse transpose of Ad, and so does a momentum
        momentum.append(np.linalg.solve(ls.lie.se3_Ad(g_WB).T, (ls.mass_matrix(model, q) @ v)[:6]))
    for part in np.split(np.array(momentum), 2, axis=1):
        np.testing.assert_allclose(part, np.tile(part[0], (40, 1)), rtol=0, atol=1e-6 * np.abs(part).max())
    E = ls.energy(model, motion.q, motion.v)
    assert np.ptp(E.total) < 1e-6 * (np.ptp(E.kinetic) + np.ptp(E.elastic))
