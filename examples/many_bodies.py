"""Inverse dynamics of 1 to 20 soft bodies in a row, beside symbolic Lagrange's equations (Pustina 2025, simulation 3).

Each body is a cylinder of 30 cm and 3 cm radius that bends in the plane with constant curvature. The inertial forces
M q̈ and c(q, q̇) are found by the recursive algorithm, whose cost grows with the number of bodies, and by the
equations of Lagrange that SymPy derives for the whole robot. Both say the same where both can be had: the paper looks
at a hundred random states with q in [−π, π], q̇ in [−10, 10] and q̈ in [−100, 100], in radians.

The kinetic energy is in closed form: each body moves with the frame at the end of the one before, whose velocity
follows from body to body, and the integrals over a body are taken by SymPy once. Its formulas lose all digits where a
body is straight, as sin q − q and the like are divided by powers of q, so that they are evaluated with 40 digits
here.

The paper simplifies its expressions, which takes longer and longer, and comes to six bodies. Here they are not expanded
and share common parts, so that they grow slower; deriving them is what takes the time.

    python examples/many_bodies.py out/many_bodies
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

LENGTH, RADIUS, DENSITY = 0.3, 0.03, 1000.0
RANGES = np.pi, 10.0, 100.0  # of q, q̇ and q̈ [rad, s]
COUNTS, SYMBOLIC = (1, 2, 3, 4, 6, 8, 12, 16, 20), (1, 2, 3, 4, 5)
DIGITS = 40
QUARTILES = 0.25, 0.5, 0.75  # of times: interruptions by other processes make a standard deviation useless


@lru_cache(maxsize=1)
def body() -> ls.DeformableBody:
    """One of the bodies; all are the same, so that JAX compiles one."""
    motion = ls.KinematicsStrain.constant_curvature(LENGTH, planar=True)
    domain = ls.DomainCylinder(LENGTH, RADIUS, degree=4, degree_along=34)
    material = ls.HyperelasticSaintVenantKirchhoff(young=1e6, poisson=0.0)  # not looked at
    return ls.DeformableBody(motion, domain, material, DENSITY, tip="tip")


def chain(count: int) -> ls.Model:
    """So many bodies in a row."""
    robot = ls.Robot(f"{count} bodies")
    for k in range(count):
        robot.add_link(f"body {k}", body(), parent=f"body {k - 1}" if k else None)
    return robot.build()


def recursive(model: ls.Model, q: Any, v: Any, a: Any) -> np.ndarray:
    """M q̈ + c of coordinates that are angles, not curvatures, shape (n,) [N·m]."""
    q, v, a = (np.asarray(x) / LENGTH for x in (q, v, a))
    return ls.inverse_dynamics(model, q, v, a, gravity=False, elastic=False) / LENGTH


@lru_cache(maxsize=1)
def integrals() -> tuple[Any, ...]:
    """q, and of a body in the frame of its base: where its tip is and ∫f (2,), ∫|f|², ∫|∂f/∂q|² and ∫f×∂f/∂q."""
    import sympy as sp
    from sympy.simplify.fu import TR8

    q, s, y = sp.symbols("q s y", positive=True)
    L, R, rho = (sp.Rational(str(x)) for x in (LENGTH, RADIUS, DENSITY))
    f = sp.Matrix([L * sp.sin(q * s) / q - y * sp.sin(q * s), L * (1 - sp.cos(q * s)) / q + y * sp.cos(q * s)])
    slope = f.diff(q)

    def over_body(e: Any) -> Any:
        """∫ over the disk, where ∫y² is A R²/4 and odd powers vanish, and along s."""
        e = sp.expand(e)
        parts = sp.Add.make_args(sp.expand(TR8(e.coeff(y, 0) + e.coeff(y, 2) * R**2 / 4)))
        return sp.pi * R**2 * rho * L * sum(_along(part, s) for part in parts)

    whole = f.subs(y, 0).subs(s, 1), f.applyfunc(over_body), over_body(f.dot(f))
    return q, *whole, over_body(slope.dot(slope)), over_body(f[0] * slope[1] - f[1] * slope[0])


def _along(part: Any, s: Any) -> Any:
    """∫ from 0 to 1 of a constant times s^k, s^k cos ws or s^k sin ws, by derivatives of ∫cos ws and ∫sin ws in w."""
    import sympy as sp

    constant, rest = part.as_independent(s)
    wave = next(iter(rest.atoms(sp.cos, sp.sin)), sp.Integer(1))
    power = int(sp.degree(rest / wave, s))
    if wave == 1:
        return constant / (power + 1)
    w = sp.Dummy("w", positive=True)
    cosine, sine = sp.sin(w) / w, (1 - sp.cos(w)) / w
    # ∫ s^k exp(iws) = (−i)^k d^k/dw^k (cosine + i sine)
    powers = (sine, -cosine, -sine, cosine) if wave.func is sp.sin else (cosine, sine, -cosine, -sine)
    return constant * powers[power % 4].diff(w, power).subs(w, wave.args[0] / s)


def lagrange(count: int) -> Callable[..., Any]:
    """Inertial forces d/dt ∂T/∂q̇ − ∂T/∂q of so many bodies as a function of q, q̇, q̈ of mpmath."""
    import sympy as sp

    one, tip, first, second, sliding, turning = integrals()
    q, v, a = (sp.symbols(f"{name}:{count}") for name in "qva")
    mass = sp.pi * sp.Rational(str(RADIUS)) ** 2 * sp.Rational(str(LENGTH)) * sp.Rational(str(DENSITY))
    T, u, omega = sp.Integer(0), sp.zeros(2, 1), sp.Integer(0)
    for x, rate in zip(q, v):
        t, c, I, H, k = (part.subs(one, x) for part in (tip, first, second, sliding, turning))  # noqa: E741
        c_q = c.diff(x)
        spin = u[1] * c[0] - u[0] * c[1]  # u·(ω×c) for a unit ω
        T += (mass * u.dot(u) + omega**2 * I + rate**2 * H) / 2 + omega * spin + rate * (u.dot(c_q) + omega * k)
        end = u + omega * sp.Matrix([-t[1], t[0]]) + rate * t.diff(x)
        turn = sp.Matrix([[sp.cos(x), sp.sin(x)], [-sp.sin(x), sp.cos(x)]])
        u, omega = turn * end, omega + rate
    momenta = [T.diff(rate) for rate in v]
    forces = []
    for x, p in zip(q, momenta):
        change = sum(p.diff(y) * r for y, r in zip(q, v)) + sum(p.diff(r) * b for r, b in zip(v, a))
        forces.append(change - T.diff(x))
    return sp.lambdify((q, v, a), forces, "mpmath", cse=True)


def symbolic(function: Callable[..., Any], q: Any, v: Any, a: Any) -> np.ndarray:
    """The function of `lagrange` at a state, with enough digits, shape (n,)."""
    import mpmath

    with mpmath.workdps(DIGITS):
        rows = ([mpmath.mpf(float(x)) for x in row] for row in (q, v, a))
        return np.array([float(x) for x in function(*rows)])


def differences(count: int, function: Callable[..., Any], states: int = 100) -> np.ndarray:
    """Norms of the differences between the two at random states, divided by the norms of the forces."""
    model, rng = chain(count), np.random.default_rng(count)
    found = []
    for _ in range(states):
        q, v, a = (size * rng.uniform(-1.0, 1.0, count) for size in RANGES)
        expected = symbolic(function, q, v, a)
        found.append(np.linalg.norm(recursive(model, q, v, a) - expected) / np.linalg.norm(expected))
    return np.array(found)


def shortest(work: Callable[[], Any], repeats: int = 30) -> float:
    """Of so many runs [s]."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def recursive_times(counts: tuple[int, ...], rounds: int = 60) -> np.ndarray:
    """Of each number of bodies, to build the model, and to evaluate M q̈ and c [s], shape (rounds, counts, 3); in rounds
    over all of them, so that what else the machine does meets all alike. Every call has a new state near ones, because
    integrals over the bodies are kept for the last few states."""
    chain(1)  # JAX compiles the body
    found, rng = np.empty((rounds, len(counts), 3)), np.random.default_rng(0)
    models = [chain(count) for count in counts]
    for model in models:
        recursive(model, *np.ones((3, model.nv)))  # the first call prepares buffers
    for times in found:
        times[:, 0] = [shortest(lambda count=count: chain(count), 1) for count in counts]
    for times in found:
        for row, model in zip(times, models):
            one, none = np.ones(model.nv), np.zeros(model.nv)
            for k, (v, a) in enumerate(((none, one), (one, none)), start=1):
                q = rng.uniform(0.9, 1.1, model.nv)
                row[k] = shortest(lambda model=model, q=q, v=v, a=a: recursive(model, q, v, a), 1)
    return found


