"""Two robots by several methods: motion, derivatives along it, and random equilibria (Mathew 2025 §4.5 and §5.1).

The cable-driven manipulator is pulled by the tensions of `cdm.py`; the seven joints of the serial robot follow given
angles and swing its soft arm. Each motion is computed by three implicit methods, which share the exact derivatives of
forward dynamics; along it these are compared with central differences. Then come equilibria at random: of the
manipulator under five tensions between 0 and 100 N, of the serial robot with seven angles between −π/4 and π/4. Each
is found by Newton's method with the exact Jacobian and by SciPy's with one from differences.

States and equilibria x, y are compared by e = |x − y| / |(x + y)/2| (eq. 37), in the natural sizes `model.dofs.scale`.
The serial robot's arm is longer than one that stands up under its own weight: where it points up there are several
equilibria, some of them unstable. From a straight start the two solvers disagree on every sixth, and on another quarter
they agree on one that is unstable. Both therefore start from an arm that is bent to where it would fall.

    python examples/implicit_methods.py out
"""

from __future__ import annotations

import runpy
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import root

import lissom as ls

HERE = Path(__file__).parent
METHODS = ("bdf", "radau", "generalized_alpha")
STEPS = {"cdm": 2e-3, "serial_robot": 1e-3}  # of the paper [s]
CONVERGED = 1e-9  # residual over stiffness, in natural sizes
FALLEN = 2.0  # largest bend of the start, in natural sizes: two radians over the arm


def robot(name: str) -> ls.Robot:
    """A robot from its file."""
    return ls.load_robot(HERE / "robots" / f"{name}.yaml")


def tip(model: ls.Model, q: np.ndarray) -> np.ndarray:
    """Tip of the soft arm, shape (..., 3) [m]."""
    return ls.frame_pose(model, q, "arm")[..., :3, 3]


def mismatch(x: np.ndarray, y: np.ndarray, axis: Any = -1) -> np.ndarray:
    """e of eq. (37); zero where both vanish."""
    size = np.linalg.norm(x + y, axis=axis) / 2
    return np.linalg.norm(x - y, axis=axis) / np.where(size > 0.0, size, 1.0)


def differences(model: ls.Model, q: Any, v: Any, u: Any, t: float, h: float = 1e-5) -> tuple[np.ndarray, np.ndarray]:
    """∂FD/∂q and ∂FD/∂v by central differences, each (nv, nv)."""
    h_q, h_v = h * model.dofs.scale, 1e-2 * model.dofs.scale  # FD is quadratic in v: no step is too long
    rise, fall = (ls.forward_dynamics(model, ls.integrate(model, q, s * np.diag(h_q)), v, u, t) for s in (1, -1))
    faster, slower = (ls.forward_dynamics(model, q, v + s * np.diag(h_v), u, t) for s in (1, -1))
    return (rise - fall).T / (2 * h_q), (faster - slower).T / (2 * h_v)


def dynamics_study(
    name: str,
    model: ls.Model,
    u: Callable[[float], Any] | None,
    duration: float,
    out: str | Path | None = None,
    *,
    dt: float = 1e-3,
    rtol: float = 1e-6,
    atol: float = 1e-8,
    rate: float = 50.0,
) -> dict[str, float]:
    """The motion by three methods at common times, `rate` of them a second, and the derivatives along it."""
    times = np.linspace(0.0, duration, round(rate * duration) + 1)
    options: dict[str, Any] = {"u": u, "t_eval": times}
    motions = [
        ls.simulate(model, duration, method=method, **options, **own)
        for method, own in zip(METHODS, [{"rtol": rtol, "atol": atol}] * 2 + [{"dt": dt}])
    ]
    tips = np.array([tip(model, motion.q) for motion in motions])
    states = [np.hstack([motion.q, motion.v]) / np.tile(model.dofs.scale, 2) for motion in motions]
    apart = np.linalg.norm(tips[1:] - tips[0], axis=-1)
    state = np.array([mismatch(x, states[0]) for x in states[1:]])
    derivative, cost = derivatives_along(model, motions[0])
    if out is not None:
        _plot_motion(name, times, tips, apart, state, derivative, Path(out))
    return {
        "largest tip distance": float(max(apart.max(), np.linalg.norm(tips[1] - tips[2], axis=-1).max())),
        **{f"tip distance {method}": float(x.max()) for method, x in zip(METHODS[1:], apart)},
        **{f"state mismatch {method}": float(x.max()) for method, x in zip(METHODS[1:], state)},
        "tip travel": float(np.ptp(tips[0], axis=0).max()),
        **{f"wall time {method}": motion.statistics.wall_time for method, motion in zip(METHODS, motions)},
        "mismatch of d/dq": float(derivative[0].max()),
        "mismatch of d/dv": float(derivative[1].max()),
        **cost,
    }


