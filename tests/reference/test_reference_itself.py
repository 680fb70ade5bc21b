"""The slow model against finite differences and identities of its own, so that it can be trusted as a reference."""

from itertools import islice, pairwise

import numpy as np
import pytest
from reference import reference_lie as lie
from reference import reference_tables as tables
from reference.reference_model import ReferenceModel
from robots import JOINTS, SEEDS, coverage, depth, needed_coverage, random_state, random_tree

from lissom.robot.fields import members
from lissom.robot.sections import Section


def velocities_are_rates(robot):
    """Whether no joint of a robot stores a pose."""
    return all(link.joint.nq == link.joint.nv for link in robot.links.values())


# the dearest two trees run with the slow tests
FEW = [pytest.param(seed, marks=pytest.mark.slow) if seed in (0, 40) else seed for seed in range(0, 50, 10)]
FLAT = list(islice(filter(lambda seed: velocities_are_rates(random_tree(seed)), SEEDS), 3))
FLAT[:2] = [pytest.param(seed, marks=pytest.mark.slow) for seed in FLAT[:2]]
STEP = 2e-4  # of a fourth-order central difference: truncation ~ STEP^4, rounding ~ 1e-16 / STEP


def along(function, reference, q, v):
    """Derivative of function(q) along the tangent vector v, by a fourth-order central difference."""
    near, far = ((function(reference.integrate(q, k * STEP * v)) - function(reference.integrate(q, -k * STEP * v)))
                 / (2 * k * STEP) for k in (1, 2))  # fmt: skip
    return (4 * near - far) / 3


def gradient(function, reference, q):
    """Derivative of function(q) in the tangent space, last axis the input."""
    return np.stack([along(function, reference, q, e) for e in np.eye(reference.nv)], axis=-1)


def close(value, expected, tolerance):
    """Agreement relative to the largest entry."""
    return np.abs(value - expected).max(initial=0.0) <= tolerance * max(1.0, np.abs(expected).max(initial=0.0))


def case(seed):
    """A tree's slow model and a state."""
    robot = random_tree(seed)
    return (ReferenceModel(robot), *random_state(robot, seed))


def test_fifty_trees_cover_every_pair():
    """Joint, basis, body and load meet in every pair of levels; trees are deep, branched, and sprout from mid-rod."""
    robots = [random_tree(seed) for seed in SEEDS]
    seen = coverage(robots)
    for names, pairs in needed_coverage().items():
        assert pairs <= seen[names], (names, pairs - seen[names])
    for robot in robots:
        assert max(depth(robot, name) for name in robot.links) >= 4
        parents = [link.parent for link in robot.links.values()]
        assert len(set(parents)) < len(parents), "no branch"
    links = [(robot, link) for robot in robots for link in robot.links.values()]
    on_rod = [(r, x) for r, x in links if x.parent and tables.kind(r.links[x.parent].body) == "Rod"]
    assert sum(0 < x.at < 1 for _, x in on_rod) > 30
    assert {"JointSpherical", "JointFree"} <= {tables.kind(x.joint) for _, x in on_rod}
    assert any(list(r.links).index(x.parent) > list(r.links).index(x.name) for r, x in links if x.parent)


def test_fifty_trees_cover_every_part():
    """Sections, reference strains, springs, paths, chambers, actuators and couplings of every kind occur."""
    robots = [random_tree(seed) for seed in SEEDS]
    links = [link for robot in robots for link in robot.links.values()]
    rods = [link.body for link in links if tables.kind(link.body) == "Rod"]
    assert {tables.kind(rod.section) for rod in rods} == {cls.__name__ for cls in members(Section)}
    forms = {"callable" if callable(rod.reference_strain) else np.shape(rod.reference_strain) for rod in rods}
    assert forms == {"callable", (), (6,)}
    sprung = {tables.kind(link.joint) for link in links if link.joint.rest is not None and np.any(link.joint.damping)}
    assert sprung == {f"Joint{name}" for name in JOINTS} - {"JointFixed"}
    actuators = [actuator for robot in robots for actuator in robot.actuators.values()]
    assert {tables.kind(x) for x in actuators} == {"Tendon", "Chamber", "JointActuator", "CustomActuator"}
    assert {x.force for x in actuators if tables.kind(x) == "Chamber"} == {"tangent", "volume"}
    paths = [x.path for x in actuators if tables.kind(x) == "Tendon"]
    along_rods = [item for path in paths for item in path if tables.kind(item) == "PathRod"]
    assert {np.sign(item.stop - item.start) for item in along_rods} == {-1, 1}
    assert sum(item.start > 0 for item in along_rods) > 10 and sum(item.stop < 1 for item in along_rods) > 10
    assert sum(len(path) >= 3 and path[0].link is None for path in paths) > 10
    assert sum(bool(robot.couplings) for robot in robots) > 10


@pytest.mark.parametrize("seed", FEW)
def test_states_bend_rods(seed):
    """Random states turn rods by a part of a radian to a few, and no interval by as much as a turn."""
    reference, q, *_ = case(seed)
    turns = []
    for name, points in reference.points(q).items():
        if tables.kind(reference.robot.links[name].body) == "Rod":
            steps = [lie.log(lie.inverse(a.g) @ b.g)[:3] for (_, a), (_, b) in pairwise(points)]
            turns.append(sum(map(np.linalg.norm, steps)))
            assert max(map(np.linalg.norm, steps)) < 3
    assert 0.2 < max(turns) < 8


