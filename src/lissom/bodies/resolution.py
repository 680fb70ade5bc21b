"""How finely a body is integrated: the points of its quadrature and the steps of its motion, chosen by what they do.

With P the mass matrix ∫ρ JᵀJ, D = ∫ E_jᵀℂE_k, g the elastic force and c = ∫ρJ of a coarse rule and P′ … of a finer one,
the coarse one is off by the largest, over some θ, of

    ‖P′^-½ (P − P′) P′^-½‖,   ‖D′^-½ (D − D′) D′^-½‖,   |g − g′|_D′ / |g′|_D′,   |c − c′|_P′ / √m            (1)

with |g|²_D = gᵀD⁻¹g. So each natural frequency is right to (1), and each equilibrium in the norm of its energy,
however different the coordinates are. The rule is a product of three in one dimension, which are raised one after the
other until (1) falls below a millionth. The θ are zero and some random ones that move the body by its own size and
strain it by a third, less where that would fold it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from lissom.bodies import cubature
from lissom.bodies.cubature import Line
from lissom.bodies.domains import Domain, Quadrature, SweptDomain
from lissom.bodies.evaluation import in_chunks, shared_by_equals
from lissom.bodies.kinematics import Kinematics
from lissom.bodies.materials import Hyperelastic
from lissom.errors import AccuracyWarning
from lissom.robot.poses import compiled

TOLERANCE = 1e-6
_ALONG = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29, 35, 42, 50, 60)  # Gauss points
_ACROSS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 18)
_AROUND = (4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 50, 64)  # even, so that neither side of a section is preferred
_ON_ARCS = (6, 8, 10, 12, 16, 20, 26, 32, 40, 50, 64, 80, 100)  # Gauss points on each arc between breaks
_STEPS = (1, 2, 3, 4, 6, 8, 11, 16, 22, 32, 45, 64, 90, 128)
_FINER = 2  # places in these ladders by which a rule is finer than the one that it judges
_MOST_POINTS = 16_000
_MOST_NUMBERS = 4_000_000  # of points times coordinates squared
_FLOOR = 1e-8  # least eigenvalues that matter, of matrices with a diagonal of ones
_MOVED, _STRAINED = 1.0, 0.3  # of the θ that are looked at, in sizes of the body
_LEAST = 0.5  # and their least det ∂f/∂x


class Chosen(NamedTuple):
    """What a body is integrated with."""

    kinematics: Kinematics
    quadrature: Quadrature
    counts: tuple[int, ...] | None  # points of the three rules; None where the points were given
    steps: int | None  # of the motion, None where they were given or it has none
    left: float  # (1) that is left; 0 where nothing was chosen

    @property
    def words(self) -> str:
        """What was chosen, for people; empty where nothing was."""
        parts = [] if self.counts is None else [f"{' x '.join(map(str, self.counts))} points"]
        parts += [] if self.steps is None else [f"{self.steps} steps"]
        return f"{', '.join(parts)} chosen, off by {self.left:.1e}" if parts else ""


class _Measured(NamedTuple):
    """Of a rule at some θ: P (k, n, n), D (k, n, n), g (k, n) and c (k, 3, n)."""

    P: np.ndarray
    D: np.ndarray
    g: np.ndarray
    c: np.ndarray


@final
@dataclass(frozen=True, eq=False)
class Resolution:
    """The choice for one body, made when it is first asked for.

    Args:
        kinematics, domain, material, density: of the body, as given.
    """

    kinematics: Kinematics
    domain: Domain
    material: Hyperelastic
    density: float | Callable[[np.ndarray], float]

    @cached_property
    def _kept(self) -> list[Any]:
        """What was compiled lives as long as somebody holds it."""
        return []

    @cached_property
    def chosen(self) -> Chosen:
        """Points and steps, those that were given as they are."""
        motion, domain = self.kinematics, self.domain
        quadrature, counts, left = Quadrature(domain.points, domain.weights), None, 0.0
        if isinstance(domain, SweptDomain) and domain.is_chosen_by_body and not motion.is_of_cells:
            rules, left = self._rules(domain)
            quadrature, counts = domain.product(*rules), tuple(len(rule.at) for rule in rules)
        steps = None
        if motion.chooses_steps:
            steps, off = self._steps()
            motion, left = motion.stepped(steps), max(left, off)
        return Chosen(motion, quadrature, counts, steps, left)

    def warn(self, where: str) -> None:
        """An AccuracyWarning where the choice came to its ceiling."""
        if self.chosen.left > TOLERANCE:
            text = f"its integrals are off by {self.chosen.left:.1e}, with no more points and steps to take"
            warnings.warn(f"{where}: {text} ({self.chosen.words})", AccuracyWarning, stacklevel=6)

    def _rules(self, domain: SweptDomain) -> tuple[tuple[Line, Line, Line], float]:
        """The three rules, and (1) for the worst of them."""
        motion = self.kinematics
        turning = motion.breaks_around if domain.goes_round else ()
        ladders = [_ALONG, _ACROSS, (_ON_ARCS if turning else _AROUND) if domain.goes_round else _ACROSS]
        makers = [
            lambda count: cubature.line(count, motion.breaks),
            cubature.radii if turning else cubature.line,
            (lambda count: cubature.circle(count, turning)) if domain.goes_round else cubature.line,
        ]
        places, errors = [0, 0, 0], [np.zeros(0)] * 3
        rules = [makers[0](5), makers[1](2), makers[2](6 if domain.goes_round else 2)]
        for k in (0, 2, 1):
            if k == 0 and domain.degree_along is not None:
                rules[0] = cubature.line_of_degree(domain.degree_along)
                ladders[0], makers[0], errors[0] = (0,), lambda _, given=rules[0]: given, np.zeros(1)
                continue

            def measured(count: int, k: int = k) -> _Measured:
                rule = (*rules[:k], makers[k](count), *rules[k + 1 :])
                return self._measured(self.kinematics, domain.product(rule[0], rule[1], rule[2]))

            places[k], errors[k] = _climbed(ladders[k], measured, _apart)
            rules[k] = makers[k](min(ladders[k][places[k]], 8 if k != 2 or not turning else 12))
        rules = [make(ladder[place]) for make, ladder, place in zip(makers, ladders, places)]
        n, most = motion.n, _MOST_POINTS
        most = min(most, max(_MOST_NUMBERS // n**2, 500))
        while np.prod([len(rule.at) for rule in rules]) > most and max(places) > 0:
            k = min((k for k in range(3) if places[k] > 0), key=lambda k: errors[k][places[k] - 1])
            places[k] -= 1
            rules[k] = makers[k](ladders[k][places[k]])
        return (rules[0], rules[1], rules[2]), float(max(row[place] for row, place in zip(errors, places)))

    def _measured(self, motion: Kinematics, quadrature: Quadrature) -> _Measured:
        """What (1) compares, by a motion and a quadrature."""
        points, weights = quadrature
        masses, moved = weights * self._densities(points), motion.samples(points)
        found = []
        for q in self.shapes:
            (_, J), (F, F_j) = moved.positions(q), moved.slopes(q)
            strains = self._strain_rates(F, F_j)
            P = np.einsum("k,kaj,kal->jl", masses, J, J, optimize=True)
            D = np.einsum("kpj,kpl->jl", strains, np.einsum("k,pr,krj->kpj", weights, self._moduli, strains))
            g = np.einsum("k,kab,kabj->j", weights, self._stress(F), F_j, optimize=True)
            found.append((P, D, g, np.einsum("k,kaj->aj", masses, J) / np.sqrt(masses.sum())))
        return _Measured(*map(np.array, zip(*found)))

    def _densities(self, points: np.ndarray) -> Any:
        density = self.density
        return np.array([float(density(x)) for x in points]) if callable(density) else density

    @cached_property
    def _law(self) -> _Law:
        return shared_by_equals(_Law, self.material)

    @cached_property
    def _moduli(self) -> np.ndarray:
        return self.material.moduli()

    def _strain_rates(self, F: np.ndarray, F_j: np.ndarray) -> np.ndarray:
        """∂E/∂θ_j of the material's strain, shape (N, 9, n)."""
        half = F_j if self.material.is_linear else np.einsum("kca,kcbj->kabj", F, F_j)
        return 0.5 * (half + half.swapaxes(1, 2)).reshape(len(F), 9, -1)

    def _stress(self, F: np.ndarray) -> np.ndarray:
        """∂W/∂F, shape (N, 3, 3)."""
        if not self.material.is_quadratic:
            return self._law.stress(F)
        strain = F if self.material.is_linear else 0.5 * F.swapaxes(1, 2) @ F
        strain = 0.5 * (strain + strain.swapaxes(1, 2)) - (1.0 if self.material.is_linear else 0.5) * np.eye(3)
        stress = (strain.reshape(-1, 9) @ self._moduli).reshape(-1, 3, 3)
        return stress if self.material.is_linear else F @ stress

    @cached_property
    def shapes(self) -> np.ndarray:
        """The θ that are looked at, shape (4, n); zero first."""
        motion, domain = self.kinematics, self.domain
        if isinstance(domain, SweptDomain):
            points = domain.product(cubature.line(9), cubature.line(2), cubature.line(8)).points
        else:
            points = _some(domain.points, 200)
        moved, zero = motion.samples(points), np.zeros(motion.n)
        size = float(np.ptp(points, axis=0).max()) or 1.0
        self._kept.append(moved)
        limits = moving_limits(moved, zero, _MOVED * size, _STRAINED)
        q = np.random.default_rng(1).uniform(-1.0, 1.0, (4, motion.n)) * limits
        q[0], q[1] = 0.0, 0.1 * q[1]
        for row in q[1:]:
            for _ in range(30):
                F, _ = moved.slopes(row)
                J = np.linalg.det(F)
                if np.isfinite(F).all() and J.min() > _LEAST:
                    break
                row *= 0.7
        return q

    def _steps(self) -> tuple[int, float]:
        """Of the integrator of the motion, and (1) for them."""
        points, domain = self.domain.points, self.domain
        if isinstance(domain, SweptDomain):
            around = 4 if domain.goes_round else 2
            along = cubature.line(8, self.kinematics.breaks)
            across = cubature.circle(around) if domain.goes_round else cubature.line(around)
            quadrature = domain.product(along, cubature.line(2), across)
        else:
            some = _some(points, 100)
            quadrature = Quadrature(some, np.full(len(some), domain.volume / len(some)))
        masses = quadrature.weights * self._densities(quadrature.points)
        size = float(np.ptp(points, axis=0).max()) or 1.0

        def moved(count: int) -> tuple[np.ndarray, np.ndarray]:
            at = self.kinematics.stepped(count).samples(quadrature.points)
            p, J = map(np.array, zip(*(at.positions(q) for q in self.shapes)))
            return p / size, np.sqrt(masses)[:, None, None] * J

        def apart(coarse: tuple[np.ndarray, np.ndarray], fine: tuple[np.ndarray, np.ndarray]) -> float:
            worst = float(np.abs(coarse[0] - fine[0]).max())
            for a, b in zip(*(part[1].reshape(len(self.shapes), -1, self.kinematics.n) for part in (coarse, fine))):
                worst = max(worst, float(np.linalg.norm((a - b) @ _whitening(b.T @ b), 2)))
            return worst if np.isfinite(worst) else np.inf

        place, errors = _climbed(_STEPS, moved, apart)
        return _STEPS[place], float(errors[place])


