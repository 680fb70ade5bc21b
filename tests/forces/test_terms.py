"""What acts on a robot: each term states all that the algorithms ask of it, and kernels are made of the terms."""

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import lissom as ls
from lissom.dynamics.inverse_dynamics import inverse_dynamics_kernel
from lissom.forces.terms import SHARED, TERMS, acting_on
from lissom.launch.compiling import kernel_for
from lissom.lie.types import CONTACTS, FEATURES, RIGID
from lissom.model.redesign import described
from lissom.passes.scratch import INPUTS
from lissom.robot import robot as description
from lissom.robot.fields import ForcePlace

STOPS = {"limits": (-1.0, 1.0), "limit_stiffness": 3.0}
NAME = """
import lissom as ls
from lissom.dynamics.inverse_dynamics import inverse_dynamics_kernel
from lissom.launch.compiling import kernel_for
robot = ls.Robot("other")
robot.add_link("a", ls.RigidBody.sphere(0.2, density=9.0), ls.JointPrismatic())
print(kernel_for(inverse_dynamics_kernel, robot.build()).module.name)
"""


def ball(joint):
    """One ball on a joint."""
    robot = ls.Robot("ball")
    robot.add_link("ball", ls.RigidBody.sphere(0.1, density=1000.0), joint)
    return robot


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_terms_are_whole(term):
    """A wrench comes with its answer to the motion; a force with its derivatives, as a matrix and along a direction;
    but what inputs drive is no part of inverse dynamics, which is what directions are for."""
    bound = {} if term.bind is None else term.bind(*([0] if term.tables is not None else []))
    has = {name for name in term._fields if getattr(term, name) is not None} | set(bound)
    assert ("add" in has) == ("respond" in has)
    assert ("force" in has) == ("stiffen" in has)
    assert ("change" in has) == ("force" in has and term.flag != INPUTS)
    assert has & {"add", "force"}


@dataclass(frozen=True)
class Pad:
    """A part of another kind, which acts between a place on a link and one on the world."""

    name: str
    link: str
    size: float
    s: float = 1.0

    def check(self, where):
        description.checks.number(self.size, f"{where}: size", above=0.0)

    def places(self):
        return ForcePlace(self.link, self.s), ForcePlace(None)


@pytest.fixture
def padded(monkeypatch):
    """A maker of robots with pads, a kind of part that is only in PARTS."""
    monkeypatch.setitem(description.PARTS, "pads", description.Part(Pad, "pad", "", places=Pad.places))
    material = ls.Material(young=1e6, density=1e3)

    def make(*pads):
        robot = ls.Robot("padded")
        robot.add_link("rod", ls.Rod(0.1, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1), material))
        robot.pads = {pad.name: pad for pad in pads}
        return robot

    return make


def test_a_kind_of_part_needs_no_lines_in_the_model(padded):
    """A part that only PARTS knows is checked, gets a node with a pose in kernels at its place, counts as surroundings
    and couples nodes; its numbers follow the description."""
    plain, robot = padded().build(), padded(Pad("tip", "rod", 0.3), Pad("middle", "rod", 0.2, s=0.37))
    model = robot.build()
    assert plain.n_load_rows == 0 and model.n_load_rows == 2
    assert model.placed_parts.names == ("pad 'tip'", "pad 'middle'")
    assert plain.links.frame["rod"][0] >= plain.n_dynamic and model.links.frame["rod"][0] < model.n_dynamic
    (tip, at_tip, _), (middle, at_middle, G) = model.placed_parts.of("pads")
    assert (tip.size, middle.size) == (0.3, 0.2) and at_tip[0] == model.links.frame["rod"][0]
    assert 0 <= at_middle[0] < model.n_dynamic and at_middle[1] == at_tip[1] == -1
    np.testing.assert_array_equal(G, [np.eye(4)] * 2)
    np.testing.assert_array_equal(model.tied_nodes, [at_tip, at_middle])
    other = described(model, padded(*robot.pads.values(), Pad("more", "rod", 1.0)))
    assert len(other.placed_parts) == 3
    changed = described(model, padded(Pad("tip", "rod", 0.7), robot.pads["middle"]))
    assert [part.size for part, *_ in changed.placed_parts.of("pads")] == [0.7, 0.2]
    moved = described(model, padded(Pad("tip", "rod", 0.7), Pad("middle", "rod", 0.2, s=0.21)))
    assert moved.n_nodes == model.n_nodes and moved.nodes.h.tolist() != model.nodes.h.tolist()


def test_a_kind_of_part_is_checked_without_lines_of_its_own(padded):
    """An unknown link and a number that breaks a rule name the part; models of a batch must have the same parts."""
    with pytest.raises(ls.ModelError, match=r"pad 'a': link.*no link"):
        padded(Pad("a", "no link", 1.0)).build()
    with pytest.raises(ls.ModelError, match=r"pad 'a': size: must be > 0"):
        padded(Pad("a", "rod", -1.0)).build()
    with pytest.raises(ls.ModelError, match=r"model 1 of a batch.*pad 'a'.*pad 'b'"):
        ls.ModelBatch([padded(Pad(name, "rod", 1.0)).build() for name in "ab"])


def test_kernels_are_shared():
    """Robots on which the same acts share their kernels; one with a contact has its own, and so has another law."""
    plain, stopped = ball(ls.JointRevolute()).build(), ball(ls.JointRevolute(**STOPS)).build()
    touching = ball(ls.JointFree())
    touching.add_contact("ground", "ball", ls.ShapePlane())
    assert acting_on(plain) is acting_on(stopped)
    kernel = kernel_for(inverse_dynamics_kernel, plain)
    assert kernel is kernel_for(inverse_dynamics_kernel, stopped)
    assert kernel is not kernel_for(inverse_dynamics_kernel, touching.build())


