"""The session of the studio: robots built in the background, mistakes at their places, results by name."""

import threading
import time

import numpy as np
import pytest

import lissom as ls
from lissom.io.reading import Fault
from lissom.robot.paths import sharing
from lissom.studio import document as documents
from lissom.studio import session as sessions
from lissom.studio.document import RobotDocument
from lissom.studio.header import state_text
from lissom.studio.segmented_arm import arm_text
from lissom.studio.session import StudioSession, changed_places, inputs_of, path_of, summary
from lissom.viewing.controls import input_sliders

ARM = """\
name: arm
links:
  - name: rod  # a soft rod
    body:
      type: Rod
      length: 0.3
      section: {type: SectionCircle, radius: 0.02}
      material: {young: 1.0e6, density: 1000, viscosity: 4.0e3}
      basis: {type: BasisLegendre, bending_y: 1}
actuators:
  - {type: Tendon, name: up, link: rod, offset: [0, 0.01]}
"""


@pytest.fixture
def studio(tmp_path):
    """A session of the arm, whose first robot has been built, and the sessions that it has shown."""
    path = tmp_path / "arm.yaml"
    path.write_text(ARM, encoding="utf-8")
    shown = []
    made = StudioSession(RobotDocument(path), shown.append)
    made.shown = shown
    assert made.wait()
    yield made
    made.stop()


def finished(studio):
    """Wait until a computation has ended."""
    end = time.monotonic() + 60.0
    while studio.run is not None and time.monotonic() < end:
        time.sleep(0.01)
    assert studio.run is None


def test_the_robot_of_the_document_is_shown_at_rest(studio):
    """The first robot hangs at its equilibrium, which is that of the library."""
    assert not studio.built.faults and len(studio.shown) == 1
    view = studio.shown[0]
    model = ls.load_robot(studio.document.path).build()
    np.testing.assert_allclose(view.q, ls.solve_statics(model).q, rtol=0, atol=1e-9)
    assert view.mode == "equilibrium" and view.is_good
    assert list(studio.calls) == ["model = robot.build()", "rest = ls.solve_statics(model, u=[0])"]


def test_a_changed_value_gives_the_model_of_a_build(studio):
    """A changed modulus is no new build: the model equals that of the new file, bit by bit, and the call names the
    path. The robot stays near its shape, with its inputs."""
    studio.view.set_inputs([3.0])
    studio.document.put(["links", 0, "body", "material", "young"], 2e6)
    assert studio.wait()
    fresh = ls.load_robot(studio.document.path).build()
    np.testing.assert_array_equal(ls.stiffness_matrix(studio.model), ls.stiffness_matrix(fresh))
    assert studio.calls[-2] == "model = model.with_({'rod.material.young': 2000000.0})"
    np.testing.assert_allclose(studio.view.q, ls.solve_statics(fresh, [3.0]).q, rtol=0, atol=1e-9)


def test_a_changed_structure_is_built(studio):
    """More modes are a build, of which the call tells; inputs stay by their names."""
    studio.view.set_inputs([3.0])
    studio.document.add("actuators", {"type": "Tendon", "name": "down", "link": "rod", "offset": [0, -0.01]})
    studio.document.put(["links", 0, "body", "basis", "bending_y"], 2)
    assert studio.wait()
    assert studio.model.nv == 3 and studio.view.u.tolist() == [3.0, 0.0]
    assert "model = robot.build()" in list(studio.calls)[-2:]


def test_the_last_good_robot_stays_and_mistakes_are_at_their_fields(studio):
    """A wrong value shows nothing new; its fault has the place, the rule and the cure. Undo mends it."""
    studio.document.put(["links", 0, "body", "length"], "30 cm")
    assert studio.wait() and len(studio.shown) == 1
    (fault,) = studio.built.faults
    assert fault.keys == ("links", 0, "body", "length") and "SI units: 0.3" in fault.text
    studio.document.clear(["links", 0, "body", "length"])
    assert studio.wait()
    assert [one.keys for one in studio.built.faults] == [("links", 0, "body", "length")]
    studio.document.put(["links", 0, "body", "length"], -1.0)
    assert studio.wait()
    assert studio.built.faults[0].keys == ("links", 0, "body", "length") and "> 0" in studio.built.faults[0].text
    for _ in range(3):
        studio.document.undo()
    assert studio.wait() and not studio.built.faults and len(studio.shown) == 2


