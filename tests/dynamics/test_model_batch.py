"""Batches of models: every function gives for each model the result of that model alone, to the last bit."""

import copy
import pickle
import re
import sys
from dataclasses import fields, is_dataclass
from functools import lru_cache

import numpy as np
import pytest
from dynamics.small_robots import MATERIAL, describe_looped, describe_mixed, describe_rod, state
from touching_robots import moved

import lissom as ls
from lissom.dynamics.forward_dynamics import solves_by_blocks
from lissom.stepping.stepper import changeable, redraw

N = 3


def describe_hand():
    """A rod with an elastic tendon in water and a body with a limited, stiff joint on it, near a table that both touch,
    with a load and a spring."""
    robot = ls.Robot("hand", gravity=(0.0, 0.3, -9.81))
    basis = ls.BasisLegendre(bending_y=1, bending_z=0)
    robot.add_link("arm", ls.Rod(0.3, ls.SectionCircle(0.02), basis, MATERIAL))
    joint = ls.JointRevolute((0, 1, 0), stiffness=0.4, limits=(-0.2, 0.3), limit_stiffness=50.0)
    robot.add_link("hand", ls.RigidBody.box(0.1, 0.04, 0.02, density=700.0), joint, parent="arm")
    robot.add_tendon("elastic", "arm", (0.0, 0.01), stiffness=200.0)
    robot.add_tendon("pulled", "arm", (0.01, 0.0))
    robot.add_spring("strap", ls.PathPoint("hand", (0.05, 0, 0)), ls.PathPoint(None, (0.5, 0, 0.1)), stiffness=3.0)
    table = ls.ShapePlane()
    robot.add_contact("table", "arm", table, placement=moved(0, 0, -0.02), stiffness=1e3, friction=0.3, slip_speed=0.1)
    robot.set_fluid(900.0, current=(0.1, 0.0, 0.0))
    robot.add_point_load("load", "hand", force=(0.1, 0.2, -0.3))
    return robot


def of_one_name(robot, end):
    """The first path of the values of a robot that ends so."""
    return next(path for path in robot.described_values() if path.endswith(end))


@lru_cache(maxsize=4)
def batch(kind):
    """Three models of a robot, whose material, length, actuators, gravity, loads and more differ."""
    describe = {"rod": describe_rod, "mixed": describe_mixed, "looped": describe_looped, "hand": describe_hand}[kind]
    model = describe().build()
    robot = model.description
    values = {of_one_name(robot, "young"): (1e6, 1.3e6, 0.8e6), of_one_name(robot, "density"): (1000.0, 1000.0, 1200.0)}
    values |= {of_one_name(robot, "rod.length" if kind == "rod" else "arm.length"): (0.3, 0.31, 0.35)}
    values |= {"gravity": ((0, 0, -9.81), (0, 1, -9), (0, 0, 0))}
    tendon = "elastic" if kind == "hand" else "tendon"
    values |= {f"{tendon}.offset": ((0.0, 0.01), (0.002, 0.012), (0.0, 0.01))}
    if kind == "hand":
        values |= {"elastic.stiffness": (200.0, 300.0, 200.0), "strap.stiffness": (3.0, 4.0, 5.0)}
        values |= {"load.force": ((0.1, 0.2, -0.3), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)), "fluid.density": (900, 800, 900)}
        values |= {"table.stiffness": (1e3, 2e3, 1e3), "hand.joint.stiffness": (0.4, 0.0, 1.0)}
    return model.batch(*(part for pair in values.items() for part in pair))


KINDS = ("rod", "mixed", "looped", "hand")
ROD = {"rod": "rod"}  # others have an arm
LAST = {"rod": "rod", "mixed": "hand", "looped": "finger", "hand": "hand"}

