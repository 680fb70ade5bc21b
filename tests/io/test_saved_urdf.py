"""URDF files that are written: lissom reads the chains of links from them, and Pinocchio the same mass matrix."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from io_robots import names_of_coordinates, placed, soft_arm

import lissom as ls


def tree():
    """The soft arm without what URDF has none of: tendons, wrenches, springs between points, states."""
    robot = soft_arm()
    for name in ("up", "side", "low", "jet"):
        del robot.actuators[name]
    robot.couplings.clear()
    robot.input_limits.clear()
    robot.springs.clear()
    robot.states.clear()
    robot.gravity = (0.0, 0.0, -9.81)
    return robot


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The path of the written arm, the report, the robot that is read, and that of the chains."""
    path = tmp_path_factory.mktemp("arm") / "arm.urdf"
    with pytest.warns(ls.LeftOutWarning, match="left out: armature of the joint of 'base'$"):
        report = ls.save_urdf(tree(), path)
    with pytest.warns(ls.LeftOutWarning, match="limits of effort"):
        back = ls.load_urdf(path)
    return path, report, back, ls.rigid_chains(tree()).robot


def test_loaded_file_is_the_same_robot(saved):
    """Mass matrix, neutral poses, equilibrium by springs and inputs are those of the chains, to rounding."""
    _, report, back, chains = saved
    base = chains.links["base"]
    joint = ls.JointRevolute(base.joint.axis, stiffness=2.0, rest=0.2, damping=0.1, limits=(-2.0, 1.5),
                             limit_stiffness=1e4)  # fmt: skip
    chains.links["base"] = ls.Robot().add_link("base", base.body, joint, placement=base.placement)
    ours, theirs = chains.build(), back.build()
    assert theirs.links.mass.sum() == pytest.approx(tree().build().links.mass.sum(), rel=1e-13)
    assert theirs.nv == ours.nv and theirs.inputs.names == ("turn", "wag[0]", "wag[1]")
    rests = [ls.solve_statics(one).q for one in (ours, theirs)]
    for name in ("base", "arm_1", "arm_4", "branch", "tool", "mark"):
        for q, p in ((ours.neutral(), theirs.neutral()), rests):
            np.testing.assert_allclose(ls.frame_pose(theirs, p, name), ls.frame_pose(ours, q, name), atol=1e-9)
    D = [np.sort(np.linalg.eigvalsh(ls.damping_matrix(one))) for one in (ours, theirs)]
    np.testing.assert_allclose(D[1], D[0], rtol=1e-9, atol=1e-15)
    assert report.chains[0].joints >= 3


def test_pinocchio_reads_the_same_mechanism(saved):
    """Pinocchio's mass matrix and weight at random states are those of the chains, by the names of the joints."""
    pinocchio = pytest.importorskip("pinocchio")
    path, _, _, chains = saved
    chains.links["base"] = ls.Robot().add_link(
        "base", chains.links["base"].body, ls.JointRevolute(chains.links["base"].joint.axis),
        placement=chains.links["base"].placement
    )  # fmt: skip
    model, names = chains.build(), names_of_coordinates(chains)
    theirs = pinocchio.buildModelFromUrdf(str(path))
    data = theirs.createData()
    q = np.random.default_rng(0).uniform(-0.5, 0.5, model.nq)
    p, at = pinocchio.neutral(theirs), [theirs.joints[theirs.getJointId(name)] for name in names]
    for joint, x in zip(at, q):
        p[joint.idx_q : joint.idx_q + joint.nq] = [np.cos(x), np.sin(x)][: joint.nq] if joint.nq == 2 else [x]
    order = [joint.idx_v for joint in at]
    M = pinocchio.crba(theirs, data, p)
    M = np.triu(M) + np.triu(M, 1).T
    np.testing.assert_allclose(M[np.ix_(order, order)], ls.mass_matrix(model, q), atol=1e-12)
    weight = pinocchio.computeGeneralizedGravity(theirs, data, p)[order]
    ours = ls.inverse_dynamics(model, q, 0 * q, 0 * q, elastic=False, loads=False)
    np.testing.assert_allclose(weight, ours, atol=1e-11)


def test_springs_are_in_the_extension_of_gazebo(saved):
    """Each spring of a joint is a <gazebo> element with its stiffness and its rest."""
    path, _, _, chains = saved
    root = ET.parse(path).getroot()
    springs = {x.get("reference"): [float(part.text) for part in x] for x in root.iter("gazebo")}
    assert springs["base"] == [2.0, 0.2]
    assert springs["arm_2"] == [chains.links["arm_2"].joint.stiffness, 0.0]


