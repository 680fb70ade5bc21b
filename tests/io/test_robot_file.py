"""Robot files: a written file is read as the same robot, and mistakes are named with their lines."""

from __future__ import annotations

import math
from pathlib import Path

import families
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from robot_descriptions import ABSCISSAE, SHAPES, assert_same, one_rod, rod, round_trip

import lissom as ls
from lissom.io.schema import TYPES, ConstantMatrix
from lissom.robot.bases import Basis
from lissom.robot.joints import Joint
from lissom.robot.sections import Section

EXAMPLES = Path(__file__).parents[2] / "examples" / "robots"


def read(tmp_path, text):
    """The robot in a text."""
    (tmp_path / "robot.yaml").write_text(text, encoding="utf-8")
    return ls.load_robot(tmp_path / "robot.yaml")


def custom_basis(s):
    """Bending that grows along the rod, coupled with twist."""
    return np.array([[0.1 * s, 0.0], [1.0, s], [0, 0], [0, 0], [0, 0], [0, 0]])


SECTIONS = [
    ls.SectionCircle(0.1 + 0.2),  # a float with 17 digits
    ls.SectionCircle((0.03, 0.015)),
    ls.SectionCircle(ls.Expression("0.03 - 0.015*s")),
    ls.SectionCircle(ls.Tabulated([0, 0.3, 1], [0.03, 0.02, 0.01], "linear")),
    ls.SectionCircle(ls.Tabulated(np.linspace(0, 1, 5), 0.01 + 0.01 * np.cos(np.arange(5)) ** 2)),
    ls.SectionCircle(lambda s: 0.03 - 0.015 * s),
    ls.SectionCircle(lambda s: 0.02 + 0.005 * math.sin(7 * s)),
    ls.SectionRectangle(0.01, (0.02, 0.01), saint_venant=True),
    ls.SectionEllipse((0.01, 0.02), lambda s: 0.02 + 0.001 * s**2),
    ls.SectionAnnulus(0.02, ls.Expression("0.01*exp(-s)")),
    ls.SectionGeneral(stiffness=(1.0, 2, 3, 4, 5, 6), inertia=np.diag([2.0, 1, 1, 3, 3, 3])),
    ls.SectionGeneral(damping=lambda s: np.eye(6) * (1 + s), shape=ls.SectionCircle(0.01)),
    ls.SectionGeneral(stiffness=np.eye(6), shape=ls.SectionRectangle(0.01, 0.02)),
    *families.all_made(Section),
]
BASES = [
    ls.BasisLegendre(torsion=0, bending_y=1, bending_z=2, elongation=3, shear_y=4, shear_z=5),
    ls.BasisMonomial(bending_z=2),
    ls.BasisChebyshev(torsion=1),
    ls.BasisFourier(bending_y=2),
    ls.BasisGaussian(bending_y=2),
    ls.BasisHermite(bending_y=2),
    ls.BasisPiecewiseConstant(bending_y=3),
    ls.BasisPiecewiseLinear(bending_y=3, elongation=2),
    ls.BasisCustom(ls.Expression([["0", "s"], ["1", "0"], [0, 0], [0, 0], [0, 0], [0, 0]]), order=3),
    ls.BasisCustom(custom_basis),
    ls.BasisCustom(ls.Tabulated([0, 0.4, 1], [np.eye(6, 2) * k for k in (1, 2, 1.5)], "linear"), order=2, knots=(0.4,)),
    *families.all_made(Basis),
]
SPRING = {"stiffness": 2.0, "damping": 0.1}
JOINTS = [
    ls.JointFixed(),
    ls.JointRevolute((0, 1, 0), **SPRING, rest=0.3),
    ls.JointPrismatic((0, 1, 1)),
    ls.JointHelical(np.array([1.0, 0, 0]), pitch=0.01),
    ls.JointCylindrical(stiffness=(1.0, 2.0)),
    ls.JointUniversal((1, 0, 0), (0, 1, 0), stiffness=[[2.0, 0.1], [0.1, 1.0]]),
    ls.JointPlanar((0, 1, 0), rest=(0.1, 0.2, 0.3)),
    ls.JointSpherical(rest=(1, 0, 0, 0), **SPRING),
    ls.JointFree(rest=(0.6, 0.8, 0, 0, 1, 2, 3)),
    *families.all_made(Joint),
]
BODIES = [
    None,
    ls.RigidBody(1.5, (0.1, 0, 0), (0.1, 0.2, 0.25), outline=(0.1, 0.1, 0.1)),
    ls.RigidBody(1.5, inertia=[[0.2, 0.01, 0], [0.01, 0.2, 0], [0, 0, 0.3]]),
    ls.RigidBody.box(0.1, 0.2, 0.3, density=700.0),
    ls.RigidBody.cylinder(0.1, 0.02, density=700.0),
    ls.RigidBody.sphere(0.1, density=700.0),
    rod(reference_strain=(0, 1, 0, 1, 0, 0), gauss_points=4),
    rod(reference_strain=lambda s: (0, 2 * s, 0, 1, 0, 0)),
    rod(reference_strain=ls.Expression(["0", "2*s", "0", "1", "0", "0"])),
    rod(material=ls.Material(young=1e5, density=900, poisson=0.3, viscosity=10.0, damping_time=0.01)),
    rod(material=None, section=SECTIONS[10]),
]


