"""Rigid closed mechanisms reduced to one coordinate, and bodies on a hinge or a point: references in NumPy and SciPy.

The plane of a mechanism is the complex plane. A jet is the value of a function of the crank angle θ with its first and
second derivative, in rows. Of body k: centre of mass c_k, angle φ_k, mass m_k, moment of inertia J_k about c_k.

    I(θ) θ̈ + ½ I'(θ) θ̇² + V'(θ) = torque,    I = Σ m_k |c_k'|² + J_k φ_k'²,    V = −Σ m_k g·c_k               (1)
    m_k c̈_k = m_k g + Σ f,    J_k φ̈_k = Σ (r × f + m),   f, m of the joints and the torque on body k    (2)
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

GRAVITY = -9.81j
FORCE = (1.0, 1.0j)  # a pin's unknowns; a moment is an unknown of its own
EXACT = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-12}


def turned(angle, z=1.0):
    """Jet of z exp(iφ) for the jet of φ."""
    e = z * np.exp(1j * angle[0])
    return np.array([e, 1j * angle[1] * e, (1j * angle[2] - angle[1] ** 2) * e])


def parts(z, w, right):
    """Real x and y with z x + w y = right."""
    det = (z.conjugate() * w).imag
    return (right.conjugate() * w).imag / det, (z.conjugate() * right).imag / det


def cross(r, f):
    """r × f in the plane."""
    return (np.conjugate(r) * f).imag


@dataclass(frozen=True)
class Joint:
    """What joint `name` at a place does to body `on`, and in reverse to body `by` (None: the ground)."""

    name: str
    on: int
    by: int | None
    place: complex
    forces: tuple = FORCE
    moment: bool = False


class Mechanism(ABC):
    """A planar mechanism of one degree of freedom; body 0 is the crank, which turns about the origin."""

    masses: tuple

    @property
    @abstractmethod
    def inertias(self) -> tuple:
        """J of each body."""

    @abstractmethod
    def bodies(self, theta: float) -> tuple[np.ndarray, np.ndarray]:
        """Jets of the centres of mass and of the angles, each (3, bodies)."""

    @abstractmethod
    def joints(self, theta: float) -> list[Joint]:
        """The joints with their places."""

    def inertia(self, theta):
        """I and I' of (1)."""
        c, phi = self.bodies(theta)
        m, J = np.array(self.masses), np.array(self.inertias)
        value = m @ np.abs(c[1]) ** 2 + J @ phi[1] ** 2
        return value, 2.0 * (m @ (c[1].conj() * c[2]).real + J @ (phi[1] * phi[2]))

    def potential(self, theta):
        """Jet of V of (1)."""
        c, _ = self.bodies(theta)
        return -np.real(np.conj(GRAVITY) * c) @ np.array(self.masses)

    def energy(self, theta, speed):
        """Kinetic and potential energy."""
        return 0.5 * self.inertia(theta)[0] * speed**2 + self.potential(theta)[0]

    def acceleration(self, theta, speed, torque=0.0):
        """Angular acceleration of the crank from (1)."""
        value, slope = self.inertia(theta)
        return (torque - self.potential(theta)[1] - 0.5 * slope * speed**2) / value

    def motion(self, theta, speed, times, torque=0.0):
        """Angle, speed and acceleration of the crank, (3, n), under a constant torque."""

        def rate(_, y):
            return [y[1], self.acceleration(y[0], y[1], torque)]

        y = solve_ivp(rate, (0.0, times[-1]), [theta, speed], t_eval=times, **EXACT).y
        return np.array([*y, [self.acceleration(x, v, torque) for x, v in y.T]])

    def reactions(self, theta, speed, acceleration):
        """Forces (complex) and moments of the joints on their body `on`, and the torque on the crank, all from (2)."""
        c, phi = self.bodies(theta)
        m, J = np.array(self.masses), np.array(self.inertias)
        columns, count = [], len(m)
        joints = self.joints(theta)
        for joint in joints:
            for force, moment in [(f, 0.0) for f in joint.forces] + [(0.0, 1.0)] * joint.moment:
                column = np.zeros((3, count))
                for body, sign in ((joint.on, 1.0), (joint.by, -1.0)):
                    if body is not None:
                        turning = cross(joint.place - c[0, body], force) + moment
                        column[:, body] += sign * np.array([np.real(force), np.imag(force), turning])
                columns.append(column.ravel())
        columns.append(np.eye(3 * count)[2 * count])
        force = m * (c[1] * acceleration + c[2] * speed**2 - GRAVITY)
        moment = J * (phi[1] * acceleration + phi[2] * speed**2)
        x = list(np.linalg.solve(np.transpose(columns), np.concatenate([force.real, force.imag, moment])))
        found = {}
        for joint in joints:
            found[joint.name] = sum(x.pop(0) * f for f in joint.forces)
            if joint.moment:
                found[joint.name + " moment"] = x.pop(0)
        return found, x.pop()


