"""Polygons as sections: moments, torsion and shear centres against closed forms, and rods that have them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import lissom as ls

SILICONE = ls.Material(young=1e6, poisson=0.3, density=1100.0, viscosity=50.0, damping_time=0.01)
ANGLE = np.array([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]) * 0.01


def ring(count, start=0.0):
    """Corners of a regular polygon in the unit circle."""
    angle = start + 2 * np.pi * np.arange(count) / count
    return np.column_stack([np.cos(angle), np.sin(angle)])


def turned(points, angle):
    """Points turned about the origin."""
    c, s = np.cos(angle), np.sin(angle)
    return points @ np.array([[c, s], [-s, c]])


def torsion(points, scale=1.0):
    """Torsion constant and shear centre that a polygon takes, read from its stiffness."""
    section = ls.SectionPolygon(points, scale, saint_venant=True)
    shear = section.constitution(0.5, SILICONE, "").stiffness[np.ix_((0, 4, 5), (0, 4, 5))] / SILICONE.shear
    y, z = shear[0, 2] / shear[2, 2], -shear[0, 1] / shear[1, 1]
    return shear[0, 0] - shear[1, 1] * (y * y + z * z), np.array([y, z])


@pytest.mark.parametrize(("width", "height"), [(1.0, 1.0), (2.0, 1.0), (0.02, 0.1)])
@pytest.mark.parametrize("saint_venant", [False, True])
def test_rectangles_are_rectangles(width, height, saint_venant):
    """Purpose: all matrices are those of SectionRectangle, Saint-Venant's constant by its series, tapered as well."""
    half = 0.5 * np.array([width, height])
    polygon = ls.SectionPolygon(half * [(-1, -1), (1, -1), (1, 1), (-1, 1)], (1.0, 0.5), saint_venant)
    rectangle = ls.SectionRectangle((width, width / 2), (height, height / 2), saint_venant)
    for s in (0.0, 0.3, 1.0):
        for found, expected in zip(*(x.constitution(s, SILICONE, "") for x in (polygon, rectangle)), strict=True):
            own = np.abs(expected).max() * np.eye(6) + np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
            assert np.abs((found - expected) / own).max() < 1e-12 + 5e-6 * saint_venant


def test_triangles():
    """Purpose: an equilateral triangle has √3 a⁴/80 and turns about its middle; half a square has 0.0261 a⁴ (Young and
    Budynas, Roark's Formulas, table 10.7)."""
    constant, centre = torsion(ring(3) + np.array([0.3, -0.1]))
    assert constant == pytest.approx(np.sqrt(3) ** 5 / 80, rel=1e-12)
    np.testing.assert_allclose(centre, (0.3, -0.1), rtol=0, atol=1e-12)
    assert torsion([(0, 0), (1, 0), (0, 1)])[0] == pytest.approx(0.0261, abs=5e-5)


@pytest.mark.parametrize("count", [12, 48])
def test_many_corners_tend_to_a_circle(count):
    """Purpose: of all sections of one area the circle has the largest constant, A²/2π (Pólya), and polygons of many
    corners come near it as 1/n⁴ (their difference of radius squared)."""
    area = count / 2 * np.sin(2 * np.pi / count)
    constant, centre = torsion(ring(count))
    short = 1.0 - constant * 2 * np.pi / area**2
    assert 1.0 < short * count**4 / 100 < 10.0
    np.testing.assert_allclose(centre, 0.0, rtol=0, atol=1e-6)


def test_a_half_circle():
    """Purpose: torsion constant (π/2 − 4/π) r⁴, and the shear centre (by energy) at 8/5π of the radius from the
    diameter, both to the error of 48 chords."""
    constant, centre = torsion(ring(96)[:49])
    assert constant == pytest.approx(np.pi / 2 - 4 / np.pi, rel=2e-3)
    np.testing.assert_allclose(centre, (0.0, 8 / (5 * np.pi)), rtol=0, atol=3e-4)


def test_thin_walls():
    """Purpose: walls of thickness t and length l have l t³/3; an angle's shear centre is where its legs meet, a
    channel's 3b²/(h + 6b) behind its web; both to the thickness."""
    t, b, h = 0.03, 0.5, 1.0
    angle = np.array([(-t / 2, -t / 2), (1, -t / 2), (1, t / 2), (t / 2, t / 2), (t / 2, 1), (-t / 2, 1)])
    constant, centre = torsion(angle)
    assert constant == pytest.approx(2 * t**3 / 3, rel=0.02)
    assert np.abs(centre).max() < t**2
    x, y = np.array([-t / 2, b, b, t / 2]), h / 2 + t / 2 * np.array([1, 1, -1, -1])
    channel = np.concatenate([np.column_stack([x, -y]), np.column_stack([x, y])[::-1]])
    constant, centre = torsion(channel)
    assert constant == pytest.approx((h + 2 * b) * t**3 / 3, rel=0.02)
    np.testing.assert_allclose(centre, (-3 * b**2 / (h + 6 * b), 0.0), rtol=0, atol=t**2)


