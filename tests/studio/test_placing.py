"""Placements by the mouse: a handle stands where the part is, and the file gets the place where it was let go."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import lissom as ls
from lissom.stepping.statistics import Statistics
from lissom.studio.document import RobotDocument
from lissom.studio.placing import Handle, is_placed, pose_of
from lissom.studio.scene import Studio
from lissom.studio.serving import free_port
from lissom.studio.session import Result
from lissom.viewing.geometry import robot_geometry

TEXT = """\
name: arm
links:
  - name: arm  # a soft arm
    body:
      type: Rod
      length: 0.3
      section: {type: SectionCircle, radius: 0.02}
      material: {young: 1.0e6, density: 1000, viscosity: 4.0e3}
      basis: {type: BasisLegendre, bending_y: 1}
  - name: hand
    parent: arm
    at: 0.5
    body: {type: RigidBody, mass: 0.01, inertia: [1.0e-5, 1.0e-5, 1.0e-5]}
    placement: {position: [0.01, 0.02, 0.031234567], rotation: {axis: [0, 0, 1], degrees: 30}}
frames:
  - {name: eye, link: hand}
contacts:
  - {name: floor, links: arm, shape: {type: ShapePlane, normal: [0, 0, 1]}, placement: {position: [0, 0, -0.5]}}
loads:
  - {name: weight, link: hand, force: [0, 0, -0.01]}
