"""Pressures on surfaces: a punch on a foundation, rods of all sections, blocks that tip, slide, spin and stand."""

from itertools import pairwise

import numpy as np
import pytest
import trimesh
from scipy.integrate import quad
from scipy.optimize import brentq

import lissom as ls
from lissom.bodies.meshes import box_mesh

SOFT = ls.Material(young=2e6, poisson=0.45, density=1000.0, friction=0.5)
G = 9.81


def pressed(body, depth, reach, tilt=0.0, joint=None, **contact):
    """Force and moment about the origin on a body at the origin from a plane at `reach` − `depth` below it."""
    robot = ls.Robot("pressed", gravity=(0, 0, 0))
    robot.add_link("body", body, ls.JointFree() if joint is None else joint)
    floor = np.eye(4)
    floor[:3, :3] = ls.lie.so3_exp([0.0, tilt, 0.0])
    floor[2, 3] = depth - reach
    robot.add_contact("floor", "body", ls.ShapePlane(), placement=floor, **{"surface": True, "friction": 0.0} | contact)
    model = robot.build()
    found = ls.contact_forces(model, model.neutral())
    return found.force.sum(axis=0), np.cross(found.point, found.force).sum(axis=0)


def test_a_punch_on_a_foundation():
    """A rigid box sinks by F/(K A) and turns by M/(K I) under a load off its centre; K is that of its material."""
    sides, load, arm = (0.2, 0.1, 0.06), 50.0, 0.02
    K = SOFT.young / (1 - SOFT.poisson**2) / 0.03
    robot = ls.Robot("punch", gravity=(0, 0, 0))
    robot.add_link("box", ls.RigidBody.box(*sides, material=SOFT), ls.JointPlanar((0, 1, 0)))
    robot.add_point_load("load", "box", force=(0, 0, -load), position=(arm, 0, 0))
    floor = np.eye(4)
    floor[2, 3] = -0.03
    robot.add_contact("floor", "box", ls.ShapePlane(), placement=floor, surface=True, stick_damping=0.1)
    model = robot.build()
    found = ls.solve_statics(model, q0=1e-4 * model.neutral() - 1e-6)
    pose = ls.frame_pose(model, found.q, "box")
    assert -pose[2, 3] == pytest.approx(load / (K * 0.2 * 0.1), rel=2e-3)
    assert np.arcsin(-pose[2, 0]) == pytest.approx(load * arm / (K * 0.1 * 0.2**3 / 12), rel=1e-2)


def cap(a, b, depth):
    """∫ δ across an ellipse of semi-axes a and b that is pressed flat by a depth along b, by quadrature."""
    half = a * np.sqrt(1.0 - (1.0 - depth / b) ** 2)
    return 2.0 * quad(lambda y: b * np.sqrt(1.0 - (y / a) ** 2) - b + depth, 0.0, half)[0]


PLATE = [(-0.01, -0.005), (0.01, -0.005), (0.01, 0.005), (-0.01, 0.005)]
SECTIONS = {
    "round": (ls.SectionCircle(0.01), 0.01, lambda d: cap(0.01, 0.01, d)),
    "tube": (ls.SectionAnnulus(0.01, 0.008), 0.01, lambda d: cap(0.01, 0.01, d)),
    "elliptic": (ls.SectionEllipse(0.01, 0.005), 0.005, lambda d: cap(0.01, 0.005, d)),
    "rectangular": (ls.SectionRectangle(0.02, 0.01), 0.005, lambda d: 0.02 * d),
    "polygon": (ls.SectionPolygon(PLATE), 0.005, lambda d: 0.02 * d),
}


def sink(name, depth, **contact):
    """The force on a rod of 0.4 m that is pressed flat, over that of the closed form."""
    section, reach, integral = SECTIONS[name]
    rod = ls.Rod(0.4, section, ls.BasisLegendre(bending_z=1), SOFT)
    return pressed(rod, depth, reach, stiffness=1e8, **contact)[0][2] / (1e8 * 0.4 * integral(depth))