def test_torsion_of_an_angle_solves_the_stress_function():
    """Purpose: J = 2∫φ with Δφ = −2 on a section with a corner inwards, by finite differences of three sizes; their
    error, of order 4/3 there, is extrapolated."""
    from scipy.sparse import diags, identity, kron
    from scipy.sparse.linalg import spsolve

    def constant(n):
        step, inner = 1.0 / n, 2 * n - 1
        line = diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(inner, inner)) / step**2
        laplacian = (kron(line, identity(inner)) + kron(identity(inner), line)).tocsc()
        k = np.arange(1, 2 * n)
        inside = ((k[:, None] < n) | (k < n)).ravel()
        free = np.flatnonzero(inside)
        return 2 * spsolve(laplacian[free][:, free], -2 * np.ones(len(free))).sum() * step**2

    coarse, fine = constant(48), constant(96)
    extrapolated = fine + (fine - coarse) / (2 ** (4 / 3) - 1)
    assert torsion(ANGLE / 0.01)[0] == pytest.approx(extrapolated, rel=2e-4)
    assert abs(fine - coarse) > 1e-3 * fine


def test_torsion_does_not_depend_on_where_and_how_the_section_lies():
    """Purpose: the constant grows with the fourth power of the size; turning, shifting and starting elsewhere, or going
    round the other way, leave it, and move the shear centre along."""
    constant, centre = torsion(ANGLE)
    shift, turn = np.array([0.013, -0.004]), 0.7
    for other in (ANGLE[::-1], np.roll(ANGLE, 2, axis=0)):
        found = torsion(other)
        assert found[0] == pytest.approx(constant, rel=1e-5)
        np.testing.assert_allclose(found[1], centre, rtol=0, atol=1e-7)
    found = torsion(turned(ANGLE, turn) + shift, 3.0)
    assert found[0] == pytest.approx(81 * constant, rel=1e-5)
    np.testing.assert_allclose(found[1], 3 * (turned(centre[None], turn)[0] + shift), rtol=0, atol=1e-6)


STRAINS = dict.fromkeys(("torsion", "bending_y", "bending_z", "elongation", "shear_y", "shear_z"), 2)


def clamped(section, offset=(0.0, 0.0)):
    """A rod clamped so that its centreline starts at an offset, with a load at the end of the line from the origin."""
    robot = ls.Robot("rod", gravity=(0.3, -2.0, -9.0))
    placement = np.eye(4)
    placement[1:3, 3] = offset
    robot.add_link("rod", ls.Rod(0.3, section, ls.BasisLegendre(**STRAINS), SILICONE), placement=placement)
    robot.add_point_load("load", "rod", force=(0.2, 0.1, -0.3), position=(0.0, *(-np.array(offset))))
    robot.add_tendon("pull", "rod", tuple(np.array([0.0, 0.01]) - offset))
    return robot.build()


@pytest.mark.parametrize("saint_venant", [False, True])
def test_where_the_centreline_runs_does_not_matter(saint_venant):
    """Purpose: the same body, described about its centroid and about another line in it, has one centre of mass, the
    same shape under weight, load and tension, and the same M, K and D in strains κ and ε + κ × d."""
    middle, d = np.array([5 / 600, 5 / 600]), np.array([0.0, 0.004, -0.007])
    centred = clamped(ls.SectionPolygon(ANGLE - middle, (1.0, 1.0), saint_venant))
    other = clamped(ls.SectionPolygon(ANGLE - middle - d[1:], (1.0, 1.0), saint_venant), d[1:])
    q, p = (ls.solve_statics(model, [0.4]).q for model in (centred, other))
    change = np.eye(6)
    change[3:, :3] = np.cross(np.eye(3), d).T
    change = np.kron(change, np.eye(3))
    np.testing.assert_allclose(p, change @ q, rtol=0, atol=1e-8)
    assert np.linalg.norm(ls.frame_pose(centred, q, "rod")[:3, 3] - (0.3, 0, 0)) > 0.02
    matrices = [
        [ls.mass_matrix(model, x), ls.stiffness_matrix(model), ls.damping_matrix(model)]
        for model, x in ((centred, q), (other, change @ q))
    ]
    for expected, found in zip(*matrices):
        size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        assert np.abs((change.T @ found @ change - expected) / size).max() < 1e-9
    for model in (centred, other):
        assert ls.center_of_mass(model, model.neutral()) == pytest.approx([0.15, 0.0, 0.0], abs=1e-12)


def test_a_pull_at_the_centroid_does_not_bend():
    """Purpose: elongation and bending are uncoupled about the centroid, and only there."""
    robot = ls.Robot("pulled", gravity=(0, 0, 0))
    robot.add_link("rod", ls.Rod(0.3, ls.SectionPolygon(ANGLE), ls.BasisLegendre(**STRAINS), SILICONE))
    robot.add_point_load("pull", "rod", force=(20.0, 0, 0), position=(0.0, 5 / 600, 5 / 600))
    model = robot.build()
    q = ls.solve_statics(model).q.reshape(6, 3)
    expected = np.zeros((6, 3))
    expected[3, 0] = 20.0 / (1e6 * 3e-4)
    np.testing.assert_allclose(q, expected, rtol=0, atol=1e-10)


