"""A hybrid robot for the tests of surroundings, its obstacles, and central differences for it.

On a base hang two rods, one of them by a spherical joint, and a ball on a hinge.
"""

from __future__ import annotations

import numpy as np
from forces.exact_distances import distance
from robots import random_placement
from scipy.spatial.transform import Rotation

import lissom as ls

RADIUS = 0.04  # of the balls along the rods [m]
BASES = {"fixed": ls.JointFixed(), "free": ls.JointFree(), "spherical": ls.JointSpherical()}
LAW = {"stiffness": 1e4, "friction": 0.3, "damping": 0.1, "slip_speed": 0.1}


def rod():
    """An elliptic rod with torsion, bending and elongation."""
    section = ls.SectionEllipse((0.03, 0.01), (0.02, 0.015))
    material = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=1e4)
    return ls.Rod(0.5, section, ls.BasisLegendre(torsion=1, bending_y=2, bending_z=2, elongation=1), material, None, 5)


def moved(x=0.0, y=0.0, z=0.0, turn=(0.0, 0.0, 0.0)):
    """The pose (4, 4) of a displacement after a turn by a rotation vector."""
    g = np.eye(4)
    g[:3, :3], g[:3, 3] = Rotation.from_rotvec(turn).as_matrix(), (x, y, z)
    return g


def hybrid(base="fixed", foot=(0.0, -0.05, 0.0)):
    """The robot, the second rod hanging at `foot` of the base."""
    robot = ls.Robot(f"hybrid on a {base} base")
    robot.add_link("base", ls.RigidBody.box(0.1, 0.1, 0.1, density=900), BASES[base])
    robot.add_link("a", rod(), parent="base", placement=moved(0.0, 0.05, 0.0))
    robot.add_link("b", rod(), ls.JointSpherical(), parent="base", placement=moved(*foot))
    hinge = {"parent": "a", "placement": moved(0.05, 0.02, 0.0)}
    robot.add_link("ball", ls.RigidBody.sphere(0.03, density=500), ls.JointRevolute((0, 1, 1)), **hinge)
    return robot


def state(model, seed, bend=0.4):
    """Random q, v and a."""
    rng = np.random.default_rng(seed)
    q = ls.integrate(model, model.neutral(), bend * rng.normal(size=model.nv) * model.dofs.scale)
    return q, *(rng.normal(size=(2, model.nv)) * model.dofs.scale)


def touching_shape(base, shape, centre, seed, *, moves):
    """The robot with the shape placed so that the centre of the ball at the tip of rod a stands at `centre` in its
    frame, and a state there; the shape is fixed to rod b if it moves."""
    rng = np.random.default_rng(seed)
    bare = hybrid(base).build()
    q, v, a = state(bare, seed)
    g = random_placement(rng)
    g[:3, 3] = ls.frame_pose(bare, q, "a")[:3, 3] - g[:3, :3] @ np.asarray(centre)
    robot = hybrid(base)
    where = {"on": "b", "s": 0.6} if moves else {}
    placement = np.linalg.inv(ls.frame_pose(bare, q, "b", 0.6)) @ g if moves else g
    robot.add_contact("touch", ["a", "ball"], shape, placement=placement, radius=RADIUS, **where, **LAW)
    return robot.build(), shape, (q, v, a)


def gaps(model, q, shape):
    """Gaps of all pairs [m] and the features nearest, by NumPy; the shape is the partner of a ball."""
    world, poses = model.contacts, ls.forward_kinematics(model, q)
    found, features = [], []
    for ball, obstacle, _ in world.pair:
        c = poses[world.ball_node[ball]] @ np.append(world.ball_position[ball], 1.0)
        node = world.obstacle_node[obstacle]
        g = world.obstacle_placement[obstacle]
        y = np.linalg.inv(g if node < 0 else poses[node] @ g) @ c
        if shape is None:
            own, size = ls.ShapeSphere(world.obstacle_size[obstacle, 0]), np.eye(3)
        else:
            own, size = shape, shape.surface("shape").rotation
        d, feature = distance(own, size @ y[:3])
        found.append(d - world.ball_radius[ball])
        features.append(feature)
    return np.array(found), features


def differences(model, function, size):
    """Derivative of function(d) by d (nv,) at 0, on a trailing axis, by differences of fourth order.

    function takes rows and gives rows; `size` is the step in natural sizes.
    """
    moves = size * np.diag(model.dofs.scale)
    near, far = (function(s * moves) - function(-s * moves) for s in (1, 2))
    return ((8 * near - far) / (12 * size * model.dofs.scale[:, None])).T


def mismatch(model, exact, numerical):
    """Largest difference of two matrices in natural sizes, relative to the largest entry."""
    size = np.outer(model.dofs.scale, model.dofs.scale)
    return np.abs((exact - numerical) * size).max() / np.abs(numerical * size).max()
