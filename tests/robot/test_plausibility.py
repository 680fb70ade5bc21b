"""Numbers that look like a slip of units, and shapes that no rod can have, give warnings."""

import numpy as np
import pytest

import lissom as ls

BENDING = ls.BasisLegendre(bending_y=2)
STRETCHING = ls.BasisLegendre(bending_y=2, elongation=1)


def arm(*, length=0.5, radius=0.01, young=1e6, density=1e3, basis=STRETCHING, gravity=(0, 0, -9.81), **options):
    """A robot of one rod called "arm", horizontal."""
    robot = ls.Robot("r", gravity=gravity)
    material = ls.Material(young=young, density=density)
    robot.add_link("arm", ls.Rod(length, ls.SectionCircle(radius), basis, material), **options)
    return robot


def with_tendon(offset):
    """An arm with a tendon at a distance along z."""
    robot = arm()
    robot.add_tendon("t", "arm", (0.0, offset))
    return robot


SLIPS = {
    "young in MPa": (arm(young=1.0), "link 'arm' > body > material: young is 1 Pa, like no material .*1 GPa is 1e9"),
    "young in GPa": (arm(young=70), "young is 70 Pa"),
    "young twice scaled": (arm(young=7e16), r"young is 7e\+16 Pa"),
    "density in g/cm3": (arm(density=1.07), r"density is 1.07 kg/m³; did you mean 1070 kg/m³"),
    "density too high": (arm(density=1e6), r"density is 1e\+06 kg/m³"),
    "length in mm": (arm(length=250, radius=0.3), r"body: length is 250 m; did you mean 0.25 m \(given in mm\)"),
    "radius in mm": (arm(radius=10), "section: reaches 10 m from the centreline of a rod of 0.5 m"),
    "radius in km": (arm(radius=1e-8), "section: reaches only 1e-08 m"),
    "tendon in mm": (with_tendon(14), r"actuator 't': offset runs 14 m from .* did you mean 0.014 m"),
    "gravity in mm/s2": (arm(gravity=(0, 0, -9810)), r"robot 'r': gravity is 9810 m/s²; did you mean 9.81 "),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_of_units_is_reported_at_build(slip):
    """One warning that names the entity, the value and the probable cause; the model is built as asked."""
    robot, message = SLIPS[slip]
    with pytest.warns(ls.PlausibilityWarning, match=message) as told:
        assert robot.build().nv == robot.links["arm"].body.basis.size
    assert len(told) == 1


@pytest.mark.parametrize(
    "robot",
    [
        arm(young=1e3, density=100, length=5e-5, radius=1e-6),
        arm(young=1.1e12, density=19300, length=80.0, radius=0.5),
        arm(length=0.05, radius=0.04),
        arm(length=1.0, radius=5e-5),
        with_tendon(0.2),
    ],
    ids=["a gel on a microscope", "a tungsten mast", "a puck", "a fibre", "a tendon on a lever"],
)
def test_what_exists_is_not_doubted(robot):
    """The margins are wide: robots that somebody has built give no warning."""
    robot.build()


def test_a_section_that_gives_its_matrices_needs_no_plausible_material():
    """The material is looked at only where it says something."""
    robot = ls.Robot("r")
    section = ls.SectionGeneral(stiffness=(1, 1, 1, 1e3, 1e3, 1e3), inertia=(1e-4, 1e-4, 1e-4, 1, 1, 1))
    robot.add_link("arm", ls.Rod(1.0, section, BENDING, ls.Material(young=1.0, density=1.0)))
    robot.build()


def pushed(force, **options):
    """An arm without gravity, pushed or pulled along its axis at the tip; EA = 314 N."""
    robot = arm(basis=ls.BasisLegendre(elongation=1), gravity=(0, 0, 0), **options)
    robot.add_point_load("tip", "arm", force=(force, 0, 0))
    return robot.build()


def test_a_rod_squeezed_to_nothing_is_reported():
    """A force of 0.993 EA leaves 0.7 % of the length: linear elasticity has ended long before."""
    model = pushed(-0.993 * 1e6 * np.pi * 0.01**2)
    with pytest.warns(ls.PlausibilityWarning, match=r"rod 'arm' is squeezed to 0.7 % of its length at s = .* in Pa"):
        end = ls.solve_statics(model)
    assert ls.frame_pose(model, end.q, "arm")[0, 3] == pytest.approx(0.5 * 0.007, rel=1e-6)


def test_a_rod_drawn_out_is_reported():
    """Eleven times its length."""
    with pytest.warns(ls.PlausibilityWarning, match="rod 'arm' is drawn out to 11 times its length"):
        ls.solve_statics(pushed(10 * 1e6 * np.pi * 0.01**2))


def test_a_rod_turned_inside_out_is_no_equilibrium():
    """Beyond EA the equations have a solution whose stretch is negative; it means nothing and is an error."""
    model = pushed(-1.2 * 1e6 * np.pi * 0.01**2)
    with pytest.raises(ls.ConvergenceError, match=r"rod 'arm' is turned inside out \(stretch -0.2 at s = ") as caught:
        ls.solve_statics(model)
    assert caught.value.partial.q.shape == (model.nq,)
    with pytest.raises(ls.ConvergenceError, match=r"instance 0 of 2: robot 'r': .* rod 'arm'"):
        ls.solve_statics(model, q0=np.zeros((2, model.nq)))


def test_a_bend_tighter_than_the_section_is_reported():
    """A moment that bends a rod of radius 1 cm to a circle of radius 0.4 cm."""
    robot = arm(length=0.015, basis=ls.BasisLegendre(bending_y=0), gravity=(0, 0, 0))
    EI = 1e6 * np.pi * 0.01**4 / 4
    robot.add_point_load("tip", "arm", moment=(0, EI / 0.004, 0), frame="body")
    model = robot.build()
    with pytest.warns(ls.PlausibilityWarning, match="rod 'arm' is bent so tightly that the inner side"):
        ls.solve_statics(model)


def test_a_motion_says_when():
    """A soft rod hit by its load is squeezed through itself; the trajectory comes with the time of the worst."""
    model = pushed(-1.5 * 1e6 * np.pi * 0.01**2)
    with pytest.warns(ls.PlausibilityWarning, match=r"rod 'arm' is turned inside out at s = [\d.]+ at t = [\d.]+ s"):
        motion = ls.simulate(model, 0.05)
    assert motion.t[-1] == 0.05


def test_the_look_costs_little():
    """Two small products of matrices, made ready once for a model."""
    model = arm().build()
    ls.solve_statics(model)
    assert ("strains",) in model.cache
