"""The examples with contact: a soft arm in a pipe (Mathew 2025 §6.2)."""

import importlib.util
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import lissom as ls

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    """An example as a module."""
    matplotlib.use("Agg")
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drawn(path):
    """Whether a picture is there."""
    picture = path.read_bytes()
    return picture[:8] == b"\x89PNG\r\n\x1a\n" and len(picture) > 10_000


@pytest.fixture(scope="module")
def pipe():
    """The arm in the pipe."""
    return example("cdm_contact")


def test_balls_are_the_papers_points(pipe):
    """Purpose: twelve balls, at the ten Gauss points and both ends, each as wide as the arm; the foot never touches."""
    model = pipe.robot().build()
    s, radius = pipe.balls(model)
    gauss = (1 + np.polynomial.legendre.leggauss(10)[0]) / 2
    np.testing.assert_allclose(s, [0, *gauss, 1], rtol=0, atol=1e-14)
    np.testing.assert_allclose(radius, 0.03 - 0.015 * s, rtol=1e-12)
    np.testing.assert_allclose(model.surroundings.ball_radius, radius, rtol=1e-12)
    assert len(model.surroundings.pair) == 11


def test_arm_in_the_pipe(pipe, tmp_path):
    """Purpose: over the first three seconds the arm is pressed into the wall; half the step of generalised-α leaves a
    quarter of its distance from BDF; the depth follows k^(−1/p); exact derivatives agree with differences."""
    numbers = pipe.main(tmp_path, duration=3.0, states=61)
    assert 5e-4 < numbers["deepest"] < 2e-3 and numbers["part of the time in contact"] > 0.5
    long, short = (numbers[f"tip distance generalized_alpha {step} ms"] for step in (2, 1))
    assert long < 2e-4 and long / short == pytest.approx(4, rel=0.25)
    assert numbers["exponent at rest"] == pytest.approx(-1 / 1.5, abs=2e-3)
    assert numbers["exponent of the motion"] == pytest.approx(-1 / 1.5, abs=0.02)  # a stiffer wall is hit a bit harder
    assert numbers["mismatch of d/dq"] < 2e-4  # of differences by some µm where balls are a fraction of a mm deep
    assert numbers["mismatch of d/dv"] < 1e-9
    assert all(drawn(tmp_path / f"{name}.png") for name in ("motion", "numbers"))


def test_wall_carries_what_the_tendon_pulls(pipe):
    """Purpose: held against the wall, the arm's forces and those of the wall, k δ^p along the radius, balance."""
    model = pipe.robot().build()
    found = ls.solve_statics(model, pipe.HELD, pipe.start_of_statics())
    bare = pipe.robot(None).build()
    still = np.zeros(model.nv)
    left = ls.inverse_dynamics(bare, found.q, still, still) - ls.actuation_matrix(bare, found.q) @ pipe.HELD
    s, _ = pipe.balls(model)
    depth = np.maximum(pipe.depths(model, found.q), 0.0)
    pushed = np.zeros(model.nv)
    for x, d in zip(s, depth):
        g, J = ls.frame_pose(bare, found.q, "arm", x), ls.frame_jacobian(bare, found.q, "arm", x)
        out = g[:3, 3] * [1, 1, 0]
        if d > 0:
            force = -pipe.STIFFNESS * d**pipe.EXPONENT * out / np.linalg.norm(out)
            pushed += J[3:].T @ g[:3, :3].T @ force
    assert np.abs(pushed).max() > 0.1
    np.testing.assert_allclose(left, pushed, rtol=0, atol=1e-9 * np.abs(pushed).max())
