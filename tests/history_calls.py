"""Robots and random calls of public functions, for tests that a result depends on its arguments alone."""

from __future__ import annotations

import warnings
from dataclasses import fields, is_dataclass

import numpy as np

import lissom as ls

LEADS = ((), (), (), (), (2,), (3,), (1,), (2, 2), (17,))
TIMES = (0.0, 0.0, 1.0, 2.5)
ABSCISSAE = (1.0, 0.5, [0.5], [0.2, 0.9], [1.0], 0.0)
SCHEMES = ("generalized_alpha", "newmark", "hht", "implicit_euler", "bathe", "esdirk")
SILENT = ("model", "wall_time", "damped_time", "path", "stepping", "description")  # fields that are no results
HINGE = ls.JointRevolute((0, 1, 0), stiffness=0.01)
MOST = 2000  # evaluations of a law
FORCES = (*[1.0] * 9, 1e30)  # factors of inputs, under the last of which no step is found


def arm():
    """Three hinges with springs, driven by motors."""
    robot = ls.Robot("arm")
    for k, axis in enumerate(((0, 1, 0), (1, 0, 0), (0, 1, 0))):
        joint = ls.JointRevolute(axis, stiffness=2.0, damping=0.1)
        body = ls.RigidBody(1.0 + k, (0.1, 0.02, 0.0), (0.02, 0.03, 0.01))
        place = np.eye(4)
        place[0, 3] = 0.2 * (k > 0)
        robot.add_link(f"link{k}", body, joint, parent=f"link{k - 1}" if k else None, placement=place)
        robot.add_joint_actuator(f"motor{k}", f"link{k}")
    return robot


def pushed():
    """The arm with a thruster, under a load of time and a Python force of time and state."""
    robot = arm()
    robot.add_wrench_input("thrust", "link2", directions=(0, 0, 0, 1.0, 0, 0))
    robot.add_point_load("pull", "link2", force=lambda t: (0.0, 0.1 * t, t))
    robot.add_force("push", "link1", lambda t, g, eta: np.append(0.01 * eta[:3], (g[0, 3], t, eta[3])))
    return robot


def soft():
    """A rod with tendons, one of them elastic, and a chamber, in a current; behind it a ball on a hinge."""
    material = ls.Material(young=1e6, poisson=0.45, density=1000.0, viscosity=1e4)
    rod = ls.Rod(0.3, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=2, bending_z=1, elongation=0), material)
    robot = ls.Robot("soft")
    robot.add_link("rod", rod, ls.JointRevolute((0, 0, 1), stiffness=1.0, damping=0.05))
    robot.add_link("ball", ls.RigidBody.sphere(0.02, density=500.0), HINGE, parent="rod")
    robot.add_tendon("t1", "rod", (0.01, 0.0))
    robot.add_tendon("t2", "rod", (-0.01, 0.0), stiffness=200.0)
    robot.add_chamber("c", "rod", offset=(0.0, 0.01), area=1e-5)
    robot.add_frame("eye", "rod", s=0.4)
    robot.set_fluid(1000.0, current=lambda t: (0.0, 0.05 * t, 0.0))
    return robot


def closed():
    """A four-bar linkage that a motor drives, and a bar with a motion of its own."""
    robot = ls.Robot("closed")
    bar = ls.RigidBody(0.5, (0.1, 0.0, 0.0), (1e-4, 2e-3, 2e-3))
    for k in range(3):
        place = np.eye(4)
        place[0, 3] = 0.2 * (k > 0)
        joint = ls.JointRevolute((0, 1, 0), stiffness=0.5 * (k == 0), damping=0.02)
        robot.add_link(f"bar{k}", bar, joint, parent=f"bar{k - 1}" if k else None, placement=place)
    end, post = np.eye(4), np.eye(4)
    end[0, 3], post[0, 3] = 0.2, 0.5
    robot.add_loop("closure", "bar2", placement_a=end, placement_b=post, joint=ls.JointRevolute((0, 1, 0)))
    robot.add_joint_actuator("motor", "bar0")
    robot.add_link("fan", bar, ls.JointRevolute((1, 0, 0)), parent="bar0")
    robot.add_joint_motion("spin", "fan", position=lambda t: 0.3 * np.sin(t))
    return robot