def test_a_broken_text_and_an_empty_robot(studio):
    """A text that is no YAML is one fault with its line; a robot without links is none."""
    studio.document.change("links: [", "break it")
    assert studio.wait() and studio.built.faults[0].line >= 1 and "broken" in studio.built.faults[0].text
    studio.document.change("name: nothing\nlinks: []\n", "empty it")
    assert studio.wait() and not studio.built.faults and studio.model.nv == 2


def test_files_outside_the_folder_are_mistakes_at_their_field(studio):
    """A mesh elsewhere is not read."""
    body = {"type": "RigidBody", "mass": 1, "meshes": [{"file": "../secret.obj"}]}
    studio.document.put(["links", 0, "body"], body)
    assert studio.wait()
    keys = ("links", 0, "body", "meshes", 0, "file")
    assert keys in [fault.keys for fault in studio.built.faults]


def test_another_joint_in_a_loop_is_another_robot(studio, caplog):
    """A loop that is rigid at first gets a hinge, as in its form: the rows of its constraint are fewer, the robot is
    built anew, and what cannot be closed meanwhile is no error of the program."""
    hinge, far = {"type": "JointRevolute", "axis": [0, 1, 0]}, {"position": [0.1, 0, 0.02]}
    body = {"type": "RigidBody", "shape": "box", "size": [0.1, 0.01, 0.01], "density": 1000}
    studio.document.add("links", {"name": "a", "joint": hinge, "body": body})
    studio.document.add("links", {"name": "b", "parent": "a", "joint": hinge, "body": body, "placement": far})
    studio.document.add("links", {"name": "c", "joint": hinge, "body": body, "placement": {"position": [0.1, 0, 0]}})
    studio.document.add("loops", {"name": "pin", "link_a": "b", "link_b": "c"})
    assert studio.wait() and studio.model.n_rows == 6
    studio.document.put(["loops", 0, "joint"], {"type": "JointRevolute", "axis": [0, 1, 0]})
    assert studio.wait() and not studio.built.faults
    assert studio.model.n_rows == 5 and "model = robot.build()" in list(studio.calls)[-2:]
    studio.document.put(["links", 2, "placement", "position"], [5, 0, 0])
    assert studio.wait() and not caplog.records


def test_an_input_that_takes_another_actuator_is_another_robot(studio, caplog):
    """Gains of an input of forces that name one more tendon leave one input fewer: the robot is built anew."""
    studio.document.add("actuators", {"type": "Tendon", "name": "down", "link": "rod", "offset": [0, -0.01]})
    studio.document.add("couplings", {"name": "both", "gains": {"up": 1.0}})
    assert studio.wait() and studio.model.inputs.names == ("both", "down")
    studio.document.put(["couplings", 0, "gains", "down"], 1.0)
    assert studio.wait() and not studio.built.faults and not caplog.records
    assert studio.model.inputs.names == ("both",) and studio.model.nu == 1
    studio.document.put(["couplings", 0, "gains", "down"], 2.0)
    assert studio.wait() and studio.calls[-2].startswith("model = model.with_(")


def test_a_change_on_the_disk_is_built(studio):
    """Another program writes the file: the new robot appears by itself."""
    time.sleep(0.02)
    studio.document.path.write_text(ARM.replace("0.3", "0.4"), encoding="utf-8")
    end = time.monotonic() + 20.0
    while len(studio.shown) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    assert studio.model.description.links["rod"].body.length == 0.4


