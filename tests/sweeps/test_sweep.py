"""Sweeps in one process: computation, files, refused arguments, and reading."""

import csv
import json

import numpy as np
import pytest
from sweeps import sweep_functions
from sweeps.sweep_functions import GRID, small, square, tip

import lissom as ls
from lissom.cli.main import main

pytest.importorskip("pyarrow", reason="results are Parquet files")


def run(task, parameters, out, **options):
    """A sweep in this process."""
    return ls.sweep(task, parameters, out=out, **({"workers": 1} | options))


@pytest.fixture(scope="module")
def tips(tmp_path_factory):
    """The sweep of a function over stiffnesses and tensions, one of which fails."""
    return run(tip, GRID, tmp_path_factory.mktemp("tips") / "out", robot=small(), units={"tip": "m"}, chunk=4)


def test_results_are_those_of_single_calls(tips):
    """Each sample has the results of the same calls for the robot with its values, to the last bit."""
    for young, tension, found in zip(tips["arm.material.young"], tips["u.up"], tips["tip"]):
        model = small().with_({"arm.material.young": young}).build()
        if tension < 1.9:
            q = ls.solve_statics(model, [tension, 0.0]).q
            np.testing.assert_array_equal(found, ls.frame_pose(model, q, "arm")[:3, 3])


def test_failed_samples_are_kept_with_their_reason(tips):
    """They stop nothing, and are NaN among the results."""
    assert tips.failures == dict.fromkeys((2, 5, 8), "ValueError: a tension too large")
    assert tips.is_complete and np.isnan(tips["tip"][[2, 5, 8]]).all() and np.isfinite(tips["tip"][[0, 1, 3]]).all()


def test_units_and_provenance_are_kept(tips):
    """Units come from the description and the caller; versions, the seed, and a robot file that is the same robot."""
    assert tips.units == {"arm.material.young": "Pa", "u.up": "", "tip": "m", "stable": ""}
    header = json.loads((tips.path / "sweep.json").read_text(encoding="utf-8"))
    assert header["seed"] == 0 and header["origin"]["lissom"] == ls.__version__ and header["origin"]["numpy"]
    (tips.path / "robot.yaml").write_text(header["robot"], encoding="utf-8")
    assert ls.load_robot(tips.path / "robot.yaml").links == small().links