def test_tip_deflection_is_that_of_the_rod(tmp_path):
    """A stiff cantilever that was written sags as the rod does, to the stated error."""
    robot = ls.Robot("beam")
    stiff = ls.Material(young=1e8, density=1100)
    robot.add_link("rod", ls.Rod(0.4, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=4, bending_z=4), stiff))
    robot.add_frame("tip", "rod")
    report = ls.save_urdf(robot, tmp_path / "beam.urdf", tolerance=0.02)
    back = ls.load_urdf(tmp_path / "beam.urdf")
    sags = [ls.frame_pose(one, ls.solve_statics(one).q, "tip")[2, 3] for one in (robot.build(), back.build())]
    assert abs(sags[1] / sags[0] - 1.0) == pytest.approx(report.chains[0].weight, rel=0.1)


@pytest.mark.filterwarnings("ignore::lissom.LeftOutWarning")
def test_shapes_meshes_and_colors_come_back(tmp_path):
    """Shapes, drawn meshes with colors, hulls and capsules are read again, at their places."""
    robot = ls.Robot("shapes")
    mesh = ls.Mesh.of_shape(
        ls.ShapeCone(0.1, 0.2), placement=placed(0.1, 0, 0, (0, 0.5, 0)), color=(0.2, 0.4, 0.6, 0.5)
    )
    points = [[0, 0, 0], [0.1, 0, 0], [0, 0.2, 0], [0, 0, 0.3]]
    shapes = (ls.PlacedShape(ls.ShapeBox(0.1, 0.2, 0.3), placed(0.1, 0.2, 0.3, (0.1, 0.2, 0.3))),
              ls.PlacedShape(ls.ShapeCapsule(0.02, 0.1, (0, 1, 0)), placed(0.0, 0.1)),
              ls.PlacedShape(ls.ShapeHull(points), placed(0.0, 0.0, 0.5)))  # fmt: skip
    body = ls.RigidBody(1.0, (0.1, 0, 0), (1e-2, 1e-2, 1e-2), shapes=shapes, meshes=(mesh,))
    robot.add_link("x", body, ls.JointFree(), placement=placed(0.3))
    ls.save_urdf(robot, tmp_path / "shapes.urdf")
    back = ls.load_urdf(tmp_path / "shapes.urdf").links["x"]
    drawn = back.body.meshes[0]
    assert np.ravel(drawn.color) == pytest.approx((0.2, 0.4, 0.6, 0.5))
    low, high = (mesh.surface()[0].min(axis=0), mesh.surface()[0].max(axis=0))
    np.testing.assert_allclose([drawn.surface()[0].min(axis=0), drawn.surface()[0].max(axis=0)], [low, high], atol=1e-7)
    kinds = [type(placed.shape).__name__ for placed in back.body.shapes]
    assert kinds == ["ShapeBox", "ShapeCylinder", "ShapeSphere", "ShapeSphere", "ShapeMesh"]
    np.testing.assert_allclose(back.body.shapes[0].pose, np.asarray(shapes[0].placement), atol=1e-15)
    corners = back.body.shapes[4].shape.mesh.surface()[0] + (0, 0, 0.5)
    assert {tuple(x) for x in corners.round(6).tolist()} == {tuple(x) for x in np.add(points, (0, 0, 0.5)).tolist()}
    assert list(tmp_path.glob("shapes_meshes/*.stl"))


def test_paths_of_meshes_in_a_package(tmp_path):
    """With package= the paths of meshes begin with package://, and load_urdf finds them by packages=."""
    robot = ls.Robot("rod")
    robot.add_link(
        "rod", ls.Rod(0.2, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1), ls.Material(young=1e6, density=1000))
    )
    ls.save_urdf(robot, tmp_path / "rod.urdf", package="my_robot")
    files = [x.get("filename") for x in ET.parse(tmp_path / "rod.urdf").getroot().iter("mesh")]
    assert files and all(x.startswith("package://my_robot/rod_meshes/") for x in files)
    back = ls.load_urdf(tmp_path / "rod.urdf", packages={"my_robot": tmp_path})
    assert back.links["rod"].body.meshes