def test_a_force_through_the_shear_centre_does_not_twist():
    """Purpose: a shear force at the shear centre of an angle leaves it untwisted to first order, one at the centroid
    twists it."""
    section = ls.SectionPolygon(ANGLE, saint_venant=True)
    _, centre = torsion(ANGLE)
    twists = []
    for y, z in (centre, (5 / 600, 5 / 600)):
        robot = ls.Robot("sheared", gravity=(0, 0, 0))
        robot.add_link("rod", ls.Rod(0.3, section, ls.BasisLegendre(**STRAINS), SILICONE))
        robot.add_point_load("push", "rod", force=(0, 0, 1e-6), position=(0.0, y, z))
        model = robot.build()
        twists.append(np.abs(ls.solve_statics(model).q[:3]).max())
    assert twists[0] < 1e-4 * twists[1]


def test_the_outline_and_its_radii():
    """Purpose: the outline goes through every corner at every size asked for; the smallest distance is to the nearest
    edge, not to the nearest point drawn."""
    section = ls.SectionPolygon(ANGLE - 0.005, lambda s: 1 + s)
    for count in (6, 24, 64, 3):
        outline = section.outline(1.0, count)
        assert len(outline) == max(count // 6, 1) * 6
        assert all(np.abs(outline - 2 * (p - 0.005)).sum(axis=1).min() < 1e-15 for p in ANGLE)
    assert section.inner_radius(0.0) == pytest.approx(0.005, rel=1e-12)
    assert section.radius(0.0) == pytest.approx(np.hypot(0.015, 0.005), rel=1e-12)


WRONG = {
    "two corners": ([(0, 0), (1, 0)], r"points: must be at least 3 \(got 2\)"),
    "numbers": (3, r"points: must be rows \(y, z\) \(got 3\)"),
    "three columns": ([(0, 0, 0)] * 3, r"points: must be rows \(y, z\)"),
    "crossing": ([(0, 0), (1, 1), (1, 0), (0, 1)], "do not meet elsewhere"),
    "closed twice": ([(0, 0), (1, 0), (0, 1), (0, 0)], "whose edges have a length"),
    "flat": ([(0, 0), (1, 0), (2, 0)], "a polygon with an area"),
    "spike": ([(0, 0), (2, 0), (1, 0), (1, 1)], "do not meet elsewhere"),
    "touching": ([(0, 0), (2, 0), (2, 2), (1, 0), (0, 2)], "do not meet elsewhere"),
    "not finite": ([(0, 0), (1, 0), (0, np.inf)], "must be rows"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_polygons_are_named(name):
    """Purpose: errors name the rod, the rule and the value of a shape that is no polygon."""
    points, rule = WRONG[name]
    with pytest.raises(ls.ModelError, match=f"link 'rod' > body > section: .*{rule}"):
        clamped(ls.SectionPolygon(points))


def test_wrong_scales_and_a_missing_material_are_named():
    """Purpose: what other sections refuse is refused here, too."""
    with pytest.raises(ls.ModelError, match=r"section: scale: must be > 0 \(got -1"):
        clamped(ls.SectionPolygon(ANGLE, -1.0))
    robot = ls.Robot("bare")
    robot.add_link("rod", replace(clamped(ls.SectionPolygon(ANGLE)).links.body[0], material=None))
    with pytest.raises(ls.ModelError, match="section: needs a material"):
        robot.build()


@pytest.mark.parametrize("package", ["skfem", "shapely"])
def test_a_missing_package_is_named_with_the_remedy(package, monkeypatch):
    """Purpose: without the extra, polygons work but for Saint-Venant torsion, which says what to install."""
    monkeypatch.setitem(sys.modules, package, None)
    clamped(ls.SectionPolygon(ANGLE))
    with pytest.raises(ls.ModelError, match=r"section: Saint-Venant torsion of a polygon needs .*lissom\[sections\]"):
        clamped(ls.SectionPolygon(ANGLE, saint_venant=True))


def test_describing_a_polygon_loads_nothing_heavy():
    """Purpose: the packages of the extra, and SciPy, are loaded when Saint-Venant torsion is asked for, no earlier."""
    code = """
import sys
import lissom as ls
section = ls.SectionPolygon([(0, 0), (0.02, 0), (0, 0.02)], (1.0, 0.5))
robot = ls.Robot("r")
robot.add_link("arm", ls.Rod(0.5, section, ls.BasisLegendre(bending_y=2), ls.Material(young=1e6, density=1e3)))
robot.check()
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {name.split(".")[0] for name in done.stdout.split()} & {"skfem", "shapely", "scipy", "warp"}
