"""Actuators B(q) of users as native code: values, derivatives, motions and equilibria against Python, differences."""

import numpy as np
import pytest
from dynamics.small_robots import MATERIAL, describe_floating, describe_looped, describe_pendulum
from gradients.moving_robots import changes, differenced, mismatch
from simulation.laws_in_python import check_law_through_inputs

import lissom as ls
from lissom.control.actuation_coordinates import actuation_rates
from lissom.robot.poses import compiled

jnp = pytest.importorskip("jax.numpy")
STEPS = {"method": "generalized_alpha", "dt": 0.005}
ADAPTIVE = {"method": "esdirk", "rtol": 1e-6, "atol": 1e-8}


def as_it_is(function):
    """The function as native code."""
    return ls.TracedFunction(function)


def in_python(function):
    """The same function, which Python calls. JAX compiles it, since its single operations take far longer."""
    quick = compiled(function)
    return lambda q: np.asarray(quick(q))


def waves(nv, nq, size):
    """A matrix B(q) that depends on all coordinates."""
    C = np.random.default_rng(size).standard_normal((nv, size, nq))
    return lambda q: 0.1 * jnp.sin(jnp.einsum("jkq,q->jk", C, q) + jnp.arange(1.0, size + 1.0))


def free(wrap):
    """A free body, a rod and a spherical wrist with a motor; two users' actuators among others, one of them coupled."""
    robot = describe_floating()
    robot.add_custom_actuator("coils", wrap(waves(12, 14, 2)), size=2)
    robot.add_joint_actuator("wrist", "hand")
    robot.add_custom_actuator("one", wrap(lambda q: 0.1 * jnp.cos(q[:12] * q[13])))
    robot.couple_inputs("both", {"tendon": 0.5, "one": -2.0})
    return robot.build()


def elastic(wrap):
    """A hinge and a rod with an elastic tendon and coils."""
    robot = ls.Robot("elastic")
    robot.add_link(
        "upper", ls.RigidBody.cylinder(0.3, 0.02, density=1000.0), ls.JointRevolute((0, 1, 0), stiffness=1.0)
    )
    basis = ls.BasisLegendre(bending_y=1, bending_z=1)
    robot.add_link("lower", ls.Rod(0.3, ls.SectionCircle(0.015), basis, MATERIAL), parent="upper")
    robot.add_tendon("elastic", "lower", (0.0, 0.01), stiffness=300.0)
    nv = robot.build().nv
    robot.add_custom_actuator("coils", wrap(waves(nv, nv, 3)), size=3)
    return robot.build()


def looped(wrap):
    """A robot with loops and a spherical joint."""
    robot = describe_looped()
    model = robot.build()
    robot.add_custom_actuator("coils", wrap(waves(model.nv, model.nq, 2)), size=2)
    return robot.build()


def curled(wrap):
    """A free body, a rod with an elastic tendon and two inputs of no linear force, with a motor coupled to one of a
    third. Their force in Python is not known: `wrap` is not used."""
    robot = describe_floating()
    C = np.random.default_rng(7).standard_normal((12, 14))

    def pulls(q, u):
        return 0.1 * jnp.sin(C @ q) * u[0] * jnp.abs(u[1]) + 0.02 * jnp.cos(C @ q) * u[1] ** 3

    robot.add_custom_actuator("pulls", ls.TracedFunction(pulls), size=2, linear=False)
    robot.add_joint_actuator("wrist", "hand")
    robot.add_custom_actuator("square", ls.TracedFunction(lambda q, u: 0.1 * u[0] ** 2 * jnp.cos(q[:12])), linear=False)
    robot.couple_inputs("both", {"tendon": 0.5, "square": -2.0})
    return robot.build()


def touching(wrap):
    """A rigid arm over the ground, whose kernels leave out rods without its actuator."""
    robot = ls.Robot("touching")
    ball = ls.RigidBody.sphere(0.05, density=500.0)
    for name, parent, x in (("ball", None, 0.0), ("hand", "ball", 0.3)):
        g = np.eye(4)
        g[0, 3] = x
        robot.add_link(name, ball, ls.JointRevolute((0, 1, 0), damping=0.1), parent, placement=g)
    ground = np.eye(4)
    ground[2, 3] = -0.06
    robot.add_contact("ground", "hand", ls.ShapePlane(), placement=ground, stiffness=500.0, radius=0.05)
    robot.add_custom_actuator("coils", wrap(waves(2, 2, 1)))
    return robot.build()


