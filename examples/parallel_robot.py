"""A platform on three soft pillars under a varying wrench: closed chains in space (Mathew 2025 §6.1, figures 12 to 14).

A rigid triangular plate rests on three pillars of silicone. Spherical joints join the pillars to its corners; the foot
of the first is clamped, those of the others turn about hinges. A force and a moment fixed in the world act on the
middle of the plate. As in the paper there are 63 coordinates: three pillars of 18 (cubic angular strains, linear
strains of first order) and three spherical joints. The hinges close two loops and leave 53 degrees of freedom.

The motion of ten seconds is computed adaptively at two tolerances and by steps of 10 ms; along it the exact
derivatives of the constrained acceleration are compared with central differences. Then come equilibria under a
thousand random wrenches, each found from the robot that carries its own weight alone.

The paper gives the sizes and the silicone of its manipulator. Ours are: the plate of the same density, its joints at
the corners, half-way up its height; the wide sides of the pillars and the axes of the hinges horizontal and across the
line to the middle, so that a pillar on a hinge swings towards the middle.

    python examples/parallel_robot.py out/parallel
"""

from __future__ import annotations

import runpy
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import null_space

import lissom as ls

HERE = Path(__file__).parent
SIDE, THICKNESS, DENSITY = 0.2, 0.01, 1000.0  # of the plate [m, kg/m³]
LENGTH, WIDE, THIN = 0.15, 0.03, 0.015  # of a pillar [m]
DURATION = 10.0
FORCE, MOMENT = 0.5, 0.05  # amplitudes of the wrench [N, N·m]
PILLARS = "pillar 1", "pillar 2", "pillar 3"
UP, AXES = np.array([0.0, 0.0, 1.0]), np.eye(3)
SPACE = (0.02, 0.0, 0.94, 0.92)  # of the pictures in space, in their half of the figure
VIEW = (25.0, -65.0)  # elevation and azimuth of the eye [deg]
METHODS: dict[str, dict[str, Any]] = {
    "bdf 1e-6": {"method": "bdf", "rtol": 1e-6, "atol": 1e-8},
    "bdf 1e-3": {"method": "bdf", "rtol": 1e-3, "atol": 1e-5},
    "generalized_alpha": {"method": "generalized_alpha", "dt": 0.01},
}


def radial(k: int) -> np.ndarray:
    """Unit vector from the middle to corner k."""
    angle = 2 * np.pi * k / 3
    return np.array([np.cos(angle), np.sin(angle), 0.0])


CORNERS = SIDE / np.sqrt(3) * np.array([radial(k) for k in range(3)])  # from the middle of the plate [m]


def pose(x: Any, y: Any, position: Any) -> np.ndarray:
    """4x4 from two axes and a position."""
    g = np.eye(4)
    g[:3, 0], g[:3, 1], g[:3, 2], g[:3, 3] = x, y, np.cross(x, y), position
    return g


def upright(k: int, at: np.ndarray, *, down: bool = False) -> np.ndarray:
    """Pose of a pillar's section at corner k: x up or down along the pillar, y across the radius."""
    return pose(-UP if down else UP, np.cross(UP, radial(k)), at + CORNERS[k])


def plate() -> ls.RigidBody:
    """Equilateral prism, whose frame is at its first corner with the axes of the world."""
    mass = DENSITY * np.sqrt(3) / 4 * SIDE**2 * THICKNESS
    across = mass * (SIDE**2 / 24 + THICKNESS**2 / 12)
    return ls.RigidBody(mass, com=-CORNERS[0], inertia=(across, across, mass * SIDE**2 / 12), meshes=(prism(),))


def prism() -> ls.Mesh:
    """Surface of the plate, for pictures, which would show a box of equal inertia."""
    half = np.array([0.0, 0.0, THICKNESS / 2])
    tops = CORNERS - CORNERS[0]
    sides = [(k, (k + 1) % 3, (k + 1) % 3 + 3, k, (k + 1) % 3 + 3, k + 3) for k in range(3)]
    triangles = [(0, 2, 1), (3, 4, 5), *np.reshape(sides, (-1, 3)).tolist()]
    return ls.Mesh(vertices=np.concatenate([tops - half, tops + half]), triangles=triangles)


def pillar() -> ls.Rod:
    """A pillar of the manipulator's silicone: 18 modes."""
    manipulator = ls.load_robot(HERE / "robots" / "cdm.yaml").links["arm"].body
    assert isinstance(manipulator, ls.Rod)
    basis = ls.BasisLegendre(torsion=3, bending_y=3, bending_z=3, elongation=1, shear_y=1, shear_z=1)
    return ls.Rod(LENGTH, ls.SectionRectangle(WIDE, THIN), basis, manipulator.material)


def force(t: float) -> np.ndarray:
    """Force on the plate [N]."""
    return FORCE * np.sin(2 * np.pi * t / np.array([5.0, 4.0, 10 / 3]))


