"""A clamped inextensible rod in a plane, by three methods that share nothing with the library: the implicit steps of
Boyer 2023 (appendix 2), explicit integration of strain modes, and shooting along the rod.

The rod hangs along e₁ from a clamp, gravity γ points along e₁. θ is the angle of the tangent, κ = θ' its curvature, N
and M are the force and the moment that the part beyond X exerts.

    r' = t = (cos θ, sin θ),   N' = ρA (r̈ − γ),   M' = ρI θ̈ − t × N,   N = M = 0 at the tip                (1)
    R = ∫ Φ (EI κ − M) dX = 0,   κ = Φᵀ q                           strain modes, (41), (44), (64) there    (2)
    ∂R/∂q by (1) and (2) along δκ = Φ, δq̇ = a δq, δq̈ = b δq                     (50), (54), (66) there    (3)
    q̈ = −M⁻¹ R(q, q̇, 0)                                            by Dormand and Prince                   (4)
    θ' = M / EI and (1) with r̈, θ̈ by BDF2, N and M at the clamp by Newton       no modes                   (5)

The rods of (2) have orthonormal modes on Gauss points; integrals from the clamp are exact for polynomials through these
points. A shot (5) runs from the clamp to the tip. Inertia makes errors grow along the rod as on an elastic foundation,
with the factor exp(k l / √2), k⁴ = 4 ρA / (EI h²), for a step h: this is e⁸ for the stiff rod of the paper and e³³ for
the soft one in steps of 10 ms, more than the digits of a number. There shooting fails.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.integrate import RK45

GRAVITY = np.array([9.81, 0.0])


@dataclass(frozen=True)
class Motion:
    """A motion at times t (n,): tips (n, 2) [m], energies (n,) [J], the number of evaluations of the equations and the
    processor time [s]."""

    t: np.ndarray
    tip: np.ndarray
    energy: np.ndarray
    evaluations: int
    seconds: float


_STEPS, _NUDGE, _LEAST = 100, 1e-7, 1e-6  # most steps of a search, relative difference, and least part of a step
_MET = 1e-8  # relative step at the clamp that ends a search


class Stopped(Exception):
    """No solution of a step was found. Its argument is the time reached [s]."""


@dataclass(frozen=True)
class PlanarRod:
    """The rod of (1) with n_modes polynomial modes."""

    length: float
    density: float
    young: float
    radius: float
    n_modes: int = 3
    n_points: int = 20

    @property
    def mass(self) -> float:
        """ρA [kg/m]."""
        return self.density * np.pi * self.radius**2

    @property
    def inertia(self) -> float:
        """ρI [kg·m]."""
        return self.density * 0.25 * np.pi * self.radius**4

    @property
    def bending(self) -> float:
        """EI [N·m²]."""
        return self.young * 0.25 * np.pi * self.radius**4

    @cached_property
    def grid(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Gauss weights (n,), the matrix of integrals from 0 to each point (n, n), the modes Φ (n, n_modes) and their
        integrals (n, n_modes)."""
        x, w = np.polynomial.legendre.leggauss(self.n_points)
        basis = np.polynomial.legendre.legvander(x, self.n_points)
        upto = np.zeros((self.n_points, self.n_points))  # ∫ of P_k from −1 is (P_k+1 − P_k−1)/(2k + 1)
        upto[:, 0] = x + 1.0
        for k in range(1, self.n_points):
            upto[:, k] = (basis[:, k + 1] - basis[:, k - 1]) / (2 * k + 1)
        S = 0.5 * self.length * upto @ np.linalg.inv(basis[:, :-1])
        modes = basis[:, : self.n_modes] * np.sqrt((2 * np.arange(self.n_modes) + 1) / self.length)
        return 0.5 * self.length * w, S, modes, S @ modes

    def beyond(self, f: np.ndarray) -> np.ndarray:
        """Integrals of f (n, ...) from each point to the tip."""
        w, S, *_ = self.grid
        return np.tensordot(w[None] - S, f, axes=1)

    def residual(
        self, q: np.ndarray, v: np.ndarray, a: np.ndarray, rates: tuple[float, float] | None = None, force: Any = (0, 0)
    ) -> tuple[np.ndarray, np.ndarray]:
        """R of (2), shape (n_modes,), and its derivative (3) for `rates` (a, b). `force` acts at the tip [N]."""
        w, S, modes, turns = self.grid
        theta, rate, bend = turns @ q, turns @ v, turns @ a
        t, n = np.stack([np.cos(theta), np.sin(theta)], 1), np.stack([-np.sin(theta), np.cos(theta)], 1)
        acceleration = S @ (bend[:, None] * n - rate[:, None] ** 2 * t)
        N = np.asarray(force) + self.beyond(self.mass * (GRAVITY - acceleration))
        M = self.beyond(t[:, 0] * N[:, 1] - t[:, 1] * N[:, 0] - self.inertia * bend)
        R = self.bending * q - modes.T @ (w * M)
        if rates is None:
            return R, np.zeros((0, 0))
        first, second = rates
        along = second * turns - (rate**2)[:, None] * turns  # of n, and below of t
        across = -(bend[:, None] * turns) - 2.0 * first * rate[:, None] * turns
        moved = np.einsum("ij,jkc->ikc", S, along[:, :, None] * n[:, None] + across[:, :, None] * t[:, None])
        dN = self.beyond(-self.mass * moved)
        dM = turns * (n[:, :1] * N[:, 1:] - n[:, 1:] * N[:, :1])
        dM = dM + t[:, :1] * dN[:, :, 1] - t[:, 1:] * dN[:, :, 0] - self.inertia * second * turns
        return R, self.bending * np.eye(self.n_modes) - modes.T @ (w[:, None] * self.beyond(dM))

    def rest(self, force: float, parts: int = 200) -> np.ndarray:
        """Equilibrium under a horizontal force at the tip [N], which grows in parts."""
        q, zero = np.zeros(self.n_modes), np.zeros(self.n_modes)
        for part in np.linspace(0.0, 1.0, parts + 1)[1:] ** 3:
            for _ in range(50):
                R, K = self.residual(q, zero, zero, (0.0, 0.0), (0.0, part * force))
                step = np.linalg.solve(K, R)
                q = q - step / max(1.0, 2.0 * np.abs(self.grid[3] @ step).max())
                if np.abs(step).max() < 1e-12 * (1.0 + np.abs(q).max()):
                    break
        return q

    def shape(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Angles (n,) and positions (n, 2) at the Gauss points."""
        _, S, _, turns = self.grid
        theta = turns @ q
        return theta, S @ np.stack([np.cos(theta), np.sin(theta)], 1)

    def tip(self, q: np.ndarray) -> np.ndarray:
        """Position of the tip, shape (2,)."""
        theta = self.grid[3] @ q
        return self.grid[0] @ np.stack([np.cos(theta), np.sin(theta)], 1)

    def energy(self, q: np.ndarray, v: np.ndarray) -> float:
        """Kinetic and elastic energy, and that of gravity above the straight rod [J]."""
        w, S, _, turns = self.grid
        theta, r = self.shape(q)
        rate = turns @ v
        speed = S @ (rate[:, None] * np.stack([-np.sin(theta), np.cos(theta)], 1))
        kinetic = 0.5 * w @ (self.mass * (speed**2).sum(1) + self.inertia * rate**2)
        fallen = 0.5 * self.length**2 - w @ r[:, 0]
        return float(kinetic + 0.5 * self.bending * q @ q + self.mass * GRAVITY[0] * fallen)

    def newmark(self, q: np.ndarray, h: float, duration: float, iterations: int = 25) -> Motion:
        """Algorithm 1 of the paper: average acceleration, the inertial predictor q̈ = 0, Newton's method with (3). At
        the start q̇ = q̈ = 0, as under the force that vanishes then.

        Raises:
            Stopped: Newton's method does not converge.
        """
        began, count = time.process_time(), 0
        v, a = np.zeros((2, self.n_modes))
        first, second = 2.0 / h, 4.0 / h**2
        tips, energies = [self.tip(q)], [self.energy(q, v)]
        for k in range(round(duration / h)):
            x = q + h * v + 0.25 * h * h * a
            for _ in range(iterations):
                now = second * (x - q - h * v) - a
                R, J = self.residual(x, v + 0.5 * h * (a + now), now, (first, second))
                count += 1
                if not np.isfinite(J).all():
                    raise Stopped(k * h)
                step = np.linalg.solve(J, R)
                x = x - step
                if np.abs(step).max() < 1e-9 * (1.0 + np.abs(x).max()):
                    break
            else:
                raise Stopped(k * h)
            now = second * (x - q - h * v) - a
            v, a, q = v + 0.5 * h * (a + now), now, x
            tips.append(self.tip(q))
            energies.append(self.energy(q, v))
        t = h * np.arange(len(tips))
        return Motion(t, np.array(tips), np.array(energies), count, time.process_time() - began)

    def explicit(self, q: np.ndarray, duration: float, tolerance: float = 1e-6, every: float = 0.01) -> Motion:
        """The motion by (4), as the papers [26] and [27] of Table I have it, at multiples of `every`."""
        began, n, w = time.process_time(), self.n_modes, self.grid[0]
        _, S, _, turns = self.grid

        def rate(_: float, x: np.ndarray) -> np.ndarray:
            theta = turns @ x[:n]
            normal = np.stack([-np.sin(theta), np.cos(theta)], 1)
            moves = np.einsum("ij,jkc->ikc", S, turns[:, :, None] * normal[:, None])
            mass = self.mass * np.einsum("i,ikc,ijc->kj", w, moves, moves) + self.inertia * (turns.T * w) @ turns
            return np.concatenate([x[n:], -np.linalg.solve(mass, self.residual(x[:n], x[n:], np.zeros(n))[0])])

        solver = RK45(rate, 0.0, np.concatenate([q, np.zeros(n)]), duration, rtol=tolerance, atol=tolerance)
        times, rows = [0.0], [solver.y]
        while solver.status == "running":
            solver.step()
            dense = solver.dense_output()
            while len(times) * every <= solver.t + 1e-12 and len(times) * every <= duration + 1e-12:
                rows.append(dense(len(times) * every))
                times.append(len(times) * every)
        tips = np.array([self.tip(x[:n]) for x in rows])
        energies = np.array([self.energy(x[:n], x[n:]) for x in rows])
        return Motion(np.array(times), tips, energies, solver.nfev, time.process_time() - began)

    def shooting(self, force: float, h: float, duration: float, pieces: int = 50) -> Motion:
        """The motion by (5), as the papers [10] and [11] of Table I have it: Runge and Kutta's method along the rod in
        equal pieces, BDF2 in time. The start is the equilibrium under a horizontal force at the tip,
        which is found in the same way. Energies are left out.

        Raises:
            Stopped: Newton's method on the force and the moment at the clamp does not converge.
        """
        began, count, dx = time.process_time(), 0, self.length / pieces
        rest = np.zeros((2 * pieces + 1, 3))
        base = np.array([self.mass * GRAVITY[0] * self.length, 0.0, 0.0])
        for part in np.linspace(0.0, 1.0, 201)[1:] ** 3:
            goal = np.array([0.0, part * force, 0.0])
            base, y, shots = self._met(base, rest, 0.0, dx, goal)
            count += shots
            if y is None:
                raise Stopped(0.0)
        tips, before, v, v_before, first = [y[-1, :2]], y, np.zeros_like(y), np.zeros_like(y), 1.5 / h
        bases = [base, base, base]
        for k in range(round(duration / h)):
            slow, fast = (0.5 * before - 2.0 * y) / h, (0.5 * v_before - 2.0 * v) / h
            known = first * slow + fast  # ÿ = (1.5 / h)² y⁺ + known
            for guess in (3.0 * (bases[-1] - bases[-2]) + bases[-3], 2.0 * bases[-1] - bases[-2], bases[-1]):
                base, after, shots = self._met(guess, known, first**2, dx, np.zeros(3))
                count += shots
                if after is not None:
                    break
            else:
                raise Stopped(k * h)
            bases = [*bases[1:], base]
            before, y, v_before, v = y, after, v, first * after + slow
            tips.append(y[-1, :2])
        t = h * np.arange(len(tips))
        return Motion(t, np.array(tips), np.full(len(t), np.nan), count, time.process_time() - began)

    def _met(
        self, base: np.ndarray, known: np.ndarray, inertia: float, dx: float, goal: np.ndarray
    ) -> tuple[np.ndarray, Any, int]:
        """Force and moment at the clamp, by damped Newton steps, for which those at the tip are `goal`; r and θ along
        the rod, None if no step comes nearer; and the number of shots."""
        size = np.array([1.0, 1.0, self.length]) * max(float(np.abs(base).max()), 1e-9)
        (ends,), rows = self._shot(base[None], known, inertia, dx)
        shots = 1
        for _ in range(_STEPS):
            shots += 1
            nudged, _ = self._shot(base + _NUDGE * np.diag(size), known, inertia, dx)
            J = (nudged - ends).T / _NUDGE
            miss = ends - goal
            if not np.isfinite(J).all():
                return base, None, shots
            step, part = -np.linalg.solve(J, miss), 1.0
            while part > _LEAST:  # the next step with the same J is to be shorter (natural monotonicity)
                (after,), seen = self._shot((base + part * size * step)[None], known, inertia, dx)
                shots += 1
                if np.linalg.norm(np.linalg.solve(J, after - goal)) < (1.0 - 0.25 * part) * np.linalg.norm(step):
                    break
                part *= 0.5
            else:
                settled = np.abs(step).max() < _MET
                return base, rows[:, 0] if settled else None, shots
            base, ends, rows = base + part * size * step, after, seen
            if part == 1.0 and np.abs(step).max() < _MET:
                return base, rows[:, 0], shots
        return base, None, shots

    def _shot(self, base: np.ndarray, known: np.ndarray, inertia: float, dx: float) -> tuple[np.ndarray, np.ndarray]:
        """(1) from the clamp with forces and moments `base` (n, 3): N and M at the tip (n, 3), and r and θ at the ends
        and middles of the pieces (2 pieces + 1, n, 3)."""

        def rate(state: np.ndarray, known: np.ndarray) -> np.ndarray:
            r, theta, N, M = state[:, :2], state[:, 2], state[:, 3:5], state[:, 5]
            t = np.stack([np.cos(theta), np.sin(theta)], 1)
            force = self.mass * (inertia * r + known[:2] - GRAVITY)
            moment = self.inertia * (inertia * theta + known[2]) - t[:, 0] * N[:, 1] + t[:, 1] * N[:, 0]
            return np.concatenate([t, (M / self.bending)[:, None], force, moment[:, None]], 1)

        state = np.concatenate([np.zeros((len(base), 3)), base], 1)
        rows = [state[:, :3]]
        for k in range(0, len(known) - 2, 2):
            k1 = rate(state, known[k])
            k2 = rate(state + 0.5 * dx * k1, known[k + 1])
            k3 = rate(state + 0.5 * dx * k2, known[k + 1])
            k4 = rate(state + dx * k3, known[k + 2])
            after = state + dx / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
            rows.append(0.5 * (state + after)[:, :3] + 0.125 * dx * (k1 - rate(after, known[k + 2]))[:, :3])
            state = after
            rows.append(state[:, :3])
        return state[:, 3:], np.stack(rows)
