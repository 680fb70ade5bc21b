"""Commands about robot files: new, check and info."""

from __future__ import annotations

import re
import warnings
from io import StringIO

import numpy as np
import pytest
from cli.small_robot import EXAMPLES, SMALL, write

import lissom as ls
from lissom.cli.main import main


def test_new_asks_and_writes_a_file_with_comments(tmp_path, capsys, monkeypatch):
    """Invalid answers are asked for again. The file contains the answers, loads without a warning, and is not
    overwritten."""
    path = tmp_path / "mine.yaml"
    monkeypatch.setattr("sys.stdin", StringIO("finger\nlong\n-1\n0.2\n0.01\n0.005\n\n\nhinge\n4\n0.05\n"))
    assert main(["new", str(path)]) == 0
    told = capsys.readouterr().out
    assert "  must be a number" in told and "  must be > 0 (got -1)" in told and f"lissom check {path}" in told
    robot = ls.load_robot(path)
    rod = robot.links["rod"]
    assert (robot.name, rod.body.length, rod.body.section.radius) == ("finger", 0.2, [0.01, 0.005])
    assert type(rod.joint) is ls.JointRevolute and list(robot.actuators) == ["t1", "t2", "t3", "t4", "motor"]
    np.testing.assert_allclose(robot.actuators["t2"].path[0].offset(1.0), [0.004, 0.0], rtol=0, atol=1e-17)
    assert robot.build().links.mass[1] == 0.05 and path.read_text().count("#") > 8
    assert main(["new", str(path)]) == 2 and "--force" in capsys.readouterr().err


def test_new_takes_its_defaults_where_nothing_is_answered(tmp_path, capsys, monkeypatch):
    """The end of the input and --defaults give the same file, which `check` accepts without warnings."""
    monkeypatch.setattr("sys.stdin", StringIO(""))
    paths = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    assert main(["new", str(paths[0])]) == 0 and main(["new", str(paths[1]), "--defaults"]) == 0
    assert paths[0].read_text() == paths[1].read_text()
    assert main(["check", str(paths[0])]) == 0 and not capsys.readouterr().err


def test_check_tells_all_mistakes_and_returns_2(small, tmp_path, capsys):
    """Each mistake is a line with the file and its line. A right file is OK."""
    wrong = write(tmp_path / "wrong.yaml", SMALL.replace("length: 0.3", "length: '0.3'").replace("young", "yuong"))
    assert main(["check", str(small), str(wrong)]) == 2
    told = capsys.readouterr()
    assert told.out.splitlines()[0].startswith(f"{small}: OK; Robot('small'")
    assert told.out.splitlines()[1] == f"{wrong}: 2 errors"
    lines = told.err.splitlines()
    assert lines[0].startswith(f"{wrong}, line 6: link 'arm' > body: length") and lines[0].endswith("remove the quotes")
    assert lines[1].startswith(f"{wrong}, line 8: ") and lines[1].endswith("did you mean 'young'?")


def test_check_warns_of_slips_of_units(tmp_path, capsys):
    """A file with implausible numbers returns 0, with the reason and the line on standard error."""
    assert main(["check", str(write(tmp_path / "r.yaml", SMALL.replace("1e6", "1")))]) == 0
    told = capsys.readouterr()
    assert "line 8: warning: link 'arm' > body > material: young is 1 Pa" in told.err and "OK, 1 warning;" in told.out


def test_check_strict_fails_at_warnings(small, tmp_path, capsys):
    """With --strict the status is 2 if there are warnings, else 0."""
    doubtful = write(tmp_path / "r.yaml", SMALL.replace("1e6", "1"))
    assert main(["check", "--strict", str(small)]) == 0
    assert main(["check", "--strict", str(small), str(doubtful)]) == 2
    assert "OK, 1 warning;" in capsys.readouterr().out


def test_check_says_how_to_hang_a_link_on_the_world(tmp_path, capsys):
    """The parent `world` is refused with a cure, and no unrelated link is suggested."""
    for name, cure in (("world", "leave the parent out"), ("armm", "(got 'armm')")):
        path = write(tmp_path / "r.yaml", SMALL.replace("- name: arm", f"- name: arm\n    parent: {name}"))
        assert main(["check", str(path)]) == 2
        told = capsys.readouterr().err
        assert "link 'arm': parent: must be one of the links" in told and cure in told and "did you mean" not in told


def test_check_shows_how_exact_a_robot_is(small, capsys):
    """--accuracy prints a line for each link at rest, by points and by basis, and the cure."""
    assert main(["check", str(small), "--accuracy"]) == 0
    told = capsys.readouterr().out
    assert "at rest off by" in told and "m by its points" in told and "more exact: " in told


