"""Stresses on the outline of rods: closed forms of cantilevers, torsion, shear forces and their combination."""

import numpy as np
import pytest

import lissom as ls

LENGTH, STEEL = 0.5, ls.Material(young=2e11, poisson=0.3, density=7850)


def loaded(section, force=(0.0, 0.0, 0.0), moment=(0.0, 0.0, 0.0)):
    """A clamped steel rod along x with a load at its tip, and its equilibrium. Its bending is below 1e-4."""
    robot = ls.Robot("cantilever", gravity=(0, 0, 0))
    basis = ls.BasisLegendre(torsion=1, bending_y=1, bending_z=1, elongation=1)
    robot.add_link("rod", ls.Rod(LENGTH, section, basis, STEEL))
    robot.add_point_load("load", "rod", force=force, moment=moment)
    model = robot.build()
    return model, ls.solve_statics(model, stable=False)  # moments that do not follow the rod may make it flutter


def test_bending_and_shear_of_a_cantilever():
    """A tip force F across gives F (L − x) c/J on the outer fibre and 4F/3A on the neutral axis; a tension N/A."""
    r, F, N = 0.01, 2.0, 3.0
    found = ls.stress(*loaded(ls.SectionCircle(r), (N, 0.0, -F)), "rod", [0.0, 0.5], strength=250e6)
    area, J = np.pi * r**2, np.pi * r**4 / 4
    top = np.argmax(found.points[0, :, 1])
    side = np.argmin(np.abs(found.points[0, :, 1]))
    np.testing.assert_allclose(found.axial, N / area, rtol=2e-4)
    np.testing.assert_allclose(found.bending[:, top], F * LENGTH * np.array([1.0, 0.5]) * r / J, rtol=1e-3)
    np.testing.assert_allclose(found.bending[:, side], 0.0, atol=1e-6 * found.bending.max())
    np.testing.assert_allclose(found.shear[:, side], np.tile([0.0, -4.0 * F / (3.0 * area)], (2, 1)), rtol=1e-4, atol=1)
    largest = N / area + F * LENGTH * r / J
    assert found.largest[0] == pytest.approx(largest, rel=1e-3)
    assert found.safety_factor[0] == pytest.approx(250e6 / largest, rel=1e-3)
    np.testing.assert_allclose(found.normal, found.axial + found.bending)


def test_combined_bending_and_torsion_of_a_shaft():
    """A shaft under a moment M and a torque T has √(σ² + 3 τ²) with σ = 4M/π r³ and τ = 2T/π r³."""
    r, M, T = 0.01, 5.0, 7.0
    model, e = loaded(ls.SectionCircle(r), moment=(T, M, 0.0))
    found = ls.stress(model, e, "rod", 0.3)
    sigma, tau = 4 * M / (np.pi * r**3), 2 * T / (np.pi * r**3)
    np.testing.assert_allclose(np.linalg.norm(found.shear, axis=-1), tau, rtol=1e-3)
    assert found.von_mises.max() == pytest.approx(np.sqrt(sigma**2 + 3 * tau**2), rel=1e-3)
    assert found.von_mises.shape == (48,) and found.shear.shape == (48, 2) and found.points.shape == (48, 2)


# largest stress b h² τ/T, with h the shorter side, and that in the middle of the short side relative to it
TORSION_OF_RECTANGLES = {1.0: (0.208, 1.0), 1.5: (0.231, 0.859), 2.0: (0.246, 0.795), 3.0: (0.267, 0.753),
                         4.0: (0.282, 0.745), 10.0: (0.312, 0.742)}  # fmt: skip