def named(values):
    """A readable name for each parameter."""
    return [f"{type(value).__name__}-{k}" for k, value in enumerate(values)]


@pytest.mark.parametrize("section", SECTIONS, ids=named(SECTIONS))
def test_every_section_is_read_as_it_was_written(section, tmp_path):
    """Purpose: a saved section has the same class and numbers, its Python functions as tables."""
    robot = one_rod(section=section)
    assert_same(robot, round_trip(robot, tmp_path))


@pytest.mark.parametrize("basis", BASES, ids=named(BASES))
def test_every_basis_is_read_as_it_was_written(basis, tmp_path):
    """Purpose: a saved basis has the same class, orders and values."""
    robot = one_rod(basis=basis)
    again = round_trip(robot, tmp_path)
    assert_same(robot, again)
    for s in ABSCISSAE:
        expected = basis.evaluate(s)
        np.testing.assert_allclose(again.links["arm"].body.basis.evaluate(s), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("joint", JOINTS, ids=named(JOINTS))
def test_every_joint_is_read_as_it_was_written(joint, tmp_path):
    """Purpose: a saved joint has the same class, axes, spring and rest."""
    robot = ls.Robot()
    robot.add_link("body", ls.RigidBody.sphere(0.1, density=1.0), joint)
    assert_same(robot, round_trip(robot, tmp_path))


@pytest.mark.parametrize("body", BODIES, ids=named(BODIES))
def test_every_body_is_read_as_it_was_written(body, tmp_path):
    """Purpose: a saved body, material and reference strain keep their numbers."""
    robot = ls.Robot(gravity=np.array([0.1, 0.2, -9.7]))
    robot.add_link("body", body)
    assert_same(robot, round_trip(robot, tmp_path))


def test_the_sweeps_hold_every_class_of_the_description():
    """Purpose: a class added to the file format must be added to these sweeps."""
    swept = {type(item) for item in (*SECTIONS, *BASES, *JOINTS, *BODIES, *SHAPES)} - {type(None)}
    items = {ls.PathRod, ls.PathPoint, ls.PathBody, ls.PathWrap, ls.SpringBranch}
    assert swept == TYPES - items - {ls.Material, ls.Mesh, ls.PlacedShape, ls.PoseSpline}
    public = {getattr(ls, name) for name in ls.__all__ if name.startswith(("Joint", "Section", "Basis", "Shape"))}
    assert public - {ls.ShapeError} <= TYPES


def test_tree_actuators_loads_and_frames_are_read_as_they_were_written(tmp_path):
    """Purpose: parents, placements, paths, chambers, motors, couplings, loads and frames survive the round trip."""
    turn = np.array([[0.0, -1, 0, 0.1], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    shift = np.eye(4)
    shift[:3, 3] = 0.1, 0.2, 0.3
    robot = ls.Robot("tree of 'many' kinds: yes", gravity=(0, 0, 0))
    robot.add_link("tip", ls.RigidBody.sphere(0.01, density=1000.0), parent="arm", placement=shift)
    robot.add_link("arm", rod(), ls.JointRevolute(), parent="base", placement=turn)
    robot.add_link("base", ls.RigidBody.box(0.1, 0.1, 0.1, density=1.0), ls.JointFree())
    robot.add_link("twig", rod(), parent="arm", at=0.25)
    robot.add_frame("camera", "arm", s=0.3, placement=turn)
    robot.add_frame("origin", "base")
    robot.add_tendon("straight", "arm", (0.0, 0.01))
    robot.add_tendon("points", "arm", [(0, 0.01, 0), (0.5, 0, 0.01), (0.8, 0.01, 0), (1, 0, 0)], stop=0.8)
    robot.add_tendon("curved", "arm", lambda s: (0.01 * math.cos(3 * s), 0.01 * math.sin(3 * s)), start=1.0, stop=0.0)
    path = [ls.PathPoint(None, (0, 0, 1)), ls.PathPoint("twig", (0, 0.1, 0), 0.5), ls.PathRod("arm", (0.0, 0.02))]
    robot.add_tendon("routed", path=path)
    robot.add_chamber("bladder", "arm", offset=(0.001, 0), area=(1e-4, 5e-5), stop=0.5, force="volume")
    robot.add_joint_actuator("motor", "base")
    robot.add_wrench_input("thrust", "tip")
    robot.add_wrench_input("jets", "arm", s=0.3, directions=np.eye(6, 2), frame="world", position=(0, 0.1, 0))
    robot.add_wrench_input("jet", "twig", s=0.5, directions=(0, 0, 0, 1, 0, 0))
    robot.add_custom_actuator("general", ConstantMatrix([[1.0, 0.5]] * 13), size=2)
    robot.couple_inputs("pair", {"straight": 1.0, "curved": -0.5})
    robot.add_point_load("weight", "tip", force=(0, 0, -1))
    robot.add_point_load("gust", "arm", s=0.5, moment=ls.Expression(["sin(t)", "0", "0"], "t"), frame="body")
    robot.add_point_load("push", "arm", force=ls.Tabulated([0, 1], np.eye(2, 3), "linear"), position=(0, 0.01, 0))
    assert_same(robot, round_trip(robot, tmp_path))


@pytest.mark.parametrize("name", ["cdm", "hybrid_arm"])
def test_example_files_load_and_survive_a_round_trip(name, tmp_path):
    """Purpose: the shipped robot files are valid and stay themselves."""
    robot = ls.load_robot(EXAMPLES / f"{name}.yaml")
    assert_same(robot, round_trip(robot, tmp_path))


def test_the_cable_driven_manipulator_is_that_of_the_paper():
    """Purpose: cdm.yaml holds the numbers of Mathew 2025 section 4.5 and Table 2."""
    robot = ls.load_robot(EXAMPLES / "cdm.yaml")
    body = robot.links["arm"].body
    assert (body.length, body.basis.size, body.gauss_points) == (0.5, 24, 5)
    assert body.material == ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=1e4)
    for s in ABSCISSAE:
        r, t = 0.03 - 0.015 * s, 0.015
        half, angle = math.sqrt(3) / 2, 4 * math.pi * s
        table = [(0, r), (-half * r, -r / 2), (half * r, -r / 2)]
        table += [(t * math.sin(angle), t * math.cos(angle)), (t * math.sin(angle), -t * math.cos(angle))]
        offsets = [tendon.path[0].offset(s) for tendon in robot.actuators.values()]
        np.testing.assert_allclose(offsets, table, rtol=0, atol=1e-16)


any_name_and_float = given(
    name=st.text(
        st.characters(codec="utf-8", exclude_categories=("C", "Z"), include_characters=" "), min_size=1
    ).filter(str.strip),
    value=st.floats(min_value=1e-300, max_value=1e300),
)


def survives(folder, name, value):
    """Assert that a name and a mass come back bit for bit."""
    robot = ls.Robot(name)
    robot.add_link(name, ls.RigidBody(value))
    again = round_trip(robot, folder)
    assert again.name == name and list(again.links) == [name] and again.links[name].body.mass == value


@settings(max_examples=20, deadline=None)
@any_name_and_float
@example(name="0 # é: {名}", value=1e22)
def test_any_name_and_any_float_survive(tmp_path_factory, name, value):
    """Purpose: names of any letters, such as look like YAML, and floats of every size come back bit for bit."""
    survives(tmp_path_factory.mktemp("any"), name, value)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@any_name_and_float
def test_many_names_and_floats_survive(tmp_path_factory, name, value):
    """Purpose: the same, many times."""
    survives(tmp_path_factory.mktemp("any"), name, value)


@pytest.mark.parametrize(
    "name", ["1e6", "yes", "null", "~", "1", ".5", "a: b", "# a", "- a", "'", '"', "<<", "2024-01-01"]
)
def test_names_that_look_like_something_else_stay_texts(name, tmp_path):
    """Purpose: the writer quotes what YAML would take for a number, a truth value or syntax."""
    robot = ls.Robot()
    robot.add_link(name)
    assert list(round_trip(robot, tmp_path).links) == [name]


def test_shorthands_describe_the_same_robot(tmp_path):
    """Purpose: shapes, rotations by axis, quaternion or matrix, and 1e3 without a dot are read correctly."""
    text = """
links:
- {name: box, body: {type: RigidBody, shape: box, size: [0.1, 0.2, 0.3], density: 1e3}}
- {name: rod, body: {type: RigidBody, shape: cylinder, length: 0.1, radius: 0.02, density: 1e3}}
- {name: ball, body: {type: RigidBody, shape: sphere, radius: 0.02, density: 1e3}}
- {name: a, placement: {position: [1, 2, 3], rotation: {axis: [0, 0, 2], degrees: 90}}}
- {name: b, placement: {position: [1, 2, 3], rotation: {axis: [0, 0, 1], angle: 1.5707963267948966}}}
- {name: c, placement: {position: [1, 2, 3], rotation: {quaternion: [0.7071067811865476, 0, 0, 0.7071067811865476]}}}
- {name: d, placement: {position: [1, 2, 3], rotation: {matrix: [[0, -1, 0], [1, 0, 0], [0, 0, 1]]}}}
- {name: e, placement: [[0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]]}
"""
    links = read(tmp_path, text).links
    assert links["box"].body == ls.RigidBody.box(0.1, 0.2, 0.3, density=1000.0)
    assert links["rod"].body == ls.RigidBody.cylinder(0.1, 0.02, density=1000.0)
    assert links["ball"].body == ls.RigidBody.sphere(0.02, density=1000.0)
    for name in "abcd":
        np.testing.assert_allclose(links[name].placement, links["e"].placement, rtol=0, atol=3e-16)
    assert np.array_equal(links["a"].placement, links["e"].placement)


def test_a_rotation_by_axis_and_angle_turns_by_the_right_hand(tmp_path):
    """Purpose: Rodrigues' formula against the rotation of SciPy for a skew axis, by angle and by quaternion."""
    from scipy.spatial.transform import Rotation

    axis, angle = np.array([1.0, -2.0, 0.5]), 1.1
    expected = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis))
    x, y, z, w = expected.as_quat().tolist()
    text = f"""
links:
- {{name: a, placement: {{rotation: {{axis: {axis.tolist()}, angle: {angle}}}}}}}
- {{name: b, placement: {{rotation: {{quaternion: {[w, x, y, z]}}}}}}}
"""
    for link in read(tmp_path, text).links.values():
        np.testing.assert_allclose(np.array(link.placement)[:3, :3], expected.as_matrix(), rtol=0, atol=1e-15)


