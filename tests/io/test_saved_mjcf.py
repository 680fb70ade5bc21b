"""MJCF files that are written: MuJoCo computes the same motion as lissom does with the chains of links."""

import itertools
import warnings
from pathlib import Path

import numpy as np
import pytest
from io_robots import names_of_coordinates, placed, soft_arm

import lissom as ls

mujoco = pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")


def saved(robot, path, **options):
    """MuJoCo's model of a robot that was written, and the report."""
    report = ls.save_mjcf(robot, path, **options)
    return mujoco.MjModel.from_xml_path(str(path)), report


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """The soft arm in MuJoCo, the model of its chains, the path and the report."""
    path = tmp_path_factory.mktemp("arm") / "arm.xml"
    compiled, report = saved(soft_arm(), path)
    chains = ls.rigid_chains(soft_arm())
    return compiled, chains.robot.build(), path, report


def state_of(compiled, model, q, v, u):
    """MuJoCo's data at a state of a model whose joints are hinges and slides."""
    data, names = mujoco.MjData(compiled), names_of_coordinates(model.description)
    for name, x, rate in zip(names, q, v, strict=True):
        joint = compiled.joint(name)
        data.qpos[joint.qposadr[0]], data.qvel[joint.dofadr[0]] = x, rate
    for name, x in zip(model.inputs.names, u, strict=True):
        data.ctrl[compiled.actuator(name).id] = x
    mujoco.mj_forward(compiled, data)
    return data, [compiled.joint(name).dofadr[0] for name in names]


def test_report_and_warning(arm, tmp_path):
    """The report says the error of the rod, and a robot whose parts all fit gives no warning."""
    compiled, model, path, report = arm
    assert report.path == path and report.left_out == ()
    assert report.chains[0].link == "arm" and 0.0 < report.chains[0].weight < 0.01
    assert "its tip is off by" in str(report) and str(report).startswith(f"wrote {path}")
    assert compiled.nv == model.nv and compiled.nu == model.nu