def derivatives_along(model: ls.Model, motion: ls.Trajectory) -> tuple[np.ndarray, dict[str, float]]:
    """Mismatch of exact and numerical ∂FD/∂q and ∂FD/∂v at every time, shape (2, n), and what both cost [ms].

    Prescribed coordinates are left out: they are no unknowns.
    """
    free = np.setdiff1d(np.arange(model.nv), model.prescribed.dof)
    found, exact_time, numerical_time = [], 0.0, 0.0
    for row in zip(motion.q, motion.v, motion.u, motion.t):
        began = time.perf_counter()
        exact = ls.forward_dynamics_derivatives(model, *row)
        between = time.perf_counter()
        numerical = differences(model, *row)
        exact_time, numerical_time = exact_time + between - began, numerical_time + time.perf_counter() - between
        found.append([mismatch(a[:, free], b[:, free], axis=None) for a, b in zip(exact, numerical)])
    cost = {"exact derivatives [ms]": exact_time, "numerical derivatives [ms]": numerical_time}
    return np.array(found).T, {key: 1e3 * spent / len(found) for key, spent in cost.items()}


def random_cdm(n: int, seed: int = 0) -> tuple[ls.Model, np.ndarray]:
    """The manipulator and n sets of tensions, shape (n, 5) [N]."""
    return robot("cdm").build(), np.random.default_rng(seed).uniform(0.0, 100.0, (n, 5))


def _entry(column: np.ndarray, t: float) -> float:
    return float(column[round(t)])


def _zero(t: float) -> float:
    return 0.0


def random_serial(n: int, seed: int = 0) -> tuple[ls.Model, np.ndarray]:
    """The serial robot, which stands with its k-th angles at t = k, so that one model serves all; and no inputs."""
    angles = np.random.default_rng(seed).uniform(-np.pi / 4, np.pi / 4, (n, 7))
    description = robot("serial_robot")
    links = [motion.link for motion in description.motions.values()]
    description.motions.clear()
    for link, column in zip(links, angles.T):
        held = partial(_entry, column)
        description.add_joint_motion(f"angle of {link}", link, position=held, velocity=_zero, acceleration=_zero)
    return description.build(), np.zeros((n, 0))


def equation(model: ls.Model, u: np.ndarray, t: float) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """The equation of statics in the free coordinates, and a configuration to start from.

    The residual is divided by the stiffness, so that its entries are strains; that of the straight arm is the shape
    to which the loads bend a linear arm, and the start is that shape scaled to FALLEN.
    """
    held = model.prescribed.dof
    free = np.setdiff1d(np.arange(model.nv), held)
    still, q = np.zeros(model.nv), model.neutral()
    q[held] = model.motions(t)[0]
    softness = np.linalg.inv(ls.stiffness_matrix(model)[np.ix_(free, free)])

    def residual(x: np.ndarray) -> np.ndarray:
        q[free] = x
        return softness @ (ls.inverse_dynamics(model, q, still, still, t=t) - ls.actuation_matrix(model, q) @ u)[free]

    start, way = q.copy(), -residual(q[free])
    start[free] = FALLEN / np.abs(way / model.dofs.scale[free]).max() * way
    return residual, start


