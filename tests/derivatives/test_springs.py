"""Springs between points: derivatives against differences, energy against force, motions against closed forms."""

from itertools import pairwise

import numpy as np
import pytest
import warp as wp
from robot_descriptions import assert_same, one_rod, round_trip
from scipy.integrate import quad
from touching_robots import differences, hybrid, mismatch, state

import lissom as ls

TOLERANCE, STEP = 1e-7, 1e-5
ROWS = [(0.05, -3.0), (0.2, 0.0), (0.4, 9.0), (0.8, 30.0)]


@wp.func
def muscle(length: wp.float64, rate: wp.float64) -> wp.float64:
    """A tension that grows with the length, less the faster it shortens."""
    return wp.float64(20.0) * length * length * (wp.float64(1.0) + wp.float64(0.5) * wp.tanh(wp.float64(2.0) * rate))


GROUND = ls.PathPoint(None, (0.2, 0.3, -0.4))
INSIDE = ls.PathPoint("a", (0.01, 0.02, 0.0), s=0.37)
ON_BALL, PIN = ls.PathPoint("ball", (0.0, 0.01, 0.0)), ls.PathPoint("b", (0.02, 0.0, 0.01), s=0.5)
AT_KNOB = [[0.0, 0.0, 1.0, 0.02], [1.0, 0.0, 0.0, -0.07], [0.0, 1.0, 0.0, -0.15], [0.0, 0.0, 0.0, 1.0]]
AT_PEG = [[1.0, 0.0, 0.0, 0.42], [0.0, 1.0, 0.0, 0.43], [0.0, 0.0, 1.0, 0.27], [0.0, 0.0, 0.0, 1.0]]
PEG = ls.PathWrap(None, ls.ShapeCylinder(0.05, axis=(1.0, 0.1, 0.0)), placement=AT_PEG)
KNOB = ls.PathWrap("base", ls.ShapeSphere(0.05), placement=AT_KNOB)
BRANCHES = (ls.SpringBranch((ON_BALL, GROUND, PIN), -0.5), ls.SpringBranch((INSIDE, PEG, PIN), 2.0))
SPRINGS = {
    "between two rods": ("a", "b", {"stiffness": 40.0, "damping": 2.0, "rest": 0.1}),
    "to the world": (GROUND, INSIDE, {"stiffness": 40.0, "damping": 2.0, "preload": 3.0}),
    "cable": (INSIDE, ls.PathPoint("ball", (0.0, 0.01, 0.0)), {"stiffness": 90.0, "rest": 0.05, "slack": True}),
    "slack cable": ("ball", GROUND, {"stiffness": 90.0, "damping": 1.0, "rest": 5.0, "slack": True}),
    "table": ("a", "b", {"law": ROWS, "damping": 1.5}),
    "beyond a table": (GROUND, "b", {"law": ls.Tabulated([0.01, 0.02, 0.03, 0.04], [0.0, 1.0, 3.0, 4.0])}),
    "straight pieces": ("a", "b", {"law": ls.Tabulated([0.01, 0.3, 3.0], [0.0, 1.0, 30.0], "linear")}),
    "compiled": ("a", GROUND, {"law": muscle}),
    "over points": ("a", "b", {"stiffness": 40.0, "damping": 2.0, "via": (GROUND, ON_BALL)}),
    "round a peg": (INSIDE, "b", {"stiffness": 40.0, "damping": 2.0, "via": (PEG,)}),
    "round a ball, a table": ("a", "b", {"law": ROWS, "damping": 1.5, "via": (GROUND, KNOB, PIN, INSIDE, PEG)}),
    "pulleys": ("a", GROUND, {"stiffness": 40.0, "damping": 2.0, "rest": -1.0, "branches": BRANCHES}),
    "slack over points": ("a", "b", {"stiffness": 9.0, "damping": 1.0, "rest": 9.0, "slack": True, "via": (GROUND,)}),
}