def touching():
    """A ball and a rod that stick to a floor, on a free base."""
    robot = ls.Robot("touching")
    robot.add_link("base", ls.RigidBody.box(0.1, 0.1, 0.1, density=900.0), ls.JointFree())
    hinge = ls.JointRevolute((0, 1, 0), stiffness=1.0, damping=0.1)
    robot.add_link("foot", ls.RigidBody.sphere(0.03, density=500.0), hinge, parent="base")
    robot.add_joint_actuator("motor", "foot")
    law = {"stiffness": 1e4, "friction": 0.3, "damping": 0.1, "slip_speed": 0.1, "stick_stiffness": 1e3}
    robot.add_contact("floor", ["base", "foot"], ls.ShapePlane(), **law)
    return robot


def screw(x):
    """A joint that turns and slides."""
    c, s = np.cos(x[0]), np.sin(x[0])
    return np.array([[c, -s, 0, 0.1 * x[0]], [s, c, 0, 0.05 * s], [0, 0, 1, 0.02 * x[0] ** 2], [0, 0, 0, 1.0]])


def own():
    """A joint by a table and an actuator by a Python function."""
    points = np.linspace(-3.0, 3.0, 9)
    waves = np.stack([points, np.sin(points), 1.0 - np.cos(points)], axis=1)
    table = ls.PoseSpline(points.tolist(), (0.3 * waves).tolist(), (0.05 * waves).tolist())
    robot = ls.Robot("own")
    body = ls.RigidBody(1.0, (0.1, 0.02, 0.0), (0.02, 0.03, 0.01))
    robot.add_link("a", body, ls.JointCustom(table, stiffness=2.0, damping=0.1))
    robot.add_link("b", body, ls.JointSpherical(), parent="a")
    robot.add_custom_actuator("muscle", lambda q: np.array([1.0, 0.1 * q[0], 0.0, 0.2]))
    return robot


def deformable():
    """A block that JAX moves, with tendons, behind a hinge."""
    import jax.numpy as jnp

    def bent(x, theta):
        slope = 20.0 * x[0] * theta[:2]
        return x + jnp.array([theta[2] * x[0] - slope @ x[1:], *(0.5 * slope * x[0])])

    law = ls.HyperelasticSaintVenantKirchhoff(young=2e5, poisson=0.45, damping_time=0.02)
    body = ls.DeformableBody(
        bent, ls.DomainBox(0.12, 0.02, 0.02, degree=4, degree_along=4), law, 1070.0, n=3, tip="tip"
    )
    robot = ls.Robot("deformable", gravity=(9.81, 0, 0))
    robot.add_link("finger", body, ls.JointRevolute((0, 0, 1), stiffness=1.0, damping=0.01))
    robot.add_link("nail", ls.RigidBody.sphere(0.005, density=900.0), HINGE, parent="finger")
    robot.add_tendon("y", path=[ls.PathPoint(None, (0, 0.006, 0)), ls.PathPoint("finger", (0, 0.006, 0))])
    return robot


ROBOTS = {made.__name__: made for made in (arm, pushed, soft, closed, touching, own)}


class Draw:
    """Random arguments for a model."""

    def __init__(self, model, rng):
        self.model, self.rng, self.lead = model, rng, LEADS[rng.integers(len(LEADS))]

    def one_of(self, choices):
        return choices[self.rng.integers(len(choices))]

    def flag(self):
        return bool(self.rng.random() < 0.6)

    def rows(self, size, scale=1.0, lead=None):
        return scale * self.rng.uniform(-1.0, 1.0, (*(self.lead if lead is None else lead), size))

    def q(self, lead=None, size=0.3):
        """Configurations near the neutral one, near which loops are closed; now and then one that is refused."""
        turn = self.rows(self.model.nv, size, lead) * self.model.dofs.scale
        q = ls.integrate(self.model, self.model.neutral(), turn)
        if self.model.name == "touching":
            q[..., 6] += 0.03  # most of the balls about the floor
        if self.model.n_rows and size <= 0.1:
            q = np.array([ls.assemble(self.model, row) for row in q.reshape(-1, self.model.nq)]).reshape(q.shape)
        if self.rng.random() < 0.03:
            q[..., 0] = self.one_of((np.nan, 1e300))
        return q

    def v(self, lead=None):
        return self.rows(self.model.nv, 1.0, lead) * self.model.dofs.scale

    def u(self, lead=None):
        return np.abs(self.rows(self.model.nu, 0.5, lead))

    def link(self):
        return self.one_of((*self.model.links.names, *self.model.frames))

    def s(self):
        return self.one_of(ABSCISSAE)

    def terms(self):
        return {name: self.flag() for name in ("gravity", "elastic", "loads")} | {"t": self.one_of(TIMES)}


