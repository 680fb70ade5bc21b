"""The command line: what it prints, writes and returns."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli.small_robot import EXAMPLES, SMALL, write

import lissom as ls
from lissom.cli.main import main
from lissom.cli.simulate import summarise
from lissom.io.inputs_file import read_inputs

# -- info -------------------------------------------------------------------------------------------------------------


def test_info_lists_links_inputs_and_totals(capsys):
    """Purpose: every link with its joint, body, size and mass, every input, and the sizes of the model."""
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


def test_info_says_what_the_robot_touches_and_what_it_swims_in(tmp_path, capsys):
    """Purpose: a line for each contact with what touches what, and one for the fluid with the links that feel it."""
    ball = "  - {name: ball, body: {type: RigidBody, shape: sphere, radius: 0.1, density: 1e3}}\n"
    world = """\
contacts:
  - {name: floor, links: [arm, ball], shape: {type: ShapePlane}, friction: 0.5}
  - {name: lid, links: arm, shape: {type: ShapeSphere, radius: 0.1}, on: ball, stiffness: 2e3, exponent: 2}
  - {name: push, links: arm, others: ball}
fluid: {density: 1000, current: [0.1, 0, 0], links: {ball: null}}
"""
    text = SMALL.replace("actuators:", f"{ball}actuators:") + world
    assert main(["info", str(write(tmp_path / "r.yaml", text))]) == 0
    lines = capsys.readouterr().out.splitlines()
    law = "stiffness 100000, exponent 1.5"
    assert lines[-5:-1] == [
        f"contact 'floor' of 'arm', 'ball' with ShapePlane on the world: {law}, friction 0.5",
        "contact 'lid' of 'arm' with ShapeSphere on 'ball': stiffness 2000, exponent 2, friction 0",
        f"contact 'push' of 'arm' with links 'ball': {law}, friction 0",
        "fluid of 1000 kg/m³, with a current, felt by 'arm'",
    ]


def test_info_says_what_deformable_bodies_are(tmp_path, capsys):
    """Kinematics, number of coordinates, domain, volume and mass of each."""
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
    """Purpose: the demo's robot states the paper's rule in full, and nothing on stderr greets who runs it first."""
    assert main(["info", str(EXAMPLES / "cdm.yaml")]) == 0
    captured = capsys.readouterr()
    assert "nq 24, nv 24, nu 5" in captured.out and "mass 0.824668 kg" in captured.out
    assert captured.err == ""


def test_info_warns_on_stderr_about_too_few_gauss_points(tmp_path, capsys):
    """Purpose: AccuracyWarning reaches the user as one line that says what is lost and what would be enough."""
    text = (EXAMPLES / "cdm.yaml").read_text().replace("      interval_points: 2\n", "")
    assert main(["info", str(write(tmp_path / "cdm.yaml", text))]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("warning: link 'arm' > body: 5 Gauss points give the stiffness to ")
    assert lines[0].endswith("; by default it takes 10")


def test_info_says_which_number_looks_like_a_slip_of_units(tmp_path, capsys):
    """Purpose: PlausibilityWarning reaches the user as one line with the entity, the value and the probable cause."""
    text = (EXAMPLES / "cdm.yaml").read_text().replace("young: 1.0e6", "young: 1.0")
    assert main(["info", str(write(tmp_path / "cdm.yaml", text))]) == 0
    expected = "warning: link 'arm' > body > material: young is 1 Pa, like no material (1 MPa is 1e6 and 1 GPa is 1e9)"
    assert capsys.readouterr().err.splitlines() == [expected]


def test_names_with_brackets_are_printed_as_they_are(tmp_path, capsys):
    """Purpose: a link name is never taken for markup."""
    path = write(tmp_path / "r.yaml", "links: [{name: '[red]x[/red] :smile:', body: {type: RigidBody, mass: 1}}]")
    assert main(["info", str(path)]) == 0
    assert "[red]x[/red] :smile:" in capsys.readouterr().out


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [["info"], ["simulate", "--duration", "1", "--out", "o"], ["statics", "--out", "o"]]
)
def test_wrong_files_return_2(command, tmp_path, capsys, monkeypatch):
    """Purpose: a missing or wrong robot file is one line on stderr, without a traceback and without output."""
    monkeypatch.chdir(tmp_path)
    assert main([*command, "none.yaml"]) == 2
    assert "none.yaml" in capsys.readouterr().err
    write(tmp_path / "bad.yaml", SMALL.replace("length: 0.3", "length: -0.3"))
    assert main([*command, "bad.yaml"]) == 2
    assert capsys.readouterr().err == "error: bad.yaml, line 6: link 'arm' > body: length: must be > 0 (got -0.3)\n"
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["simulate", "r.yaml", "--duration", "-1", "--out", "o"],
        ["simulate", "r.yaml", "--duration", "nan", "--out", "o"],
        ["simulate", "r.yaml", "--samples", "1", "--out", "o"],
        ["simulate", "r.yaml", "--rtol", "0", "--out", "o"],
        ["simulate", "r.yaml"],
        ["statics", "r.yaml", "--out", "o", "--inputs", "a=1", "--inputs-values", "1"],
    ],
)
def test_wrong_arguments_end_with_usage(arguments, capsys):
    """Purpose: argparse refuses what cannot be right, with status 2."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2 and "usage: lissom" in capsys.readouterr().err


