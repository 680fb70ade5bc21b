"""Branches, sweeps and identification in the studio: they are those of the library, and their tables are read."""

from __future__ import annotations

import time

import numpy as np
import pytest

import lissom as ls
from lissom.studio.cursor_plot import curves
from lissom.studio.document import RobotDocument
from lissom.studio.graphs import fit_table, graph_of
from lissom.studio.runs import Axis, branch_run, places_of_values, shown_as_motion, sweep_run, table_of, varied_names
from lissom.studio.session import StudioSession, inputs_of, summary
from lissom.studio.values import table_expression
from lissom.studio.values import table_of as table_text_of

ARM = """\
name: arm
links:
  - name: rod
    body:
      type: Rod
      length: 0.3
      section: {type: SectionCircle, radius: 0.02}
      material: {young: 1.0e6, density: 1000, viscosity: 4.0e3}
      basis: {type: BasisLegendre, bending_y: 1}
actuators:
  - {type: Tendon, name: up, link: rod, offset: [0, 0.01]}
"""
PNG = b"\x89PNG"


@pytest.fixture
def studio(tmp_path):
    """A session of the arm, whose first robot has been built."""
    path = tmp_path / "arm.yaml"
    path.write_text(ARM, encoding="utf-8")
    made = StudioSession(RobotDocument(path))
    assert made.wait()
    yield made
    made.stop()


def finished(studio):
    """Wait until a computation has ended; returns the note."""
    end = time.monotonic() + 60.0
    while studio.run is not None and time.monotonic() < end:
        time.sleep(0.01)
    assert studio.run is None
    return studio.note


def test_a_branch_is_that_of_continuation(studio):
    """Points and events are those of the call that is told; the branch can be played and has a graph."""
    assert studio.follow_branch("bend", [4.0], 1.0, 0.2, 100)
    assert "branch of" in finished(studio)
    result = studio.results["bend"]
    expected = ls.continuation(studio.model, u=[4.0], factor_range=(0.0, 1.0), step=0.2, max_points=100)
    np.testing.assert_array_equal(result.value.q, expected.q)
    assert result.call == "branch = ls.continuation(model, u=[4], factor_range=(0, 1), step=0.2)"
    assert studio.view.mode == "replay"
    np.testing.assert_allclose(studio.view.motion.rows[-1][0], expected.q[-1], atol=1e-12)
    assert graph_of([result])[:4] == PNG and "no events" in summary(result)
    assert studio.follow_branch("back", [4.0], -0.5, 0.2, 100)
    finished(studio)
    assert studio.results["back"].value.factor[-1] == -0.5


def test_a_stopped_branch_keeps_its_points(studio):
    """Stop ends a long branch at its next point; what it has found so far is a result."""
    assert studio.follow_branch("long", [1.0], 1e6, 1e-3, 1_000_000)
    end = time.monotonic() + 60.0
    while not (studio.run and studio.run.said) and time.monotonic() < end:
        time.sleep(0.005)
    run = studio.run
    assert run.done is None and run.said.endswith(" points") and run.text.startswith(f"long: {run.said.split()[0][:1]}")
    studio.stop_run()
    assert "stopped" in finished(studio)
    branch = studio.results["long"].value
    assert len(branch.factor) > 1 and branch.ended == "interrupted"


def test_statics_and_modes_are_stopped(studio, monkeypatch):
    """A search for an equilibrium ends when it reports next, and modes do before the eigenvalues."""
    from lissom.studio import session as sessions

    def slow(model, u, guess, progress):
        for k in range(2000):
            time.sleep(0.005)
            progress(k)
        raise AssertionError("was not stopped")

    monkeypatch.setattr(sessions, "solve_statics", slow)
    for start in (studio.solve_statics, studio.find_modes):
        assert start("long", [1.0])
        time.sleep(0.05)
        studio.stop_run()
        assert finished(studio) == "long: stopped" and "long" not in studio.results