def test_paths_touch_their_shapes():
    """The paths of the springs above are longer than without the shapes; lengths are those of tendons."""
    lengths = []
    for via in ((GROUND, PIN, INSIDE), (GROUND, KNOB, PIN, INSIDE), (GROUND, KNOB, PIN, INSIDE, PEG)):
        robot = hybrid("free")
        robot.add_spring("spring", "a", "b", stiffness=1.0, via=via)
        robot.add_tendon("tendon", path=[ls.PathPoint("a"), *via, ls.PathPoint("b")])
        model = robot.build()
        lengths.append(ls.spring_lengths(model, state(model, 5)[0])[0])
        assert abs(lengths[-1] - ls.path_lengths(model, state(model, 5)[0])[0]) < 1e-14
    assert min(np.diff(lengths)) > 1e-3


def sprung(name, base="free"):
    """The hybrid robot with one spring."""
    robot = hybrid(base)
    a, b, options = SPRINGS[name]
    robot.add_spring("spring", a, b, **options)
    return robot.build()


@pytest.mark.parametrize("name", SPRINGS)
def test_derivatives(name):
    """Inverse and forward dynamics and the directional derivative, both ends moving."""
    model = sprung(name)
    q, v, a = state(model, 5)
    dq, dv, _ = ls.inverse_dynamics_derivatives(model, q, v, a)
    along = differences(model, lambda d: ls.inverse_dynamics(model, ls.integrate(model, q, d), v, a), STEP)
    assert mismatch(model, dq, along) < TOLERANCE
    along = differences(model, lambda d: ls.inverse_dynamics(model, q, v + d, a), STEP)
    assert mismatch(model, dv, along) < TOLERANCE
    way = np.random.default_rng(1).normal(size=model.nv) * model.dofs.scale
    turned = ls.inverse_dynamics_tangent(model, q, v, a, way, way, 0.0 * way)
    np.testing.assert_allclose(turned, (dq + dv) @ way, rtol=0, atol=1e-9 * np.abs(turned).max())
    da_dq, da_dv, _ = ls.forward_dynamics_derivatives(model, q, v)
    M = ls.mass_matrix(model, q)
    along = differences(model, lambda d: ls.forward_dynamics(model, ls.integrate(model, q, d), v), STEP)
    assert mismatch(model, M @ da_dq, M @ along) < TOLERANCE
    along = differences(model, lambda d: ls.forward_dynamics(model, q, v + d), STEP)
    assert mismatch(model, M @ da_dv, M @ along) < TOLERANCE


def test_a_compiled_law_along_a_path():
    """Derivatives of inverse dynamics by q and v along a direction."""
    robot = hybrid("free")
    robot.add_spring("spring", "a", GROUND, law=muscle, via=[ON_BALL])
    model = robot.build()
    q, v, a = state(model, 5)
    way = np.random.default_rng(1).normal(size=model.nv) * model.dofs.scale
    ends = [ls.inverse_dynamics(model, ls.integrate(model, q, h * way), v + h * way, a) for h in (STEP, -STEP)]
    found = ls.inverse_dynamics_tangent(model, q, v, a, way, way, 0.0 * way)
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2 * STEP), rtol=0, atol=1e-6 * np.abs(found).max())


@pytest.mark.parametrize("name", SPRINGS)
def test_force_is_the_slope_of_the_energy(name):
    """At rest the generalised force is the gradient of the energy, and springs count as elastic, not as loads."""
    model = sprung(name)
    q, still = state(model, 7)[0], np.zeros(model.nv)
    pull = ls.inverse_dynamics(model, q, still, still, gravity=False, loads=False)

    def held(d):
        return ls.energy(model, ls.integrate(model, q, d), np.zeros_like(d)).elastic[..., None]

    np.testing.assert_allclose(pull, differences(model, held, 1e-4)[0], atol=1e-7 * np.abs(pull).max())
    free = hybrid("free").build()
    assert (ls.external_force(model, q) == ls.external_force(free, q)).all()


def point_mass(*springs):
    """A small ball on a free joint with springs to the ground, without weight."""
    robot = ls.Robot("mass", gravity=(0, 0, 0))
    robot.add_link("mass", ls.RigidBody.sphere(0.01, density=1e6), ls.JointFree())
    for k, (place, options) in enumerate(springs):
        robot.add_spring(f"spring {k}", ls.PathPoint(None, place), "mass", **options)
    return robot.build()