def test_one_file_read_twice_gives_the_same_bits(tmp_path):
    """Purpose: tables at Chebyshev points have no randomness (SciPy's own barycentric weights do)."""
    ls.save_robot(one_rod(section=ls.SectionCircle(lambda s: 0.02 + 0.005 * math.sin(9 * s))), tmp_path / "robot.yaml")
    radii = [ls.load_robot(tmp_path / "robot.yaml").links["arm"].body.section.radius for _ in range(5)]
    assert isinstance(radii[0], ls.Tabulated) and len({tuple(r(s).item() for s in ABSCISSAE) for r in radii}) == 1


@pytest.mark.parametrize("radius", [lambda s: 0.01 + abs(s - 0.3), lambda s: 0.01 + 0.001 * (s > 0.5)])
def test_a_function_no_polynomial_reproduces_is_refused(radius, tmp_path):
    """Purpose: saving names the kinked or broken function that a table cannot hold, and what to give instead."""
    expected = r"link 'arm' > body > section: radius: .*cannot be saved to 1e-13.*ls\.Expression or ls\.Tabulated"
    with pytest.raises(ls.ModelError, match=expected):
        ls.save_robot(one_rod(section=ls.SectionCircle(radius)), tmp_path / "robot.yaml")
    assert not list(tmp_path.iterdir())


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    """Purpose: a description beyond the file format (a general section of a general section) is refused by saving."""
    nested = ls.SectionGeneral(damping=1.0, shape=ls.SectionGeneral(stiffness=1.0, shape=ls.SectionCircle(0.01)))
    with pytest.raises(ls.ModelError, match="link 'arm' > body > section > shape"):
        ls.save_robot(one_rod(section=nested), tmp_path / "robot.yaml")
    assert not list(tmp_path.iterdir())