def test_a_table_for_spreadsheets(tips, tmp_path):
    """The table has the numbers of the DataFrame to the last digit, with units in its header."""
    tips.to_csv(tmp_path / "tips.csv")
    with (tmp_path / "tips.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    frame = tips.pandas().reset_index()
    names = [f"{name} [{tips.units[name.split('[')[0]]}]" if tips.units.get(name.split("[")[0]) else name
             for name in frame.columns]  # fmt: skip
    assert rows[0] == names and len(rows) == 1 + len(frame)
    for k, name in enumerate(frame.columns):
        for row, value in zip(rows[1:], frame[name].tolist()):
            known = float(row[k]) if isinstance(value, float) and row[k] else row[k]
            assert known == ("" if value is None or value != value else value if known != row[k] else str(value))


def test_pandas_and_xarray(tips):
    """Both hold the same numbers, with parameters, units and provenance."""
    frame, data = tips.pandas(), tips.xarray()
    np.testing.assert_array_equal(frame["tip[2]"], tips["tip"][:, 2])
    np.testing.assert_array_equal(data["tip"], tips["tip"])
    assert list(data["arm.material.young"].dims) == ["number"] and data["tip"].attrs["units"] == "m"
    assert data.attrs["seed"] == 0 and data.attrs["version lissom"] == ls.__version__
    assert frame.loc[2, "failure"] and frame.attrs["units"]["tip"] == "m"
    grid = data["tip"].set_index(number=["arm.material.young", "u.up"]).unstack()
    assert grid.sizes["u.up"] == 3


@pytest.mark.parametrize(
    "study",
    [
        ls.StudyStatics(results=("q", "arm.pose", "energy.total", "least_stiffness")),
        ls.StudySimulation(0.05, dt=0.01, t_eval=[0.02, 0.05], results=("t", "q", "a", "u", "energy.kinetic")),
        ls.StudySimulation(0.05, dt=0.01, u=ls.Samples([0, 1], [[0, 0], [0, 3]]), results=("q", "t", "arm.position")),
        ls.StudySimulation(0.02, method="bdf", results=("q",)),
    ],
    ids=["statics", "motions", "samples", "adaptive"],
)
def test_samples_computed_together_are_those_computed_alone(study, tmp_path):
    """The same bits, whether a chunk holds one sample or all, and whatever the others are."""
    given = {"u.up": [0.0, 1.0, 2.0], "q0.arm[0]": [0.0, 0.5]}
    together, alone = (run(study, given, tmp_path / str(k), robot=small(), chunk=k) for k in (8, 1))
    assert not together.failures
    for name in study.results:
        np.testing.assert_array_equal(together[name], alone[name])


def test_starts_inputs_and_extras(tmp_path):
    """A trial has u, q0 and v0 of its parameters, by link or by number, and those for the function alone."""
    seen = []

    def look(trial):
        seen.append((trial.u, trial.q0, trial.v0, trial["extra.gain"], trial.robot.gravity[2], trial.model))
        return {"y": 1.0}

    given = {"u.side": [2.0, 4.0], "q0.arm[1]": [0.1], "v0[2]": [0.3], "extra.gain": [7.0], "gravity[2]": [-1.0]}
    run(look, given, tmp_path / "out", robot=small())
    u, q0, v0, gain, gravity, model = seen[0]
    np.testing.assert_array_equal(u, [0.0, 2.0])
    np.testing.assert_array_equal(q0, [0.0, 0.1, 0.0])
    np.testing.assert_array_equal(v0, [0.0, 0.0, 0.3])
    assert gain == 7.0 and gravity == -1.0 and seen[1][-1] is model


def test_one_bad_sample_spoils_no_batch(tmp_path):
    """Where one of the samples that run together fails, the others have the results that they have without it."""
    study = ls.StudySimulation(0.05, dt=0.01, results=("q",))
    rows = {"u.up": [0.0, 1.0, 2.0], "q0[0]": [0.1, 1e3, 0.2]}
    mixed = run(study, rows, tmp_path / "a", robot=small(), samples="listed", chunk=3)
    good = run(study, {k: [v[0], v[2]] for k, v in rows.items()}, tmp_path / "b", robot=small(), samples="listed")
    assert list(mixed.failures) == [1]
    np.testing.assert_array_equal(mixed["q"][[0, 2]], good["q"])


def test_a_robot_that_cannot_be_built_is_a_failed_sample(tmp_path):
    """The reason is that of the build."""
    found = run(ls.StudyStatics(), {"arm.material.young": [1e6, -1.0]}, tmp_path / "out", robot=small())
    assert list(found.failures) == [1] and "young: must be > 0" in found.failures[1]


def test_results_that_do_not_fit_are_failed_samples(tmp_path):
    """Names, shapes and types are those of the first sample; names of parameters are taken."""
    found = run(square, {"x": [1.0, 2.0, -1.0]}, tmp_path / "a")
    assert list(found.failures) == [2] and "['number'] are taken" in found.failures[2]
    found = run(lambda trial: {"y": np.ones(trial.number + 1)}, {"x": [1.0, 2.0]}, tmp_path / "b")
    assert "same names, shapes and types" in found.failures[1]
    found = run(lambda trial: {"y": object()} if trial.number else {"y": 0.0}, {"x": [1.0, 2.0]}, tmp_path / "c")
    assert "result 'y' must be a number, a text or an array of numbers" in found.failures[1]
    found = run(lambda trial: 3.0, {"x": [1.0]}, tmp_path / "d")
    assert "must return results by name (got 3.0)" in found.failures[0]


def test_texts_and_whole_numbers_are_results(tmp_path):
    """They come back unchanged."""
    found = run(lambda trial: {"word": f"n{trial.number}", "n": trial.number}, {"x": [1.0, 2.0]}, tmp_path / "a")
    assert found["word"].tolist() == ["n0", "n1"] and found["n"].dtype == np.int64


def test_a_sweep_goes_on_where_it_stopped(tmp_path):
    """Finished samples are not computed again; samples of damaged files are."""
    counted = []

    def count(trial):
        counted.append(trial.number)
        if trial.number == 5 and len(counted) < 8:
            raise KeyboardInterrupt
        return {"y": trial["x"]}

    given = {"x": list(range(10))}
    with pytest.raises(KeyboardInterrupt):
        run(count, given, tmp_path / "out", chunk=2)
    assert ls.SweepResults.load(tmp_path / "out").numbers.tolist() == [0, 1, 2, 3, 4]
    (tmp_path / "out" / "chunks" / "00000001-00000002.parquet").write_bytes(b"torn")
    done = len(counted)
    found = run(count, given, tmp_path / "out", chunk=2)
    assert sorted(counted[done:]) == [1, 2, 5, 6, 7, 8, 9]
    np.testing.assert_array_equal(found["y"], given["x"])
    done = len(counted)
    run(count, given, tmp_path / "out")
    assert len(counted) == done


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    """Chunks before it stay as they were, no half of one is left, and the same sweep goes on when there is room."""
    resource = pytest.importorskip("resource", reason="the system limits no files")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.setenv("LISSOM_TEST_FULL", "1")
    given, out = {"x": list(range(8))}, tmp_path / "out"
    try:
        with pytest.raises(OSError, match="finished samples are kept, and the same call continues the sweep"):
            run(sweep_functions.large, given, out, chunk=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    before = {file.name: file.read_bytes() for file in (out / "chunks").iterdir()}
    assert sorted(before) == [f"{k:08d}-{k:08d}.parquet" for k in range(4)]
    monkeypatch.delenv("LISSOM_TEST_FULL")
    found = run(sweep_functions.large, given, out, chunk=1)
    assert all((out / "chunks" / name).read_bytes() == data for name, data in before.items())
    whole = run(sweep_functions.large, given, tmp_path / "whole")
    np.testing.assert_array_equal(found["noise"], whole["noise"])


def test_a_folder_of_another_sweep_is_refused(tmp_path):
    """The error says what differs."""
    run(square, {"x": [1.0]}, tmp_path / "out")
    with pytest.raises(
        ls.ModelError, match=r"out: the folder holds another sweep, whose samples differs.*\(got '.*out'\)"
    ):
        run(square, {"x": [2.0]}, tmp_path / "out")
    with pytest.raises(ls.ModelError, match="whose study differs"):
        run(tip, {"x": [1.0]}, tmp_path / "out")
    run(square, {"extra.x": [1.0]}, tmp_path / "b", robot=small())
    with pytest.raises(ls.ModelError, match="whose robot differs"):
        run(square, {"extra.x": [1.0]}, tmp_path / "b", robot=small().with_({"gravity[2]": 0.0}))
    with pytest.raises(ls.ModelError, match="must hold the files of a sweep"):
        ls.SweepResults.load(tmp_path)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"task": 3}, r"task: must be a function of a Trial, a StudyStatics or a StudySimulation \(got 3\)"),
        ({"robot": 3}, r"robot: must be a Robot, .* or the path of a robot file \(got 3\)"),
        ({"parameters": {"arm.material.yung": [1.0]}}, r"the nearest is 'young' \(got 'yung'\)"),
        ({"parameters": {"u.upp": [1.0]}}, r"parameter 'u.upp': .*; the nearest is 'up' \(got 'upp'\)"),
        (
            {"parameters": {"q0[3]": [1.0]}},
            r"parameter 'q0\[3\]': must be below the number of coordinates, 3 \(",
        ),
        ({"parameters": {"v0.leg[0]": [1.0]}}, r"parameter 'v0.leg\[0\]': must name one of the links \['arm'\]"),
        ({"workers": 0}, r"workers: must be an integer >= 1 \(got 0\)"),
        ({"workers": 1, "cluster": "tcp://x:1"}, r"workers: give a number or a cluster, not both"),
        ({"chunk": 0}, r"chunk: must be an integer >= 1 \(got 0\)"),
        ({"task": ls.StudyStatics(), "units": {"q": "m"}}, r"units: must be left out for a study"),
    ],
)
def test_what_is_wrong_with_a_sweep(options, words, tmp_path):
    """The error names the argument, the rule and the value, before anything is computed."""
    given = {"task": tip, "parameters": {"u.up": [1.0]}, "robot": small(), "workers": 1} | options
    with pytest.raises(ls.ModelError, match=words):
        ls.sweep(given.pop("task"), given.pop("parameters"), out=tmp_path / "out", **given)


