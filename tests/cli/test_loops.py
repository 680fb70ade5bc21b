"""Commands on a mechanism whose loop is open in its neutral configuration: statics, simulate, modes and render.

References are closed forms of a planar four-bar: angles of its bars in the plane, its potential, its reactions by the
balance of each bar, and its velocities by the rates of its closing condition.
"""

from __future__ import annotations

import csv

import numpy as np
import pytest
from cli.small_robot import FOUR_BAR, write
from scipy.optimize import brentq

import lissom as ls
from lissom.cli.main import main

pytestmark = pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")  # planar loops
LENGTHS, CENTRES, MASSES, GROUND, G = (0.2, 0.5, 0.4), (0.1, 0.25, 0.2), (0.4, 1.0, 0.8), 0.5, 9.81
INERTIAS = (1e-3, 2e-2, 1e-2)  # about the centres of mass


@pytest.fixture
def four_bar(tmp_path):
    """Path of the robot file."""
    return write(tmp_path / "four_bar.yaml", FOUR_BAR)


def angles(q):
    """Angles of crank, coupler and rocker in the plane."""
    return np.array([q[0], q[0] + q[1], q[2]])


def gap(q):
    """Distance between the ends of coupler and rocker, (2,)."""
    x, y = (sum(s * length * f(a) for s, length, a in zip((1, 1, -1), LENGTHS, angles(q))) for f in (np.cos, np.sin))
    return np.array([x - GROUND, y])


def rates(q):
    """Angular velocities (3,) of the bars in the plane for a unit velocity of the crank."""
    a = angles(q)
    normal = np.array([-np.sin(a), np.cos(a)]) * np.multiply((1, 1, -1), LENGTHS)
    return np.append(1.0, np.linalg.solve(normal[:, 1:], -normal[:, 0]))


def kinetic_energy(q, crank):
    """Kinetic energy [J] for the velocity of the crank."""
    w, a = crank * rates(q), angles(q)
    e = np.array([-np.sin(a), np.cos(a)])
    joint = LENGTHS[0] * w[0] * e[:, 0]
    speeds = CENTRES * w * e + np.stack([0 * joint, joint, 0 * joint], axis=1)
    return 0.5 * float(np.sum(MASSES * np.sum(speeds**2, axis=0) + INERTIAS * w**2))


def torque_about_the_crank(q):
    """Power of the weights for a unit velocity of the crank [W]; zero in an equilibrium."""
    w, a = rates(q), angles(q)
    heights = np.multiply(CENTRES, np.cos(a)) * w + np.array([0.0, LENGTHS[0] * np.cos(a[0]) * w[0], 0.0])
    return -G * float(np.dot(MASSES, heights))


def saved(path):
    """Arrays of a file of results."""
    with np.load(path) as file:
        return dict(file)