@pytest.mark.parametrize("name", SECTIONS)
def test_rods_of_every_section(name):
    """A rod pressed flat carries the integral of K δ around its section, with the default number of points within 1 %
    where the patch is as wide as one cell."""
    for depth in (1e-3, 3e-6) if name == "elliptic" else (2e-4,):
        assert sink(name, depth) == pytest.approx(1.0, rel=0.01)


def test_the_force_converges_with_the_number_of_points():
    """Around an ellipse the error falls at a fitted order of at least 1.5, and is below 1 % with the default."""
    counts = [6, 8, 12, 16, 24, 32]
    errors = np.abs([sink("elliptic", 4e-4, surface=n) - 1.0 for n in counts])
    order = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert order > 1.5 and errors[counts.index(16)] < 1e-2, (order, errors)


def wedge(depth, tilt, size):
    """Force and moment about the middle, over K, on a box whose lower face is tilted about y by an angle and `depth`
    deep in its middle: on this face, and on its side that dips in."""
    n, (a, b, _) = np.array([-np.sin(tilt), 0.0, np.cos(tilt)]), size
    x = np.linspace(-0.5 * a, 0.5 * a, 200_001)
    up = np.linspace(0.0, 1.1 * (depth + 0.5 * a * np.sin(tilt)) / np.cos(tilt), 200_001)
    places = np.stack([x, 0 * x, 0 * x], axis=1), np.stack([0 * up + 0.5 * a, 0 * up, up], axis=1)
    force, moment = np.zeros(3), np.zeros(3)
    for at, along, outwards in zip(places, (x, up), ([0.0, 0.0, -1.0], [1.0, 0.0, 0.0])):
        push = b * np.maximum(depth - at @ n, 0.0)[:, None] * -np.dot(outwards, n) * n
        force += np.trapezoid(push, along, axis=0)
        moment += np.trapezoid(np.cross(at, push), along, axis=0)
    return force, moment


@pytest.mark.parametrize("n", [2, 4, True])
@pytest.mark.parametrize("share", [0.02, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("quarter", [0.0, 0.5 * np.pi], ids=["about y", "about x"])
def test_a_plane_is_exact_for_every_number_of_points(n, share, quarter):
    """Purpose: the force and the moment of a box that is pressed into a plane with a part of a side, down to a patch
    that is smaller than a cell, are the integrals of its linear pressure. The plane is tilted about either axis."""
    size, tilt, turn = (0.2, 0.1, 0.06), 0.03, ls.lie.so3_exp([0.0, 0.0, quarter])
    robot = ls.Robot("edge", gravity=(0, 0, 0))
    robot.add_link("box", ls.RigidBody.box(*np.abs(turn @ size), density=1000), ls.JointFree())
    floor, depth = np.eye(4), (share - 0.5) * 0.2 * np.sin(tilt)
    floor[:3, :3] = turn @ ls.lie.so3_exp([0.0, -tilt, 0.0])
    floor[:3, 3] = [0.0, 0.0, -0.03] + floor[:3, 2] * depth
    robot.add_contact("floor", "box", ls.ShapePlane(), placement=floor, surface=n, friction=0.0, stiffness=1e7)
    model = robot.build()
    found = ls.contact_forces(model, model.neutral())
    force, moment = (turn @ x for x in wedge(depth, tilt, size))
    np.testing.assert_allclose(found.force.sum(axis=0), 1e7 * force, rtol=1e-6, atol=1e-6)
    about = np.cross(found.point - [0.0, 0.0, -0.03], found.force).sum(axis=0)
    np.testing.assert_allclose(about, 1e7 * moment, rtol=1e-5, atol=1e-6)


def on_shape(body, shape, place, turn=(0.0, 0.0, 0.0), joint=None):
    """Force along z on a body from a shape, as a function of the number of points."""

    def force(n):
        robot = ls.Robot("touch", gravity=(0, 0, 0))
        robot.add_link("body", body, ls.JointFree(), placement=joint)
        g = ls.lie.se3_exp([*turn, 0.0, 0.0, 0.0])
        g[:3, 3] = place
        robot.add_contact("shape", "body", shape, placement=g, surface=n, friction=0.0, stiffness=1e7)
        model = robot.build()
        return ls.contact_forces(model, model.neutral()).force[:, 2].sum()

    return force


BRICK = ls.RigidBody.box(0.2, 0.1, 0.06, density=1000)
UPRIGHT = ls.lie.se3_exp([0.0, np.pi / 2, 0.0, 0.0, 0.0, 0.0])
LYING = ls.RigidBody.cylinder(0.4, 0.05, density=1000)
DISC = ls.RigidBody.cylinder(0.04, 0.05, density=1000)
FLOOR, ACROSS, BUMP = ls.ShapePlane(), ls.ShapeCapsule(0.5, 0.1, (1, 0, 0)), ls.ShapeSphere(0.5)
PATCHES = {
    "sphere in the middle of a side": (on_shape(BRICK, BUMP, (0.013, 0.007, -0.5296)), 2.0),
    "capsule across a side": (on_shape(BRICK, ACROSS, (0.013, 0.007, -0.5299)), 2.0),
    "capsule askew": (on_shape(BRICK, ACROSS, (0.013, 0.007, -0.5298), (0.0, 0.0, 0.5)), 1.5),
    "flat end of a cylinder": (on_shape(DISC, FLOOR, (0.0, 0.0, -0.0212), (0.0, 0.03, 0.0), UPRIGHT), 1.5),
    "cylinder on a part of its side": (on_shape(LYING, FLOOR, (0.0, 0.0, -0.05), (0.0, 0.005, 0.0)), 1.5),
}


SLOW = "capsule across a side", "cylinder on a part of its side"  # the others have contact of the same kinds


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in PATCHES]
)
def test_patches_converge(name):
    """Purpose: forces of patches of about a fifth of a side converge at a fitted order, and the default is within 1 %
    of the limit."""
    force, least = PATCHES[name]
    counts, limit = [6, 8, 12, 16, 24, 32], force(64)
    errors = np.abs([force(n) / limit - 1.0 for n in counts])
    order = -np.polyfit(np.log(counts), np.log(np.maximum(errors, 1e-9)), 1)[0]
    assert order > least, (order, errors)
    assert abs(force(True) / limit - 1.0) < 1e-2, (order, errors)