def test_what_has_no_name_of_its_own_goes_on_in_another_process(tmp_path):
    """Controllers, functions of a robot and inputs are recognised by their contents, not by their addresses."""

    def asked():
        robot = small()
        robot.add_point_load("push", "arm", force=lambda t: (0.0, 0.0, np.sin(t)))
        law = ls.Controller(lambda t, q, v, z: [0.1, 0.0])
        return ls.StudySimulation(0.02, dt=0.01, method="generalized_alpha", controller=law), robot

    for _ in range(2):
        study, robot = asked()
        found = run(study, {"v0[0]": [0.0, 0.1]}, tmp_path / "out", robot=robot)
        assert not found.failures


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"task": ls.StudyStatics(results=("qq",))}, "study: results: must be one of"),
        ({"task": ls.StudyStatics(results="q")}, "study: results: must be a list of names"),
        ({"task": ls.StudySimulation(1.0, results=("hand.position",))}, "study: results: must be one of"),
        ({"task": ls.StudyStatics(), "robot": None}, "need a robot"),
        (
            {"parameters": {"up": [1.0]}},
            r"parameter 'up': must lead to a number; the input .* is 'u\.up' \(got a Tendon",
        ),
        ({"parameters": {"arm": [1.0]}}, r"parameter 'arm': must lead to a number \(got a Link"),
        ({"parameters": {"arm.material": [1.0]}}, r"'arm\.material': must lead to a number \(got a Material"),
        ({"parameters": {"links": [1.0]}}, r"'links': must lead to a number \(got a dict"),
        ({"parameters": {"*.basis": [1.0]}}, r"must lead to a number \(got a BasisLegendre"),
    ],
)
def test_what_would_spoil_every_sample_is_refused(given, words, tmp_path):
    """Before anything is computed or written, instead of as the failure of every sample."""
    given = {"task": ls.StudyStatics(), "parameters": {"u.up": [1.0]}, "robot": small()} | given
    with pytest.raises(ls.ModelError, match=words):
        ls.sweep(given.pop("task"), given.pop("parameters"), out=tmp_path / "out", workers=1, **given)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["notes.txt", "chunks/00000000-00000001.parquet"])
