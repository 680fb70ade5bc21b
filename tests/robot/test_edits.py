"""Changes of whole descriptions: links removed, joints locked, robots attached to robots."""

import dataclasses
import re
from copy import deepcopy

import numpy as np
import pinocchio as pin
import pytest
from robot_descriptions import assert_same, everything, rod
from robots import pinocchio_model, random_rigid_tree, random_state

import lissom as ls
from lissom.robot.robot import PARTS

TURN = np.array([[0.0, -1, 0, 0.1], [1, 0, 0, 0.2], [0, 0, 1, 0.3], [0, 0, 0, 1]])


def arm():
    """Two links, a rod between them, a motor, and a frame at the end."""
    robot = ls.Robot("arm")
    robot.add_link("upper", ls.RigidBody(2.0, (0.1, 0, 0), (0.01, 0.02, 0.02)), ls.JointRevolute((0, 1, 0)))
    robot.add_link("soft", rod(), parent="upper", placement=TURN)
    robot.add_link("wrist", ls.RigidBody(0.3, (0.02, 0, 0), (1e-4,) * 3), ls.JointUniversal(), "soft")
    robot.add_frame("tool", "wrist", placement=TURN)
    robot.add_joint_actuator("motor", "upper")
    return robot


def gripper(robot=None, prefix="", parent=None, world=None, at=1.0):
    """Two fingers, made alone, or at once on a link of another robot; `world` is its world there."""
    robot, world = ls.Robot("gripper", near_pairs=7) if robot is None else robot, np.eye(4) if world is None else world

    def on(place):
        return (world @ place).tolist()

    def point(position):
        return ls.PathPoint(parent, (world[:3, :3] @ position + world[:3, 3]).tolist(), at)

    out = np.eye(4)
    out[:3, 3] = (0.0, 0.05, 0.0)
    for name, place in (("left", out), ("right", TURN)):
        body = ls.RigidBody(0.2, (0.03, 0, 0), (1e-4, 2e-4, 2e-4), balls=((0.06, 0, 0, 0.01),))
        robot.add_link(prefix + name, body, ls.JointRevolute((0, 0, 1), stiffness=0.1), parent, at, on(place))
        robot.add_joint_actuator(prefix + name + " motor", prefix + name)
    robot.add_link(prefix + "pad", rod(length=0.05), None, prefix + "left", placement=TURN.tolist())
    robot.couple_inputs(prefix + "close", {prefix + "left motor": 1.0, prefix + "right motor": -2.0})
    robot.add_tendon(prefix + "cable", path=[point(np.array([0, 0.1, 0])), ls.PathRod(prefix + "pad", (0.0, 0.01)),
                                             ls.PathPoint(prefix + "right", (0.0, 0, 0.1))])  # fmt: skip
    robot.add_spring(prefix + "band", prefix + "pad", point(np.array([0.1, 0.1, 0])), stiffness=20.0)
    robot.add_contact(prefix + "pinch", [prefix + "left"], others=prefix + "right", stiffness=10.0, exponent=2.0)
    robot.add_contact(prefix + "palm", prefix + "right", ls.ShapePlane(), on=parent, s=at, placement=on(TURN),
                      stiffness=3.0, exponent=2.0)  # fmt: skip
    robot.add_loop(prefix + "pin", prefix + "right", parent, s_b=at, placement_a=TURN.tolist(), placement_b=on(out),
                   joint=ls.JointSpherical())  # fmt: skip
    robot.add_point_load(prefix + "weight", prefix + "pad", force=(0, 0, -1.0))
    return robot


PLACES = [("wrist", TURN, 1.0), ("wrist", None, 1.0), ("soft", TURN, 0.5), (None, TURN, 1.0), ("tool", TURN, 1.0)]


