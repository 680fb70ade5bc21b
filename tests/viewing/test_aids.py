"""Aids of the viewer: surfaces cut open, measured distances and angles, labels, stresses, files that move."""

import json
import struct
from types import SimpleNamespace

import numpy as np
import pytest

import lissom as ls
from lissom.viewing.aids import WORLD, Cut, Measure, force_text, length_text
from lissom.viewing.animated_gltf import animated_gltf
from lissom.viewing.colors import ColorScale, readable, state_values
from lissom.viewing.geometry import robot_geometry
from lissom.viewing.panel import measured_text


@pytest.fixture(scope="module")
def model():
    """A rod of constant curvature, one coordinate."""
    robot = ls.Robot("arm", gravity=(0, 0, 0))
    material = ls.Material(young=2e6, density=1000, viscosity=1e3)
    robot.add_link("arm", ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=0), material))
    return robot.build()


def area(vertices, triangles):
    """Sum of the areas of triangles."""
    a, b, c = vertices[triangles].transpose(1, 0, 2)
    return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("at", [-0.7, 0.0, 0.31])
def test_a_cut_keeps_one_side(axis, at):
    """Both sides of a random surface add up to its area, nothing is left beyond the plane, and a plane outside cuts
    nothing."""
    rng = np.random.default_rng(1)
    vertices, triangles = rng.uniform(-1.0, 1.0, (40, 3)), rng.integers(0, 40, (60, 3))
    sides = [Cut(axis, sign, at).applied(vertices, triangles) for sign in (1.0, -1.0)]
    assert sum(area(*side) for side in sides) == pytest.approx(area(vertices, triangles), rel=1e-12)
    assert sides[0][0][:, axis].max() <= at + 1e-12 and sides[1][0][:, axis].min() >= at - 1e-12
    assert area(*Cut(axis, 1.0, 2.0).applied(vertices, triangles)) == pytest.approx(area(vertices, triangles))
    assert len(Cut(axis, 1.0, -2.0).applied(vertices, triangles)[1]) == 0
    assert Cut(axis, -1.0, at).keeps(vertices).sum() == (vertices[:, axis] >= at).sum()


def test_distances_and_angles_are_those_of_an_arc(model):
    """An arc of curvature κ: chord, angle of its tangents, and the turn of its frames."""
    kappa, length = 4.0, 0.3
    measure = Measure("arm", WORLD, 1.0)
    distance, away, between, turn = measure.values(model, np.array([kappa]))
    angle = kappa * length
    assert distance == pytest.approx(2.0 / kappa * np.sin(angle / 2.0), abs=1e-9)
    assert np.linalg.norm(away) == pytest.approx(distance) and between == pytest.approx(angle, abs=1e-9)
    assert turn == pytest.approx(angle, abs=1e-9)
    half = Measure("arm", "arm", 0.5, 1.0).values(model, np.array([kappa]))
    assert half[0] == pytest.approx(2.0 / kappa * np.sin(angle / 4.0), abs=1e-9)
    told = measured_text(measure, model, np.array([kappa]))
    assert f"{1e3 * distance:.2f} mm" in told and f"{np.degrees(angle):.2f}°" in told
    assert "Choose two places" in measured_text(None, model, np.array([kappa]))


def test_stress_is_the_modulus_times_the_strain(model):
    """The largest stress of a bent rod is E κ r; its bar of colours has a readable unit."""
    kappa, geometry = 4.0, robot_geometry(model)
    values = state_values(geometry, "stress", np.array([kappa]), np.zeros(1), np.zeros(0), 0.0)
    assert np.nanmax(values) == pytest.approx(2e6 * kappa * 0.01, rel=1e-3)
    scale = ColorScale("stress")
    scale.include(values)
    assert scale.label == ("stress [kPa]", 1e-3)
    assert [readable(x, "N") for x in (5e-3, 0.5, 2e4)] == [(1e3, "mN"), (1.0, "N"), (1e-3, "kN")]
    assert readable(3.0, "rad/m") == (1.0, "rad/m")
    assert [force_text(x) for x in (0.0032, 3.21, 1500.0)] == ["3.2 mN", "3.21 N", "1.5 kN"]
    assert [length_text(x) for x in (0.05, 0.25)] == ["50 mm", "0.25 m"]


def read_gltf(content):
    """The JSON part and the binary part of a file."""
    magic, version, size = struct.unpack_from("<4sII", content)
    assert (magic, version, size) == (b"glTF", 2, len(content))
    (length,) = struct.unpack_from("<I", content, 12)
    return json.loads(content[20 : 20 + length]), content[28 + length :]