@dataclass(frozen=True)
class FourBar(Mechanism):
    """Crank OA, coupler AB, rocker DB, ground OD along x; uniform slender bars.

    B is on the left of A → D or, folded, on its right. The shortest bar is the crank and with the longest no longer
    than the others together: it turns all the way round.
    """

    ground: float = 0.40
    crank: float = 0.12
    coupler: float = 0.38
    rocker: float = 0.30
    masses: tuple = (0.6, 1.1, 0.9)
    folded: bool = False

    @property
    def lengths(self):
        """Of crank, coupler and rocker."""
        return self.crank, self.coupler, self.rocker

    @property
    def inertias(self):
        """Of slender bars about their middle."""
        return tuple(m * length**2 / 12 for m, length in zip(self.masses, self.lengths))

    def angles(self, theta):
        """Jets of θ, φ (coupler) and ψ (rocker), (3, 3); a e^{iθ} + b e^{iφ} = d + c e^{iψ}."""
        a, b, c = self.lengths
        A = a * np.exp(1j * theta)
        across = self.ground - A
        s = abs(across)
        x = (s * s + b * b - c * c) / (2.0 * s)
        B = A + across / s * (x + (-1j if self.folded else 1j) * np.sqrt(b * b - x * x))
        e, f, h = np.exp(1j * theta), (B - A) / b, (B - self.ground) / c
        first = parts(b * f, -c * h, -a * e)
        second = parts(b * f, -c * h, -1j * (a * e + b * first[0] ** 2 * f - c * first[1] ** 2 * h))
        return np.array([[theta, np.angle(f), np.angle(h)], [1.0, *first], [0.0, *second]])

    def bodies(self, theta):
        angles = self.angles(theta)
        a, b, c = (turned(angle, length) for angle, length in zip(angles.T, self.lengths))
        pivot = np.array([self.ground, 0.0, 0.0])
        return np.stack([0.5 * a, a + 0.5 * b, pivot + 0.5 * c], axis=1), angles

    def joints(self, theta):
        angles = self.angles(theta)[0]
        A = self.crank * np.exp(1j * theta)
        B = A + self.coupler * np.exp(1j * angles[1])
        return [Joint("O", 0, None, 0j), Joint("A", 1, 0, A), Joint("B", 1, 2, B), Joint("D", 2, None, self.ground)]


@dataclass(frozen=True)
class SliderCrank(Mechanism):
    """Crank OA, rod AB, slider at B on the line y = offset; uniform slender bars; the rod is longer than the crank."""

    crank: float = 0.10
    rod: float = 0.27
    offset: float = 0.03
    masses: tuple = (0.7, 0.5, 0.8)
    slider_inertia: float = 1e-3

    @property
    def inertias(self):
        """Of slender bars about their middle, and of the slider, which never turns."""
        m = self.masses
        return m[0] * self.crank**2 / 12, m[1] * self.rod**2 / 12, self.slider_inertia

    def angles(self, theta):
        """Jets of θ and φ (rod), (3, 2); r sin θ + l sin φ = e."""
        phi = np.arcsin((self.offset - self.crank * np.sin(theta)) / self.rod)
        first = -self.crank * np.cos(theta) / (self.rod * np.cos(phi))
        second = (self.crank * np.sin(theta) / self.rod + np.sin(phi) * first**2) / np.cos(phi)
        return np.array([[theta, phi], [1.0, first], [0.0, second]])

    def slide(self, theta):
        """Jet of the slider's x."""
        a, b = (turned(angle, length) for angle, length in zip(self.angles(theta).T, (self.crank, self.rod)))
        return np.real(a + b)

    def bodies(self, theta):
        angles = self.angles(theta)
        a, b = (turned(angle, length) for angle, length in zip(angles.T, (self.crank, self.rod)))
        return np.stack([0.5 * a, a + 0.5 * b, a + b], axis=1), np.column_stack([angles, np.zeros(3)])

    def joints(self, theta):
        A = self.crank * np.exp(1j * theta)
        B = self.slide(theta)[0] + 1j * self.offset
        guide = Joint("guide", 2, None, B, forces=(1.0j,), moment=True)
        return [Joint("O", 0, None, 0j), Joint("A", 1, 0, A), Joint("B", 1, 2, B), guide]