@pytest.mark.parametrize(("parent", "placement", "at"), PLACES)
def test_an_attached_robot_is_the_one_that_is_written_at_once(parent, placement, at):
    """Mass matrix, inverse dynamics, accelerations, inputs and loops are bit for bit those of one description."""
    one, whole = arm(), arm()
    one.attach(gripper(), parent, placement, prefix="hand_", at=at)
    world = None if placement is None else placement
    if parent == "tool":
        parent, world = "wrist", TURN @ placement
    gripper(whole, "hand_", parent, world, at)
    if placement is not None:
        whole.near_pairs = one.near_pairs
        assert_same(one, whole)
    a, b = one.build(), whole.build()
    q, v, acc, u = random_state(one, 3)
    np.testing.assert_array_equal(ls.mass_matrix(a, q), ls.mass_matrix(b, q))
    np.testing.assert_array_equal(ls.inverse_dynamics(a, q, v, acc), ls.inverse_dynamics(b, q, v, acc))
    np.testing.assert_array_equal(ls.forward_dynamics(a, q, v, u), ls.forward_dynamics(b, q, v, u))
    assert a.inputs.names == ("motor", "hand_close", "hand_cable")
    assert one.near_pairs == 4096


def test_attaching_leaves_the_other_robot_and_shares_no_dictionary():
    """The copied robot does not change; a robot may be attached to itself, more than once."""
    hand, robot = gripper(), arm()
    before = deepcopy(hand)
    robot.attach(hand, "wrist", prefix="a ")
    robot.couplings["a close"].gains["a left motor"] = 5.0
    assert_same(hand, before)
    twice = arm()
    twice.attach(twice, "tool", prefix="2 ")
    twice.attach(arm(), "2 tool", prefix="3 ")
    assert list(twice.links) == [f"{k}{name}" for k in ("", "2 ", "3 ") for name in ("upper", "soft", "wrist")]
    assert twice.build().nv == 3 * arm().build().nv


def test_every_part_is_attached_with_its_names():
    """Each kind of part, with each field that names another part: nothing keeps a name without the prefix."""
    parts, robot = everything(), ls.Robot("all")
    parts.add_force("own", "arm", lambda t, g, eta: np.zeros(6))
    parts.add_joint_actuator("motor", "arm")
    parts.add_wrench_input("thrust", "ball")
    parts.add_chamber("air", "arm", area=1e-4)
    robot.attach(parts, None, prefix="x_")
    robot.check()
    for kind in PARTS:
        assert list(getattr(robot, kind)) == [f"x_{name}" for name in getattr(parts, kind)]
        assert [part.name for part in getattr(robot, kind).values()] == list(getattr(robot, kind))
    assert robot.fluid is None


def test_gravity_and_fluid_of_the_attached_robot_are_ignored():
    """Those of the robot it is attached to act on all."""
    robot, other = ls.Robot("a", gravity=(1, 2, 3)), everything()
    robot.set_fluid(800.0, default=None)
    robot.attach(other, None)
    assert robot.gravity == (1, 2, 3)
    assert (robot.fluid.density, robot.fluid.default, robot.fluid.links) == (800.0, None, {})


REFUSED = {
    "a name that is taken": (
        lambda robot: robot.attach(arm(), "wrist"),
        "attach robot 'arm' > link name: must not be taken already; give another prefix (got 'upper')",
    ),
    "a name of a frame": (
        lambda robot: (robot.add_frame("x_upper", "wrist"), robot.attach(arm(), "wrist", prefix="x_")),
        "attach robot 'arm' > link name: must not be taken already; give another prefix (got 'x_upper')",
    ),
    "an unknown parent": (
        lambda robot: robot.attach(gripper(), "wrst"),
        "attach robot 'gripper': parent: must be one of the links and frames ['soft', 'tool', 'upper', 'wrist'] (got "
        "'wrst'); did you mean 'wrist'?",
    ),
    "a place on a frame": (
        lambda robot: robot.attach(gripper(), "tool", at=0.5),
        "attach robot 'gripper': at: must be left out where the parent is a frame, which has it (got 0.5)",
    ),
    "a place beyond the rod": (
        lambda robot: robot.attach(gripper(), "soft", at=1.5),
        "attach robot 'gripper': at: must lie in [0, 1] (got 1.5)",
    ),
    "a model": (
        lambda robot: robot.attach(arm().build(), "wrist"),
        "attach: expected a Robot, the description and not its Model (got",
    ),
    "a pose that is no pose": (
        lambda robot: robot.attach(gripper(), "wrist", np.ones((4, 4))),
        "attach robot 'gripper': placement: its rotation must be orthonormal with determinant +1 (got",
    ),
    "a prefix that is no text": (lambda robot: robot.attach(gripper(), "wrist", prefix=1), "attach: prefix: must be"),
    "an actuator of all coordinates": (
        lambda robot: robot.attach(custom(), "wrist", prefix="x"),
        "attach robot 'arm': no actuator may be a function of all coordinates; add it after attaching (got 'own')",
    ),
    "an unknown link": (
        lambda robot: robot.remove_link("tool"),
        "remove_link: must be one of the links ['soft', 'upper', 'wrist'] (got 'tool')",
    ),
    "a link that is needed": (
        lambda robot: robot.remove_link("soft"),
        "link 'soft': must carry no link and no other part; with_children=True removes them too (got \"link 'wrist', "
        "frame 'tool'\")",
    ),
    "an unknown joint": (
        lambda robot: robot.lock("uper"),
        "lock: must be one of the links ['soft', 'upper', 'wrist'] (got 'uper'); did you mean 'upper'?",
    ),
    "a joint that is fixed": (
        lambda robot: robot.lock("soft"),
        "link 'soft' > joint: must move before it is locked (got 'JointFixed')",
    ),
    "coordinates of a wrong shape": (
        lambda robot: robot.lock("wrist", [1.0]),
        "link 'wrist' > joint: q: must have shape (2,) (got [1.0])",
    ),
    "a quaternion that is none": (
        lambda robot: (robot.add_link("eye", joint=ls.JointSpherical()), robot.lock("eye", [1.0, 1, 0, 0])),
        "link 'eye' > joint: q: its quaternion must have unit length (got [1.0, 1.0, 0.0, 0.0])",
    ),
}


