"""A trimmed helicoid of three bodies, whose tips nine tendons lead round circles (Pustina 2025, simulation 1).

Each body is two turning blades without a core, a mesh of 2736 tetrahedra. It moves by primitives that keep the volume
of every part, composed in the order of the paper's Table 4: stretch, bending about two axes, twist, and shear along two
axes, eight coordinates. Three tendons end at each tip; each follows straight lines of material along the perimeter from
the base. The tips shall go round circles, nearer to the base than those of the slack arm. Statics at samples turns the
circles into lengths of tendons, and partial feedback linearisation in these leads the errors by ë + ė + 10 e = 0: they
swing and decay as exp(−t/2), while fifteen coordinates are left to themselves.

Choices that the paper leaves open: blades are 8 mm thick, make 1.5 turns and begin 5 mm from the axis. The tendons
of a triplet are 120 degrees apart, those of different triplets 40. They are guided except within 5 mm of the ends of
bodies. In equilibrium some of the nine tendons push, which none of the paper's equations forbids. Gravity acts along
the arm, which hangs. Each primitive of bending takes a point where the earlier primitives moved it, as the composition
says. The paper's η is twice a damping time. The arm starts at rest with its tips amid the circles: from the slack
shape, 55 mm of tendon away, the gains overshoot by 60 %, the bodies buckle, and tendons need 700 N. Integrals over a
body are sums over 84 points chosen among the 10,944 of the mesh, a rule that integrates all polynomials up to degree 6
as they do.

    python examples/trimmed_helicoid.py out/trimmed_helicoid
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import lissom as ls

LENGTH, RADIUS, DENSITY, C, ETA = 0.1, 0.02, 960.0, 0.178e6, 0.05
CORE, BLADE, TURNS = 0.005, 0.008, 1.5  # inner radius, thickness along the axis [m]
DIVISIONS = 38, 3, 2  # along each blade, from the core outwards, through the thickness
COMPRESS = 6
FREE = 0.005  # from the ends of a body, where tendons run straight to the next [m]
HANGING = ((0, 1, 0, 0), (0, 0, -1, 0), (-1, 0, 0, 0), (0, 0, 0, 1))  # x of the bodies down
BASE = np.diag([1.0, -1.0, -1.0])  # axes of the base, in which the paper gives circles: z along the arm
BODIES = "body 1", "body 2", "body 3"
CIRCLES = ((0.02, 0.08), (0.025, 0.15), (0.03, 0.24))  # radius, and distance of the plane from the base [m]
PERIOD, SAMPLES = 5.0, 20
PROPORTIONAL, DERIVATIVE = 10.0, 1.0  # [1/s²] and [1/s]
DURATION, STEP, SHOWN = 5.0, 0.025, 0.05  # a whole round; steps of time, and between two that are handed out [s]


def helicoid(divisions: tuple[int, int, int] = DIVISIONS) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (m, 3) [m] and tetrahedra (k, 4) of two blades, each of hexahedra cut along a diagonal."""
    s, r, h = (np.linspace(0.0, 1.0, count + 1) for count in divisions)
    S, R, H = np.meshgrid(s, CORE + (RADIUS - CORE) * r, h, indexing="ij")
    x, angle = (LENGTH - BLADE) * S + BLADE * H, 2.0 * np.pi * TURNS * S
    blades = [np.stack([x, R * np.cos(angle + turn), R * np.sin(angle + turn)], axis=-1) for turn in (0.0, np.pi)]
    number = np.arange(S.size).reshape(S.shape)
    corner = number[:-1, :-1, :-1].ravel()
    steps = [number[1, 0, 0], number[0, 1, 0], number[0, 0, 1]]
    orders = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    paths = [np.cumsum([0, *(steps[k] for k in order)]) for order in orders]
    cells = np.concatenate([corner[:, None] + path for path in paths])
    vertices = np.concatenate([blade.reshape(-1, 3) for blade in blades])
    cells = np.concatenate([cells, cells + S.size])
    inverted = np.linalg.det(vertices[cells[:, 1:]] - vertices[cells[:, :1]]) < 0.0
    cells[inverted] = cells[inverted][:, [0, 2, 1, 3]]
    return vertices, cells


def body(compress: int | None = COMPRESS, divisions: tuple[int, int, int] = DIVISIONS) -> ls.DeformableBody:
    """One body with the modes of Table 4."""
    bending, rising = [[1.0 / LENGTH], [0.0, 1.0]], [[0.0, 1.0]]
    primitives = [
        ls.PrimitiveStretch([[0.0, 1.0, -1.0]]),
        ls.PrimitiveBending(bending, axis="y"),
        ls.PrimitiveBending(bending, axis="z"),
        ls.PrimitiveTwist(rising),
        ls.PrimitiveShear(rising, axis="y"),
        ls.PrimitiveShear(rising, axis="z"),
    ]
    ends = {"base": np.zeros(3), "tip": np.array([LENGTH, 0.0, 0.0])}
    mesh = ls.DomainTetrahedra(*helicoid(divisions), degree=2, compress=compress, marks=ends)
    material = ls.HyperelasticNeoHookean(C, damping_time=0.5 * ETA)
    motion = ls.KinematicsVolumePreserving(LENGTH, primitives)
    return ls.DeformableBody(motion, mesh, material, DENSITY, tip="tip")