def moment(t: float) -> np.ndarray:
    """Moment on the plate [N·m]."""
    return MOMENT * np.sin(2 * np.pi * t / np.array([2.5, 2.0, 5 / 3]))


def robot(cut: str = "feet", *, force: Any = force, moment: Any = moment, gravity: Any = (0.0, 0.0, -9.81)) -> ls.Robot:
    """The robot under a wrench, its loops cut at one of three places.

    "feet": pillars 2 and 3 hang from the plate, hinges close them. "spherical": they stand on their hinges, spherical
    joints at the plate close them. "all feet": the plate floats and all three hang from it, so that the multipliers
    hold everything that the ground carries.
    """
    top = LENGTH * UP
    middle = pose(AXES[0], AXES[1], top + CORNERS[0])  # of the plate's frame
    made = ls.Robot("parallel robot", gravity=gravity)
    if cut == "all feet":
        made.add_link("plate", plate(), ls.JointFree(), placement=middle)
    else:
        made.add_link(PILLARS[0], pillar(), placement=upright(0, 0 * UP))
        made.add_link(
            "plate", plate(), ls.JointSpherical(), PILLARS[0], placement=np.linalg.inv(upright(0, top)) @ middle
        )
    hinge, to_plate = ls.JointRevolute(axis=(0, 1, 0)), np.linalg.inv(middle)
    for k, name in enumerate(PILLARS):
        at_plate = to_plate @ upright(k, top, down=True)
        if cut == "spherical" and k > 0:
            made.add_link(name, pillar(), hinge, placement=upright(k, 0 * UP))
            made.add_loop(
                f"corner {k + 1}", name, "plate", placement_b=to_plate @ upright(k, top), joint=ls.JointSpherical()
            )
        elif cut == "all feet" or k > 0:
            made.add_link(name, pillar(), ls.JointSpherical(), "plate", placement=at_plate)
            foot = upright(k, 0 * UP, down=True)
            made.add_loop(f"foot {k + 1}", name, placement_b=foot, joint=hinge if k else ls.JointFixed())
    made.add_point_load("wrench", "plate", force=force, moment=moment, position=-CORNERS[0])
    return made


def build(cut: str = "feet", **options: Any) -> ls.Model:
    """The model of `robot`."""
    return robot(cut, **options).build()


def corners(model: ls.Model, q: np.ndarray) -> np.ndarray:
    """The corners of the plate, shape (..., 3 corners, 3) [m]."""
    g = ls.frame_pose(model, q, "plate")
    return g[..., None, :3, 3] + np.einsum("...ij,kj->...ki", g[..., :3, :3], CORNERS - CORNERS[0])


def dynamics_study(model: ls.Model, duration: float, out: Path | None = None, rate: float = 50.0) -> dict[str, float]:
    """The motion by three methods at common times, `rate` of them a second, and the derivatives along it."""
    times = np.linspace(0.0, duration, round(rate * duration) + 1)
    q0 = ls.solve_statics(model).q
    motions = {name: ls.simulate(model, duration, q0, t_eval=times, **how) for name, how in METHODS.items()}
    seen = {name: corners(model, motion.q) for name, motion in motions.items()}
    first, *others = METHODS
    apart = {name: np.linalg.norm(seen[name] - seen[first], axis=-1).mean(axis=-1) for name in others}
    derivative, cost = runpy.run_path(str(HERE / "implicit_methods.py"))["derivatives_along"](model, motions[first])
    if out is not None:
        _plot_motion(model, motions[first], seen, apart, derivative, out)
    return {
        "corner travel": float(np.ptp(seen[first], axis=0).max()),
        **{f"corner distance {name}": float(x.max()) for name, x in apart.items()},
        **{f"open by {name}": float(np.abs(ls.loop_residual(model, m.q)).max()) for name, m in motions.items()},
        **{f"wall time {name} [s]": motion.statistics.wall_time for name, motion in motions.items()},
        "mismatch of d/dq": float(derivative[0].max()),
        "mismatch of d/dv": float(derivative[1].max()),
        **cost,
    }


def _row(table: np.ndarray, t: float) -> np.ndarray:
    return table[round(t)]


def is_stable(model: ls.Model, end: ls.Equilibrium, t: float) -> bool:
    """Whether every small motion that keeps the loops closed is resisted."""
    K = ls.tangent_stiffness(model, end.q, t=t) - ls.constraint_force_derivative(model, end.q, end.multipliers)
    N = null_space(ls.constraint_jacobian(model, end.q))
    return bool(np.linalg.eigvalsh(N.T @ (K + K.T) @ N)[0] > 0.0)


