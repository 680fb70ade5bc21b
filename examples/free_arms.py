"""Four soft arms let go under gravity, each of two bodies with strains of its own kind (Pustina 2025, simulations 5-8).

PGC: Gaussian curvature, a slender cone that stands upright, and falls. PCC, PAC, PCS: constant and affine curvature and
constant strains of one cylinder that sticks out sideways, and comes to hang. Every body is a `DeformableBody` whose
kinematics is one of the library's. As sections stay rigid here, native rods have the same equilibria. Their motions
differ, since their damping is another law: that of bodies is viscous in Green's strain, that of rods in the strains of
the rod themselves. The largest distance of the tips on the way is printed as such.

The paper prints C and η of a rubber that keeps its volume, W = C (I_1 − 3). Its shear modulus is 2 C. A slender rod of
it that is pulled or bent is free to change its sections, so that Young's modulus is 6 C. Strains of rods mean these
moduli, whatever the sections of a picture do, and so do E I, G J and η K of the library with which the paper was made.
So is the material here, of native rods and, as the energy of a fibre, of deformable bodies. `READINGS` has other ways
to read C and η. `compare` gives what comes out with each of them; `docs/soft_robots.md` shows it.

The paper prints C in GPa. With these the upright arm would be straight again in a tenth of a second, and the others
sag by millimetres. It says instead that the upright one moves for five seconds, and comes to where gravity takes it:
MPa are meant, as they are printed for its simulations 1, 2 and 4. The tests of that library have E = 0.666 MPa, which
is 6 C of PGC in MPa. With them the upright arm has stopped turning about the vertical after five seconds, while its tip
still swings by centimetres. PAC is printed without the elongation of its start, that of PCC; it is added.

The bell of PGC, exp(−(s − L/2)²) with s in metres, is 1 within a hundredth: its coordinates are large and opposed.

    python examples/free_arms.py out/free_arms
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lissom as ls

DENSITY = 1070.0  # [kg/m³]
DURATION, ROWS = 10.0, 1001  # of a motion [s]; how many of its rows are kept
SETTLED = 0.01  # distance of the tip from where it rests, within which a motion has settled [m]
SIDEWAYS = ((0, 1, 0, 0), (1, 0, 0, 0), (0, 0, -1, 0), (0, 0, 0, 1))  # x along the world's y
UPRIGHT = ((0, 1, 0, 0), (0, 0, 1, 0), (1, 0, 0, 0), (0, 0, 0, 1))  # x up
BODIES = "first", "second"


@dataclass(frozen=True)
class Arm:
    """Two bodies of one kinematics, and where they start; coordinates times the length are in rad and m, as printed."""

    motion: ls.KinematicsStrain
    radii: tuple[tuple[float, float], tuple[float, float]]  # at base and tip of each [m]
    C: float  # [Pa]
    eta: float  # [s]
    placement: Any
    start: tuple[tuple[float, ...], tuple[float, ...]]  # times the length [rad, m]

    @property
    def q0(self) -> np.ndarray:
        """The start in strain units."""
        return np.concatenate(self.start) / self.motion.length


_STRAIN, _CYLINDER = ls.KinematicsStrain, ((0.01, 0.01), (0.01, 0.01))
_SILICONE = 0.555e6, 0.333
ARMS = {
    # constant and bell about y, the same about z, elongation; the paper's x, y, z are our y, z, x, and its κ_x is −Φ q
    "PGC": Arm(_STRAIN.gaussian_curvature(0.2), ((0.01, 0.005), (0.005, 0.002)), 0.111e6, 0.01, UPRIGHT,
               ((0, -1, 0.3, 1, 0.1), (-0.1, -2, -1, 0, 0))),
    # about y, about z, elongation
    "PCC": Arm(_STRAIN.constant_curvature(0.3, elongation=True), _CYLINDER, *_SILICONE, SIDEWAYS,
               ((1.5, 1, 0), (1, -1, 0.1))),
    # constant and linear about y, the same about z, elongation
    "PAC": Arm(_STRAIN.polynomial_curvature(0.3, 1, elongation=True), _CYLINDER, *_SILICONE, SIDEWAYS,
               ((1.5, 0, 1, 0, 0), (1, 0, -1, 0, 0.1))),
    # torsion, about y, about z, elongation, shear along y and z
    "PCS": Arm(_STRAIN.constant_strain(0.3), _CYLINDER, *_SILICONE, SIDEWAYS,
               ((0.2, 1.5, 1, 0, 0.02, 0), (-0.1, 1, -1, 0.1, 0, -0.01))),
}  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """What C and η mean for a slender body: its shear modulus over C, Poisson's ratio, and its damping time over η."""

    shear: float
    poisson: float
    damping: float

    def young(self, C: float) -> float:
        """E = 2 (1 + ν) G [Pa]."""
        return 2.0 * (1.0 + self.poisson) * self.shear * C


