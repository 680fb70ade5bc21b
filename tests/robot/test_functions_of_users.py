"""Functions of users that JAX traces: poses, kinematics, energies and modes, and refusals in one line."""

import math
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lissom as ls
from lissom.robot.poses import captured, result_shape

RNG = np.random.default_rng(0)
LAW = ls.HyperelasticSaintVenantKirchhoff(1e5, 0.0)
BOX = ls.DomainBox(0.2, 0.02, 0.02)


def stretch(x, q):
    return x + jnp.stack([q[0] * x[0], 0.0, 0.0])


def of_pose(f):
    return ls.RigidBody.box(0.1, 0.1, 0.1, density=1e3), ls.JointCustom(lambda q: jnp.eye(4).at[0, 3].set(f(q[0])), 1)


def of_map(f):
    return ls.DeformableBody(lambda x, q: stretch(x, jnp.stack([f(q[0])])), BOX, LAW, 1e3, 1), None


def of_shapes(f):
    law = ls.HyperelasticLinear(1e5, 0.3)
    return ls.DeformableBody(ls.KinematicsRitz(lambda x: f(x[0]) * jnp.eye(3)[:, :1], 1), BOX, law, 1e3), None


def of_energy(f):
    law = ls.HyperelasticFunction(lambda F: f(LAW.energy_density(F)))
    return ls.DeformableBody(stretch, BOX, law, 1e3, 1), None


def of_modes(f):
    inflation = ls.InflationUniform(lambda s: jnp.stack([f(s)]))
    return ls.DeformableBody(ls.KinematicsStrain(0.2, ls.BasisMonomial(bending_z=0), inflation), BOX, LAW, 1e3), None


MAKERS = [of_pose, of_map, of_shapes, of_energy, of_modes]


def robot(parts):
    body, joint = parts
    out = ls.Robot("one")
    out.add_link("a", body, joint or ls.JointFixed())
    return out


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda s: s if s > 0.0 else -s, r"branches \(if, while, and, or\).*jax.numpy.where"),
        (lambda s: s if math.isnan(s) else 2.0 * s, "makes a Python number .*functions of jax.numpy"),
        (lambda s: math.sin(s), "makes a Python number .*functions of jax.numpy"),
        (lambda s: sum(s for _ in range(int(s))), "makes a Python number .*functions of jax.numpy"),
        (lambda s: sum(s for _ in range(s)), "counts or indexes by a value.*constant length"),
        (lambda s: np.sin(s), "gives NumPy a value.*function of jax.numpy"),
        (lambda s: (f"{s:.3f}", s)[1], "writes a value.*as text; take the output out"),
        (lambda s: s + random.random(), "computes another result when it is called again; draw random numbers outside"),
        (lambda s: s + RNG.normal(), "computes another result when it is called again; draw random numbers outside"),
        (lambda s: jnp.stack([s, s])[jnp.stack([s, s]) > 0.0].sum(), "chooses entries by a value.*jax.numpy.where"),
        (lambda s: s * (1 // 0), "failed .ZeroDivisionError: integer division"),
    ],
)
def test_refused_in_one_line(make, function, says):
    """Purpose: the line names the entity, the operation, and what to write instead."""
    with pytest.raises(ls.ModelError, match=f"link 'a' > .*made of jax.numpy; it {says}") as error:
        robot(make(function)).check()
    assert "\n" not in str(error.value)


def test_a_loop_in_an_energy():
    """Purpose: a loop that reverse differentiation cannot pass is refused at the door, not by JAX at `build`."""
    law = of_energy(lambda W: jax.lax.while_loop(lambda x: x < 0.0, lambda x: x + 1.0, W))
    with pytest.raises(ls.ModelError, match=r"link 'a' > body > material: function: .*loop whose length.*fori_loop"):
        robot(law).check()


def test_functions_that_do_the_same_each_time():
    """Purpose: rules of derivatives, callbacks and constant seeds, whose text holds addresses, are not random."""
    whole = jax.ShapeDtypeStruct((1,), np.float64)
    for function in (jax.nn.relu, jnp.sinc, lambda x: jax.pure_callback(np.sin, whole, x),
                     lambda x: x + jax.random.normal(jax.random.key(0), (1,))):  # fmt: skip
        assert result_shape(function, np.zeros(1)) == (1,)


def test_constants_that_change_between_two_robots():
    """Purpose: a new description reads the constants of a function again; a built model keeps its own."""
    table, array = {"gain": 1.0}, np.array([1.0])

    def scaled(x):
        return table["gain"] * array[0] * x

    def energy(model):
        return float(ls.energy(model, [0.1], [0.0]).elastic)

    def pose(q):
        return jnp.eye(4).at[0, 3].set(scaled(q[0]))

    law = ls.HyperelasticFunction(lambda F: scaled(LAW.energy_density(F)))

    def place():
        built = robot((ls.RigidBody.box(0.1, 0.1, 0.1, density=1e3), ls.JointCustom(pose, 1))).build()
        return built, ls.frame_pose(built, [1.0], "a")[0, 3]

    def block():
        built = robot((ls.DeformableBody(stretch, BOX, law, 1e3, 1), None)).build()
        return built, energy(built)

    (joint, x), (body, U) = place(), block()
    table["gain"] = 2.0
    assert place()[1] == pytest.approx(2.0 * x) and block()[1] == pytest.approx(2.0 * U)
    array[0] = 3.0
    assert place()[1] == pytest.approx(6.0 * x) and block()[1] == pytest.approx(6.0 * U)
    assert ls.frame_pose(joint, [1.0], "a")[0, 3] == x and energy(body) == U


