"""Derivatives of motions of robots of the gallery over one second, against differences of the motions."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from gallery.examples import EXAMPLES, example

import lissom as ls

MOVES = (1e-1, 3e-2, 1e-2, 3e-3)


def from_file(name):
    """The model of a robot file."""
    return ls.load_robot(EXAMPLES / "robots" / f"{name}.yaml").build()


def mounted(case):
    """The continuum parallel robot with closed loops."""
    module = example("continuum_parallel_robot")
    model = module.planar(getattr(module, case))
    return model, module.mounted(model)


def let_go(name):
    """A soft arm and where its example lets it go. That of Gaussian curvature is moved about its equilibrium: its
    coordinates are large and opposed, the matrices of its steps have a condition of 6e8, and from its start Newton's
    method does not come to 1e-13."""
    module = example("free_arms")
    model = module.build(name, native=True)
    return model, ls.solve_statics(model).q if name == "PGC" else module.ARMS[name].q0


def learned():
    """The finger whose motion is a network, trained for a minute as in its example."""
    module = example("learned_map")
    motion, mesh = module.elements()
    learned = module.learn(motion, mesh, *module.lessons(module.finger(motion, mesh)))
    return module.learned_finger(learned).model


# by the example that makes it: name, what makes the model or it and its start


def at_neutral(model):
    """A robot without an equilibrium of its own, and the place from which it starts."""
    return model, model.neutral()


ROBOTS = {
    "cdm": ("robots/cdm.yaml cdm cdm_tracking", lambda: from_file("cdm")),
    "hybrid arm": ("robots/hybrid_arm.yaml", lambda: from_file("hybrid_arm")),
    "serial robot": ("robots/serial_robot.yaml implicit_methods", lambda: from_file("serial_robot")),
    "ur10": ("robots/ur10.yaml", lambda: from_file("ur10")),
    "ur10e": ("robots/ur10e.yaml", lambda: from_file("ur10e")),
    "in a pipe": ("cdm_contact", lambda: example("cdm_contact").robot().build()),
    "propeller": ("flagellum_propeller", lambda: example("flagellum_propeller").propeller()),
    "designed finger": ("designed_finger", lambda: example("designed_finger").build()),
    "drones": ("drones", lambda: example("drones").robot().build()),
    "parallel robot": ("parallel_robot", lambda: example("parallel_robot").build()),
    "follower beam": ("follower_beam", lambda: example("follower_beam").beam(3)),
    "printed legs": ("continuum_parallel_robot", lambda: mounted("PRINTED")),
    "wire legs": ("continuum_parallel_robot", lambda: mounted("SOFT")),
    "custom cable": ("custom_cable", lambda: example("custom_cable").rod(6)),
    "designed arm": ("designed_arm", lambda: example("designed_arm").build()),
    "slider-crank": ("mechanisms", lambda: example("mechanisms").slider_crank().build()),
    "soft cantilever": ("single_rods", lambda: example("single_rods").cantilever("soft")),
    "stiff cantilever": ("single_rods", lambda: example("single_rods").cantilever("stiff")),
    "soft flying rod": ("single_rods", lambda: example("single_rods").flying_rod("soft")),
    "stiff flying rod": ("single_rods", lambda: example("single_rods").flying_rod("stiff")),
    "falling rod": ("free_fall", lambda: example("free_fall").rod(1e3)),
    "leaning arm": ("reach_behind", lambda: example("reach_behind").build()),
    "soft pendulum": ("swing_up", lambda: example("swing_up").build()),
    "linkage of the manual": ("sorosim_manual", lambda: example("sorosim_manual").robot(lambda t: 0.5 * t).build()),
    "turned fingers": ("resoft_fingers", lambda: example("resoft_fingers").robot().build()),
    "linkage": ("underactuated_linkage", lambda: example("underactuated_linkage").robot().build()),
    "vehicle": ("underwater_vehicle", lambda: example("underwater_vehicle").vehicle().build()),
    "swimmer": ("tendon_swimmer", lambda: example("tendon_swimmer").swimmer()),
    "guided rod": ("obstacle_path", lambda: example("obstacle_path").robot().build()),
    "arm of constant curvature": ("free_arms", lambda: let_go("PCC")),
    "arm of affine curvature": ("free_arms", lambda: let_go("PAC")),
    "arm of constant strain": ("free_arms", lambda: let_go("PCS")),
    "arm of Gaussian curvature": ("free_arms", lambda: let_go("PGC")),
    "finger": ("fin_ray_finger", lambda: example("fin_ray_finger").robot().build()),
    "bodies in a row": ("many_bodies", lambda: example("many_bodies").chain(2)),
    "arm of chambers": ("inflated_arm", lambda: example("inflated_arm").build()),
    "trimmed helicoid": ("trimmed_helicoid", lambda: example("trimmed_helicoid").build()),
    "arm with a gripper": ("hybrid_arm", lambda: example("hybrid_arm").build(driven=False)),
    "learned finger": ("learned_map", learned),
    "arm of three bodies": ("shape_regulation", lambda: example("shape_regulation").build()),
    "snakeboard": ("wheels", lambda: at_neutral(example("wheels").snakeboard().build())),
    "soft-tipped arm": ("soft_tipped_arm", lambda: example("soft_tipped_arm").build(native=True)),
}
# where differences need other moves than those of the others, or steps of another size [s]: moves are small where the
# motion stretches them a thousandfold, and large where rounding hides them
OTHERWISE = {
    "finger": (1e-3, (1.0, 0.3, 0.1)),
    "bodies in a row": (1e-2, (0.3, 0.1, 0.03)),  # bodies of JAX, whose steps take milliseconds
    "arm of Gaussian curvature": (1e-3, (1e-3, 3e-4, 1e-4)),
    "arm of three bodies": (1e-2, (0.3, 0.1, 0.03)),  # its actuator is a function of Python
    "arm of chambers": (1e-2, (0.3, 0.1, 0.03)),
    "trimmed helicoid": (1e-2, (0.03, 0.01, 0.003)),
    "arm with a gripper": (1e-2, (1e-4, 3e-5, 1e-5)),  # its gripper is stiff, and stretched at once by what moves it
    "learned finger": (1e-2, (0.1, 0.03, 0.01)),
    "falling rod": (1e-3, (30.0, 10.0)),  # below them the tolerance of steps shows in its stiff strains
    "stiff flying rod": (1e-3, (1.0, 0.3, 0.1)),
    "swimmer": (1e-2, (0.3, 0.1, 0.03, 0.01)),
}
AT_REST = ("finger", "arm with a gripper")  # no long step is found from a random velocity
LEFT_OUT = {
    "brick_tower": "bricks rest by friction that sticks: kinks",
    "chain": "links of meshes strike each other: kinks",
    "hybrid_hand": "fingers meet a ball that slides between them: kinks",
    "painleve_rod": "the rod jams and jumps: kinks",
    "peg_in_hole": "a peg meets the faces and edges of a hole: kinks",
    "rattleback": "a stone rolls with friction that sticks: kinks",
    "snake_in_a_maze": "rods meet walls with friction that sticks: kinks",
    "mug": "fingers close on a mug and stick by anchors: kinks",
    "resoft_gripper": "fingers meet a ball on a table that moves: kinks, differences agree with nothing",
}


def test_every_robot_of_the_gallery_is_here():
    """Each example and each robot file is tested below, or left out for a reason."""
    files = {path.stem for path in EXAMPLES.glob("*.py")}
    files |= {f"robots/{path.name}" for path in (EXAMPLES / "robots").glob("*.yaml")}
    moved = {word for words, _ in ROBOTS.values() for word in words.split()}
    assert moved | set(LEFT_OUT) == files
    assert not moved & set(LEFT_OUT)


def changes(model, motion, other):
    """Differences of q and v between two motions, in natural sizes, (2, n, nv)."""
    return np.array([ls.difference(model, motion.q, other.q), other.v - motion.v]) / model.dofs.scale


@pytest.mark.slow  # all robots, each moved sixteen times through a thousand steps
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROBOTS)
def test_motions_of_the_gallery(name):
    """Along a direction of the initial velocity and all inputs, derivatives equal differences to 1e-7. The two
    neighbouring differences that agree best are used. Backward and forward products agree."""
    made, rng = ROBOTS[name][1](), np.random.default_rng(1)
    model, q0 = made if isinstance(made, tuple) else (made, None)
    if q0 is None:
        q0 = ls.solve_statics(model).q if model.n_rows else model.neutral()
    dt, moves = OTHERWISE.get(name, (1e-3, MOVES))
    steps = round(1.0 / dt)
    u = 0.1 * rng.uniform(0.5, 1.0, (steps, model.nu))
    options = {"dt": dt, "tolerance": 1e-13}
    kick = (name not in AT_REST) * 0.002 * rng.normal(size=model.nv) * model.dofs.scale
    v0 = ls.rollout(model, q0, kick, u[:1], **options).v[0]
    motion = ls.rollout(model, q0, v0, u, **options)
    dv0, du = 0.01 * rng.normal(size=model.nv) * model.dofs.scale, 0.01 * rng.normal(size=u.shape)
    dv0[model.prescribed.dof] = 0.0  # v0 = 0 gives no velocities: drives stand, and nothing depends on their entries
    change, weights = motion.forward(dv0=dv0, du=du), rng.normal(size=(2, steps + 1, model.nv))
    gradient = motion.backward(*weights)
    forwards, size = np.sum(weights * [change.q, change.v]), np.linalg.norm([change.q, change.v])
    assert abs(gradient.v0 @ dv0 + np.sum(gradient.u * du) - forwards) < 1e-11 * size

    def moved(x):
        return changes(model, motion, ls.rollout(model, q0, v0 + x * dv0, u + x * du, **options))

    slopes = np.array([(8 * (moved(h) - moved(-h)) - moved(2 * h) + moved(-2 * h)) / (12 * h) for h in moves])
    best = int(np.argmin(np.abs(np.diff(slopes[:, 0], axis=0)).max(axis=(-2, -1)))) + 1
    exact = np.array([change.q, change.v]) / model.dofs.scale
    largest = np.abs(exact).max(axis=(-2, -1))
    assert np.all(np.abs(slopes[best] - exact).max(axis=(-2, -1)) < 1e-7 * largest)


def number_paths(model):
    """Paths to numbers of the description that have derivatives, in random order."""
    found = []
    for path, value in model.description.described_values().items():
        is_number = isinstance(value, float) and value != 0.0 and not isinstance(value, bool)
        if is_number and path.split(".")[-1] not in ("at", "s", "start", "stop"):  # places, from 0 to 1
            found.append(path)
    return np.random.default_rng(2).permutation(found).tolist()


def with_all_points(model):
    """The model whose deformable bodies have all points of their quadratures. Few of them change motions by 1e-7; tests
    of the bodies compare derivatives."""
    robot = copy(model.description)
    bodies = {name: link for name, link in robot.links.items() if isinstance(link.body, ls.DeformableBody)}
    whole = {name: replace(link, body=link.body.with_all_points())
             for name, link in bodies.items() if link.body.has_few_points}  # fmt: skip
    robot.links = robot.links | whole
    return robot.build() if whole else model


def with_same_rules(model, robot):
    """A description whose deformable bodies keep the quadrature points of a model. New points, such as those at the
    edges of bumps, would change integrals by their error."""
    known = {name: link.body for name, link in model.description.links.items()}
    kept = {name: replace(link, body=link.body.with_rules_of(known[name]))
            for name, link in robot.links.items() if isinstance(link.body, ls.DeformableBody)}  # fmt: skip
    robot.links = robot.links | kept
    return robot


@pytest.mark.slow  # all robots, each built a hundred times
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROBOTS)
def test_designs_of_the_gallery(name):
    """Derivatives of motions of 20 steps by six design values equal differences of motions of robots that are built
    with other values, to 1e-8 and the uncertainty of the differences. That is 1.5 times how far the two neighbours
    that agree best are apart. Values are left out whose differences do not converge to 1e-6, since contacts begin
    between them, or with which the start opens a loop."""
    made, rng = ROBOTS[name][1](), np.random.default_rng(1)
    model, q0 = made if isinstance(made, tuple) else (made, None)
    model = with_all_points(model)
    if q0 is None:
        q0 = ls.solve_statics(model).q if model.n_rows else model.neutral()
    u, options = 0.1 * rng.uniform(0.5, 1.0, (20, model.nu)), {"dt": 1e-3, "tolerance": 1e-13}
    kick = (name not in AT_REST) * 0.002 * rng.normal(size=model.nv) * model.dofs.scale
    v0 = ls.rollout(model, q0, kick, u[:1], **options).v[0]  # fits the loops, onto which masses would move others
    motion, tried = ls.rollout(model, q0, v0, u, **options), 0
    for path in number_paths(model):
        if tried == 6:
            break
        value = model.description.described_values()[path]
        try:
            for x in (-0.3, 0.3):
                model.description.with_({path: value * (1.0 + x)}).check()
            change = motion.forward(parameters={path: value})
        except ls.ModelError:
            continue  # a value at its limit, or that of a shape on a grid
        exact = np.array([change.q, change.v]) / model.dofs.scale
        size = np.maximum(np.abs(exact).max(axis=(1, 2)), 1e-2)  # rounding is 1e-13 over the moves

        def moved(x, path=path, value=value):
            other = with_same_rules(model, model.description.with_({path: value * (1.0 + x)})).build()
            return changes(model, motion, ls.rollout(other, q0, v0, u, **options))

        slopes = []
        try:
            for h in (1e-1, 3e-2, 1e-2, 3e-3):  # differences of sixth order
                ends = [moved(k * h) - moved(-k * h) for k in (1, 2, 3)]
                slopes.append((45.0 * ends[0] - 9.0 * ends[1] + ends[2]) / (60.0 * h))
        except ls.ModelError as error:
            assert "stays open" in str(error)
            continue
        apart = np.abs(np.diff(np.array(slopes), axis=0)).max(axis=(2, 3))  # of q and of v, for each pair of steps
        best = int(np.argmin((apart / size).max(axis=1)))
        if np.any(apart[best] > 1e-6 * size):
            continue
        tried += 1
        # rounding grows with 1/h, at least threefold from one step to the next: |e₂| <= |e₁ − e₂| / (1 − 1/3)
        bound = 1e-8 * size + 1.5 * apart[best]
        assert np.all(np.abs(slopes[best + 1] - exact).max(axis=(1, 2)) < bound), path
    assert tried > 0
