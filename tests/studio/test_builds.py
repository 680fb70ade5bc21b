"""Robots that a user builds from an empty page by mouse and keyboard, and runs: the linkage of SoRoSim's manual, a soft
arm, a gripper, a four-bar.

Each is compared with the same robot of a script. `pytest --basetemp=FOLDER` keeps a picture of each step.
"""

from __future__ import annotations

import numpy as np
import pytest
from studio.driving import started
from viewing.browser import NAMES, found

import lissom as ls

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(found() is None, reason=f"no browser: none of {', '.join(NAMES)} is installed"),
]
MATERIAL = ls.Material(young=1e6, poisson=0.5, density=1000, damping_time=0.02)  # with which new rods begin


@pytest.fixture
def page(tmp_path):
    """A studio of an empty file, its user, and the folder."""
    served, user = started(tmp_path)
    yield served, user, tmp_path
    user.close()
    said = served.stop()
    assert "ended" in said and "Traceback" not in said, said
    assert not [one for one in user.said if "exceptionDetails" in one]


def turned(position, axis, degrees):
    """Pose by a position and a turn about a coordinate axis."""
    from scipy.spatial.transform import Rotation

    g = np.eye(4)
    g[:3, :3] = Rotation.from_rotvec(np.radians(degrees) * np.array(axis)).as_matrix()
    g[:3, 3] = position
    return g


def rod(user, k, length, radius, order):
    """Fill the form of a division of the manual's linkage."""
    body = f"links-{k}-body-"
    user.fill(body + "length", length)
    user.fill(body + "section-radius", radius)
    user.choose(body + "basis-class", "BasisMonomial")
    for strain in ("torsion", "bending_y", "bending_z"):
        user.fill(body + f"basis-{strain}", order)
    user.fill(body + "material-viscosity", "1e4")
    user.fill(body + "material-damping_time", "")


def cable(user, k, link, texts):
    """Fill the form of an item of the cable's path."""
    item = f"actuators-0-path-{k}-"
    user.choose(item + "link", link)
    user.choose(item + "offset-way", "expression")
    for j, text in enumerate(texts):
        user.fill(item + f"offset-{j}", text)


def test_the_linkage_of_the_manual_from_an_empty_page(page):
    """From an empty robot to SoRoSim's section 4 by mouse and keyboard: two divisions, a driven box, a load and a cable
    that winds through both. Its equilibrium at 200 N is that of `examples/sorosim_manual.py`, and its motion runs."""
    served, user, folder = page
    user.says("take a Template above")
    user.see(folder, "0 empty page")
    user.part("robot")
    user.fill("name", "manual linkage")
    user.fill("gravity", "0, -9.81, 0")
    user.add("link")
    rod(user, 0, "0.3", "0.03", "1")
    user.fill("links-0-body-reference_strain", "0, 0, 1, 1, 0, 0")
    user.rename("division 1")
    user.see(folder, "1 first division")
    user.part("division 1")
    user.add("link")
    rod(user, 1, "0.2", "0.03, 0.02", "0")
    user.fill("links-1-body-reference_strain", "0, 0, 0, 1, 0, 0")
    user.choose("links-1-body-reference_strain-way", "expression")
    user.fill("links-1-body-reference_strain-1", "0.5*s")
    user.rename("division 2")
    user.see(folder, "2 second division")
    user.part("division 2")
    user.add("link")
    user.choose("links-2-body-class", "RigidBody box")
    user.fill("links-2-body-size", "0.2, 0.04, 0.04")
    user.open_field("joint")
    user.choose("links-2-joint-class", "JointRevolute")
    user.fill("links-2-joint-axis", "0, 1, 0")
    user.rename("link 2")
    user.says("10 coordinates", 300)
    user.see(folder, "3 box on a hinge")
    user.add("load")
    user.choose("loads-0-link", "division 1")
    user.fill("loads-0-force", "0, 5, 0")
    user.choose("loads-0-frame", "body")
    user.see(folder, "4 load")
    user.add("actuator", "Tendon")
    user.choose("actuators-0-link", "none")
    user.fill("actuators-0-offset", "")
    user.open_field("path")
    for _ in range(2):
        user.press("actuators-0-path-add")
        user.item("PathRod")
    turn = "2*pi*({})/0.25"
    for k, (link, x) in enumerate((("division 1", "0.3*s"), ("division 2", "0.3 + 0.2*s"))):
        cable(user, k, link, [f"0.02*cos({turn.format(x)})", f"0.02*sin({turn.format(x)})"])
    user.rename("cable")
    user.see(folder, "5 cable")
    user.add("motion")
    user.choose("motions-0-link", "link 2")
    user.choose("motions-0-position-way", "number, or base, tip")
    user.fill("motions-0-position", "-1.5707963267948966")
    user.says("10 coordinates, 1 input", 300)
    user.see(folder, "6 driven hinge")
    model = ls.load_robot(served.path).build()
    np.testing.assert_allclose(
        ls.solve_statics(model, [200.0]).q, ls.solve_statics(_manual(), [200.0]).q, rtol=0, atol=1e-7
    )
    user.click_text("Run")
    user.fill("input-cable", "200")
    user.press("statics")
    user.says("statics 1: stable equilibrium", 300)
    user.see(folder, "7 statics")
    user.fill("input-cable", "200*minimum(t, 1)")
    user.press("motion")
    user.says("motion 1: motion of 2 s", 300)
    user.see(folder, "8 motion")
    user.press("save-motion 1")
    user.item("film .mp4")
    user.says("wrote motion 1.mp4", 300)
    user.see(folder, "9 film")
    film = folder / "robot results" / "motion 1.mp4"
    assert film.stat().st_size > 10_000 and b"ftyp" in film.read_bytes()[:16]