def deformable(domain):
    """A body that stretches, in the undeformed shape."""
    law = ls.HyperelasticSaintVenantKirchhoff(young=2e5, poisson=0.3)
    return ls.DeformableBody(ls.KinematicsFunction(lambda x, q: x * (1.0 + q[0]), 1), domain, law, 1000.0)


def cone(depth):
    """∫ δ over a cone from 20 to 15 mm radius that lies with its axis along a plane, by quadrature."""
    widest = 0.2 * min(1.0, depth / 0.005)
    return quad(lambda x: cap(r := 0.02 - 0.025 * x, r, r - 0.02 + depth), 0.0, widest)[0]


DOMAINS = {
    "cylinder": (lambda: ls.DomainCylinder(0.2, 0.02), 0.02, lambda d: 0.2 * cap(0.02, 0.02, d), 2e-3),
    "tube": (lambda: ls.DomainAnnulus(0.2, 0.02, 0.015), 0.02, lambda d: 0.2 * cap(0.02, 0.02, d), 2e-3),
    "cone": (lambda: ls.DomainCone(0.2, 0.02, 0.015), 0.02, cone, 1e-2),
    "box": (lambda: ls.DomainBox(0.2, 0.04, 0.03), 0.015, lambda d: 0.2 * 0.04 * d, 1e-12),
    "mesh": (lambda: ls.DomainTetrahedra(*box_mesh((0.2, 0.04, 0.04), (5, 2, 1))), 0.02, lambda d: 0.2 * 0.04 * d,
             1e-12),
}  # fmt: skip


@pytest.mark.parametrize("name", DOMAINS)
def test_deformable_bodies_of_every_form(name):
    """Purpose: with the default number of cells the force on a deformable body is within 1 % of the integral of the
    pressure."""
    domain, reach, volume, tolerance = DOMAINS[name]
    depth = 2e-3
    force, _ = pressed(deformable(domain()), depth, reach, stiffness=1e7)
    np.testing.assert_allclose(force, [0, 0, 1e7 * volume(depth)], rtol=tolerance, atol=1e-6)