def _motion(m, d, **more):
    """Some steps, by any method, of one motion or of a batch."""
    lead = d.one_of(((), (), (2,)))
    adaptive = d.rng.random() < 0.4
    method = d.one_of((*SCHEMES, "auto", "bdf", "dop853") if adaptive else (*SCHEMES, "auto"))
    size = {} if adaptive else {"dt": 0.002}
    times = np.linspace(0.0, 0.006, 4) if lead or d.flag() else None
    more = more or {"u": d.u(lead) * (1.0 if adaptive else d.one_of(FORCES))}
    q, v = d.q(lead, 0.1), 0.3 * d.v(lead)
    return ls.simulate(m, 0.006, q, v, method=method, t_eval=times, **size, **more)


def _steps(m, d):
    """Some steps, from a state of its own after a step that perhaps fails."""
    stepper = ls.Stepper(m, 0.002, tolerance=d.one_of((None, None, 1e-5)), q0=d.q((), 0.1), v0=0.3 * d.v(()))
    found = []
    for _ in range(2):
        try:
            stepper.step(d.u(()) * d.one_of(FORCES), int(d.rng.integers(1, 4)))
        except ls.ConvergenceError as error:
            found.append(str(error))
            stepper.set_state(d.q((), 0.1), t=d.one_of(TIMES))
        found += [stepper.state.t, stepper.state.q, stepper.state.v]
    return found


def _law(m, d, kind):
    """A law that calls another function on the same model."""
    name, seed, count = d.one_of(CHEAP), int(d.rng.integers(2**31)), [0]

    def asked(t):
        count[0] += 1
        if count[0] > MOST:
            raise RuntimeError("the run does not end")
        found = flat(called(CALLS[name], m, np.random.default_rng(seed)))
        numbers = [x for x in found if isinstance(x, np.ndarray) and x.size and x.dtype == float]
        size = float(np.tanh(np.nan_to_num(numbers[0]).sum())) if numbers else 0.0
        return np.full(m.nu, 0.1 * abs(size) + 0.01 * t)

    if kind == "u":
        return {"u": asked}
    law = {"controller": lambda t, q, v: asked(t) + 0.0 * q[0]}
    return law | ({"period": 0.002} if kind == "sampled" else {})


def _statics(m, d, **options):
    return ls.solve_statics(m, d.u(), q0=d.q(d.one_of(((), d.lead)), 0.1), t=d.one_of(TIMES), **options)


def _rollout(m, d):
    lead, force = d.one_of(((), (2,), (3,))), d.one_of(FORCES)
    u = force * d.u((*lead, 3))
    return ls.rollout(m, d.q(lead, 0.1), 0.3 * d.v(lead), u, dt=0.002, method=d.one_of(SCHEMES))


def _backward(m, d):
    motion = _rollout(m, d)
    return motion.backward(dL_dq=np.ones((*motion.q.shape[:-1], m.nv))), motion.forward(dv0=np.ones(m.nv))


def _observer(m, d):
    sensors = [ls.SensorPosition(m.links.names[-1], 1e-3)]
    found = ls.ExtendedKalmanFilter(m, sensors, 0.002, process_noise=np.full(2 * m.nv, 1e-3))
    estimate = found.start(d.q((), 0.1), d.v(()), np.full(2 * m.nv, 0.1))
    return found.correct(found.predict(estimate, d.u(())), [np.zeros(3)])


