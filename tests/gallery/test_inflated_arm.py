"""The arm with pairs of chambers of Pustina 2025, simulation 4: where pressures bend, stretch and bulge it."""

import numpy as np
import pytest
from gallery.examples import example

pytest.importorskip("jax")


@pytest.fixture(scope="module")
def study():
    """The example as a module."""
    return example("inflated_arm")


@pytest.mark.parametrize("side", [1, -1])
def test_walls_of_the_chambers(study, side):
    """Purpose: closed, seen from outside, with the volume of a cut cylinder, and 4 mm from the surface everywhere.

    Twelve chords for the arc leave a part of (π/24)²·2/3 of its segment's area, about a hundredth.
    """
    vertices, triangles = study.chamber(side)
    edges = np.sort(np.concatenate([triangles[:, pair] for pair in ([0, 1], [1, 2], [2, 0])]), axis=1)
    assert set(np.unique(edges, axis=0, return_counts=True)[1]) == {2}
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    radius, middle = study.RADIUS - study.WALL, 0.5 * study.WALL
    half = np.arccos(middle / radius)
    exact = (study.LENGTH - 2 * study.WALL) * (radius**2 * half - middle * radius * np.sin(half))
    assert (a * np.cross(b, c)).sum() / 6 == pytest.approx(exact, rel=0.015)
    assert np.hypot(*vertices.T[1:]).max() <= radius * (1 + 1e-12)
    assert (side * vertices[:, 1]).min() >= middle * (1 - 1e-12)


@pytest.mark.slow  # JAX compiles chambers and bumps with their derivatives for a minute
def test_what_pressures_do(study, tmp_path):
    """Purpose: all of the printed pressures are borne in stable equilibrium; bodies bend away from the chamber of
    higher pressure and grow where it is; the motion ends in the equilibrium of statics, with a thousandth left after
    three seconds."""
    numbers = study.main(tmp_path)
    assert numbers["stable"] and numbers["largest share borne"] == 1.0
    for k, name in enumerate(study.BODIES):
        plus, minus = study.PRESSURES[2 * k : 2 * k + 2]
        assert np.sign(numbers[f"{name}: bend [rad]"]) == np.sign(minus - plus)
        grown = [numbers[f"{name}: growth on {side}y [%]"] for side in "+-"]
        assert (grown[0] - grown[1]) * (plus - minus) > 0.0
        assert max(grown) > 1.0
        assert numbers[f"{name}: elongation [mm]"] > 0.0
    first, second = numbers["body 1: growth on +y [%]"], numbers["body 2: growth on -y [%]"]
    assert first == pytest.approx(second, rel=0.07), "mirrored pressures; the first body carries more weight"
    assert numbers["end of the motion from equilibrium"] < 5e-4
    bends = [numbers[f"{name}: bend [rad]"] for name in study.BODIES]
    np.testing.assert_allclose(bends, [-0.572, 0.664, -0.192], atol=2e-3)
    assert (tmp_path / "inflated_arm.png").stat().st_size > 10_000


@pytest.mark.slow  # four laws are compiled
def test_laws_of_the_same_shear_modulus(study):
    """Purpose: the manual's table of the laws, and that a softer reply to changes of volume bears less."""
    expected = {"neo-Hookean, ν = 0.45": (1.0, -0.57, 5.9), "neo-Hookean, ν = 0.3": (0.9, -1.79, 61.2),
                "neo-Hookean, ν = 0": (0.5, -2.04, 78.9),
                "Saint Venant-Kirchhoff, ν = 0": (1.0, -2.03, 58.0)}  # fmt: skip
    for text, numbers in study.compare().items():
        share, bend, growth = expected.pop(text)
        assert numbers["share"] == pytest.approx(share)
        assert numbers["bends"][0] == pytest.approx(bend, abs=0.006)
        assert numbers["growth"] == pytest.approx(growth, abs=0.06)
    assert not expected


def _bump(u, sharpness):
    """exp(a − a/(1 − u²)) and its slope by u."""
    t = np.maximum(1.0 - u * u, sharpness / 600.0)
    B = np.where(1.0 - u * u > sharpness / 600.0, np.exp(sharpness - sharpness / t), 0.0)
    return B, B * (-2.0 * sharpness * u / t**2)


