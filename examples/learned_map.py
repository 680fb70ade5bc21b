"""A finger whose motion is a small neural network, trained on shapes that the library's finite elements take.

A block of silicone, clamped at x = 0, is modelled by finite elements in vibration modes with modal derivatives, 25
coordinates q of unit mass, and pulled aside by strings at its tip. The shapes that it takes are learned as a map of two
coordinates θ [m], which are how far the tip goes to y and z where it goes a little:

    f(x, θ) = x + Φ(x) (L θ + N(θ) − N(0) − N'(0) θ)                                                       (1)

with Φ the elements' shapes as polynomials of x, zero at the clamp, L what small pulls do, and N a network of two hidden
layers. Whatever its weights are, f(x, 0) = x, the clamp holds, and the stiffness about the straight shape is that of L.
The network has the large deflections alone. It is trained on Green strains by their energy, not on displacements:
where shapes are off by e in the norm of energy, forces are off by e², while displacements that fit to a hundredth may
have strains that are all wrong, and be far too stiff. Scipy's L-BFGS minimises

    mean over shapes of  ∫W(E(θ) − E) / (U + U₀)  +  0.1 |amounts of Φ that are off|² / mean |L θ|²        (2)

f is then a motion like any other: statics, dynamics and derivatives of the finger follow from it, and its energy is
kept where nothing damps it. Pulls that were not trained on show how near it comes. It swings faster than the elements
by 1.3 %, since the shape under a force at the tip is not quite that of the vibration, as Rayleigh has it. It costs
more time: 25 coordinates of elements run in kernels, while JAX evaluates this f. Its benefit is a model of two
coordinates.

    python examples/learned_map.py out/learned_map
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import lissom as ls

SIZE, DENSITY = np.array([0.12, 0.016, 0.016]), 1070.0  # [m], [kg/m³]
YOUNG, POISSON, DAMPING = 0.3e6, 0.4, 0.005  # [Pa], of 1, [s]
MODES, BENT = 10, 5
PULL = 0.16  # the largest [N], which moves the tip by two fifths of the finger's length
BEYOND = 1.15  # factor of the largest pull in training: networks guess badly outside of their training data
TRAINED, TESTED, STEPS = 150, 12, 500
HIDDEN, POINTS, ALONG, ACROSS = 16, 300, 8, 3  # neurons of a layer, points of strains, degrees of polynomials
FEW, OFF = 0.02, 0.1  # U₀ of (2) in means of U, and the weight of amounts
RELEASED, SPAN = 0.1, 0.6  # the pull before the release [N], the duration after it [s]
TIP = np.array([[SIZE[0], 0.0, 0.0]])
LITTLE = 1e-4 * PULL * np.eye(4)[[0, 2]]  # pulls to either side, where all is linear
SIDES = {"y+": (1, 0), "y-": (-1, 0), "z+": (0, 1), "z-": (0, -1)}


class Finger(NamedTuple):
    """A robot of one body, and that body."""

    model: ls.Model
    body: ls.DeformableBody


class Learned(NamedTuple):
    """A trained map: L, the polynomials of Φ, the weights of its network and their scales."""

    linear: np.ndarray  # (n, 2)
    shapes: np.ndarray  # coefficients (terms, 3, n)
    weights: list[np.ndarray]
    reach: float  # largest θ that it was trained on [m]
    spread: np.ndarray  # of the amount that it adds of each shape
    untrained: float  # the loss of L alone
    loss: float


def law(damping_time: float = DAMPING) -> ls.HyperelasticSaintVenantKirchhoff:
    """The material."""
    return ls.HyperelasticSaintVenantKirchhoff(YOUNG, POISSON, damping_time)


def elements() -> tuple[ls.KinematicsReduced, ls.DomainTetrahedra]:
    """The finite elements in few shapes, and their mesh."""
    mesh = ls.DomainTetrahedra(*ls.box_mesh(tuple(SIZE), (10, 2, 2)), degree=4)
    whole = ls.KinematicsFiniteElements(mesh, 2, "base")
    return whole.reduced(law(), DENSITY, modes=MODES, derivatives=BENT), mesh


def finger(motion: Any, domain: Any, n: int | None = None, damping_time: float = DAMPING) -> Finger:
    """A finger without weight, with a string from the middle of its tip to each side, far away."""
    robot = ls.Robot("finger", gravity=(0.0, 0.0, 0.0))
    body = ls.DeformableBody(motion, domain, law(damping_time), DENSITY, n=n)
    robot.add_link("finger", body)
    for name, (y, z) in SIDES.items():
        far = ls.PathPoint(None, (SIZE[0], 2.0 * y, 2.0 * z))
        robot.add_tendon(name, path=[far, ls.PathPoint("finger", s=tuple(TIP[0]))])
    return Finger(robot.build(), body)


def pulls(count: int, seed: int) -> np.ndarray:
    """Tensions (count, 4) [N] of random pulls to any side, spread evenly over the circle of the largest."""
    rng = np.random.default_rng(seed)
    turn, size = rng.uniform(0.0, 2.0 * np.pi, count), PULL * np.sqrt(rng.uniform(0.0, 1.0, count))
    return tensions(size * np.cos(turn), size * np.sin(turn))


def tensions(y: Any, z: Any) -> np.ndarray:
    """Of the strings that pull by forces to y and z [N]."""
    return np.maximum(np.stack([y, -np.asarray(y), z, -np.asarray(z)], axis=-1), 0.0)


def tips(one: Finger, q: np.ndarray) -> np.ndarray:
    """Where the tip goes, shape (k, 3) [m]."""
    return np.array([one.body.moved(TIP, row)[0] for row in np.atleast_2d(q)]) - TIP


def polynomials(x: Any, xp: Any) -> Any:
    """Terms of polynomials at points (..., 3), zero at the clamp, of NumPy or jax.numpy."""
    s, y, z = x[..., 0] / SIZE[0], 2.0 * x[..., 1] / SIZE[1], 2.0 * x[..., 2] / SIZE[2]
    T, ys, zs = [xp.ones_like(s), 2.0 * s - 1.0], [xp.ones_like(y)], [xp.ones_like(z)]
    while len(T) < ALONG:
        T.append(2.0 * T[1] * T[-1] - T[-2])  # Chebyshev's
    for _ in range(ACROSS):
        ys, zs = [*ys, ys[-1] * y], [*zs, zs[-1] * z]
    across = xp.stack([ys[b] * zs[c] for b in range(ACROSS + 1) for c in range(ACROSS + 1 - b)], -1)
    along = s[..., None] * xp.stack(T, -1)
    return (along[..., :, None] * across[..., None, :]).reshape(*s.shape, -1)


def fitted(motion: ls.KinematicsReduced, mesh: ls.DomainTetrahedra) -> tuple[np.ndarray, ...]:
    """The coefficients of Φ by least squares of its slopes; at some points of the mesh slopes of Φ and of the elements'
    shapes, (points, 3, 3, n), and weights."""
    import jax
    import jax.numpy as jnp

    some = np.random.default_rng(0).permutation(len(mesh.points))
    x, w = mesh.points[some[: 5 * POINTS]], np.sqrt(mesh.weights[some[: 5 * POINTS]])
    with double():
        terms = np.asarray(jax.jit(jax.vmap(jax.jacfwd(lambda p: polynomials(p, jnp))))(x))  # (points, terms, 3)
    exact = motion.shape_gradients(x)
    left = (w[:, None, None] * terms).transpose(0, 2, 1).reshape(3 * len(x), -1)
    right = (w[:, None, None, None] * exact).transpose(0, 2, 1, 3).reshape(3 * len(x), -1)
    coefficients = np.linalg.lstsq(left, right, rcond=1e-10)[0].reshape(-1, 3, motion.n)
    slopes = np.einsum("ktp,taj->kapj", terms[:POINTS], coefficients)
    return coefficients, slopes, exact[:POINTS], w[:POINTS] ** 2


def double() -> Any:
    """JAX in double precision, within `with`."""
    import jax

    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64

    return enable_x64(True)


def amounts(theta: Any, learned: Learned) -> Any:
    """What (1) takes of Φ."""
    import jax
    import jax.numpy as jnp

    first, first_bias, second, second_bias, last = learned.weights

    def network(t: Any) -> Any:
        return learned.spread * (last @ jnp.tanh(second @ jnp.tanh(first @ t + first_bias) + second_bias))

    t = theta / learned.reach
    start, slope = jax.jvp(network, (0.0 * t,), (t,))
    return learned.linear @ theta + network(t) - start - slope


def random_weights(n: int, seed: int = 0) -> list[np.ndarray]:
    """Of a network of two inputs and n outputs."""
    rng = np.random.default_rng(seed)
    shapes = ((HIDDEN, 2, 1.0), (HIDDEN, 0, 0.5), (HIDDEN, HIDDEN, HIDDEN**-0.5), (HIDDEN, 0, 0.5), (n, HIDDEN, 0.1))
    return [scale * rng.normal(size=(rows, columns) if columns else rows) for rows, columns, scale in shapes]


def energy_of(E: Any, w: np.ndarray, xp: Any) -> Any:
    """∫W of strains (..., points, 3, 3) at points of weights w [J]."""
    first, shear = YOUNG * POISSON / ((1.0 + POISSON) * (1.0 - 2.0 * POISSON)), YOUNG / (2.0 * (1.0 + POISSON))
    trace = xp.trace(E, axis1=-2, axis2=-1)
    return (0.5 * first * trace**2 + shear * (E * E).sum((-1, -2))) @ w


def strains(slopes: np.ndarray, q: Any, xp: Any) -> Any:
    """Green's strains (k, points, 3, 3) of amounts q (k, n) of shapes with slopes (points, 3, 3, n)."""
    F = xp.eye(3) + (q @ slopes.reshape(-1, slopes.shape[-1]).T).reshape(-1, len(slopes), 3, 3)
    return 0.5 * (xp.swapaxes(F, -1, -2) @ F - xp.eye(3))