def test_keys_of_data():
    """Purpose: keys are equal for equal data, and differ where one number of a closure, default or attribute does."""

    class Law:
        def __init__(self):
            self.gain, self.rows = 1.0, [np.eye(2)]

        def method(self, q):
            return self.gain * q

    law, around = Law(), []
    around.append(around)
    outer = {"inner": lambda q, power=2: q**power, "loop": around}
    functions = [law.method, lambda q: law.method(q) + outer["inner"](q)]
    before = [captured(function) for function in functions]
    assert before == [captured(function) for function in functions]
    assert len({hash(key) for key in before}) == 2
    law.rows[0][0, 1] = 1e-9
    changed = [captured(function) for function in functions]
    assert before[0] != changed[0] and before[1] != changed[1]
    outer["inner"].__defaults__ = (3,)
    assert captured(functions[1]) != changed[1] and captured(functions[0]) == changed[0]
    many = np.zeros(2_000_000)
    assert captured(lambda q: q * many) != captured(lambda q: q * many)


def of_stretch(f):
    return ls.DeformableBody(lambda x, q: x + q[0] * f(x[0]) * jnp.eye(3)[0], BOX, LAW, 1e3, 1), None


@pytest.mark.parametrize(("make", "end"), [(of_stretch, 0.1), (of_shapes, 0.1), (of_modes, 0.6)])
def test_numbers_that_are_not_finite_at_some_points(make, end):
    """Purpose: a body whose motion is NaN in a part of it is refused with the point; the choice of a quadrature
    comes after it."""
    says = r"link 'a' > body > kinematics: p must be finite at the material point \[0.*got nan"
    with pytest.raises(ls.ModelError, match=says):
        robot(make(lambda s: s * jnp.sqrt(end - s))).build()


def test_a_density_that_is_not_finite_at_some_points():
    """Purpose: the same for a density."""
    body = ls.DeformableBody(stretch, BOX, LAW, lambda x: np.nan if x[0] > 0.1 else 1e3, 1)
    with pytest.raises(
        ls.ModelError, match=r"link 'a' > body: density: must be finite at the material point .*got nan"
    ):
        robot((body, None)).build()


def test_poses_may_be_lists():
    """Purpose: rows of a pose are taken as lists, as positions of kinematics are; other shapes are named."""
    body = ls.RigidBody.box(0.1, 0.1, 0.1, density=1e3)
    rows = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    joint = ls.JointCustom(lambda q: [[*rows[0][:3], jnp.sin(q[0])], *rows[1:]], 1)
    model = robot((body, joint)).build()
    assert ls.frame_pose(model, [0.3], "a")[0, 3] == pytest.approx(np.sin(0.3), rel=1e-15)
    with pytest.raises(ls.ModelError, match=r"link 'a' > joint: pose: must return a 4x4 matrix.*got \(3, 4\)"):
        robot((body, ls.JointCustom(lambda q: rows[:3], 1))).check()


def test_volumes_of_chambers_follow_their_constants():
    """Purpose: a robot that is built again reads the constants of the volume of a chamber again."""
    table = {"gain": 1.0}
    out = robot((ls.DeformableBody(stretch, BOX, LAW, 1e3, 1), None))
    out.add_body_chamber("cavity", "a", volume=lambda q: table["gain"] * 1e-5 * (1.0 + q[0]) ** 2)
    first = out.build()
    table["gain"] = 3.0
    both = [ls.actuation_matrix(model, [0.1]) for model in (first, out.build())]
    np.testing.assert_allclose(both[0], [[2.2e-5]], rtol=1e-12)
    np.testing.assert_allclose(both[1], 3.0 * both[0], rtol=1e-12)


@pytest.mark.parametrize("length", [0.1, 0.5, 200.0])
@pytest.mark.parametrize("degree", [None, 1, 6])
def test_a_kinematics_has_the_length_of_its_domain(length, degree):
    """Purpose: a length that differs from that of the domain scaled all strains without an error."""
    motions = [
        lambda length: ls.KinematicsStrain(length, ls.BasisMonomial(bending_z=0)),
        lambda length: ls.KinematicsVolumePreserving(length, [ls.PrimitiveTwist([[0.0, 1.0]])]),
    ]
    domain = ls.DomainBox(0.2, 0.02, 0.02, degree, degree)
    for motion in motions:
        if degree != 1:
            robot((ls.DeformableBody(motion(0.2), domain, LAW, 1e3), None)).check()
        with pytest.raises(ls.ModelError, match="link 'a' > body > kinematics: length: must be that of the domain"):
            robot((ls.DeformableBody(motion(length), domain, LAW, 1e3), None)).check()