@pytest.mark.parametrize("name", ["cylinder", "tube", "box", "mesh"])
def test_patches_that_are_narrower_than_a_cell(name):
    """Purpose: the default is within 1 % also where the patch is half as wide as a cell, wherever it lies on it."""
    domain, reach, volume, _ = DOMAINS[name]
    depth, body = 2e-5, deformable(domain())
    for angle in np.linspace(0.0, np.pi / 16, 5) if name in ("cylinder", "tube") else (0.0,):
        turn = ls.lie.se3_exp([angle, 0.0, 0.0, 0.0, 0.0, 0.0])
        robot = ls.Robot("lying", gravity=(0, 0, 0))
        robot.add_link("body", body, ls.JointFree(), placement=turn)
        floor = np.eye(4)
        floor[2, 3] = depth - reach
        robot.add_contact("floor", "body", ls.ShapePlane(), placement=floor, surface=True, stiffness=1e7)
        model = robot.build()
        force = ls.contact_forces(model, model.neutral()).force.sum(axis=0)
        np.testing.assert_allclose(force, [0, 0, 1e7 * volume(depth)], rtol=1e-2, atol=1e-6)


def test_deformable_bodies_on_an_edge():
    """A box that leans by an angle touches with two sides: ∫ δ is a wedge of depth d."""
    tilt, depth, width = 0.1, 2e-3, 0.04
    robot = ls.Robot("leaning", gravity=(0, 0, 0))
    robot.add_link("body", deformable(ls.DomainBox(0.2, width, width)), ls.JointFree())
    floor = np.eye(4)
    floor[:3, :3] = ls.lie.so3_exp([tilt, 0.0, 0.0])
    normal = floor[:3, 2]
    floor[:3, 3] = (depth - 0.5 * width * (np.sin(tilt) + np.cos(tilt))) * normal
    robot.add_contact("floor", "body", ls.ShapePlane(), placement=floor, surface=True, friction=0.0, stiffness=1e7)
    model = robot.build()
    force = ls.contact_forces(model, model.neutral()).force.sum(axis=0)
    wedge = 0.2 * 0.5 * depth**2 * (1.0 / np.tan(tilt) + np.tan(tilt))
    np.testing.assert_allclose(force, 1e7 * wedge * normal, rtol=1e-12, atol=1e-9)


def test_bodies_of_every_form_carry_their_area():
    """A box, a cylinder on its end, a cylinder on its side, a sphere and a mesh, pressed into a plane."""
    K, depth = 1e7, 2e-4
    cube = ls.ShapeMesh(ls.Mesh.of_shape(ls.ShapeBox(0.1, 0.1, 0.1)))
    upright, lying = ls.RigidBody.cylinder(0.04, 0.05, density=1000), ls.RigidBody.cylinder(0.4, 0.05, density=1000)
    turned = ls.lie.se3_exp([0.0, np.pi / 2, 0.0, 0.0, 0.0, 0.0])
    filled = ls.RigidBody(1.0, inertia=(1e-3,) * 3, shapes=(ls.PlacedShape(cube),), balls=[(0, 0, 0, 0.05)])
    cases = [
        (ls.RigidBody.box(0.2, 0.1, 0.06, density=1000), 0.03, 0.02 * depth),
        (lying, 0.05, 4 / 3 * np.sqrt(2 * 0.05) * 0.4 * depth**1.5),
        (ls.RigidBody.sphere(0.05, density=1000), 0.05, np.pi * 0.05 * depth**2),
        (filled, 0.05, 0.01 * depth),
    ]
    for body, reach, expected in cases:
        force, moment = pressed(body, depth, reach, stiffness=K)
        np.testing.assert_allclose(force, [0, 0, K * expected], rtol=3e-3, atol=1e-9 * K * expected)
        assert np.abs(moment).max() < 1e-9 * K * expected
    robot = ls.Robot("upright", gravity=(0, 0, 0))
    robot.add_link("disc", upright, placement=turned, joint=ls.JointFree())
    floor = np.eye(4)
    floor[2, 3] = depth - 0.02
    robot.add_contact("floor", "disc", ls.ShapePlane(), placement=floor, surface=True, stiffness=K)
    model = robot.build()
    force = ls.contact_forces(model, model.neutral()).force.sum(axis=0)
    np.testing.assert_allclose(force, [0, 0, K * np.pi * 0.05**2 * depth], rtol=3e-3, atol=1e-6)