def test_a_three_segment_arm_with_nine_tendons(page):
    """Three hanging segments on each other; three tendons end at each. Its equilibrium is that of the script, and a
    motion and the modes are computed."""
    served, user, folder = page
    lengths, radii, offsets = (
        (0.15, 0.12, 0.1),
        (0.018, 0.015, 0.012),
        ("0.009, 0", "-0.0045, 0.0078", "-0.0045, -0.0078"),
    )
    for k in range(3):
        user.part("robot" if k == 0 else f"segment {k}")
        user.add("link")
        user.fill(f"links-{k}-body-length", str(lengths[k]))
        user.fill(f"links-{k}-body-section-radius", str(radii[k]))
        user.rename(f"segment {k + 1}")
        if k == 0:
            user.fill("links-0-placement-axis", "0, 1, 0")
            user.fill("links-0-placement-degrees", "90")
    user.says("30 coordinates, 0 inputs", 300)
    user.see(folder, "1 segments")
    for k in range(3):
        first = 3 * k
        user.add("actuator", "Tendon")
        user.choose(f"actuators-{first}-link", "none")
        user.fill(f"actuators-{first}-offset", "")
        user.open_field("path")
        for j in range(k + 1):
            user.press(f"actuators-{first}-path-add")
            user.item("PathRod")
            user.choose(f"actuators-{first}-path-{j}-link", f"segment {j + 1}")
            user.fill(f"actuators-{first}-path-{j}-offset", offsets[0])
        user.rename(f"t{k + 1}a")
        for n, letter in ((1, "b"), (2, "c")):
            user.press("duplicate")
            for j in range(k + 1):
                user.fill(f"actuators-{first + n}-path-{j}-offset", offsets[n])
            user.rename(f"t{k + 1}{letter}")
        user.see(folder, f"2 tendons of segment {k + 1}")
    user.says("30 coordinates, 9 inputs", 300)
    robot = ls.Robot("arm")
    for k in range(3):
        body = ls.Rod(lengths[k], ls.SectionCircle(radii[k]), ls.BasisLegendre(torsion=1, bending_y=3, bending_z=3),
                      MATERIAL)  # fmt: skip
        robot.add_link(f"segment {k + 1}", body, parent=f"segment {k}" if k else None,
                       placement=None if k else turned([0, 0, 0], [0, 1, 0], 90.0))  # fmt: skip
    for k in range(3):
        for n, letter in enumerate("abc"):
            offset = [float(x) for x in offsets[n].split(",")]
            robot.add_tendon(f"t{k + 1}{letter}", path=[ls.PathRod(f"segment {j + 1}", offset) for j in range(k + 1)])
    model, expected = ls.load_robot(served.path).build(), robot.build()
    assert model.inputs.names == expected.inputs.names
    u = 0.3 * np.arange(9)
    np.testing.assert_allclose(ls.solve_statics(model, u).q, ls.solve_statics(expected, u).q, rtol=0, atol=1e-8)
    user.click_text("Run")
    user.fill("input-t3a", "2*minimum(t, 1)")
    user.press("motion")
    user.says("motion 1: motion of 2 s", 300)
    user.see(folder, "3 motion")
    user.press("modes")
    user.says("modes 1: ", 300)
    user.see(folder, "4 modes")