def _plan(m, d):
    cost = ls.TrackingCost(m, inputs=1e-2, state=1.0)
    return ls.ModelPredictiveControl(m, cost, 0.002, 3).plan(0.0, d.q((), 0.1), d.v(()))


def _law_of(controller, d):
    return controller.output(0.0, d.q(()), d.v(()), controller.start if hasattr(controller, "start") else ())


def _balance(m, d):
    return ls.energy_balance(m, ls.simulate(m, 0.004, d.q((), 0.1), u=d.u(()), dt=0.002))


def _feedback(m, d):
    gain = 0.1 * np.ones((m.nu, m.nv))
    motion = ls.feedback_rollout(m, lambda t, q, v, k: -k @ v, gain, d.q((), 0.1), d.v(()), dt=0.002, steps=2)
    zero = np.zeros((m.nu, m.nv))
    slopes = ls.feedback_gradient(
        motion, gain, lambda t, q, v, k: (zero, -k, -np.eye(m.nu)[:, :, None] * v), dL_dq=np.ones((3, m.nv))
    )
    return motion, slopes


def _gradient(m, d):
    motion = ls.rollout(m, d.q((), 0.1), None, d.u((2,)), dt=0.002)
    return ls.check_gradient(motion, lambda x: float(x.v[-1] @ x.v[-1]), _slope(motion))


def _slope(motion):
    dL = np.zeros_like(motion.v)
    dL[-1] = 2.0 * motion.v[-1]
    return motion.backward(dL_dv=dL)


def _at_equilibrium(m, d, function):
    return function(ls.solve_statics(m, d.u(()), q0=d.q((), 0.05), stable=False))


def _small(m, d, function):
    return _at_equilibrium(m, d, lambda e: function(m, e, None, ls.SensorPosition(m.links.names[-1], 1e-3)))


def _inverse_kinematics(m, d):
    place = ls.frame_pose(m, d.q((), 0.05), m.links.names[-1])[:3, 3]
    return ls.inverse_kinematics(m, {m.links.names[-1]: place}, max_iterations=20)


def _start(m, d):
    q = ls.assemble(m, d.q((), 0.1)) if m.n_rows else d.q((), 0.1)
    return q, 0.3 * d.v(())


def _lead_q(m, d):
    return d.q(), d.v(), d.v()