def test_statics_gives_the_reactions(four_bar, tmp_path, capsys):
    """At the equilibrium the weights have no power. Reactions hold each bar and carry the weight."""
    assert main(["statics", str(four_bar), "--state", "folded", "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    rest = saved(tmp_path / "equilibrium.npz")
    assert np.abs(gap(rest["q"])).max() < 1e-12 and abs(torque_about_the_crank(rest["q"])) < 1e-9
    with (tmp_path / "reactions.csv").open(encoding="utf-8") as stream:
        rows = {row["name"]: row for row in csv.DictReader(stream)}

    def vector(name, part, unit):
        return np.array([float(rows[name][f"{part}.{axis} [{unit}]"]) for axis in "xyz"])

    force = {name: vector(name, "force", "N") for name in rows}
    at = {name: vector(name, "point", "m") for name in rows}
    np.testing.assert_allclose(force["crank"] + force["rocker"], [0.0, sum(MASSES) * G, 0.0], atol=1e-9)
    a = angles(rest["q"])
    centre = np.outer(CENTRES, [1.0, 0.0, 0.0]) * 0.0
    for k, name in enumerate(("crank", "coupler", "rocker")):
        centre[k] = at[name] + CENTRES[k] * np.array([np.cos(a[k]), np.sin(a[k]), 0.0])
    weight = np.outer(MASSES, [0.0, -G, 0.0])
    held = {"crank": (0, -force["coupler"], at["coupler"]), "coupler": (1, force["pin"], at["pin"]),
            "rocker": (2, -force["pin"], at["pin"])}  # fmt: skip
    for name, (k, other, place) in held.items():
        np.testing.assert_allclose(force[name] + weight[k] + other, 0.0, atol=1e-9)
        turned = np.cross(centre[k] - at[name], weight[k]) + np.cross(place - at[name], other)
        np.testing.assert_allclose(turned, 0.0, atol=1e-9)
    assert "reaction of the world on crank: force " in told and "loop pin: rocker on coupler: force " in told
    assert "moment 0, 0, 0 N·m" in told


def test_simulate_goes_on_from_an_equilibrium_with_closed_loops(four_bar, tmp_path, capsys):
    """A motion that begins at the equilibrium of statics stays there."""
    assert main(["statics", str(four_bar), "--state", "folded", "--out", str(tmp_path)]) == 0
    given = ["--from", str(tmp_path / "equilibrium.npz"), "--duration", "0.1", "--samples", "3"]
    assert main(["simulate", str(four_bar), *given, "--out", str(tmp_path / "on")]) == 0
    motion = saved(tmp_path / "on" / "trajectory.npz")
    np.testing.assert_allclose(motion["q"], np.tile(saved(tmp_path / "equilibrium.npz")["q"], (3, 1)), atol=1e-9)
    assert "the robot is at rest" in capsys.readouterr().out


def test_simulate_begins_at_a_state_of_the_file(four_bar, tmp_path, capsys):
    """--state begins at the closed state near the named one with its velocities. --velocity holds the given velocity
    exactly, and the loop moves the other bars along: their energy is that of the closed form."""
    out = tmp_path / "on"
    given = ["--state", "folded", "--velocity", "crank=3", "--duration", "0.1", "--samples", "6", "--out", str(out)]
    assert main(["simulate", str(four_bar), *given]) == 0
    told = capsys.readouterr().out
    assert "loops were open at the start and are closed now: a coordinate of 'crank' moved by " in told
    motion, model = saved(out / "trajectory.npz"), ls.load_robot(four_bar).build()
    q, v = motion["q"][0], motion["v"][0]
    np.testing.assert_allclose(q, ls.assemble(model, [0.6, 0.5, 1.5]), rtol=0, atol=1e-12)
    assert np.abs(gap(q)).max() < 1e-12 and v[0] == pytest.approx(3.0, rel=1e-12)
    np.testing.assert_allclose(np.array([v[0], v[0] + v[1], v[2]]), 3.0 * rates(q), rtol=1e-9)
    assert ls.energy(model, q, v).total - ls.energy(model, q, 0 * v).total == pytest.approx(kinetic_energy(q, 3.0))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--velocity", "crank=3", "coupler=3"], "must be velocities that the loops allow"),
        (["--velocity", "cranc=3"], "one of the joints crank, coupler, rocker (got 'cranc')"),
        (["--velocity", "crank=x"], "velocity 'crank': must be a number (got 'x')"),
        (["--state", "unfolded"], "unfolded"),
    ],
)
def test_wrong_starts_return_2(four_bar, tmp_path, capsys, given, told):
    """Velocities that loops do not allow and names that do not exist are errors that name them."""
    assert main(["simulate", str(four_bar), *given, "--duration", "0.1", "--out", str(tmp_path / "o")]) == 2
    assert told in capsys.readouterr().err


def test_other_commands_take_the_state_too(four_bar, tmp_path, capsys):
    """`modes --state` is about the equilibrium near the state: one motion, whose frequency follows from the potential
    and the energy of the closed form."""
    assert main(["modes", str(four_bar), "--state", "folded", "--out", str(tmp_path)]) == 0
    found = saved(tmp_path / "modes.npz")
    q, h = found["q"], 1e-5

    def moved(crank):
        a = angles(q)
        x, y = GROUND - LENGTHS[0] * np.cos(crank), -LENGTHS[0] * np.sin(crank)

        def end(coupler):
            return np.hypot(LENGTHS[1] * np.cos(coupler) - x, LENGTHS[1] * np.sin(coupler) - y) - LENGTHS[2]

        coupler = brentq(end, a[1] - 0.01, a[1] + 0.01, xtol=1e-15)
        rocker = np.arctan2(LENGTHS[1] * np.sin(coupler) - y, LENGTHS[1] * np.cos(coupler) - x)
        return np.array([crank, coupler - crank, rocker])

    slope = (torque_about_the_crank(moved(q[0] + h)) - torque_about_the_crank(moved(q[0] - h))) / (2 * h)
    expected = np.sqrt(-slope / (2.0 * kinetic_energy(q, 1.0)))
    np.testing.assert_allclose(found["frequencies"], [expected], rtol=1e-6)


def test_a_motion_without_a_start_closes_its_loops(four_bar, tmp_path, capsys):
    """Without --from and --state the loops are closed from the start configuration, and a line says so."""
    given = ["--duration", "0.05", "--samples", "3", "--out", str(tmp_path / "o")]
    assert main(["simulate", str(four_bar), *given]) == 0
    assert "loops were open at the start and are closed now" in capsys.readouterr().out
    assert np.abs(gap(saved(tmp_path / "o" / "trajectory.npz")["q"][0])).max() < 1e-12


def test_bench_closes_loops_too(four_bar, capsys, monkeypatch):
    """`bench` moves a mechanism whose loops are open at first."""
    monkeypatch.setattr("lissom.cli.computing._LEAST_TIME", 0.01)
    assert main(["bench", str(four_bar), "--duration", "0.02"]) == 0
    assert "simulate, released under gravity" in capsys.readouterr().out