# name: its arguments (..., n) among q, v, a, u and λ, and what else it takes of a kind of robot
CALLS = {
    "actuation_matrix": ("q", ()),
    "center_of_mass": ("q", ()),
    "constraint_derivatives": ("qva", ()),
    "constraint_force_derivative": ("qm", ()),
    "constraint_jacobian": ("q", ()),
    "constraint_jacobian_derivative": ("qv", ()),
    "contact_anchors": ("qv", ()),
    "contact_forces": ("qv", ()),
    "coriolis_matrix": ("qv", ()),
    "damping_matrix": ("", ()),
    "difference": ("qp", ()),
    "energy": ("qv", ()),
    "external_force": ("qv", ()),
    "forward_dynamics": ("qvu", ()),
    "forward_dynamics_derivatives": ("qvu", ()),
    "forward_kinematics": ("q", ()),
    "frame_acceleration": ("qva", (LAST,)),
    "frame_acceleration_derivatives": ("qva", (ROD, [0.2, 0.9])),
    "frame_jacobian": ("q", (ROD, [0.2, 0.9])),
    "frame_jacobian_derivative": ("qv", (LAST,)),
    "frame_pose": ("q", (ROD, 0.37)),
    "frame_twist": ("qv", (LAST,)),
    "frame_twist_derivatives": ("qv", (LAST,)),
    "integrate": ("qv", ()),
    "internal_wrench": ("qvau", (ROD, [0.2, 0.9])),
    "inverse_dynamics": ("qva", ()),
    "inverse_dynamics_derivatives": ("qva", ()),
    "inverse_dynamics_tangent": ("qvaavq", ()),
    "joint_wrench": ("qvau", (LAST,)),
    "linearize": ("qu", ()),
    "loop_residual": ("q", ()),
    "loop_wrenches": ("qm", ()),
    "mass_inverse_dynamics": ("qva", ()),
    "mass_matrix": ("q", ()),
    "momentum": ("qv", ()),
    "path_lengths": ("q", ()),
    "spring_lengths": ("q", ()),
    "start_configuration": ("", ()),
    "stiffness_matrix": ("", ()),
    "tangent_stiffness": ("qu", ()),
    "tendon_tensions": ("qu", ()),
}

# which of them are looked at where contact, fluid and springs act: each takes kernels of its own
IN_SURROUNDINGS = {"actuation_matrix", "center_of_mass", "contact_anchors", "contact_forces", "energy"}
IN_SURROUNDINGS |= {"forward_dynamics", "inverse_dynamics", "path_lengths", "spring_lengths", "tendon_tensions"}


def arguments(name, models, lead, seed=0):
    """The arguments of a call with so many leading axes."""
    q, v, a, u = state(models[0], lead, seed)
    values = {"q": q, "v": v, "a": a, "u": u, "p": state(models[0], lead, seed + 1)[0]}
    values["m"] = np.random.default_rng(2).normal(size=(*lead, models[0].n_multipliers))
    keys = CALLS[name][0]
    return [v if name == "inverse_dynamics_tangent" and at > 2 else values[key] for at, key in enumerate(keys)]


def options(name, kind):
    """The other arguments of a call."""
    return [x.get(kind, "arm") if isinstance(x, dict) else x for x in CALLS[name][1]]


def assert_same(many, one, k):
    """That the part of a result that belongs to model k is the result of that model."""
    if is_dataclass(one):
        for item in fields(one):
            if item.name not in ("model", "t"):
                assert_same(getattr(many, item.name), getattr(one, item.name), k)
    elif isinstance(one, tuple):
        assert len(many) == len(one)
        for x, y in zip(many, one):
            assert_same(x, y, k)
    else:
        assert np.array_equal(np.asarray(many)[k], one, equal_nan=True)


def test_every_function_is_here():
    """A new public function of the dynamics must take batches of models."""
    public = {name for home, names in ls._PUBLIC.items() if home.startswith("dynamics.") for name in names}
    functions = {name for name in public if name[0].islower()}
    apart = {"assemble", "assemble_velocities", "modes", "accuracy", "stress"}
    assert functions - apart == CALLS.keys() - {"tangent_stiffness"}


def is_asked(name, kind):
    """Whether a function is asked about a kind of robot: of what costs kernels of their own in surroundings a part, and
    of open loops nothing that wants them closed."""
    if kind == "looped":
        return name not in ("linearize", "tangent_stiffness")
    return kind != "hand" or name in IN_SURROUNDINGS


@pytest.mark.parametrize("name, kind", [(name, kind) for name in CALLS for kind in KINDS if is_asked(name, kind)])
def test_each_model_is_as_alone(name, kind):
    """Results of a batch of models are those of each, to the last bit, whatever differs; further axes follow theirs."""
    models, call = batch(kind), getattr(ls, name)
    single = name in ("linearize", "tangent_stiffness", "contact_forces", "contact_anchors")
    for lead in ((N,),) if single else ((N,), (N, 2)):
        values = arguments(name, models, lead)
        many = call(models, *values, *options(name, kind))
        for k, model in enumerate(models):
            one = call(model, *(x[k] for x in values), *options(name, kind))
            if isinstance(many, tuple) and len(many) == N and not isinstance(one, tuple):
                assert repr(many[k]) == repr(one)
            else:
                assert_same(many, one, k)