def test_mass_poses_and_start_are_those_of_lissom(arm):
    """Mass, the pose of each body and of the frame at the start, and the start itself."""
    compiled, model, _, _ = arm
    assert compiled.body_mass.sum() == pytest.approx(soft_arm().build().links.mass.sum(), rel=1e-13)
    data = mujoco.MjData(compiled)
    mujoco.mj_forward(compiled, data)
    q = ls.start_configuration(model)
    for b in range(1, compiled.nbody):
        pose = ls.frame_pose(model, q, compiled.body(b).name)
        np.testing.assert_allclose(data.xpos[b], pose[:3, 3], atol=1e-13)
        np.testing.assert_allclose(data.xmat[b].reshape(3, 3), pose[:3, :3], atol=1e-13)
    np.testing.assert_allclose(data.site("mark").xpos, ls.frame_pose(model, q, "mark")[:3, 3], atol=1e-13)
    here = soft_arm().build()
    np.testing.assert_allclose(data.site("mark").xpos, ls.frame_pose(here, here.neutral(), "mark")[:3, 3], atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_accelerations_are_those_of_lissom(arm, seed):
    """At random states with all inputs MuJoCo's accelerations are those of the chains: inertia, gravity, springs,
    dampers, tendons, motors, gears and wrenches are right."""
    compiled, model, _, _ = arm
    rng = np.random.default_rng(seed)
    q, v, u = rng.uniform(-0.3, 0.3, model.nq), rng.uniform(-1, 1, model.nv), rng.uniform(0.1, 1.0, model.nu)
    data, dofs = state_of(compiled, model, q, v, u)
    ours = ls.forward_dynamics(model, q, v, u)
    np.testing.assert_allclose(data.qacc[dofs], ours, rtol=1e-8, atol=1e-9 * np.abs(ours).max())


def test_mujoco_comes_to_rest_where_lissom_has_the_equilibrium(arm):
    """The equilibrium of the chains is one of MuJoCo, and MuJoCo's motion with damping ends there."""
    compiled, model, _, _ = arm
    u = np.zeros(model.nu)
    u[model.inputs.names.index("side")] = 3.0
    q = ls.solve_statics(model, u).q
    data, dofs = state_of(compiled, model, q, np.zeros(model.nv), u)
    assert (
        np.abs(data.qacc[dofs]).max()
        < 1e-6 * np.abs(ls.forward_dynamics(model, model.neutral(), 0 * u[:1].repeat(model.nv), u)).max()
    )
    data.qpos[:] = compiled.qpos0
    compiled.dof_damping[:] *= 5.0  # to get there soon
    for _ in range(int(5.0 / compiled.opt.timestep)):
        mujoco.mj_step(compiled, data)
    tool = ls.frame_pose(model, q, "tool")[:3, 3]
    start = ls.frame_pose(model, ls.start_configuration(model), "tool")[:3, 3]
    assert np.linalg.norm(data.body("tool").xpos - tool) < 2e-3 * np.linalg.norm(tool - start)


def test_loaded_file_is_the_same_robot(arm):
    """load_mjcf of the file has the mass matrix and the equilibrium of the chains, its inputs and its state."""
    _, model, path, _ = arm
    back = ls.load_mjcf(path).build()
    assert back.nv == model.nv and set(back.inputs.names) == set(model.inputs.names)
    rests = [ls.solve_statics(one).q for one in (model, back)]
    for name in ("tool", "branch", "mark", "arm_1"):
        a, b = (ls.frame_pose(one, q, name) for one, q in zip((model, back), rests))
        np.testing.assert_allclose(b, a, atol=1e-9)
    for one in (model, back):
        q, v, u = one.state("home")
        assert ls.frame_pose(one, q, "tool")[:3, 3] == pytest.approx(
            ls.frame_pose(model, model.state("home")[0], "tool")[:3, 3]
        )
        assert sorted(u.tolist()) == pytest.approx(sorted(model.state("home")[2].tolist()))
        assert np.abs(v).max() == 0.5
    low, high = back.input_limits
    assert (low[back.inputs.names.index("side")], high[back.inputs.names.index("side")]) == (0.0, 20.0)


def test_tip_deflection_is_that_of_the_rod(tmp_path):
    """A stiff cantilever in MuJoCo sags as the rod does, to the stated error."""
    robot = ls.Robot("beam")
    rod = ls.Rod(
        0.4, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=4, bending_z=4), ls.Material(young=1e8, density=1100)
    )
    robot.add_link("rod", rod)
    robot.add_frame("tip", "rod")
    report = ls.save_mjcf(robot, tmp_path / "beam.xml", tolerance=0.02)
    back = ls.load_mjcf(tmp_path / "beam.xml").build()
    exact, model = robot.build(), back
    sags = [ls.frame_pose(one, ls.solve_statics(one).q, "tip")[2, 3] for one in (exact, model)]
    assert sags[0] == pytest.approx(-1100 * np.pi * 1e-4 * 9.81 * 0.4**4 / (8 * 1e8 * np.pi / 4 * 1e-8), rel=2e-3)
    assert abs(sags[1] / sags[0] - 1.0) == pytest.approx(report.chains[0].weight, rel=0.1)


def test_loops_and_couplings_hold(tmp_path):
    """A four-bar linkage with a revolute loop, a weld, mimic joints, and a differential are equalities that hold."""
    robot = ls.Robot("closed", gravity=(0, 0, 0))
    bar = ls.RigidBody.box(0.2, 0.02, 0.02, density=500.0)
    hinge = {"damping": 0.05}
    for name, parent, x in (("a", None, 0.0), ("b", "a", 0.1)):
        robot.add_link(name, bar, ls.JointRevolute((0, 1, 0), **hinge), parent, placement=placed(x))
    robot.add_link("c", bar, ls.JointRevolute((0, 1, 0), **hinge), placement=placed(0.2, 0.0, 0.0))
    robot.add_loop("pin", "b", "c", placement_a=placed(0.1), placement_b=placed(0.0), joint=ls.JointRevolute((0, 1, 0)))
    for k, name in enumerate("defg"):
        robot.add_link(name, bar, ls.JointRevolute((0, 0, 1), **hinge), placement=placed(0.0, 0.3 + 0.1 * k))
    robot.add_coupling("mimic", ["d", "e"], [2.0, 1.0], 0.4)
    robot.add_coupling("three", ["e", "f", "g"], [1.0, 1.0, -2.0], -0.1)
    robot.add_coupling("soft", ["f", "g"], [1.0, 1.0], 0.2, stiffness=3.0)
    compiled, _ = saved(robot, tmp_path / "closed.xml")
    data = mujoco.MjData(compiled)
    for _ in range(5000):
        mujoco.mj_step(compiled, data)
    d, e, f, g = (data.joint(x).qpos[0] for x in "defg")
    assert 2.0 * d + e == pytest.approx(0.4, abs=2e-3)
    assert e + f - 2.0 * g == pytest.approx(-0.1, abs=2e-3)
    ends = [data.site(f"pin_1_{side}").xpos for side in "ab"]
    assert np.linalg.norm(ends[0] - ends[1]) < 1e-4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        back = ls.load_mjcf(tmp_path / "closed.xml")
    assert back.joint_couplings["mimic"].ratios[0] == 1.0
    assert back.joint_couplings["mimic"].ratios[1] == pytest.approx(0.5)