def describe(compress: int | None = COMPRESS, divisions: tuple[int, int, int] = DIVISIONS) -> ls.Robot:
    """The arm with its nine tendons."""
    robot, soft, parent = ls.Robot("trimmed helicoid"), body(compress, divisions), None
    for name in BODIES:
        robot.add_link(name, soft, parent=parent, placement=np.eye(4) if parent else HANGING)
        parent = name
    for last in range(3):
        for k in range(3):
            angle = 2.0 * np.pi * (k / 3.0 + last / 9.0)
            y, z = RADIUS * np.cos(angle), RADIUS * np.sin(angle)
            line = [(FREE, y, z), (LENGTH - FREE, y, z)]
            path = [ls.PathBody(name, line, gauss_points=4) for name in BODIES[: last + 1]]
            robot.add_tendon(f"{last + 1}{'abc'[k]}", path=path)
    return robot


def build(compress: int | None = COMPRESS, divisions: tuple[int, int, int] = DIVISIONS) -> ls.Model:
    """Its model."""
    return describe(compress, divisions).build()


def circles(t: float) -> np.ndarray:
    """Where the tips shall be, shape (3, 3) [m]."""
    angle = 2.0 * np.pi * t / PERIOD
    return np.array([(r * np.cos(angle), r * np.sin(angle), depth) for r, depth in CIRCLES]) @ BASE.T


def start(model: ls.Model) -> tuple[np.ndarray, np.ndarray]:
    """The equilibrium with the tips amid the circles, followed from the slack arm, and its tensions."""
    slack = np.array([(0.0, 0.0, LENGTH * (k + 1)) for k in range(3)])
    amid = np.array([(0.0, 0.0, depth) for _, depth in CIRCLES])
    parts = np.linspace(0.0, 1.0, 6)
    found = ls.static_reference(model, parts, lambda s: ((1.0 - s) * slack + s * amid) @ BASE.T, BODIES)
    return found.q[-1], found.u[-1]


def reference(model: ls.Model, q: np.ndarray, u: np.ndarray, duration: float = DURATION) -> ls.StaticReference:
    """Lengths of tendons by statics at samples of the circles, a little beyond the end of the motion."""
    count = max(4, int(np.ceil(duration / PERIOD * SAMPLES)) + 2)
    return ls.static_reference(model, PERIOD / SAMPLES * np.arange(count), circles, BODIES, q0=q, u0=u)


def follow(model: ls.Model, path: ls.Tabulated, q: np.ndarray, duration: float = DURATION) -> ls.Trajectory:
    """The motion from rest at q."""
    law = ls.partial_feedback_linearization(model, path, proportional=PROPORTIONAL, derivative=DERIVATIVE)
    times = np.linspace(0.0, duration, round(duration / SHOWN) + 1)
    steps = {"method": "generalized_alpha", "dt": STEP, "rtol": 1e-3, "atol": 1e-5}
    return ls.simulate(model, duration, q0=q, controller=law, t_eval=times, **steps)