@final
@dataclass(frozen=True, eq=False)
class _Law:
    """What JAX compiles for a material."""

    material: Hyperelastic

    @cached_property
    def _compiled(self) -> Callable[..., Any]:
        import jax

        stress = jax.vmap(jax.grad(self.material.energy_density))
        return compiled(lambda F: (stress(F),))

    def stress(self, F: np.ndarray) -> np.ndarray:
        """∂W/∂F of F (N, 3, 3)."""
        return in_chunks(self._compiled, F)[0]


def moving_limits(moved: Any, q: np.ndarray, most_moved: float, most_strained: float) -> np.ndarray:
    """By how much each coordinate may change from θ = q: until points move, or ∂f/∂x changes, as far as that; NaN where
    it moves nothing."""
    (_, J), (_, F_j) = moved.positions(q), moved.slopes(q)
    return limits_of(reach(J), reach(F_j), most_moved, most_strained)


def reach(slopes: np.ndarray) -> np.ndarray:
    """The largest norm over points of what each coordinate changes, of arrays (N, ..., n)."""
    return np.sqrt((slopes * slopes).reshape(len(slopes), -1, slopes.shape[-1]).sum(axis=1)).max(axis=0)


def limits_of(moved: np.ndarray, strained: np.ndarray, most_moved: float, most_strained: float) -> np.ndarray:
    """`moving_limits` from the reach of positions and slopes."""
    sound = (moved > 0.0) & np.isfinite(moved) & np.isfinite(strained)
    limits = most_moved / np.where(sound, moved, np.nan)
    return np.minimum(limits, most_strained / np.maximum(strained, 1e-300))


