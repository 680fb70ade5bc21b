"""Choice of quadrature points and integrator steps for a body, and trial motions that check its kinematics.

Let P = ∫ ρ JᵀJ be the mass matrix, D = ∫ E_jᵀℂE_k, g the elastic force and c = ∫ρJ, all by a coarse rule, and P′, D′,
g′, c′ the same by a finer rule. The error of the coarse rule is the largest, over some θ, of

    ‖P′^-½ (P − P′) P′^-½‖,   ‖D′^-½ (D − D′) D′^-½‖,   |g − g′|_D′ / |g′|_D′,   |c − c′|_P′ / √m            (1)

with |g|²_D = gᵀD⁻¹g. So (1) bounds the relative error of natural frequencies, and of equilibria in the energy norm,
independent of the units of the coordinates. A quadrature is the product of three one-dimensional rules. They are
refined one after another until (1) is below 1e-6. The θ of (1) are zero and some random values that move the body by
its own size and change ∂f/∂x by 0.3, or less if the body would fold.

The integrals at all θ are sums of few functions of the material point. If a rule has many points, positive weights at
some of them give these functions the same integrals (empirical cubature). The functions are the products

    ρ yᵢ yⱼ with y = (1, f, ∂f/∂θ),   E_jᵀℂE_k,   ∂W/∂θ_j       scaled as in (1)                              (2)

at random θ. Products that are sums of the others within 1e-7 are left out. The error (1) of the reduced rule is
measured at other θ.

Source of the reduction: J. A. Hernández, M. A. Caicedo, A. Ferrer, Comput. Methods Appl. Mech. Eng. 313, 2017.

Trial motions are small: each coordinate moves no point by more than a hundredth of the body's size. Nodes of a mesh
move by fractions of the cell size: each coordinate changes ∂f/∂x by at most a hundredth there.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any, NamedTuple, final

import numpy as np

from lissom.bodies import cubature
from lissom.bodies.cubature import Line
from lissom.bodies.domains import Domain, Quadrature, SweptDomain
from lissom.bodies.evaluation import in_chunks, shared_by_equals
from lissom.bodies.kinematics import Kinematics
from lissom.bodies.materials import Hyperelastic
from lissom.errors import AccuracyWarning
from lissom.portable import read_cached, write_cached
from lissom.robot import checks
from lissom.robot.poses import compiled
from lissom.tracing.code_cache import cache_folder, content_key

TOLERANCE = 1e-6
_ALONG = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29, 35, 42, 50, 60)  # numbers of Gauss points to try
_ACROSS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 18)
_AROUND = (4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 50, 64)  # even, so that both sides of a section are treated alike
_ON_ARCS = (6, 8, 10, 12, 16, 20, 26, 32, 40, 50, 64, 80, 100)  # Gauss points on each arc between breaks
_STEPS = (1, 2, 3, 4, 6, 8, 11, 16, 22, 32, 45, 64, 90, 128)
_ON_DISK = 20_000_000  # largest size of the cache of choices [bytes]
_LARGEST_WHOLE_RULE = 500  # largest number of points of a rule that is not reduced
_KNOWN = 0.1 * TOLERANCE  # part of a function of (2) that counts as a sum of others
_MOST_FUNCTIONS = 900  # of one θ
_SUMS = 64  # random sums of functions, four times as large as these, that are compared with the known ones at a time
_LEARNED, _IDLE = 40, 2  # most values of θ, and how many in a row that add less than a hundredth are enough
_FINER = 2  # a rule is compared with the rule this many places later in its list
_MOST_POINTS = 16_000
_MOST_NUMBERS = 4_000_000  # largest product of points and coordinates squared
_FLOOR = 1e-8  # smallest eigenvalue, of matrices with unit diagonal, that is not raised to this value
_MOVED, _STRAINED = 1.0, 0.3  # largest motion (in body sizes) and largest change of ∂f/∂x at the θ of (1)
_LEAST = 0.5  # smallest det ∂f/∂x at these θ
_TRIAL_MOVED, _TRIAL_STRAINED = 1e-2, 1e-2  # largest motion and change of ∂f/∂x at the θ of trial motions
_TRIALS = 4  # number of trial motions
_PLACE = 1e-9  # largest distance of f(x, 0) from x, in sizes of the body
_VOLUME = 1e-9  # largest deviation of det ∂f/∂x from one for a motion that keeps volume
_BLOCK = 1 << 20  # numbers of points in one block of a loop
_MOST_PLACES = 500  # points whose positions are checked, except for meshes
_LOOKED = 256  # material points at which a motion and a density must be finite
_RANK = 1e-9  # largest singular value of dependent coordinates, relative to the largest of all
_NAMED = 6  # most numbers that a message lists
_RIGID = 1e-9  # largest strain of rigid sections
_TOO_STIFF = 1e-3  # relative excess of stiffness that a law may have on rigid sections


class Chosen(NamedTuple):
    """The chosen kinematics and quadrature of a body."""

    kinematics: Kinematics
    quadrature: Quadrature
    whole: Quadrature  # before the reduction to few points; otherwise the same
    counts: tuple[int, ...] | None  # points of the three rules; None for given points
    steps: int | None  # of the motion; None for given steps or a motion without steps
    left: float  # the error (1); 0 if nothing was chosen

    @property
    def words(self) -> str:
        """The choice as text; empty if nothing was chosen."""
        kept, whole = len(self.quadrature.weights), len(self.whole.weights)
        parts = [] if self.counts is None else [f"{' x '.join(map(str, self.counts))} points"]
        if kept < whole:
            parts = [*(parts or [f"{whole} points of the mesh"]), f"reduced to {kept}"]
        parts += [] if self.steps is None else [f"{self.steps} steps"]
        return f"{', '.join(parts)} chosen, off by {self.left:.1e}" if parts else ""


class _Choice(NamedTuple):
    """The numbers of a choice.

    Fields:
        sizes: of the three rules, as `_makers` takes them; empty for given points.
        kept, shares: indices of the points of the whole rule that are kept if it is reduced, and their weights as parts
            of those of the whole rule; empty if it is not.
        steps: of the motion; None for given steps or a motion without steps.
        left: the error (1); 0 if nothing was chosen.
    """

    sizes: list[int]
    kept: list[int]
    shares: list[float]
    steps: int | None
    left: float


class _Measured(NamedTuple):
    """Integrals of (1) by one rule at k values of θ: P (k, n, n), D (k, n, n), g (k, n) and c (k, 3, n)."""

    P: np.ndarray
    D: np.ndarray
    g: np.ndarray
    c: np.ndarray


@final
@dataclass(frozen=True, eq=False)
class Resolution:
    """The choice of quadrature and steps for one body, computed on first use.

    Args:
        kinematics, domain, material, density: description of the body.
        like: the choice for a body with slightly other numbers, which is taken over: the same points of the rules, with
            weights in the same ratios to those of the whole rule, and the same steps. Differences of both bodies then
            have no jumps.
        whole: True: the rule is not reduced to few points. The functions (2) do not contain their derivatives with
            respect to design values, so that few points do not integrate these. The derivatives with respect to the
            length of an inflated arm would have errors of some percent.
    """

    kinematics: Kinematics
    domain: Domain
    material: Hyperelastic
    density: float | Callable[[np.ndarray], float]
    like: Resolution | None = None
    whole: bool = False

    @cached_property
    def _references(self) -> list[Any]:
        """References to objects that own compiled functions. They keep these objects alive as long as this one."""
        return []

    @cached_property
    def chosen(self) -> Chosen:
        """Quadrature points and integrator steps. Given ones are not changed."""
        choice, motion = self._choice, self.kinematics
        motion = motion if choice.steps is None else motion.stepped(choice.steps)
        whole, counts = self._rule(choice.sizes)
        few = whole
        if choice.kept and not self.whole:
            few = Quadrature(whole.points[choice.kept], whole.weights[choice.kept] * choice.shares)
        return Chosen(motion, few, whole, counts, choice.steps, choice.left)

    def _rule(self, sizes: Sequence[int]) -> tuple[Quadrature, tuple[int, ...] | None]:
        """The quadrature before it is reduced, and the numbers of points of three rules; None for given points."""
        domain = self.domain
        if sizes and isinstance(domain, SweptDomain):
            return self._product(domain, sizes)
        return Quadrature(domain.points, domain.weights), None

    @cached_property
    def _choice(self) -> _Choice:
        """The choice of the body that this one is like, the one on disk, or a new one, which is stored there."""
        if self.like is not None:
            return self.like._choice
        parts = self.kinematics, self.domain, self.material, self.density
        key = content_key("resolution", version("scipy"), *parts)
        if key is None:
            return self._new_choice()
        file = cache_folder("lissom-rules") / f"{key}.json"
        choice = read_cached(file, lambda path: _Choice(**json.loads(path.read_text(encoding="utf-8"))))
        if choice is None:
            choice = made = self._new_choice()
            if choice.sizes or choice.kept or choice.steps is not None:
                write_cached(file, lambda stream: stream.write(json.dumps(made._asdict()).encode()), _ON_DISK)
        return choice

    def _new_choice(self) -> _Choice:
        motion, domain = self.kinematics, self.domain
        sizes, steps, left = (), None, 0.0
        if isinstance(domain, SweptDomain) and domain.is_chosen_by_body and not motion.is_of_cells:
            sizes, left = self._sizes(domain)
        if motion.chooses_steps:
            steps, off = self._steps()
            motion, left = motion.stepped(steps), max(left, off)
        kept, shares = [], []
        # A mesh with other numbers needs a new choice, which takes seconds, and so keeps all points
        is_given = not sizes if isinstance(domain, SweptDomain) else domain.as_given is not domain
        whole, _ = self._rule(sizes)
        if len(whole.weights) > _LARGEST_WHOLE_RULE and not motion.is_of_cells and not is_given:
            kept, shares, off = self._reduced(motion, whole)
            left = max(left, off)
        return _Choice(list(sizes), kept, shares, steps, left)

    def _makers(self, domain: SweptDomain) -> list[Callable[[int], Line]]:
        """Functions that make the three one-dimensional rules of given sizes."""
        motion, along = self.kinematics, domain.degree_along
        turning = motion.breaks_around if domain.goes_round else ()
        given = None if along is None else cubature.line_of_degree(along)
        return [
            lambda count: cubature.line(count, motion.breaks) if given is None else given,
            cubature.radii if turning else cubature.line,
            (lambda count: cubature.circle(count, turning)) if domain.goes_round else cubature.line,
        ]

    def _product(self, domain: SweptDomain, sizes: Sequence[int]) -> tuple[Quadrature, tuple[int, ...]]:
        """The rule whose one-dimensional rules have given sizes, and the numbers of their points."""
        rules = [make(size) for make, size in zip(self._makers(domain), sizes)]
        return domain.product(rules[0], rules[1], rules[2]), tuple(len(rule.at) for rule in rules)

    def check(self, where: str) -> None:
        """Raise ModelError unless positions, strains and density are finite in the undeformed shape."""
        for name, rule, (bad, at, value) in self._doubts:
            checks.require(not bad, f"{where}{name}", f"{rule} be finite at the material point {at}", value)

    @cached_property
    def _doubts(self) -> list[tuple[str, str, tuple[bool, Any, Any]]]:
        """Name, rule and what `_not_finite` finds, for the density and the motion."""
        points = _thinned(self.domain.points, _LOOKED)
        masses = np.broadcast_to(self._densities(points), len(points))
        found = [(": density", "must", _not_finite(points, masses))]
        if not self.kinematics.is_of_cells:
            moved, q = self.kinematics.samples(points), np.zeros(self.kinematics.n)
            self._references.append(moved)
            F = moved.slopes(q)[0].reshape(len(points), 9)
            found.append((" > kinematics", "p must", _not_finite(points, moved.positions(q)[0])))
            found.append((" > kinematics", "∂p/∂x must", _not_finite(points, F)))
        return found

    def warn(self, where: str) -> None:
        """Raise an AccuracyWarning if the largest allowed numbers of points and steps are not enough."""
        if self.chosen.left > TOLERANCE:
            text = f"its integrals are off by {self.chosen.left:.1e}, with no more points and steps to take"
            warnings.warn(f"{where}: {text} ({self.chosen.words})", AccuracyWarning, stacklevel=6)

    def _sizes(self, domain: SweptDomain) -> tuple[tuple[int, ...], float]:
        """The sizes of the three one-dimensional rules, and the error (1) of the worst of them."""
        motion = self.kinematics
        turning = motion.breaks_around if domain.goes_round else ()
        ladders = [_ALONG, _ACROSS, (_ON_ARCS if turning else _AROUND) if domain.goes_round else _ACROSS]
        makers = self._makers(domain)
        places, errors = [0, 0, 0], [np.zeros(0)] * 3
        rules = [makers[0](5), makers[1](2), makers[2](6 if domain.goes_round else 2)]
        for k in (0, 2, 1):
            if k == 0 and domain.degree_along is not None:
                ladders[0], errors[0], rules[0] = (0,), np.zeros(1), makers[0](0)
                continue

            def measured(count: int, k: int = k) -> _Measured:
                rule = (*rules[:k], makers[k](count), *rules[k + 1 :])
                return self._measured(self.kinematics, domain.product(rule[0], rule[1], rule[2]))

            places[k], errors[k] = _climbed(ladders[k], measured, _difference)
            rules[k] = makers[k](min(ladders[k][places[k]], 8 if k != 2 or not turning else 12))
        rules = [make(ladder[place]) for make, ladder, place in zip(makers, ladders, places)]
        n, most = motion.n, _MOST_POINTS
        most = min(most, max(_MOST_NUMBERS // n**2, 500))
        while np.prod([len(rule.at) for rule in rules]) > most and max(places) > 0:
            k = min((k for k in range(3) if places[k] > 0), key=lambda k: errors[k][places[k] - 1])
            places[k] -= 1
            rules[k] = makers[k](ladders[k][places[k]])
        sizes = tuple(ladder[place] for ladder, place in zip(ladders, places))
        return sizes, float(max(row[place] for row, place in zip(errors, places)))

    def _reduced(self, motion: Kinematics, whole: Quadrature) -> tuple[list[int], list[float], float]:
        """Few points of a rule and weights that have the same integrals: the indices of the points, their weights as
        parts of those of the rule, and the error (1). No points if the body has too many coordinates, or if it
        fails."""
        nothing: tuple[list[int], list[float], float] = [], [], 0.0
        rows = 1 + 3 + 3 * motion.n
        if rows * (rows + 1) // 2 + motion.n * (motion.n + 3) // 2 > _MOST_FUNCTIONS:
            return nothing
        weights, moved = whole.weights / whole.weights.sum(), motion.samples(whole.points)
        root, rng = np.sqrt(weights)[:, None], np.random.default_rng(4)
        known, idle = root.copy(), 0
        for q in np.concatenate([self.shapes[:1], self._random_shapes(2, _LEARNED)]):
            count, functions = known.shape[1], root * self._functions(whole, moved, q)
            if not np.isfinite(functions).all():
                return nothing
            full = True
            while full:  # some random sums at a time, since most functions are sums of known ones
                before = known.shape[1]
                mix = rng.normal(size=(functions.shape[1], _SUMS)) / np.sqrt(_SUMS / 16)
                known = _extended(known, functions @ mix, _KNOWN)
                full = known.shape[1] == before + _SUMS
            idle = 0 if known.shape[1] > 1.01 * count else idle + 1
            if idle == _IDLE or 2 * known.shape[1] > len(weights):
                break
        if 2 * known.shape[1] > len(weights):
            return nothing
        try:
            kept, found, _ = cubature.selected(known / root, weights)
        except ArithmeticError:
            return nothing
        few = Quadrature(whole.points[kept], found * whole.weights.sum())
        fine, coarse = (self._measured(motion, rule, self._random_shapes(3, 4)) for rule in (whole, few))
        error = max(_difference(coarse, fine), _difference(self._measured(motion, few), self._measured(motion, whole)))
        return (kept.tolist(), (found / weights[kept]).tolist(), error) if error < TOLERANCE else nothing

    def _functions(self, rule: Quadrature, moved: Any, q: np.ndarray) -> np.ndarray:
        """The functions (2) at the points of a rule at one θ, shape (N, m)."""
        points, weights = rule
        volume, masses = weights.sum(), weights * self._densities(points)
        (p, J), (F, F_j) = moved.positions(q), moved.slopes(q)
        strains = self._strain_rates(F, F_j)
        forces = np.einsum("kab,kabj->kj", self._stress(F), F_j)
        stresses = np.einsum("pr,krj->kpj", self._moduli, strains)
        T = _whitening(np.einsum("k,kaj,kal->jl", masses, J, J, optimize=True))
        S = _whitening(np.einsum("k,kpj,kpl->jl", weights, strains, stresses, optimize=True))
        y = np.concatenate(
            [np.ones((len(p), 1)), p / np.ptp(points, axis=0).max(), (J @ T).reshape(len(p), -1)], axis=1
        )
        y[:, 4:] *= np.sqrt(masses.sum())
        y *= np.sqrt(masses / weights * volume / masses.sum())[:, None]
        i, j = np.triu_indices(y.shape[1])
        k, m = np.triu_indices(len(q))
        elastic = volume * np.einsum("kpj,kpj->kj", (strains @ S)[..., k], (stresses @ S)[..., m])
        size = float(np.linalg.norm(S.T @ (weights @ forces)))
        return np.concatenate([y[:, i] * y[:, j], elastic, forces @ S * (volume / size if size > 0.0 else 0.0)], axis=1)

    def _measured(self, motion: Kinematics, quadrature: Quadrature, shapes: np.ndarray | None = None) -> _Measured:
        """The integrals of (1) for a kinematics and a quadrature, at the θ of (1) or at given ones."""
        points, weights = quadrature
        masses, moved = weights * self._densities(points), motion.samples(points)
        found = []
        for _, J, F, F_j in moved.at_each(self.shapes if shapes is None else shapes):
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
        """∂E/∂θ_j of the material's strain E, shape (N, 9, n)."""
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
        """The θ of (1), shape (4, n); zero first."""
        q = self._random_shapes(1, 4)
        q[0] = 0.0
        return q

    def _random_shapes(self, seed: int, count: int) -> np.ndarray:
        """Random θ (count, n) that move the body by up to its own size; the second ones are small."""
        motion, domain = self.kinematics, self.domain
        if isinstance(domain, SweptDomain):
            points = domain.product(cubature.line(9), cubature.line(2), cubature.line(8)).points
        else:
            points = _thinned(domain.points, 200)
        moved, zero = motion.samples(points), np.zeros(motion.n)
        size = float(np.ptp(points, axis=0).max()) or 1.0
        self._references.append(moved)
        limits = moving_limits(moved, zero, _MOVED * size, _STRAINED)
        q = np.random.default_rng(seed).uniform(-1.0, 1.0, (count, motion.n)) * limits
        q[1] *= 0.1
        for row in q:
            for _ in range(30):
                F, _ = moved.slopes(row)
                J = np.linalg.det(F)
                if np.isfinite(F).all() and J.min() > _LEAST:
                    break
                row *= 0.7
        return q

    def _steps(self) -> tuple[int, float]:
        """Number of integrator steps, and the error (1) for it."""
        points, domain = self.domain.points, self.domain
        if isinstance(domain, SweptDomain):
            around = 4 if domain.goes_round else 2
            along = cubature.line(8, self.kinematics.breaks)
            across = cubature.circle(around) if domain.goes_round else cubature.line(around)
            quadrature = domain.product(along, cubature.line(2), across)
        else:
            few = _thinned(points, 100)
            quadrature = Quadrature(few, np.full(len(few), domain.volume / len(few)))
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
    """The stress of a material, compiled by JAX."""

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
    """The largest change of each coordinate from θ = q that keeps the motion of points and the change of ∂f/∂x within
    given limits; NaN for a coordinate that moves no point."""
    (_, J), (_, F_j) = moved.positions(q), moved.slopes(q)
    return limits_of(reach(J), reach(F_j), most_moved, most_strained)


