"""Feedback laws as native code: their derivatives, the motions of kernels against those that Python steps, batches."""

import os
import subprocess
import sys

import numpy as np
import pytest
from bodies.kinematics_makers import PAD, pad
from dynamics.small_robots import MATERIAL, describe_floating, looped, pendulum
from simulation.laws_in_python import both_ways, same_counts

import lissom as ls
from lissom.simulation.streams import Stream
from lissom.stepping.feedback import native_law

jnp = pytest.importorskip("jax.numpy")
STEPS = {"method": "generalized_alpha", "dt": 0.01}
ADAPTIVE = {"method": "esdirk", "rtol": 1e-7, "atol": 1e-9}
# Robots whose steps Python may choose otherwise: it searches for contacts after a step, and rounding errors of the tiny
# error of the first steps change the sizes of the next ones.
ROUNDING = "touching", "pulled"
NAMES = ("q", "v", "a", "u", "multipliers")


def free():
    """A free body, a rod on it and a spherical wrist with a motor, under a load that is an expression of time."""
    robot = describe_floating()
    robot.add_joint_actuator("wrist", "hand")
    robot.add_point_load("load", "hand", force=ls.Expression(["sin(20*t)", "0", "1"], "t"))
    return robot.build()


def pulled():
    """A hinge and a rod with an elastic tendon, a straight one to the world and a wrench."""
    robot = ls.Robot("pulled")
    robot.add_link("upper", ls.RigidBody.cylinder(0.3, 0.02, density=1000.0), ls.JointRevolute((0, 1, 0), damping=0.1))
    basis = ls.BasisLegendre(bending_y=1, bending_z=1)
    robot.add_link("lower", ls.Rod(0.3, ls.SectionCircle(0.015), basis, MATERIAL), parent="upper")
    robot.add_joint_actuator("motor", "upper")
    robot.add_tendon("elastic", "lower", (0.0, 0.01), stiffness=300.0)
    robot.add_tendon("straight", path=[ls.PathPoint("lower", (0.0, 0.01, 0.0)), ls.PathPoint(None, (0.3, 0.2, 0.1))])
    robot.add_wrench_input("push", "lower", directions=(0.0, 0.0, 0.0, 0.0, 1.0, 0.5), frame="world")
    return robot.build()


def touching():
    """A ball on a hinge with a motor that swings onto the ground."""
    robot = ls.Robot("touching")
    ball = ls.RigidBody.sphere(0.05, density=500.0)
    robot.add_link("ball", ball, ls.JointRevolute((0, 1, 0), damping=0.1), placement=np.eye(4))
    robot.add_link("hand", ball, ls.JointRevolute((0, 1, 0), damping=0.1), "ball", placement=lifted(0.3, 0.0))
    robot.add_joint_actuator("motor", "ball")
    robot.add_joint_actuator("wrist", "hand")
    robot.add_contact("ground", "hand", ls.ShapePlane(), placement=lifted(0.0, -0.06), stiffness=500.0, radius=0.05)
    return robot.build()


def lifted(x, z):
    """A placement at (x, 0, z)."""
    g = np.eye(4)
    g[[0, 2], 3] = x, z
    return g


def block():
    """A deformable block on a hinge with a tendon and a pressure inside."""
    robot = ls.Robot("block")
    law = ls.HyperelasticSaintVenantKirchhoff(young=2e5, poisson=0.3, damping_time=0.02)
    body = ls.DeformableBody(ls.KinematicsFunction(pad, 2), ls.DomainCylinder(PAD, 0.01, degree=4), law, 1e3)
    robot.add_link("body", body, ls.JointRevolute((0, 1, 0), damping=0.01))
    robot.add_tendon("line", path=[ls.PathBody("body", [(0.0, 0.004, 0.0), (0.05, 0.006, 0.002), (PAD, 0.005, 0.001)])])
    robot.add_surface_pressure("outside", "body", lambda x: x[1] > -1e-9)
    return robot.build()