@pytest.mark.filterwarnings("ignore::lissom.LeftOutWarning")
def test_mimic_joints_limits_and_several_coordinates(tmp_path):
    """Couplings of two joints, limits of motors and joints of several coordinates are read again."""
    robot, body = ls.Robot("hand"), ls.RigidBody.sphere(0.1, density=500.0)
    stops = {"limits": (-0.5, 1.0), "limit_stiffness": 1e4}
    for name in "ab":
        robot.add_link(name, body, ls.JointRevolute((0, 0, 1), **stops))
    robot.add_link("c", body, ls.JointPlanar((0, 0.6, 0.8)), parent="b", placement=placed(0.1, turn=(0.3, 0, 0)))
    robot.add_coupling("follow", ["a", "b"], [2.0, -1.0], 0.6)
    robot.add_joint_actuator("motor", "b")
    robot.couple_inputs("geared", {"motor": 30.0})
    robot.limit_input("geared", -3.0, 2.0)
    ls.save_urdf(robot, tmp_path / "hand.urdf")
    root = ET.parse(tmp_path / "hand.urdf").getroot()
    assert float(next(x for x in root.iter("joint") if x.get("name") == "b").find("limit").get("effort")) == 3.0
    back = ls.load_urdf(tmp_path / "hand.urdf")
    (coupling,) = back.joint_couplings.values()
    assert (coupling.ratios, coupling.offset) == ((1.0, -0.5), 0.3)
    model, ours = back.build(), robot.build()
    assert model.inputs.names == ("geared",)
    assert ls.actuation_matrix(model, model.neutral())[model.links.v_start[model.links.names.index("b")], 0] == 30.0
    q = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    np.testing.assert_allclose(ls.frame_pose(model, q, "c"), ls.frame_pose(ours, q, "c"), atol=1e-14)


def refused():
    """Robots that URDF cannot describe, each with the rule that the error names."""
    body, out = ls.RigidBody.sphere(0.1, density=500.0), {}
    for name, joint, rule in (
        ("ball", ls.JointSpherical(), "must not be spherical: URDF has no such joint; replace it by three links"),
        ("screw", ls.JointHelical(pitch=0.1), "other tools have no screw"),
    ):
        out[name] = ls.Robot(name), f"link 'x' > joint: .*{rule}"
        out[name][0].add_link("x", body, joint)
    loop = ls.Robot("loop")
    loop.add_link("x", body, ls.JointFree())
    loop.add_loop("ring", "x")
    out["loop"] = loop, "loop 'ring': URDF holds trees of joints only; save_mjcf has loops"
    three = ls.Robot("three")
    for name in "xyz":
        three.add_link(name, body, ls.JointRevolute())
    three.add_coupling("sum", ["x", "y", "z"], [1.0, 1.0, 1.0])
    out["coupling"] = three, "coupling 'sum': must be linear in two joints"
    return out


@pytest.mark.parametrize("name", refused())
def test_mechanisms_that_urdf_lacks_are_refused(tmp_path, name):
    """The error names the part, the rule and the cure, and no file is written."""
    robot, rule = refused()[name]
    with pytest.raises(ls.ModelError, match=rule):
        ls.save_urdf(robot, tmp_path / "x.urdf")
    assert not (tmp_path / "x.urdf").exists()


def test_parts_without_a_counterpart_are_told_once(tmp_path):
    """One warning names tendons, springs, inputs of several actuators, states and gravity; the rest is written."""
    with pytest.warns(ls.LeftOutWarning) as caught:
        report = ls.save_urdf(soft_arm(), tmp_path / "arm.urdf")
    assert len(caught) == 1
    for part in ("gravity of the robot", "spring of 'stay'", "state of 'home'", "input of several actuators of 'pull'",
                 "Tendon of 'side'", "WrenchInput of 'jet'"):  # fmt: skip
        assert part in report.left_out


@pytest.mark.parametrize(
    "inside, told",
    [
        ("<springStiffness>x</springStiffness>", "wrong <gazebo>"),
        ("<springStiffness>-1</springStiffness>", "wrong <gazebo>"),
        ("<springStiffness>1</springStiffness><mu1>0.2</mu1>", "<gazebo>"),
        ("<material>Red</material>", "<gazebo>"),
    ],
)
def test_other_extensions_of_gazebo_are_left_out(tmp_path, inside, told):
    """Wrong springs, and elements with other contents, are named in the warning of the reader."""
    path = tmp_path / "x.urdf"
    path.write_text(
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous"><parent link="a"/>'
        f'<child link="b"/></joint><gazebo reference="j">{inside}</gazebo></robot>'
    )
    with pytest.warns(ls.LeftOutWarning, match=told):
        robot = ls.load_urdf(path)
    assert robot.links["b"].joint.stiffness == 0.0