@pytest.fixture
def own_kernels(monkeypatch):
    """Robots have kernels with what they need alone, as they have for users."""
    monkeypatch.delenv(SHARED, raising=False)


@pytest.mark.usefixtures("own_kernels")
def test_robots_beyond_plain_ones_share_their_kernels():
    """A free joint, a loop, a straight tendon, an elastic one: kernels of plain robots serve none of it, others all."""
    point = [ls.PathPoint(None, (0.0, 0.0, 1.0)), ls.PathPoint("ball", (0.0, 0.0, 0.1))]
    robots = [ball(joint) for joint in (ls.JointFree(), *[ls.JointRevolute()] * 3)]
    robots[1].add_loop("hold", "ball", None, joint=ls.JointPlanar())
    robots[2].add_tendon("straight", path=point)
    material = ls.Material(young=1e6, density=1e3)
    robots[3].add_link("rod", ls.Rod(0.1, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1), material))
    robots[3].add_tendon("elastic", "rod", (0.0, 0.005), stiffness=1e3)
    shared = {acting_on(robot.build()).kinds for robot in robots}
    assert shared == {(FEATURES,)} and acting_on(ball(ls.JointRevolute()).build()).kinds == ()


@pytest.mark.usefixtures("own_kernels")
def test_robots_that_only_touch_get_kernels_of_their_own():
    """A loop, a straight tendon, a spring or a fluid beside the contact gets those that serve all robots."""
    robots = [ball(ls.JointFree()) for _ in range(5)]
    for robot in robots:
        robot.add_contact("ground", "ball", ls.ShapePlane())
    robots[1].add_loop("hold", "ball", None, joint=ls.JointPlanar())
    robots[2].add_tendon("straight", path=[ls.PathPoint(None, (0.0, 0.0, 1.0)), ls.PathPoint("ball", (0.0, 0.0, 0.1))])
    robots[3].add_spring("spring", ls.PathPoint(None, (0.0, 0.0, 1.0)), "ball", stiffness=1.0)
    robots[4].set_fluid(density=1e3)
    found = [acting_on(robot.build()).kinds for robot in robots]
    assert found[0] == (CONTACTS, RIGID) and set(found[1:]) == {(FEATURES,)}


@pytest.mark.usefixtures("own_kernels")
def test_rigid_robots_that_touch_have_kernels_without_rods():
    """A rod, a spring of a spherical joint, a load or an input gives the kernels of all robots that touch."""
    springy = ls.JointSpherical(stiffness=1.0)
    joints = [ls.JointRevolute(), ls.JointFree(), springy, *[ls.JointFree()] * 3]
    robots = [ball(joint) for joint in joints]
    for robot in robots:
        robot.add_contact("ground", "ball", ls.ShapePlane())
    material = ls.Material(young=1e6, density=1e3)
    rod = ls.Rod(0.1, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1), material)
    robots[3].add_link("rod", rod, parent="ball")
    robots[4].add_point_load("load", "ball", force=(0.0, 0.0, 1.0))
    robots[5].add_wrench_input("thrust", "ball")
    found = [acting_on(robot.build()).kinds for robot in robots]
    assert found[:2] == [(CONTACTS, RIGID)] * 2 and set(found[2:]) == {(CONTACTS,)}


@pytest.mark.parametrize("count", [3, 45])
def test_rigid_robots_move_alike_by_both_kernels(count):
    """A point load of zero gives a robot the kernels with rods: the same motion in as many iterations, and the same
    derivatives."""
    g, step = np.eye(4), np.eye(4)
    g[2, 3], step[0, 3] = 0.3, 0.6 / count
    motions, slopes = [], []
    for loads in (0, 1):
        robot = ls.Robot("chain", gravity=(0.0, 0.0, -9.81))
        for k in range(count):
            joint = (ls.JointRevolute((0, 1, 0)), ls.JointRevolute((1, 2, 3)), ls.JointPrismatic((1, 0, 0)))[k % 3]
            at = {"parent": f"{k - 1}", "placement": step} if k else {"placement": g}
            robot.add_link(f"{k}", ls.RigidBody.sphere(0.05, density=1e3), joint, **at)
        robot.add_link("hand", ls.RigidBody.sphere(0.03, density=1e3), ls.JointFixed(), parent="0", placement=step)
        robot.add_contact("ground", f"{count - 1}", ls.ShapePlane(), stiffness=1e4, friction=0.3)
        for k in range(loads):
            robot.add_point_load(f"load {k}", "0", force=(0.0, 0.0, 0.0))
        model = robot.build()
        motions.append(ls.simulate(model, 0.3, dt=1e-3))
        slopes.append(ls.inverse_dynamics_derivatives(model, *np.random.default_rng(1).normal(size=(3, model.nv))))
    one, other = motions
    assert one.statistics.evaluations == other.statistics.evaluations
    np.testing.assert_allclose(one.q, other.q, atol=1e-9)
    for found, expected in zip(*slopes):
        np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())


def test_another_process_finds_the_same_module():
    """The module of a kernel is named by its contents, so that the next process uses the compiled kernel."""
    done = subprocess.run([sys.executable, "-c", NAME], capture_output=True, text=True, check=True)
    plain = ball(ls.JointRevolute()).build()
    ls.inverse_dynamics(plain, [0.0], [0.0], [0.0])
    assert kernel_for(inverse_dynamics_kernel, plain).module.name in done.stdout