def test_slack_cables_do_nothing():
    """A slack cable neither pulls nor damps, whether its ends come closer or part; one that is taut does both."""
    place = (0.5, 0.0, 0.0)
    law = {"stiffness": 30.0, "damping": 2.0, "slack": True}
    slack, taut = (point_mass((place, law | {"rest": rest})) for rest in (0.6, 0.4))
    still = np.zeros(slack.nv)
    for speed in (-1.5, 0.0, 1.5):
        v = np.append(np.zeros(3), [speed, 0.0, 0.0])
        assert not ls.inverse_dynamics(slack, slack.neutral(), v, still).any()
        pull = max(0.0, 30.0 * 0.1 - 2.0 * speed)  # it grows shorter by the speed
        assert ls.inverse_dynamics(taut, taut.neutral(), v, still)[3] == pytest.approx(-pull, abs=1e-12)


@pytest.mark.parametrize("method", ["bdf", "newmark", "generalized_alpha"])
def test_oscillator(method):
    """A mass between two prestressed springs and a damper: longitudinal and lateral frequencies, and the decay."""
    k, c, preload, rest = 30.0, 0.3, 5.0, 0.5
    law = {"stiffness": k, "preload": preload, "rest": rest}
    model = point_mass(((0.5, 0, 0), law), ((-0.5, 0, 0), law | {"damping": c}))
    m, amplitude = model.links.mass[0], 1e-5
    q0 = model.neutral()
    q0[4:] = amplitude, amplitude, 0.0
    options = {"dt": 2e-3} if method != "bdf" else {"rtol": 1e-9, "atol": 1e-13}
    motion = ls.simulate(model, 4.0, q0, method=method, t_eval=np.linspace(0, 4, 51), **options)
    decay = c / (2 * m)
    omega = np.sqrt(2 * k / m - decay**2)
    t = motion.t
    along = amplitude * np.exp(-decay * t) * (np.cos(omega * t) + decay / omega * np.sin(omega * t))
    across = amplitude * np.cos(np.sqrt(2 * preload / rest / m) * t)
    tolerance = (2e-5 if method == "bdf" else 2e-3) * amplitude
    np.testing.assert_allclose(motion.q[:, 4], along, atol=tolerance)
    np.testing.assert_allclose(motion.q[:, 5], across, atol=tolerance)


def test_balance_of_energy():
    """A swinging robot with springs, a damper and a cable: the loss of energy is the work of the dampers. The fast
    motions that a sudden pull starts need many times for the integrals of powers."""
    robot = hybrid("fixed")
    robot.add_spring("across", "a", "b", stiffness=5.0, damping=0.5)
    robot.add_spring("stay", ls.PathPoint(None, (0.3, 0.1, 0.2)), "ball", stiffness=20.0, slack=True, rest=0.4)
    robot.add_spring("law", GROUND, "b", law=ROWS)
    model = robot.build()
    motion = ls.simulate(model, 0.5, rtol=1e-9, t_eval=np.linspace(0, 0.5, 4001))
    assert ls.energy_balance(model, motion).residual < 1e-6


def test_fused_and_separate_steps():
    """A Python actuator of no force makes the steps go through Python: the same numbers."""
    ends, size = [], hybrid("fixed").build().nv
    for separate in (False, True):
        robot = hybrid("fixed")
        robot.add_spring("across", "a", "b", stiffness=5.0, damping=0.5)
        robot.add_spring("pull", "a", GROUND, law=ROWS)
        if separate:
            robot.add_custom_actuator("nothing", lambda q: np.zeros(size))
        model = robot.build()
        motion = ls.simulate(model, 0.1, u=np.zeros(model.nu), method="generalized_alpha", dt=5e-3)
        ends.append((motion.q[-1], motion.v[-1]))
    for one, other in zip(*ends):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10 * np.abs(one).max())