def block(angle, size=(0.2, 0.1, 0.1), friction=0.5, **contact):
    """A block on a slope that falls along x by an angle, and its place at rest."""
    robot = ls.Robot("slope", gravity=(G * np.sin(angle), 0, -G * np.cos(angle)))
    robot.add_link("block", ls.RigidBody.box(*size, material=SOFT), ls.JointFree())
    robot.add_contact("slope", "block", ls.ShapePlane(), friction=friction, surface=True, **contact)
    model = robot.build()
    return model, np.array([1.0, 0, 0, 0, 0, 0, 0.5 * size[2] - 1e-5])


def stays(model, q):
    """Whether a block from rest is at rest after two seconds, and how far it went along the slope [m]."""
    motion = ls.simulate(model, 2.0, q, rtol=1e-4, atol=1e-6)
    return np.linalg.norm(motion.v[-1]) < 1e-3, abs(motion.q[-1, 4])


def test_a_block_slides_at_its_angle():
    """A low block holds 1 % below the angle of friction and slides 1 % above it, in dynamics as in statics."""
    for factor, holds in ((0.99, True), (1.01, False)):
        model, q = block(np.arctan(0.5 * factor))
        assert stays(model, q)[0] == holds
    found = ls.solve_statics(block(np.arctan(0.5 * 0.99))[0], q0=q)
    assert np.abs(found.q - q).max() < 2e-3
    with pytest.raises(ls.ConvergenceError):
        ls.solve_statics(block(np.arctan(0.5 * 1.01))[0], q0=q)


def test_a_tall_block_tips_at_its_edge():
    """A block of width 1 and height 3 stands 2 % below the slope 1/3 and tips 2 % above it, for friction that holds."""
    stiff = {"stiffness": 1e12, "stick_stiffness": 1e12, "damping": 1e4}
    for factor, stands in ((0.98, True), (1.02, False)):
        model, q = block(np.arctan(factor / 3.0), (0.1, 0.1, 0.3), friction=2.0, **stiff)
        q[6] = 0.15 - 3.0 * G / (1e12 * 0.01)
        motion = ls.simulate(model, 2.0, q, rtol=1e-4, atol=1e-6)
        up = ls.frame_pose(model, motion.q[-1], "block")[2, 2]
        assert (up > 0.999) == stands, (factor, up)


def test_a_patch_resists_spin():
    """A disc on its end that spins under its weight stops by the torque 2/3 μ N r of a uniform pressure."""
    robot, radius, speed = ls.Robot("top"), 0.05, 5.0
    turned = ls.lie.se3_exp([0.0, np.pi / 2, 0.0, 0.0, 0.0, 0.0])
    robot.add_link("slide", None, ls.JointPrismatic((0, 0, 1)))
    robot.add_link("disc", ls.RigidBody.cylinder(0.02, radius, material=SOFT), ls.JointRevolute((1, 0, 0)), "slide",
                   placement=turned)  # fmt: skip
    floor = np.eye(4)
    floor[2, 3] = -0.01
    robot.add_contact("floor", "disc", ls.ShapePlane(), placement=floor, surface=True, friction=0.3)
    model = robot.build()
    K = SOFT.young / (1 - SOFT.poisson**2) / 0.01
    depth = model.links.mass[1] * G / (K * np.pi * radius**2)
    time = 0.5 * speed / (2 / 3 * 0.3 * G / (0.5 * radius))
    motion = ls.simulate(model, time, [-depth, 0.0], v0=[0.0, speed], rtol=1e-6, atol=1e-8)
    assert motion.v[-1, 1] == pytest.approx(0.5 * speed, rel=1e-2)