ROBOTS = {"free": free, "looped": looped, "pulled": pulled, "block": block, "touching": touching}
SIZES = {
    "free": [1.0, 0.01, 0.01, 0.01],
    "touching": [0.3, 0.1],
    "looped": [1.0],
    "pulled": [0.5, 0.003, 1.0, 0.3],
    "block": [0.05, 20.0],
}


def law_of(name):
    """A law that depends on the time and on all coordinates and velocities, of the robot's natural inputs."""
    size = np.array(SIZES[name])

    def law(t, q, v):
        turns = jnp.arange(1.0, len(size) + 1.0)
        state = jnp.sum(jnp.sin(q * jnp.arange(1.0, q.size + 1.0))) - jnp.tanh(0.05 * jnp.sum(v))
        return size * (1.0 + 0.3 * jnp.cos(turns * state + 5.0 * t) + 0.2 * jnp.tanh(0.1 * v[:1] * q[-1]))

    return ls.TracedFunction(law)


def start(model, seed=0, lead=()):
    """A start near the neutral configuration, quaternions turned."""
    if model.n_rows:
        return ls.assemble(model)
    step = 0.1 * np.random.default_rng(seed).uniform(-1, 1, (*lead, model.nv)) * np.minimum(model.dofs.scale, 1.0)
    return ls.integrate(model, model.neutral(), step)


@pytest.mark.parametrize("name", ROBOTS)
def test_derivatives(name):
    """∂u/∂q in the tangent space and ∂u/∂v are those of converged central differences, and u is that of JAX."""
    model, law = ROBOTS[name](), law_of(name)
    native, q, rng = native_law(model, law), start(model), np.random.default_rng(1)
    v, t = rng.uniform(-1, 1, model.nv), 0.3
    np.testing.assert_allclose(native.inputs(t, q, v), law(t, q, v), rtol=1e-14)
    found, zero = native.derivatives(t, q, v), np.zeros(model.nv)
    for column, (dq, dv) in zip(
        found.T, [*((e, zero) for e in np.eye(model.nv)), *((zero, e) for e in np.eye(model.nv))]
    ):

        def slope(h, dq=dq, dv=dv):
            ends = (native.inputs(t, ls.integrate(model, q, x * dq), v + x * dv) for x in (h, -h))
            return np.subtract(*ends) / (2.0 * h)

        expected = (4.0 * slope(1e-4) - slope(2e-4)) / 3.0
        np.testing.assert_allclose(column, expected, rtol=1e-9, atol=1e-10 * max(SIZES[name]))


@pytest.mark.parametrize("options", [STEPS, ADAPTIVE], ids=["steps", "adaptive"])
@pytest.mark.parametrize("name", ROBOTS)
def test_kernels_against_python(name, options, monkeypatch):
    """Kernels that evaluate a law take the same steps as Python, which calls it, with the same matrices."""
    model, law = ROBOTS[name](), law_of(name)
    given = {"q0": start(model), "controller": law, "t_eval": np.linspace(0.0, 0.1, 5), **options}
    motion, other = both_ways(model, 0.1, given, monkeypatch)
    for t, q, v, u in zip(motion.t, motion.q, motion.v, motion.u) if not model.n_rows else ():
        np.testing.assert_allclose(u, law(t, q, v), rtol=1e-13)
    if name in ROUNDING and options is ADAPTIVE:
        assert np.abs(motion.q - other.q).max() < 1e-7
        return
    assert same_counts(motion, other)
    for part in NAMES:
        one, two = getattr(motion, part), getattr(other, part)
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-12 * max(1.0, np.abs(two).max(initial=0.0)), err_msg=part)