def test_the_curves_of_a_motion_and_their_cursor(studio):
    """Curves start at zero and end where the tip has moved; inputs that do not change are left out. The cursor shows
    the robot at its time."""
    assert studio.simulate("swing", 0.2, ["5*minimum(10*t, 1)"], True)
    finished(studio)
    result = studio.results["swing"]
    motion, rows = result.value, np.arange(len(result.value.t))
    options = curves(result, rows)
    tip = ls.frame_pose(studio.model, motion.q, "rod")[:, :3, 3]
    for series, moved in zip(options["series"], (tip - tip[0]).T):
        points = np.array(series["data"])
        np.testing.assert_allclose(points[:, 0], motion.t, atol=1e-6)
        np.testing.assert_allclose(points[:, 1], moved, atol=1e-4 * np.abs(moved).max() + 1e-12)
    assert [series["name"] for series in options["series"]] == ["Δx of rod", "Δy of rod", "Δz of rod", "up"]
    assert studio.simulate("still", 0.1, ["3"], True)
    finished(studio)
    assert len(curves(studio.results["still"], np.arange(2))["series"]) == 3


def test_a_sweep_of_two_values_is_recorded(studio):
    """Each sample is the equilibrium of the library; the folder beside the robot is read by SweepResults, and the graph
    has a curve for each second value."""
    axes = [Axis("u.up", 0.0, 5.0, 3), Axis("rod.material.young", 5e5, 1e6, 2)]
    assert studio.sweep("grid", [0.0], axes)
    assert "6 equilibria over u.up and rod.material.young" in finished(studio)
    swept = studio.results["grid"].value
    assert swept.values.shape == (6, 2) and swept.found.all() and swept.stable.all()
    for (u, young), q in zip(swept.values, swept.q):
        model = studio.model.with_({"rod.material.young": young})
        np.testing.assert_allclose(q, ls.solve_statics(model, [u]).q, atol=1e-8)
    folder = studio.document.folder / "arm results" / "grid"
    assert ls.SweepResults.load(folder).count == 6
    assert graph_of([studio.results["grid"]])[:4] == PNG
    assert "ls.Span(0, 5, steps=3)" in studio.results["grid"].call


def test_samples_without_an_equilibrium_are_told(studio):
    """A value that breaks a rule is a failed sample; the others are found."""
    assert studio.sweep("bad", [0.0], [Axis("rod.length", -0.1, 0.3, 2)])
    assert "1 not found" in finished(studio)
    assert studio.results["bad"].value.found.tolist() == [False, True]


def test_values_are_identified_from_a_table(studio, tmp_path):
    """Markers of a softer arm, one of them missing, give its modulus with an interval; it is written into the file."""
    truth = studio.model.with_({"rod.material.young": 7e5})
    u = np.linspace(0.0, 6.0, 5)
    rest = ls.solve_statics(truth, u[:, None]).q
    rows = np.hstack([u[:, None], ls.frame_pose(truth, rest, "rod")[:, :3, 3],
                      ls.frame_pose(truth, rest, "rod", 0.5)[:, :3, 3]])  # fmt: skip
    cells = [[f"{x:.12g}" for x in row] for row in rows]
    cells[2][4] = ""
    names = "up,rod.x,rod.y,rod.z,rod@0.5.x,rod@0.5.y,rod@0.5.z"
    (tmp_path / "seen.csv").write_text("\n".join([names, *(",".join(row) for row in cells)]), encoding="utf-8")
    assert studio.identify("soft", "seen.csv", ["rod.material.young"], False)
    assert "1 values" in finished(studio)
    result = studio.results["soft"]
    assert result.value.values["rod.material.young"] == pytest.approx(7e5, rel=1e-6)
    assert "rod.material.young" in fit_table(result) and "7e+05" in fit_table(result)
    assert "ls.fit(model, ['rod.material.young'], u, measured)" in result.call
    studio.take_values("soft")
    assert studio.wait() and "viscosity: 4.0e3" in studio.document.text
    assert studio.model.description.links["rod"].body.material.young == pytest.approx(7e5, rel=1e-6)


