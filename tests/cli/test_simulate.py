"""Commands about motion in time, and the speed of a robot: simulate, demo and bench."""

from __future__ import annotations

import csv
from contextlib import contextmanager

import numpy as np
import pytest
from cli.small_robot import EXAMPLES, write

import lissom as ls
from lissom.cli.main import main
from lissom.cli.simulate import summarise


def test_simulate_writes_the_trajectory_and_says_what_it_did(small, tmp_path, capsys):
    """`simulate` writes npz, csv and a graph, and prints degrees of freedom, steps, speed, tip and energy."""
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


def test_simulate_goes_on_from_an_equilibrium(small, tmp_path, capsys):
    """The robot rests at an equilibrium of a file under its inputs. A file of another robot is refused."""
    assert main(["statics", str(small), "--inputs", "up=1", "--out", str(tmp_path)]) == 0
    out, rest = tmp_path / "motion", tmp_path / "equilibrium.npz"
    given = ["--duration", "0.05", "--samples", "3", "--out", str(out), "--quiet"]
    assert main(["simulate", str(small), "--from", str(rest), *given]) == 0
    with np.load(rest) as begun, np.load(out / "trajectory.npz") as motion:
        np.testing.assert_allclose(motion["q"], np.tile(begun["q"], (3, 1)), rtol=0, atol=1e-6)
        assert motion["u"].tolist() == [[1.0, 0.0]] * 3 and np.abs(begun["q"]).max() > 0.1
    other = EXAMPLES / "cdm.yaml"
    assert main(["simulate", str(other), "--from", str(rest), *given]) == 2
    assert "q must have shape (24,)" in capsys.readouterr().err


def test_inputs_are_held_beyond_their_rows(small, tmp_path, capsys):
    """Inputs that do not cover the duration are constant beyond their rows, as everywhere, and a line says so. Without
    inputs a duration is required."""
    inputs, out = write(tmp_path / "u.csv", "t,up\n0.01,0.1\n0.03,0.5\n"), tmp_path / "o"
    given = ["--inputs", str(inputs), "--duration", "0.06", "--samples", "4", "--out", str(out)]
    assert main(["simulate", str(small), *given]) == 0
    assert "covers t = 0.01 to 0.03 s of 0 to 0.06 s: inputs are constant before" in capsys.readouterr().out
    with np.load(out / "trajectory.npz") as motion:
        np.testing.assert_allclose(motion["u"][:, 0], [0.1, 0.3, 0.5, 0.5], rtol=0, atol=1e-12)
    assert main(["simulate", str(small), "--out", str(tmp_path / "other")]) == 2
    assert "--duration is needed" in capsys.readouterr().err