def kinematics_costs(count: int = 10, rounds: int = 30) -> dict[str, tuple[int, float]]:
    """Points of a body's quadrature, and the median time of inverse dynamics of so many bodies [s], by the kinematics
    of the bodies and the degrees of the quadrature: the factors γ and α, β of the paper's appendix A.5."""
    strain = ls.KinematicsStrain
    material = ls.HyperelasticSaintVenantKirchhoff(young=1e6, poisson=0.0)
    motions = {
        "constant curvature": strain.constant_curvature(LENGTH, planar=True),
        "affine curvature": strain.polynomial_curvature(LENGTH, 1, planar=True),
        "cubic curvature": strain.polynomial_curvature(LENGTH, 3, planar=True),
    }
    found, rng = {}, np.random.default_rng(0)
    for text, motion in motions.items():
        for degree in (10, 20):
            domain = ls.DomainCylinder(LENGTH, RADIUS, degree=4, degree_along=degree)
            part = ls.DeformableBody(motion, domain, material, DENSITY, tip="tip")
            robot = ls.Robot("chain")
            for k in range(count):
                robot.add_link(f"body {k}", part, parent=f"body {k - 1}" if k else None)
            model, times = robot.build(), []
            for _ in range(rounds):
                q, v, a = rng.uniform(0.9, 1.1, (3, model.nv))
                times.append(shortest(lambda model=model, q=q, v=v, a=a: recursive(model, q, v, a), 1))
            found[f"{text}, degree {degree} along"] = len(domain.points), float(np.median(times[1:]))
    return found