def test_a_motion_is_identified_from_what_to_csv_writes(studio, tmp_path):
    """The table of a motion that the library writes gives its viscosity."""
    truth = studio.model.with_({"rod.material.viscosity": 6e3})
    t = np.linspace(0.0, 0.4, 81)
    motion = ls.simulate(truth, 0.4, u=ls.Samples(t, np.where(t < 0.2, 4.0, 1.0)[:, None], "hold"), t_eval=t)
    motion.to_csv(tmp_path / "motion.csv", model=truth)
    assert studio.identify("damping", "motion.csv", ["rod.material.viscosity"], True)
    assert "1 values" in finished(studio)
    assert studio.results["damping"].value.values["rod.material.viscosity"] == pytest.approx(6e3, rel=0.02)


def test_mistakes_of_tables_are_named(studio, tmp_path):
    """Missing columns, cells that are no numbers, unknown links and uneven times are told with file and line."""
    path = tmp_path / "bad.csv"
    for text, message in (
        ("up\n", "lines of numbers"), ("up,rod.x\n1,2\n", "columns <link>.x"),
        ("up,rod.x,rod.y,rod.z\n1,2,3\n", "line 2: must have 4 cells"),
        ("up,rod.x,rod.y,rod.z\n1,2,3,far\n", "line 2: rod.z: must be a number"),
        ("leg.x,leg.y,leg.z\n1,2,3\n", "name of a link or frame"),
        ("rod@tip.x,rod@tip.y,rod@tip.z\n1,2,3\n", "abscissa"),
    ):  # fmt: skip
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ls.ModelError, match=message):
            table_of(path, studio.model)
    path.write_text("t,rod.x,rod.y,rod.z\n0,1,2,3\n1,1,2,3\n3,1,2,3\n", encoding="utf-8")
    with pytest.raises(ls.ModelError, match="equal steps"):
        studio.identify("bad", "bad.csv", ["rod.length"], True)
    with pytest.raises(ls.ModelError, match="must lie below the folder"):
        studio.identify("bad", "../bad.csv", ["rod.length"], False)
    with pytest.raises(ls.ModelError, match="at least one value"):
        studio.identify("bad", "bad.csv", [], False)


def test_wrong_arguments_of_branches_and_sweeps():
    """Wrong ends, steps and values are refused before anything runs."""
    for given, message in (((0.0, 0.1, 10), "must not be 0"), ((1.0, 0.0, 10), "step: must be > 0"),
                           ((1.0, 0.1, 1), "points")):  # fmt: skip
        with pytest.raises(ls.ModelError, match=message):
            branch_run([], *given)
    one = Axis("u.up", 0.0, 1.0, 3)
    for axes, message in (([], "one or two"), ([one, one], "different"), ([Axis("u.up", 0.0, 1.0, 1)], "steps"),
                          ([one, Axis("rod.length", 0.1, 0.2, 5000)], "at most 10,000")):  # fmt: skip
        with pytest.raises(ls.ModelError, match=message):
            sweep_run([], axes, None)


def test_names_that_a_sweep_varies_and_places_of_values(studio):
    """Inputs come first, then numbers of the description; their places in the document hold these numbers."""
    names = varied_names(studio.model.description, studio.model.inputs.names)
    assert names[0] == "u.up" and {"rod.length", "rod.material.young"} <= set(names)
    data = studio.document.data
    places = places_of_values({"rod.material.young": 2e6, "up.offset": np.array([0.0, 0.012])}, data)
    assert places == [(["links", 0, "body", "material", "young"], 2e6), (["actuators", 0, "offset"], [0.0, 0.012])]
    with pytest.raises(ls.ModelError, match="no place of its own"):
        places_of_values({"rod.material.poisson": 0.4}, data)


def test_tables_of_inputs():
    """A table is linear between its times and constant outside; other texts are none."""
    f = ls.Expression([table_expression("0.5: 1, 1: 5; 2: -1")], "t")
    t = np.linspace(0.0, 3.0, 61)
    found = np.array([np.asarray(f(x)).item() for x in t])
    np.testing.assert_allclose(found, np.interp(t, [0.5, 1.0, 2.0], [1.0, 5.0, -1.0]), atol=1e-12)
    for text in ("", "5", "1: 2", "1: 2, 0: 3", "sin(t)", "0: a, 1: 2", "0: 1, 1: inf"):
        assert table_expression(text) == "" and table_text_of(text) == []
    u = inputs_of(["0: 0, 1: 4", "2"])
    np.testing.assert_allclose(u(0.5), [2.0, 2.0])


