"""Tendons round spheres and cylinders: against MuJoCo, differences and conserved momentum."""

import numpy as np
import pytest

import lissom as ls
from lissom.dynamics.input_dynamics import input_dynamics


def shifted(x=0.0, y=0.0, z=0.0):
    """A placement without rotation."""
    g = np.eye(4)
    g[:3, 3] = x, y, z
    return g


def turned(axis, angle, position=(0.0, 0.0, 0.0)):
    """A placement with a rotation about an axis of coordinates."""
    g = shifted(*position)
    c, s = np.cos(angle), np.sin(angle)
    j, k = (axis + 1) % 3, (axis + 2) % 3
    g[j, j] = g[k, k] = c
    g[j, k], g[k, j] = -s, s
    return g


SHAPES = {
    "sphere": ls.PathWrap("mid", ls.ShapeSphere(0.06), placement=shifted(0.05, 0.01, 0.02)),
    "sphere side": ls.PathWrap("mid", ls.ShapeSphere(0.06), placement=shifted(0.05, 0.01, 0.02), side=(0, 0, -0.1)),
    "cylinder": ls.PathWrap("mid", ls.ShapeCylinder(0.05, axis=(0.2, 1.0, 0.1)), placement=shifted(0.04, 0.0, 0.03)),
    "cylinder side": ls.PathWrap(
        "mid", ls.ShapeCylinder(0.05, axis=(0.0, 1.0, 0.0)), placement=turned(2, 0.3, (0.04, 0.0, 0.03)), side=(0, 0, 1)
    ),
    "peg": ls.PathWrap(None, ls.ShapeCylinder(0.05, axis=(0.0, 1.0, 0.0)), placement=shifted(0.3, 0.0, 0.0)),
}


def arm(wrap, stiffness=None):
    """Three links, of which the middle one carries the shape, and a tendon from the first to the last."""
    robot = ls.Robot("arm")
    robot.add_link("low", ls.RigidBody.box(0.3, 0.05, 0.05, density=800.0), ls.JointRevolute((0, 1, 0.1)))
    body = ls.RigidBody.box(0.2, 0.05, 0.05, density=800.0)
    robot.add_link("mid", body, ls.JointUniversal((0, 1, 0), (0, 0, 1)), "low", placement=shifted(0.3))
    robot.add_link("top", body, ls.JointSpherical(), "mid", placement=shifted(0.2))
    path = [ls.PathPoint("low", (0.1, 0.03, 0.05)), wrap, ls.PathPoint("top", (0.1, -0.02, 0.04)),
            ls.PathPoint("top", (0.15, 0.0, -0.03))]  # fmt: skip
    robot.add_tendon("t", path=path, stiffness=stiffness)
    return robot.build()


def states(model, count, seed=0, size=0.6):
    """Configurations and velocities."""
    rng = np.random.default_rng(seed)
    q = np.array([ls.integrate(model, model.dofs.neutral, size * rng.normal(size=model.nv))
                  for _ in range(count)])  # fmt: skip
    return q, rng.normal(size=(count, model.nv))


def along(model, function, q, step=1e-6):
    """Central differences of a function of q by the tangent space of `integrate`, on the last axis."""
    E = step * np.eye(model.nv)
    return np.stack(
        [(function(ls.integrate(model, q, e)) - function(ls.integrate(model, q, -e))) / (2 * step) for e in E], -1
    )


@pytest.mark.parametrize("name", SHAPES)
def test_actuation_is_the_slope_of_the_length(name):
    """B = −∂L/∂q, and the path is longer than the straight line where it touches."""
    model = arm(SHAPES[name])
    straight = arm(ls.PathPoint("low", (0.1, 0.03, 0.05)))
    touches = 0
    for q in states(model, 12, size=0.2 if name == "peg" else 0.6)[0]:
        slope = along(model, lambda x: ls.path_lengths(model, x), q)
        np.testing.assert_allclose(ls.actuation_matrix(model, q)[:, 0], -slope[0], rtol=0, atol=2e-9)
        longer = ls.path_lengths(model, q)[0] - ls.path_lengths(straight, q)[0]
        assert longer > -1e-12
        touches += longer > 1e-9
    assert touches >= 3