def test_a_gripper_that_holds_a_ball(page):
    """A palm with two fingers, a ball on a soft mount, one input that closes both fingers, contacts with friction: the
    fingers touch the ball as those of the script do."""
    served, user, folder = page
    user.add("link")
    user.choose("links-0-body-class", "RigidBody box")
    user.fill("links-0-body-size", "0.11, 0.04, 0.02")
    user.fill("links-0-placement-position", "0, 0, 0.14")
    user.rename("palm")
    for k, (name, x) in enumerate((("left", -0.045), ("right", 0.045)), start=1):
        user.part("palm")
        user.add("link")
        body = f"links-{k}-body-"
        user.fill(f"links-{k}-placement-position", f"{x}, 0, -0.01")
        user.fill(f"links-{k}-placement-axis", "0, 1, 0")
        user.fill(f"links-{k}-placement-degrees", "90")
        user.fill(body + "length", "0.12")
        user.choose(body + "section-class", "SectionRectangle")
        user.fill(body + "section-width_y", "0.02")
        user.fill(body + "section-width_z", "0.014, 0.008")
        for strain in ("torsion", "bending_z"):
            user.fill(body + f"basis-{strain}", "")
        user.rename(name)
    user.see(folder, "1 fingers")
    user.part("robot")
    user.add("link")
    user.choose("links-3-body-class", "RigidBody sphere")
    user.fill("links-3-body-radius", "0.022")
    user.fill("links-3-body-density", "300")
    user.fill("links-3-placement-position", "0, 0, 0.045")
    user.open_field("joint")
    user.choose("links-3-joint-class", "JointFree")
    user.fill("links-3-joint-stiffness", "20")
    user.fill("links-3-joint-damping", "0.2")
    user.rename("ball")
    for k, (name, z) in enumerate((("left", "0.004"), ("right", "-0.004"))):
        user.add("actuator", "Tendon")
        user.choose(f"actuators-{k}-link", name)
        user.fill(f"actuators-{k}-offset", f"0, {z}")
        user.rename(f"pull {name}")
    user.add("input")
    user.choose("couplings-0-gains-add", "pull left")
    user.rename("close")
    user.add("contact")
    user.tick("contacts-0-links", "left", "right", "ball")
    user.choose("contacts-0-shape-class", "ShapeSphere")
    user.fill("contacts-0-shape-radius", "0.022")
    user.fill("contacts-0-placement-position", "")
    user.open_more()
    user.choose("contacts-0-on", "ball")
    user.fill("contacts-0-friction", "0.8")
    user.rename("grasp")
    user.says("1 input;", 900)
    user.see(folder, "2 gripper")
    robot = ls.Robot("gripper")
    robot.add_link(
        "palm", ls.RigidBody.box(0.11, 0.04, 0.02, density=1000), placement=turned([0, 0, 0.14], [0, 1, 0], 0.0)
    )
    rod = ls.Rod(0.12, ls.SectionRectangle(0.02, (0.014, 0.008)), ls.BasisLegendre(bending_y=3), MATERIAL)
    for name, x in (("left", -0.045), ("right", 0.045)):
        robot.add_link(name, rod, parent="palm", placement=turned([x, 0, -0.01], [0, 1, 0], 90.0))
    robot.add_link("ball", ls.RigidBody.sphere(0.022, density=300), ls.JointFree(stiffness=20, damping=0.2),
                   placement=turned([0, 0, 0.045], [0, 1, 0], 0.0))  # fmt: skip
    robot.add_tendon("pull left", "left", (0, 0.004))
    robot.add_tendon("pull right", "right", (0, -0.004))
    robot.couple_inputs("close", {"pull right": 1.0, "pull left": 1.0})
    robot.add_contact("grasp", ["left", "right"], ls.ShapeSphere(0.022), on="ball", friction=0.8)
    model, expected = ls.load_robot(served.path).build(), robot.build()
    found, wanted = (ls.solve_statics(one, [3.0]) for one in (model, expected))
    np.testing.assert_allclose(found.q, wanted.q, rtol=0, atol=1e-7)
    user.click_text("Run")
    user.fill("input-close", "6*minimum(2*t, 1)")
    user.press("motion")
    user.says("motion 1: motion of 2 s", 300)
    user.see(folder, "3 grasp")
    assert ls.contact_forces(expected, ls.simulate(expected, 1.0, u=[6.0]).q[-1]).force.any()