def test_quiet_says_nothing(small, tmp_path, capsys):
    """--quiet leaves stdout and stderr empty."""
    assert main(["simulate", str(small), "--duration", "0.02", "--out", str(tmp_path / "o"), "--quiet"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err == ""


def test_a_wrong_method_is_refused_at_once(small, tmp_path, capsys):
    """A wrong method is refused with the known ones, before kernels are loaded and a folder is made."""
    assert main(["simulate", str(small), "--duration", "1", "--method", "euler", "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr()
    assert told.err.startswith("error: method: must be one of ['bathe', 'bdf', ") and "(got 'euler')" in told.err
    assert not told.out and not (tmp_path / "out").exists()


def test_a_failed_run_writes_what_it_has_and_returns_3(small, tmp_path, capsys, monkeypatch):
    """The partial trajectory of a ConvergenceError is written."""
    partial = ls.simulate(ls.load_robot(small).build(), 0.02, t_eval=np.linspace(0, 0.02, 3))

    def fail(*_, **__):
        raise ls.ConvergenceError("t = 0.02 s: the step became too small; try a larger rtol", partial)

    monkeypatch.setattr(ls, "simulate", fail)
    out = tmp_path / "o"
    assert main(["simulate", str(small), "--duration", "1", "--out", str(out)]) == 3
    assert "error: t = 0.02 s" in capsys.readouterr().err
    with np.load(out / "trajectory.npz") as saved:
        assert saved["t"].tolist() == [0, 0.01, 0.02]


@contextmanager
def interrupting(*_):
    """A progress bar that raises KeyboardInterrupt after some time of the motion."""

    def advance(t):
        if t > 1e-3:
            raise KeyboardInterrupt

    yield advance


def test_an_interrupt_keeps_the_motion_so_far(small, tmp_path, capsys, monkeypatch):
    """After Ctrl-C the motion so far is written, its end is printed, and the status is 130."""
    monkeypatch.setattr("lissom.simulation.simulate.progress_bar", interrupting)
    out = tmp_path / "o"
    given = ["--duration", "5", "--dt", "1e-3", "--out", str(out)]
    assert main(["simulate", str(small), *given]) == 130
    told = capsys.readouterr()
    assert told.err == "interrupted\n" and "stopped at t = " in told.out
    with np.load(out / "trajectory.npz") as saved:
        assert 1e-3 < saved["t"][-1] < 5.0 and len(saved["t"]) == len(saved["q"])


def test_a_robot_that_stays_at_rest_has_no_residual(small, capsys):
    """For a robot at rest no residual of the energy balance is printed."""
    model = ls.load_robot(small).build()
    motion = ls.simulate(model, 0.01, ls.solve_statics(model).q)
    summarise(model, motion, 0.01, print)
    told = capsys.readouterr().out
    assert "energy balance without a residual: the robot is at rest" in told and "of the energy exchanged" not in told
    balance = ls.energy_balance(model, motion)
    assert balance.is_at_rest and balance.residual < 1e-3
    assert not ls.energy_balance(model, ls.simulate(model, 0.01)).is_at_rest


@pytest.mark.parametrize("steps", [[], ["--dt", "0.003"], ["--method", "bdf"]])
def test_the_residual_does_not_depend_on_the_rows(small, tmp_path, capsys, steps):
    """The energy balance is that of all steps, however few rows are written, and rows are those of `simulate`."""
    inputs, told = write(tmp_path / "u.csv", "t,up\n0,0\n0.1,0.5\n0.2,0.5\n"), []
    for count in ("3", "41"):
        out = tmp_path / count
        given = ["--inputs", str(inputs), "--samples", count, "--out", str(out), *steps]
        assert main(["simulate", str(small), *given]) == 0
        told += [line for line in capsys.readouterr().out.splitlines() if line.startswith("energy balance")]
    residuals = [float(line.split()[3]) for line in told]
    if "--dt" in steps:  # fixed steps end on the rows
        assert max(residuals) < 1e-3
    else:
        assert residuals[0] == residuals[1] < (1e-4 if steps else 1e-6)
    model = ls.load_robot(small).build()
    u = ls.Samples([0.0, 0.1, 0.2], [[0.0, 0.0], [0.5, 0.0], [0.5, 0.0]])
    options = {"dt": 0.003} if "--dt" in steps else {"method": "bdf"} if steps else {}
    other = ls.simulate(model, 0.2, u=u, t_eval=np.linspace(0.0, 0.2, 41), **options)
    tolerance = 1e-5 if "bdf" in steps else 1e-8  # of rtol 1e-6; bdf has polynomials of its own
    with np.load(tmp_path / "41" / "trajectory.npz") as saved:
        for name in ("t", "q", "v", "u"):
            size = np.abs(getattr(other, name)).max()
            np.testing.assert_allclose(saved[name], getattr(other, name), rtol=0, atol=tolerance * size, err_msg=name)


def test_demo_and_bench_run(tmp_path, capsys, monkeypatch):
    """`demo` writes a robot file and its motion, and `bench` prints the speeds of a robot."""
    monkeypatch.setattr("lissom.cli.computing._LEAST_TIME", 0.01)
    assert main(["demo", "--duration", "0.2", "--out", str(tmp_path)]) == 0
    assert {"robot.yaml", "trajectory.npz", "trajectory.png"} <= {path.name for path in tmp_path.iterdir()}
    assert main(["bench", str(tmp_path / "robot.yaml"), "--duration", "0.05"]) == 0
    assert "mass matrix" in capsys.readouterr().out