def test_version_and_help(capsys):
    """Purpose: --version prints the version, --help names the three commands."""
    for argument, part in (("--version", f"lissom {ls.__version__}"), ("--help", "simulate")):
        with pytest.raises(SystemExit) as caught:
            main([argument])
        assert caught.value.code == 0 and part in capsys.readouterr().out


def test_help_imports_nothing_heavy():
    """Purpose: the parser alone starts quickly; numerics and plots are imported by the commands."""
    code = "import sys; from lissom.cli import main; main.parser(); print([m for m in sys.modules if m in %r])"
    heavy = ("numpy", "scipy", "warp", "pydantic", "matplotlib", "rich")
    done = subprocess.run([sys.executable, "-c", code % (heavy,)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- inputs -----------------------------------------------------------------------------------------------------------


def test_input_files_are_read_in_any_order_of_columns(tmp_path):
    """Purpose: columns are found by name; blank lines and spaces do not matter; what is left out is zero and named."""
    path = write(tmp_path / "u.csv", "b , t, a\n\n1, 0, 2\n3, 0.5 , 4\n\n")
    history = read_inputs(path, ("a", "gone", "b"))
    assert history.t.tolist() == [0, 0.5] and history.u.tolist() == [[2, 0, 1], [4, 0, 3]]
    assert history.missing == ("gone",)
    assert read_inputs(write(path, "t\n0\n1\n"), ()).u.shape == (2, 0)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["line 1", "empty", "t,up,side"]),
        ("time,up\n0,1\n1,1\n", ["line 1", "must hold the column 't'"]),
        ("t,up,sied\n0,1,1\n", ["line 1, column 3", "up, side", "(got 'sied')"]),
        ("t,up,up\n0,1,1\n", ["line 1, column 3", "'up' is given twice"]),
        ("t,up\n0,1\n1\n", ["line 3", "must hold 2 numbers", "(got 1)"]),
        ("t,up\n0,1\n1,\n", ["line 3, column 'up'", "must be a finite number (got '')"]),
        ("t,up\n0,1\n\n1,two\n", ["line 4, column 'up'", "(got 'two')"]),
        ("t,up\n0,nan\n1,1\n", ["line 2, column 'up'", "(got 'nan')"]),
        ("t,up\n0,1\n1,1\n1,2\n", ["line 4, column 't'", "later than the row before (got 1)"]),
        ("t,up\n0,1\n", ["at least 2 rows", "(got 1)"]),
        ('t,up\n0,"1\n', ["line 2"]),
    ],
)
def test_wrong_input_files_are_named_with_line_and_column(text, parts, tmp_path):
    """Purpose: file, line, column and value stand in the message."""
    with pytest.raises(ls.ModelError) as caught:
        read_inputs(write(tmp_path / "u.csv", text), ("up", "side"))
    for part in ["u.csv, ", *parts]:
        assert part in str(caught.value)