def test_a_folder_with_other_files_is_left_as_it_is(tmp_path, name):
    """A sweep is written to a new or an empty folder, or continued; files of the user are neither read nor removed."""
    file = tmp_path / "out" / name
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    for out in (tmp_path / "out", file):
        with pytest.raises(ls.ModelError, match="out: must be a"):
            ls.sweep(lambda trial: {"y": 1.0}, {"x": [1.0, 2.0]}, out=out, workers=1)
    assert [x for x in (tmp_path / "out").rglob("*") if x.is_file()] == [file] and file.read_text() == "mine"


def test_a_first_sample_that_fails_is_reported_immediately(tmp_path):
    """Others may fail for the same reason, a slip in the function for one."""
    with pytest.warns(ls.PlausibilityWarning, match=r"the first sample failed \(NameError: .*nosuch"):
        found = ls.sweep(lambda trial: {"y": nosuch}, {"x": [1.0, 2.0]}, out=tmp_path / "out", workers=1)  # noqa: F821
    assert len(found.failures) == 2


@pytest.mark.parametrize("value", [1.0, None, "text"])
def test_numbers_do_not_replace_parts(value):
    """In `with_` as well: the error quotes the name, and suggests the intended one."""
    with pytest.raises(ls.ModelError, match=r"robot 'small' > up: is a Tendon, .* such as up\."):
        small().with_({"up": value})


