"""The independent slow model: a robot by explicit Jacobians (SoRoSim 2022 §2-3), in the body frame.

    g, J, dJ/dt of every node from those of its parent          (9)-(19), (34)-(43)
    M = sum J'MJ, C, K, D, B, F by quadrature                   (25)-(30)

It shares nothing with the library: it reads the description (`reference_tables`) and takes every exponential and
tangent operator from `scipy.linalg.expm` (`reference_lie`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from reference import reference_tables as tables
from reference.reference_lie import (
    Ad,
    ad,
    adbar,
    exp,
    hat3,
    inverse,
    log,
    quaternion_of_pose,
    tangent,
    tangent_and_derivative,
    translation,
)

KEPT = 4  # states whose points are


class Point(NamedTuple):
    """A frame of the robot: pose, body Jacobian, its time derivative, and the inertia it carries."""

    g: np.ndarray
    J: np.ndarray
    dJ: np.ndarray
    inertia: np.ndarray | None = None


class Energy(NamedTuple):
    """Energies [J]."""

    kinetic: float
    gravitational: float
    elastic: float

    @property
    def total(self):
        return self.kinetic + self.gravitational + self.elastic


def move(point, g, S=None, dS=None, columns=None, v=None):
    """The point reached by the relative pose g, with motion subspace S (and its rate) in the moved frame."""
    back = Ad(inverse(g))
    J, dJ = back @ point.J, back @ point.dJ
    if S is not None:
        dJ = dJ - ad(S @ v[columns]) @ J
        J[:, columns] += S
        dJ[:, columns] += dS
    return Point(point.g @ g, J, dJ)


def at_zannah_points(function, s0, s1, points):
    """The straight line that fits a function of s best on [s0, s1], where (34) wants it; 2 points give the papers'."""
    x, weight = np.polynomial.legendre.leggauss(points or 12)
    values = np.array([function(s0 + (s1 - s0) * (1 + at) / 2) for at in x])
    level, rise = np.polynomial.polynomial.polyfit(x, values.reshape(len(x), -1), 1, w=np.sqrt(weight))
    return [(level + side / np.sqrt(3) * rise).reshape(values.shape[1:]) for side in (-1, 1)]