@pytest.mark.parametrize("period", [None, 0.013], ids=["continuous", "sampled"])
@pytest.mark.parametrize("options", [STEPS, ADAPTIVE], ids=["steps", "adaptive"])
@pytest.mark.parametrize("name", ["free", "pulled", "touching"])
def test_batches_are_bit_identical(name, options, period):
    """The motions of a batch under a law are those that are simulated alone, to the last bit, in the same launches."""
    model = ROBOTS[name]()
    q0 = start(model, lead=(5,))
    given = {"controller": law_of(name), "period": period, "t_eval": np.linspace(0.01, 0.06, 4), **options}
    motions = ls.simulate(model, 0.06, q0, **given)
    assert "one motion after the other" not in motions.statistics.remark
    alone = [ls.simulate(model, 0.06, q, **given) for q in q0]
    for part in NAMES:
        np.testing.assert_array_equal(getattr(motions, part), [getattr(one, part) for one in alone], err_msg=part)
    assert motions.statistics.steps == sum(one.statistics.steps for one in alone)


def test_batch_of_models():
    """Models of a batch follow one law, each as if alone."""

    def robot(mass):
        made = ls.Robot("pendulum")
        made.add_link("bob", ls.RigidBody(mass, (0, 0, -0.5), (0.1, 0.1, 0.01)), ls.JointRevolute((0, 1, 0)))
        made.add_joint_actuator("motor", "bob")
        return made.build()

    models = [robot(mass) for mass in (1.0, 2.0, 3.0)]
    law = ls.TracedFunction(lambda t, q, v: 5.0 * (jnp.sin(t) - q) - v)
    for period in (None, 0.02):
        given = {"controller": law, "period": period, "t_eval": [0.1, 0.2]}
        motions = ls.simulate(ls.ModelBatch(models), 0.2, **given)
        for k, model in enumerate(models):
            np.testing.assert_array_equal(motions.q[k], ls.simulate(model, 0.2, **given).q)


@pytest.mark.parametrize("method", ["bdf", "radau", "dop853"])
def test_other_methods(method):
    """Methods of other libraries call the native law and take its derivatives; a plain function moves it alike."""

    def plain(t, q, v):
        return np.array([3.0 * (np.sin(t) - q[0]) - 0.5 * v[0]])

    law = ls.TracedFunction(lambda t, q, v: 3.0 * (jnp.sin(t) - q) - 0.5 * v)
    ends = [ls.simulate(pendulum(), 1.0, method=method, rtol=1e-9, controller=c).q[-1] for c in (law, plain)]
    np.testing.assert_allclose(*ends, rtol=1e-7)


def test_the_kernel_is_chosen():
    """ "auto" takes steps in the kernel for a traced law, and CVODE for one in Python."""
    given = [ls.TracedFunction(lambda t, q, v: -q), lambda t, q, v: -q]
    methods = [ls.simulate(pendulum(), 0.01, controller=law).statistics.method for law in given]
    assert methods == ["esdirk", "bdf"]


def test_numbers_of_the_law_are_the_present_ones():
    """A gain that changes between two simulations, in an object or a list, changes the motion."""
    gains = [5.0]
    law = ls.TracedFunction(lambda t, q, v: gains[0] * (1.0 - q))
    ends = []
    for gain in (5.0, 10.0):
        gains[0] = gain
        ends.append(ls.simulate(pendulum(), 0.2, controller=law, **STEPS).q[-1, 0])
        fresh = ls.TracedFunction(lambda t, q, v, k=gain: k * (1.0 - q))
        assert ends[-1] == ls.simulate(pendulum(), 0.2, controller=fresh, **STEPS).q[-1, 0]
    assert ends[1] > 1.5 * ends[0]


class Integral:
    """A law that integrates its error from call to call."""

    def __init__(self):
        self.z = 0.0

    def __call__(self, t, q, v):
        self.z = self.z + 0.01 * (1.0 - q)
        return 5.0 * self.z