def test_statics():
    """A hanging mass: stretch by its weight; a cable that is too long carries nothing."""
    robot = ls.Robot("hanging")
    robot.add_link("mass", ls.RigidBody.sphere(0.05, density=1000.0), ls.JointPrismatic((0, 0, 1)))
    robot.add_spring("spring", ls.PathPoint(None, (0, 0, 1.0)), "mass", stiffness=40.0, rest=0.8)
    robot.add_spring("cable", ls.PathPoint(None, (0, 0, 1.0)), "mass", stiffness=1e4, rest=2.0, slack=True)
    model = robot.build()
    rest = ls.solve_statics(model)
    weight = 9.81 * model.links.mass[0]
    np.testing.assert_allclose(ls.spring_lengths(model, rest.q), 0.8 + weight / 40.0, rtol=1e-12)


def test_length_in_the_neutral_configuration():
    """Left out, the rest length is that of the robot as it was described, on a curved rod too."""
    robot = one_rod(reference_strain=(0, 2.0, 0, 1.1, 0, 0))
    robot.add_spring("spring", ls.PathPoint(None, (0.1, 0.2, 0.3)), ls.PathPoint("arm", s=0.7), stiffness=3.0)
    model = robot.build()
    np.testing.assert_allclose(model.springs.law[:, 1], ls.spring_lengths(model, model.neutral()), rtol=1e-12)


def test_robot_file(tmp_path):
    """Springs are read as they were written."""
    robot = one_rod()
    robot.add_link("palm", ls.RigidBody.box(0.1, 0.1, 0.1, density=1000.0))
    robot.add_spring("plain", "arm", "palm", stiffness=3.0)
    options = {"damping": 0.2, "rest": 0.3, "preload": -1.0, "slack": True}
    robot.add_spring("all", ls.PathPoint(None, (0.1, 0.2, 0.3)), ls.PathPoint("arm", s=0.4), stiffness=3.0, **options)
    robot.add_spring("table", "arm", "palm", law=ROWS, damping=0.1)
    robot.add_spring("other table", "arm", "palm", law=ls.Tabulated([0.1, 0.2, 0.3], [0.0, 1.0, 3.0], "linear"))
    again = round_trip(robot, tmp_path)
    a, b = (each.build().springs for each in (robot, again))
    for name in ("node", "position", "law"):
        assert_same(getattr(a, name), getattr(b, name), name)
    for one, other in zip(a.other_law, b.other_law, strict=True):
        assert_same(list(one or ()), list(other or ()), "law")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stiffness": -1.0}, "spring 's': stiffness: must be >= 0"),
        ({}, "needs a stiffness, a damping, a preload or a law"),
        ({"stiffness": 1.0, "rest": -0.1}, "spring 's': rest: must be >= 0"),
        ({"law": ROWS, "stiffness": 2.0}, "stiffness: must be left out where there is a law"),
        ({"law": [(0.2, 1.0), (0.1, 2.0)]}, "law: needs at least two rising lengths"),
        ({"law": lambda length: length}, "law: must be rows"),
        ({"law": muscle, "damping": 1.0}, "damping, slack: must be left out"),
        ({"stiffness": 1.0, "slack": 3}, "slack: must be true or false"),
        ({"stiffness": 1.0, "b": "nobody"}, "b: link: must be one of the links"),
        ({"stiffness": 1.0, "b": 3}, "b: must be a PathPoint or the name of a link"),
        ({"stiffness": 1.0, "b": ls.PathPoint("arm", s=1.4)}, "b: s: "),
        ({"stiffness": 1.0, "a": ls.PathPoint(None), "b": ls.PathPoint(None)}, "must be fixed to a link at one end"),
    ],
)
def test_bad_descriptions(options, words):
    """Each wrong value is named with the rule it breaks."""
    robot = one_rod()
    ends = {"a": ls.PathPoint(None), "b": "arm"} | {k: x for k, x in options.items() if k in "ab"}
    with pytest.raises(ls.ModelError, match=r".*".join([words.replace("(", r"\(")])):
        robot.add_spring("s", **ends, **{k: x for k, x in options.items() if k not in "ab"})
        robot.build()