# -- simulate and statics ---------------------------------------------------------------------------------------------


def test_simulate_writes_the_trajectory_and_says_what_it_did(small, tmp_path, capsys):
    """Purpose: npz, csv and a graph; degrees of freedom, steps, real-time factor, tip and energy are printed."""
    inputs = write(tmp_path / "u.csv", "t,up\n0,0\n0.1,0.5\n0.2,0.5\n")
    out = tmp_path / "deep" / "out"
    assert main(["simulate", str(small), "--inputs", str(inputs), "--out", str(out), "--samples", "11"]) == 0
    text = capsys.readouterr().out
    for part in (
        "therefore zero: side",
        "3 degrees of freedom, 0.2 s in",
        "times real time",
        "tip of arm: ",
        "energy balance",
    ):
        assert part in text
    assert {path.name for path in out.iterdir()} - {"shapes.png"} == {
        "trajectory.npz",
        "trajectory.csv",
        "trajectory.png",
    }
    with np.load(out / "trajectory.npz") as saved:
        assert saved["t"].tolist() == np.linspace(0, 0.2, 11).tolist() and saved["q"].shape == (11, 3)
        np.testing.assert_allclose(saved["u"][:, 1], 0.0, rtol=0, atol=0)
        np.testing.assert_allclose(saved["u"][5], [0.5, 0.0], rtol=1e-12)
    with (out / "trajectory.csv").open(encoding="utf-8") as stream:
        rows = list(csv.reader(line for line in stream if not line.startswith("#")))
        assert len(rows) == 12