def test_a_four_bar_with_a_flexible_link(page):
    """A crank, a flexible coupler and a rocker, closed by a pin: its loop is closed, its equilibrium under a torque is
    that of the script, and its motion runs."""
    served, user, folder = page
    for k, (name, size) in enumerate(
        (("crank", "0.1, 0.012, 0.012"), ("coupler", ""), ("rocker", "0.16, 0.012, 0.012"))
    ):
        user.part("robot" if name != "coupler" else "crank")
        user.add("link")
        if size:
            user.choose(f"links-{k}-body-class", "RigidBody box")
            user.fill(f"links-{k}-body-size", size)
            user.fill(f"links-{k}-placement-axis", "0, 1, 0")
            user.fill(f"links-{k}-placement-degrees", "-90")
        else:
            user.fill("links-1-body-length", "0.3")
            user.choose("links-1-body-section-class", "SectionRectangle")
            user.fill("links-1-body-section-width_y", "0.02")
            user.fill("links-1-body-section-width_z", "0.003")
            user.fill("links-1-body-material-young", "2e9")
            for strain in ("torsion", "bending_z"):
                user.fill(f"links-1-body-basis-{strain}", "")
            user.fill("links-1-placement-axis", "0, 1, 0")
            user.fill("links-1-placement-degrees", "90")
        position = {"crank": "", "coupler": "0.05, 0, 0", "rocker": "0.3, 0, 0"}[name]
        if position:
            user.fill(f"links-{k}-placement-position", position)
        user.open_field("joint")
        user.choose(f"links-{k}-joint-class", "JointRevolute")
        user.fill(f"links-{k}-joint-axis", "0, 1, 0")
        user.fill(f"links-{k}-joint-damping", "0.01")
        if name == "crank":
            user.fill("links-0-joint-stiffness", "2")
        user.rename(name)
    user.see(folder, "1 links")
    user.add("loop")
    user.choose("loops-0-link_a", "coupler")
    user.choose("loops-0-link_b", "rocker")
    user.fill("loops-0-placement_b-position", "0.08, 0, 0")
    user.open_field("joint")
    user.choose("loops-0-joint-class", "JointRevolute")
    user.fill("loops-0-joint-axis", "0, 1, 0")
    user.rename("pin")
    user.add("actuator", "JointActuator")
    user.choose("actuators-0-link", "crank")
    user.rename("motor")
    user.says("7 coordinates, 1 input", 300)
    user.see(folder, "2 linkage")
    robot, pin, up = ls.Robot("four-bar"), ls.JointRevolute((0, 1, 0), damping=0.01), [0, 1, 0]
    spring = ls.JointRevolute((0, 1, 0), stiffness=2, damping=0.01)
    crank = ls.RigidBody.box(0.1, 0.012, 0.012, density=1000)
    robot.add_link("crank", crank, spring, placement=turned([0, 0, 0], up, -90.0))
    strip = ls.SectionRectangle(0.02, 0.003)
    material = ls.Material(young=2e9, poisson=0.5, density=1000, damping_time=0.02)
    robot.add_link("coupler", ls.Rod(0.3, strip, ls.BasisLegendre(bending_y=3), material), pin, parent="crank",
                   placement=turned([0.05, 0, 0], up, 90.0))  # fmt: skip
    robot.add_link(
        "rocker", ls.RigidBody.box(0.16, 0.012, 0.012, density=1000), pin, placement=turned([0.3, 0, 0], up, -90.0)
    )
    robot.add_loop(
        "pin", "coupler", "rocker", placement_b=turned([0.08, 0, 0], up, 0.0), joint=ls.JointRevolute((0, 1, 0))
    )
    robot.add_joint_actuator("motor", "crank")
    model, expected = ls.load_robot(served.path).build(), robot.build()
    with pytest.warns(ls.RedundancyWarning, match="2 are independent"):  # a planar mechanism
        found, wanted = (ls.solve_statics(one, [0.3]) for one in (model, expected))
    np.testing.assert_allclose(found.q, wanted.q, rtol=0, atol=1e-7)
    user.click_text("Run")
    user.fill("input-motor", "0.5*sin(2*pi*t)")
    user.press("motion")
    user.says("motion 1: motion of 2 s", 300)
    user.see(folder, "3 motion")


def _manual():
    """The model of the example."""
    import importlib.util
    from pathlib import Path

    file = Path(__file__).parents[2] / "examples" / "sorosim_manual.py"
    spec = importlib.util.spec_from_file_location("sorosim_manual", file)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example.robot().build()