@wp.func
def kinked(length: wp.float64, rate: wp.float64) -> wp.float64:
    """A cable of the user's own, slack up to 0.3 m."""
    return wp.max(wp.float64(0.0), wp.float64(50.0) * (length - wp.float64(0.3))) + rate


LAWS = {
    "cable": {"stiffness": 30.0, "rest": 0.4, "preload": 2.0, "slack": True},
    "cable at its length": {"stiffness": 30.0, "rest": 0.4, "slack": True},
    "steady cable": {"preload": 3.0, "rest": 0.4, "slack": True},
    "table that only pulls": {"law": [(0.2, 3.0), (0.4, -2.0), (0.6, 1.0), (0.8, -1.0)], "slack": True},
    "table": {"law": [(0.2, 3.0), (0.4, -2.0), (0.6, 1.0), (0.8, -1.0)]},
    "kink": {"law": kinked},
}


@pytest.mark.parametrize("name", LAWS)
def test_energy_is_the_integral_of_the_tension(name):
    """Across zeros, kinks and the ends of tables: U(L) − U(0.4) = ∫ T dx by an adaptive rule between many places."""
    robot = ls.Robot("one", gravity=(0, 0, 0))
    robot.add_link("slider", ls.RigidBody(1.0), ls.JointPrismatic((1, 0, 0)))
    robot.add_spring("spring", ls.PathPoint(None, (0.0, 0, 0)), "slider", **LAWS[name])
    model = robot.build()

    def tension(x):
        return ls.inverse_dynamics(model, [x], [0.0], [0.0])[0]

    def held(x):
        return ls.energy(model, [x], [0.0]).elastic

    for length in (0.05, 0.25, 0.33, 0.5, 0.71, 1.3):
        places = np.linspace(0.4, length, 12)
        want = sum(quad(tension, a, b, epsabs=1e-11, limit=200)[0] for a, b in pairwise(places))
        assert held(length) - held(0.4) == pytest.approx(want, abs=1e-9)


def test_a_rope_over_a_movable_pulley():
    """A block on a slide hangs in the bight of an elastic rope whose ends are fixed high above: with the damper of the
    rope its motion is that of four times the stiffness and the damping."""
    k, c, m = 50.0, 0.2, 0.4
    robot = ls.Robot("pulley")
    slide = ls.JointPrismatic(axis=(0.0, 0.0, 1.0))
    robot.add_link("block", ls.RigidBody(m, inertia=0.01 * np.eye(3)), slide)
    high = ls.PathPoint(None, (0.0, 0.0, 2.0))
    robot.add_spring("rope", high, high, stiffness=k, damping=c, via=[ls.PathPoint("block")])
    model = robot.build()
    assert ls.spring_lengths(model, np.zeros(1))[0] == 4.0
    omega, decay = np.sqrt(4 * k / m - (2 * c / m) ** 2), 2 * c / m
    sag = -9.81 * m / (4 * k)
    motion = ls.simulate(model, 1.0, rtol=1e-10, atol=1e-12, t_eval=np.linspace(0, 1, 21))
    t = motion.t
    exact = sag * (1 - np.exp(-decay * t) * (np.cos(omega * t) + decay / omega * np.sin(omega * t)))
    np.testing.assert_allclose(motion.q[:, 0], exact, atol=1e-9)


def along_paths():
    """The hybrid robot on a fixed base with three springs, two of them along paths."""
    robot, off_centre = hybrid("fixed"), ls.PathPoint("ball", (0.01, 0.0, 0.02))
    robot.add_spring("one", "a", GROUND, stiffness=30.0, damping=0.5, via=[off_centre, PEG])
    robot.add_spring("two", "a", "b", stiffness=30.0, damping=0.5)
    branches = [ls.SpringBranch([ls.PathPoint("ball"), GROUND], -0.7)]
    robot.add_spring("three", "b", GROUND, stiffness=30.0, damping=0.5, rest=-0.2, branches=branches)
    return robot


