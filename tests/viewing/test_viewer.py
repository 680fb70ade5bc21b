"""The viewer without a browser: its server, scene, controls, files, and its message if it cannot start."""

from __future__ import annotations

import socket
import sys
import time
import urllib.request
import webbrowser
from pathlib import Path

import numpy as np
import pytest

import lissom as ls
from lissom.cli.main import main
from lissom.viewing.viewer import Viewer


@pytest.fixture(scope="module")
def model():
    """A robot with every kind of thing that is drawn."""
    robot = ls.Robot("everything")
    basis = ls.BasisLegendre(bending_y=1, bending_z=0)
    rod = ls.Rod(
        0.3, ls.SectionRectangle(0.03, (0.03, 0.01)), basis, ls.Material(young=1e6, density=1000, damping_time=0.05)
    )
    robot.add_link("base", ls.RigidBody.box(0.1, 0.1, 0.05, density=800), placement=placed((0, 0, 0.3)))
    robot.add_link("arm", rod, ls.JointRevolute(axis=(0, 1, 0), stiffness=1.0, damping=0.1), parent="base")
    robot.add_tendon("up", "arm", (0.0, 0.008))
    robot.add_frame("tool", "arm", s=0.8)
    robot.add_point_load("weight", "arm", force=(0, 0, -0.1))
    robot.add_contact("floor", "arm", ls.ShapePlane(), stiffness=1e3)
    robot.add_contact("pillar", "arm", ls.ShapeCylinder(0.05), placement=placed((0.5, 0, 0)), stiffness=1e3)
    robot.add_spring("cord", "arm", ls.PathPoint(None, position=(0.3, 0.1, 0.5)), stiffness=2.0)
    robot.set_fluid(1.2)
    return robot.build()


def placed(position):
    """A placement at a position."""
    g = np.eye(4)
    g[:3, 3] = position
    return g


@pytest.fixture(scope="module")
def viewer(model):
    """A viewer of it, which nobody looks at."""
    made = Viewer(model, None, None, "equilibrium", "127.0.0.1", 0)
    yield made
    made.stop()