def skew(x):
    """The matrix of x ×."""
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def rotation(w):
    """exp of a rotation vector by Rodrigues' formula."""
    angle = np.linalg.norm(w)
    if angle == 0.0:
        return np.eye(3)
    W = skew(w / angle)
    return np.eye(3) + np.sin(angle) * W + (1.0 - np.cos(angle)) * W @ W


@dataclass(frozen=True)
class HeldBody:
    """A rigid body held at the origin of its frame, in the field `gravity`; inertia about its centre of mass.

    With c the centre of mass and I_O = I − m c^ c^, all in body axes, at the attitude R:

        moment about the origin  I_O ω̇ + ω × I_O ω − m c × Rᵀg,   force  m (ω̇ × c + ω × (ω × c)) − m Rᵀg    (3)
    """

    mass: float
    com: tuple
    inertia: tuple
    gravity: tuple

    def about_origin(self):
        """I_O, 3x3."""
        C = skew(self.com)
        return np.diag(self.inertia) - self.mass * C @ C

    def wrench(self, R, omega, alpha):
        """(Moment; force) on the body at the origin, in world axes, that the motion needs: (3)."""
        c, I_O, g = np.array(self.com), self.about_origin(), R.T @ self.gravity
        moment = I_O @ alpha + np.cross(omega, I_O @ omega) - self.mass * np.cross(c, g)
        force = self.mass * (np.cross(alpha, c) + np.cross(omega, np.cross(omega, c)) - g)
        return np.concatenate([R @ moment, R @ force])

    def on_hinge(self, axis, angle, speed, times):
        """Angle, speed and acceleration (3, n) about a unit axis fixed in body and world, and wrenches (n, 6)."""
        e = np.array(axis)

        def acceleration(x):
            still = self.wrench(rotation(x * e), 0.0 * e, 0.0 * e)
            return -(e @ still[:3]) / (e @ self.about_origin() @ e)  # a turn about e has no moment of its own along e

        def rate(_, y):
            return [y[1], acceleration(y[0])]

        y = solve_ivp(rate, (0.0, times[-1]), [angle, speed], t_eval=times, **EXACT).y
        motion = np.array([*y, [acceleration(x) for x in y[0]]])
        return motion, np.array([self.wrench(rotation(x * e), v * e, a * e) for x, v, a in motion.T])

    def on_point(self, R, omega, times):
        """Attitudes (n, 3, 3), angular velocities (n, 3) in body axes and wrenches (n, 6) of the free turn: a top."""
        I_O, c = self.about_origin(), np.array(self.com)

        def spin(R, omega):
            moment = self.mass * np.cross(c, R.T @ self.gravity)
            return np.linalg.solve(I_O, moment - np.cross(omega, I_O @ omega))

        def rate(_, y):
            R, omega = y[:9].reshape(3, 3), y[9:]
            return np.concatenate([(R @ skew(omega)).ravel(), spin(R, omega)])

        y = solve_ivp(rate, (0.0, times[-1]), np.concatenate([R.ravel(), omega]), t_eval=times, **EXACT).y.T
        states = [(x[:9].reshape(3, 3), x[9:]) for x in y]
        wrenches = np.array([self.wrench(R, omega, spin(R, omega)) for R, omega in states])
        return np.array([R for R, _ in states]), y[:, 9:], wrenches


@dataclass(frozen=True)
class Truss:
    """Two rigid bars of one length hinged at the apex; the left foot is pinned, the right one slides on a spring.

    The feet stand x apart and the apex at height h, x² + 4h² = 4L²; the spring is slack at x₀. From the energy
    ½ k (x − x₀)² + P h, whose second derivative at an equilibrium is −P'(h):

        P(h) = 4 k h (1 − x₀/x),    P' = 0 at x_c³ = 4 L² x₀                                                   (4)
    """

    bar: float = 0.5
    height: float = 0.12
    stiffness: float = 900.0

    def span(self, h):
        """x where the apex is at height h."""
        return 2.0 * np.sqrt(self.bar**2 - h * h)

    def load(self, h):
        """P(h), downwards on the apex."""
        return 4.0 * self.stiffness * h * (1.0 - self.span(self.height) / self.span(h))

    def limit(self):
        """Height and load of the first limit point; the second has both signs turned."""
        x = (4.0 * self.bar**2 * self.span(self.height)) ** (1.0 / 3.0)
        h = np.sqrt(self.bar**2 - 0.25 * x * x)
        return h, self.load(h)