def test_info_lists_links_inputs_and_totals(capsys):
    """`info` lists every link with its joint, body, size and mass, every input, and the sizes of the model."""
    assert main(["info", str(EXAMPLES / "hybrid_arm.yaml")]) == 0
    text = capsys.readouterr().out
    for part in (
        "shoulder",
        "JointUniversal",
        "arm at s=0.5",
        "RigidBody",
        "3.888",
        "motor[1]",
        "0.333 x finger_right",
    ):
        assert part in text
    assert "nq 20, nv 20, nu 5" in text and "frame 'camera' on 'arm' at s=0.8" in text


def test_info_says_lengths_sections_materials_and_units(capsys):
    """`info` prints the numbers of each body with units, and the unit of each input."""
    assert main(["info", str(EXAMPLES / "hybrid_arm.yaml")]) == 0
    text = capsys.readouterr().out
    for part in ("Rod, length", "young", "Pa", "kg/m³", "Section", "[N·m]", " m, "):
        assert part in text, part


def test_info_says_what_the_robot_touches_and_what_it_swims_in(tmp_path, capsys):
    """`info` prints a line for each contact with its links, and one for the fluid with the links in it."""
    ball = "  - {name: ball, body: {type: RigidBody, shape: sphere, radius: 0.1, density: 1e3}}\n"
    world = """\
contacts:
  - {name: floor, links: [arm, ball], shape: {type: ShapePlane}, stiffness: 1e5, friction: 0.5}
  - {name: lid, links: arm, shape: {type: ShapeSphere, radius: 0.1}, on: ball, stiffness: 2e3, exponent: 2}
  - {name: push, links: arm, others: ball, stiffness: 1e5}
fluid: {density: 1000, current: [0.1, 0, 0], links: {ball: null}}
"""
    text = SMALL.replace("actuators:", f"{ball}actuators:") + world
    assert main(["info", str(write(tmp_path / "r.yaml", text))]) == 0
    lines = capsys.readouterr().out.splitlines()
    law, balls = "stiffness 100000, exponent 1.5", "by 8 balls of 'arm'"
    assert lines[-5:-1] == [
        f"contact 'floor' of 'arm', 'ball' with ShapePlane on the world: {law}, friction 0.5, {balls}, 'ball'",
        f"contact 'lid' of 'arm' with ShapeSphere on 'ball': stiffness 2000, exponent 2, friction 0, {balls}",
        f"contact 'push' of 'arm' with links 'ball': {law}, friction 0, {balls}",
        "fluid of 1000 kg/m³, with a current, felt by 'arm'",
    ]


def test_info_says_which_contact_laws_are_chosen(tmp_path, capsys):
    """`info` prints the modulus of both sides and the numbers that follow from it, for each law of a contact."""
    text = """\
format: 1
links:
  - name: ball
    joint: {type: JointFree}
    body: {type: RigidBody, shape: sphere, radius: 0.03, material: {young: 2e6, poisson: 0.45, density: 900}}
contacts:
  - {name: floor, links: ball, shape: {type: ShapePlane}, friction: 0.4, restitution: 0.6}
"""
    assert main(["info", str(write(tmp_path / "r.yaml", text))]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("contact 'floor'"))
    E = 2e6 / (1 - 0.45**2)
    assert f"chosen from effective modulus {E:.4g} Pa: stiffness {4 / 3 * E * 0.03**0.5:.4g} N/m^1.5" in line
    assert "exponent 1.5, friction 0.4, restitution 0.6 above 0." in line and "stick_stiffness " in line


def test_info_says_what_deformable_bodies_are(tmp_path, capsys):
    """`info` prints kinematics, number of coordinates, domain, volume and mass of each deformable body."""
    pytest.importorskip("jax")
    body = "{type: DeformableBody, density: 1e3, domain: {type: DomainBox, length: 0.1, width_y: 0.02, width_z: 0.01}, "
    body += "kinematics: {type: KinematicsStrain, length: 0.1, basis: {type: BasisMonomial, bending_z: 1}}, "
    body += "material: {type: HyperelasticUniaxial, young: 1e5, poisson: 0.3}, tip: tip}"
    path = tmp_path / "soft.yaml"
    path.write_text("links:\n  - {name: finger, body: " + body + "}\n", encoding="utf-8")
    assert main(["info", str(path)]) == 0
    said = capsys.readouterr().out
    assert "deformable body 'finger': KinematicsStrain, n 2, DomainBox of 2e-05 m³, 0.02 kg" in said
    assert re.search(r"0\.02 kg, (\d+) points \(\d+ x \d+ x \d+ points, \d+ steps chosen, off by [\d.]+e-", said)