def long(wrap):
    """A chain of rods with so many coordinates that steps would eliminate blocks."""
    robot, parent = ls.Robot("long"), None
    for k in range(8):
        rod = ls.Rod(0.1, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=2, bending_z=2), MATERIAL)
        robot.add_link(f"rod{k}", rod, parent=parent)
        parent = f"rod{k}"
    nv = robot.build().nv
    assert nv > 40
    robot.add_custom_actuator("coils", wrap(waves(nv, nv, 2)), size=2)
    return robot.build()


ROBOTS = {"free": free, "elastic": elastic, "looped": looped, "touching": touching, "long": long}
every = pytest.mark.parametrize("name", ROBOTS)


def state(model, lead=()):
    """A start, velocities and inputs."""
    rng = np.random.default_rng(3)
    step = 0.2 * rng.uniform(-1, 1, (*lead, model.nv)) * np.minimum(model.dofs.scale, 1.0)
    q = ls.assemble(model) if model.n_rows else ls.integrate(model, model.neutral(), step)
    v = np.zeros(model.nv) if model.n_rows else rng.uniform(-1, 1, (*lead, model.nv))
    return q, v, 0.01 + 0.02 * rng.uniform(size=(*lead, model.nu))


@every
def test_against_python(name):
    """The matrix, accelerations and their derivatives are those of a Python function; the derivatives are closer to
    converged differences than 1e-8."""
    native, python = ROBOTS[name](as_it_is), ROBOTS[name](in_python)
    assert python.calls_python and not native.calls_python
    q, v, u = state(native)
    u = 20.0 * u
    np.testing.assert_allclose(ls.actuation_matrix(native, q), ls.actuation_matrix(python, q), rtol=0, atol=1e-15)
    rows = ls.actuation_matrix(native, np.stack([q, native.neutral()]))
    np.testing.assert_array_equal(rows[0], ls.actuation_matrix(native, q))
    a, expected = (ls.forward_dynamics(model, q, v, u) for model in (native, python))
    np.testing.assert_allclose(a, expected, rtol=0, atol=1e-11 * np.abs(a).max())
    if native.n_rows:
        return
    found = ls.forward_dynamics_derivatives(native, q, v, u)
    for one, other in zip(found, ls.forward_dynamics_derivatives(python, q, v, u)):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-7 * np.abs(one).max())

    def slope(h):
        ends = [ls.forward_dynamics(native, ls.integrate(native, q, h * x * np.eye(native.nv)), v, u) for x in (1, -1)]
        return ((ends[0] - ends[1]) / (2.0 * h)).T

    if name != "touching":  # the force of a contact has a kink
        size = np.abs(found[0]).max()
        np.testing.assert_allclose(found[0], (4.0 * slope(2e-4) - slope(4e-4)) / 3.0, rtol=0, atol=1e-8 * size)


