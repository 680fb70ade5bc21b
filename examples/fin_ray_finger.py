"""A fin-ray finger: seventeen thin rods, six closed loops and a driven slide (Mathew 2025 §5.2, figures 10 and 11).

Two sidewalls of six rods each lean together and meet at the tip; five ribs join them. One wall is clamped at its base,
the base of the other slides along the wall, and the finger bends. Every rib turns about a hinge on the driven wall and
is closed on the clamped one by another hinge; the tips of the walls are welded together. All strains are in the plane
of the finger: linear bending, constant stretch and shear, 4 modes a rod, so that with the hinges and the slide there
are 17·4 + 5 + 1 = 74 coordinates. Five hinges and a weld in space close the loops with 31 rows, of which a motion in
the plane can violate only 13; the multipliers found are those of least norm. With the slide prescribed, 60 degrees of
freedom are left.

The motion is computed adaptively by Radau's method and by generalised-α with steps of 10 ms and of a quarter of that;
along it the exact derivatives of the constrained acceleration are compared with central differences. The slide is also
moved so slowly that the finger is at rest everywhere; the force it needs is then the slope of the energy over the
displacement.

The paper gives the rods: 1 mm thick, of ABS with E = 2 GPa and ν = 0.35, walls 25 mm wide in pieces of 30 mm, ribs
10 mm wide. Ours are: walls 60 mm apart at the base, so that the ribs are 50, 40, ... 10 mm long and everything closes
without strain; the density of 1050 kg/m³; Kelvin-Voigt damping with a time of 1 ms; a displacement of
10 mm · sin²(πt/5).

    python examples/fin_ray_finger.py out/finger
"""

from __future__ import annotations

import runpy
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

HERE = Path(__file__).parent
PIECES, PIECE, BASE = 6, 0.03, 0.06  # rods of a wall, their length and the distance of the walls [m]
THICKNESS, WALL_WIDTH, RIB_WIDTH = 1e-3, 25e-3, 10e-3  # of the sections [m]
ABS = ls.Material(young=2e9, poisson=0.35, density=1050.0, damping_time=1e-3)
STROKE, PERIOD, DURATION = 10e-3, 5.0, 10.0  # of the slide [m, s]
ACROSS = np.array([0.0, 1.0, 0.0])  # the axis of all hinges: out of the plane x, z
LEAN = np.arcsin(BASE / 2 / (PIECES * PIECE))
HEIGHT = PIECES * PIECE * np.cos(LEAN)
WELD = "tip"


def displacement(t: float) -> float:
    """Of the slide, upwards along its wall [m]."""
    return STROKE * float(np.sin(np.pi * t / PERIOD)) ** 2


def speed(t: float) -> float:
    """Its rate [m/s]."""
    return STROKE * np.pi / PERIOD * float(np.sin(2 * np.pi * t / PERIOD))


def acceleration(t: float) -> float:
    """The rate of that [m/s²]."""
    return 2 * STROKE * (np.pi / PERIOD) ** 2 * float(np.cos(2 * np.pi * t / PERIOD))


