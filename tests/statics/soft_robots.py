"""Soft robots on tendons, upright, hanging and with closed chains, and the Hessian of their potential."""

import warnings

import numpy as np

import lissom as ls

SOFT = ls.Material(young=1e5, poisson=0.5, density=1000)
UP = np.array([[0.0, 0, -1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]])
DOWN = np.array([[0.0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1]])


def arm(upwards, tendons=3, basis=None):
    """An arm of 0.5 m that tapers from 3 to 1.5 cm, on tendons 1 cm off its axis."""
    robot = ls.Robot("arm")
    basis = basis or ls.BasisLegendre(torsion=1, bending_y=3, bending_z=3, elongation=1)
    rod = ls.Rod(0.5, ls.SectionCircle((0.03, 0.015)), basis, SOFT)
    robot.add_link("arm", rod, placement=UP if upwards else DOWN)
    for k in range(tendons):
        angle = 2 * np.pi * k / tendons
        robot.add_tendon(f"tendon {k}", "arm", (0.01 * np.sin(angle), 0.01 * np.cos(angle)))
    return built(robot)


def pair(upwards, spatial):
    """Two fingers whose tips are joined by a hinge, or by a ball."""
    robot = ls.Robot("pair")
    more = {"bending_z": 2, "torsion": 1} if spatial else {}
    basis = ls.BasisLegendre(bending_y=2, elongation=1, **more)
    for side, name in ((-1, "left"), (1, "right")):
        g = (UP if upwards else DOWN).copy()
        c, s = np.cos(0.15), side * np.sin(0.15) * (1 if upwards else -1)
        g[:3, :3] = np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]]) @ g[:3, :3]
        g[0, 3] = side * 0.05
        robot.add_link(name, ls.Rod(0.3, ls.SectionCircle(0.012), basis, SOFT), placement=g)
        robot.add_tendon(f"{name} inner", name, (0.0, 0.008))
        robot.add_tendon(f"{name} side", name, (0.006, -0.005))
    robot.add_loop("tips", "left", "right", joint=ls.JointSpherical() if spatial else ls.JointRevolute((0, 1, 0)))
    return closed(robot)


def closed(robot):
    """The model of a plane chain, its remark on rows that depend on each other already made."""
    model = built(robot)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.RedundancyWarning)
        ls.assemble(model)
    return model


def built(robot):
    """The model, without remarks on its taper."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.AccuracyWarning)
        return robot.build()


def potential(model, q, u):
    """Elastic and gravity energy, less the work of the tendons [J]."""
    e = ls.energy(model, q, np.zeros((*q.shape[:-1], model.nv)))
    return e.gravitational + e.elastic + ls.path_lengths(model, q) @ u


def onto_loops(model, q, near):
    """Configurations (n, nq) moved onto the loops, by the Jacobian of differences at one near them."""
    if not model.n_multipliers:
        return q
    back = np.linalg.pinv(loop_slopes(model, near[None])[0], rcond=1e-6)
    for _ in range(10):
        q = q - ls.loop_residual(model, q) @ back.T * model.dofs.scale
    assert np.abs(ls.loop_residual(model, q)).max() < 1e-13
    return q


def loop_slopes(model, q):
    """Slopes (n, n_rows, nv) of the residuals of loops in units of dofs.scale, by differences."""
    moves = 1e-6 * np.diag(model.dofs.scale)
    ahead, behind = (ls.loop_residual(model, q[:, None] + sign * moves) for sign in (1, -1))
    return np.swapaxes(ahead - behind, -1, -2) / 2e-6


def hessian(model, q, u, h=1e-3):
    """Hessian [J] of the potential at q (nq,) on the motions that loops allow, by differences of the potential alone.

    Where the potential is stationary on the loops it does not matter how points are moved onto them.
    """
    N = np.eye(model.nv)
    if model.n_multipliers:
        _, size, V = np.linalg.svd(loop_slopes(model, q[None])[0])
        N = V[int((size > 1e-6 * size[0]).sum()) :].T
    n = N.shape[1]
    pairs = [(i, j) for i in range(n) for j in range(i + 1)]
    signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
    moves = np.array([h * (a * N[:, i] + b * N[:, j]) for i, j in pairs for a, b in signs])
    V = potential(model, onto_loops(model, q + moves * model.dofs.scale, q), u).reshape(-1, 4)
    H = np.zeros((n, n))
    for (i, j), value in zip(pairs, V @ (1, -1, -1, 1) / (4 * h * h)):
        H[i, j] = H[j, i] = value
    return H