class Counter:
    """A law that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, t, q, v):
        self.calls += 1
        return -self.calls * q


REFUSED = {
    "integral": (Integral, "uses a value of an earlier call"),
    "counter": (Counter, "computes another result when it is called again"),
    "random": (lambda t, q, v: q * np.random.default_rng().normal(), "computes another result when it is called again"),
    "branch": (lambda t, q, v: -q if q[0] > 0 else q, "branches"),
    "numpy": (lambda t, q, v: np.sin(q), "gives NumPy"),
    "number": (lambda t, q, v: [float(q[0])], "makes a Python number"),
    "shape": (lambda t, q, v: jnp.concatenate([q, v]), "must return an array of shape (1,), got shape"),
    "sorted": (lambda t, q, v: jnp.sort(jnp.concatenate([q, v]))[:1], "sort"),
    "size": (lambda t, q, v: jnp.sin(q * jnp.arange(600.0)).sum(keepdims=True), "operations"),
}  # fmt: skip


@pytest.mark.parametrize("period", [None, 0.01])
@pytest.mark.parametrize("case", REFUSED)
def test_laws_that_cannot_be_traced(case, period, monkeypatch):
    """A law with memory, branches, random numbers or too many operations is refused in one line that says why."""
    monkeypatch.setattr("lissom.tracing.graph.MOST_OPERATIONS", 2000)
    function, words = REFUSED[case]
    function = function() if isinstance(function, type) else function
    with pytest.raises(ls.ModelError) as caught:
        ls.simulate(pendulum(), 0.1, controller=ls.TracedFunction(function), period=period)
    text = str(caught.value)
    assert text.startswith("controller: ") and words in text and "\n" not in text


def test_no_function():
    """A value that is no function is refused when it is given."""
    for wrong in (3.0, None, ls.TracedFunction(jnp.sin)):
        with pytest.raises(ls.ModelError, match="must be a function made of jax"):
            ls.TracedFunction(wrong)


@pytest.mark.parametrize("options", [STEPS, {"method": "esdirk"}], ids=["steps", "adaptive"])
@pytest.mark.parametrize("count", [1, 3])
def test_inputs_that_are_not_finite(options, count):
    """A law that becomes NaN during the motion ends it with an error that names it, not with a wrong motion."""
    law = ls.TracedFunction(lambda t, q, v: jnp.sqrt(0.05 - t) + q)
    with pytest.raises((ls.ShapeError, ls.ConvergenceError), match=r"controller at t=|finds no step"):
        ls.simulate(pendulum(), 0.1, np.full((count, 1), 0.1)[slice(None) if count > 1 else 0], controller=law,
                    t_eval=[0.1], **options)  # fmt: skip


# that motions by steps resume in another process is tested for other functions in test_streams
BY_STEPS = pytest.param(STEPS | {"dt": 1e-3}, marks=pytest.mark.slow, id="steps")


@pytest.mark.parametrize("options", [BY_STEPS, pytest.param(ADAPTIVE, id="adaptive")])
def test_a_stream_resumes(options, tmp_path, monkeypatch):
    """A motion under a law that is killed, and resumed by another process, is the one in memory."""

    class Killed(BaseException): ...

    def write(self, state):
        tell(self, state)
        if state["memory"] is not None:
            raise Killed

    tell, model = Stream._write_state, pulled()
    given = {"controller": law_of("pulled"), "q0": start(model), **options}
    with monkeypatch.context() as patched:
        patched.setattr(Stream, "_write_state", write)
        with pytest.raises(Killed):
            ls.simulate(model, 0.1, out=tmp_path / "motion", flush=0, **given)
    script = f"import lissom as ls; ls.resume({str(tmp_path / 'motion')!r})"
    there = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], env=there, check=True)
    np.testing.assert_array_equal(ls.resume(tmp_path / "motion").q, ls.simulate(model, 0.1, **given).q)


def feed_of(name):
    """Inputs as a function of time, of the robot's natural inputs, in symbols and in Python."""
    size, turns = np.array(SIZES[name]), np.arange(1.0, len(SIZES[name]) + 1.0)
    return (
        ls.TracedFunction(lambda t: size * (1.2 + jnp.cos(turns * 30.0 * t))),
        lambda t: size * (1.2 + np.cos(turns * 30.0 * t)),
    )


