"""The two robots by several methods: motions, derivatives and equilibria agree (Mathew 2025 §4.5, §5.1)."""

from pathlib import Path

import numpy as np
import pytest
from gallery.examples import example

import lissom as ls

PATH = Path(__file__).parents[2] / "examples" / "implicit_methods.py"
TENSIONS = np.array([20.0, 10.0, 30.0, 5.0, 12.0])


@pytest.fixture(scope="module")
def study():
    """The example as a module."""
    return example("implicit_methods")


@pytest.fixture(scope="module")
def tensions():
    """Tensions over time, from the example of the manipulator."""
    import runpy

    return runpy.run_path(str(PATH.with_name("cdm.py")))["tensions"]


@pytest.mark.parametrize("name", ["cdm", "serial_robot"])
def test_motions_and_derivatives_agree(study, tensions, name):
    """Purpose: over 1 s three methods agree at the tip within 1e-4 m, and derivatives with differences to 1e-6.

    BDF and Radau at rtol 1e-8 agree far better; generalised-α has an error of second order in its step, and with half
    the step a quarter of it is left.
    """
    model = study.robot(name).build()
    u = tensions if name == "cdm" else None
    tight = {"rtol": 1e-8, "atol": 1e-10, "rate": 20.0}
    numbers = study.dynamics_study(name, model, u, 1.0, dt=1e-3, **tight)
    assert numbers["tip travel"] > 0.1, "the arm moves"
    assert numbers["largest tip distance"] < 1e-4
    assert numbers["tip distance radau"] < 1e-6
    assert numbers["state mismatch radau"] < 1e-5
    assert numbers["mismatch of d/dq"] < 1e-6
    assert numbers["mismatch of d/dv"] < 1e-6
    times = np.linspace(0.0, 1.0, 21)
    exact, coarse = (
        study.tip(model, ls.simulate(model, 1.0, u=u, t_eval=times, method=method, **how).q)
        for method, how in (("bdf", {"rtol": 1e-8, "atol": 1e-10}), ("generalized_alpha", {"dt": 2e-3}))
    )
    apart = np.linalg.norm(coarse - exact, axis=-1).max()
    assert apart / numbers["tip distance generalized_alpha"] == pytest.approx(4, rel=0.1)


@pytest.mark.parametrize("name", ["cdm", "serial_robot"])
def test_equilibria_agree(study, name):
    """Purpose: twenty random equilibria are the same with the exact Jacobian and with a numerical one, and stable."""
    model, inputs = {"cdm": study.random_cdm, "serial_robot": study.random_serial}[name](20)
    numbers = study.statics_study(name, model, inputs)
    assert numbers["unstable"] == numbers["not found numerically"] == 0
    assert numbers["tip mismatch"] < 1e-6
    assert numbers["solution mismatch"] < 1e-6
    assert numbers["joint torque mismatch"] < 1e-6


def test_random_angles_are_held(study):
    """Purpose: the k-th equilibrium has the k-th angles; its torques hold the weight, none about the vertical axis."""
    model, _ = study.random_serial(3, seed=5)
    angles = np.random.default_rng(5).uniform(-np.pi / 4, np.pi / 4, (3, 7))
    for k, row in enumerate(angles):
        found = ls.solve_statics(model, t=float(k))
        np.testing.assert_allclose(found.q[model.prescribed.dof], row, rtol=0, atol=1e-15)
        assert abs(found.multipliers[0]) < 1e-12 < 1e-2 < np.abs(found.multipliers).max()


@pytest.mark.parametrize(("method", "duration", "options"), [
    ("implicit_euler", 20.0, {"dt": 0.02}),
    ("bdf", 40.0, {"rtol": 1e-8, "atol": 1e-10}),
])  # fmt: skip
def test_damped_motion_settles_where_statics_says(study, method, duration, options):
    """Purpose: under constant tensions the manipulator comes to rest at the equilibrium of solve_statics, to 1e-8."""
    model = study.robot("cdm").build()
    motion = ls.simulate(model, duration, u=TENSIONS, method=method, **options)
    found = ls.solve_statics(model, TENSIONS).q
    assert np.abs(found / model.dofs.scale).max() > 0.1, "the arm bends"
    assert np.abs((motion.q[-1] - found) / model.dofs.scale).max() < 1e-8
    assert np.abs(motion.v[-1] / model.dofs.scale).max() < 1e-8


def test_main_returns_its_numbers_and_draws(study, tmp_path):
    """Purpose: the script's four figures and the numbers of four studies, at the tolerances of the script."""
    numbers = study.main(tmp_path, n=3, duration=0.1)
    names = [f"{name}_{what}" for name in ("cdm", "serial_robot") for what in ("dynamics", "statics")]
    assert [key.replace(" ", "_") for key in numbers] == names
    for name in names:
        picture = (tmp_path / f"{name}.png").read_bytes()
        assert picture[:8] == b"\x89PNG\r\n\x1a\n" and len(picture) > 10_000
    assert all(np.isfinite(list(found.values())).all() for found in numbers.values())
    assert all(numbers[f"{name} dynamics"]["largest tip distance"] < 1e-3 for name in ("cdm", "serial_robot"))