def lessons(exact: Finger) -> tuple[np.ndarray, np.ndarray]:
    """What two small pulls do, (n, 2), and shapes under the pulls of training, (k, n)."""
    small = ls.solve_statics(exact.model, LITTLE).q.T
    return small, ls.solve_statics(exact.model, BEYOND * pulls(TRAINED, 1)).q


def learn(motion: ls.KinematicsReduced, mesh: ls.DomainTetrahedra, small: np.ndarray, q: np.ndarray,
          steps: int = STEPS) -> Learned:  # fmt: skip
    """The map learned from shapes q (k, n) of the elements, and from what two small pulls do (n, 2)."""
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree
    from scipy.optimize import minimize

    coefficients, slopes, exact, w = fitted(motion, mesh)
    linear = small @ np.linalg.inv((motion.shapes(TIP)[0] @ small)[1:])
    theta = q @ np.linalg.pinv(linear).T  # nearest by mass, q being of unit mass
    spread = (q - theta @ linear.T).std(axis=0)
    guess = Learned(linear, coefficients, random_weights(motion.n), float(np.abs(theta).max()), spread, np.inf, np.inf)
    wanted = strains(exact, q, np)
    U = energy_of(wanted, w, np)
    share, moved = 1.0 / (U + FEW * U.mean()), ((theta @ linear.T) ** 2).sum(axis=1).mean()

    def loss(weights: list[Any]) -> Any:
        found = jax.vmap(lambda t: amounts(t, guess._replace(weights=weights)))(theta)
        off = ((found - q) ** 2).sum(axis=1).mean() / moved
        return (share * energy_of(strains(slopes, found, jnp) - wanted, w, jnp)).mean() + OFF * off

    with double():
        start, unravel = ravel_pytree([jnp.asarray(part) for part in guess.weights])
        slope = jax.jit(jax.value_and_grad(lambda flat: loss(unravel(flat))))
        untrained = float(slope(0.0 * start)[0])
        found = minimize(lambda flat: [np.asarray(part) for part in slope(flat)], np.asarray(start), jac=True,
                         method="L-BFGS-B", options={"maxiter": steps, "maxfun": 2 * steps, "maxcor": 30})  # fmt: skip
        weights = [np.asarray(part) for part in unravel(jnp.asarray(found.x))]
    return guess._replace(weights=weights, untrained=untrained, loss=float(found.fun))