def test_info_says_nothing_of_a_rule_that_is_meant(capsys):
    """A robot with explicit integration points causes no warning."""
    assert main(["info", str(EXAMPLES / "cdm.yaml")]) == 0
    captured = capsys.readouterr()
    assert "nq 24, nv 24, nu 5" in captured.out and "mass 0.824668 kg" in captured.out
    assert captured.err == ""


def test_info_warns_on_stderr_about_too_few_gauss_points(tmp_path, capsys):
    """An AccuracyWarning is one line with the error and the number of points that is enough."""
    text = (EXAMPLES / "cdm.yaml").read_text().replace("      interval_points: 2\n", "")
    assert main(["info", str(write(tmp_path / "cdm.yaml", text))]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("warning: link 'arm' > body: 5 Gauss points give the stiffness to ")
    assert lines[0].endswith("; by default it takes 10")


def test_info_says_which_number_looks_like_a_slip_of_units(tmp_path, capsys):
    """A PlausibilityWarning is one line with the entity, the value and the probable cause."""
    text = (EXAMPLES / "cdm.yaml").read_text().replace("young: 1.0e6", "young: 1.0")
    assert main(["info", str(write(tmp_path / "cdm.yaml", text))]) == 0
    expected = "warning: link 'arm' > body > material: young is 1 Pa, like no material (1 MPa is 1e6 and 1 GPa is 1e9)"
    assert capsys.readouterr().err.splitlines() == [expected]


def test_names_with_brackets_are_printed_as_they_are(tmp_path, capsys):
    """Names of links are not interpreted as markup."""
    path = write(tmp_path / "r.yaml", "links: [{name: '[red]x[/red] :smile:', body: {type: RigidBody, mass: 1}}]")
    assert main(["info", str(path)]) == 0
    assert "[red]x[/red] :smile:" in capsys.readouterr().out


def test_convert_writes_the_format_of_the_ending(tmp_path, capsys):
    """`convert` writes URDF and MJCF with the report, keeps existing files, and refuses other endings."""
    small = write(tmp_path / "robot.yaml", SMALL)
    for name, load in (("a.urdf", ls.load_urdf), ("a.xml", ls.load_mjcf)):
        out = tmp_path / name
        assert main(["convert", str(small), "--joints", "3", "--out", str(out)]) == 0
        told = capsys.readouterr().out
        assert told.startswith(f"wrote {out}\nrod ") and ": 3 elements of " in told and "its tip is off by" in told
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ls.LeftOutWarning)
            assert load(out).build().nv > 3
        assert main(["convert", str(small), "--out", str(out)]) == 2 and "--force" in capsys.readouterr().err
    assert main(["convert", str(small), "--out", str(tmp_path / "a.step")]) == 2
    assert "--out: must end in one of .urdf, .xml, .mjcf, .usd, .usda, .usdc" in capsys.readouterr().err


_URDF = """<robot name="pendulum"><link name="base"/><joint name="turn" type="continuous">
<parent link="base"/><child link="bob"/><axis xyz="0 1 0"/></joint>
<link name="bob"><inertial><origin xyz="0 0 -0.2"/><mass value="0.5"/>
<inertia ixx="1e-3" ixy="0" ixz="0" iyy="1e-3" iyz="0" izz="1e-3"/></inertial></link></robot>"""
_MJCF = """<mujoco model="pendulum"><worldbody><body name="bob"><joint name="turn" axis="0 1 0"/>
<inertial pos="0 0 -0.2" mass="0.5" diaginertia="1e-3 1e-3 1e-3"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(("name", "text"), [("a.urdf", _URDF), ("a.xml", _URDF), ("b.xml", _MJCF), ("b.mjcf", _MJCF)])
def test_commands_read_files_of_other_tools(tmp_path, capsys, name, text):
    """URDF and MJCF files are robot files for commands: their contents, a motion, the same robot for other tools."""
    path = tmp_path / name
    path.write_text(text)
    assert main(["info", str(path)]) == 0 and "0.5" in capsys.readouterr().out
    assert main(["simulate", str(path), "--duration", "0.01", "--out", str(tmp_path / "motion")]) == 0
    assert main(["convert", str(path), "--out", str(tmp_path / "other.urdf")]) == 0
    assert ls.load_urdf(tmp_path / "other.urdf").build().nv == 1