def test_functions_of_time_and_of_the_configuration_are_refused(tmp_path):
    """Purpose: a Python function of t or q has no place in a file; the message names it and the remedy."""
    robot = one_rod()
    robot.add_point_load("push", "arm", force=lambda t: (t, 0, 0))
    with pytest.raises(
        ls.ModelError, match=r"load 'push': force: a Python function of t .* ls\.Expression\(\.\.\., 't'\)"
    ):
        ls.save_robot(robot, tmp_path / "robot.yaml")
    robot = one_rod()
    robot.add_custom_actuator("mine", lambda q: np.ones((3, 1)))
    with pytest.raises(ls.ModelError, match="actuator 'mine': function: a Python function of q"):
        ls.save_robot(robot, tmp_path / "robot.yaml")


def test_a_failed_save_leaves_the_old_file(tmp_path):
    """Purpose: writing is all or nothing; no half file and no leftovers."""
    path = tmp_path / "robot.yaml"
    ls.save_robot(one_rod(), path)
    before = path.read_bytes()
    broken = one_rod()
    broken.add_point_load("push", "arm", force=lambda t: (t, 0, 0))
    with pytest.raises(ls.ModelError):
        ls.save_robot(broken, path)
    with pytest.raises(ls.ModelError, match="radius: must be > 0"):
        ls.save_robot(one_rod(section=ls.SectionCircle(-1.0)), path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_a_failure_while_writing_leaves_nothing_behind(tmp_path, monkeypatch):
    """Purpose: the disk failing half way neither changes the file nor leaves its half."""
    path = tmp_path / "robot.yaml"
    ls.save_robot(one_rod(), path)
    before = path.read_bytes()

    def fail(_):
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        ls.save_robot(one_rod(length=0.7), path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_files_are_readable_to_people(tmp_path):
    """Purpose: short lists stand on one line, defaults are left out, numbers keep their form."""
    ls.save_robot(one_rod(section=ls.SectionCircle((0.03, 0.015))), tmp_path / "robot.yaml")
    text = (tmp_path / "robot.yaml").read_text(encoding="utf-8")
    assert "section: {type: SectionCircle, radius: [0.03, 0.015]}" in text
    assert "joint" not in text and "gauss_points" not in text and "placement" not in text and len(text) < 400