def custom():
    """An arm with an actuator that is a function of all coordinates."""
    robot = arm()
    robot.add_custom_actuator("own", lambda q: np.ones((len(q), 1)))
    return robot


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_part_the_rule_and_the_value(name):
    """What cannot be changed is one line, and the robot is as before."""
    change, message = REFUSED[name]
    robot = arm()
    with pytest.raises(ls.ModelError, match=re.escape(message)) as error:
        change(robot)
    assert "\n" not in str(error.value)
    for extra in ("x_upper", "eye"):
        robot.frames.pop(extra, None), robot.links.pop(extra, None)
    assert_same(robot, arm())
    for change in (lambda: custom().lock("upper"), lambda: custom().remove_link("wrist", with_children=True)):
        with pytest.raises(ls.ModelError, match="no actuator may be a function of all coordinates, whose number"):
            change()


def test_a_link_is_removed_with_what_hangs_on_it():
    """All parts of the branch go; lists lose its names; the rest stays as it was."""
    robot = arm()
    robot.attach(gripper(), "wrist", prefix="")
    robot.add_contact("floor", ["upper", "left"], ls.ShapePlane())
    robot.set_fluid(1000.0, default=None, links={"left": None, "soft": None})
    robot.links["upper"] = dataclasses.replace(
        robot.links["upper"], body=dataclasses.replace(robot.links["upper"].body, balls=((0, 0, 0, 0.1),))
    )
    gone = robot.remove_link("left", with_children=True)
    assert gone == ["link 'left'", "link 'pad'", "actuator 'left motor'", "actuator 'cable'", "load 'weight'",
                    "spring 'band'", "contact 'pinch'"]  # fmt: skip
    assert robot.couplings["close"].gains == {"right motor": -2.0}
    assert robot.contacts["floor"].links == ["upper"]
    assert list(robot.fluid.links) == ["soft"]
    robot.build()
    alone = robot.remove_link("right", with_children=True)
    assert "input 'close'" in alone
    assert "loop 'pin'" in alone
    robot.remove_link("wrist", with_children=True)
    robot.remove_link("soft")
    robot.build()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_locked_joints_are_those_of_pinocchio(seed):
    """Mass matrix, inverse dynamics and gravity equal those of Pinocchio's reduced model, for joints of all kinds."""
    robot = random_rigid_tree(seed, ("Custom", "Fixed"))
    theirs, q_index, _, _ = pinocchio_model(robot)
    q, *_ = random_state(robot, seed)
    q_pin = np.zeros(theirs.nq)
    q_pin[q_index] = q
    rng = np.random.default_rng(seed)
    first, locked, kept = 0, [], []
    for name, link in robot.links.items():
        (locked if rng.random() < 0.5 else kept).append((name, q[first : first + link.joint.nq]))
        first += link.joint.nq
    for name, here in locked:
        assert robot.lock(name, here if len(here) > 1 else float(here[0])) == []
        assert isinstance(robot.links[name].joint, ls.JointFixed)
    model = robot.build()
    for joint in range(1, theirs.njoints):
        theirs.addJointFrame(joint)  # Pinocchio's reduction needs one for each joint
    gone = [k for k, name in enumerate(theirs.names) if name.rpartition(" ")[0] in dict(locked)]
    reduced = pin.buildReducedModel(theirs, gone, q_pin)
    _, q_index, v_index, _ = pinocchio_model(robot)
    q = np.concatenate([here for _, here in kept])
    v, a = rng.uniform(-1, 1, (2, model.nv))
    theirs, (q_pin, v_pin, a_pin) = reduced.createData(), (np.zeros(n) for n in (reduced.nq, model.nv, model.nv))
    q_pin[q_index], v_pin[v_index], a_pin[v_index] = q, v, a
    tau = pin.rnea(reduced, theirs, q_pin, v_pin, a_pin)[v_index]
    np.testing.assert_allclose(ls.inverse_dynamics(model, q, v, a), tau, atol=1e-11 * np.abs(tau).max())
    M = pin.crba(reduced, theirs, q_pin)
    M = (np.triu(M) + np.triu(M, 1).T)[np.ix_(v_index, v_index)]
    np.testing.assert_allclose(ls.mass_matrix(model, q), M, atol=1e-12 * np.abs(M).max())


