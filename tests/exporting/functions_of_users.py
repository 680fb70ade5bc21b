"""A robot whose forces, actuators, laws and current are functions of jax.numpy."""

import jax.numpy as jnp
import numpy as np

import lissom as ls


def _gust(t, g, eta):
    """A force that changes with time, place and speed."""
    return jnp.stack([0.0 * t, 0.001 * jnp.sin(t), 0.0 * t, 0.1 * jnp.cos(3.0 * t) - 0.2 * eta[3], g[2, 3], 0.0 * t])


def _coils(t, g, eta, w):
    """A wrench that is no linear function of the currents of two coils."""
    return 0.01 * jnp.stack([w[0] * w[1], w[0] ** 2, w[1] + t, g[0, 3] * w[0], jnp.tanh(w[1]), eta[2] * w[0]])


def robot_of_functions():
    """A hinge and a rod in a current that changes with time: a force on the rod and one along it, one with inputs, a
    spring, a hinge spring, a joint coupling, and actuators that are and are not linear, coupled to a tendon."""
    robot, y = ls.Robot("users"), (0.0, 1.0, 0.0)
    spring = ls.TracedFunction(lambda x: 0.5 * jnp.sinh(x))
    box = ls.RigidBody.box(0.05, 0.03, 0.02, density=1200.0)
    robot.add_link("palm", box, ls.JointRevolute(y, spring=spring, damping=0.01))
    silicone = ls.Material(young=5e5, poisson=0.5, density=1100.0, viscosity=200.0)
    rod = ls.Rod(0.1, ls.SectionCircle(0.008), ls.BasisLegendre(bending_y=1, bending_z=0), silicone)
    robot.add_link("finger", rod, parent="palm")
    robot.add_tendon("tendon", "finger", (0.0, 0.006))
    robot.add_force("gust", "finger", ls.TracedFunction(_gust), s=1.0)
    robot.add_force("drag", "finger", ls.TracedFunction(lambda t, g, eta: -0.1 * eta * jnp.abs(eta)))
    robot.add_force("coils", "finger", ls.TracedFunction(_coils), s=0.5, inputs=["coil a", "coil b"])
    law = ls.TracedFunction(lambda length, rate: 20.0 * jnp.tanh(length) + rate)
    robot.add_spring("band", ls.PathPoint(None, (0.0, 0.0, 0.1)), "finger", law=law)
    C = np.random.default_rng(0).normal(size=(4, 4))
    robot.add_custom_actuator("muscle", ls.TracedFunction(lambda q: 0.01 * jnp.cos(C @ q)))
    squared = ls.TracedFunction(lambda q, u: 0.01 * u[0] ** 2 * jnp.sin(q) + 0.01 * u[1] * u[0])
    robot.add_custom_actuator("magnets", squared, size=2, linear=False)
    current = ls.TracedFunction(lambda x, t: jnp.stack([jnp.sin(x[1] + t), x[2], 0.3 + t]))
    robot.set_fluid(density=1000.0, current=current)
    robot.couple_inputs("both", {"tendon": 0.5, "muscle": -2.0})
    robot.add_frame("tip", "finger", s=1.0)
    return robot