def test_springs_along_paths_of_files_and_parts(tmp_path):
    """A robot file holds them bit for bit; another robot takes them over with its links; lengths have the order added;
    motions in a batch are those of single runs."""
    robot = along_paths()
    model, read = robot.build(), round_trip(robot, tmp_path).build()
    q, v, a = state(model, 3)
    assert_same(ls.inverse_dynamics(read, q, v, a), ls.inverse_dynamics(model, q, v, a))
    springs = read.description.springs
    assert isinstance(springs["one"].via[1], ls.PathWrap) and isinstance(springs["three"].branches[0].path, tuple)
    lengths = ls.spring_lengths(model, q)
    ends = [ls.frame_pose(model, q, link)[:3, 3] for link in ("a", "b")]
    assert lengths[1] == pytest.approx(np.linalg.norm(ends[1] - ends[0]), abs=1e-14)
    other = ls.Robot("cart", gravity=robot.gravity)
    other.add_link("cart", ls.RigidBody.sphere(0.1, density=1e3))
    other.attach(robot, "cart", prefix="its ")
    assert_same(ls.spring_lengths(other.build(), q), lengths)
    starts = np.stack([model.neutral(), ls.integrate(model, model.neutral(), np.full(model.nv, 0.01))])
    options = {"method": "generalized_alpha", "dt": 2e-3, "t_eval": [0.0, 0.02]}
    many = ls.simulate(model, 0.02, starts, **options)
    for k, start in enumerate(starts):
        assert_same(many.q[k], ls.simulate(model, 0.02, start, **options).q)


VALUES = {
    "springs.one.stiffness": [30.0],
    "springs.three.rest": [-0.2],
    "springs.one.via[0].position": [0.01, 0.0, 0.02],
}


@pytest.mark.parametrize("path", VALUES)
def test_design_derivatives_of_springs_along_paths(path):
    """Of an equilibrium, against differences of newly built robots."""
    robot = along_paths()
    equilibrium = ls.solve_statics(robot.build())
    found = ls.equilibrium_derivatives(equilibrium, parameters=[path]).parameters[path]
    found = found.reshape(len(found), -1)
    value = np.array(VALUES[path])
    h = 0.01 * float(np.abs(value).max())
    for k in range(len(value)):
        ends = []
        for step in (-2.0, -1.0, 1.0, 2.0):
            moved = value.copy()
            moved[k] += step * h
            there = robot.with_({path: moved if len(value) > 1 else float(moved[0])}).build()
            end = ls.solve_statics(there, q0=equilibrium.q).q
            ends.append(ls.difference(equilibrium.model, equilibrium.q, end))
        expected = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h)
        np.testing.assert_allclose(found[:, k], expected, rtol=0, atol=1e-7 * np.abs(expected).max())


def test_an_equilibrium_that_is_neutral_has_no_derivatives():
    """A ball in a spherical joint, held at its centre alone, is free to turn."""
    robot = hybrid("fixed")
    robot.add_spring("one", "ball", GROUND, stiffness=30.0)
    equilibrium = ls.solve_statics(robot.build())
    with pytest.raises(ls.ConvergenceError, match="only if its tangent stiffness is regular"):
        ls.equilibrium_derivatives(equilibrium, parameters=["springs.one.stiffness"])


WRONG = {
    "spring 's' > path[1]: must be a PathPoint or a PathWrap": {"via": [ls.PathRod("a", (0, 0))]},
    "spring 's' > path[2]: a PathWrap must lie between two items that are none": {"via": [PEG, PEG]},
    "spring 's' > branches[0]: factor: must not be zero": {"branches": [ls.SpringBranch([GROUND, ON_BALL], 0.0)]},
    "spring 's' > branches[0]: path: one point alone has no length": {"branches": [ls.SpringBranch([GROUND])]},
    "spring 's' > branches[0]: must be a SpringBranch": {"branches": ["a"]},
    "spring 's' > via[0]: link: must be one of the links": {"via": [ls.PathPoint("none")]},
    "spring 's': via: must be a tuple": {"via": "a"},
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_paths_of_springs(text):
    """By the spring, the item and the rule."""
    robot = hybrid("fixed")
    robot.add_spring("s", "a", "b", stiffness=1.0, **WRONG[text])
    with pytest.raises(ls.ModelError) as error:
        robot.build()
    assert text in str(error.value)