def test_long_chains():
    """Where forward dynamics goes block by block, each model has the tables of its blocks."""
    robot = ls.Robot("chain")
    basis = ls.BasisLegendre(torsion=1, bending_y=2, bending_z=2)
    for k in range(6):
        rod = ls.Rod(0.2, ls.SectionCircle(0.01), basis, MATERIAL)
        robot.add_link(f"rod {k}", rod, parent=f"rod {k - 1}" if k else None)
    models = robot.build().batch("rod 2.material.young", [1e6, 3e6], "rod 4.length", [0.2, 0.25])
    assert solves_by_blocks(models[0])
    q, v, a, _ = (0.1 * x for x in state(models[0], (2,)))
    for call, values in ((ls.forward_dynamics, (q, v)), (ls.inverse_dynamics, (q, v, a))):
        for k, model in enumerate(models):
            assert_same(call(models, *values), call(model, *(x[k] for x in values)), k)


def test_what_calls_python():
    """Models whose actuators are functions are asked one by one, through the same doors."""
    robot = describe_rod()
    robot.add_custom_actuator("own", lambda q: np.array([np.sin(q[0]), 1.0, 0.0]))
    models = robot.build().batch("rod.material.young", [1e6, 2e6])
    q, v, _, u = state(models[0], (2,))
    for call, values in ((ls.forward_dynamics, (q, v, u)), (ls.actuation_matrix, (q,))):
        for k, model in enumerate(models):
            assert_same(call(models, *values), call(model, *(x[k] for x in values)), k)


@pytest.mark.parametrize("name", ["inverse_dynamics", "frame_twist", "energy"])
def test_arguments_broadcast(name):
    """One state serves all models, and an axis of one is that of the models."""
    models, call = batch("mixed"), getattr(ls, name)
    values, rest = arguments(name, models, ()), options(name, "mixed")
    many = call(models, *values, *rest)
    for k, model in enumerate(models):
        assert_same(many, call(model, *values, *rest), k)
    grid = [np.stack([x, 0.5 * x if k else x])[None] for k, x in enumerate(values)]
    wide = call(models, *grid, *rest)
    assert_same(wide, call(models[1], *(x[0] for x in grid), *rest), 1)
    with pytest.raises(ls.ShapeError, match="leading axes do not broadcast"):
        call(models, *arguments(name, models, (2,)), *rest)


@pytest.mark.parametrize("turned", [False, True])
def test_frames_of_a_node(turned, monkeypatch):
    """A frame of the same node in all models takes one launch, to the last bit, also after redraws. Frames whose
    placements differ are computed for each model."""
    robot = describe_rod()
    robot.add_frame("hook", "rod", placement=moved(0.0, 0.0, 0.01) if turned else None)
    models = changeable(list(robot.build().batch("rod.length", (0.3, 0.35))))
    q, v, _, _ = state(models[0], (2, 3), 5)
    kinematics = sys.modules["lissom.dynamics.kinematics"]
    single, computed = kinematics._poses, []
    monkeypatch.setattr(kinematics, "_poses", lambda *given: computed.append(1) or single(*given))
    for young in (None, 2e6):
        if young is not None:
            redraw(models.common, 1, robot, {"rod.length": 0.4, of_one_name(robot, "young"): young})
        computed.clear()
        poses, twists = ls.frame_pose(models, q, "hook"), ls.frame_twist(models, q, v, "hook")
        assert len(computed) == (2 if turned else 0)
        for k, model in enumerate(models):
            assert_same(poses, ls.frame_pose(model, q[k], "hook"), k)
            assert_same(twists, ls.frame_twist(model, q[k], v[k], "hook"), k)
    assert not np.array_equal(poses[0], poses[1])


def test_sizes_and_values_are_checked():
    """Errors name the argument; those of one model say which."""
    models = batch("rod")
    with pytest.raises(ls.ShapeError, match=re.escape("q: expected shape (..., 3), got (4,)")):
        ls.energy(models, np.zeros(4), np.zeros(3))
    q = np.zeros((N, 3))
    q[2, 1] = np.nan
    with pytest.raises(ls.ShapeError, match=re.escape("q (instance 2 of 3): must be finite")):
        ls.mass_matrix(models, q)
    with pytest.raises(ls.ShapeError, match=r"q: must be finite, got NaN or infinity \(instance 2 of 3\)"):
        ls.frame_pose(models, q, "rod", 0.37)


def test_assemble_and_modes():
    """Loops close as those of each model, and modes are those of each."""
    models = batch("looped")
    q = ls.assemble(models)
    v = ls.assemble_velocities(models, q, 0.1 * np.ones(models.nv))
    found = ls.modes(models, q)
    for k, model in enumerate(models):
        assert np.array_equal(q[k], ls.assemble(model))
        assert np.array_equal(v[k], ls.assemble_velocities(model, q[k], 0.1 * np.ones(model.nv)))
        one = ls.modes(model, q[k])
        assert_same(found, one, k)