def test_free_balls_planes_and_references(tmp_path):
    """Free, spherical, planar and cylindrical joints, starts, and a state of all of them have MuJoCo's coordinates."""
    robot, body = ls.Robot("kinds"), ls.RigidBody.box(0.1, 0.2, 0.3, density=500.0)
    robot.add_link("free", body, ls.JointFree(), placement=placed(1, 2, 3, (0.3, 0.2, 0.1)))
    robot.add_link(
        "ball", body, ls.JointSpherical(damping=0.1), parent="free", placement=placed(0.2, 0.1, 0, (0, 0.4, 0))
    )
    robot.add_link("plane", body, ls.JointPlanar((0, 0.6, 0.8)), placement=placed(0, 1))
    robot.add_link(
        "tube",
        body,
        ls.JointCylindrical((1, 0, 0), start=(0.4, -0.05)),
        parent="plane",
        placement=placed(0.3, turn=(0.1, 0, 0.2)),
    )
    robot.add_link(
        "knee", body, ls.JointRevolute((0, 1, 0), start=0.5, stiffness=1.0), parent="tube", placement=placed(0.2)
    )
    half = np.sqrt(0.5)
    robot.add_state("set", {"free": (half, 0, half, 0, 0.1, 0.2, 0.3), "ball": (half, half, 0, 0),
                            "plane": (0.1, 0.2, 0.3), "tube": (0.4, 0.5), "knee": 0.6},
                    {"free": (1, 2, 3, 4, 5, 6), "ball": (0.1, 0.2, 0.3)})  # fmt: skip
    compiled, report = saved(robot, tmp_path / "kinds.xml")
    assert report.left_out == ()
    model, data = robot.build(), mujoco.MjData(compiled)
    for q, v in ((ls.start_configuration(model), np.zeros(model.nv)), model.state("set")[:2]):
        mujoco.mj_forward(compiled, data)
        for name in robot.links:
            pose = ls.frame_pose(model, q, name)
            np.testing.assert_allclose(data.body(name).xpos, pose[:3, 3], atol=1e-13)
            np.testing.assert_allclose(data.body(name).xmat.reshape(3, 3), pose[:3, :3], atol=1e-13)
            mujoco_v = np.zeros(6)
            mujoco.mj_objectVelocity(compiled, data, mujoco.mjtObj.mjOBJ_XBODY, compiled.body(name).id, mujoco_v, 1)
            np.testing.assert_allclose(mujoco_v, ls.frame_twist(model, q, v, name), atol=1e-12)
        mujoco.mj_resetDataKeyframe(compiled, data, 0)
    assert compiled.joint("knee").qpos0[0] == 0.5 and compiled.qpos_spring[compiled.joint("knee").qposadr[0]] == 0.0


def test_collisions_are_those_that_are_described(tmp_path):
    """A rod falls on the floor of its contact and lies there; a second body, without a contact, falls through it; two
    bodies of a mutual contact touch."""
    robot = ls.Robot("fall")
    rod = ls.Rod(
        0.2,
        ls.SectionCircle(0.02),
        ls.BasisLegendre(bending_y=1),
        ls.Material(young=1e6, density=1000, damping_time=0.02),
    )
    robot.add_link("rod", rod, ls.JointFree(), placement=placed(0, 0, 0.1))
    ball = ls.RigidBody.sphere(0.03, density=1000.0)
    for name, x, z in (("falls", 0.5, 0.1), ("low", 1.0, 0.05), ("high", 1.0, 0.2)):
        robot.add_link(name, ball, ls.JointFree(), placement=placed(x, 0, z))
    robot.add_contact("floor", ["rod", "low"], ls.ShapePlane(), stiffness=1e3, friction=0.8)
    robot.add_contact("both", ["low"], others=["high"], stiffness=1e3)
    with pytest.warns(ls.LeftOutWarning, match="law .MuJoCo has its own. of contact of 'floor', 'both'"):
        compiled, _ = saved(robot, tmp_path / "fall.xml")
    data = mujoco.MjData(compiled)
    for _ in range(int(0.6 / compiled.opt.timestep)):
        mujoco.mj_step(compiled, data)
    assert abs(data.body("rod").xpos[2] - 0.02) < 5e-3
    assert data.body("falls").xpos[2] < -1.0
    assert abs(data.body("low").xpos[2] - 0.03) < 5e-3
    assert data.body("high").xpos[2] - data.body("low").xpos[2] > 0.05