def learned_motion(learned: Learned) -> Callable[[Any, Any], Any]:
    """f of (1)."""
    import jax.numpy as jnp

    return lambda x, theta: x + polynomials(x, jnp) @ (learned.shapes @ amounts(theta, learned))


def learned_finger(learned: Learned, damping_time: float = DAMPING) -> Finger:
    """The finger that moves so."""
    domain = ls.DomainBox(*SIZE.tolist(), degree=6, degree_along=16)
    return finger(learned_motion(learned), domain, 2, damping_time)


def release(model: ls.Model, **options: Any) -> ls.Trajectory:
    """The motion after a pull that is let go."""
    start = ls.solve_statics(model, tensions(0.3 * RELEASED, RELEASED)).q
    return ls.simulate(model, SPAN, start, t_eval=np.linspace(0.0, SPAN, 126), **options)


def main(out: str | Path | None = None) -> dict[str, float]:
    """How far the learned finger is from the finite elements under pulls it has not seen; pictures in `out`."""
    motion, mesh = elements()
    exact = finger(motion, mesh)
    small, q = lessons(exact)
    began = time.perf_counter()
    learned = learn(motion, mesh, small, q)
    spent = time.perf_counter() - began
    mine = learned_finger(learned)
    far = np.concatenate(
        [LITTLE, pulls(TESTED, 2), tensions(PULL * np.array([0.0, 0.7]), PULL * np.array([1.0, -0.7]))]
    )
    wanted, reached = (tips(one, ls.solve_statics(one.model, far).q) for one in (exact, mine))
    way, off = (np.linalg.norm(part, axis=1) for part in (wanted, reached - wanted))
    softer = np.linalg.norm(reached, axis=1) / way - 1.0
    frequencies = [ls.modes(one.model, np.zeros(one.model.nq)).frequencies[0] for one in (exact, mine)]
    let_go = [release(one.model, rtol=1e-4, atol=1e-6) for one in (exact, mine)]
    paths = [tips(one, run.q) for one, run in zip((exact, mine), let_go)]
    ringing = learned_finger(learned, damping_time=0.0)
    free = release(ringing.model, rtol=1e-7, atol=1e-9)
    total = ls.energy(ringing.model, free.q, free.v).total
    numbers = {
        "training [s]": spent,
        "loss without the network": learned.untrained,
        "loss": learned.loss,
        "softer about the straight shape [%]": 100.0 * float(softer[:2].max()),
        "farthest way of the tip [mm]": 1e3 * float(way.max()),
        "tip off the finite elements, mean [%]": 100.0 * float((off / way)[2:].mean()),
        "tip off the finite elements, worst [%]": 100.0 * float((off / way)[2:].max()),
        "lowest frequency off [%]": 100.0 * float(frequencies[1] / frequencies[0] - 1.0),
        "tip off after the release, worst [% of the way]": 100.0 * float(
            np.linalg.norm(paths[0] - paths[1], axis=1).max() / np.linalg.norm(paths[0], axis=1).max()
        ),
        "energy lost or gained without damping": float(np.abs(total / total[0] - 1.0).max()),
    }  # fmt: skip
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
        shown = tensions(np.zeros(4), PULL * np.array([-1.0, -0.5, 0.5, 1.0]))
        bent = [ls.solve_statics(one.model, shown).q for one in (exact, mine)]
        runs = [(one, run, path) for one, run, path in zip((exact, mine), let_go, paths)]
        _plot(runs, bent, (wanted[2:], reached[2:]), Path(out) / "learned_map.png")
    return numbers