def test_results_are_compared_and_renamed(studio):
    """Two motions have one graph and ghosts in the scene by their new names; other kinds are not mixed."""
    for name, tension in (("slow", "1"), ("fast", "3")):
        assert studio.simulate(name, 0.1, [tension], True)
        finished(studio)
    studio.rename("slow", "one newton")
    with pytest.raises(ls.ModelError, match="must be new"):
        studio.rename("fast", "one newton")
    assert list(studio.results) == ["one newton", "fast"]
    assert graph_of(list(studio.results.values()))[:4] == PNG
    studio.toggle_ghost("one newton")
    ((name, model, motion),) = studio.ghost_motions()
    assert name == "one newton" and model is studio.model and motion is studio.results["one newton"].value
    studio.rename("one newton", "again")
    assert studio.ghosts == ["again"]
    assert studio.solve_statics("rest", [1.0])
    finished(studio)
    with pytest.raises(ls.ModelError, match="graph: must be of motions"):
        graph_of(list(studio.results.values()))
    studio.forget("again")
    assert studio.ghosts == [] and studio.ghost_motions() == []


def test_stored_motions_are_there_again(studio):
    """A motion that was written beside the robot is a result of the next session of this file; files of other robots
    and broken files are not."""
    assert studio.simulate("swing", 0.05, ["1"], True)
    finished(studio)
    path = studio.store("swing", "npz")
    (path.parent / "broken.npz").write_bytes(b"nothing")
    np.savez(path.parent / "other.npz", a=np.zeros(3))
    again = StudioSession(RobotDocument(studio.document.path))
    try:
        assert again.wait() and list(again.results) == ["swing"]
        np.testing.assert_array_equal(again.results["swing"].value.q, studio.results["swing"].value.q)
        assert "broken.npz" in again.note or "other.npz" in again.note
    finally:
        again.stop()


def test_configurations_are_played_one_after_another(studio):
    """The first and the last frame are the first and the last configuration; one alone stands still."""
    q = np.array([[0.0, 0.0], [1.0, 2.0], [0.5, 0.0]])
    motion = shown_as_motion(studio.model, q, np.zeros(1))
    np.testing.assert_allclose(motion.q[[0, -1]], q[[0, -1]])
    assert np.abs(motion.q[:, 1]).max() == pytest.approx(2.0, abs=0.05)
    assert np.ptp(shown_as_motion(studio.model, q[:1], np.zeros(1)).q) == 0.0


def test_a_motion_is_filmed_beside_the_robot(studio, monkeypatch):
    """A motion becomes a film of as many pictures as it is long, while the page goes on; a film that is stopped leaves
    no file; an equilibrium does not move."""
    pytest.importorskip("pyvista")
    from imageio_ffmpeg import count_frames_and_secs

    monkeypatch.setattr("lissom.studio.session._FPS", 5.0)
    assert studio.simulate("swing", 0.2, ["5*minimum(10*t, 1)"], True)
    finished(studio)
    assert studio.film("swing") and not studio.film("swing")
    assert finished(studio).startswith("wrote swing.mp4 in ") and list(studio.results) == ["swing"]
    path = studio.document.folder / "arm results" / "swing.mp4"
    assert count_frames_and_secs(str(path)) == (21, pytest.approx(4.2, abs=0.3))
    assert studio.calls[-1] == "motion.animate('swing.mp4')"
    path.unlink()
    assert studio.film("swing")
    end = time.monotonic() + 60.0
    while not (studio.run and studio.run.done) and time.monotonic() < end:
        time.sleep(0.005)
    assert studio.run.said.endswith(" of 20 pictures")
    studio.stop_run()
    assert finished(studio) == "swing.mp4: stopped" and not list(path.parent.iterdir())
    assert studio.solve_statics("rest", [1.0])
    finished(studio)
    with pytest.raises(ls.ModelError, match="must move"):
        studio.film("rest")