def test_round_shapes_guide_tendons(tmp_path):
    """A tendon round a cylinder on the side of a point, and an elastic one, have lissom's lengths and tensions."""
    robot = ls.Robot("pulley", gravity=(0, 0, 0))
    robot.add_link(
        "a", ls.RigidBody.box(0.2, 0.02, 0.02, density=500.0), ls.JointRevolute((0, 1, 0)), placement=placed(0.3)
    )
    wrap = ls.PathWrap(
        None, ls.ShapeCylinder(0.05, axis=(0, 1, 0)), placement=placed(0.1, 0.0, 0.02), side=(0.0, 0.0, 0.1)
    )
    path = [ls.PathPoint(None, (-0.1, 0, 0)), wrap, ls.PathPoint("a", (0.05, 0, 0.01))]
    robot.add_tendon("plain", path=path)
    robot.add_tendon("elastic", path=[path[0], ls.PathPoint("a", (0.05, 0, 0.03))], stiffness=50.0)
    compiled, _ = saved(robot, tmp_path / "pulley.xml")
    model = robot.build()
    for q, u in itertools.product((-0.6, 0.0, 0.4), ((1.0, 0.0), (0.0, 0.02), (0.0, -0.02))):
        data, dofs = state_of(compiled, model, np.array([q]), np.zeros(1), np.array(u))
        ours = ls.forward_dynamics(model, [q], [0.0], u)
        np.testing.assert_allclose(data.qacc[dofs], ours, rtol=1e-8, atol=1e-9)


def refused():
    """Robots that MuJoCo cannot have, each with the rule that the error names."""
    body, out = ls.RigidBody.sphere(0.1, density=500.0), {}
    for name, joint, rule in (
        ("screw", ls.JointHelical(pitch=0.1), "other tools have no screw"),
        ("massless", None, "moves without mass"),
        ("free below", ls.JointFree(), "no free joint below another body"),
    ):
        robot = ls.Robot(name)
        robot.add_link("root", body, ls.JointRevolute())
        if name == "massless":
            robot.add_link("x", None, ls.JointRevolute(), parent="root")
        else:
            robot.add_link("x", body, joint, parent="root")
        out[name] = robot, f"link 'x'.*{rule}"
    loop = ls.Robot("loop")
    loop.add_link("x", body, ls.JointFree())
    loop.add_loop("slot", "x", joint=ls.JointPrismatic())
    out["loop"] = loop, "loop 'slot' > joint: must be fixed, spherical or revolute"
    skate = ls.Robot("skate")
    skate.add_link("x", body, ls.JointPlanar())
    skate.add_skate("blade", "x", (0, 1, 0))
    out["skate"] = skate, "skate 'blade': MuJoCo has no such constraint"
    bent = ls.Robot("bent")
    for name in "xy":
        bent.add_link(name, body, ls.JointRevolute())
    bent.add_coupling("cam", ["x", "y"], [1.0, ls.Expression("sin(q)", "q")])
    out["coupling"] = bent, "coupling 'cam': must be linear"
    return out


@pytest.mark.parametrize("name", refused())
def test_mechanisms_that_mujoco_lacks_are_refused(tmp_path, name):
    """The error names the part and the rule, and no file is written."""
    robot, rule = refused()[name]
    with pytest.raises(ls.ModelError, match=rule):
        ls.save_mjcf(robot, tmp_path / "x.xml")
    assert not (tmp_path / "x.xml").exists()