def until(condition, seconds=120.0):
    """Wait until a condition holds; kernels may have to be compiled first."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


def test_the_page_is_served_on_this_machine_alone(viewer):
    """The page is at the address given, and nowhere else."""
    assert viewer.url.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(viewer.url, timeout=10) as answer:
        assert b"<html" in answer.read()
    port = int(viewer.url.rpartition(":")[2])
    own = socket.gethostbyname(socket.gethostname())
    if not own.startswith("127."):
        with socket.socket() as probe:
            assert probe.connect_ex((own, port)) != 0


def test_everything_has_a_node(viewer):
    """Bodies, shapes, water, tendons, springs, frames and forces stand in the scene."""
    names = list(viewer.server.scene._handle_from_node_name)
    for part in ("/robot/0 base", "/robot/1 arm", "/surroundings/0 floor", "/surroundings/1 pillar", "/water", "/grid",
                 "/lines/tendon", "/lines/spring", "/frames/tool", "/forces"):  # fmt: skip
        assert any(name.startswith(part) for name in names), part


def test_the_scene_follows_the_state(viewer, model):
    """The vertices of the arm and the line of its tendon are those of the geometry at the state shown."""
    until(lambda: viewer.session.equilibrium is not None)
    viewer.do(lambda: viewer.session.set_inputs([0.5]))
    until(lambda: viewer.session.u[0] == 0.5 and not viewer._is_stale)
    q = viewer.do(lambda: viewer.session.q.copy())
    arm, points = viewer.stage.bodies[1], viewer.stage.geometry.points(q)
    assert np.abs(arm.handle.vertices - points[arm.mesh.rows]).max() < 1e-6
    (line, handle) = viewer.stage.lines[0]
    assert np.abs(handle.points[:, 0] - points[line.rows][:-1]).max() < 1e-6
    assert viewer.stage.arrows.visible and len(viewer.stage.arrows.points) >= 1


def test_what_is_set_comes_to_the_session(viewer, model):
    """Sliders, modes, painting and hiding have their effects; sliders show the state afterwards."""
    panel = viewer.panel
    viewer.do(lambda: panel.set_input(panel.input_sliders[0][0], 0.7))
    assert viewer.session.u[0] == 0.7
    viewer.do(lambda: panel.set_mode("pose"))
    viewer.do(lambda: panel.set_coordinate(panel.sliders[0][0], 0.4))
    assert viewer.session.values[0] == pytest.approx(0.4)
    viewer.do(panel.show_values)
    assert panel.sliders[0][1].value == pytest.approx(0.4)
    viewer.do(lambda: viewer.stage.paint("curvature"))
    until(lambda: any(mesh.visible for mesh in viewer.stage.levels))
    assert not viewer.stage.bodies[1].handle.visible and viewer.stage.bodies[0].handle.visible
    viewer.do(lambda: viewer.stage.paint(""))
    until(lambda: viewer.stage.bodies[1].handle.visible)
    viewer.do(lambda: viewer.stage.hide({"frames", "surroundings"}))
    assert not viewer.stage.frames["tool"].visible and not viewer.stage.shapes[0].handle.visible
    viewer.do(lambda: viewer.stage.hide(set()))
    assert viewer.stage.frames["tool"].visible


def test_a_simulation_runs_and_its_files_hold_it(viewer, model, tmp_path):
    """Live motion keeps up with the clock, its updates are timed; glTF, page and trajectory hold the recorded
    motion."""
    viewer.do(lambda: viewer.panel.set_mode("simulate"))
    until(lambda: viewer.session.t > 0.3)
    assert 0.0 < viewer.median_update < 1.0
    viewer.do(lambda: viewer.panel.press("Pause"))
    import trimesh

    shape = trimesh.load(viewer.save(tmp_path / "shape.glb"))
    assert {name.partition(" ")[2] for name in shape.geometry} >= {"base", "arm"} and "up" in shape.geometry
    points = viewer.stage.geometry.points(viewer.session.q)
    arm = next(mesh for name, mesh in shape.geometry.items() if name.endswith(" arm"))
    assert np.allclose(arm.bounds[1], points[viewer.stage.bodies[1].mesh.rows].max(axis=0), atol=1e-5)
    page = viewer.save(tmp_path / "motion.html").read_text(encoding="utf-8")
    assert "__VISER_EMBED_DATA__" in page and page.rstrip().endswith("</html>")
    assert viewer.save(tmp_path / "again.html").stat().st_size > 100_000
    motion = ls.Trajectory.load(viewer.save(tmp_path / "motion.npz"))
    history = viewer.session.history
    assert len(motion.t) == len(history) and np.array_equal(motion.q[-1], history.rows[-1][0])
    with pytest.raises(ls.ModelError, match="film: needs a browser that looks on"):
        viewer.save(tmp_path / "film.mp4")
    with pytest.raises(ls.ModelError, match=r"must end in one of .* \(got '.stl'\)"):
        viewer.save(tmp_path / "shape.stl")


def test_the_manipulator_is_live():
    """Median updates of the cable-driven manipulator: equilibria within 33 ms, motions within 16 ms, as is promised."""
    robot = ls.load_robot(Path(__file__).parents[2] / "examples" / "robots" / "cdm.yaml")
    viewer = Viewer(robot.build(), None, None, "equilibrium", "127.0.0.1", 0)
    try:
        for k in range(40):
            viewer.do(lambda k=k: viewer.session.set_inputs([0.5 * k, 0.0, 0.2 * k, 0.0, 0.0]))
        until(lambda: len(viewer._spent) >= 20)
        assert viewer.session.is_good and viewer.median_update < 0.033
        viewer.do(lambda: viewer.panel.set_mode("simulate"))
        until(lambda: viewer.session.t > 0.7)
        assert viewer.session.is_good and viewer.median_update < 0.016 and viewer.session.pace > 0.9
    finally:
        viewer.stop()


def test_python_sets_shapes_inputs_and_modes_of_a_running_viewer(model):
    """A state that is set shows, and sliders follow; inputs lead to their equilibrium; the caller gets errors."""
    q = 0.1 * np.arange(model.nq)
    with ls.view(model, q, u=[0.4], port=0, browser=False, block=False) as viewer:
        assert isinstance(viewer, ls.Viewer) and viewer.mode == "equilibrium" and viewer.u.tolist() == [0.4]
        wanted = ls.solve_statics(model, [0.6], stable=False).q
        viewer.set_inputs([0.6])
        until(lambda: np.abs(viewer.q - wanted).max() < 1e-7)
        assert viewer.panel.input_sliders[0][1].value == pytest.approx(0.6) and not viewer.v.any()
        viewer.set_mode("pose")
        viewer.set_shape(q)
        assert np.array_equal(viewer.q, q) and viewer.panel.sliders[0][1].value == pytest.approx(q[0])
        with pytest.raises(ls.ShapeError, match=r"u: expected"):
            viewer.set_inputs([[0.1], [0.2]])
        with pytest.raises(ls.ShapeError, match=r"q: expected"):
            viewer.set_shape(np.zeros((2, model.nq)))
        with pytest.raises(ls.ModelError, match="mode: must be one of"):
            viewer.set_mode("replay")
        viewer.set_mode("simulate")
        until(lambda: viewer.t > 0.02)
        viewer.pause()
        before = viewer.t
        viewer.play()
        until(lambda: viewer.t > before)
        viewer.reset()
        viewer.pause()
        assert viewer.u.tolist() == [0.4]
    with pytest.raises(ls.ModelError, match="viewer: has been stopped"):
        viewer.set_inputs([0.0])


def test_a_replayed_motion_keeps_its_own_shapes(model):
    """Shapes and inputs are refused while a motion is replayed, with the way out."""
    motion = ls.simulate(model, 0.01, u=[0.2], t_eval=[0.0, 0.01])
    with ls.view(model, trajectory=motion, port=0, browser=False, block=False) as viewer:
        for change in (lambda: viewer.set_shape(model.neutral()), lambda: viewer.set_inputs([0.1])):
            with pytest.raises(ls.ModelError, match="cannot be set while a motion is replayed; take another mode"):
                change()


def test_an_error_in_the_thread_is_shown_and_it_goes_on(viewer, caplog):
    """What fails between two pictures is said, and the next one comes."""

    def fail():
        raise ValueError("so it is")

    with pytest.raises(ValueError, match="so it is"):
        viewer.do(fail)
    viewer.post(fail)
    until(lambda: viewer.session.note == "ValueError: so it is")
    assert viewer.do(lambda: 7) == 7


def test_a_port_in_use_is_reported(model):
    """No other port is taken silently; the words say what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"port {port} of 127.0.0.1 cannot be used .*--port, 0 for any that is free"):
            ls.view(model, port=port, browser=False, block=False)