@pytest.mark.parametrize("count", [20, pytest.param(1000, marks=pytest.mark.slow)])  # builds a thousand robots
def test_many_models_are_as_alone(count):
    """Many Young's moduli in one batch are, to the last bit, as many single models."""
    model = describe_rod().build()
    young = np.geomspace(1e5, 1e7, count)
    models = model.batch("rod.material.young", young)
    q, v, _, u = state(model, (count,))
    a = ls.forward_dynamics(models, q, v, u)
    alone = [ls.forward_dynamics(one, *x) for one, *x in zip(models, q, v, u)]
    assert np.array_equal(a, alone)
    assert len(np.unique(ls.forward_dynamics(models, q[0], v[0], u[0])[:, 0])) == count
    built = model.description.with_({"rod.material.young": young[17]}).build()
    assert np.array_equal(a[17], ls.forward_dynamics(built, q[17], v[17], u[17]))


def test_a_batch_is_a_sequence():
    """Length, models by number, slices, copies, pickles and its printed form."""
    models = batch("rod")
    assert len(models) == N and len(list(models)) == N and models.models[2] is models[2] is models[-1]
    assert isinstance(models[0], ls.Model) and len(models[1:]) == 2
    assert (models.nq, models.nv, models.nu) == (3, 3, 1)
    assert repr(models) == "ModelBatch(3 x Model('rod', nq=3, nv=3, nu=1, n_nodes=14))"
    q = 0.2 * np.ones((N, 3))
    expected = ls.mass_matrix(models, q)
    for other in (pickle.loads(pickle.dumps(models)), copy.copy(models), copy.deepcopy(models), models.on("cpu")):
        assert np.array_equal(ls.mass_matrix(other, q), expected)
    assert np.array_equal(ls.mass_matrix(models[1:], q[1:]), expected[1:])
    assert np.array_equal(ls.mass_matrix(ls.ModelBatch([models[1]]), q[1]), expected[1:2])
    assert ls.mass_matrix(models, np.zeros((N, 0, 3))).shape == (N, 0, 3, 3)


def test_what_does_not_differ_is_shared():
    """Tables that are the same in all models stand in memory once, on the device too."""
    models = describe_rod().build().batch("rod.material.young", [1e6, 2e6])
    ls.mass_matrix(models, np.zeros(3))
    first, second = (model.cache["tables"] for model in models)
    assert models[0].nodes.inertia is models[1].nodes.inertia
    assert first.runs.phi1 is second.runs.phi1 and first.node is second.node
    assert first.elasticity.row_stiffness is not second.elasticity.row_stiffness


def test_structures_must_be_the_same():
    """What differs in the structure is named."""
    plain, more = describe_rod().build(), describe_rod()
    more.add_tendon("another", "rod", (0.01, 0.0))
    longer = describe_rod()
    longer.links["rod"] = ls.Link("rod", ls.Rod(0.4, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=2), MATERIAL))
    points = describe_rod().with_({"rod.gauss_points": 9})
    joint = describe_rod(ls.JointRevolute((0, 1, 0)))
    for other, rule in (
        (more, "actuators must be those of the first one, ('tendon',) (got ('tendon', 'another'))"),
        (joint, "joints must be those of the first one, ['JointFixed'] (got ['JointRevolute'])"),
        (points, "numbers of points of rods must be those of the first one, {'rod': 7} (got {'rod': 10})"),
        (longer, "numbers of points of rods must be those of the first one, {'rod': 7} (got {'rod': 8})"),
    ):
        with pytest.raises(ls.ModelError, match=re.escape(f"model 1 of a batch: {rule}")):
            ls.ModelBatch([plain, other.build()])
    with pytest.raises(ls.ModelError, match="model 1 of a batch: must be a Model"):
        ls.ModelBatch([plain, describe_rod()])
    with pytest.raises(ls.ModelError, match="must hold one Model at least"):
        ls.ModelBatch([])
    with pytest.raises(ls.ModelError, match="as many values of each"):
        plain.batch("rod.material.young", [1e6, 2e6], "rod.length", [0.3])
    with pytest.raises(ls.ModelError, match="expected one Model, got a batch"):
        ls.plot_shapes(batch("rod"), np.zeros(3))


@pytest.mark.parametrize("gains", [(1.0, 1.0), (1.0, -1.0)])
def test_a_push_is_reported(gains):
    """A batch also gives the warning of a pushing tendon, by the gains of each model."""
    robot = describe_rod()
    robot.couple_inputs("pull", {"tendon": 1.0})
    models = robot.build().batch("pull.gains.tendon", gains, "rod.length", (0.4, 0.5))
    zero = np.zeros(3)
    with pytest.warns(ls.AccuracyWarning, match="tendon 'tendon': a tension should be >= 0"):
        ls.forward_dynamics(models, zero, zero, [[1.0 if gains[1] < 0 else -1.0]] * 2)
