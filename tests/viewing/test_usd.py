"""Files of OpenUSD: what usd-core reads from them is the robot and its motion."""

import warnings

import numpy as np
import pytest
from io_robots import SILICONE, placed, soft_arm

import lissom as ls
from lissom.simulation.trajectory import Statistics, Trajectory
from lissom.viewing.geometry import robot_geometry

Usd = pytest.importorskip("pxr.Usd")
from pxr import UsdGeom, UsdPhysics, UsdShade, UsdValidation  # noqa: E402

T = np.linspace(2.0, 3.0, 11)  # times of the motion [s]


def moved(model):
    """A motion of a model, from its start along a random direction."""
    rng = np.random.default_rng(0)
    dv = 0.3 * rng.normal(size=model.nv) * model.dofs.scale
    q = ls.integrate(model, np.tile(ls.start_configuration(model), (len(T), 1)), np.outer(T - T[0], dv))
    v, none = np.tile(dv, (len(T), 1)), np.zeros((len(T), 0))
    return Trajectory(T, q, v, 0 * v, none, none, none, Statistics("none", 0, 0, 0, 0.0), model=model)


def opened(model, path, motion=None, **options):
    """The stage of a robot that was written, and the report."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.LeftOutWarning)
        report = ls.save_usd(model, path, motion, **options)
    return Usd.Stage.Open(str(path)), report


def pose_of(stage, path, time):
    """The pose (4, 4) of a prim in the world at a time code."""
    prim = stage.GetPrimAtPath(path)
    return np.array(UsdGeom.XformCache(time).GetLocalToWorldTransform(prim)).T


@pytest.fixture(scope="module")
def arm():
    """The soft arm and its motion."""
    model = soft_arm().build()
    return model, moved(model)


@pytest.fixture(scope="module")
def stage(arm, tmp_path_factory):
    """Its file at 20 time codes per second."""
    return opened(*[arm[0], tmp_path_factory.mktemp("usd") / "arm.usdc", arm[1]], fps=20.0)[0]


def test_units_axes_and_times(stage):
    """Metres, kilograms, z upwards, a default prim, and the time codes of the motion, which starts at zero."""
    assert UsdGeom.GetStageUpAxis(stage) == "Z" and UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    assert UsdPhysics.GetStageKilogramsPerUnit(stage) == 1.0
    assert stage.GetDefaultPrim().GetPath() == "/Robot" and stage.GetTimeCodesPerSecond() == 20.0
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (0.0, 20.0)


@pytest.mark.parametrize("code", [0, 8, 20])
def test_poses_and_points_are_those_of_the_motion(arm, stage, code):
    """At several times: frames of links and named frames, points of the rod, of rigid meshes and of tendons."""
    model, motion = arm
    q = motion.q[code // 2]
    for name, s in (("base", None), ("arm", 0.0), ("branch", None), ("tool", None)):
        exact = ls.frame_pose(model, q, name, **({} if s is None else {"s": s}))
        np.testing.assert_allclose(pose_of(stage, f"/Robot/Links/{name}", code), exact, atol=1e-12)
    np.testing.assert_allclose(pose_of(stage, "/Robot/Frames/mark", code), ls.frame_pose(model, q, "mark"), atol=1e-12)
    geometry = robot_geometry(model)
    points = geometry.points(q)
    for mesh in geometry.meshes:
        rigid = mesh.kind == "rigid"
        path = f"/Robot/Links/{mesh.name}/Mesh" if rigid else f"/Robot/Surfaces/{mesh.name}"
        g = pose_of(stage, path, code)
        x = np.array(UsdGeom.Mesh(stage.GetPrimAtPath(path)).GetPointsAttr().Get(code))
        np.testing.assert_allclose(x @ g[:3, :3].T + g[:3, 3], points[mesh.rows], atol=1e-6)
        assert len(UsdGeom.Mesh(stage.GetPrimAtPath(path)).GetPointsAttr().GetTimeSamples()) == (0 if rigid else 21)
    for line in geometry.of("tendon"):
        x = np.array(UsdGeom.BasisCurves(stage.GetPrimAtPath(f"/Robot/Lines/{line.name}")).GetPointsAttr().Get(code))
        np.testing.assert_allclose(x, points[line.rows], atol=1e-6)


def test_samples_between_the_states_of_the_motion(arm, stage):
    """A time code between two states has the configuration between them."""
    model, motion = arm
    q = ls.integrate(model, motion.q[3], 0.5 * ls.difference(model, motion.q[3], motion.q[4]))
    np.testing.assert_allclose(pose_of(stage, "/Robot/Links/tool", 7), ls.frame_pose(model, q, "tool"), atol=1e-12)


def test_validators_of_usd_find_nothing(stage, tmp_path):
    """All validators of usd-core accept a file with rods, and one whose rods are chains with joints."""
    known = UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
    chosen = [
        one for one in known if "usdz" not in one.GetMetadata().name.lower() and "Package" not in one.GetMetadata().name
    ]
    assert len(chosen) > 15
    chains = ls.rigid_chains(soft_arm(), joints=3).robot.build()
    for one in (stage, opened(chains, tmp_path / "chains.usda")[0]):
        assert [error.GetMessage() for error in UsdValidation.ValidationContext(chosen).Validate(one)] == []


def test_materials_have_the_colors_of_meshes(tmp_path):
    """A mesh with a color and an opacity has a preview surface of it, in linear colors."""
    robot = ls.Robot("painted")
    mesh = ls.Mesh.of_shape(ls.ShapeBox(0.1, 0.2, 0.3), color=(0.5, 0.25, 1.0, 0.4))
    robot.add_link("box", ls.RigidBody(1.0, inertia=(1, 1, 1), meshes=(mesh,)))
    stage, _ = opened(robot.build(), tmp_path / "painted.usda")
    prim = stage.GetPrimAtPath("/Robot/Links/box/Mesh")
    material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()
    shader = material.ComputeSurfaceSource()[0]
    assert tuple(shader.GetInput("diffuseColor").Get()) == pytest.approx((0.5**2.2, 0.25**2.2, 1.0), rel=1e-2)
    assert shader.GetInput("opacity").Get() == pytest.approx(0.4)


def linked():
    """Rigid bodies on joints of each kind that UsdPhysics has, with springs, limits and a loop."""
    robot, body = (
        ls.Robot("linked"),
        ls.RigidBody(0.5, (0.01, 0.02, 0.03), [[4e-3, 1e-4, 0], [1e-4, 5e-3, 2e-4], [0, 2e-4, 6e-3]]),
    )
    hinge = ls.JointRevolute(
        (0, 0.6, 0.8), stiffness=3.0, rest=0.2, damping=0.1, limits=(-1.0, 2.0), limit_stiffness=10.0
    )
    robot.add_link("hinge", body, hinge, placement=placed(0.1, 0.2, 0.3, (0.4, 0.1, 0)))
    robot.add_link(
        "slide", body, ls.JointPrismatic((0, 1, 0), stiffness=5.0), "hinge", placement=placed(0.3, turn=(0, 0.3, 0))
    )
    robot.add_link("ball", body, ls.JointSpherical(), "slide", placement=placed(0.2))
    robot.add_link("fixed", body, parent="ball", placement=placed(0.0, 0.2))
    robot.add_link("plane", body, ls.JointPlanar(stiffness=(1.0, 2.0, 3.0)), placement=placed(1.0, turn=(0.1, 0.2, 0)))
    robot.add_link("free", ls.RigidBody.sphere(0.1, density=500.0), ls.JointFree(), placement=placed(2.0))
    robot.add_loop(
        "ring", "free", "fixed", joint=ls.JointRevolute((1, 0, 0)), placement_a=placed(-0.1), placement_b=placed(0.1)
    )
    return robot


def test_mass_properties(tmp_path):
    """Mass, centre of mass and inertia of bodies, in principal axes, to the rounding of single precision."""
    stage, _ = opened(linked().build(), tmp_path / "linked.usda")
    mass = UsdPhysics.MassAPI(stage.GetPrimAtPath("/Robot/Links/hinge"))
    assert mass.GetMassAttr().Get() == 0.5
    np.testing.assert_allclose(mass.GetCenterOfMassAttr().Get(), (0.01, 0.02, 0.03), rtol=1e-6)
    turn = mass.GetPrincipalAxesAttr().Get()
    from scipy.spatial.transform import Rotation

    R = Rotation.from_quat([*turn.GetImaginary(), turn.GetReal()]).as_matrix()
    inertia = R @ np.diag(np.array(mass.GetDiagonalInertiaAttr().Get())) @ R.T
    np.testing.assert_allclose(inertia, linked().links["hinge"].body.inertia, atol=1e-9)


def test_frames_of_joints_meet(tmp_path):
    """At a random configuration the two frames of each joint differ by the motion of its coordinate, along x."""
    model = linked().build()
    q = ls.integrate(model, model.neutral(), np.random.default_rng(1).uniform(-0.5, 0.5, model.nv))
    stage, report = opened(model, tmp_path / "linked.usda", q=q)
    assert report.left_out == ()
    found = {}
    for prim in stage.Traverse():
        joint = UsdPhysics.Joint(prim)
        if not joint or "ring" in prim.GetName():
            continue
        ends = []
        for k in range(2):
            targets = getattr(joint, f"GetBody{k}Rel")().GetTargets()
            body = pose_of(stage, targets[0], 0) if targets else np.eye(4)
            turn, g = getattr(joint, f"GetLocalRot{k}Attr")().Get(), np.eye(4)
            from scipy.spatial.transform import Rotation

            g[:3, :3] = Rotation.from_quat([*turn.GetImaginary(), turn.GetReal()]).as_matrix()
            g[:3, 3] = getattr(joint, f"GetLocalPos{k}Attr")().Get()
            ends.append(body @ g)
        found[prim.GetName()] = np.linalg.inv(ends[0]) @ ends[1]
    c, s = np.cos(q[0]), np.sin(q[0])
    np.testing.assert_allclose(found["hinge"], [[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]], atol=1e-6)
    np.testing.assert_allclose(found["slide"], placed(q[1]), atol=1e-6)
    np.testing.assert_allclose(found["ball"][:3, 3], 0.0, atol=1e-6)
    np.testing.assert_allclose(found["fixed"], np.eye(4), atol=1e-6)
    np.testing.assert_allclose(found["plane"], placed(q[6], q[7], 0.0, (0, 0, q[8])), atol=1e-6)
    assert set(found) == {"hinge", "slide", "ball", "fixed", "plane"}


def test_limits_and_springs_are_in_degrees(tmp_path):
    """Limits and rest of a hinge are in degrees, its spring per degree; those of a slide in metres."""
    stage, _ = opened(linked().build(), tmp_path / "linked.usda")
    hinge = UsdPhysics.RevoluteJoint(stage.GetPrimAtPath("/Robot/Joints/hinge"))
    assert (hinge.GetLowerLimitAttr().Get(), hinge.GetUpperLimitAttr().Get()) == pytest.approx(np.rad2deg([-1.0, 2.0]))
    drive = UsdPhysics.DriveAPI(hinge.GetPrim(), "angular")
    assert drive.GetStiffnessAttr().Get() * np.rad2deg(1.0) == pytest.approx(3.0)
    assert drive.GetDampingAttr().Get() * np.rad2deg(1.0) == pytest.approx(0.1)
    assert drive.GetTargetPositionAttr().Get() == pytest.approx(np.rad2deg(0.2))
    slide = UsdPhysics.DriveAPI(stage.GetPrimAtPath("/Robot/Joints/slide"), "linear")
    assert slide.GetStiffnessAttr().Get() == 5.0
    plane = stage.GetPrimAtPath("/Robot/Joints/plane")
    assert (
        UsdPhysics.LimitAPI(plane, "transZ").GetLowAttr().Get()
        > UsdPhysics.LimitAPI(plane, "transZ").GetHighAttr().Get()
    )
    assert UsdPhysics.DriveAPI(plane, "transY").GetStiffnessAttr().Get() == 2.0
    assert UsdPhysics.Joint(stage.GetPrimAtPath("/Robot/Joints/ring")).GetExcludeFromArticulationAttr().Get()
    scene = UsdPhysics.Scene(stage.GetPrimAtPath("/Robot/Physics"))
    assert (
        scene.GetGravityMagnitudeAttr().Get() == pytest.approx(9.81)
        and scene.GetGravityDirectionAttr().Get()[2] == -1.0
    )


def test_chains_have_joints_for_each_element(tmp_path):
    """A rod as a chain: bodies of the mass of the rod, and one joint of two hinges with drives for each element."""
    robot = ls.Robot("rod")
    robot.add_link("rod", ls.Rod(0.2, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1, bending_z=1), SILICONE))
    chains = ls.rigid_chains(robot, joints=4)
    stage, report = opened(chains.robot.build(), tmp_path / "rod.usda")
    assert report.left_out == ()
    bodies = [prim for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
    mass = sum(UsdPhysics.MassAPI(prim).GetMassAttr().Get() for prim in bodies)
    assert mass == pytest.approx(robot.build().links.mass.sum(), rel=1e-6) and len(bodies) == 5
    joint = stage.GetPrimAtPath("/Robot/Joints/rod_3")
    k = chains.robot.links["rod_3"].joint.stiffness
    for word in ("rotY", "rotZ"):
        assert UsdPhysics.DriveAPI(joint, word).GetStiffnessAttr().Get() * np.rad2deg(1.0) == pytest.approx(k)
    assert UsdPhysics.LimitAPI(joint, "rotX").GetLowAttr().Get() == 1.0


def test_bodies_on_rods_are_kinematic_and_told(arm, tmp_path):
    """One warning names what UsdPhysics lacks; a body on a rod follows its time samples and does not fall."""
    with pytest.warns(ls.LeftOutWarning) as caught:
        report = ls.save_usd(arm[0], tmp_path / "arm.usda", arm[1])
    assert len(caught) == 1
    assert "joint to a rod or a deformable body of link of 'branch'" in report.left_out
    stage = Usd.Stage.Open(str(tmp_path / "arm.usda"))
    assert UsdPhysics.RigidBodyAPI(stage.GetPrimAtPath("/Robot/Links/branch")).GetKinematicEnabledAttr().Get()
    assert not UsdPhysics.RigidBodyAPI(stage.GetPrimAtPath("/Robot/Links/base")).GetKinematicEnabledAttr().Get()


def test_floors_names_and_files_without_physics(tmp_path):
    """Names with spaces become identifiers with a display name, a plane is a collider, physics=False leaves it out."""
    robot = ls.Robot("two balls")
    for name in ("a ball", "a_ball"):
        robot.add_link(name, ls.RigidBody.sphere(0.1, density=500.0), ls.JointFree())
    robot.add_contact("the floor", ls.EVERYTHING, ls.ShapePlane(), placement=placed(0, 0, -1))
    model = robot.build()
    stage, _ = opened(model, tmp_path / "balls.usd")
    names = {prim.GetDisplayName(): prim.GetName() for prim in stage.GetPrimAtPath("/Robot/Links").GetChildren()}
    assert names == {"a ball": "a_ball", "a_ball": "a_ball_"}
    assert stage.GetPrimAtPath("/Robot/Physics/the_floor").HasAPI(UsdPhysics.CollisionAPI)
    assert stage.GetPrimAtPath("/Robot/Surroundings/the_floor").GetTypeName() == "Mesh"
    bare, report = opened(model, tmp_path / "bare.usd", physics=False)
    assert report.left_out == () and not any(prim.HasAPI(UsdPhysics.RigidBodyAPI) for prim in bare.Traverse())


def test_wrong_arguments_are_refused(arm, tmp_path):
    """A Robot, another ending, a batch of motions, and both a motion and q are refused by name."""
    model, motion = arm
    with pytest.raises(ls.ModelError, match=r"expected a Model, got a Robot: call robot.build\(\)"):
        ls.save_usd(model.description, tmp_path / "a.usda")
    with pytest.raises(ls.ModelError, match=r"path: must end in one of .usd, .usda, .usdc \(got"):
        ls.save_usd(model, tmp_path / "a.glb")
    with pytest.raises(ls.ModelError, match="q: must be left out where there is a motion"):
        ls.save_usd(model, tmp_path / "a.usda", motion, q=motion.q[0])
    with pytest.raises(ls.ShapeError, match="motion: expected q of shape"):
        ls.save_usd(soft_rod(), tmp_path / "a.usda", motion)


def soft_rod():
    """A model of another size."""
    robot = ls.Robot("rod")
    robot.add_link("rod", ls.Rod(0.2, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1), SILICONE))
    return robot.build()


def deformable():
    """A block of rubber with two modes."""
    mesh = ls.DomainTetrahedra(*ls.box_mesh((0.12, 0.04, 0.03), (4, 2, 2)))
    rubber = ls.HyperelasticSaintVenantKirchhoff(young=1e5, poisson=0.4)
    shapes = ls.KinematicsFiniteElements(mesh).reduced(rubber, 1070.0, modes=2)
    return ls.DeformableBody(shapes, mesh, rubber, density=1070.0)


def test_deformable_bodies_are_meshes_with_samples(tmp_path):
    """The surface of a deformable body has points for each time, those of its geometry, and no physics."""
    pytest.importorskip("jax")
    robot = ls.Robot("soft")
    robot.add_link("brick", deformable())
    model = robot.build()
    motion = moved(model)
    stage, report = opened(model, tmp_path / "soft.usda", motion, fps=10.0)
    assert report.left_out == ("physics of the body of link of 'brick'",)
    mesh, geometry = UsdGeom.Mesh(stage.GetPrimAtPath("/Robot/Surfaces/brick")), robot_geometry(model)
    for code in (0, 10):
        x = np.array(mesh.GetPointsAttr().Get(code))
        np.testing.assert_allclose(x, geometry.points(motion.q[code])[geometry.meshes[0].rows], atol=1e-6)
    assert np.abs(np.array(mesh.GetPointsAttr().Get(10)) - np.array(mesh.GetPointsAttr().Get(0))).max() > 1e-4