def test_a_soft_layer_resists_rolling():
    """A rod that rolls on a damped layer is braked by the moment 4/15 K c ω l d a³ of its patch of the half-width a:
    the pressure is larger where the layer is being pressed."""
    radius, length, depth, speed, K, c = 0.05, 0.2, 2e-3, 0.3, 1e7, 2.0
    rod = ls.Rod(length, ls.SectionEllipse(radius, radius), ls.BasisLegendre(bending_z=1), SOFT)
    floor = np.eye(4)
    floor[2, 3] = depth - radius
    robot = ls.Robot("roll", gravity=(0, 0, 0))
    robot.add_link("rod", rod, ls.JointFree())
    law = {"stiffness": K, "damping": c, "surface": 64}
    robot.add_contact("floor", "rod", ls.ShapePlane(), placement=floor, friction=0.0, **law)
    model = robot.build()
    v = np.zeros(model.nv)
    v[0] = speed
    found = ls.contact_forces(model, model.neutral(), v)
    moment = np.cross(found.point, found.force).sum(axis=0)[0]
    half = np.sqrt(2.0 * radius * depth)
    assert moment == pytest.approx(-4 / 15 * K * c * speed * length * depth * half**3, rel=0.03)
    assert found.force.sum(axis=0)[2] == pytest.approx(K * length * cap(radius, radius, depth), rel=0.01)


def test_a_roll_comes_to_rest():
    """Purpose: a roll on a damped layer comes to rest after v₀ τ by the size of its patch: the moment 4/15 K c ω l d a³
    brakes the inertia about the line of contact, 3/2 m r², so that the speed falls as exp(−t/τ)."""
    radius, length, speed, K, c = 0.05, 0.2, 0.1, 1e7, 20.0
    stiff = ls.Material(young=1e9, density=1000.0)
    robot, section = ls.Robot("roll", gravity=(0, 0, -G)), ls.SectionEllipse(radius, radius)
    robot.add_link("rod", ls.Rod(length, section, ls.BasisLegendre(bending_z=0), stiff), ls.JointFree())
    law = {"stiffness": K, "damping": c, "friction": 0.5, "stick_stiffness": 1e7, "surface": 32}
    robot.add_contact("floor", "rod", ls.ShapePlane(), **law)
    model = robot.build()
    mass = model.links.mass[0]
    depth = brentq(lambda d: K * length * cap(radius, radius, d) - mass * G, 1e-6, 1e-2)
    half = np.sqrt(2.0 * radius * depth)
    tau = 1.5 * mass * radius**2 / (4 / 15 * K * c * length * depth * half**3)
    q, v = model.neutral(), np.zeros(model.nv)
    q[6], v[0], v[4] = radius - depth, -speed / radius, speed
    motion = ls.simulate(model, 5.0 * tau, q, v, rtol=1e-3, atol=1e-6)
    assert motion.q[-1, 5] == pytest.approx(speed * tau * (1.0 - np.exp(-5.0)), rel=0.02)
    assert abs(motion.v[-1, 4]) < 0.01 * speed


def tower(count):
    """Bricks on each other, each touched by the one above, and their places at rest."""
    robot, size = ls.Robot("tower"), (0.2, 0.1, 0.06)
    for k in range(count):
        robot.add_link(f"brick {k}", ls.RigidBody.box(*size, material=SOFT), ls.JointFree())
    robot.add_contact("floor", "brick 0", ls.ShapePlane(), surface=4)
    for k in range(1, count):
        robot.add_contact(f"joint {k}", f"brick {k}", ls.ShapeBox(*size), on=f"brick {k - 1}", surface=4)
    q = np.zeros((count, 7))
    q[:, 0], q[:, 6] = 1.0, 0.06 * np.arange(count) + 0.03
    return robot, q.ravel()


def cut_off(corners):
    """∫ −z over the projection of the parts below z = 0 of triangles (m, 3, 3) that face down."""
    total = 0.0
    down = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])[:, 2] < 0.0
    for corner in corners[down & (corners[:, :, 2] < 0.0).any(axis=1)]:
        below = []
        for a, b in zip(corner, np.roll(corner, -1, axis=0)):
            below += [a] if a[2] < 0.0 else []
            below += [a + (b - a) * a[2] / (a[2] - b[2])] if (a[2] < 0.0) != (b[2] < 0.0) else []
        for b, c in pairwise(below[1:]):
            total += 0.5 * np.cross(b - below[0], c - below[0])[2] * (below[0] + b + c)[2] / 3.0
    return total


