"""The examples that show physics: each gives the number it is known by, and draws its figure when asked."""

import numpy as np
import pytest
from gallery.examples import example


@pytest.fixture
def figure(tmp_path):
    """Where a figure goes; checks afterwards that a picture is there."""
    import matplotlib

    matplotlib.use("Agg")
    path = tmp_path / "figure.png"
    yield str(path)
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert path.stat().st_size > 10_000


def test_free_fall(figure):
    """Energies of the rod of SoRoSim 2022, figure 13: kept without damping, falling all the time with it.

    It starts with the elastic energy ½ ∫ EJ κ² ds of κ = 1/m, J = πr⁴/4, r from 2 to 1 cm, and nothing else. Over
    the 5 s the steps, each good to rtol, change the energy by √steps · rtol of the energy exchanged.
    """
    rtol = 1e-6
    numbers = example("free_fall").main(out=figure, rtol=rtol)
    initial = 0.5 * 1e6 * np.pi / 4 * 0.5 * (0.02**5 - 0.01**5) / (5 * 0.01)
    for rod in numbers.values():
        assert rod["initial elastic energy"] == pytest.approx(initial, rel=1e-12)
        assert rod["initial energy"] == pytest.approx(initial, rel=1e-12)
        rod["tolerance"] = np.sqrt(rod["steps"]) * rtol
        assert rod["balance"] < rod["tolerance"] < 2e-4
    undamped, damped = numbers["undamped"], numbers["damped"]
    assert undamped["largest drift"] < undamped["tolerance"]
    assert undamped["largest torsion"] > 1e-2, "the motion is three-dimensional"
    assert damped["largest rise"] < damped["tolerance"]
    assert damped["final energy"] < 0 < damped["initial energy"]


def test_follower_beam(figure):
    """The 100 m beam within 1e-3 of its length of the elastica at every load with order 8, up to 50 kN with order 4.

    Order 4 cannot do more: see the next test. The error falls with the order, by half at least for two orders more.
    """
    numbers = example("follower_beam").main(out=figure, orders=(4, 6, 8, 10))
    loads, errors, largest = numbers["loads"], numbers["errors"], numbers["largest"]
    assert loads[0] == 0 and loads[-1] == 130e3
    assert errors[4][loads <= 50e3].max() < 1e-3
    assert largest[4] < 2e-2
    assert errors[8].max() < 1e-3
    assert largest[6] < largest[4] / 2 and largest[8] < largest[6] / 2 and largest[10] < largest[8] / 2


@pytest.mark.parametrize("load", [20e3, 50e3, 90e3, 130e3])
def test_follower_beam_reference_solves_the_boundary_value_problem(load):
    """The reference of the follower beam equals scipy's solve_bvp of EI κ' = −P cos(θ_L − θ), θ(0) = κ(L) = 0."""
    from scipy.integrate import solve_bvp

    beam = example("follower_beam")
    ratio = load * beam.LENGTH**2 / beam.EI

    def rate(s, y):  # angle, curvature times length, tip angle (a constant), x and z over the length
        angle, curvature, tip = y[:3]
        return np.stack([curvature, -ratio * np.cos(tip - angle), 0 * tip, np.cos(angle), np.sin(angle)])

    def ends(clamp, tip):
        return np.array([clamp[0], tip[1], tip[2] - tip[0], clamp[3], clamp[4]])

    s = np.linspace(0.0, 1.0, 101)
    shape = beam.exact_shape(load, s) / beam.LENGTH
    angle = np.unwrap(np.arctan2(*np.gradient(shape, s, axis=0).T[::-1]))
    guess = np.stack([angle, np.gradient(angle, s), np.full_like(s, angle[-1]), *shape.T])
    solution = solve_bvp(rate, ends, s, guess, tol=1e-9, max_nodes=50_000)
    assert solution.success
    np.testing.assert_allclose(solution.sol(s)[3:].T, shape, rtol=0, atol=1e-7)


def test_fourth_order_curvature_cannot_hold_a_thousandth():
    """The polynomial of fourth order nearest to the exact curvature misses the tip by 2e-3 of the length at 130 kN.

    Independent of the library: it shows that the bound of 1e-3 at every load is beyond that basis, however solved.
    """
    from numpy.polynomial import legendre
    from scipy.integrate import solve_ivp

    beam = example("follower_beam")
    ratio = 130e3 / beam.EI
    exact = solve_ivp(lambda s, y: [y[1], ratio * np.cos(y[0])], (0, beam.LENGTH), [0.0, 0.0], "DOP853", rtol=1e-12,
                      atol=1e-12, dense_output=True).sol  # fmt: skip
    x, w = legendre.leggauss(80)
    s = (x + 1) / 2 * beam.LENGTH  # from the tip
    tips = []
    for order in (4, 30):
        V = legendre.legvander(x, order)
        c = V.T @ (w * exact(s)[1]) * (2 * np.arange(order + 1) + 1) / 2
        angle = legendre.legint(c, lbnd=-1) * beam.LENGTH / 2
        seen = legendre.legval(x, angle) - legendre.legval(1.0, angle)  # from the clamp's tangent
        tips.append(beam.LENGTH / 2 * np.array([w @ np.cos(seen), -w @ np.sin(seen)]))
    np.testing.assert_allclose(tips[1], beam.exact_shape(130e3, np.array([1.0]))[0], rtol=0, atol=1e-8 * beam.LENGTH)
    assert np.linalg.norm(tips[0] - tips[1]) / beam.LENGTH > 2e-3


def test_custom_cable(figure):
    """The rod under a cable of its own path at 250 N, against the balance of the cut solved point by point.

    With every strain of order 6 the tip is within 1e-3 of the length, and each two orders more halve the error at
    least; the cable takes in 125 mm, a quarter of the rod.
    """
    cable = example("custom_cable")
    numbers = cable.main(out=figure)
    assert numbers["tip error"] < 1e-3
    assert numbers["cable taken in"] == pytest.approx(0.1253, abs=1e-4)
    assert numbers["residual"] < 1e-10
    errors = [numbers["tip error"] if order == 6 else cable.main(order=order)["tip error"] for order in (2, 4, 6, 8)]
    assert np.all(np.diff(np.log2(errors)) < -1)


def test_linkage_of_the_manual():
    """The ten coordinates of SoRoSim's example; the clamp holds what weight and push leave, the hinge the moment of the
    box, and the energies of the motion balance."""
    numbers = example("sorosim_manual").main()
    assert numbers["degrees of freedom"] == 10 and numbers["angle [rad]"] == pytest.approx(-np.pi / 2, abs=1e-15)
    assert numbers["missing of the weight"] < 1e-12
    assert numbers["missing in the hinge [N·m]"] < 1e-12
    assert numbers["energy balance residual"] < 1e-6


def test_fingers_at_three_angles():
    """Each finger of the ReSoft gripper is the fixed one turned about the palm, and all bend inwards and hang lower."""
    numbers = example("resoft_fingers").main()
    assert numbers["tips off by [m]"] < 1e-12
    assert numbers["tip from the axis [m]"] == pytest.approx(0.0111, abs=1e-4)
    assert numbers["tip below the palm [m]"] == pytest.approx(0.1040, abs=1e-4)