def test_no_browser_is_reported(model, monkeypatch, capsys):
    """Where none can be opened the address and the way to it are printed, and the viewer runs."""
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    viewer = ls.view(model, port=0, block=False)
    viewer.stop()
    said = capsys.readouterr().out
    port = viewer.url.rpartition(":")[2]
    assert "no browser could be opened here" in said and f"ssh -L {port}:localhost:{port}" in said


def test_a_missing_viser_names_the_extra(model, monkeypatch):
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(ls.ModelError, match=r"pip install 'lissom\[viewer\]'"):
        ls.view(model, block=False)


def test_the_command_shows_a_robot_and_a_trajectory(tmp_path, monkeypatch, capsys):
    """`lissom view` serves until it is interrupted, then ends with 0; mistakes end it with 2 before anything starts."""
    robot = ls.Robot("pendulum")
    robot.add_link("bob", ls.RigidBody.sphere(0.05, density=1000), ls.JointRevolute(axis=(0, 1, 0)))
    ls.save_robot(robot, tmp_path / "bob.yaml")
    t, none = np.linspace(0, 0.1, 5), np.zeros((5, 0))
    q, cost = np.cos(t)[:, None], ls.Statistics("known", 4, 0, 0, 0.0)
    ls.Trajectory(t, q, -np.sin(t)[:, None], -q, none, none, none, cost).save(tmp_path / "motion.npz")
    shown = []

    def interrupted(self):
        shown.append((self.session.mode, self.session.motion.span))
        raise KeyboardInterrupt

    monkeypatch.setattr(Viewer, "wait", interrupted)
    arguments = ["view", str(tmp_path / "bob.yaml"), "--port", "0", "--no-browser", "--trajectory"]
    assert main([*arguments, str(tmp_path / "motion.npz")]) == 0
    address, *_, ended = capsys.readouterr().out.splitlines()
    assert address.startswith("pendulum: http://127.0.0.1:") and ended == "ended"
    assert shown == [("replay", (0.0, 0.1))]
    assert main([*arguments, str(tmp_path / "bob.yaml")]) == 2
    assert "trajectory file: must end in .npz or .csv" in capsys.readouterr().err


def test_the_command_begins_under_inputs(tmp_path, monkeypatch, capsys):
    """`lissom view --inputs` shows the equilibrium under them; a name that there is not is a mistake."""
    robot = ls.Robot("pendulum")
    robot.add_link("bob", ls.RigidBody.sphere(0.05, density=1000), ls.JointRevolute(axis=(0, 1, 0), stiffness=1.0))
    robot.add_joint_actuator("motor", "bob")
    ls.save_robot(robot, tmp_path / "bob.yaml")
    shown = []
    monkeypatch.setattr(Viewer, "wait", lambda self: shown.append((self.mode, self.u.tolist())))
    arguments = ["view", str(tmp_path / "bob.yaml"), "--port", "0", "--no-browser", "--inputs"]
    assert main([*arguments, "motor=0.25"]) == 0 and shown == [("equilibrium", [0.25])]
    assert main([*arguments, "moter=0.25"]) == 2 and "motor" in capsys.readouterr().err