def array_of(scene, binary, k):
    """The numbers of an accessor."""
    accessor = scene["accessors"][k]
    start = scene["bufferViews"][accessor["bufferView"]]["byteOffset"]
    wide = {"SCALAR": 1, "VEC3": 3}[accessor["type"]]
    found = np.frombuffer(binary, np.float32, accessor["count"] * wide, start)
    return found.reshape(-1, wide) if wide > 1 else found


def test_an_animation_holds_each_shape_at_its_time():
    """Rest plus the weighted targets of the file is each shape at its time; what stays has no targets."""
    rng = np.random.default_rng(2)
    rest, faces = rng.normal(size=(5, 3)), np.array([[0, 1, 2], [2, 3, 4]])
    shapes, times = [rest, *(rest + rng.normal(size=(5, 3)) for _ in range(3))], np.array([0.0, 0.4, 1.0])
    color = np.full((5, 4), 255, np.uint8)
    surfaces = [("moves", shapes, faces, color), ("stays", [rest] * 4, faces, color)]
    scene, binary = read_gltf(animated_gltf(surfaces, times))
    moving, still = (mesh["primitives"][0] for mesh in scene["meshes"])
    assert "targets" not in still and len(scene["animations"][0]["channels"]) == 1
    sampler = scene["animations"][0]["samplers"][0]
    np.testing.assert_allclose(array_of(scene, binary, sampler["input"]), times, atol=1e-6)
    weights = array_of(scene, binary, sampler["output"]).reshape(3, 3)
    base = array_of(scene, binary, moving["attributes"]["POSITION"])
    targets = np.array([array_of(scene, binary, one["POSITION"]) for one in moving["targets"]])
    for k in range(3):
        np.testing.assert_allclose(base + np.einsum("t,tvx->vx", weights[k], targets), shapes[k + 1], atol=1e-5)
    scene, _ = read_gltf(animated_gltf([("stays", [rest], faces, color)], np.zeros(0)))
    assert "animations" not in scene


def test_the_scene_shows_the_aids(model):
    """In a viewer: the axes can be hidden, a cut opens the bodies and closes again, strobes stand at the recorded
    shapes, a named state is taken, and another robot keeps the measure."""
    from lissom.viewing.viewer import Viewer

    robot = ls.Robot("arm", gravity=(0, 0, 0))
    robot.add_link("arm", model.description.links["arm"].body)
    robot.add_tendon("pull", "arm", (0, 0.005))
    hinge = ls.JointRevolute((0, 1, 0), stiffness=0.1, damping=0.01)
    robot.add_link("hand", ls.RigidBody.box(0.02, 0.02, 0.02, density=1000), hinge, parent="arm")
    robot.add_state("bent", {"hand": [0.5]}, inputs={"pull": 1.5})
    bending = robot.build()
    motion = ls.simulate(bending, 0.1, u=[2.0])
    viewer = Viewer(bending, None, motion, None, "127.0.0.1", 0)
    try:
        stage, panel = viewer.stage, viewer.panel
        viewer.do(lambda: stage.hide({"axes"}))
        assert not any(handle.visible for handle in stage.aids.axes)
        viewer.do(lambda: panel.show_strobes(4))
        assert len(stage.strobes) == 4
        drawn = stage.strobes[-1]._handles[0].vertices
        last = robot_geometry(bending).points(motion.q[-1])[stage.geometry.meshes[0].rows]
        np.testing.assert_allclose(drawn, last, atol=1e-5)
        viewer.do(lambda: panel.cut_open("x above", 0.5))
        viewer.do(viewer._draw)
        surface = stage.bodies[0].handle
        assert surface.vertices[:, 0].max() <= stage.cut.at + 1e-6
        viewer.do(lambda: panel.cut_open("nothing", 0.5))
        viewer.do(viewer._draw)
        assert np.asarray(surface.faces).shape == stage.geometry.meshes[0].triangles.shape
        viewer.do(lambda: panel.take_state("bent"))
        assert viewer.q[1] == 0.5 and viewer.u[0] == 1.5 and viewer.mode == "pose"
        viewer.do(lambda: setattr(stage, "measure", Measure("arm", WORLD)))
        viewer.set_model(bending.with_({"arm.material.young": 1e6}))
        assert viewer.stage.measure == Measure("arm", WORLD)
        spring = SimpleNamespace(position=lambda q: np.zeros(3), target=np.ones(3), newtons=2.5)

        def pulled():
            viewer.stage.show(bending.neutral(), np.zeros(2), np.zeros(1), 0.0, spring)
            return viewer.stage.aids.pull.text, viewer.stage.aids.pull.visible

        assert viewer.do(pulled) == ("2.5 N", True)
    finally:
        viewer.stop()