def side(one: Finger, q: np.ndarray) -> np.ndarray:
    """x and z [mm] of the outline in the plane y = 0 and of some sections, as one line."""
    x, half = np.linspace(0.0, SIZE[0], 41), 0.5 * SIZE[2]
    rows = [np.stack([x, 0.0 * x, sign * half + 0.0 * x], axis=-1) for sign in (1.0, -1.0)]
    across = np.linspace(-half, half, 9)
    rows += [np.stack([at + 0.0 * across, 0.0 * across, across], axis=-1) for at in x[::5]]
    gap = np.full((1, 3), np.nan)
    return 1e3 * np.concatenate([part for row in rows for part in (one.body.moved(row, q), gap)])[:, [0, 2]]


def _plot(runs: list[tuple[Finger, ls.Trajectory, np.ndarray]], bent: Any, ends: Any, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.2), layout="constrained")
    shape, places, moving = figure.subplots(1, 3, width_ratios=(1.25, 1, 1.25))
    looks = (("0.4", "finite elements", "o"), ("C1", "learned", "x"))
    for (one, _, _), shapes, (color, name, _), width in zip(runs, bent, looks, (2.2, 0.9)):
        for k, q in enumerate(shapes):
            shape.plot(*side(one, q).T, color=color, linewidth=width, label=name if k == 0 else None)
    shape.set(xlabel="x [mm]", ylabel="z [mm]", aspect="equal")
    shape.set_title(f"pulled by {0.5 * PULL:g} and {PULL:g} N", loc="left", fontsize=10)
    for part, (color, name, mark) in zip(ends, looks):
        places.plot(1e3 * part[:, 1], 1e3 * part[:, 2], mark, color=color, fillstyle="none", label=name)
    places.set(xlabel="y [mm]", ylabel="z [mm]", aspect="equal")
    places.set_title("tips under pulls not trained on", loc="left", fontsize=10)
    for (_, run, way), (color, name, _) in zip(runs, looks):
        moving.plot(1e3 * run.t, 1e3 * way[:, 2], color=color, label=name)
    moving.set(xlabel="t [ms]", ylabel="z of the tip [mm]", xlim=(0.0, 1e3 * SPAN))
    moving.set_title("after the release", loc="left", fontsize=10)
    for axes in (shape, places, moving):
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    for key, number in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(f"{key}: {number:.4g}")