MESHES = {
    "cylinder": (lambda: trimesh.creation.cylinder(0.05, 0.15, sections=128), 1e-10),
    "cube": (lambda: trimesh.creation.box((0.1, 0.1, 0.1)), 1e-10),
    "fine sphere": (lambda: trimesh.creation.icosphere(5, 0.05), 1e-2),
}


@pytest.mark.parametrize("depth", [5e-3, 5e-4])
@pytest.mark.parametrize("name", MESHES)
def test_meshes_are_pressed_in_any_pose(name, depth):
    """Purpose: the force on a mesh that touches a plane with an edge, a rim or a corner is the volume that it would cut
    off, exactly for triangles, and within 1 % where many triangles share a cell."""
    mesh, tolerance = MESHES[name][0](), MESHES[name][1]
    shape = ls.ShapeMesh(ls.Mesh(vertices=np.array(mesh.vertices), triangles=np.array(mesh.faces)))
    robot = ls.Robot("mesh", gravity=(0, 0, 0))
    body = ls.RigidBody(1.0, inertia=np.eye(3) * 1e-3, shapes=(ls.PlacedShape(shape),))
    robot.add_link("body", body, ls.JointFree())
    robot.add_contact("floor", "body", ls.ShapePlane(), surface=True, friction=0.0, stiffness=1e7)
    model, random = robot.build(), np.random.default_rng(3)
    for _ in range(6):
        q = model.neutral()
        q[:4] = random.normal(size=4)
        q[:4] /= np.linalg.norm(q[:4])
        corners = mesh.triangles @ ls.frame_pose(model, q, "body")[:3, :3].T
        q[6] = -corners[..., 2].min() - depth
        corners[..., 2] += q[6]
        force = ls.contact_forces(model, q).force.sum(axis=0)
        np.testing.assert_allclose(force, [0.0, 0.0, 1e7 * cut_off(corners)], rtol=tolerance, atol=1e-6)


def test_surfaces_touch_the_shapes_of_other_links():
    """A brick on `others` carries the same force as on the shape of that link by hand; bodies without a shape are
    refused by name."""
    size, forces = (0.2, 0.1, 0.06), []
    for given in ({"others": ["stand", "brick"]}, {"shape": ls.ShapeBox(*size), "on": "stand"}):
        robot = ls.Robot("pile", gravity=(0, 0, 0))
        robot.add_link("stand", ls.RigidBody.box(*size, material=SOFT), ls.JointRevolute((0, 0, 1)))
        robot.add_link("brick", ls.RigidBody.box(*size, material=SOFT), ls.JointFree())
        robot.add_link("rod", ls.Rod(0.1, ls.SectionCircle(0.01), ls.BasisLegendre(bending_z=1), SOFT))
        robot.add_contact("touch", "brick", surface=8, friction=0.0, **given)
        q = robot.build().neutral()
        q[:8] = [0.1, 1.0, 0, 0, 0, 0.02, 0.0, 0.0599]
        forces.append(ls.contact_forces(robot.build(), q).force.sum(axis=0))
    np.testing.assert_array_equal(*forces)
    assert forces[0][2] > 1.0
    robot.add_contact("wrong", "brick", others="rod", surface=True)
    with pytest.raises(ls.ModelError, match="contact 'wrong': others: must carry a RigidBody with collision shapes"):
        robot.build()


@pytest.mark.parametrize("count", [2, 3, pytest.param(10, marks=pytest.mark.slow)])
def test_a_tower_of_bricks_stands(count):
    """Bricks settle under their weight and stay where they are for 100 s."""
    robot, q = tower(count)
    model = robot.build()
    motion = ls.simulate(model, 100.0, q, t_eval=[0.0, 5.0, 100.0])
    moved = (motion.q[-1] - motion.q[1]).reshape(count, 7)
    assert np.abs(moved[:, 4:]).max() < 1e-6
    np.testing.assert_allclose(motion.q[-1].reshape(count, 7)[:, 4:6], 0.0, atol=1e-4)