def reach(slopes: np.ndarray) -> np.ndarray:
    """For each coordinate, the largest norm over the points of the derivative; `slopes` has shape (N, ..., n)."""
    return np.sqrt((slopes * slopes).reshape(len(slopes), -1, slopes.shape[-1]).sum(axis=1)).max(axis=0)


def limits_of(moved: np.ndarray, strained: np.ndarray, most_moved: float, most_strained: float) -> np.ndarray:
    """`moving_limits` from the `reach` of positions and gradients."""
    sound = (moved > 0.0) & np.isfinite(moved) & np.isfinite(strained)
    limits = most_moved / np.where(sound, moved, np.nan)
    return np.minimum(limits, most_strained / np.maximum(strained, 1e-300))


def _not_finite(points: np.ndarray, rows: np.ndarray) -> tuple[bool, Any, Any]:
    """Whether numbers of points are not finite; the first such point and its first such number."""
    bad = np.argwhere(~np.isfinite(rows))
    return (True, points[bad[0][0]].tolist(), float(rows[tuple(bad[0])])) if len(bad) else (False, None, None)


def _thinned(points: np.ndarray, count: int) -> np.ndarray:
    """About `count` of the points, evenly spaced in their order."""
    return points[:: max(1, len(points) // count)]


def _climbed(
    ladder: Sequence[int], found: Callable[[int], Any], apart: Callable[[Any, Any], float]
) -> tuple[int, np.ndarray]:
    """The first place in a list of numbers whose result differs from the result _FINER places later by less than the
    tolerance, and the differences. If there is none, the last place with a finer one."""
    errors, known = np.full(len(ladder), np.inf), {}
    for place in range(len(ladder) - _FINER):
        for k in (place, place + _FINER):
            known[k] = known[k] if k in known else found(ladder[k])
        errors[place] = apart(known[place], known[place + _FINER])
        if errors[place] <= 0.5 * TOLERANCE:
            return place, errors
    return len(ladder) - _FINER - 1, errors


def _difference(coarse: _Measured, fine: _Measured) -> float:
    """The largest of the errors (1) of a coarse rule."""
    worst = 0.0
    if not all(np.isfinite(part).all() for each in (coarse, fine) for part in each):
        return np.inf
    for k in range(len(fine.P)):
        T, S = _whitening(fine.P[k]), _whitening(fine.D[k])
        for turn, a, b in ((T, coarse.P[k], fine.P[k]), (S, coarse.D[k], fine.D[k])):
            worst = max(worst, float(np.linalg.norm(turn.T @ (a - b) @ turn, 2)))
        size = float(np.linalg.norm(S.T @ fine.g[k]))
        if size > 0.0 and k > 0:
            worst = max(worst, float(np.linalg.norm(S.T @ (coarse.g[k] - fine.g[k]))) / size)
        worst = max(worst, float(np.linalg.norm(T.T @ (coarse.c[k] - fine.c[k]).T, 2)))
    return worst if np.isfinite(worst) else np.inf


def _extended(basis: np.ndarray, columns: np.ndarray, tolerance: float) -> np.ndarray:
    """An orthonormal basis (N, r) with those parts of columns (N, m) added that are not in its span within a
    tolerance."""
    while True:
        for _ in range(2):  # once more for what rounding leaves
            columns = columns - basis @ (basis.T @ columns)
        square, turn = np.linalg.eigh(columns.T @ columns)
        size = np.sqrt(np.maximum(square, 0.0))
        new = size > max(tolerance, 1e-5 * size[-1])  # squares lose smaller ones, which a later turn finds
        if not new.any():
            return basis
        more = columns @ (turn[:, new] / size[new])
        for _ in range(2):
            more = more - basis @ (basis.T @ more)
            more = np.linalg.solve(np.linalg.cholesky(more.T @ more), more.T).T
        basis = np.concatenate([basis, more], axis=1)


def _whitening(A: np.ndarray) -> np.ndarray:
    """T with TᵀAT = 1, except for negligible eigenvalues."""
    d = np.sqrt(np.maximum(np.diag(A), 1e-300))
    d = np.where(d > 1e-140, d, np.inf)
    if not np.isfinite(A).all():
        return np.full_like(A, np.nan)
    square, turn = np.linalg.eigh(A / np.outer(d, d))
    return turn / np.sqrt(np.maximum(square, _FLOOR)) / d[:, None]


@final
class TrialMoves:
    """Small values of θ, and checks of the kinematics at them.

    Args:
        kinematics, quadrature: kinematics and quadrature of a body, after the choice of its resolution.
    """

    def __init__(self, kinematics: Kinematics, quadrature: Quadrature) -> None:
        self.kinematics, self.points = kinematics, quadrature.points
        self.size = float(np.ptp(self.points, axis=0).max()) or 1.0
        zero = np.zeros(kinematics.n)
        self._blocks = list(self._in_blocks())
        strained = np.max([reach(moved.slopes(zero)[1]) for _, moved in self._blocks], axis=0)
        self._placed = self._blocks
        if not kinematics.is_of_cells and len(self.points) > _MOST_PLACES:
            few = _thinned(self.points, _MOST_PLACES)
            self._placed = [(few, kinematics.samples(few))]
        shifted = np.max([reach(moved.positions(zero)[1]) for _, moved in self._placed], axis=0)
        most = _TRIAL_STRAINED if kinematics.is_of_cells else np.inf
        limits = limits_of(shifted, strained, _TRIAL_MOVED * self.size, most)
        self.q = np.random.default_rng(0).uniform(-1.0, 1.0, (_TRIALS, kinematics.n)) * limits  # NaN: moves nothing
        self.q[0] = 0.0 * limits
        self.rigid_sections = False
        self.seen: dict[bytes, np.ndarray] = {}  # positions of material points at q, by point

    def _in_blocks(self) -> Iterator[tuple[np.ndarray, Any]]:
        step = max(256, _BLOCK // (12 * self.kinematics.n))
        for k in range(0, len(self.points), step):
            block = self.points[k : k + step]
            yield block, self.kinematics.samples(block)

    def check(self, where: str) -> None:
        """Raise ModelError unless f(x, 0) = x, each coordinate moves a point, and the body does not fold near θ = 0."""
        for x, moved in self._placed:
            p = moved.positions(np.zeros(self.kinematics.n))[0]
            worst = int(np.argmax(np.abs(p - x).max(axis=1)))
            near = np.abs(p - x).max() <= _PLACE * self.size  # not so for NaN
            checks.require(bool(near), where, f"f(x, 0) must be x = {x[worst].tolist()}", p[worst])
        for k in np.flatnonzero(~np.isfinite(self.q).all(axis=0))[:1]:
            rule = f"coordinate {k} must move some point of the quadrature at θ = 0, with a finite derivative"
            checks.require(False, where, rule, float(self.q[1, k]))
        lateral, axial = 0.0, 0.0
        for q in self.q:
            for x, moved in self._blocks:
                F = moved.slopes(q)[0]
                self._check_slopes(x, F, q, where)
                C = F.swapaxes(1, 2) @ F - np.eye(3)
                lateral, axial = (
                    max(lateral, float(np.abs(C[:, 1:, 1:]).max())),
                    max(axial, float(np.abs(C[:, 0, 0]).max())),
                )
        self.rigid_sections = lateral <= _RIGID < 1e-3 * axial

    def _check_slopes(self, x: np.ndarray, F: np.ndarray, q: np.ndarray, where: str) -> None:
        J = np.linalg.det(F)
        checks.require(bool(np.isfinite(J).all()), where, "must be finite, with its derivatives, at θ =", short(q))
        k = int(np.argmin(J))
        rule = f"folds: det ∂f/∂x must be > 0 at x = {x[k].round(9).tolist()}, θ = {short(q)}"
        checks.require(bool(J[k] > 0.0), where, rule, float(J[k]))
        k = int(np.argmax(np.abs(J - 1.0)))
        rule = f"must keep volume, as it says: det ∂f/∂x must be 1 at x = {x[k].round(9).tolist()}, θ = {short(q)}"
        kept = not self.kinematics.keeps_volume or abs(J[k] - 1.0) <= _VOLUME
        checks.require(bool(kept), where, rule, float(J[k]))


def check_independent(kinematics: Kinematics, domain: Domain, quadrature: Quadrature, tried: np.ndarray,
                      where: str) -> None:  # fmt: skip
    """Raise ModelError if the mass matrix is singular: coordinates are linearly dependent, or the quadrature has too
    few points to distinguish them. `tried` are θ (k, n), the first zero."""
    if kinematics.is_of_cells:
        return
    points = quadrature.points[:: max(1, len(quadrature.points) // max(_MOST_PLACES, 4 * kinematics.n))]
    of_points = _dependence(kinematics, points, quadrature.points, tried)
    if of_points is None and (not isinstance(domain, SweptDomain) or domain.is_chosen_by_body):
        return
    finely = quadrature.points
    if isinstance(domain, SweptDomain):
        along = cubature.line(max(12, kinematics.n + 2), kinematics.breaks)
        second = cubature.equidistant(8) if domain.goes_round else cubature.line(3)
        finely = domain.product(along, cubature.line(3), second).points
    at_all = _dependence(kinematics, finely, finely, tried)
    if at_all is not None:
        which, what = at_all
        rule = f"coordinates {_listed(which)} depend on each other: {what}, so that the mass matrix is singular; remove"
        checks.require(False, where, f"{rule} the redundant ones. Number of coordinates", kinematics.n)
    if of_points is not None:
        which, what = of_points
        rule = f"its points are too few to tell coordinates {_listed(which)} apart ({what}): take a higher degree, or"
        checks.require(False, where, f"{rule} None, which chooses it. Points", len(quadrature.points))


def _dependence(
    kinematics: Kinematics, places: np.ndarray, points: np.ndarray, tried: np.ndarray
) -> tuple[np.ndarray, str] | None:
    """Indices of linearly dependent coordinates and a text about the case; None if there are none. Coordinates are
    dependent if a combination moves no point at one θ of `tried`; or if a combination causes no strain at θ = 0,
    although each coordinate alone does."""
    moved = kinematics.samples(places)
    for q in tried:
        which = _null(moved.positions(q)[1])
        if which is not None:
            at = "in the reference shape" if not q.any() else f"at θ = {short(q)}"
            return which, f"together they move nothing {at}"
    F_j = (moved if points is places else kinematics.samples(points)).slopes(tried[0])[1]
    which = _null(F_j + F_j.swapaxes(1, 2))
    return None if which is None else (which, "together they strain nothing in the reference shape")


def _null(slopes: np.ndarray) -> np.ndarray | None:
    """Indices of linearly dependent columns of arrays (N, ..., n), without zero columns; None if there are none."""
    rows = slopes.reshape(-1, slopes.shape[-1])
    sizes = np.linalg.norm(rows, axis=0)
    used = np.flatnonzero(sizes > 1e-12 * sizes.max(initial=0.0))
    if len(used) < 2 or not np.isfinite(rows).all():
        return None
    R = np.linalg.qr(rows[:, used] / sizes[used], mode="r")
    _, square, turn = np.linalg.svd(R)
    if len(square) == len(used) and square[-1] > _RANK * square[0]:
        return None
    return used[np.abs(turn[-1]) > 0.05 * np.abs(turn[-1]).max()]


def too_stiff(law: Hyperelastic) -> float:
    """Relative excess of the axial stiffness of a law on sections that cannot expand laterally: K_fixed/K_free − 1,
    with K_free the stiffness on sections that expand freely. Values below 1e-3 are returned as 0."""
    C = law.moduli().reshape(3, 3, 3, 3)
    pairs = [(0, 0), (1, 1), (2, 2), (1, 2)]
    A = np.array([[C[a, b, c, d] for c, d in pairs] for a, b in pairs])
    free = A[0, 0] - A[0, 1:] @ np.linalg.lstsq(A[1:, 1:], A[1:, 0], rcond=1e-10)[0]
    more = A[0, 0] / free - 1.0 if free > 1e-12 * abs(A[0, 0]) else np.inf
    return more if more > _TOO_STIFF else 0.0


def short(q: np.ndarray) -> str:
    """Text of θ. If there are many coordinates: their number, and their largest absolute value."""
    if len(q) <= _NAMED:
        return str([float(f"{x:.6g}") for x in q])
    return f"{len(q)} coordinates up to {np.abs(q).max():.2g}"


def _listed(which: np.ndarray) -> str:
    """Text of a list of indices."""
    words = [str(int(k)) for k in which[:_NAMED]]
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(which) <= _NAMED else f"{', '.join(words)} and more"