@pytest.mark.parametrize("name", SHAPES)
def test_derivatives_of_accelerations(name):
    """Exact derivatives of accelerations under tension, by configuration and velocity, equal differences."""
    model = arm(SHAPES[name])
    q, v = states(model, 4, seed=1)
    u = [3.0]
    for k in range(4):
        by_q, _, by_u = ls.forward_dynamics_derivatives(model, q[k], v[k], u)
        found = along(model, lambda x, k=k: ls.forward_dynamics(model, x, v[k], u), q[k])
        np.testing.assert_allclose(by_q, found, rtol=0, atol=2e-7 * np.abs(by_q).max())
        pull = ls.forward_dynamics(model, q[k], v[k], [1.0]) - ls.forward_dynamics(model, q[k], v[k], [0.0])
        np.testing.assert_allclose(by_u[:, 0], pull, rtol=1e-9, atol=1e-9)


def test_elastic_tendon_round_a_shape():
    """An elastic tendon has its slack length in the neutral configuration, and exact derivatives."""
    model = arm(SHAPES["cylinder"], stiffness=400.0)
    neutral = model.dofs.neutral
    np.testing.assert_allclose(model.spools.slack, ls.path_lengths(model, neutral), rtol=1e-13)
    q, v = states(model, 3, seed=2)
    for k in range(3):
        by_q = ls.forward_dynamics_derivatives(model, q[k], v[k], [0.1])[0]
        found = along(model, lambda x, k=k: ls.forward_dynamics(model, x, v[k], [0.1]), q[k])
        np.testing.assert_allclose(by_q, found, rtol=0, atol=2e-7 * np.abs(by_q).max())


@pytest.mark.parametrize("name", SHAPES)
def test_accelerations_of_the_length(name):
    """The second derivative of the length along a motion without acceleration equals a difference of its rate."""
    model, h = arm(SHAPES[name]), 1e-5
    for q, v in zip(*states(model, 4, seed=3)):
        rates = [
            -ls.actuation_matrix(model, ls.integrate(model, q, s * v))[:, 0] @ v for s in (h, -h)
        ]  # spherical joints turn at a constant rate about a fixed axis, so that v is constant
        np.testing.assert_allclose(input_dynamics(model, q, v).bend[0], (rates[0] - rates[1]) / (2 * h), atol=1e-6)


def test_internal_forces_keep_the_momentum():
    """Three free bodies, joined only by a tendon round the second, keep momentum and energy without gravity."""
    robot = ls.Robot("free", gravity=(0, 0, 0))
    for k, x in enumerate((-0.3, 0.0, 0.3)):
        robot.add_link(f"b{k}", ls.RigidBody.box(0.1, 0.08, 0.06, density=1000.0), ls.JointFree(), placement=shifted(x))
    wrap = ls.PathWrap("b1", ls.ShapeCylinder(0.04, axis=(0, 1, 0)))
    robot.add_tendon("t", path=[ls.PathPoint("b0", (0.05, 0.0, 0.01)), wrap, ls.PathPoint("b2", (-0.05, 0.02, -0.02))])
    model = robot.build()
    q = model.dofs.neutral
    a = ls.forward_dynamics(model, q, np.zeros(18), [5.0])
    motion = ls.simulate(model, 0.2, q, u=[5.0], rtol=1e-10, atol=1e-12)
    masses = model.links.mass
    centre = np.einsum("k,tki->ti", masses, motion.q.reshape(len(motion.t), 3, 7)[:, :, 4:]) / masses.sum()
    assert np.abs(a).max() > 1.0
    np.testing.assert_allclose(centre, np.broadcast_to(centre[0], centre.shape), atol=1e-9)
    work = 5.0 * (ls.path_lengths(model, motion.q[0]) - ls.path_lengths(model, motion.q[-1]))[0]
    v = motion.v[-1]
    np.testing.assert_allclose(0.5 * v @ ls.mass_matrix(model, motion.q[-1]) @ v, work, rtol=1e-8)