def pose(angle: float, x: float = 0.0, z: float = 0.0) -> np.ndarray:
    """4x4 of a frame in the plane: its x axis at an angle from the world's x towards z, its y axis across."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0, -s, x], [0, 1, 0, 0], [s, 0, c, z], [0, 0, 0, 1.0]])


def rod(length: float, width: float) -> ls.Rod:
    """A rod that deforms in the plane: 4 modes."""
    basis = ls.BasisLegendre(bending_y=1, elongation=0, shear_z=0)
    return ls.Rod(length, ls.SectionRectangle(width, THICKNESS), basis, ABS)


def robot(
    *,
    position: Any = displacement,
    velocity: Any = speed,
    acceleration: Any = acceleration,
    gravity: Any = (0.0, 0.0, -9.81),
) -> ls.Robot:
    """The finger, whose slide follows a motion."""
    made = ls.Robot("fin-ray finger", gravity=gravity)
    walls = {"clamped": np.pi / 2 - LEAN, "driven": np.pi / 2 + LEAN}
    for wall, angle in walls.items():
        base = pose(angle, (-1 if wall == "clamped" else 1) * BASE / 2)
        slide = ls.JointPrismatic(axis=(1, 0, 0)) if wall == "driven" else None
        made.add_link(f"{wall} 1", rod(PIECE, WALL_WIDTH), slide, placement=base)
        for k in range(2, PIECES + 1):
            made.add_link(f"{wall} {k}", rod(PIECE, WALL_WIDTH), parent=f"{wall} {k - 1}")
    hinge = ls.JointRevolute(axis=tuple(ACROSS))
    for k in range(1, PIECES):
        inward = pose(np.pi - walls["driven"])  # from the wall's direction to the rib's, towards the clamped wall
        made.add_link(f"rib {k}", rod(BASE * (1 - k / PIECES), RIB_WIDTH), hinge, f"driven {k}", placement=inward)
        seat = pose(np.pi - walls["clamped"])
        made.add_loop(f"hinge {k}", f"rib {k}", f"clamped {k}", placement_b=seat, joint=hinge)
    turn = pose(walls["driven"] - walls["clamped"])
    made.add_loop(WELD, f"driven {PIECES}", f"clamped {PIECES}", placement_b=turn)
    made.add_joint_motion("slide", "driven 1", position=position, velocity=velocity, acceleration=acceleration)
    return made


def tip(model: ls.Model, q: np.ndarray) -> np.ndarray:
    """Where the walls meet, shape (..., 3) [m]."""
    return ls.frame_pose(model, q, f"clamped {PIECES}")[..., :3, 3]


def slow(t: float) -> float:
    """A displacement of t, for statics."""
    return t


def drive_study(displacements: np.ndarray, **options: Any) -> dict[str, np.ndarray]:
    """Equilibria along the drive, each from the last: shapes, tips, the slide's force, energies, gaps, residuals."""
    model = robot(position=slow, velocity=None, acceleration=None, **options).build()
    q, rows, at_rest = model.neutral(), [], np.zeros(model.nv)
    for t in displacements:
        end = ls.solve_statics(model, q0=q, v=at_rest, t=float(t))
        q = end.q
        energy = ls.energy(model, q, np.zeros(model.nv)).total
        gap = np.abs(ls.loop_residual(model, q)).max()
        rows.append((q, tip(model, q), end.multipliers[0], energy, gap, end.residual, end.iterations))
    words = "q", "tip", "force", "energy", "gap", "residual", "iterations"
    return dict(zip(words, map(np.array, zip(*rows))))


def dynamics_study(duration: float, dt: float, out: Path | None = None, rate: float = 50.0) -> dict[str, float]:
    """The motion by Radau's method and steps dt and dt/4 at common times, `rate` a second; derivatives along it."""
    others = runpy.run_path(str(HERE / "implicit_methods.py"))
    model, times = robot().build(), np.linspace(0.0, duration, round(rate * duration) + 1)
    q0 = ls.solve_statics(model).q
    reference = ls.simulate(model, duration, q0, method="radau", rtol=1e-5, atol=1e-7, t_eval=times)
    stepped = {
        word: ls.simulate(model, duration, q0, method="generalized_alpha", dt=step, t_eval=times)
        for word, step in (("long steps", dt), ("short steps", dt / 4))
    }
    apart = {word: np.linalg.norm(tip(model, x.q) - tip(model, reference.q), axis=-1) for word, x in stepped.items()}
    states = {word: np.hstack([x.q, x.v]) / np.tile(model.dofs.scale, 2) for word, x in stepped.items()}
    exact = np.hstack([reference.q, reference.v]) / np.tile(model.dofs.scale, 2)
    state = {word: others["mismatch"](x, exact) for word, x in states.items()}
    derivative, cost = others["derivatives_along"](model, reference)
    motions = {"radau": reference, **stepped}
    if out is not None:
        _plot_motion(model, reference, apart, state, derivative, out)
    return {
        "tip travel": float(np.ptp(tip(model, reference.q), axis=0).max()),
        **{f"tip distance {word}": float(x.max()) for word, x in apart.items()},
        **{f"median state mismatch {word}": float(np.median(x)) for word, x in state.items()},
        **{f"open by {word}": float(np.abs(ls.loop_residual(model, x.q)).max()) for word, x in motions.items()},
        **{f"wall time {word} [s]": x.statistics.wall_time for word, x in motions.items()},
        "largest slide force [N]": float(np.abs(reference.multipliers[:, 0]).max()),
        "mismatch of d/dq": float(derivative[0].max()),
        "mismatch of d/dv": float(derivative[1].max()),
        **cost,
    }


def main(out: str | Path | None = None, duration: float = DURATION, dt: float = 1e-2) -> dict[str, dict[str, float]]:
    """The numbers of the finger, its slow drive and its motion; the figure goes to the folder `out`."""
    folder = None if out is None else Path(out)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.RedundancyWarning)  # joints in space close chains in a plane, as meant
        return _studies(folder, duration, dt)