"""
Q = np.array([0.4, -0.3])


@pytest.fixture
def studio(tmp_path):
    """A studio of the arm, without a page."""
    path = tmp_path / "arm.yaml"
    path.write_text(TEXT, encoding="utf-8")
    made = Studio(RobotDocument(path), "127.0.0.1", free_port("127.0.0.1"))
    assert made.session.wait()
    yield made
    made.stop()


def test_a_handle_stands_where_the_part_is(tmp_path):
    """The pose of the hand is frame_pose of the rod in its middle times the placement; parts without placement have no
    handle."""
    (tmp_path / "arm.yaml").write_text(TEXT, encoding="utf-8")
    model = ls.load_robot(tmp_path / "arm.yaml").build()
    hand = Handle(model, Q, "links", "hand")
    np.testing.assert_allclose(hand.pose, ls.frame_pose(model, Q, "hand"), atol=1e-12)
    eye = Handle(model, Q, "frames", "eye")
    np.testing.assert_allclose(eye.pose, ls.frame_pose(model, Q, "eye"), atol=1e-12)
    floor = Handle(model, Q, "contacts", "floor")
    np.testing.assert_allclose(floor.pose[:3, 3], [0.0, 0.0, -0.5])
    parts = (("links", "arm"), ("loads", "weight"), ("links", "leg"), ("x", "y"))
    assert [is_placed(model, *part) for part in parts] == [True, False, False, False]


def test_what_is_written_places_the_part_where_it_was_let_go(tmp_path):
    """A position is rounded to a part of a pixel and an angle to 0.1°; what did not move keeps all its digits."""
    (tmp_path / "arm.yaml").write_text(TEXT, encoding="utf-8")
    model = ls.load_robot(tmp_path / "arm.yaml").build()
    hand = Handle(model, Q, "links", "hand")
    assert hand.moved(hand.pose, 0.3)["position"] == [0.01, 0.02, 0.031234567]
    assert hand.moved(hand.pose, 0.3)["rotation"] == {"axis": [0, 0, 1], "degrees": 30.0}
    kept = {"position": [0.01, 0.02, 0.03], "rotation": {"quaternion": [1, 0, 0, 0]}}
    assert hand.moved(hand.pose, 0.3, kept) == kept
    goal = hand.pose.copy()
    goal[:3, 3] += [0.05, -0.02, 0.01]
    goal[:3, :3] = Rotation.from_rotvec([0.3, -0.4, 0.2]).as_matrix() @ goal[:3, :3]
    value = hand.moved(goal, 0.3)
    g = np.eye(4)
    axis = np.array(value["rotation"]["axis"]) / np.linalg.norm(value["rotation"]["axis"])
    g[:3, :3] = Rotation.from_rotvec(np.radians(value["rotation"]["degrees"]) * axis).as_matrix()
    g[:3, 3] = value["position"]
    assert np.abs((hand.base @ g)[:3, 3] - goal[:3, 3]).max() < 2e-4
    assert np.abs((hand.base @ g)[:3, :3] - goal[:3, :3]).max() < 2e-3
    assert "rotation" not in Handle(model, Q, "contacts", "floor").moved(np.eye(4), 0.3)


def test_poses_of_a_handle():
    """A quaternion (w, x, y, z) and a position are a pose."""
    g = pose_of([1.0, 2.0, 3.0], [np.cos(0.3), 0.0, 0.0, np.sin(0.3)])
    np.testing.assert_allclose(g[:3, :3], Rotation.from_rotvec([0, 0, 0.6]).as_matrix(), atol=1e-12)
    assert g[:3, 3].tolist() == [1.0, 2.0, 3.0]


def test_a_drag_is_one_edit_of_the_file(studio):
    """While the handle is dragged nothing is written; let go, the file has the placement, comments stay, and one undo
    brings the old text back. The handle follows the part, and goes when nothing is placed."""
    studio.place(["links", 1])
    handle = studio._handle
    place = ls.frame_pose(studio.session.model, studio.session.view.q, "hand")[:3, 3]
    np.testing.assert_allclose(handle.position, place, atol=1e-6)
    (react,) = handle._impl_aux.update_cb
    handle.position = tuple(np.asarray(handle.position) + np.array([0.0, 0.03, 0.0]))
    for phase in ("start", "update"):
        react(SimpleNamespace(phase=phase, target=handle))
    assert studio.document.text == TEXT
    react(SimpleNamespace(phase="end", target=handle))
    assert studio.session.wait() and not studio.session.built.faults
    text = studio.document.path.read_text(encoding="utf-8")
    assert "# a soft arm" in text and "degrees: 30" in text and text != TEXT
    moved = ls.load_robot(studio.document.path).build()
    place = Handle(moved, studio.session.view.q, "links", "hand").pose[:3, 3]
    shown = studio._handle
    assert shown is not handle and np.abs(np.asarray(shown.position) - place).max() < 1e-3
    studio.document.undo()
    assert studio.document.text == TEXT
    studio.place([])
    assert studio._handle is None


def test_ghosts_move_with_the_time_of_what_is_shown(studio):
    """A ghost has the bodies of its robot where they are at the time that is shown, and goes when it is toggled."""
    model = studio.session.model
    t = np.linspace(0.0, 1.0, 11)
    q = np.outer(t, Q)
    shape = (len(t), model.nv)
    motion = ls.Trajectory(t, q, np.zeros(shape), np.zeros(shape), np.zeros((len(t), 0)),
                           np.zeros((len(t), 0)), np.zeros((len(t), 0)), Statistics("none", 1, 0, 0, 0.0))  # fmt: skip
    studio.session.results["swing"] = Result("swing", "motion", model, motion, "", 0.0)
    studio.session.toggle_ghost("swing")
    (ghost,) = studio.viewer.stage.ghosts
    geometry = robot_geometry(model)

    def shown(time):
        ghost.show(time)
        return [np.array(handle.vertices) for handle in ghost._handles]

    for time in (0.0, 0.55, 1.0, 2.0):
        points = geometry.points(Q * min(time, 1.0))
        for found, mesh in zip(studio.viewer.do(lambda time=time: shown(time)), geometry.meshes):
            np.testing.assert_allclose(found, points[mesh.rows], atol=1e-6)
    studio.session.toggle_ghost("swing")
    assert studio.viewer.stage.ghosts == []