MJCF = """
<mujoco><compiler angle="radian"/><worldbody>
 <body name="low"><joint name="j0" axis="0 1 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  <site name="a" pos="0.1 0.03 0.05"/>
  <body name="mid" pos="0.3 0 0"><joint name="j1" axis="0 1 0"/><joint name="j2" axis="0 0 1"/>
   <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
   <geom name="wrap" {geom} contype="0" conaffinity="0"/><site name="side" pos="{side}"/>
   <body name="top" pos="0.2 0 0"><joint name="j3" axis="1 0 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
    <site name="b" pos="0.1 -0.02 0.04"/></body></body></body></worldbody>
 <tendon><spatial name="t"><site site="a"/><geom geom="wrap" {sidesite}/><site site="b"/></spatial></tendon></mujoco>
"""


@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
@pytest.mark.parametrize("has_side", [False, True])
def test_lengths_equal_those_of_mujoco(kind, has_side):
    """Lengths and moment arms of a tendon equal those of MuJoCo, with and without a side."""
    mujoco = pytest.importorskip("mujoco")
    centre = (0.05, 0.01, 0.02)
    side = (0.05, 0.01, 0.02 + 0.1)
    geom = {
        "sphere": 'type="sphere" size="0.06" pos="0.05 0.01 0.02"',
        "cylinder": 'type="cylinder" size="0.06 0.2" pos="0.05 0.01 0.02" zaxis="0 1 0"',
    }[kind]
    text = MJCF.format(geom=geom, side=" ".join(map(str, side)), sidesite='sidesite="side"' if has_side else "")
    theirs = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    robot = ls.Robot("arm")
    body = ls.RigidBody(1.0, (0, 0, 0), np.eye(3))
    robot.add_link("low", body, ls.JointRevolute((0, 1, 0)))
    robot.add_link("mid", body, ls.JointUniversal((0, 1, 0), (0, 0, 1)), "low", placement=shifted(0.3))
    robot.add_link("top", body, ls.JointRevolute((1, 0, 0)), "mid", placement=shifted(0.2))
    shape = ls.ShapeSphere(0.06) if kind == "sphere" else ls.ShapeCylinder(0.06, axis=(0, 1, 0))
    own = (0.0, 0.0, 0.1) if has_side else None
    wrap = ls.PathWrap("mid", shape, placement=shifted(*centre), side=own)
    robot.add_tendon("t", path=[ls.PathPoint("low", (0.1, 0.03, 0.05)), wrap, ls.PathPoint("top", (0.1, -0.02, 0.04))])
    model = robot.build()
    rng, touches = np.random.default_rng(5), 0
    for _ in range(40):
        q = 0.5 * rng.normal(size=4)
        data.qpos[:] = q
        mujoco.mj_forward(theirs, data)
        moment = np.zeros(4)
        moment[:] = data.ten_J.reshape(-1)[:4]
        np.testing.assert_allclose(ls.path_lengths(model, q), data.ten_length, rtol=0, atol=1e-10)
        np.testing.assert_allclose(ls.actuation_matrix(model, q)[:, 0], -moment, rtol=0, atol=1e-8)
        touches += data.ten_wrapnum[0] > 2
    assert touches > 5


def test_drawn_paths_touch_the_shape():
    """The drawn line has points on the surface of the shape where it touches, and the length of the tendon."""
    from lissom.viewing.geometry import robot_geometry

    model = arm(SHAPES["cylinder"])
    drawn = robot_geometry(model)
    (line,) = drawn.of("tendon")
    for q in states(model, 6, seed=4)[0]:
        points = drawn.points(q)[line.rows]
        length = np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
        np.testing.assert_allclose(length, ls.path_lengths(model, q)[0], rtol=2e-4)