def test_frames_that_are_chosen_are_plotted_beside_each_other(viewer, model):
    """Each plot has the path of the frame that is chosen beside it, at the times that were seen."""
    plots, session = viewer.panel.plots, viewer.session
    viewer.do(lambda: session.set_mode("simulate"))
    until(lambda: session.t > 0.1)
    viewer.do(session.pause)
    first = len(plots.frames)
    viewer.do(plots.add_frame)
    for (which, _), name in zip(plots.frames[-2:], ("tool", "arm")):
        which.value = name
    viewer.do(plots.refresh)
    assert len(plots.frames) == first + 1
    t = plots.frames[0][1].data[0]
    at = np.array([session.record.at(float(x))[0] for x in t])
    for which, plot in plots.frames[-2:]:
        want = ls.frame_pose(model, at, which.value)[:, :3, 3]
        assert np.allclose(np.array(plot.data[1:]).T, want, atol=1e-9) and len(t) > 5
    viewer.do(lambda: session.set_mode("equilibrium"))


def arm(radius=0.02, order=1, tendons=1):
    """A soft arm."""
    robot = ls.Robot("arm")
    basis = ls.BasisLegendre(bending_y=order)
    rod = ls.Rod(0.3, ls.SectionCircle(radius), basis, ls.Material(young=1e6, density=1000, damping_time=0.05))
    robot.add_link("arm", rod)
    for k in range(tendons):
        robot.add_tendon(f"t{k}", "arm", (0.0, 0.5 * radius))
    return robot.build()


def test_another_robot_takes_the_place_of_the_first():
    """The same robot with other values keeps its controls and looks; one with more inputs gets new controls. The scene
    holds the new robot only."""
    with Viewer(arm(), None, None, "equilibrium", "127.0.0.1", 0) as viewer:
        panel = viewer.panel
        viewer.do(lambda: viewer.stage.hide({"grid"}))
        viewer.do(lambda: viewer.stage.paint("strain"))
        thick = arm(0.03)
        viewer.set_model(thick, u=[2.0], mode="equilibrium")
        until(lambda: viewer.session.equilibrium is not None)
        assert viewer.panel is panel and viewer.stage.hidden == {"grid"} and viewer.stage.painted == "strain"
        np.testing.assert_allclose(viewer.q, ls.solve_statics(thick, [2.0]).q, rtol=0, atol=1e-9)
        assert panel.session is viewer.session and panel.input_sliders[0][1].max == viewer.session.inputs[0].high
        viewer.set_model(arm(0.03, tendons=2))
        assert viewer.panel is not panel and len(viewer.panel.input_sliders) == 2 and viewer.mode == "pose"
        assert len(viewer.stage.geometry.of("tendon")) == 2


def test_controls_that_were_removed_leave_nothing_behind():
    """After twelve robots with other inputs the server keeps as many messages for later browsers as after four."""
    first, second = arm(), arm(tendons=2)
    with Viewer(first, None, None, "pose", "127.0.0.1", 0) as viewer:
        counts = []
        for _ in range(3):
            for model in (second, first, second, first):
                viewer.set_model(model)
            counts.append(len(viewer.server._websock_server._broadcast_buffer.message_from_id))
        assert counts[2] <= counts[0] + 5


def test_cameras_look_from_a_direction():
    """From each direction and in windows of all shapes, the whole robot and the axes are in the picture at the left of
    the panel, and fill its width or its height."""
    with Viewer(arm(), None, None, None, "127.0.0.1", 0) as viewer:
        stage, q = viewer.stage, np.full(arm().nq, 2.0)
        points = np.concatenate([stage.geometry.points(q), stage.aids.corners])
        for away in (None, (1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, -1.0)):
            for aspect, free in ((1.1, 0.55), (2.0, 0.8), (0.6, 0.4)):
                at, position = stage.view_from(away, q, aspect, free)
                toward = (position - at) / np.linalg.norm(position - at)
                right = np.cross([0.0, 0.0, 1.0], toward)
                right /= np.linalg.norm(right)
                depth = (position - points) @ toward
                x = (points - position) @ right / depth / (np.tan(0.35) * aspect)
                y = (points - position) @ np.cross(toward, right) / depth / np.tan(0.35)
                assert depth.min() > 0.0 and x.min() > -1.0 and x.max() < 2.0 * free - 1.0 and np.abs(y).max() < 1.0
                assert np.ptp(x) > 0.8 * 2.0 * free - 0.2 or np.ptp(y) > 1.7
        front, top = (stage.view_from(away) for away in ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))
        assert front[1][0] > front[0][0] + stage.size and top[1][2] > top[0][2] + stage.size
        viewer.do(lambda: stage.look(viewer.server, (1.0, 0.0, 0.0)))