def statics_study(n: int, out: Path | None = None, seed: int = 0) -> dict[str, float]:
    """Equilibria under n random wrenches, the k-th of which acts at t = k, from that without any."""
    random = np.random.default_rng(seed)
    forces, moments = (size * random.uniform(-1.0, 1.0, (n, 3)) for size in (FORCE, MOMENT))
    unloaded = ls.solve_statics(build(force=(0, 0, 0))).q
    model = build(force=partial(_row, forces), moment=partial(_row, moments))
    ls.solve_statics(model, q0=unloaded)  # compiles
    found, stable, spent = [], 0, 0.0
    for k in range(n):
        began = time.perf_counter()
        try:
            found.append(ls.solve_statics(model, q0=unloaded, t=float(k)))
        except ls.ConvergenceError as error:
            print(f"wrench {k}: {error}")
            continue
        spent += time.perf_counter() - began
        stable += is_stable(model, found[-1], float(k))
    q = np.array([end.q for end in found])
    shift = np.linalg.norm(corners(model, q) - corners(model, unloaded), axis=-1)
    if out is not None:
        _plot_statics(model, q, shift, forces, out)
    return {
        "wrenches": n,
        "converged": len(found),
        "stable": stable,
        "each [ms]": 1e3 * spent / len(found),
        "iterations": float(np.mean([end.iterations for end in found])),
        "largest residual": float(max(end.residual for end in found)),
        "largest gap": float(np.abs(ls.loop_residual(model, q)).max()),
        "largest shift of a corner": float(shift.max()),
    }


def main(out: str | Path | None = None, n: int = 1000, duration: float = DURATION) -> dict[str, dict[str, float]]:
    """The numbers of the two studies; their figures go to the folder `out`."""
    folder = None if out is None else Path(out)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    model = build()
    sizes = {"coordinates": model.nv, "loop rows": model.n_multipliers}
    return {
        "robot": {**sizes, "open at neutral": float(np.abs(ls.loop_residual(model, model.neutral())).max())},
        "dynamics": dynamics_study(model, duration, folder and folder / "parallel_dynamics.png"),
        "statics": statics_study(n, folder and folder / "parallel_statics.png"),
    }


def _plot_motion(
    model: ls.Model,
    motion: ls.Trajectory,
    seen: dict[str, np.ndarray],
    apart: dict[str, np.ndarray],
    derivative: np.ndarray,
    path: Path,
) -> None:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(15, 8), layout="constrained")
    parts: Any = figure.subfigures(1, 2, width_ratios=(1, 1.4))
    first, *others = METHODS
    shown = (np.array([0.12, 0.29, 0.62]) * (len(motion.t) - 1)).astype(int)
    ls.plot_shapes(model, motion.q[shown], trail=list(np.moveaxis(seen[first], 1, 0)), title="", view=VIEW,
                   axes=parts[0].add_axes(SPACE))  # fmt: skip
    parts[0].suptitle(f"(a) at t = {', '.join(f'{t:.1f}' for t in motion.t[shown])} s, and the paths of the corners")
    (b, c), (d, e) = parts[1].subplots(2, 2, sharex=True)
    for k, color in enumerate(("C3", "C2", "C0")):
        b.plot(motion.t, [force(t)[k] for t in motion.t], color=color, label=f"force {'xyz'[k]} [N]")
        b.plot(motion.t, [10 * moment(t)[k] for t in motion.t], ":", color=color, label=f"moment {'xyz'[k]} [0.1 N·m]")
        shift = 1e3 * (seen[first][:, :, k] - seen[first][0, :, k]).mean(axis=1)
        c.plot(motion.t, shift, color=color, label="xyz"[k])
    b.set(title="(b) the wrench")
    c.set(title="(c) mean shift of the corners [mm]")
    for name, color in zip(others, ("C1", "C4")):
        d.semilogy(motion.t[1:], np.maximum(apart[name][1:], 1e-18), color=color, label=f"{name} against {first}")
    d.set(xlabel="t [s]", title="(d) mean distance of the corners [m]")
    for x, word, color in zip(derivative, ("q", "v"), ("C0", "C5")):
        e.semilogy(motion.t, np.maximum(x, 1e-18), color=color, label=f"with respect to {word}")
    e.set(xlabel="t [s]", title="(e) exact and numerical derivatives")
    for axes in (b, c, d, e):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8, ncols=2 if axes is b else 1)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _plot_statics(model: ls.Model, q: np.ndarray, shift: np.ndarray, forces: np.ndarray, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(14, 6), layout="constrained")
    parts: Any = figure.subfigures(1, 2, width_ratios=(1.2, 1))
    ls.plot_shapes(model, q[:4], title="", view=VIEW, axes=parts[0].add_axes(SPACE))
    parts[0].suptitle("(a) four of the equilibria")
    axes = parts[1].subplots()
    across = np.linalg.norm(forces[: len(shift), :2], axis=1)
    for k in range(3):
        axes.plot(across, 1e3 * shift[:, k], ".", markersize=4, label=f"corner {k + 1}")
    axes.set(xlabel="horizontal force [N]", ylabel="shift [mm]", title="(b) how far the corners go")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    for study, numbers in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(study)
        for key, number in numbers.items():
            print(f"    {key}: {number:.3g}")