def _some(points: np.ndarray, count: int) -> np.ndarray:
    """About so many points, evenly from all."""
    return points[:: max(1, len(points) // count)]


def _climbed(
    ladder: Sequence[int], found: Callable[[int], Any], apart: Callable[[Any, Any], float]
) -> tuple[int, np.ndarray]:
    """The first place on a ladder where what is found is apart from that of a finer place by less than the tolerance,
    or the last that can be judged, and by how much each is."""
    errors, known = np.full(len(ladder), np.inf), {}
    for place in range(len(ladder) - _FINER):
        for k in (place, place + _FINER):
            known[k] = known[k] if k in known else found(ladder[k])
        errors[place] = apart(known[place], known[place + _FINER])
        if errors[place] <= 0.5 * TOLERANCE:
            return place, errors
    return len(ladder) - _FINER - 1, errors


def _apart(coarse: _Measured, fine: _Measured) -> float:
    """(1)."""
    worst = 0.0
    for k in range(len(fine.P)):
        T, S = _whitening(fine.P[k]), _whitening(fine.D[k])
        for turn, a, b in ((T, coarse.P[k], fine.P[k]), (S, coarse.D[k], fine.D[k])):
            worst = max(worst, float(np.linalg.norm(turn.T @ (a - b) @ turn, 2)))
        size = float(np.linalg.norm(S.T @ fine.g[k]))
        if size > 0.0 and k > 0:
            worst = max(worst, float(np.linalg.norm(S.T @ (coarse.g[k] - fine.g[k]))) / size)
        worst = max(worst, float(np.linalg.norm(T.T @ (coarse.c[k] - fine.c[k]).T, 2)))
    return worst if np.isfinite(worst) else np.inf


def _whitening(A: np.ndarray) -> np.ndarray:
    """T with TᵀAT = 1, up to eigenvalues too small to matter."""
    d = np.sqrt(np.maximum(np.diag(A), 1e-300))
    d = np.where(d > 1e-140, d, np.inf)
    if not np.isfinite(A).all():
        return np.full_like(A, np.nan)
    square, turn = np.linalg.eigh(A / np.outer(d, d))
    return turn / np.sqrt(np.maximum(square, _FLOOR)) / d[:, None]
