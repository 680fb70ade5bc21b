"""Deformable bodies: kinematics, domain, material and density, with the tip, the places and the checks of a body."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from lissom.bodies.domains import Domain, Surface, SweptDomain, surface_balls
from lissom.bodies.enrichment import Enriched
from lissom.bodies.evaluation import Samples, shared_by_equals
from lissom.bodies.integrals import ShapeIntegrals
from lissom.bodies.kinematics import Kinematics, KinematicsFunction
from lissom.bodies.material_frames import MaterialFrame, MaterialFrames
from lissom.bodies.materials import Hyperelastic
from lissom.bodies.meshes import DomainTetrahedra
from lissom.bodies.resolution import Resolution, TrialMoves, check_independent, short, too_stiff
from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.bodies import Body
from lissom.robot.poses import PoseFunction, in_double

_PLACE = 1e-9  # largest motion of a fixed point, and deformation of a rigid contact area, in body lengths
_BEYOND = 1e-3  # largest length of a domain beyond its kinematics, relative; differences by design values need some


@final
@dataclass(frozen=True, eq=False)
class DeformableBody(Body):
    """A body whose material points x move to p = f(x, θ) in the child frame of its joint (Pustina 2025).

    Args:
        kinematics: a Kinematics, or a function f(x, θ) that returns p, written with jax.numpy; x and p have shape (3,)
            [m].
        domain: the undeformed shape and its quadrature.
        material: elastic energy and damping.
        density: density [kg/m³], or a function of a material point (3,) that returns it.
        n: number of coordinates θ, if `kinematics` is a function.
        tip: where the next joint is attached, one of these:
            three material points (x_J, x_a, x_b), or names of places of the domain, on a contact area that stays rigid:
            x_J is the pivot, and x_a and x_b lie at right angles from it, Pustina (3)–(6);
            one material point or place: the frame there follows the cross-section normal to x, even if the section
                deforms;
            a function of θ, written with jax.numpy, that returns a pose (4, 4);
            None: no joint is attached.
            A tip given by points has the axes of the body in the undeformed shape.
        balls: contact spheres: rows (x, y, z, radius) of material points and radii, shape (m, 4) [m], or the number of
            balls to distribute inside along the surface. A ball moves with its centre and keeps its radius.

    In every argument s (the abscissa of a place on a link), such a body also takes a material point: x (3,) [m] of the
    undeformed shape, or the name of a place of the domain. The frame there follows the cross-section normal to x.
    """

    kinematics: Kinematics | Callable[[Any, Any], Any]
    domain: Domain
    material: Hyperelastic
    density: float | Callable[[np.ndarray], float]
    n: int | None = None
    tip: Any = None
    balls: Any = 32

    def with_field(self, name: str, value: Any) -> DeformableBody:
        """A copy with another value of a field. Finite elements on the mesh of the body keep it in common."""
        changes, mesh = {name: value}, getattr(getattr(value, "whole", value), "mesh", None)
        if name == "domain" and isinstance(self.kinematics, Kinematics):
            changes["kinematics"] = self.kinematics.on_mesh(self.domain, value)
        elif name == "kinematics" and isinstance(self.kinematics, Kinematics) and mesh is not None:
            is_common = self.kinematics.on_mesh(self.domain, mesh) is not self.kinematics
            changes |= {"domain": mesh} if is_common else {}
        return replace(self, **changes)

    @cached_property
    def _given(self) -> Kinematics:
        """The kinematics, also as an object if it was given as a function."""
        if isinstance(self.kinematics, Kinematics):
            return self.kinematics
        return KinematicsFunction(self.kinematics, self.n)  # pyright: ignore[reportArgumentType]

    @cached_property
    def resolution(self) -> Resolution:
        """The choice of quadrature and integrator steps for this body."""
        return shared_by_equals(Resolution, self._given, self.domain, self.material, self.density)

    def with_rules_of(self, other: DeformableBody) -> DeformableBody:
        """The same body with the points and steps that a body with slightly other numbers has chosen."""
        return self._with(replace(self.resolution, like=other.resolution, whole=other.resolution.whole))

    @property
    def has_few_points(self) -> bool:
        """Whether the quadrature is reduced to few of its points."""
        chosen = self.resolution.chosen
        return len(chosen.quadrature.weights) < len(chosen.whole.weights)

    def with_all_points(self) -> DeformableBody:
        """The same body with the quadrature before the reduction to few points."""
        return self._with(replace(self.resolution, like=self.resolution, whole=True))

    def _with(self, resolution: Resolution) -> DeformableBody:
        made = replace(self)
        object.__setattr__(made, "resolution", resolution)
        return made

    @property
    def motion(self) -> Kinematics:
        """The kinematics, with the chosen number of integrator steps if none was given."""
        return self.resolution.chosen.kinematics if self._given.chooses_steps else self._given

    @property
    def finer_choice(self) -> dict[str, Any]:
        """Those fields that set quadrature points or integrator steps, changed so that the body chooses them for an
        error of 1e-6."""
        domain, motion = self.domain, self._given
        out: dict[str, Any] = {}
        if isinstance(domain, SweptDomain) and not domain.is_chosen_by_body and not motion.is_of_cells:
            out["domain"] = domain.left_to_body()
        free = motion.stepped(None)
        if free.chooses_steps and not motion.chooses_steps:
            out["kinematics"] = free
        return out

    @cached_property
    def enriched(self) -> tuple[DeformableBody, Enriched] | None:
        """A body with added coordinates that estimate the error of this body's kinematics. None if the library knows no
        further coordinates, for example for a user's function or for a tip that is a function of θ."""
        if callable(self.tip):
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are about the body, which gave its own
            try:
                found = self._given.enriched(self.domain, self.material, self.density)
                if found is None:
                    return None
                domain = self.finer_choice.get("domain", found.domain or self.domain)
                if found.domain is None and isinstance(domain, DomainTetrahedra):
                    domain = domain.finer_rule()
                finer = replace(self, n=None, domain=domain, kinematics=found.kinematics)
                finer.check("enriched body")
            except ModelError:
                return None
        return finer, found

    @cached_property
    def integrals(self) -> ShapeIntegrals:
        """The integrals for inertia, weight and elasticity."""
        chosen = self.resolution.chosen
        return shared_by_equals(ShapeIntegrals, chosen.kinematics, chosen.quadrature, self.material, self.density)

    @cached_property
    def tip_pose(self) -> PoseFunction | MaterialFrame | None:
        """The pose of the tip in the body's frame as a function of θ."""
        if self.tip is None or callable(self.tip):
            return None if self.tip is None else PoseFunction(self.tip, self.motion.n)
        points = self._tip_points("tip")
        if len(points) == 1:
            return self.frame(points[0])
        return PoseFunction(_ContactFrame(self.motion, points), self.motion.n)

    @cached_property
    def frames(self) -> MaterialFrames:
        """The frames at material points."""
        return shared_by_equals(MaterialFrames, self.motion, self.integrals.points)

    def frame(self, x: np.ndarray) -> MaterialFrame:
        """The pose, as a function of θ, of the frame at a material point x (3,) [m] that follows the cross-section
        there."""
        return self.frames.at(x, turns=True)

    def material_point(self, s: Any, where: str) -> np.ndarray:
        places = self.domain.places
        if isinstance(s, str):
            checks.require(s in places, where, f"must name one of the places {sorted(places)}", s)
            return places[s]
        x = checks.array(s, (3,), where, "a material point must be a finite 3-vector")
        low, high = self._box
        reach = float((high - low).max())
        beside = float(np.maximum(np.maximum(low - x, x - high), 0.0).max())
        rule = f"a material point must lie within {reach:.3g} m, the body's size, of the reference shape"
        checks.require(beside <= reach, where, rule, s)
        return x

    @cached_property
    def _box(self) -> np.ndarray:
        """Least and largest x, y and z of the undeformed shape, shape (2, 3) [m]."""
        vertices = self.domain.surface().vertices
        return np.stack([vertices.min(axis=0), vertices.max(axis=0)])

    @property
    def touches(self) -> bool:
        return True

    @cached_property
    def ball_rows(self) -> np.ndarray:
        """The contact balls as rows (x, y, z, radius) [m]."""
        if isinstance(self.balls, int | np.integer):
            return surface_balls(self.domain, int(self.balls))
        return checks.array(self.balls, (-1, 4), "balls", "must be rows (x, y, z, radius), or how many")

    @property
    def doubt(self) -> str | None:
        """A warning about an implausible property, as a sentence; None if there is none."""
        more = too_stiff(self.material)
        if not more or not self.trials.rigid_sections:
            return None
        ratio = f"{1.0 + more:.3g} times too stiff" if np.isfinite(more) else "far too stiff"
        law = type(self.material).__name__
        text = f"its sections cannot expand sideways, so that {law} makes it {ratio} along its axis"
        return f"{text}; take HyperelasticUniaxial, or poisson=0"

    def stays(self, x: np.ndarray, pose: PoseFunction | MaterialFrame | None) -> bool:
        """Whether a material point (3,) has the same place for all θ, in the body's frame or in the frame `pose`."""
        places = list(self._seen(x))
        if pose is not None:
            at = [pose.motion(q)[0] for q in self._trial_q]
            places = [g[:3, :3].T @ (p - g[:3, 3]) for g, p in zip(at, places)]
        return float(np.abs(np.array(places) - places[0]).max()) <= _PLACE * self._size

    def _seen(self, x: np.ndarray) -> np.ndarray:
        """Positions of a material point (3,) at the trial θ, shape (k, 3)."""
        known = self.trials.seen
        key = x.tobytes()
        if key not in known:
            moved = self.motion.samples(x[None])
            known[key] = np.array([moved.positions(q)[0][0] for q in self._trial_q])
        return known[key]

    @property
    def feels_fluid(self) -> bool:
        return False

    @cached_property
    def _is_sound(self) -> list[bool]:
        """Not empty after the tip has passed its check, which takes seconds."""
        return []

    def __getstate__(self) -> dict[str, Any]:
        """The fields of the description, without compiled functions."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def moved(self, points: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Positions of material points (m, 3) at θ = q, shape (m, 3) [m]."""
        points, q = np.asarray(points, dtype=np.float64), np.asarray(q, dtype=np.float64)
        if self.motion.is_of_cells:  # shapes of many points would fill the memory
            return np.asarray(in_double(self.motion.positions)(points, q))
        return self.followed(points)(q)

    def followed(self, points: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """A function of θ that returns the positions of `points` (m, 3), for many calls."""
        moved, _ = self.motion.samples(points), self._sampled
        if self.motion.is_linear:
            shapes = moved.positions(np.zeros(self.motion.n))[1]
            return lambda q: points + shapes @ q
        return lambda q: moved.positions(q)[0]

    @cached_property
    def _sampled(self) -> Samples:
        """Samples of one point. They keep the compiled functions of all points alive as long as this body."""
        return self.motion.samples(np.zeros((1, 3)))

    def surface(self, q: np.ndarray) -> Surface:
        """The boundary surface at θ = q."""
        vertices, triangles = self.domain.surface()
        return Surface(self.moved(vertices, q), triangles)

    def check(self, where: str) -> None:
        try:
            import jax  # noqa: F401
        except ImportError:
            raise ModelError(f"{where}: a DeformableBody needs JAX: pip install 'lissom[deformable]'") from None
        motion = self._given
        rule = "must be a Kinematics or a function f(x, θ)"
        checks.require(
            callable(self.kinematics) or isinstance(self.kinematics, Kinematics),
            f"{where} > kinematics",
            rule,
            self.kinematics,
        )
        checks.require(isinstance(self.domain, Domain), f"{where}: domain", "must be a Domain", self.domain)
        checks.require(isinstance(self.material, Hyperelastic), f"{where}: material", "must be a Hyperelastic",
                       self.material)  # fmt: skip
        motion.check(f"{where} > kinematics")
        self.domain.check(f"{where} > domain")
        self.material.check(f"{where} > material")
        if not callable(self.density):
            checks.number(self.density, f"{where}: density", above=0.0)
        else:
            self._check_density(f"{where}: density")
        fits = self.n is None or self.n == motion.n
        checks.require(fits, f"{where}: n", f"must be {motion.n}, as the kinematics has it, or be left out", self.n)
        self._check_length(f"{where} > kinematics: length")
        self.resolution.check(where)
        self._check_masses(f"{where}: density")
        law, name = type(self.material).__name__, type(motion).__name__
        fits = motion.keeps_volume or not self.material.needs_volume_kept
        rule = f"{law} is incompressible and needs a kinematics that keeps volume"
        checks.require(fits, f"{where} > material", rule, name)
        self._check_balls(f"{where}: balls")
        fits = not self.material.needs_rigid_sections or not motion.is_of_cells
        checks.require(fits, f"{where} > material", f"{law} needs sections that keep their shape, not those of", name)
        if "sound" not in self.integrals.checked:
            self._check_motion(f"{where} > kinematics", f"{where} > material")
            self.resolution.warn(where)
            self.integrals.checked["sound"] = True
        if not self._is_sound:
            if self.tip is not None:
                if not motion.is_linear:
                    _ = self.integrals.native  # a thread compiles it while the tip is traced
                self._check_tip(f"{where}: tip")
            self._is_sound.append(True)

    def _check_balls(self, where: str) -> None:
        if isinstance(self.balls, int | np.integer):
            checks.integer(self.balls, where, least=1, most=1000)
            return
        rows = checks.array(self.balls, (-1, 4), where, "must be rows (x, y, z, radius), or how many")
        for k, row in enumerate(rows):
            self.material_point(row[:3], f"{where}[{k}]")
            checks.number(row[3], f"{where}[{k}]: radius", least=0.0)

    def _check_density(self, where: str) -> None:
        """Raise ModelError unless the density is a function of a point that returns a finite number."""
        x = self.domain.points[0]
        try:
            value = float(self.density(x))  # pyright: ignore[reportCallIssue]
        except Exception as error:
            rule = f"must be a function of a point (3,) that returns a number; it failed at {x.tolist()}"
            raise ModelError(f"{where}: {rule} ({type(error).__name__}: {error})") from error
        checks.require(bool(np.isfinite(value)), where, f"must be finite at {x.tolist()}", value)

    def _check_length(self, where: str) -> None:
        """Raise ModelError if the domain has points beyond the length of its kinematics, or in its first half only."""
        length, domain = getattr(self._given, "length", None), self.domain
        if isinstance(length, float | int):
            x = np.array([0.0, domain.length]) if isinstance(domain, SweptDomain) else domain.points[:, 0]
            low, high = float(x.min()), float(x.max())
            fits = low >= -_BEYOND * length and 0.5 * length <= high <= (1.0 + _BEYOND) * length
            rule = f"must be that of the domain, which reaches from x = {low:.4g} to {high:.4g} m"
            checks.require(fits, where, rule, length)

    def _check_masses(self, where: str) -> None:
        lightest = float(self.integrals.masses.min())
        checks.require(lightest > 0.0, where, "must be > 0 everywhere", lightest)

    @property
    def trials(self) -> TrialMoves:
        """Trial motions at small θ."""
        known = self.integrals.checked
        if "trials" not in known:
            known["trials"] = shared_by_equals(TrialMoves, self.motion, self.resolution.chosen.whole)
        return known["trials"]

    @property
    def _trial_q(self) -> np.ndarray:
        """Small test values of θ, shape (k, n); the first row is zero."""
        return self.trials.q

    @property
    def _size(self) -> float:
        return self.trials.size

    def _check_motion(self, where: str, material: str) -> None:
        self.trials.check(where)
        fits = not self.material.needs_rigid_sections or self.trials.rigid_sections
        rule = f"{type(self.material).__name__} needs sections that keep their shape, not those of"
        checks.require(fits, material, rule, type(self.motion).__name__)
        tried = np.stack([self._trial_q[0], 10.0 * self._trial_q[1]])
        check_independent(self.motion, self.domain, self.resolution.chosen.quadrature, tried, where)

    def _tip_points(self, where: str) -> np.ndarray:
        """The material points of the tip, shape (1, 3) or (3, 3)."""
        given = self.tip
        if isinstance(given, str) or (isinstance(given, Sequence | np.ndarray) and not any(map(checks.shape, given))
                                      and not any(isinstance(part, str) for part in given)):  # fmt: skip
            given = (given,)
        rule = "must be one or three material points or places, a function of θ, or None"
        checks.require(isinstance(given, Sequence | np.ndarray) and len(given) in (1, 3), where, rule, self.tip)
        return np.stack([self.material_point(part, where) for part in given])

    def _check_tip(self, where: str) -> None:
        if not callable(self.tip):
            points = self._tip_points(where)
            if len(points) == 3:
                self._check_contact(points, where)
        pose = self.tip_pose
        if pose is not None:
            pose.check(where)

    def _check_contact(self, points: np.ndarray, where: str) -> None:
        """Raise ModelError unless the area through the three points stays rigid (Assumption 2)."""
        arms = points[1:] - points[0]
        lengths = np.linalg.norm(arms, axis=1)
        checks.require(bool((lengths > 0.0).all()), where, "its points must differ", points)
        cosine = arms[0] @ arms[1] / np.prod(lengths)
        checks.require(abs(cosine) <= _PLACE, where, "the arms to its second and third point must be at right angles; "
                       "their cosine must be 0", float(cosine))  # fmt: skip
        gram = arms @ arms.T
        for q in self._trial_q:
            moved = self.moved(points, q)
            change = (moved[1:] - moved[0]) @ (moved[1:] - moved[0]).T - gram
            off = float(np.abs(change).max() / lengths.min())
            rule = f"its points must move as a rigid area; lengths and angles change at θ = {short(q)}, in metres by"
            if not off <= _PLACE * self._size:
                raise ModelError(f"{where}: {rule} {off:.3g} (one point as tip follows an area that deforms)")


@final
@dataclass(frozen=True, eq=False)
class _ContactFrame:
    """The pose of the contact area through three material points (x_J, x_a, x_b), Pustina 2025 (4)–(6). At θ = 0 it has
    the body's axes."""

    motion: Kinematics
    points: np.ndarray

    def __call__(self, q: Any) -> Any:
        import jax.numpy as jnp

        moved = self.motion.positions(self.points, q)
        return _pose(_axes(moved, jnp) @ _axes(self.points, np).T, moved[0])


def _axes(points: Any, xp: Any) -> Any:
    """The axes n_1, n_2 and n_3 of Pustina 2025 (5) as columns of a matrix."""
    a, b = points[1] - points[0], points[2] - points[0]
    a, b = a / xp.sqrt(a @ a), b / xp.sqrt(b @ b)
    return xp.stack([a, b, xp.cross(a, b)], axis=-1)


def _pose(R: Any, r: Any) -> Any:
    """The pose (4, 4) with rotation R and position r."""
    import jax.numpy as jnp

    return jnp.concatenate([jnp.concatenate([R, r[:, None]], axis=1), jnp.array([[0.0, 0.0, 0.0, 1.0]])])
