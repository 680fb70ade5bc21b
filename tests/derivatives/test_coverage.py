"""Derivatives of inverse dynamics of the gallery's robots: still, fast, nearly straight, wound up."""

from pathlib import Path

import numpy as np
import pytest

import lissom as ls

ROBOTS = Path(__file__).parents[2] / "examples" / "robots"
STATES = {"rest": (1.0, 0.0), "speed": (1.0, 10.0), "nearly straight": (1e-9, 1.0), "wound up": (None, 1.0)}


def slopes(function, n):
    """Columns of the derivative of function(d) at d = 0, by fourth-order differences of steps 1e-3 and 2e-3."""
    columns = []
    for d in np.eye(n):
        one, two = ((function(h * d) - function(-h * d)) / (2 * h) for h in (1e-3, 2e-3))
        columns.append((4 * one - two) / 3)
    return np.array(columns).T


@pytest.mark.parametrize("name", ["cdm", "serial_robot"])
@pytest.mark.parametrize("state", STATES)
def test_derivatives_of_the_gallery(name, state):
    """dtau/dq, dtau/dv and dtau/da equal central differences below 1e-7 in each special state."""
    model = ls.load_robot(ROBOTS / f"{name}.yaml").build()
    rng = np.random.default_rng(5)
    strain, speed = STATES[state]
    q = (strain or 1.0) * rng.uniform(-1.0, 1.0, model.nq)
    if strain is None:
        # Three turns over each rod, in its first coordinate.
        for rod in model.rods.values():
            q[rod.strain.v_start + rod.strain.q_shift] = 6 * np.pi / rod.strain.length
    v, a = speed * rng.uniform(-1.0, 1.0, model.nv), speed * rng.uniform(-1.0, 1.0, model.nv)
    found = ls.inverse_dynamics_derivatives(model, q, v, a)
    numeric = (
        slopes(lambda d: ls.inverse_dynamics(model, ls.integrate(model, q, d), v, a), model.nv),
        slopes(lambda d: ls.inverse_dynamics(model, q, v + d, a), model.nv),
        slopes(lambda d: ls.inverse_dynamics(model, q, v, a + d), model.nv),
    )
    for exact, difference in zip(found, numeric, strict=True):
        assert np.abs(exact - difference).max() <= 1e-7 * np.abs(exact).max()