def test_statics_motion_and_modes_are_those_of_the_library(studio):
    """Results have names, the calls that give them, and the values of these calls."""
    assert studio.solve_statics("pulled", [5.0])
    finished(studio)
    rest = studio.results["pulled"]
    assert rest.call == "rest = ls.solve_statics(model, u=[5])"
    np.testing.assert_allclose(rest.value.q, ls.solve_statics(studio.model, [5.0]).q, rtol=0, atol=1e-9)
    assert studio.simulate("swing", 0.2, ["5*minimum(4*t, 1)"], True)
    finished(studio)
    motion = studio.results["swing"].value
    u = ls.Expression(["5*minimum(4*t, 1)"], "t")
    expected = ls.simulate(studio.model, 0.2, ls.solve_statics(studio.model).q, u=u)
    np.testing.assert_allclose(motion.q[-1], expected.q[-1], rtol=0, atol=1e-6)
    assert studio.view.mode == "replay" and studio.view.motion is not None
    assert studio.find_modes("sound", [0.0])
    finished(studio)
    found = ls.modes(studio.model, ls.solve_statics(studio.model).q)
    np.testing.assert_allclose(studio.results["sound"].value.frequencies, found.frequencies, rtol=1e-6)
    assert "Hz" in summary(studio.results["sound"])
    studio.show_result("sound", 1)
    shape = studio.view.motion.rows
    assert max(np.abs(row[0] - found.q).max() for row in shape) > 0.0
    studio.back()
    assert studio.view.mode == "equilibrium"


def test_a_motion_is_stopped(studio):
    """A long motion ends at its next step once it is told to; another computation is refused meanwhile."""
    assert studio.simulate("long", 1e5, ["1"], False)
    end = time.monotonic() + 60.0
    while not (studio.run and studio.run.done) and time.monotonic() < end:
        time.sleep(0.01)
    assert 0.0 < studio.run.done < 1.0 and studio.run.said.endswith(" of 100000 s")
    assert not studio.solve_statics("other", [0.0])
    studio.stop_run()
    finished(studio)
    assert studio.note == "long: stopped" and "long" not in studio.results


def test_wrong_inputs_are_told(studio):
    """A mistake in an expression is told before anything runs; a motion of no duration, by its error."""
    with pytest.raises(ls.ModelError, match="__import__"):
        studio.simulate("bad", 1.0, ["__import__('os').getcwd()"], True)
    assert studio.simulate("none", -1.0, ["0"], True)
    finished(studio)
    assert studio.note.startswith("none: ") and "none" not in studio.results
    assert inputs_of(["1", "2.5"]) == [1.0, 2.5]


def test_results_become_files_beside_the_robot(studio):
    """A motion is written as .npz, .csv and .mat, whose names cannot lead elsewhere."""
    assert studio.simulate("swing", 0.05, ["1"], True)
    finished(studio)
    for ending in ("npz", "csv", "mat"):
        path = studio.store("swing", ending)
        assert path.stat().st_size > 0 and path.parent.name == "arm results"
    assert ls.Trajectory.load(studio.store("swing", "npz")).t[-1] == pytest.approx(0.05)
    studio.results["../../swing"] = studio.results["swing"]
    with pytest.raises(ls.ModelError, match="must lie below the folder"):
        studio.store("../../swing", "npz")
    with pytest.raises(ls.ModelError, match="must be a motion"):
        studio.store("nothing", "npz")


def test_a_mistake_of_the_library_does_not_end_the_thread(studio, monkeypatch):
    """An unexpected error while a robot is built is shown, and the next edit is built again."""

    def broken(text, name):
        raise RuntimeError("a mistake")

    with monkeypatch.context() as patch:
        patch.setattr(sessions, "read", broken)
        studio.document.put(["name"], "other")
        assert studio.wait()
    assert studio.built.faults == [Fault(1, "RuntimeError: a mistake")]
    studio.document.put(["name"], "third")
    assert studio.wait() and not studio.built.faults


def test_paths_of_changed_places():
    """A changed value of a document has the path by which `with_` changes it."""
    before = {"gravity": [0, 0, -9.81], "links": [{"name": "arm", "body": {"length": 0.3, "section": {"radius": 1}}}]}
    after = {"gravity": [0, 0, 0], "links": [{"name": "arm", "body": {"length": 0.4, "section": {"radius": 1}}}]}
    places = changed_places(before, after)
    assert [path_of(keys, after) for keys in places] == ["gravity", "arm.length"]