CALLS = {
    "accuracy": lambda m, d: ls.accuracy(m, d.q((), 0.1), d.u(()), v=0.3 * d.v(())),
    "actuation_coordinates": lambda m, d: ls.actuation_coordinates(m, d.q()),
    "actuation_matrix": lambda m, d: ls.actuation_matrix(m, d.q()),
    "assemble": lambda m, d: ls.assemble(m, d.q((), 0.1), t=d.one_of(TIMES)),
    "assemble_velocities": lambda m, d: ls.assemble_velocities(m, *_start(m, d)),
    "branches": lambda m, d: ls.branches(m, q0=d.q((1,), 0.01), u=d.u((1,)), step=0.4, max_points=6),
    "center_of_mass": lambda m, d: ls.center_of_mass(m, d.q()),
    "check_gradient": _gradient,
    "constraint_derivatives": lambda m, d: ls.constraint_derivatives(m, d.q(), d.v(), d.v()),
    "constraint_force_derivative": lambda m, d: ls.constraint_force_derivative(m, d.q(), d.rows(m.n_multipliers)),
    "constraint_jacobian": lambda m, d: ls.constraint_jacobian(m, d.q()),
    "constraint_jacobian_derivative": lambda m, d: ls.constraint_jacobian_derivative(m, d.q(), d.v()),
    "contact_anchors": lambda m, d: ls.contact_anchors(m, d.q(()), d.v(())),
    "contact_forces": lambda m, d: ls.contact_forces(m, d.q(), d.v()),
    "continuation": lambda m, d: ls.continuation(
        m, q0=d.q((), 0.01), u=d.u(()), step=0.4, max_points=6, events=d.flag()
    ),
    "coriolis_matrix": lambda m, d: ls.coriolis_matrix(m, d.q(), d.v()),
    "damping_matrix": lambda m, d: ls.damping_matrix(m),
    "difference": lambda m, d: ls.difference(m, d.q(), d.q()),
    "energy": lambda m, d: ls.energy(m, d.q(), d.v()),
    "energy_balance": _balance,
    "equilibrium_derivatives": lambda m, d: _at_equilibrium(m, d, ls.equilibrium_derivatives),
    "ExtendedKalmanFilter": _observer,
    "external_force": lambda m, d: ls.external_force(
        m, d.q(), d.v(), gravity=d.flag(), loads=d.flag(), t=d.one_of(TIMES)
    ),
    "feedback_rollout": _feedback,
    "forward_dynamics": lambda m, d: ls.forward_dynamics(m, d.q(), d.v(), d.u(), d.one_of(TIMES)),
    "forward_dynamics_derivatives": lambda m, d: ls.forward_dynamics_derivatives(
        m, d.q(), d.v(), d.u(), d.one_of(TIMES)
    ),
    "frequency_response": lambda m, d: _small(m, d, lambda *x: ls.frequency_response(*x, np.array([0.5, 7.0]))),
    "forward_kinematics": lambda m, d: ls.forward_kinematics(m, d.q()),
    "frame_acceleration": lambda m, d: ls.frame_acceleration(m, *_lead_q(m, d), d.link(), d.s()),
    "frame_acceleration_derivatives": lambda m, d: ls.frame_acceleration_derivatives(
        m, *_lead_q(m, d), d.link(), d.s()
    ),
    "frame_jacobian": lambda m, d: ls.frame_jacobian(m, d.q(), d.link(), d.s()),
    "frame_jacobian_derivative": lambda m, d: ls.frame_jacobian_derivative(m, d.q(), d.v(), d.link(), d.s()),
    "frame_pose": lambda m, d: ls.frame_pose(m, d.q(), d.link(), d.s()),
    "frame_twist": lambda m, d: ls.frame_twist(m, d.q(), d.v(), d.link(), d.s()),
    "frame_twist_derivatives": lambda m, d: ls.frame_twist_derivatives(m, d.q(), d.v(), d.link(), d.s()),
    "integrate": lambda m, d: ls.integrate(m, d.q(), d.v()),
    "internal_wrench": lambda m, d: ls.internal_wrench(m, *_lead_q(m, d), d.u(), "rod", d.s()),
    "inverse_dynamics": lambda m, d: ls.inverse_dynamics(m, *_lead_q(m, d), **d.terms()),
    "inverse_dynamics_derivatives": lambda m, d: ls.inverse_dynamics_derivatives(m, *_lead_q(m, d), **d.terms()),
    "inverse_dynamics_tangent": lambda m, d: ls.inverse_dynamics_tangent(m, *_lead_q(m, d), d.v(), **d.terms()),
    "inverse_kinematics": _inverse_kinematics,
    "joint_wrench": lambda m, d: ls.joint_wrench(m, *_lead_q(m, d), d.u(), d.one_of(m.links.names)),
    "linearize": lambda m, d: ls.linearize(m, d.q((), 0.05), d.u(()), t=d.one_of(TIMES)),
    "loop_residual": lambda m, d: ls.loop_residual(m, d.q()),
    "loop_wrenches": lambda m, d: ls.loop_wrenches(m, d.q(), d.rows(m.n_multipliers)),
    "lqr": lambda m, d: ls.lqr(m, d.q((), 0.01), d.u(()), state=1.0, inputs=1.0),
    "mass_inverse_dynamics": lambda m, d: ls.mass_inverse_dynamics(m, *_lead_q(m, d), **d.terms()),
    "mass_matrix": lambda m, d: ls.mass_matrix(m, d.q()),
    "mode_derivatives": lambda m, d: _at_equilibrium(m, d, ls.mode_derivatives),
    "ModelPredictiveControl": _plan,
    "modes": lambda m, d: ls.modes(m, d.q((), 0.05), d.u(()), damped=d.flag()),
    "momentum": lambda m, d: ls.momentum(m, d.q(), d.v()),
    "partial_feedback_linearization": lambda m, d: _law_of(
        ls.partial_feedback_linearization(m, np.zeros(m.nu), proportional=1.0, derivative=1.0), d
    ),
    "path_lengths": lambda m, d: ls.path_lengths(m, d.q()),
    "pd_compensation": lambda m, d: _law_of(ls.pd_compensation(m, d.q((), 0.01), proportional=1.0, derivative=1.0), d),
    "prescribed_equilibrium": lambda m, d: ls.prescribed_equilibrium(m, {m.inputs.names[0]: 0.01}, q0=d.q((), 0.01)),
    "rollout": _rollout,
    "Rollout.backward": _backward,
    "simulate": _motion,
    "simulate by u": lambda m, d: _motion(m, d, **_law(m, d, "u")),
    "simulate by a controller": lambda m, d: _motion(m, d, **_law(m, d, "continuous")),
    "simulate by samples": lambda m, d: _motion(m, d, **_law(m, d, "sampled")),
    "solve_statics": lambda m, d: _statics(m, d, stable=d.flag()),
    "Stepper": _steps,
    "spring_lengths": lambda m, d: ls.spring_lengths(m, d.q()),
    "step_derivatives": lambda m, d: ls.step_derivatives(
        m, d.q(None, 0.1), d.v(), d.u(), dt=0.002, method=d.one_of(SCHEMES)
    ),
    "start_configuration": lambda m, d: ls.start_configuration(m),
    "stiffness_matrix": lambda m, d: ls.stiffness_matrix(m),
    "tangent_stiffness": lambda m, d: ls.tangent_stiffness(m, d.q(), d.u(), t=d.one_of(TIMES)),
    "state_space": lambda m, d: _small(m, d, ls.state_space),
    "stress": lambda m, d: _at_equilibrium(m, d, lambda e: ls.stress(m, e, "rod", d.s())),
    "tendon_tensions": lambda m, d: ls.tendon_tensions(m, d.q(), d.u()),
}
RARE = {  # what takes long
    "accuracy", "branches", "check_gradient", "continuation", "equilibrium_derivatives", "inverse_kinematics",
    "mode_derivatives", "ModelPredictiveControl", "prescribed_equilibrium", "simulate by u", "simulate by a controller",
    "simulate by samples", "feedback_rollout", "energy_balance", "solve_statics", "Rollout.backward",
    "frequency_response", "state_space", "stress",
}  # fmt: skip
CHEAP = tuple(name for name in CALLS if name not in RARE)
LEFT_OUT = {
    "aligator.": "needs aligator, which pip does not install",
    "crocoddyl.": "made of step_derivatives",
    "jax.": "made of functions called here",
    "torch.": "needs PyTorch",
    "plot_": "draws",
    "save_": "writes files",
    "export": "writes files",
    "render": "draws",
    "view": "draws",
    "design_derivatives": "calls functions that are called here",
    "minimize": "calls a function of the user",
    "fit": "made of equilibria and motions of other models",
    "static_reference": "made of equilibria",
    "prescribed_actuation": "made of prescribed equilibria",
}


def called(call, model, rng):
    """The result of a call, or its exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(model, Draw(model, rng))
        except (
            ls.ModelError,
            ls.ShapeError,
            ls.ConvergenceError,
            np.linalg.LinAlgError,
            ValueError,
            RuntimeError,
        ) as error:
            return f"{type(error).__name__}: {error}"


def flat(found):
    """Arrays, numbers and texts of a result, one behind the other."""
    if isinstance(found, dict):
        return [x for value in found.values() for x in flat(value)]
    if is_dataclass(found) and not isinstance(found, type):
        return [x for item in fields(found) if item.name not in SILENT for x in flat(getattr(found, item.name))]
    if isinstance(found, list | tuple):
        return [x for value in found for x in flat(value)]
    if isinstance(found, np.ndarray | float | int | complex | np.generic):
        return [np.asarray(found)]
    return [found] if isinstance(found, str) else []


def same(a, b):
    """Whether two results are the same to the last bit."""
    a, b = flat(a), flat(b)
    return len(a) == len(b) and all(map(_same, a, b))


def _same(a, b):
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and isinstance(b, str) and a == b
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