SLENDER = Reading(2.0, 0.5, 1.0)
READINGS = {
    "E = 6 C, η": SLENDER,
    "E = 3 C, η": Reading(1.0, 0.5, 1.0),  # C as the shear modulus itself
    "E = 2 C, η/2": Reading(2.0, -0.5, 0.5),  # W = C (I_1 − 3) and η C div Ḃ on sections that do not change
    "E = C, η": Reading(0.5, 0.0, 1.0),  # the force that the paper prints for its toy example, π/4 (q − q̇)
}


def silicone(C: float, eta: float, reading: Reading = SLENDER) -> ls.HyperelasticFunction:
    """The energy of a fibre, E/2 times the square of its stretch and G/2 times those of its shears; C [Pa], η [s]."""
    young, shear = reading.young(C), reading.shear * C

    def energy_density(F: Any) -> Any:
        import jax.numpy as jnp

        fibre, y, z = F[:, 0], F[:, 1], F[:, 2]
        across = jnp.cross(y, z)
        stretch = across @ fibre / jnp.sqrt(across @ across) - 1.0
        return 0.5 * young * stretch**2 + 0.5 * shear * ((y @ fibre) ** 2 + (z @ fibre) ** 2)

    return ls.HyperelasticFunction(energy_density, damping_time=reading.damping * eta)


def slender(
    motion: ls.KinematicsStrain,
    radii: tuple[float, float],
    C: float,
    eta: float,
    *,
    native: bool = False,
    reading: Reading = SLENDER,
) -> ls.DeformableBody | ls.Rod:
    """A body of silicone as what its kinematics is an input of, with radii at base and tip [m]; or the same rod."""
    length, (base, tip) = motion.length, radii
    if native:
        young, damping_time = reading.young(C), reading.damping * eta
        material = ls.Material(young=young, poisson=reading.poisson, density=DENSITY, damping_time=damping_time)
        return ls.Rod(length, ls.SectionCircle(radii), motion.basis, material, gauss_points=12)
    domain = ls.DomainCylinder(length, base) if base == tip else ls.DomainCone(length, base, tip)
    return ls.DeformableBody(motion, domain, silicone(C, eta, reading), DENSITY, tip="tip")


def build(name: str, *, native: bool = False, reading: Reading = SLENDER) -> ls.Model:
    """The arm of this name, of deformable bodies or of rods."""
    arm, robot = ARMS[name], ls.Robot(f"{name} arm")
    first = slender(arm.motion, arm.radii[0], arm.C, arm.eta, native=native, reading=reading)
    alike = arm.radii[0] == arm.radii[1]  # then JAX compiles one body for both
    second = first if alike else slender(arm.motion, arm.radii[1], arm.C, arm.eta, native=native, reading=reading)
    robot.add_link(BODIES[0], first, placement=arm.placement)
    robot.add_link(BODIES[1], second, parent=BODIES[0])
    return robot.build()


def let_go(name: str, model: ls.Model, duration: float = DURATION) -> ls.Trajectory:
    """The motion from rest in the printed start."""
    times = np.linspace(0.0, duration, ROWS)
    return ls.simulate(model, duration, ARMS[name].q0, t_eval=times, rtol=1e-4, atol=1e-6)


def tips(model: ls.Model, motion: ls.Trajectory) -> np.ndarray:
    """Where the end of the arm is, shape (n, 3) [m]."""
    return ls.frame_pose(model, motion.q, BODIES[1])[:, :3, 3]


def curvatures(name: str, q: np.ndarray) -> np.ndarray:
    """Bending about y at base and tip of both bodies times their length, shape (2, 2) [rad]."""
    motion = ARMS[name].motion
    bending = np.array([motion.basis.evaluate(s)[1] for s in (0.0, 1.0)])
    return motion.length * q.reshape(2, motion.n) @ bending.T


def study(name: str, motion: ls.Trajectory, model: ls.Model) -> dict[str, float]:
    """Where the motion ends, beside the equilibrium that statics finds from there."""
    length, end = ARMS[name].motion.length, motion.q[-1]
    rest = ls.solve_statics(model, q0=end)
    tip = ls.frame_pose(model, rest.q, BODIES[1])[:3, 3]
    away = np.linalg.norm(tips(model, motion) - tip, axis=1)
    return {
        "settled to 10 mm after [s]": settling_time(motion.t, away),
        "farthest from rest after 5 s [m]": float(away[motion.t >= 5.0].max(initial=0.0)),
        "end from equilibrium [m]": float(away[-1]),
        "height of the tip at rest [m]": float(tip[2]),
        "stable": float(rest.is_stable),
        "largest force left at the end": _force_left(model, end, rest.q),
        **{
            f"curvature of the {side} at its {place} [rad]": float(value)
            for side, row in zip(BODIES, curvatures(name, rest.q))
            for place, value in zip(("base", "tip"), row)
        },
        "elongation of the first [m]": float(length * rest.q[_elongation(name)]),
    }