def test_descriptions_that_are_read_again_share_their_parts():
    """Equal parts of a description that was read again are those of the earlier one; changed parts hold the others."""
    text = arm_text(3)
    from lissom.io.reading import read

    first, again = read(text, "a")[0], read(text, "a")[0]
    changed = read(text.replace("radius: 0.015", "radius: 0.016"), "a")[0]
    whole = sharing(again, first)
    assert all(whole.links[name] is first.links[name] for name in first.links)
    part = sharing(changed, first)
    assert part.links["segment 1"] is first.links["segment 1"]
    assert part.links["segment 2"] is not first.links["segment 2"]
    assert part.links["segment 2"].body.basis is first.links["segment 2"].body.basis
    assert part.links["segment 2"].body.section.radius == 0.016
    assert changed.links["segment 2"].body.basis is not first.links["segment 2"].body.basis


def test_the_page_stays_usable_while_kernels_compile(studio, monkeypatch):
    """A build that takes seconds, as that of a new kind of robot, is told with its time; edits are taken at once, and
    the last one is built when it is done."""
    own, begun = sessions.read, threading.Event()

    def slow(text, name):
        begun.set()
        time.sleep(2.0)
        return own(text, name)

    monkeypatch.setattr(sessions, "read", slow)
    studio.document.put(["name"], "first")
    assert begun.wait(10.0)
    monkeypatch.setattr(sessions, "read", own)
    began = time.perf_counter()
    for k in range(5):
        studio.document.put(["name"], f"arm {k}")
    assert time.perf_counter() - began < 1.0
    time.sleep(max(0.0, 1.7 - studio.busy_for))
    assert "building for 2 s: kernels of a new kind of robot compile once" in state_text(studio.document, studio)
    assert studio.wait() and studio.model.name == "arm 4"
    assert "2 coordinates, 1 input; stable equilibrium" in state_text(studio.document, studio)


def test_the_page_tells_what_is_wrong(studio, monkeypatch):
    """A full disk, mistakes, and a robot that is good again, in this order of weight."""
    studio.document.put(["links", 0, "body", "length"], -1.0)
    assert studio.wait()
    assert state_text(studio.document, studio) == "1 mistake; the last good robot is shown"

    def full(path, write):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(documents, "write_whole", full)
        studio.document.put(["name"], "other")
    assert "No space left on device" in state_text(studio.document, studio)
    studio.document.put(["links", 0, "body", "length"], 0.3)
    assert studio.wait() and "2 coordinates" in state_text(studio.document, studio)


def test_memory_does_not_grow_with_edits(studio):
    """After 60 more edits and computations the process holds no more models, scenes and threads than after 20."""
    import gc

    def busy(count):
        for k in range(count):
            studio.document.put(["links", 0, "body", "material", "young"], 1e6 + k)
            assert studio.wait()
            if k % 10 == 0:
                studio.document.put(["links", 0, "body", "basis", "bending_y"], 1 + k // 10 % 2)
                assert studio.wait()
                studio.solve_statics("rest", [1.0])
                finished(studio)
        studio.shown.clear()
        gc.collect()
        return sum(type(one) is ls.Model for one in gc.get_objects()), threading.active_count()

    models, threads = busy(20)
    more, later = busy(60)
    assert more <= models + 2 and later <= threads


def test_ranges_of_inputs_follow_the_robot_some_time_after_an_edit(studio):
    """A rod that is a hundred times as stiff keeps the range of its tendon at first, and gets that of the viewer for
    this robot after a pause; more modes, which need hardly other tensions, keep it."""
    (first,) = studio.view.inputs
    studio.document.put(["links", 0, "body", "basis", "bending_y"], 3)
    assert studio.wait() and studio.model.nv == 4 and studio.view.inputs == [first]
    studio.document.put(["links", 0, "body", "material", "young"], 1e8)
    assert studio.wait()
    end = time.monotonic() + 20.0
    while studio.view.inputs == [first] and time.monotonic() < end:
        time.sleep(0.02)
    assert studio.view.inputs == input_sliders(studio.model) and studio.view.inputs[0].high > 20.0 * first.high
    link = {"type": "WrenchInput", "name": "up", "link": "rod", "directions": [[0], [0], [0], [0], [0], [1]]}
    studio.document.put(["actuators", 0], link)
    assert studio.wait() and not studio.built.faults and studio.view.inputs[0].unit == "N"
    assert studio.view.inputs[0].low < 0.0
