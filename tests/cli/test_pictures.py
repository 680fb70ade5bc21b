"""Pictures of commands: render, animate, and those among the results of statics and simulate."""

from __future__ import annotations

import pytest
from cli.small_robot import EXAMPLES

import lissom as ls
from lissom.cli.main import main


@pytest.mark.graphics
def test_render_and_animate_write_what_they_are_asked_for(small, tmp_path, capsys):
    """`render` draws the equilibrium, `animate` films a motion and refuses that of another robot."""
    path, film = tmp_path / "deep" / "arm.png", tmp_path / "motion.gif"
    assert main(["render", str(small), "--inputs", "up=1", "--out", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    model = ls.load_robot(small).build()
    ls.simulate(model, 0.2, t_eval=[0.0, 0.1, 0.2]).save(tmp_path / "motion.npz")
    assert main(["animate", str(small), str(tmp_path / "motion.npz"), "--fps", "10", "--out", str(film)]) == 0
    assert film.read_bytes().startswith(b"GIF")
    assert main(["animate", str(EXAMPLES / "cdm.yaml"), str(tmp_path / "motion.npz"), "--out", str(film)]) == 2
    assert "must hold 24 coordinates" in capsys.readouterr().err


@pytest.mark.graphics
def test_statics_and_simulate_draw_shapes(small, tmp_path):
    """`statics` and `simulate` draw the shapes of the robot."""
    assert main(["statics", str(small), "--inputs", "up=1", "--out", str(tmp_path / "rest")]) == 0
    assert main(["simulate", str(small), "--duration", "0.02", "--out", str(tmp_path / "motion")]) == 0
    assert all((tmp_path / name / "shapes.png").stat().st_size > 1000 for name in ("rest", "motion"))


def test_without_opengl_the_numbers_are_written_and_a_line_says_what_is_missing(small, tmp_path, monkeypatch, capsys):
    """Without OpenGL the numbers are written, and a line says why the picture is missing."""

    def refused():
        raise ls.ModelError("pictures need OpenGL")

    monkeypatch.setattr("lissom.viewing.canvas.check_graphics", refused)
    assert main(["statics", str(small), "--inputs", "up=1", "--out", str(tmp_path)]) == 0
    assert "not everything is drawn: pictures need OpenGL" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir() if path.suffix in (".npz", ".png")] == ["equilibrium.npz"]