@pytest.mark.parametrize("ratio", TORSION_OF_RECTANGLES)
@pytest.mark.parametrize("turned", [False, True])
def test_torsion_of_rectangles(ratio, turned):
    """The table of Saint-Venant's solution (Timoshenko and Goodier §109), to its three digits."""
    short, T = 0.01, 3.0
    sides = (short, ratio * short) if turned else (ratio * short, short)
    found = ls.stress(*loaded(ls.SectionRectangle(*sides), moment=(T, 0.0, 0.0)), "rod", 0.5)
    size = np.linalg.norm(found.shear, axis=-1)
    largest, of_short = TORSION_OF_RECTANGLES[ratio]
    assert T / (ratio * short**3 * size.max()) == pytest.approx(largest, abs=6e-4)
    y, z = found.points.T
    on_short = np.isclose(np.abs(z if turned else y), 0.5 * ratio * short)
    assert size[on_short].max() / size.max() == pytest.approx(of_short, abs=2e-3)
    assert size[np.isclose(np.abs(y), sides[0] / 2) & np.isclose(np.abs(z), sides[1] / 2)].max() < 2e-3 * size.max()
    turn = y * found.shear[:, 1] - z * found.shear[:, 0]
    assert (turn[size > 1e-3 * size.max()] > 0.0).all()  # all turn with the torque


def test_rectangle_under_a_shear_force():
    """3F/2A in the middle of the sides along the force, and nothing on the sides across it."""
    b, h, F = 0.01, 0.02, 4.0
    found = ls.stress(*loaded(ls.SectionRectangle(b, h), (0.0, F, 0.0)), "rod", 1.0 - 1e-9)
    y, _ = found.points.T
    np.testing.assert_allclose(found.shear[np.isclose(y, 0.0), 0], 1.5 * F / (b * h), rtol=1e-4)
    np.testing.assert_allclose(found.shear[np.isclose(np.abs(y), b / 2), 0], 0.0, atol=1e-6 * found.shear.max())


def test_tube_and_ellipse():
    """A tube: T R/J, and V (R³ − r³)/(3 J_z (R − r)) on the neutral axis. An ellipse: 2T/(π a b²) at the end of the
    shorter axis, 2T/(π a² b) at that of the longer."""
    R, r, T, F = 0.02, 0.015, 11.0, 6.0
    J = np.pi * (R**4 - r**4) / 4
    found = ls.stress(*loaded(ls.SectionAnnulus(R, r), moment=(T, 0.0, 0.0)), "rod", 0.5)
    np.testing.assert_allclose(np.linalg.norm(found.shear, axis=-1), T * R / (2 * J), rtol=1e-3)
    found = ls.stress(*loaded(ls.SectionAnnulus(R, r), (0.0, F, 0.0)), "rod", 0.5)
    on_axis = np.isclose(found.points[:, 0], 0.0, atol=1e-9)
    np.testing.assert_allclose(found.shear[on_axis, 0], F * (R**3 - r**3) / (3 * J * (R - r)), rtol=1e-3)
    a, b = 0.02, 0.01
    found = ls.stress(*loaded(ls.SectionEllipse(a, b), moment=(T, 0.0, 0.0)), "rod", 0.5)
    size = np.linalg.norm(found.shear, axis=-1)
    assert size.max() == pytest.approx(2 * T / (np.pi * a * b**2), rel=1e-3)
    assert size[np.argmax(found.points[:, 0])] == pytest.approx(2 * T / (np.pi * a**2 * b), rel=1e-3)


@pytest.mark.parametrize("axis", [1, 2])
def test_shear_of_tubes_follows_the_outline_and_carries_the_force(axis):
    """In a thin tube the stress on the outline times the wall is the flow of shear: its resultant is the force."""
    R, r = 0.02, 0.0199
    F = np.eye(3)[axis] * 6.0
    found = ls.stress(*loaded(ls.SectionAnnulus(R, r), tuple(F)), "rod", 0.5, count=720)
    resultant = found.shear.sum(axis=0) * (2 * np.pi * R / 720) * (R - r)
    np.testing.assert_allclose(resultant, F[1:], rtol=0, atol=0.06 * 6.0 * 0.2)
    outwards = np.sum(found.shear * found.points, axis=1) / R
    assert np.abs(outwards).max() < 1e-9 * np.abs(found.shear).max()