STUDY = """\
robot: small.yaml
parameters:
  arm.material.young: {low: 1e6, high: 2e6, steps: 2}
  u.up: [0, 1]
samples: {kind: grid}
statics: {results: [q, arm.position]}
"""


@pytest.fixture
def study_file(tmp_path):
    """Path of a study file beside its robot file."""
    ls.save_robot(small(), tmp_path / "small.yaml")
    (tmp_path / "study.yaml").write_text(STUDY, encoding="utf-8")
    return tmp_path / "study.yaml"


def test_the_command_line_runs_study_files(study_file, tmp_path, capsys):
    """The same results as from Python; progress is printed."""
    assert main(["sweep", str(study_file), "--out", str(tmp_path / "out"), "--workers", "1"]) == 0
    with (tmp_path / "out" / "sweep.csv").open(encoding="utf-8") as stream:
        assert len(list(stream)) == 1 + ls.SweepResults.load(tmp_path / "out").count
    text = capsys.readouterr().out
    assert "4 of 4 samples, 0 failed" in text and str(tmp_path / "out" / "sweep.json") in text
    given = {"arm.material.young": [1e6, 2e6], "u.up": [0, 1]}
    same = run(ls.StudyStatics(("q", "arm.position")), given, tmp_path / "same", robot=small())
    np.testing.assert_array_equal(ls.SweepResults.load(tmp_path / "out")["q"], same["q"])


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("samples: {kind", "sample: {kind", "line 5: study > sample: must be one of robot, parameters"),
        ("steps: 2", "step: 2", "line 3: study > parameters > arm.material.young > step: must be one of low, high"),
        ("high: 2e6", "high: 2e5", "line 3: parameters > arm.material.young: span: high: must be > 1e+06"),
        ("statics: {results: [q, arm.position]}", "", "line 1: a study needs statics or simulation, and not both"),
        ("kind: grid", "kinds: grid", "line 5: study > samples > kinds: must be one of kind, count, seed"),
        ("statics: {res", "simulation: {res", "line 6: simulation: .*duration"),
        ("robot: small.yaml", "robot: 3", "line 1: study > robot: must be the path of a robot file"),
        ("statics: {results", "statics: {result", "line 6: study > statics > result: must be one of results"),
    ],
)
def test_what_is_wrong_with_a_study_file(old, new, words, study_file, capsys, tmp_path):
    """The error names the file, the line, the rule and the value."""
    study_file.write_text(STUDY.replace(old, new), encoding="utf-8")
    assert main(["sweep", str(study_file), "--out", str(tmp_path / "out"), "--workers", "1"]) == 2
    error = capsys.readouterr().err
    assert all(word in error for word in words.split(".*")) and "study.yaml, line" in error


def test_motions_in_study_files(tmp_path):
    """Inputs over time are samples, and lists are times."""
    ls.save_robot(small(), tmp_path / "small.yaml")
    text = STUDY.replace("statics: {results: [q, arm.position]}", "simulation: {duration: 0.02, dt: 0.01, results: [q],"
                         " t_eval: [0.01, 0.02], u: {t: [0, 1], u: [[0, 0], [1, 1]]}}")  # fmt: skip
    study, out = tmp_path / "study.yaml", tmp_path / "out"
    study.write_text(text, encoding="utf-8")
    assert main(["sweep", str(study), "--out", str(out), "--workers", "1", "--quiet"]) == 0
    assert ls.SweepResults.load(out)["q"].shape == (4, 2, 3)