def _studies(folder: Path | None, duration: float, dt: float) -> dict[str, dict[str, float]]:
    model = robot().build()
    A = ls.constraint_jacobian(model, model.neutral())
    drive = drive_study(np.linspace(0.0, STROKE, 11))
    return {
        "finger": {
            "coordinates": model.nv,
            "loop rows": len(A) - 1,
            "independent rows": int(np.linalg.matrix_rank(A[1:] * model.dofs.scale, tol=1e-9)),
            "open at neutral": float(np.abs(ls.loop_residual(model, model.neutral())).max()),
        },
        "drive": {
            "tip travel": float(np.linalg.norm(drive["tip"][-1] - drive["tip"][0])),
            "slide force [N]": float(drive["force"][-1]),
            "largest gap": float(drive["gap"].max()),
            "largest residual": float(drive["residual"].max()),
        },
        "dynamics": dynamics_study(duration, dt, folder and folder / "finger_dynamics.png"),
    }


def shape(model: ls.Model, q: np.ndarray, name: str, points: int = 13) -> np.ndarray:
    """Centreline of a rod in the plane of the finger, shape (..., points, 2) [m]."""
    return ls.frame_pose(model, q, name, s=np.linspace(0.0, 1.0, points))[..., (0, 2), 3]


def _plot_motion(
    model: ls.Model,
    motion: ls.Trajectory,
    apart: dict[str, np.ndarray],
    state: dict[str, np.ndarray],
    derivative: np.ndarray,
    path: Path,
) -> None:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(15, 8), layout="constrained")
    parts: Any = figure.subfigures(1, 2, width_ratios=(1, 1.9))
    _plot_shapes(parts[0].subplots(), model, motion)
    (b, c), (d, e) = parts[1].subplots(2, 2, sharex=True)
    b.plot(motion.t, [1e3 * displacement(t) for t in motion.t], "k", label="displacement of the slide [mm]")
    b.plot(motion.t, 10 * motion.multipliers[:, 0], color="C4", label="its force [0.1 N]")
    shift = 1e3 * (tip(model, motion.q) - tip(model, motion.q[0]))
    for k, color in ((0, "C3"), (2, "C0")):
        b.plot(motion.t, shift[:, k], "--", color=color, label=f"shift of the tip along {'xyz'[k]} [mm]")
    b.set(title="(b) the slide and the tip")
    for axes, found, title in ((c, apart, "(c) distance of the tips [m]"), (d, state, "(d) mismatch of states [-]")):
        for (word, x), color in zip(found.items(), ("C1", "C4")):
            axes.semilogy(motion.t[1:], np.maximum(x[1:], 1e-18), color=color, label=f"{word} against Radau")
        axes.set(title=title)
    for x, word, color in zip(derivative, ("q", "v"), ("C0", "C5")):
        e.semilogy(motion.t, np.maximum(x, 1e-18), color=color, label=f"with respect to {word}")
    e.set(title="(e) exact and numerical derivatives")
    for axes in (d, e):
        axes.set(xlabel="t [s]")
    for axes in (b, c, d, e):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _plot_shapes(axes: Any, model: ls.Model, motion: ls.Trajectory) -> None:
    """The finger on its way out, and the path of its tip."""
    import matplotlib.pyplot as plt

    out = motion.t[motion.t <= PERIOD / 2]
    shown = [int(np.argmin(np.abs(out - t))) for t in np.linspace(0.0, out[-1], 5)]
    colors = plt.get_cmap("viridis")(np.linspace(0.97, 0.12, len(shown)))
    for name in model.links.names:
        for line, color in zip(shape(model, motion.q[shown], name), colors):
            axes.plot(*(1e3 * line.T), color=color, linewidth=1.0 if "rib" in name else 2.0, solid_capstyle="round")
    for k, color in zip(shown, colors):
        axes.plot([], [], color=color, linewidth=2.0, label=f"t = {motion.t[k]:.2f} s")
    axes.plot(*(1e3 * tip(model, motion.q)[:, (0, 2)].T), color="#c2272d", linewidth=1.2, label="path of the tip")
    axes.set(xlabel="x [mm]", ylabel="z [mm]", title="(a) the finger", aspect="equal")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower center")


if __name__ == "__main__":
    for study, numbers in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(study)
        for key, number in numbers.items():
            print(f"    {key}: {number:.3g}")