class ReferenceModel:
    """Slow model of a lissom.Robot; q, v, a are single vectors, no batches."""

    def __init__(self, robot):
        self.robot = robot
        self.gravity = np.asarray(robot.gravity, dtype=float)
        self.q_joint, self.q_body, self.v_joint, self.v_body = {}, {}, {}, {}
        nq = nv = 0
        for name, link in robot.links.items():
            body = tables.basis_matrix(link.body.basis, 0.377).shape[1] if tables.kind(link.body) == "Rod" else 0
            joint_q, joint_v = tables.joint_sizes(link.joint)
            self.q_joint[name], self.v_joint[name] = slice(nq, nq + joint_q), slice(nv, nv + joint_v)
            nq, nv = nq + joint_q, nv + joint_v
            self.q_body[name], self.v_body[name] = slice(nq, nq + body), slice(nv, nv + body)
            nq, nv = nq + body, nv + body
        self.nq, self.nv = nq, nv
        self.inputs = self._inputs()
        self.nu = sum(size for _, size, _ in self.inputs)
        self._states = {}  # points by link of the last few states, with q and v
        self._lines = {}  # of bases and reference strains on the intervals that were asked for

    # --- configuration ---------------------------------------------------------------------------------------------

    def neutral(self):
        """Every pair of joint frames coincident, every strain at its reference."""
        q = np.zeros(self.nq)
        for name, link in self.robot.links.items():
            q[self.q_joint[name]] = tables.joint_neutral(link.joint)
        return q

    def integrate(self, q, dv):
        """q moved by the tangent vector dv: R exp(w), p + R V(w) u for stored poses."""
        out = np.zeros(self.nq)
        for name, link in self.robot.links.items():
            here, step = q[self.q_joint[name]], dv[self.v_joint[name]]
            if tables.joint_screws(link.joint) is None:
                free = len(here) == 7
                g = tables.joint_pose(link.joint, here)
                turned = g @ exp(np.r_[step[:3], np.zeros(3)])
                p = g[:3, 3] + g[:3, :3] @ translation(step[:3]) @ step[3:] if free else np.zeros(0)
                out[self.q_joint[name]] = np.r_[quaternion_of_pose(turned), p]
            else:
                out[self.q_joint[name]] = here + step
            out[self.q_body[name]] = q[self.q_body[name]] + dv[self.v_body[name]]
        return out

    # --- kinematics ------------------------------------------------------------------------------------------------

    def points(self, q, v=None):
        """Points of every link: (s, Point) pairs, s = 0 the joint's child frame, then the rod's points."""
        v = np.zeros(self.nv) if v is None else np.asarray(v, dtype=float)
        q = np.asarray(q, dtype=float)
        key = q.tobytes() + v.tobytes()
        known = key in self._states
        if not known:
            self._states[key] = q.copy(), v.copy(), {}
            if len(self._states) > KEPT:
                del self._states[next(iter(self._states))]
        self._q, self._v, self._points = self._states[key]
        if not known:
            for name in self.robot.links:
                self._reach(name)
        return self._points

    def _reach(self, name):
        """Compute the points of a link after those of its parents."""
        if name in self._points:
            return
        link = self.robot.links[name]
        if link.parent is None:
            zero = np.zeros((6, self.nv))
            point = Point(np.eye(4), zero, zero)
        else:
            self._reach(link.parent)
            point = self._point_on(link.parent, link.at)
        base = self._through_joint(name, link.joint, move(point, tables.placement(link.placement)))
        if tables.kind(link.body) == "RigidBody":
            base = base._replace(inertia=tables.rigid_inertia(link.body))
        self._points[name] = [(0.0, base)]
        if tables.kind(link.body) == "Rod":
            for s, weight in self.rod_rule(link.body):
                point = self._interval(name, *self._points[name][-1], s)
                if weight:
                    inertia = tables.section_matrices(link.body.section, link.body.material, s)[1]
                    point = point._replace(inertia=weight * inertia)
                self._points[name].append((s, point))

    def _through_joint(self, name, joint, point):
        q, v, start = self._q[self.q_joint[name]], self._v, self.v_joint[name].start
        screws = tables.joint_screws(joint)
        if tables.kind(joint) == "JointCustom":
            return move(point, *tables.table_motion(joint, q, v[start : start + 1]), self.v_joint[name], v)
        if screws is None:
            S = np.eye(6)[:, : tables.joint_sizes(joint)[1]]
            return move(point, tables.joint_pose(joint, q), S, np.zeros_like(S), self.v_joint[name], v)
        k = 0
        for Phi in screws:
            n = Phi.shape[1]
            columns = slice(start + k, start + k + n)
            T, dT = tangent_and_derivative(Phi @ q[k : k + n], Phi @ v[columns])
            point = move(point, exp(Phi @ q[k : k + n]), T @ Phi, dT @ Phi, columns, v)
            k += n
        return point

    def _interval(self, name, s0, point, s1):
        """One fourth-order Magnus interval of a rod, (34)-(36)."""
        rod, columns = self.robot.links[name].body, self.v_body[name]
        if s1 == s0:
            return point._replace(inertia=None)
        h, q, v = (s1 - s0) * rod.length, self._q[self.q_body[name]], self._v[columns]
        if (name, s0, s1) not in self._lines:
            self._lines[name, s0, s1] = [
                at_zannah_points(lambda s: tables.basis_matrix(rod.basis, s), s0, s1, rod.interval_points),
                at_zannah_points(lambda s: tables.reference_strain(rod, s), s0, s1, rod.interval_points),
            ]
        (P1, P2), straight = self._lines[name, s0, s1]
        x1, x2 = P1 @ q + straight[0], P2 @ q + straight[1]
        c = np.sqrt(3) * h**2 / 12
        Omega = h / 2 * (x1 + x2) + c * ad(x1) @ x2
        Z = h / 2 * (P1 + P2) + c * (ad(x1) @ P2 - ad(x2) @ P1)
        dZ = c * (ad(P1 @ v) @ P2 - ad(P2 @ v) @ P1)
        if not self._v.any():
            T, dT = tangent(Omega), np.zeros((6, 6))
        else:
            T, dT = tangent_and_derivative(Omega, Z @ v)
        return move(point, exp(Omega), T @ Z, dT @ Z + T @ dZ, columns, self._v)

    def _point_on(self, name, s):
        """The cross-section of a rod at s, one massless interval after the last point; a rigid link's frame."""
        points = self._points[name]
        if tables.kind(self.robot.links[name].body) != "Rod":
            return points[0][1]
        before = [pair for pair in points if pair[0] <= s][-1]
        return self._interval(name, *before, s)

    def stretches(self, rod, start=0.0, stop=1.0):
        """Smooth stretches (s0, s1) of a rod, clipped to [start, stop]."""
        ends = [0.0, *tables.breaks(rod.basis), 1.0]
        clipped = [(max(a, start), min(b, stop)) for a, b in pairwise(ends)]
        return [(a, b) for a, b in clipped if b > a]

    def gauss(self, rod, start=0.0, stop=1.0):
        """Gauss points of each smooth stretch: lists of (s, weight [m])."""
        x, w = np.polynomial.legendre.leggauss(rod.gauss_points)
        return [
            [(a + (b - a) * (1 + xk) / 2, (b - a) * rod.length * wk / 2) for xk, wk in zip(x, w)]
            for a, b in self.stretches(rod, start, stop)
        ]

    def rod_rule(self, rod):
        """Points of a rod in order: its Gauss points, and a massless one at the end of each stretch."""
        rules = zip(self.gauss(rod), self.stretches(rod))
        return [pair for points, (_, end) in rules for pair in (*points, (end, 0.0))]

    def _point(self, q, v, link_or_frame, s):
        self.points(q, v)
        if link_or_frame is None:
            zero = np.zeros((6, self.nv))
            return Point(np.eye(4), zero, zero)
        if link_or_frame in self.robot.frames:
            frame = self.robot.frames[link_or_frame]
            return move(self._point_on(frame.link, frame.s), tables.placement(frame.placement))
        return self._point_on(link_or_frame, s)

    def frame_pose(self, q, link_or_frame, s=1.0):
        """Pose in the world, 4x4."""
        return self._point(q, None, link_or_frame, s).g

    def frame_jacobian(self, q, link_or_frame, s=1.0):
        """Body Jacobian (6, nv), angular first."""
        return self._point(q, None, link_or_frame, s).J

    def frame_jacobian_derivative(self, q, v, link_or_frame, s=1.0):
        """Rate of the body Jacobian (6, nv)."""
        return self._point(q, v, link_or_frame, s).dJ

    def frame_twist(self, q, v, link_or_frame, s=1.0):
        """Body twist (6,)."""
        return self._point(q, None, link_or_frame, s).J @ v

    def frame_acceleration(self, q, v, a, link_or_frame, s=1.0):
        """Rate of the body twist (6,)."""
        point = self._point(q, v, link_or_frame, s)
        return point.J @ a + point.dJ @ v

    # --- dynamics --------------------------------------------------------------------------------------------------

    def _masses(self, q, v=None):
        everything = (point for pairs in self.points(q, v).values() for _, point in pairs)
        return [point for point in everything if point.inertia is not None]

    def mass_matrix(self, q):
        """(25)."""
        out = np.zeros((self.nv, self.nv))
        for point in self._masses(q):
            out += point.J.T @ point.inertia @ point.J
        return out

    def coriolis_matrix(self, q, v):
        """(26), in the form that makes dM/dt - 2C skew."""
        out = np.zeros((self.nv, self.nv))
        for _, J, dJ, M in self._masses(q, v):
            eta = J @ v
            out += J.T @ (M @ dJ + 0.5 * (adbar(M @ eta) - ad(eta).T @ M + M @ ad(eta)) @ J)
        return out

    def gravity_force(self, q):
        """Left side of the equation of motion: minus the generalised weight."""
        out = np.zeros(self.nv)
        for g, J, _, M in self._masses(q):
            out -= J.T @ M[:, 3:] @ (g[:3, :3].T @ self.gravity)
        return out

    def _rod_matrix(self, which):
        out = np.zeros((self.nv, self.nv))
        for name, link in self.robot.links.items():
            if tables.kind(link.body) == "Rod":
                block = out[self.v_body[name], self.v_body[name]]
                for s, weight in (pair for points in self.gauss(link.body) for pair in points):
                    Phi = tables.basis_matrix(link.body.basis, s)
                    section = tables.section_matrices(link.body.section, link.body.material, s)[which]
                    block += weight * Phi.T @ section @ Phi
            own = self.v_joint[name]
            given = link.joint.stiffness if which == 0 else link.joint.damping
            out[own, own] = tables.square(given, own.stop - own.start)
        return out

    def stiffness_matrix(self):
        """(28), and joint springs."""
        return self._rod_matrix(0)

    def damping_matrix(self):
        """(27), and joint dampers."""
        return self._rod_matrix(2)

    def _spring(self, name, q):
        """Elongation e of a joint's spring and its derivative in the tangent space."""
        joint, here = self.robot.links[name].joint, q[self.q_joint[name]]
        slack = tables.rest(joint)
        if tables.joint_screws(joint) is not None:
            return here - slack, np.eye(len(here))
        e = log(inverse(tables.joint_pose(joint, slack)) @ tables.joint_pose(joint, here))
        n = tables.joint_sizes(joint)[1]
        return e[:n], np.linalg.inv(tangent(e))[:n, :n]

    def elastic_force(self, q):
        """K q of the rods and the forces of the joint springs."""
        K, out = self.stiffness_matrix(), np.zeros(self.nv)
        for name in self.robot.links:
            own, body = self.v_joint[name], self.v_body[name]
            e, de = self._spring(name, q)
            out[own] = de.T @ K[own, own] @ e
            out[body] = K[body, body] @ q[self.q_body[name]]
        return out

    def elastic_energy(self, q):
        """Energy of rods and joint springs [J]."""
        K, out = self.stiffness_matrix(), 0.0
        for name in self.robot.links:
            for own, e in ((self.v_joint[name], self._spring(name, q)[0]), (self.v_body[name], q[self.q_body[name]])):
                out += 0.5 * e @ K[own, own] @ e
        return out

    def energy(self, q, v):
        """Kinetic, gravitational and elastic energy."""
        weight = 0.0
        for g, _, _, M in self._masses(q):
            moment = np.array([M[2, 4], M[0, 5], M[1, 3]])  # m c, from the block m hat(c)
            weight -= self.gravity @ (M[3, 3] * g[:3, 3] + g[:3, :3] @ moment)
        return Energy(0.5 * v @ self.mass_matrix(q) @ v, weight, self.elastic_energy(q))

    def momentum(self, q, v):
        """Sum of the momenta of all masses about the world's origin."""
        out = np.zeros(6)
        for g, J, _, M in self._masses(q):
            out += Ad(inverse(g)).T @ M @ J @ v
        return out

    def center_of_mass(self, q):
        """Sum of mass times position over the mass."""
        mass, moment = 0.0, np.zeros(3)
        for g, _, _, M in self._masses(q):
            mass += M[3, 3]
            moment += M[3, 3] * g[:3, 3] + g[:3, :3] @ np.array([M[2, 4], M[0, 5], M[1, 3]])
        return moment / mass

    def load_force(self, q, t=0.0):
        """Sum of J'F over the point loads, (30)."""
        out = np.zeros(self.nv)
        for load in self.robot.loads.values():
            g, J, _, _ = self._point(q, None, load.link, load.s)
            R = g[:3, :3].T if load.frame == "world" else np.eye(3)
            force, moment = R @ tables.at_time(load.force, t), R @ tables.at_time(load.moment, t)
            out += J.T @ np.r_[moment + np.cross(np.asarray(load.position, dtype=float), force), force]
        return out

    def external_force(self, q, v=None, t=0.0, *, gravity=True, loads=True):
        """Generalised force of weight and loads, on the right side of the equation of motion."""
        out = np.zeros(self.nv)
        if gravity:
            out -= self.gravity_force(q)
        if loads:
            out += self.load_force(q, t)
        return out

    def inverse_dynamics(self, q, v, a, t=0.0, *, gravity=True, elastic=True, loads=True):
        """M a + C v + weight + elastic and viscous forces - loads."""
        out = self.mass_matrix(q) @ a + self.coriolis_matrix(q, v) @ v
        out = out - self.external_force(q, v, t, gravity=gravity, loads=loads)
        return out + self.elastic_force(q) + self.damping_matrix() @ v if elastic else out

    # --- actuation -------------------------------------------------------------------------------------------------

    def _inputs(self):
        """Inputs in order: (name, size, gain by actuator)."""
        out, robot = [], self.robot
        leader = {actuator: c for c in robot.couplings.values() for actuator in c.gains}
        for name, actuator in robot.actuators.items():
            if name in leader:
                coupling = leader[name]
                if not any(done == coupling.name for done, _, _ in out):
                    out.append((coupling.name, 1, coupling.gains))
                continue
            size = {"Tendon": 1, "Chamber": 1, "CustomActuator": getattr(actuator, "size", 1)}
            if tables.kind(actuator) == "JointActuator":
                size["JointActuator"] = tables.joint_sizes(robot.links[actuator.link].joint)[1]
            if tables.kind(actuator) == "WrenchInput":
                size["WrenchInput"] = self._unit_wrenches(actuator).shape[1]
            out.append((name, size[tables.kind(actuator)], {name: 1.0}))
        return out

    def actuation_matrix(self, q):
        """B, (29): columns in the order of the inputs."""
        q = np.asarray(q, dtype=float)
        blocks = [np.zeros((self.nv, 0))]
        for _, _, gains in self.inputs:
            blocks.append(sum(gain * self._columns(self.robot.actuators[name], q) for name, gain in gains.items()))
        return np.hstack(blocks)

    def _columns(self, actuator, q):
        kind = tables.kind(actuator)
        if kind == "Tendon":
            return -self._length(actuator.path, q)[1][:, None]
        if kind == "Chamber":
            return self._chamber(actuator, q)[:, None]
        if kind == "JointActuator":
            return np.eye(self.nv)[:, self.v_joint[actuator.link]]
        if kind == "WrenchInput":
            return self._wrenches(actuator, q)
        return np.asarray(actuator.function(q), dtype=float)

    @staticmethod
    def _unit_wrenches(actuator):
        return np.eye(6) if actuator.directions is None else np.reshape(actuator.directions, (6, -1))

    def _wrenches(self, actuator, q):
        """J'F of a wrench input, F its unit wrenches at the point of application."""
        g, J, _, _ = self._point(q, None, actuator.link, actuator.s)
        R = g[:3, :3].T if actuator.frame == "world" else np.eye(3)
        units = self._unit_wrenches(actuator)
        moment, force = R @ units[:3], R @ units[3:]
        arm = np.asarray(actuator.position, dtype=float)
        return J.T @ np.vstack([moment + np.cross(arm, force.T).T, force])

    def path_lengths(self, q):
        """Lengths of the tendons in the order added."""
        tendons = (actuator for actuator in self.robot.actuators.values() if tables.kind(actuator) == "Tendon")
        return np.array([self._length(tendon.path, np.asarray(q, dtype=float))[0] for tendon in tendons])

    def _stations(self, item, q):
        """(s, weight, d, t' = eps + kappa x d + d', dt'/dq_rod) at the quadrature points of a PathRod, (23)."""
        rod, coordinates = self.robot.links[item.link].body, q[self.q_body[item.link]]
        for points in self.gauss(rod, *sorted((item.start, item.stop))):
            for s, weight in points:
                d, slope = tables.offset_and_slope(item.offset, s)
                Phi = tables.basis_matrix(rod.basis, s)
                xi = Phi @ coordinates + tables.reference_strain(rod, s)
                line = xi[3:] + np.cross(xi[:3], d) + slope / rod.length
                yield s, weight, d, line, Phi[3:] - hat3(d) @ Phi[:3]

    def _length(self, path, q):
        """Length of a path and its gradient in the tangent space."""
        length, gradient, last = 0.0, np.zeros(self.nv), None
        for item in path:
            if tables.kind(item) == "PathRod":
                ends = [self._spot(q, item.link, s, tables.offset_and_slope(item.offset, s)[0])
                        for s in (item.start, item.stop)]  # fmt: skip
                for _, weight, _, line, dline in self._stations(item, q):
                    length += weight * np.linalg.norm(line)
                    gradient[self.v_body[item.link]] += weight * dline.T @ line / np.linalg.norm(line)
            else:
                ends = [self._spot(q, item.link, item.s, np.asarray(item.position, dtype=float))] * 2
            if last is not None:
                straight, dstraight = ends[0][0] - last[0], ends[0][1] - last[1]
                length += np.linalg.norm(straight)
                gradient += dstraight.T @ straight / np.linalg.norm(straight)
            last = ends[1]
        return length, gradient

    def _spot(self, q, link, s, position):
        """World position of a point of a link and its gradient."""
        g, J, _, _ = self._point(q, None, link, s)
        return g[:3, :3] @ position + g[:3, 3], g[:3, :3] @ (J[3:] - hat3(position) @ J[:3])

    def _chamber(self, chamber, q):
        out = np.zeros(self.nv)
        link = chamber.path.link
        Phi_of = self.robot.links[link].body.basis
        for s, weight, d, line, _ in self._stations(chamber.path, q):
            t = line / np.linalg.norm(line) if chamber.force == "tangent" else np.array([1.0, 0.0, 0.0])
            wrench = tables.along(chamber.area, s) * np.r_[np.cross(d, t), t]
            out[self.v_body[link]] += weight * tables.basis_matrix(Phi_of, s).T @ wrench
        return out
