"""Closed chains against the slow model: gaps, constraint rows and equilibria by its Jacobians alone.

The slow model knows nothing of loops. It gives the frames A and B, and with y = Ad_{g_BA} η_A − η_B the rest is a few
lines: the residual of a fixed loop is log g_BA, and a wrench W on A does the work W·y.
"""

import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reference.reference_lie import Ad, log
from reference.reference_model import ReferenceModel

import lissom as ls

EXAMPLES = Path(__file__).parents[2] / "examples"


def with_frames(robot):
    """The robot with a frame at both ends of every loop; those in the world stay out."""
    for name, loop in robot.loops.items():
        robot.add_frame(f"{name} a", loop.link_a, s=loop.s_a, placement=loop.placement_a)
        if loop.link_b is not None:
            robot.add_frame(f"{name} b", loop.link_b, s=loop.s_b, placement=loop.placement_b)
    return robot


def ends(reference, q, name, loop):
    """g_BA and the matrix of y for a loop."""
    g_A, J_A = reference.frame_pose(q, f"{name} a"), reference.frame_jacobian(q, f"{name} a")
    if loop.link_b is None:
        g_B = np.eye(4) if loop.placement_b is None else np.asarray(loop.placement_b, dtype=float)
        J_B = np.zeros_like(J_A)
    else:
        g_B, J_B = reference.frame_pose(q, f"{name} b"), reference.frame_jacobian(q, f"{name} b")
    g_BA = np.linalg.inv(g_B) @ g_A
    return g_BA, Ad(g_BA) @ J_A - J_B


def left_over(reference, robot, q, wrenches, t):
    """Generalised force that loads, springs and the wrenches of the loops leave at rest."""
    still = np.zeros(reference.nv)
    pulls = [ends(reference, q, name, loop)[1].T @ W for (name, loop), W in zip(robot.loops.items(), wrenches)]
    return reference.inverse_dynamics(q, still, still, t) - sum(pulls)


def parallel_robot():
    """The example's robot under wrenches drawn at random, one for each whole second."""
    example = runpy.run_path(str(EXAMPLES / "parallel_robot.py"))
    random = np.random.default_rng(5)
    forces, moments = 0.5 * random.uniform(-1, 1, (1000, 3)), 0.05 * random.uniform(-1, 1, (1000, 3))
    robot = example["robot"](force=lambda t: forces[round(t)], moment=lambda t: moments[round(t)])
    rods = robot.build().rods
    for name, link in robot.links.items():
        if name in rods:  # the slow model wants the number of points that the library chooses
            body = replace(link.body, gauss_points=len(rods[name].node_s) - 1)
            robot.links[name] = replace(link, body=body)
    return with_frames(robot)


def check_equilibria(count):
    """How many random equilibria were found; each leaves nothing in the slow model and is closed there."""
    robot = parallel_robot()
    model, reference = robot.build(), ReferenceModel(robot)
    start, found = ls.solve_statics(model, t=0.0).q, 0
    for k in range(count):
        try:
            at = ls.solve_statics(model, q0=start, t=float(k))
        except ls.ConvergenceError:
            continue
        found += 1
        wrenches = ls.loop_wrenches(model, at.q, at.multipliers)
        assert np.abs(left_over(reference, robot, at.q, wrenches, float(k))).max() < 1e-9
        for name, loop in robot.loops.items():
            g_BA, _ = ends(reference, at.q, name, loop)
            turn = log(g_BA)[:3]
            assert (
                np.abs(g_BA[:3, 3]).max() < 1e-9 and np.abs(turn - turn @ [0, 1, 0] * np.array([0, 1, 0])).max() < 1e-9
            )
    return found


def test_random_equilibria_of_the_parallel_robot():
    """Twelve equilibria, rechecked."""
    assert check_equilibria(12) == 12


@pytest.mark.slow
def test_a_thousand_equilibria_of_the_parallel_robot():
    """At least 990 of 1000 are found, and none is silently wrong."""
    assert check_equilibria(1000) >= 990


@pytest.mark.parametrize("seed", range(3))
def test_fixed_loop_between_branches(seed):
    """Residual, rows and equilibrium of two soft branches welded together at random places."""
    rng = np.random.default_rng(seed)
    basis = ls.BasisLegendre(torsion=1, bending_y=1, bending_z=1, elongation=0)
    material = ls.Material(young=1e6, poisson=0.5, density=1000)
    robot = ls.Robot("welded", gravity=(0, 0, -1.0))
    aside = np.eye(4)
    aside[1, 3] = 0.1
    for name, placement in (("left", None), ("right", aside)):
        robot.add_link(name, ls.Rod(0.3, ls.SectionCircle(0.02), basis, material, gauss_points=4), placement=placement)
    bridge = aside.copy()
    bridge[:3, 3] += 0.01 * rng.normal(size=3)
    robot.add_loop("weld", "right", "left", s_a=0.8, s_b=0.9, placement_b=bridge)
    robot = with_frames(robot)
    model, reference = robot.build(), ReferenceModel(robot)
    q = ls.integrate(model, model.neutral(), rng.normal(size=model.nv) * model.dofs.scale * 0.3)
    g_BA, rows = ends(reference, q, "weld", robot.loops["weld"])
    np.testing.assert_allclose(ls.loop_residual(model, q), log(g_BA), rtol=0, atol=1e-11)
    np.testing.assert_allclose(ls.constraint_jacobian(model, q), rows, rtol=0, atol=1e-11)
    at = ls.solve_statics(model)
    wrenches = ls.loop_wrenches(model, at.q, at.multipliers)
    assert np.abs(left_over(reference, robot, at.q, wrenches, 0.0)).max() < 1e-10
    assert np.abs(ends(reference, at.q, "weld", robot.loops["weld"])[0] - np.eye(4)).max() < 1e-10