def errors(model: ls.Model, path: ls.Tabulated, motion: ls.Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Of the tendons' lengths and of their rates, shapes (n, 9) [m, m/s]."""
    e = path(motion.t) - ls.actuation_coordinates(model, motion.q)
    rate = np.array([B.T @ v for B, v in zip(ls.actuation_matrix(model, motion.q), motion.v)])
    return e, path.slope(motion.t) - rate


def promised(t: np.ndarray, e: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """The errors that ë + K_D ė + K_P e = 0 leaves of e and ė (9,) at t = 0, shape (n, 9)."""
    slow = 0.5 * DERIVATIVE
    beat = np.sqrt(PROPORTIONAL - slow**2)
    return np.exp(-slow * t)[:, None] * (
        np.cos(beat * t)[:, None] * e + np.sin(beat * t)[:, None] * (rate + slow * e) / beat
    )


def decay(t: np.ndarray, e: np.ndarray, rate: np.ndarray) -> float:
    """The rate at which the swing (β² |e|² + |ė + K_D e / 2|²)½ of the errors falls, β being their frequency [1/s]."""
    slow = 0.5 * DERIVATIVE
    swing = (PROPORTIONAL - slow**2) * (e**2).sum(axis=1) + ((rate + slow * e) ** 2).sum(axis=1)
    return float(-np.polyfit(t, 0.5 * np.log(swing), 1)[0])


def tips(model: ls.Model, q: np.ndarray) -> np.ndarray:
    """Of the bodies, shape (n, 3, 3) [m]."""
    return np.stack([ls.frame_pose(model, q, name)[:, :3, 3] for name in BODIES], axis=1)


def main(out: str | Path | None = None, duration: float = DURATION) -> dict[str, float]:
    """How lengths of tendons and tips come to their references, and how long that took; pictures in `out`."""
    model = build()
    q, u = start(model)
    given = reference(model, q, u, duration)
    follow(model, given.path, q, SHOWN)  # JAX compiles the functions of the motion
    begun = time.process_time()
    motion = follow(model, given.path, q, duration)
    taken = time.process_time() - begun
    e, rate = errors(model, given.path, motion)
    exact = promised(motion.t, e[0], rate[0])
    apart = np.array([tips(model, motion.q)[k] - circles(t) for k, t in enumerate(motion.t)])
    found = {
        "rate of decay [1/s]": decay(motion.t, e, rate),
        "rate of the gains [1/s]": 0.5 * DERIVATIVE,
        "largest error of a length at the start [mm]": 1e3 * float(np.abs(e[0]).max()),
        "in the last second [mm]": 1e3 * float(np.abs(e[motion.t >= duration - 1.0]).max()),
        "errors from the promised ones [mm]": 1e3 * float(np.abs(e - exact).max()),
        "tips from their circles at the end [mm]": 1e3 * float(np.linalg.norm(apart[-1], axis=-1).max()),
        "largest coordinate": float(np.abs(motion.q).max()),
        "least tension [N]": float(motion.u.min()),
        "largest tension [N]": float(motion.u.max()),
        "time of a core for each second [s]": taken / duration,
    }
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        _plot(model, given, motion, e, exact, Path(out))
    return found


def _plot(
    model: ls.Model, given: ls.StaticReference, motion: ls.Trajectory, e: np.ndarray, exact: np.ndarray, folder: Path
) -> None:
    from matplotlib.figure import Figure

    paths = list(tips(model, motion.q).swapaxes(0, 1))
    look = {"trail": paths, "view": (12, -60), "title": "trimmed helicoid"}
    ls.plot_shapes(model, motion.q[-1], path=folder / "arm.png", **look)
    shown = np.searchsorted(motion.t, motion.t[-1] * np.array([0.5, 1.0]))
    ls.plot_shapes(
        model, motion.q[shown], values=motion.t[shown], value_label="time [s]", path=folder / "shapes.png", **look
    )
    figure = Figure(figsize=(8, 9), layout="constrained")
    lengths, errors_, tension = figure.subplots(3, 1, sharex=True)
    y = ls.actuation_coordinates(model, motion.q)
    for k, name in enumerate(BODIES):
        for j in range(3 * k, 3 * k + 3):
            first = {"label": name} if j == 3 * k else {}
            lengths.plot(motion.t, 1e3 * y[:, j], color=f"C{k}", **first)
            lengths.plot(motion.t, 1e3 * given.path(motion.t)[:, j], color="k", linestyle=":", linewidth=0.8)
            tension.plot(motion.t, motion.u[:, j], color=f"C{k}")
    errors_.semilogy(motion.t, 1e3 * np.linalg.norm(e, axis=1), label="norm of the errors")
    errors_.semilogy(motion.t, 1e3 * np.linalg.norm(exact, axis=1), "k:", label="by ë + ė + 10 e = 0")
    for axes in (lengths, errors_):
        axes.legend(frameon=False, fontsize=9)
    words = "lengths of tendons pulled in, references dotted [mm]", "their errors [mm]", "tensions [N]"
    for axes, title in zip((lengths, errors_, tension), words):
        axes.set_title(title, loc="left", fontsize=10)
        axes.grid(alpha=0.3)
    tension.set(xlabel="t [s]", xlim=(0, motion.t[-1]))
    figure.savefig(folder / "motion.png", dpi=120)
    _plot_round(model, motion, folder / "round.png")
    ls.plot_trajectory(model, motion, coordinates="all", path=folder / "coordinates.png")


def _plot_round(model: ls.Model, motion: ls.Trajectory, path: Path) -> None:
    """Where tips went, seen along the arm, and their circles."""
    from matplotlib.figure import Figure

    where, there = tips(model, motion.q), np.array([circles(t) for t in np.linspace(0.0, PERIOD, 101)])
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    for k, axes in enumerate(figure.subplots(1, 3)):
        axes.plot(*1e3 * there[:, k, :2].T, "k:", linewidth=1.0, label="circle")
        axes.plot(*1e3 * where[:, k, :2].T, color=f"C{k}", label="tip")
        axes.plot(*1e3 * where[-1, k, :2], "o", color=f"C{k}", markersize=4)
        axes.set_title(BODIES[k], loc="left", fontsize=10)
        axes.set(xlabel="x [mm]", ylabel="y [mm]", aspect="equal")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=8, loc="upper left")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    for key, number in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{key}: {number:.4g}")