@pytest.mark.parametrize("options", [STEPS, ADAPTIVE], ids=["steps", "adaptive"])
@pytest.mark.parametrize("name", ["free", "looped", "pulled", "block"])
def test_inputs_of_time(name, options):
    """Inputs that are a traced function of time move a robot like those of the same function in Python."""
    model, (traced, python) = ROBOTS[name](), feed_of(name)
    given = {"q0": start(model), "t_eval": np.linspace(0.0, 0.05, 5), **options}
    motion, other = (ls.simulate(model, 0.05, u=u, **given) for u in (traced, python))
    np.testing.assert_allclose(motion.u, other.u, rtol=1e-13, atol=1e-15)
    close = 3e-7 if options is ADAPTIVE else 1e-10
    np.testing.assert_allclose(motion.q, other.q, rtol=0, atol=close * max(1.0, np.abs(other.q).max()))


@pytest.mark.parametrize("options", [STEPS, ADAPTIVE], ids=["steps", "adaptive"])
def test_batches_with_inputs_of_time(options):
    """The motions of a batch are those that are simulated alone, to the last bit, in the same launches, also with a law
    that adds to the inputs."""
    model, law, (feed, python) = free(), law_of("free"), feed_of("free")
    q0 = start(model, lead=(3,))
    for controller in (None, law):
        given = {"u": feed, "controller": controller, "t_eval": np.linspace(0.01, 0.05, 4), **options}
        motions = ls.simulate(model, 0.05, q0, **given)
        assert "one motion after the other" not in motions.statistics.remark
        for k in range(3):
            np.testing.assert_array_equal(motions.q[k], ls.simulate(model, 0.05, q0[k], **given).q)
    both = ls.simulate(model, 0.05, q0[0], **given)
    for t, q, v, u in zip(both.t, both.q, both.v, both.u):
        np.testing.assert_allclose(u, python(t) + law(t, q, v), rtol=1e-13)
    sum_of_both = ls.TracedFunction(lambda t, q, v: feed.function(t) + law.function(t, q, v))
    alone = ls.simulate(model, 0.05, q0[0], controller=sum_of_both, t_eval=given["t_eval"], **options)
    np.testing.assert_array_equal(both.q, alone.q)


def test_inputs_of_time_that_are_refused():
    """One line says which argument is wrong, and why."""
    feed = ls.TracedFunction(lambda t: jnp.stack([jnp.sin(t)]))
    wrong = ls.TracedFunction(lambda t: jnp.stack([t, t]))
    law = ls.TracedFunction(lambda t, q, v: -q)
    for arguments, words in (
        ({"u": wrong}, r"u: must return an array of shape \(1,\), got shape"),
        ({"u": wrong, "controller": law}, r"controller: .* adds u of shape \(2,\) to inputs of shape \(1,\)"),
        ({"u": ls.TracedFunction(lambda t: jnp.ones(1) if t > 1 else jnp.zeros(1))}, "u: .* branches"),
        ({"u": feed, "controller": lambda t, q, v: -q}, r"controller: must be an ls\.TracedFunction where u is one"),
        ({"u": feed, "controller": law, "period": 0.1}, "period: must be left out with u as an ls.TracedFunction"),
        ({"u": [1.0], "controller": law}, "controller: give u or a controller, not both"),
    ):
        with pytest.raises(ls.ModelError, match=words) as caught:
            ls.simulate(pendulum(), 0.1, **arguments)
        assert "\n" not in str(caught.value)
    with pytest.raises((ls.ShapeError, ls.ConvergenceError), match=r"u at t=|finds no step"):
        late = ls.TracedFunction(lambda t: jnp.sqrt(0.05 - t) * jnp.ones(1))
        ls.simulate(pendulum(), 0.1, u=late, **STEPS)
