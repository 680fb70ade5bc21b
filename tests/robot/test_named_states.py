"""Named states of robots: their vectors, their files, and what changes of the robot leave of them."""

import re
import warnings

import numpy as np
import pytest
from robot_descriptions import assert_same, rod, round_trip

import lissom as ls


def robot():
    """A hinge, a ball joint, a soft rod and a motor with three inputs."""
    made = ls.Robot("three")
    body = ls.RigidBody(1.0, inertia=(0.1, 0.1, 0.1))
    made.add_link("a", body, ls.JointRevolute())
    made.add_link("soft", rod(), ls.JointPrismatic(), "a")
    made.add_link("b", body, ls.JointSpherical(), "soft")
    made.add_joint_actuator("turn", "b")
    made.add_joint_actuator("left", "a")
    made.add_joint_actuator("slide", "soft")
    made.couple_inputs("both", {"left": 1.0, "slide": 2.0})
    made.add_state("home", {"a": 0.5, "b": [0.0, 0.6, 0.0, 0.8]}, {"b": (1, 2, 3)}, {"turn": [4, 5, 6], "both": 7})
    made.add_state("rest")
    return made


def test_vectors_of_a_state():
    """Coordinates that it does not name are neutral; the rest is in its place."""
    model = robot().build()
    q, v, u = model.state("home")
    assert q.tolist() == [0.5, 0, 0, 0, 0, 0, 0.6, 0, 0.8]
    assert v.tolist() == [0, 0, 0, 0, 0, 1, 2, 3]
    assert dict(zip(model.inputs.names, u, strict=True)) == {"turn[0]": 4, "turn[1]": 5, "turn[2]": 6, "both": 7}
    assert [part.tolist() for part in model.state("rest")] == [model.neutral().tolist(), [0.0] * 8, [0.0] * 4]
    with pytest.raises(
        ls.ModelError, match=r"state: must be one of the states \['home', 'rest'\] \(got 'hom'\); did you"
    ):
        model.state("hom")


def test_states_are_saved_and_copied(tmp_path):
    """Robot files hold them, paths lead to their values, and attached robots keep theirs under the prefix."""
    made = robot()
    assert_same(made, round_trip(made, tmp_path))
    changed = made.with_({"home.positions.a": 0.7}).build()
    assert changed.state("home")[0][0] == 0.7
    whole = robot()
    whole.attach(robot(), "b", prefix="x ")
    q, v, u = whole.build().state("x home")
    assert [q[9], v[-1], u[-1]] == [0.5, 3.0, 7.0]
    assert q[:9].tolist() == made.build().neutral().tolist()


def test_states_lose_what_the_robot_loses():
    """A locked joint and its motors, and removed links, are no longer in any state."""
    made = robot()
    assert made.lock("b", [0.0, 0.6, 0.0, 0.8]) == ["actuator 'turn'"]
    assert made.states["home"] == type(made.states["home"])("home", {"a": 0.5}, {}, {"both": 7})
    made.remove_link("soft", with_children=True)
    assert made.couplings["both"].gains == {"left": 1.0}
    made.lock("a")
    assert made.states["home"].positions == made.states["home"].inputs == {}
    made.build()


