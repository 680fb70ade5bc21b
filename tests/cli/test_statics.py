"""Commands about equilibria: statics, modes and continuation."""

from __future__ import annotations

import numpy as np
import pytest

import lissom as ls
from lissom.cli.main import main
from lissom.statics import static_path


def test_statics_by_name_and_by_order_agree(small, tmp_path, capsys):
    """Inputs by name and by order give the same equilibrium, and its residual vanishes."""
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
    """Unknown names and wrong values of inputs are errors that name them."""
    assert main(["statics", str(small), *inputs, "--out", str(tmp_path / "o")]) == 2
    assert part in capsys.readouterr().err


def test_modes_and_continuation_say_and_write_what_they_find(small, tmp_path, capsys):
    """Frequencies equal those of ls.modes, and the branch ends at the equilibrium of statics."""
    assert main(["modes", str(small), "--out", str(tmp_path), "--count", "2"]) == 0
    told = capsys.readouterr().out
    model = ls.load_robot(small).build()
    found = ls.modes(model, ls.solve_statics(model).q)
    assert f"{found.frequencies[0] / (2 * np.pi):12.6g}" in told and "and 1 more" in told
    with np.load(tmp_path / "modes.npz") as saved:
        np.testing.assert_allclose(saved["frequencies"], found.frequencies, rtol=1e-9)
    assert main(["continuation", str(small), "--inputs", "up=1", "--out", str(tmp_path)]) == 0
    assert "ended by factor range" in capsys.readouterr().out
    with np.load(tmp_path / "branch.npz") as branch:
        assert branch["factor"][-1] == 1.0
        np.testing.assert_allclose(branch["q"][-1], ls.solve_statics(model, [1.0, 0.0]).q, rtol=0, atol=1e-9)


def test_an_interrupt_keeps_the_branch_so_far(small, tmp_path, capsys, monkeypatch):
    """After Ctrl-C the branch so far is written, its end is printed, and the status is 130."""
    ahead, calls = static_path.ahead_on_each, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return ahead(*args)

    monkeypatch.setattr("lissom.statics.continuation.ahead_on_each", interrupted)
    given = ["--inputs", "up=1", "--step", "0.02", "--out", str(tmp_path)]
    assert main(["continuation", str(small), *given]) == 130
    told = capsys.readouterr()
    assert told.err == "interrupted\n" and "3 equilibria so far" in told.out
    with np.load(tmp_path / "branch.npz") as saved:
        assert len(saved["factor"]) == len(saved["q"]) == 3 and saved["factor"][-1] < 1.0