def test_quiet_says_nothing(small, tmp_path, capsys):
    """Purpose: --quiet leaves stdout and stderr empty."""
    assert main(["simulate", str(small), "--duration", "0.02", "--out", str(tmp_path / "o"), "--quiet"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err == ""


def test_a_failed_run_writes_what_it_has_and_returns_3(small, tmp_path, capsys, monkeypatch):
    """Purpose: the partial trajectory of a ConvergenceError is kept."""
    partial = ls.simulate(ls.load_robot(small).build(), 0.02, t_eval=np.linspace(0, 0.02, 3))

    def fail(*_, **__):
        raise ls.ConvergenceError("t = 0.02 s: the step became too small; try a larger rtol", partial)

    monkeypatch.setattr(ls, "simulate", fail)
    out = tmp_path / "o"
    assert main(["simulate", str(small), "--duration", "1", "--out", str(out)]) == 3
    assert "error: t = 0.02 s" in capsys.readouterr().err
    with np.load(out / "trajectory.npz") as saved:
        assert saved["t"].tolist() == [0, 0.01, 0.02]


def test_inputs_must_cover_the_duration(small, tmp_path, capsys):
    """Purpose: nothing is invented beyond the last row, and a duration is needed without inputs."""
    inputs = write(tmp_path / "u.csv", "t,up\n0,0\n0.1,0.5\n")
    out = ["--out", str(tmp_path / "o")]
    assert main(["simulate", str(small), "--inputs", str(inputs), "--duration", "1", *out]) == 2
    assert "covers t = 0 to 0.1 s of 0 to 1 s" in capsys.readouterr().err
    assert main(["simulate", str(small), *out]) == 2
    assert "--duration is needed" in capsys.readouterr().err


def test_statics_by_name_and_by_order_agree(small, tmp_path, capsys):
    """Purpose: both ways of giving inputs reach the same equilibrium, which is one."""
    for k, inputs in enumerate((["--inputs", "side=0.3", "up=1"], ["--inputs-values", "1,0.3"])):
        assert main(["statics", str(small), *inputs, "--out", str(tmp_path / str(k))]) == 0
    text = capsys.readouterr().out
    assert "up = 1\nside = 0.3\n" in text and "tip of arm" in text
    assert "\nstable, least stiffness " in text
    found = [np.load(tmp_path / str(k) / "equilibrium.npz") for k in (0, 1)]
    assert np.array_equal(found[0]["q"], found[1]["q"]) and found[0]["u"].tolist() == [1, 0.3]
    model, q = ls.load_robot(small).build(), found[0]["q"]
    zero = np.zeros(3)
    force = ls.inverse_dynamics(model, q, zero, zero) - ls.actuation_matrix(model, q) @ found[0]["u"]
    assert np.abs(force).max() < 1e-7


@pytest.mark.graphics
def test_statics_and_simulate_draw_shapes(small, tmp_path):
    """Purpose: both leave a picture of the robot beside their numbers."""
    assert main(["statics", str(small), "--inputs", "up=1", "--out", str(tmp_path / "rest")]) == 0
    assert main(["simulate", str(small), "--duration", "0.02", "--out", str(tmp_path / "motion")]) == 0
    assert all((tmp_path / name / "shapes.png").stat().st_size > 1000 for name in ("rest", "motion"))


def test_without_opengl_the_numbers_are_written_and_a_line_says_what_is_missing(small, tmp_path, monkeypatch, capsys):
    """Purpose: a machine without graphics gets its equilibrium, and reads how to get the picture."""

    def refused():
        raise ls.ModelError("pictures need OpenGL")

    monkeypatch.setattr("lissom.viewing.canvas.check_graphics", refused)
    assert main(["statics", str(small), "--inputs", "up=1", "--out", str(tmp_path)]) == 0
    assert "not everything is drawn: pictures need OpenGL" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir() if path.suffix in (".npz", ".png")] == ["equilibrium.npz"]


@pytest.mark.parametrize(
    ("inputs", "part"),
    [
        (["--inputs", "top=1"], "one of the inputs up, side (got 'top')"),
        (["--inputs", "up"], "must be name=value"),
        (["--inputs", "up=x"], "input 'up': must be a number (got 'x')"),
        (["--inputs", "up=inf"], "input 'up': must be finite (got 'inf')"),
        (["--inputs-values", "1"], "must hold 2 numbers (up, side) (got 1)"),
    ],
)
def test_wrong_static_inputs_return_2(inputs, part, small, tmp_path, capsys):
    """Purpose: unknown names and values that are no numbers are named."""
    assert main(["statics", str(small), *inputs, "--out", str(tmp_path / "o")]) == 2
    assert part in capsys.readouterr().err


def test_the_installed_command_is_this_one(small):
    """Purpose: the entry point of the package calls main."""
    program = str(Path(sys.executable).parent / "lissom")
    done = subprocess.run([program, "info", str(small)], capture_output=True, text=True, check=True)
    assert "nq 3, nv 3, nu 2" in done.stdout


def test_a_wrong_method_is_refused_at_once(small, tmp_path, capsys):
    """Before kernels are loaded and a folder is made, naming those that there are."""
    assert main(["simulate", str(small), "--duration", "1", "--method", "euler", "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr()
    assert told.err.startswith("error: method: must be one of ['bathe', 'bdf', ") and "(got 'euler')" in told.err
    assert not told.out and not (tmp_path / "out").exists()


def test_a_robot_that_stays_at_rest_has_no_residual(small, capsys):
    """Where nothing is exchanged but what tolerances leave, no share of it is named."""
    model = ls.load_robot(small).build()
    motion = ls.simulate(model, 0.01, ls.solve_statics(model).q)
    summarise(model, motion, 0.01, print)
    told = capsys.readouterr().out
    assert "energy balance without a residual: the robot is at rest" in told and "of the energy exchanged" not in told
    balance = ls.energy_balance(model, motion)
    assert balance.is_at_rest and balance.residual < 1e-3
    assert not ls.energy_balance(model, ls.simulate(model, 0.01)).is_at_rest