def test_parts_without_a_counterpart_are_told_once(tmp_path):
    """One warning names loads, motions, fluids, nonlinear springs and static friction; the rest is written."""
    robot, body = ls.Robot("rest"), ls.RigidBody.sphere(0.1, density=500.0)
    law = {
        "spring": [(-1.0, -2.0), (0.0, 0.0), (1.0, 3.0)],
        "friction": 0.1,
        "static_friction": 0.2,
        "stribeck_speed": 0.1,
    }
    robot.add_link("x", body, ls.JointRevolute(**law))
    robot.add_point_load("weight", "x", force=(0, 0, -1.0))
    robot.add_link("y", body, ls.JointRevolute())
    robot.add_joint_motion("turns", "y", position=ls.Expression("t", "t"))
    with pytest.warns(ls.LeftOutWarning) as caught:
        report = ls.save_mjcf(robot, tmp_path / "rest.xml")
    assert len(caught) == 1
    told = (
        "nonlinear spring of the joint of 'x'",
        "static friction of the joint of 'x'",
        "load of 'weight'",
        "motion of 'turns'",
    )
    assert report.left_out == told and all(part in str(caught[0].message.report) for part in told)
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "rest.xml")).nv == 2


def test_rod_of_few_modes_gives_a_warning(tmp_path):
    """A rod of constant curvature is stiffer than its chain, which a warning says with the number."""
    robot = ls.Robot("few")
    robot.add_link(
        "rod", ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=0), ls.Material(young=1e6, density=1000))
    )
    with pytest.warns(ls.AccuracyWarning, match="rods of few modes .* 'rod' by 50 %"):
        ls.save_mjcf(robot, tmp_path / "few.xml")


ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
PUBLIC = sorted(x.name for x in ASSETS.glob("*.xml") if x.name != "swimmer.xml")  # which swims in a fluid


@pytest.mark.filterwarnings("ignore::lissom.LeftOutWarning")
@pytest.mark.parametrize("name", PUBLIC)
def test_public_robots_are_the_same_after_a_round_trip(tmp_path, name):
    """A robot of Gymnasium that is read and written has MuJoCo's accelerations at a random state, to rounding."""
    first = mujoco.MjModel.from_xml_path(str(ASSETS / name))
    second, _ = saved(ls.load_mjcf(ASSETS / name), tmp_path / name)
    assert (first.nq, first.nv, first.nu) == (second.nq, second.nv, second.nu)
    np.testing.assert_array_equal(second.qpos0, first.qpos0)
    rng, q = np.random.default_rng(0), first.qpos0.copy()
    mujoco.mj_integratePos(first, q, 0.3 * rng.normal(size=first.nv), 1.0)
    v, u, found = rng.normal(size=first.nv), rng.uniform(-0.5, 0.5, first.nu), []
    for compiled in (first, second):
        off = mujoco.mjtDisableBit
        compiled.opt.disableflags |= int(off.mjDSBL_CONTACT) | int(off.mjDSBL_LIMIT)
        data = mujoco.MjData(compiled)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(compiled, data)
        found.append(data.qacc.copy())
    np.testing.assert_allclose(found[1], found[0], atol=1e-11 * np.abs(found[0]).max())


def test_names_that_other_parts_have_are_made_unique(tmp_path):
    """A contact called as a link, a rod whose links would be called as joints, and a massless frame with sites."""
    robot, block = ls.Robot("names"), ls.RigidBody.box(0.1, 0.1, 0.1, density=500.0)
    robot.add_link("palm", block, ls.JointPlanar())
    robot.add_link("palm_1", block, ls.JointRevolute(), parent="palm", placement=placed(0.2))
    robot.add_link("plate", None, ls.JointFree(), placement=placed(0, 0, 1))
    robot.add_link("load", block, parent="plate", placement=placed(0.1, 0, 0, (0, 0, 0.4)))
    robot.add_frame("mark", "plate", placement=placed(0.0, 0.3))
    robot.add_contact("palm", ["palm_1"], ls.ShapePlane(), placement=placed(0, 0, -1), stiffness=100.0)
    robot.add_contact("tray", ["palm_1"], ls.ShapePlane(), on="load", stiffness=100.0)
    with pytest.warns(ls.LeftOutWarning, match="plane of a link .* of 'tray'"):
        compiled, _ = saved(robot, tmp_path / "names.xml")
    assert [compiled.joint(j).name for j in range(5)] == ["palm_1_", "palm_2", "palm_3", "palm_1", "plate"]
    data, model = mujoco.MjData(compiled), robot.build()
    mujoco.mj_forward(compiled, data)
    np.testing.assert_allclose(data.site("mark").xpos, ls.frame_pose(model, model.neutral(), "mark")[:3, 3], atol=1e-14)
    with pytest.warns(ls.LeftOutWarning):
        ls.save_urdf(robot, tmp_path / "names.urdf")
        assert ls.load_urdf(tmp_path / "names.urdf").build().nv == model.nv