def test_a_polygon_bends_like_its_rectangle_and_refuses_torsion():
    """Bending of a rectangle as polygon, off its centroid, too; shear is refused by name, with the cure."""
    corners = np.array([[-0.01, -0.005], [0.01, -0.005], [0.01, 0.005], [-0.01, 0.005]])
    M, reference = (0.0, 2.0, 1.0), ls.SectionRectangle(0.02, 0.01)
    expected = np.abs(ls.stress(*loaded(reference, moment=M), "rod", 0.5).normal).max()
    found = ls.stress(*loaded(ls.SectionPolygon(corners), moment=M), "rod", 0.5, shear=False)
    assert found.largest == pytest.approx(expected, rel=1e-3)
    off = ls.stress(*loaded(ls.SectionPolygon(np.add(corners, (0.003, 0.002))), moment=M), "rod", 0.5, shear=False)
    assert off.largest == pytest.approx(expected, rel=1e-3)
    with pytest.raises(ls.ModelError, match="SectionPolygon has no formula for shear stresses: leave them out"):
        ls.stress(*loaded(ls.SectionPolygon(corners), moment=(1.0, 0.0, 0.0)), "rod", 0.5)
    given = ls.SectionGeneral(stiffness=np.full(6, 1e3), inertia=np.full(6, 1e-3))
    with pytest.raises(ls.ModelError, match="must have a shape"):
        ls.stress(*loaded(given), "rod", 0.5)


def test_tendons_and_motions():
    """A straight tendon through the centre presses the material, not the section. Along a motion there is a row for
    each time."""
    robot = ls.Robot("arm", gravity=(0, 0, 0))
    robot.add_link("rod", ls.Rod(LENGTH, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1, elongation=0), STEEL))
    robot.add_tendon("t", "rod", (0.0, 0.0))
    model = robot.build()
    found = ls.stress(model, ls.solve_statics(model, [100.0]), "rod", 0.5)
    np.testing.assert_allclose(found.axial, -100.0 / (np.pi * 0.01**2), rtol=1e-6)
    motion = ls.simulate(model, 1e-3, u=[100.0], t_eval=np.linspace(0.0, 1e-3, 4))
    moved = ls.stress(model, motion, "rod", [0.1, 0.9])
    assert moved.von_mises.shape == (4, 2, 48) and moved.shear.shape == (4, 2, 48, 2)
    W = ls.internal_wrench(model, motion.q, motion.v, motion.a, motion.u, "rod", 0.9, t=motion.t).material
    np.testing.assert_allclose(moved.axial[:, 1, 0], W[:, 3] / (np.pi * 0.01**2), rtol=1e-9, atol=1e-6)


def test_batches():
    """Rows of an equilibrium, and models of a batch, have the stresses of each alone."""
    model, e = loaded(ls.SectionCircle(0.01), (0.0, 1.0, 2.0))
    many = ls.ModelBatch([model, model.with_({"rod.section.radius": 0.02})])
    found = ls.stress(many, ls.solve_statics(many), "rod", [0.0, 0.4], strength=1e8)
    assert found.von_mises.shape == (2, 2, 48) and found.safety_factor.shape == (2, 2)
    for k, one in enumerate(many):
        alone = ls.stress(one, ls.solve_statics(one), "rod", [0.0, 0.4])
        np.testing.assert_allclose(found.von_mises[k], alone.von_mises, rtol=1e-9)
    rows = ls.solve_statics(model, np.zeros((3, 0)))
    assert ls.stress(model, rows, "rod", 0.0).shear.shape == (3, 48, 2)
    with pytest.raises(ls.ShapeError, match="expected one state of each model"):
        ls.stress(many, e, "rod", 0.0)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"strength": 0.0}, "strength: must be"),
        ({"count": 2}, "count: must be"),
        ({"link": "arm"}, "link: must be one whose body is a rod"),
        ({"s": 1.5}, "s"),
        ({"state": np.zeros(3)}, "state: must be an Equilibrium or a Trajectory"),
    ],
)
def test_wrong_arguments(change, told):
    """Each is an error with its name and rule."""
    model, e = loaded(ls.SectionCircle(0.01))
    given = {"state": e, "link": "rod", "s": 0.5} | change
    with pytest.raises(ls.ModelError, match=told):
        ls.stress(model, given.pop("state"), given.pop("link"), given.pop("s"), **given)
    with pytest.raises(ls.ModelError, match="needs a strength"):
        _ = ls.stress(model, e, "rod", 0.5).safety_factor