def test_derivative_of_the_force_alone():
    """Without masses in the way, ∂(B u)/∂q of a free body and a wrist is that of converged differences to 1e-9."""
    model = free(as_it_is)
    q, _, u = state(model)
    u, rest = 50.0 * u, np.zeros(model.nv)
    without = ls.forward_dynamics_derivatives(model, q, rest, np.zeros(model.nu))[0]
    M = ls.mass_matrix(model, q)
    response = ls.forward_dynamics_derivatives(model, q, rest, u)[0] - without
    a = ls.forward_dynamics(model, q, rest, u) - ls.forward_dynamics(model, q, rest, 0.0 * u)

    def change(h):
        moved = ls.integrate(model, q, h * np.eye(model.nv))
        force = [ls.mass_matrix(model, x) @ a - ls.actuation_matrix(model, x) @ u for x in moved]
        return np.array(force).T

    slope = [(change(h) - change(-h)) / (2.0 * h) for h in (2e-4, 4e-4)]
    expected = -np.linalg.solve(M, (4.0 * slope[0] - slope[1]) / 3.0)  # ∂(M Δa − B u)/∂q = −M ∂Δa/∂q
    np.testing.assert_allclose(response, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("options", [STEPS, ADAPTIVE], ids=["steps", "adaptive"])
@every
def test_motions_against_python(name, options):
    """Kernels take the steps that Python takes when it calls the same function."""
    native, python = ROBOTS[name](as_it_is), ROBOTS[name](in_python)
    q, v, u = state(native)
    given = {"q0": q, "v0": 0.1 * v, "u": u, "t_eval": [0.01, 0.02], **options}
    one, other = (ls.simulate(model, 0.02, **given) for model in (native, python))
    assert one.statistics.method == other.statistics.method
    close = 1e-7 if options is ADAPTIVE else 1e-9
    np.testing.assert_allclose(one.q, other.q, rtol=0, atol=close * max(1.0, np.abs(other.q).max()))


@pytest.mark.parametrize("options", [STEPS, ADAPTIVE], ids=["steps", "adaptive"])
def test_batches_are_bit_identical(options):
    """Motions of a batch are those that are simulated alone, in the same launches."""
    model = free(as_it_is)
    q, v, u = state(model, (4,))
    given = {"t_eval": [0.01, 0.02], **options}
    motions = ls.simulate(model, 0.02, q, 0.1 * v, u=u[0], **given)
    assert "one motion after the other" not in motions.statistics.remark
    for k in range(4):
        np.testing.assert_array_equal(motions.q[k], ls.simulate(model, 0.02, q[k], 0.1 * v[k], u=u[0], **given).q)


def test_batch_of_models():
    """Models of a batch move each as if alone; models with different functions make no batch."""

    def robot(mass, function):
        made = ls.Robot("pendulum")
        made.add_link("bob", ls.RigidBody(mass, (0, 0, -0.5), (0.1, 0.1, 0.01)), ls.JointRevolute((0, 1, 0)))
        made.add_custom_actuator("coil", ls.TracedFunction(function))
        return made.build()

    models = [robot(mass, lambda q: jnp.cos(q)) for mass in (1.0, 2.0, 3.0)]
    given = {"u": [3.0], **ADAPTIVE, "t_eval": [0.1, 0.2]}
    motions = ls.simulate(ls.ModelBatch(models), 0.2, **given)
    for k, model in enumerate(models):
        np.testing.assert_array_equal(motions.q[k], ls.simulate(model, 0.2, **given).q)
    batch = ls.ModelBatch(models)
    B = ls.actuation_matrix(batch, [0.3])
    np.testing.assert_allclose(B, np.full((3, 1, 1), np.cos(0.3)), rtol=1e-15)
    with pytest.raises(ls.ModelError, match=r"functions of actuators must be those of the first one, \['coil"):
        ls.ModelBatch([models[0], robot(1.0, lambda q: jnp.sin(q))])


@pytest.mark.parametrize("options", [STEPS, ADAPTIVE], ids=["steps", "adaptive"])
@pytest.mark.parametrize("name", ["free", "elastic", "curled"])
def test_feedback_laws(name, options, monkeypatch):
    """A traced law that drives the actuator has the matrix of the steps that Python takes with it."""
    model = (ROBOTS | {"curled": curled})[name](as_it_is)
    q, v, u = state(model)
    u = 20.0 * u if name == "curled" else u
    check_law_through_inputs(model, q, 0.1 * v, u, options, monkeypatch)


def test_forces_that_are_not_linear():
    """The force τ(q, u) is in the acceleration, and its derivatives by q and u are those of converged differences."""
    model = curled(as_it_is)
    q, v, _ = state(model)
    u = np.array([0.3, 0.7, -0.4, *np.linspace(0.1, 0.3, model.nu - 3)])
    a, M = ls.forward_dynamics(model, q, v, u), ls.mass_matrix(model, q)
    names = model.inputs.names
    without = u * np.array([not name.startswith("pulls") for name in names])
    pulls = model.description.actuators["pulls"].function
    own = pulls(q, u[[names.index("pulls[0]"), names.index("pulls[1]")]])
    np.testing.assert_allclose(M @ (a - ls.forward_dynamics(model, q, v, without)), own, rtol=0, atol=1e-10)
    found = ls.forward_dynamics_derivatives(model, q, v, u)
    for one, move in ((found[0], lambda e: (ls.integrate(model, q, e), v, u)), (found[2], lambda e: (q, v, u + e))):

        def slope(h, move=move, n=one.shape[1]):
            ends = [[ls.forward_dynamics(model, *move(x * e)) for e in np.eye(n)] for x in (h, -h)]
            return np.subtract(*ends).T / (2.0 * h)

        expected = (4.0 * slope(2e-4) - slope(4e-4)) / 3.0
        np.testing.assert_allclose(one, expected, rtol=0, atol=1e-8 * np.abs(one).max())
    rows = ls.forward_dynamics_derivatives(model, q, v, np.stack([u, without]))[2]
    np.testing.assert_allclose(rows[0], found[2], rtol=0, atol=1e-13 * np.abs(found[2]).max())
    with pytest.raises(ls.ModelError, match="actuator 'pulls': must be linear in its inputs"):
        ls.actuation_matrix(model, q)
    robot = describe_pendulum()
    robot.add_custom_actuator("coil", lambda q, u: u, linear=False)
    with pytest.raises(ls.ModelError, match=r"actuator 'coil': function: must be an ls\.TracedFunction"):
        robot.build()


def test_equilibria():
    """Equilibria are those with a Python function, and their derivatives by inputs those of differences. Circulating
    forces make them unstable."""
    models = [elastic(wrap) for wrap in (as_it_is, in_python)]
    u, moves = np.array([0.004, 0.03, -0.02, 0.04]), np.diag([1e-5, 1e-4, 1e-4, 1e-4])  # metres, and currents
    rests = [ls.solve_statics(model, u, stable=False) for model in models]
    np.testing.assert_allclose(rests[0].q, rests[1].q, rtol=0, atol=1e-9)

    def slope(h):
        ends = [[ls.solve_statics(models[0], u + x * e, rests[0].q, stable=False).q for e in moves] for x in (h, -h)]
        return np.subtract(*ends).T / (2.0 * h * np.diag(moves))

    found = ls.equilibrium_derivatives(rests[0]).u
    np.testing.assert_allclose(found, (4.0 * slope(1) - slope(2)) / 3.0, rtol=0, atol=1e-7 * np.abs(found).max())


@pytest.mark.parametrize("scheme, make", [("generalized_alpha", free), ("esdirk", free), ("esdirk", curled)])
def test_gradients_of_motions(scheme, make):
    """Derivatives of a motion by its start and inputs are those of differences, and the backward pass agrees."""
    model = make(as_it_is)
    q, v, u = state(model)
    rng = np.random.default_rng(5)
    u = u + 0.01 * rng.uniform(size=(8, model.nu))
    dq, dv, du = 0.3 * rng.normal(size=model.nv), 0.3 * rng.normal(size=model.nv), rng.normal(size=u.shape)

    def run(x):
        start = ls.integrate(model, q, x * dq)
        return ls.rollout(model, start, 0.1 * v + x * dv, u + x * du, dt=5e-3, method=scheme, tolerance=1e-13)

    motion = run(0.0)
    change = motion.forward(dq0=dq, dv0=dv, du=du)
    slope = differenced(lambda x: changes(model, motion, run(x)), 3e-4)
    assert mismatch(model, [change.q, change.v, change.a], slope) < 1e-8  # h⁴ makes it 1e-10 here
    weights = rng.normal(size=motion.v.shape)
    back = motion.backward(weights)
    assert np.sum(back.u * du) + back.q0 @ dq + back.v0 @ dv == pytest.approx(np.sum(weights * change.q), rel=1e-10)


def test_laws_of_control():
    """The matrix and its rate along a motion, for laws that need both; a user's actuator has no coordinate."""
    model = free(as_it_is)
    q, v, _ = state(model)
    B, rate = actuation_rates(model, q, v)
    np.testing.assert_allclose(B, ls.actuation_matrix(model, q), rtol=1e-14)
    ends = [ls.actuation_matrix(model, ls.integrate(model, q, x * v)) for x in (1e-5, -1e-5)]
    np.testing.assert_allclose(rate, np.subtract(*ends).T @ v / 2e-5, rtol=0, atol=1e-7 * np.abs(rate).max())
    with pytest.raises(ls.ModelError, match="CustomActuator"):
        ls.actuation_coordinates(model, q)


def test_numbers_are_those_at_the_build():
    """A number that the function reads is the one at the build, also for a model with other values."""
    gain = [2.0]
    robot = describe_pendulum()
    robot.add_custom_actuator("coil", ls.TracedFunction(lambda q: gain[0] * jnp.cos(q)))
    model = robot.build()
    gain[0] = 3.0
    later = robot.build()
    assert [ls.actuation_matrix(one, [0.0])[0, 1] for one in (model, later)] == [2.0, 3.0]
    heavier = later.with_({"bob.body.mass": 4.0})
    assert not heavier.calls_python and ls.actuation_matrix(heavier, [0.0])[0, 1] == 3.0
    moved = ls.forward_dynamics(heavier, [0.0], [0.0], [0.0, 1.0])
    np.testing.assert_allclose(moved, ls.forward_dynamics(heavier, [0.0], [0.0], [3.0, 0.0]), rtol=1e-14)


def test_elsewhere_python_calls_it():
    """On a device without native functions Python calls the actuator; back on the CPU kernels do."""
    model = free(as_it_is)
    there = model.inputs.on("cuda:0", model.channels.gain)
    assert not there.native and [a.name for a, _ in there.custom] == ["coils", "one"]
    for actuator, gain in there.custom:
        used = [row for row, name in enumerate(model.channels.names) if name == actuator.name]
        np.testing.assert_array_equal(gain, model.channels.gain[used])
    back = there.on("cpu", model.channels.gain)
    assert not back.custom and back.native == model.inputs.native


def test_values_that_are_not_finite():
    """A matrix with NaN is an error, not a wrong number."""
    robot = describe_pendulum()
    robot.add_custom_actuator("coil", ls.TracedFunction(lambda q: jnp.sqrt(q - 1.0)))
    model = robot.build()
    with pytest.raises(ls.ShapeError, match="actuator 'coil': expected finite values"):
        ls.actuation_matrix(model, [0.0])
    with pytest.raises((ls.ShapeError, ls.ConvergenceError)):
        ls.forward_dynamics(model, [0.0], [0.0], [0.0, 1.0])
    with pytest.raises((ls.ShapeError, ls.ConvergenceError)):
        ls.simulate(model, 0.1, u=[0.0, 1.0], **STEPS)


REFUSED = {
    "branch": (lambda q: q if q[0] > 0 else -q, "branches"),
    "numpy": (lambda q: np.sin(q), "gives NumPy"),
    "random": (lambda q: q * np.random.default_rng().normal(), "computes another result when it is called again"),
    "shape": (lambda q: jnp.ones((2, 1)), "must return an array of shape (1, 1), got shape"),
    "sorted": (lambda q: jnp.sort(jnp.concatenate([q, q]))[:1], "sort"),
    "size": (lambda q: jnp.sin(q * jnp.arange(600.0)).sum(keepdims=True), "operations"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_functions_that_cannot_be_traced(case, monkeypatch):
    """The build refuses a function that cannot be traced in one line that says why."""
    monkeypatch.setattr("lissom.tracing.graph.MOST_OPERATIONS", 2000)
    function, words = REFUSED[case]
    robot = describe_pendulum()
    robot.add_custom_actuator("coil", ls.TracedFunction(function))
    with pytest.raises(ls.ModelError) as caught:
        robot.build()
    text = str(caught.value)
    assert text.startswith("actuator 'coil': function: ") and words in text and "\n" not in text


def test_a_file_cannot_hold_it(tmp_path):
    """Saving says that a function of q cannot be saved."""
    with pytest.raises(ls.ModelError, match="actuator 'coils': function: a Python function of q"):
        ls.save_robot(touching(as_it_is).description, tmp_path / "robot.yaml")