def symbolic_times(count: int) -> tuple[tuple[float, float, float], Callable[..., Any]]:
    """The least of the same times of Lagrange's equations, with common subexpressions, and their function."""
    integrals()
    start = time.perf_counter()
    function = lagrange(count)
    built = time.perf_counter() - start
    one, none = [1.0] * count, [0.0] * count
    return (built, *(shortest(lambda v=v, a=a: function(one, v, a)) for v, a in ((none, one), (one, none)))), function


def main(
    out: str | Path | None = None,
    counts: tuple[int, ...] = COUNTS,
    symbolic_counts: tuple[int, ...] = SYMBOLIC,
    states: int = 100,
) -> dict[str, float]:
    """Relative differences, how both costs grow, and times with their spread; a picture like figure 11 of the paper in
    `out`."""
    ours = recursive_times(counts)
    least = ours.min(axis=0)
    theirs, apart = [], []
    for count in symbolic_counts:
        times, function = symbolic_times(count)
        theirs.append(times)
        apart.append(differences(count, function, states))
    found = {f"difference, {n} bodies": float(x.max()) for n, x in zip(symbolic_counts, apart)}
    many = np.array(counts) >= 4  # fewer bodies cost as much as calling JAX at all
    slope = np.polyfit(np.log(np.array(counts)[many]), np.log(least[many, 1]), 1)[0] if many.sum() > 2 else np.nan
    found["ID grows with the number of bodies to the power"] = float(slope)
    for k, name in enumerate(("build", "M q̈", "c")):
        for word, value in zip(("first quartile", "median", "third quartile"), np.quantile(ours[:, -1, k], QUARTILES)):
            found[f"{name} of {counts[-1]} bodies, {word} [ms]"] = 1e3 * float(value)
    found["each body more makes the equations dearer to derive, times"] = float(
        (theirs[-1][0] / theirs[0][0]) ** (1 / max(len(theirs) - 1, 1))
    )
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        _plot(counts, ours, symbolic_counts, np.array(theirs), apart, Path(out) / "many_bodies.png")
    return found


def _plot(counts: Any, ours: np.ndarray, few: Any, theirs: np.ndarray, apart: Any, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    axes = figure.subplots(2, 2).ravel()
    words = "time to make the model, once JAX has compiled the body [s]", "time of M q̈ [s]", "time of c [s]"
    for k, title in enumerate(words):
        middle, spread = np.median(ours[..., k], axis=0), ours[..., k].std(axis=0)
        axes[k].errorbar(
            counts, middle, np.minimum(spread, 0.9 * middle), fmt="o-", capsize=3, label="recursive, this library"
        )
        axes[k].set(xscale="log", yscale="log")
        axes[k].loglog(few, theirs[:, k], "s--", label="Lagrange's equations by SymPy")
        if k:
            axes[k].loglog(counts, middle[-1] * np.array(counts) / counts[-1], "k:", linewidth=1, label="linear")
        axes[k].set_xticks(counts, [str(n) for n in counts])
        axes[k].minorticks_off()
        axes[k].set_title(title, loc="left", fontsize=10)
    axes[1].legend(frameon=False, fontsize=9)
    for n, x in zip(few, apart):
        axes[3].semilogy(np.full(len(x), n), x, ".", color="C0", alpha=0.3)
        axes[3].semilogy(n, x.max(), "_", color="C3", markersize=20)
    axes[3].axhline(1e-12, color="k", linestyle=":", linewidth=1)
    axes[3].set_title("relative difference at random states, the largest marked", loc="left", fontsize=10)
    axes[3].set_xticks(few)
    for ax in axes:
        ax.set_xlabel("bodies")
        ax.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    for key, number in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{key}: {number:.4g}")
    for key, (points, spent) in kinematics_costs().items():
        print(f"ID of 10 bodies of {key}, {points} points each: {1e6 * spent:.0f} µs")