def numerical_equilibrium(model: ls.Model, residual: Callable[[np.ndarray], np.ndarray], q: np.ndarray) -> np.ndarray:
    """Equilibrium by Powell's hybrid method from q, its Jacobian from differences; NaN where it stops elsewhere."""
    free = np.setdiff1d(np.arange(model.nv), model.prescribed.dof)
    scale = model.dofs.scale[free]
    found = root(residual, q[free], method="hybr", tol=1e-12, options={"diag": 1 / scale, "factor": 1.0})
    q = q.copy()
    q[free] = found.x if np.abs(found.fun / scale).max() < CONVERGED else np.nan
    return q


def is_stable(model: ls.Model, q: np.ndarray, u: np.ndarray, t: float) -> bool:
    """Whether the potential energy has a minimum there."""
    free = np.setdiff1d(np.arange(model.nv), model.prescribed.dof)
    K = ls.tangent_stiffness(model, q, u, t=t)[np.ix_(free, free)]
    return bool(np.linalg.eigvalsh((K + K.T) / 2)[0] > 0.0)


def statics_study(name: str, model: ls.Model, inputs: np.ndarray, out: str | Path | None = None) -> dict[str, float]:
    """Equilibria for every row of `inputs` in both ways, the k-th at t = k: their differences and their costs."""
    still, scale = np.zeros(model.nv), model.dofs.scale
    rows, shapes, missed, unstable = [], [], 0, 0
    ls.solve_statics(model, inputs[0])  # compiles
    spent = np.zeros(2)
    for k, u in enumerate(inputs):
        residual, start = equation(model, u, float(k))
        began = time.perf_counter()
        exact = ls.solve_statics(model, u, start, t=float(k))
        between = time.perf_counter()
        q = numerical_equilibrium(model, residual, start)
        spent += between - began, time.perf_counter() - between
        shapes.append(exact.q)
        unstable += not is_stable(model, exact.q, u, float(k))
        if np.isnan(q).any():
            missed += 1
            continue
        torques = ls.inverse_dynamics(model, q, still, still, t=float(k))[model.prescribed.dof]
        rows.append([np.linalg.norm(tip(model, exact.q) - tip(model, q)), mismatch(exact.q / scale, q / scale),
                     np.abs(exact.multipliers - torques).max(initial=0.0)])  # fmt: skip
    each, cost = np.array(rows).reshape(-1, 3).T, 1e3 * spent / len(inputs)
    if out is not None:
        _plot_statics(name, model, np.array(shapes), each, cost, Path(out))
    return {
        "unstable": unstable,
        "not found numerically": missed,
        "tip mismatch": each[0].max(),
        "solution mismatch": each[1].max(),
        "joint torque mismatch": each[2].max(),
        "exact Jacobian [ms]": cost[0],
        "numerical Jacobian [ms]": cost[1],
    }


def main(out: str | Path | None = None, n: int = 1000, duration: float = 10.0) -> dict[str, dict[str, float]]:
    """The numbers of the four studies; their figures go to the folder `out`."""
    folder = None if out is None else Path(out)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    tensions = runpy.run_path(str(HERE / "cdm.py"))["tensions"]
    numbers = {}
    for name, u, make in (("cdm", tensions, random_cdm), ("serial_robot", None, random_serial)):
        model = robot(name).build()
        picture, second = ((folder / f"{name}_{what}.png") if folder else None for what in ("dynamics", "statics"))
        numbers[f"{name} dynamics"] = dynamics_study(model.name, model, u, duration, picture, dt=STEPS[name])
        numbers[f"{name} statics"] = statics_study(model.name, *make(n), second)
    return numbers