def test_exponential_and_tangent():
    """Tangent operator against differences of exp, its derivative against differences of itself; log inverts exp."""
    rng = np.random.default_rng(0)
    x, dx, e = rng.normal(size=6), rng.normal(size=6), 1e-5
    T, dT = lie.tangent_and_derivative(x, dx)
    rate = (lie.exp(x + e * dx) - lie.exp(x - e * dx)) / (2 * e)
    assert close(lie.inverse(lie.exp(x)) @ rate, lie.hat6(T @ dx), 1e-9)  # e^2 and 1e-16 / e
    assert close(dT, (lie.tangent(x + e * dx) - lie.tangent(x - e * dx)) / (2 * e), 1e-9)
    assert close(lie.tangent(x), T, 1e-14)
    assert close(lie.log(lie.exp(0.5 * x)), 0.5 * x, 1e-13)


def test_bases_at_known_values():
    """Each family takes its textbook values."""
    s = 0.3
    assert np.allclose(tables.modes("BasisLegendre", 2, s), [1, -0.4, (3 * 0.16 - 1) / 2], atol=1e-15)
    assert np.allclose(tables.modes("BasisChebyshev", 2, s), [1, -0.4, 2 * 0.16 - 1], atol=1e-15)
    assert np.allclose(tables.modes("BasisPiecewiseLinear", 2, s), [0.4, 0.6, 0], atol=1e-15)
    assert tables.modes("BasisPiecewiseConstant", 3, s) == [1, 0, 0]
    cubic = np.array([0.2, -1.0, 0.7, 0.4])  # a cubic is reproduced by its values and slopes
    p, dp = np.polynomial.polynomial.polyval, np.polynomial.polynomial.polyder(cubic)
    weights = [w for node in (0, 0.5, 1) for w in (p(node, cubic), 0.5 * p(node, dp))]
    assert abs(np.dot(tables.modes("BasisHermite", 2, s), weights) - p(s, cubic)) < 1e-15


def test_saint_venant_constant_of_a_square():
    """The torsion constant of a square is 0.1405770... a^4, and the two series agree for a long rectangle."""
    assert abs(tables.rectangle_torsion(2.0, 2.0) / 16 - 0.140577014955156) < 1e-14


@pytest.mark.parametrize("seed", FEW)
def test_jacobian_is_derivative_of_pose(seed):
    """g^-1 dg along each coordinate is the Jacobian's column, at rod ends, inside rods and on rigid bodies."""
    reference, q, *_ = case(seed)
    names = [*reference.robot.links, *reference.robot.frames]
    places = [(name, s) for name in names for s in (0.0, 0.413, 1.0)]
    poses = gradient(lambda x: np.array([reference.frame_pose(x, n, s) for n, s in places]), reference, q)
    for (name, s), dg in zip(places, poses):
        back = lie.inverse(reference.frame_pose(q, name, s))
        twists = np.einsum("ij,jkn->ikn", back, dg)
        J = np.array([twists[2, 1], twists[0, 2], twists[1, 0], twists[0, 3], twists[1, 3], twists[2, 3]])
        assert close(reference.frame_jacobian(q, name, s), J, 1e-9), (name, s)  # rounding of the differences


@pytest.mark.parametrize("seed", FEW)
def test_jacobian_rate(seed):
    """dJ/dt is the derivative of J along v."""
    reference, q, v, *_ = case(seed)
    for name in reference.robot.links:
        rate = along(lambda x, name=name: reference.frame_jacobian(x, name, 0.77), reference, q, v)
        assert close(reference.frame_jacobian_derivative(q, v, name, 0.77), rate, 1e-9), name


@pytest.mark.parametrize("seed", FEW)
def test_mass_rate_minus_twice_coriolis_is_skew(seed):
    """dM/dt - 2C is skew along integrate."""
    reference, q, v, *_ = case(seed)
    X = along(reference.mass_matrix, reference, q, v) - 2 * reference.coriolis_matrix(q, v)
    assert close(X + X.T, 0 * X, 1e-9)


@pytest.mark.parametrize("seed", FEW)
def test_forces_are_gradients_of_energies(seed):
    """Weight and springs are derivatives of their energies."""
    reference, q, v, *_ = case(seed)
    weight = gradient(lambda x: reference.energy(x, v).gravitational, reference, q)
    assert close(reference.gravity_force(q), weight, 1e-9)
    assert close(reference.elastic_force(q), gradient(reference.elastic_energy, reference, q), 1e-9)


@pytest.mark.parametrize("seed", FEW)
def test_tendon_columns_are_gradients_of_lengths(seed):
    """B of a tendon is minus the gradient of its length."""
    reference, q, *_ = case(seed)
    lengths = gradient(reference.path_lengths, reference, q)
    tendons = [x for x in reference.robot.actuators.values() if tables.kind(x) == "Tendon"]
    for tendon, row in zip(tendons, lengths):
        assert close(reference._columns(tendon, q)[:, 0], -row, 1e-9)


@pytest.mark.parametrize("seed", FLAT)
def test_force_of_bound_motion(seed):
    """M a + C v is Lagrange's equation of the kinetic energy, on robots without stored poses (v a rate of q)."""
    reference, q, v, a, _ = case(seed)
    assert reference.nq == reference.nv
    momentum_rate = along(lambda x: reference.mass_matrix(x) @ v, reference, q, v) + reference.mass_matrix(q) @ a
    slope = gradient(lambda x: 0.5 * v @ reference.mass_matrix(x) @ v, reference, q)
    inertial = reference.inverse_dynamics(q, v, a, gravity=False, elastic=False, loads=False)
    assert close(inertial, momentum_rate - slope, 1e-9)