def _growth(q, study, s, phi):
    """1 + Σ g B(s) B(φ) of a body's sections, and its slopes by s and by φ."""
    along, slope = _bump(2.0 * s / study.LENGTH - 1.0, 4.0 / study.LENGTH)
    G, G_s, G_phi = np.ones_like(s), np.zeros_like(s), np.zeros_like(s)
    for g, angle in zip(q[2:], (0.0, np.pi)):
        apart = (phi - angle + np.pi) % (2.0 * np.pi) - np.pi
        around, turned = _bump(np.clip(2.0 * apart / np.pi, -1.0, 1.0), 4.0 / np.pi**2)
        G = G + g * along * around
        G_s = G_s + g * slope * 2.0 / study.LENGTH * around
        G_phi = G_phi + g * along * turned * 2.0 / np.pi
    return G, G_s, G_phi


def _place(q, study, x, y, z):
    """Where points of a body with q = (bend, elongation, two growths) are, with its base's x down."""
    k, stretch = q[:2]
    G = _growth(q, study, x, np.arctan2(z, y))[0]
    forward = stretch * np.sin(k * x) / k - np.sin(k * x) * G * y
    return np.stack([forward, stretch * (1.0 - np.cos(k * x)) / k + np.cos(k * x) * G * y, G * z], axis=-1)


def _potential(q, study, pressures):
    """Energy of one body less the work of its chambers and of its weight: trapezoidal sums along and around, which
    converge fast as bumps end flat, and Gauss points across."""
    s, phi = np.meshgrid(np.linspace(0.0, study.LENGTH, 201), np.arange(400) * np.pi / 200, indexing="ij")
    ends = np.ones(201)
    ends[[0, -1]] = 0.5
    x, w = np.polynomial.legendre.leggauss(6)
    G, G_s, G_phi = _growth(q, study, s, phi)
    total = 0.0
    for r, weight in zip(study.RADIUS * (x + 1) / 2, study.RADIUS * w / 2):
        y, z = r * np.cos(phi), r * np.sin(phi)
        stretch = q[1] - q[0] * G * y
        first = stretch**2 + (G_s * r) ** 2 + 2.0 * G**2 + G_phi**2
        larger = np.log(stretch * G**2)  # of the volume
        first_lame = 4.0 * study.C * study.POISSON / (1.0 - 2.0 * study.POISSON)
        W = study.C * (first - 3.0 - 2.0 * larger) + 0.5 * first_lame * larger**2
        down = _place(q, study, s, y, z)[..., 0]
        total += weight * r * ((W - 9.81 * study.DENSITY * down) * ends[:, None]).sum()
    total *= study.LENGTH / 200 * np.pi / 200
    for pressure, (vertices, triangles) in zip(pressures, (study.chamber(1), study.chamber(-1))):
        a, b, c = (_place(q, study, *vertices.T)[triangles[:, k]] for k in range(3))
        total -= pressure * (a * np.cross(b, c)).sum() / 6
    return total


@pytest.mark.slow  # one body is compiled for a minute
def test_growth_of_one_body(study):
    """Purpose: under the printed pressures the first body alone has the growth of a model of its own, written by hand,
    in equilibrium: 0.05628."""
    from scipy.optimize import root

    pressures = study.PRESSURES[:2]

    def force(q, h=1e-4):
        at = [[_potential(q + k * h * d, study, pressures) for k in (1, -1, 2, -2)] for d in np.diag([10.0, 1, 1, 1])]
        return np.array([8.0 * (a - b) - c + d for a, b, c, d in at]) / (12.0 * h)

    exact = root(force, [-3.0, 1.05, 0.06, -0.01], tol=1e-10).x
    one = study.ls.Robot("one")
    one.add_link("body", study.build().links.body[0], placement=study.DOWN)
    for side in (1, -1):
        one.add_body_chamber(f"{side}", "body", surface=study.chamber(side))
    model, q = one.build(), np.zeros(4)
    for share in (0.5, 1.0):
        q = study.ls.solve_statics(model, share * study.PRESSURES[:2], q).q
    np.testing.assert_allclose(q, exact - [0.0, 1.0, 0.0, 0.0], rtol=0, atol=1e-5)
    assert q[2] == pytest.approx(exact[2], abs=1e-6) and exact[2] == pytest.approx(0.05628, abs=1e-5)