def test_a_custom_joint_is_locked_at_its_pose():
    """A joint whose pose is a spline keeps its pose, and the neutral configuration is the default."""
    table = ls.PoseSpline(np.linspace(-1, 1, 9), np.outer(np.linspace(-1, 1, 9), (0.3, 0.2, 0.1)), np.ones((9, 3)))
    robot = ls.Robot()
    robot.add_link("slide", ls.RigidBody(1.0, inertia=(1, 1, 1)), ls.JointCustom(table), placement=TURN)
    free = deepcopy(robot)
    for q in (None, 0.37):
        fixed = deepcopy(robot)
        fixed.lock("slide", q)
        expected = ls.frame_pose(free.build(), [q or 0.0], "slide")
        np.testing.assert_allclose(fixed.links["slide"].placement, expected, atol=1e-14)


def test_drives_of_a_locked_joint_are_removed():
    """Motors and prescribed motions of the joint go; an input keeps its other motors, frames and tendons stay."""
    robot = gripper()
    robot.add_joint_motion("open", "right", position=0.3)
    before = set(robot.frames) | set(robot.springs) | set(robot.contacts)
    assert robot.lock("right", 0.2) == ["actuator 'right motor'", "motion 'open'"]
    assert robot.couplings["close"].gains == {"left motor": 1.0}
    assert robot.lock("left") == ["actuator 'left motor'", "input 'close'"]
    assert set(robot.frames) | set(robot.springs) | set(robot.contacts) == before
    robot.build()


def geared():
    """Two wheels and their gear."""
    robot = ls.Robot("geared")
    for name in ("motor", "wheel"):
        robot.add_link(name, ls.RigidBody.sphere(0.1, density=500.0), ls.JointRevolute((0, 0, 1)))
    robot.add_coupling("gear", ["motor", "wheel"], [1.0, -3.0])
    return robot


def test_couplings_follow_their_joints():
    """An attached robot keeps its couplings under the prefix; a coupled joint is not locked, and a removed one takes
    its coupling along."""
    robot = geared()
    robot.attach(geared(), "wheel", prefix="second_")
    assert robot.joint_couplings["second_gear"].joints == ("second_motor", "second_wheel")
    assert ls.constraint_jacobian(robot.build(), np.zeros(4)).tolist() == [[1, -3, 0, 0], [0, 0, 1, -3]]
    with pytest.raises(ls.ModelError, match=r"must not be locked while other parts need it.*coupling 'gear'"):
        robot.lock("wheel")
    with pytest.raises(ls.ModelError, match=r"must carry no link and no other part.*coupling 'second_gear'"):
        robot.remove_link("second_wheel")
    robot.remove_link("second_wheel", with_children=True)
    assert list(robot.joint_couplings) == ["gear"]