WRONG = {
    "link": (lambda made: made.add_state("x", {"c": 1.0}), "state 'x': positions: must be one of the links"),
    "fixed": (
        lambda made: (made.add_link("f"), made.add_state("x", {"f": 1.0})),
        "state 'x': positions: must be of joints that move (got 'f')",
    ),
    "shape": (
        lambda made: made.add_state("x", {"b": [1.0, 0.0]}),
        "state 'x' > b: positions: must have shape (4,) (got [1.0, 0.0])",
    ),
    "velocity": (
        lambda made: made.add_state("x", {}, {"b": 1.0}),
        "state 'x' > b: velocities: must have shape (3,) (got [1.0])",
    ),
    "driven by another": (
        lambda made: made.add_state("x", inputs={"left": 1.0}),
        "state 'x': inputs: must be one of the inputs ['both', 'turn'] (got 'left')",
    ),
    "taken": (lambda made: made.add_state("home"), "state name: must not be taken already (got 'home')"),
    "no mapping": (
        lambda made: made.add_state("x", [1.0]),
        "state 'x': positions: must be numbers by name (got [1.0])",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_states_are_named(name):
    """By the state, the rule and the value."""
    change, rule = WRONG[name]
    made = robot()
    with pytest.raises(ls.ModelError, match=re.escape(rule)):
        change(made)
        made.check()


def test_keyframes_are_states(tmp_path):
    """Poses and twists of all bodies at a keyframe are MuJoCo's, for free, ball, hinge and slide joints."""
    mujoco = pytest.importorskip("mujoco")
    geom = '<geom size="0.1" pos="0.1 0 0"/>'
    text = f"""<mujoco><worldbody><body name="free" pos="1 2 3" euler="20 30 40"><freejoint/>{geom}
      <body name="ball" pos="0.2 0 0"><joint type="ball" name="b"/>{geom}<body name="end" pos="0 0.1 0"><joint name="h"
      ref="20"/><joint name="s" type="slide" pos="0 0 0.1"/>{geom}</body></body></body></worldbody>
      <actuator><position name="servo" joint="h"/><motor name="m" joint="s"/></actuator>
      <keyframe><key name="home" qpos="0.1 0.2 0.3 0.6 0 0.8 0 0.8 0.6 0 0 0.4 0.05" ctrl="0.3 0"
      qvel="1 2 3 4 5 6 0.1 0.2 0.3 0.4 0.5"/><key qpos="1 2 3 1 0 0 0 1 0 0 0 0 0"/></keyframe></mujoco>"""
    (tmp_path / "keys.xml").write_text(text, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = ls.load_mjcf(tmp_path / "keys.xml")
    compiled = mujoco.MjModel.from_xml_path(str(tmp_path / "keys.xml"))
    data, model = mujoco.MjData(compiled), made.build()
    mujoco.mj_resetDataKeyframe(compiled, data, 0)
    mujoco.mj_forward(compiled, data)
    q, v, u = model.state("home")
    assert u.tolist() == [0.3, 0.0]
    assert list(made.states) == ["home", "key 1"]
    for b in range(1, compiled.nbody):
        name, velocity = compiled.body(b).name, np.zeros(6)
        g = ls.frame_pose(model, q, name)
        assert g[:3, 3] == pytest.approx(data.xpos[b], abs=1e-12)
        assert g[:3, :3].ravel() == pytest.approx(data.xmat[b], abs=1e-12)
        mujoco.mj_objectVelocity(compiled, data, int(mujoco.mjtObj.mjOBJ_XBODY), b, velocity, 1)
        assert ls.frame_jacobian(model, q, name) @ v == pytest.approx(velocity, abs=1e-12)


def test_limits_of_inputs(tmp_path):
    """Vectors of limits, robot files, attached robots, removed inputs, and mistakes."""
    made = robot()
    made.limit_input("turn", [-1, -2, -3], 4.0)
    made.limit_input("both", high=2.0)
    low, high = made.build().input_limits
    names = made.build().inputs.names
    assert dict(zip(names, low.tolist())) == {"turn[0]": -1, "turn[1]": -2, "turn[2]": -3, "both": -np.inf}
    assert dict(zip(names, high.tolist())) == {"turn[0]": 4, "turn[1]": 4, "turn[2]": 4, "both": 2}
    assert_same(made, round_trip(made, tmp_path))
    whole = robot()
    whole.attach(made, "b", prefix="x ")
    assert whole.build().input_limits[1].tolist() == [np.inf] * 4 + high.tolist()
    assert made.lock("b") == ["actuator 'turn'", "limits of input 'turn'"]
    assert made.build().input_limits[1].tolist() == [2.0]
    for given, message in (
        (("bth", 0, 1), "limits of input 'bth': name: must be one of the inputs ['both', 'turn'] (got 'bth'); did you"),
        (("left", 0, 1), "limits of input 'left': name: must be one of the inputs"),
        (("both", 1, 0), "limits of input 'both': must be low <= high (got (1, 0))"),
        (("turn", [1, 2], 5), "limits of input 'turn': low: must be a finite number, or 3 of them (got [1, 2])"),
        (("both", "a"), "limits of input 'both': low: must be a finite number, or 1 of them (got 'a')"),
    ):
        wrong = robot()
        wrong.limit_input(*given)
        with pytest.raises(ls.ModelError, match=re.escape(message)):
            wrong.build()


def test_controllers_keep_to_the_limits_of_the_robot():
    """A linear-quadratic regulator clips its inputs to them unless it gets others."""
    made = ls.Robot("one", gravity=(0, 0, 0))
    made.add_link("a", ls.RigidBody(1.0, inertia=(0.1, 0.1, 0.1)), ls.JointRevolute())
    made.add_joint_actuator("motor", "a")
    made.limit_input("motor", -0.1, 0.2)
    model = made.build()
    regulator = ls.lqr(model, [0.0], state=1.0, inputs=1.0)
    q = np.array([5.0])
    for limits, expected in ((None, -0.1), ((-0.4, 0.4), -0.4)):
        u = regulator.controller(limits).output(0.0, q, np.zeros(1), np.zeros(0))
        assert u.tolist() == [expected]