def settling_time(t: np.ndarray, away: np.ndarray) -> float:
    """Since when the tip has stayed within 10 mm of where it rests [s]; infinite if it does not at the end."""
    outside = np.flatnonzero(away > SETTLED)
    return 0.0 if not len(outside) else float(t[outside[-1] + 1]) if outside[-1] + 1 < len(t) else np.inf


def compare(names: tuple[str, ...] = tuple(ARMS), duration: float = 20.0) -> dict[str, dict[str, dict[str, float]]]:
    """The numbers of each arm, made of rods, by each way to read C and η."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for text, reading in READINGS.items():
        models = {name: build(name, native=True, reading=reading) for name in names}
        found[text] = {name: study(name, let_go(name, model, duration), model) for name, model in models.items()}
    return found


def _elongation(name: str) -> int:
    """Which coordinate of a body elongates it."""
    return int(np.flatnonzero(ARMS[name].motion.basis.evaluate(0.5)[3])[0])


def _force_left(model: ls.Model, q: np.ndarray, rest: np.ndarray) -> float:
    """What does not balance at q, over what gravity and elasticity are at rest."""
    zero = np.zeros(model.nv)
    weight = ls.inverse_dynamics(model, rest, zero, zero, elastic=False)
    return float(np.abs(ls.inverse_dynamics(model, q, zero, zero)).max() / np.abs(weight).max())


def main(
    out: str | Path | None = None, names: tuple[str, ...] = tuple(ARMS), duration: float = DURATION
) -> dict[str, dict[str, float]]:
    """The numbers of each arm; pictures in `out`."""
    found = {}
    for name in names:
        model, twin = build(name), build(name, native=True)
        motion, same = let_go(name, model, duration), let_go(name, twin, duration)
        found[name] = study(name, motion, model)
        rests = [ls.solve_statics(one, q0=motion.q[-1]).q for one in (model, twin)]
        places = [ls.frame_pose(model, q, BODIES[1])[:3, 3] for q in rests]
        found[name]["equilibrium from that of rods [m]"] = float(np.linalg.norm(places[0] - places[1]))
        found[name]["motion from that of rods, whose damping is another law [m]"] = float(
            np.linalg.norm(tips(model, motion) - tips(twin, same), axis=1).max()
        )
        if out is not None:
            Path(out).mkdir(parents=True, exist_ok=True)
            _plot(name, model, motion, rests[0], Path(out) / f"{name}.png")
            ls.plot_trajectory(model, motion, coordinates="all", path=Path(out) / f"{name} coordinates.png")
    return found


def _plot(name: str, model: ls.Model, motion: ls.Trajectory, rest: np.ndarray, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.1, 1))
    space = left.add_subplot()
    shown = [int(np.argmax(motion.t >= t)) for t in np.geomspace(0.1, motion.t[-1] + 0.1, 7) - 0.1]
    begun = motion.t <= min(1.5, motion.t[-1])
    left.suptitle(f"{name}, from pale to solid, and the path of the tip in {motion.t[begun][-1]:.2g} s", fontsize=11)
    ls.plot_shapes(model, motion.q[[*shown[:-1], -1]], trail=tips(model, motion)[begun], axes=space, view=(15, -50),
                   title="")  # fmt: skip
    bending, stretch = right.subplots(2, 1, sharex=True)
    arm = ARMS[name]
    ends = np.array([curvatures(name, q) for q in motion.q])
    goal = curvatures(name, rest)
    bending.set_ylim(*np.quantile(ends[..., 1], (0.005, 0.995)) + np.array([-0.5, 0.5]))
    for k, (side, color) in enumerate(zip(BODIES, ("C0", "C1"))):
        bending.plot(motion.t, ends[:, k, 1], color=color, label=f"{side} body")
        bending.axhline(goal[k, 1], color=color, linestyle=":", linewidth=1)
        elongation = arm.motion.length * motion.q[:, k * arm.motion.n + _elongation(name)]
        stretch.plot(motion.t, 1e3 * elongation, color=color)
    bending.set_title("curvature about y at the tip of each body, times its length [rad]", loc="left", fontsize=10)
    bending.legend(frameon=False, fontsize=9)
    stretch.set_title("elongation [mm]", loc="left", fontsize=10)
    stretch.set(xlabel="t [s]", xlim=(0, motion.t[-1]))
    for axes in (bending, stretch):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    for title, numbers in main(out=sys.argv[1] if sys.argv[1:] else None).items():
        print(title)
        for key, number in numbers.items():
            print(f"  {key}: {number:.4g}")
    for text, arms in compare().items():
        for title, numbers in arms.items():
            print(f"{text}, {title}: " + "; ".join(f"{key}: {number:.4g}" for key, number in numbers.items()))