def test_files_keep_shapes(tmp_path):
    """A saved tendon runs round the same shapes."""
    for name, wrap in SHAPES.items():
        model = arm(wrap)
        ls.save_robot(model.description, tmp_path / "arm.yaml")
        again = ls.load_robot(tmp_path / "arm.yaml").build()
        q = states(model, 1)[0][0]
        np.testing.assert_array_equal(ls.path_lengths(again, q), ls.path_lengths(model, q), err_msg=name)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ([ls.PathWrap("mid", ls.ShapeSphere(0.01)), ls.PathPoint("top")], r"path\[0\]: a PathWrap must lie between"),
        ([ls.PathPoint("low", (0, 0, 1)), *2 * [ls.PathWrap("mid", ls.ShapeSphere(0.01))], ls.PathPoint("top")],
         r"path\[2\]: a PathWrap must lie between"),
        ([ls.PathPoint("low"), ls.PathWrap("mid", ls.ShapeBox(1, 1, 1)), ls.PathPoint("top")],
         "shape: must be a ShapeSphere or an infinitely long ShapeCylinder"),
        ([ls.PathPoint("low"), ls.PathWrap("mid", ls.ShapeCylinder(0.01, 0.2)), ls.PathPoint("top")],
         "shape: must be a ShapeSphere or an infinitely long ShapeCylinder"),
        ([ls.PathPoint("low"), ls.PathWrap("no", ls.ShapeSphere(0.01)), ls.PathPoint("top")], "'no'"),
        ([ls.PathPoint("low"), ls.PathWrap("mid", ls.ShapeSphere(0.01), side=(0, 0, 0)), ls.PathPoint("top")],
         "side: must not lie on the axis, or in the centre"),
    ],
)  # fmt: skip
def test_bad_wraps(path, message):
    """The error names the tendon, the item, the rule and the value."""
    robot = arm(SHAPES["peg"]).description
    robot.add_tendon("bad", path=path)
    with pytest.raises(ls.ModelError, match=message) as error:
        robot.build()
    assert "actuator 'bad' > path[" in str(error.value)


@pytest.mark.parametrize("shape", ["sphere", "cylinder"])
def test_an_end_inside_its_shape(tmp_path, shape):
    """A tendon with an end inside its shape in the neutral configuration loads with a line; it is as long as in
    MuJoCo, and the actuation is the slope of its length."""
    mujoco = pytest.importorskip("mujoco")
    size = "0.1" if shape == "sphere" else "0.1 0.2"
    path = tmp_path / "robot.xml"
    path.write_text(f"""<mujoco><worldbody><body name="a"><joint axis="0 0 1"/><joint type="slide" axis="1 0 0"/>
      <geom name="w" type="{shape}" size="{size}" pos="0.05 0 0"/>
      <body pos="0.3 0.02 0"><joint type="slide" axis="1 0 0"/>
      <joint type="slide" axis="0 1 0"/><geom size="0.02"/><site name="c" pos="0 0 0.03"/></body></body>
      <site name="s" pos="-0.02 0 0.01"/></worldbody><tendon><spatial name="t"><site site="s"/><geom geom="w"/>
      <site site="c"/></spatial></tendon><actuator><motor name="m" tendon="t"/></actuator></mujoco>""")  # fmt: skip
    with pytest.warns(ls.PlausibilityWarning, match=r"actuator 't' > path\[1\]: shape: has an end of the path inside"):
        model = ls.load_mjcf(path).build()
    compiled = mujoco.MjModel.from_xml_path(str(path))
    data, rng, lengths = mujoco.MjData(compiled), np.random.default_rng(2), set()
    for q in rng.uniform(-0.25, 0.25, (40, 4)):
        data.qpos[:] = q
        mujoco.mj_forward(compiled, data)
        assert ls.path_lengths(model, q)[0] == pytest.approx(data.ten_length[0], abs=1e-12)
        slope = -along(model, lambda x: ls.path_lengths(model, x), q)[0]
        np.testing.assert_allclose(-ls.actuation_matrix(model, q)[:, 0], slope, atol=1e-8)
        ends = data.site("s").xpos - data.geom("w").xpos, data.site("c").xpos - data.geom("w").xpos
        inside = min(np.linalg.norm(x[: 3 if shape == "sphere" else 2]) for x in ends) < 0.1
        lengths.add((inside, abs(np.linalg.norm(ends[0] - ends[1]) - data.ten_length[0]) < 1e-12))
    assert {(True, True), (False, False)} <= lengths  # straight while inside, and round the shape