def _plot_motion(
    name: str,
    times: np.ndarray,
    tips: np.ndarray,
    apart: np.ndarray,
    state: np.ndarray,
    derivative: np.ndarray,
    path: Path,
) -> None:
    import matplotlib.pyplot as plt

    words = [method.replace("_", "-") for method in METHODS]
    figure, ((a, b), (c, d)) = plt.subplots(2, 2, figsize=(12, 8), layout="constrained", sharex=True)
    figure.suptitle(f"{name}: motion by three methods")
    for k, (axis, color) in enumerate(zip("xyz", ("C3", "C2", "C0"))):
        for points, style, width in zip(tips, ("-", "--", ":"), (1.0, 1.8, 3.2)):
            a.plot(times, points[:, k], style, color=color, linewidth=width)
        a.plot([], [], color=color, label=axis)
    for word, style, width in zip(words, ("-", "--", ":"), (1.0, 1.8, 3.2)):
        a.plot([], [], style, color="k", linewidth=width, label=word)
    a.set(ylabel="tip [m]", title="(a) tip of the arm")
    a.legend(ncols=2, fontsize=8)
    for axes, values in ((b, apart), (c, state)):
        for word, x, color in zip(words[1:], values, ("C1", "C4")):
            axes.semilogy(times[1:], np.maximum(x[1:], 1e-18), color=color, label=f"{word} against bdf")
        axes.legend(fontsize=8)
    b.set(ylabel="distance [m]", title="(b) distance of the tips")
    c.set(xlabel="t [s]", ylabel="mismatch [-]", title="(c) mismatch of the states (q, v)")
    for x, word, color in zip(derivative, ("q", "v"), ("C0", "C5")):
        d.semilogy(times, np.maximum(x, 1e-18), color=color, label=f"with respect to {word}")
    d.set(xlabel="t [s]", ylabel="mismatch [-]", title="(d) exact and numerical derivatives of the acceleration")
    d.legend(fontsize=8)
    for axes in (a, b, c, d):
        axes.grid(alpha=0.3)
    figure.align_ylabels()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _plot_statics(
    name: str, model: ls.Model, shapes: np.ndarray, each: np.ndarray, cost: np.ndarray, path: Path
) -> None:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(15, 5.6), layout="constrained")
    grid: Any = figure.subfigures(1, 3, width_ratios=(1.25, 1, 1))
    left, *panels = grid
    space = left.add_subplot()
    ls.plot_shapes(model, shapes[:5], axes=space)
    space.set_title("(a) five of the equilibria", fontsize="large", fontweight="normal")
    words = "(b) distance of the tips", "(c) mismatch of the solutions"
    for panel, title, label in zip(panels, words, ("distance [m]", "mismatch [-]")):
        axes = panel.subplots()
        axes.set(xscale="log", xlabel=f"{label}, zeros drawn at 10⁻¹⁸", ylabel="number of equilibria", title=title)
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
    b, c = (panel.axes[0] for panel in panels)
    _histogram(b, each[0], "C0", "tip")
    _histogram(c, each[1], "C0", "q [-]")
    if model.n_multipliers:
        _histogram(c, each[2], "C1", "joint torques [N·m]")
        c.set_xlabel("mismatch [-] and [N·m], zeros drawn at 10⁻¹⁸")
        c.legend()
    counts = f"{each.shape[1]} of {len(shapes)} equilibria"
    times = f"the exact Jacobian ({cost[0]:.2g} ms each) and with a numerical one ({cost[1]:.2g} ms each)"
    figure.suptitle(f"{name}: {counts} found with {times}")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _histogram(axes: Any, values: np.ndarray, color: str, label: str) -> None:
    """Counts over logarithmic bins, five to a decade."""
    levels = np.log10(np.maximum(values, 1e-18))
    bins = 10 ** (np.arange(np.floor(5 * levels.min()), np.ceil(5 * levels.max()) + 1.5) / 5)
    axes.hist(10**levels, bins=bins, color=color, alpha=0.6, label=label)


if __name__ == "__main__":
    for study, found in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(study)
        for key, number in found.items():
            print(f"    {key}: {number:.3g}")
