"""Forces of users that depend on inputs: against forces in Python, differences, batches, laws, and refused
arguments."""

import numpy as np
import pytest
from dynamics.small_robots import MATERIAL, describe_looped
from gradients.moving_robots import changes, differenced, mismatch
from simulation.laws_in_python import check_law_through_inputs

import lissom as ls
from lissom.dynamics.actuation import input_force
from lissom.robot.poses import compiled

jnp = pytest.importorskip("jax.numpy")
STEPS = {"method": "generalized_alpha", "dt": 0.005}
ADAPTIVE = {"method": "esdirk", "rtol": 1e-7, "atol": 1e-9}


def coils(t, g, eta, current):
    """A field of two coils, as no linear function of their currents, that also brakes the motion."""
    away = jnp.array([0.3, 0.1, 0.2]) - g[:3, 3]
    B = away * jnp.exp(-2.0 * (away @ away)) * (1.0 + 0.2 * jnp.sin(4.0 * t))
    side = jnp.cross(B, jnp.array([0.0, 0.0, 1.0]))
    force = 0.1 * (B * current[0] * jnp.abs(current[1]) + 0.3 * current[0] ** 2 * side)
    turn = 0.01 * jnp.cross(g[:3, 0], B) * current[1] ** 3
    brake = 0.01 * current[1] ** 2 * jnp.concatenate([0.01 * eta[:3], eta[3:]])
    return jnp.concatenate([g[:3, :3].T @ turn, g[:3, :3].T @ force]) - brake


def thruster(t, g, eta, u):
    """A propeller along x, whose thrust fades with the speed of the water."""
    return jnp.zeros(6).at[3].set(0.4 * u[0] * jnp.abs(u[0]) * (1.0 - 0.1 * eta[3]))


def magnet(t, g, eta, current):
    """A moment and a force that are linear in the currents of three coils along the axes."""
    away = g[:3, 3] - jnp.array([0.1, 0.0, 0.3])
    return jnp.concatenate([jnp.cross(jnp.array([0.02, 0.0, 0.0]), g[:3, :3].T @ current), 0.1 * away * current[0]])


def add_forces(robot, tree):
    """Add forces to a body and a rod: at a point, and all along the rod. Two share their inputs, in another order."""
    body, rod = tree
    robot.add_force("thruster", body, ls.TracedFunction(thruster), inputs="thrust")
    robot.add_force("tip", rod, ls.TracedFunction(coils), s=1.0, inputs=["coil a", "coil b"])
    robot.add_force("skin", rod, ls.TracedFunction(coils), inputs=["coil b", "coil a"])
    return robot


def floating(add=add_forces):
    """A free stone with a rod and a tendon."""
    robot = ls.Robot("floating")
    robot.add_link("stone", ls.RigidBody.sphere(0.05, density=2700.0), ls.JointFree())
    rod = ls.Rod(0.3, ls.SectionCircle(0.015), ls.BasisLegendre(bending_y=1, bending_z=0), MATERIAL)
    robot.add_link("rod", rod, parent="stone")
    robot.add_tendon("tendon", "rod", (0.0, 0.01))
    return add(robot, ("stone", "rod"))


def elastic(add=add_forces):
    """A hinge and a rod with an elastic tendon and a user's actuator."""
    robot = ls.Robot("elastic")
    hinge = ls.JointRevolute((0, 1, 0), stiffness=1.0)
    robot.add_link("upper", ls.RigidBody.cylinder(0.3, 0.02, density=1000.0), hinge)
    basis = ls.BasisLegendre(bending_y=1, bending_z=1)
    robot.add_link("lower", ls.Rod(0.3, ls.SectionCircle(0.015), basis, MATERIAL), parent="upper")
    robot.add_tendon("elastic", "lower", (0.0, 0.01), stiffness=300.0)
    robot.add_custom_actuator("curl", ls.TracedFunction(lambda q: 0.1 * jnp.cos(q)))
    return add(robot, ("upper", "lower"))


def looped(add=add_forces):
    """A robot with loops."""
    robot = describe_looped()
    links = list(robot.links)
    rod = next(name for name in links if isinstance(robot.links[name].body, ls.Rod))
    return add(robot, (next(name for name in links if isinstance(robot.links[name].body, ls.RigidBody)), rod))


ROBOTS = {"floating": floating, "elastic": elastic, "looped": looped}
every = pytest.mark.parametrize("name", ROBOTS)
both = pytest.mark.parametrize("options", [STEPS, ADAPTIVE], ids=["steps", "adaptive"])


def in_python(values):
    """Adds the same forces as Python functions, whose inputs are values (thrust, coil a, coil b) of a function of
    time."""

    def add(robot, tree):
        body, rod = tree

        def force(law, which):
            quick = compiled(law)  # single operations of JAX take a hundred times as long
            return lambda t, g, eta: np.asarray(quick(t, g, eta, values(t)[which]))

        robot.add_force("thruster", body, force(thruster, [0]))
        robot.add_force("tip", rod, force(coils, [1, 2]), s=1.0)
        robot.add_force("skin", rod, force(coils, [2, 1]))
        return robot

    return add


def state(model, lead=()):
    """A start, velocities and inputs; the last three are those of the forces."""
    rng = np.random.default_rng(3)
    step = 0.2 * rng.uniform(-1, 1, (*lead, model.nv)) * np.minimum(model.dofs.scale, 1.0)
    q = ls.assemble(model) if model.n_rows else ls.integrate(model, model.neutral(), step)
    v = np.zeros(model.nv) if model.n_rows else 0.3 * rng.uniform(-1, 1, (*lead, model.nv))
    u = 0.01 + 0.02 * rng.uniform(size=(*lead, model.nu))
    u[..., -3:] = rng.uniform(-1.0, 1.0, (*lead, 3))
    return q, v, u


@every
def test_against_python(name):
    """Accelerations are those under the same forces in Python at these inputs, at two times."""
    model = ROBOTS[name]().build()
    assert not model.calls_python and model.inputs.names[-3:] == ("thrust", "coil a", "coil b")
    q, v, u = state(model)
    python = ROBOTS[name](in_python(lambda t: u[-3:])).build()
    for t in (0.0, 0.7):
        a = ls.forward_dynamics(model, q, v, u, t)
        expected = ls.forward_dynamics(python, q, v, u[:-3], t)
        np.testing.assert_allclose(a, expected, rtol=0, atol=1e-11 * np.abs(a).max())
    still = ls.forward_dynamics(model, q, v, u * (np.arange(model.nu) < model.nu - 3), t)
    assert np.abs(a - still).max() > 1e-6 * np.abs(a).max()


@every
def test_derivatives(name):
    """Derivatives of accelerations by q, v and the inputs are those of converged differences; of a closed robot by v
    and the inputs."""
    model, t = ROBOTS[name]().build(), 0.4
    q, v, u = state(model)
    moves = (
        lambda e: (ls.integrate(model, q, e), v, u),
        lambda e: (q, v + e, u),
        lambda e: (q, v, u + e),
    )
    found = ls.forward_dynamics_derivatives(model, q, v, u, t)
    for k, (one, move) in enumerate(zip(found, moves)):
        if model.n_rows and k == 0:
            continue

        def slope(h, move=move, n=one.shape[1]):
            ends = [[ls.forward_dynamics(model, *move(x * e), t) for e in np.eye(n)] for x in (h, -h)]
            return np.subtract(*ends).T / (2.0 * h)

        expected = (4.0 * slope(1e-4) - slope(2e-4)) / 3.0
        np.testing.assert_allclose(one, expected, rtol=0, atol=1e-8 * np.abs(one).max())


def test_rows_are_those_of_single_states():
    """Accelerations and their derivatives of many states are those of each state, also where only inputs differ."""
    model = floating().build()
    q, v, u = state(model, (3,))
    for at in ((q, v, u), (q[0], v[0], u)):
        rows = ls.forward_dynamics(model, *at, 0.3), *ls.forward_dynamics_derivatives(model, *at, 0.3)
        for k in range(3):
            one = [x[k] if x.ndim == 2 else x for x in at]
            alone = ls.forward_dynamics(model, *one, 0.3), *ls.forward_dynamics_derivatives(model, *one, 0.3)
            for x, y in zip(rows, alone):
                np.testing.assert_allclose(x[k], y, rtol=0, atol=1e-13 * np.abs(y).max())


GIVEN = {
    "constant": lambda u: u,
    "samples": lambda u: ls.Samples([0.0, 0.01, 0.02], np.outer([0.5, 1.0, 0.7], u), smooth=True),
    "function": lambda u: lambda t: u * np.cos(20.0 * t),
}


@both
@pytest.mark.parametrize("kind", GIVEN)
def test_motions_against_python(kind, options):
    """Motions under inputs of any kind are those under forces of Python that read the same inputs."""
    model = floating().build()
    q, v, u = state(model)
    given = GIVEN[kind](u)
    values = given if callable(given) else lambda t: given
    python = floating(in_python(lambda t: values(t)[-3:])).build()
    start = {"q0": q, "v0": v, "t_eval": [0.01, 0.02], **options}
    one = ls.simulate(model, 0.02, u=given, **start)
    first = given if kind == "constant" else lambda t: values(t)[:-3]
    other = ls.simulate(python, 0.02, u=u[:-3] if kind == "constant" else first, **start)
    np.testing.assert_allclose(one.q, other.q, rtol=0, atol=3e-7 if options is ADAPTIVE else 1e-9)


@both
def test_batches_are_bit_identical(options):
    """Motions of a batch with inputs of their own are those that are simulated alone, in the same launches."""
    model = floating().build()
    q, v, u = state(model, (4,))
    given = {"t_eval": [0.01, 0.02], **options}
    motions = ls.simulate(model, 0.02, q, v, u=u, **given)
    assert "one motion after the other" not in motions.statistics.remark
    for k in range(4):
        np.testing.assert_array_equal(motions.q[k], ls.simulate(model, 0.02, q[k], v[k], u=u[k], **given).q)


def test_batch_of_models():
    """Models of a batch, whose rods differ in length, move each as if alone; models with other functions make no
    batch."""
    model = floating().build()
    batch = model.batch("rod.length", [0.25, 0.3, 0.4])
    _, _, u = state(model)
    given = {"u": u, "t_eval": [0.01, 0.02], **ADAPTIVE}
    motions = ls.simulate(batch, 0.02, **given)
    for k, one in enumerate(batch):
        np.testing.assert_array_equal(motions.q[k], ls.simulate(one, 0.02, **given).q)
    assert np.abs(motions.q[0] - motions.q[2]).max() > 1e-6

    def other(robot, tree):
        robot.add_force("thruster", "stone", ls.TracedFunction(lambda t, g, eta, w: w[0] * eta), inputs="thrust")
        return robot

    def plain(robot, tree):
        robot.add_force("thruster", "stone", ls.TracedFunction(thruster), inputs="thrust")
        return robot

    with pytest.raises(ls.ModelError, match=r"functions of forces with inputs must be those of the first one"):
        ls.ModelBatch([floating(plain).build(), floating(other).build()])


@both
@pytest.mark.parametrize("name", ["floating", "elastic"])
def test_feedback_laws(name, options, monkeypatch):
    """A traced law that drives the forces has the matrix of the steps that Python takes with it."""
    model = ROBOTS[name]().build()
    q, v, u = state(model)
    check_law_through_inputs(model, q, v, u, options, monkeypatch)


def test_matrix_of_a_stiff_law():
    """Newton's method takes few iterations under a stiff law through the forces, since its matrix has the derivatives
    by the inputs."""
    model = floating().build()
    q, v, u = state(model)
    stiff = ls.TracedFunction(lambda t, q, v: u + 40.0 * jnp.zeros(len(u)).at[-3:].set(jnp.tanh(q[4:7] - v[3:6])))
    motion = ls.simulate(model, 0.05, q0=q, v0=v, controller=stiff, **STEPS)
    assert motion.statistics.evaluations <= 6 * motion.statistics.steps


def test_equilibria():
    """Equilibria satisfy the residual, their derivatives by inputs are those of differences, and a path of equilibria
    by a factor of the inputs, on which the residual depends in no affine way, ends at the equilibrium."""
    model = elastic().build()
    u = np.array([0.004, 0.05, 0.4, 0.5, -0.4])
    rest = ls.solve_statics(model, u, stable=False)
    a = ls.forward_dynamics(model, rest.q, np.zeros(model.nv), u)
    np.testing.assert_allclose(a, 0.0, atol=1e-6 * np.abs(ls.forward_dynamics(model, rest.q, 0.0 * a, 0.0 * u)).max())
    moves = np.diag([1e-5, 1e-4, 1e-4, 1e-4, 1e-4])

    def slope(h):
        ends = [[ls.solve_statics(model, u + x * e, rest.q, stable=False).q for e in moves] for x in (h, -h)]
        return np.subtract(*ends).T / (2.0 * h * np.diag(moves))

    found = ls.equilibrium_derivatives(rest).u
    np.testing.assert_allclose(found, (4.0 * slope(1) - slope(2)) / 3.0, rtol=0, atol=1e-7 * np.abs(found).max())
    stretched = floating_arm().build()
    end = ls.solve_statics(stretched, [0.5, -0.4, 0.3])
    path = ls.continuation(stretched, u=[0.5, -0.4, 0.3], factor_range=(0.0, 1.0))
    assert path.factor[-1] == 1.0
    np.testing.assert_allclose(path.q[-1], end.q, rtol=0, atol=1e-8)


def floating_arm():
    """A rod on the world under the forces, without other actuators."""
    robot = ls.Robot("arm")
    basis = ls.BasisLegendre(bending_y=1, bending_z=1)
    robot.add_link("rod", ls.Rod(0.3, ls.SectionCircle(0.015), basis, MATERIAL))
    return add_forces(robot, ("rod", "rod"))


@pytest.mark.parametrize("scheme", ["generalized_alpha", "esdirk"])
def test_gradients_of_motions(scheme):
    """Derivatives of a motion by its start and inputs are those of differences, and the backward pass agrees."""
    model = floating().build()
    q, v, u = state(model)
    rng = np.random.default_rng(5)
    u = u + 0.01 * rng.uniform(size=(8, model.nu))
    dq, dv, du = 0.3 * rng.normal(size=model.nv), 0.3 * rng.normal(size=model.nv), rng.normal(size=u.shape)

    def run(x):
        start = ls.integrate(model, q, x * dq)
        return ls.rollout(model, start, v + x * dv, u + x * du, dt=5e-3, method=scheme, tolerance=1e-13)

    motion = run(0.0)
    change = motion.forward(dq0=dq, dv0=dv, du=du)
    slope = differenced(lambda x: changes(model, motion, run(x)), 3e-4)
    assert mismatch(model, [change.q, change.v, change.a], slope) < 1e-7
    weights = rng.normal(size=motion.v.shape)
    back = motion.backward(weights)
    assert np.sum(back.u * du) + back.q0 @ dq + back.v0 @ dv == pytest.approx(np.sum(weights * change.q), rel=1e-10)


def test_gradients_of_designs_and_laws():
    """Derivatives by a length of a rod, on which the forces act, under a traced law, are those of differences."""
    robot = floating()
    model = robot.build()
    q, v, u = state(model)
    law = ls.TracedFunction(lambda t, q, v: u * jnp.cos(3.0 * t + v[: len(u)]))
    steps = {"steps": 8, "dt": 5e-3, "controller": law, "tolerance": 1e-13}
    motion = ls.rollout(model, q, v, **steps)
    change = motion.forward(parameters={"rod.length": 1.0}).q

    def run(x):
        moved = model.with_({"rod.length": 0.3 + x})
        return ls.difference(model, motion.q, ls.rollout(moved, q, v, **steps).q)

    slope = differenced(run, 1e-4)
    np.testing.assert_allclose(change, slope, rtol=0, atol=1e-6 * np.abs(slope).max())


def test_work_of_inputs():
    """The energies of a motion change by the work of the forces of all inputs."""
    model = floating().build()
    q, v, u = state(model)
    motion = ls.simulate(model, 0.2, q0=q, v0=v, u=u, method="esdirk", rtol=1e-9, atol=1e-11, dt=1e-3)
    balance = ls.energy_balance(model, motion)
    assert balance.residual < 1e-5
    force = input_force(model, motion.q, motion.v, motion.u, motion.t)
    pushed = ls.mass_matrix(model, q) @ (
        ls.forward_dynamics(model, q, v, u, 0.0) - ls.forward_dynamics(model, q, v, 0.0 * u, 0.0)
    )
    np.testing.assert_allclose(force[0], pushed, rtol=0, atol=1e-11 * np.abs(pushed).max())


def linear(robot, tree):
    """Add one force that is linear in its inputs."""
    robot.add_force("magnet", tree[1], ls.TracedFunction(magnet), s=1.0, inputs=["x", "y", "z"])
    return robot


def test_linear_forces_have_an_actuation_matrix():
    """A force that is linear in its inputs has an actuation matrix, which control laws and the inverse problem use."""
    model = elastic(linear).build()
    q, v, _ = state(model)
    u = np.array([0.0, 0.1, 0.3, -0.2, 0.5])
    pushed = ls.mass_matrix(model, q) @ (ls.forward_dynamics(model, q, v, u) - ls.forward_dynamics(model, q, v, 0 * u))
    B = ls.actuation_matrix(model, q)
    np.testing.assert_allclose(B[:, 1:] @ u[1:], pushed, rtol=0, atol=1e-11 * np.abs(pushed).max())
    rows = ls.actuation_matrix(model, np.stack([q, model.neutral()]))
    np.testing.assert_allclose(rows[0], B, rtol=1e-13, atol=1e-15)
    with pytest.raises(ls.ModelError, match=r"input 'x': .* \(got a Force\)"):
        ls.actuation_coordinates(floating(linear).build(), floating(linear).build().neutral())


def test_nonlinear_forces_have_none():
    """Where an actuation matrix is needed, a force that has none is named."""
    model = elastic().build()
    with pytest.raises(ls.ModelError, match=r"force 'thruster': must be linear in its inputs") as caught:
        ls.actuation_matrix(model, model.neutral())
    assert "\n" not in str(caught.value)
    assert model.nonlinear_input == "force 'thruster'" and elastic(linear).build().nonlinear_input is None


def test_wrenches_in_rods():
    """The wrench at the base of a rod has the forces on it; inside, a force all along the rod is refused."""
    model = floating_arm().build()
    q, v, u = state(model)
    a = ls.forward_dynamics(model, q, v, u)
    python = ls.Robot("arm")
    python.add_link("rod", model.description.links["rod"].body)
    python = in_python(lambda t: u)(python, ("rod", "rod")).build()
    found, expected = (ls.internal_wrench(m, q, v, a, w, "rod", 0.0).total for m, w in ((model, u), (python, None)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    with pytest.raises(ls.ModelError, match="force 'thruster': acts all along the rod"):
        ls.internal_wrench(model, q, v, a, u, "rod", 0.5)


def test_inputs_by_name():
    """Limits and named states know the inputs; copies of a robot get their own, and removed forces take theirs."""
    robot = floating()
    robot.limit_input("coil a", -2.0, 3.0)
    robot.add_state("on", inputs={"coil b": 0.5})
    model = robot.build()
    low, high = model.input_limits
    assert (low[2], high[2]) == (-2.0, 3.0) and model.state("on")[2].tolist() == [0.0, 0.0, 0.0, 0.5]
    both = ls.Robot("pair")
    both.attach(robot, None, prefix="a ")
    both.attach(robot, None, prefix="b ")
    names = both.build().inputs.names
    assert names == ("a tendon", "b tendon", *(f"{x} {y}" for x in "ab" for y in ("thrust", "coil a", "coil b")))
    robot.remove_link("rod", with_children=True)
    assert robot.inputs_of_forces().keys() == {"thrust"} and not robot.input_limits
    assert robot.build().nu == 1


def test_what_is_refused():
    """One line that names the force and says why: Python functions, names, devices."""
    robot = floating(lambda robot, tree: robot)
    robot.add_force("push", "stone", lambda t, g, eta, u: np.zeros(6), inputs="a")
    with pytest.raises(
        ls.ModelError,
        match=r"force 'push': function: must be of \(t, g, eta\), and by name of q, v, J, J_dot \(got 'u'\)",
    ):
        robot.build()
    for inputs, words in ((["tendon"], "name of an actuator"), (["a", "a"], "must differ"), ([3], "inputs")):
        robot = floating(lambda robot, tree: robot)
        robot.add_force("push", "stone", ls.TracedFunction(thruster), inputs=inputs)
        with pytest.raises(ls.ModelError, match=words):
            robot.build()
    robot = floating(lambda robot, tree: robot)
    robot.add_force("push", "stone", ls.TracedFunction(lambda t, g, eta: eta), inputs="a")
    with pytest.raises(ls.ModelError, match="force 'push': function: must be a function of its arguments alone"):
        robot.build()
    other = floating()
    with pytest.raises(ls.ModelError, match="input of forces: must not be taken already"):
        attach_force_alone(other)


def attach_force_alone(robot):
    """Attach a robot whose force has an input of a taken name."""
    more = ls.Robot("more")
    more.add_link("ball", ls.RigidBody.sphere(0.05, density=1000.0), ls.JointFree())
    more.add_force("another", "ball", ls.TracedFunction(thruster), inputs="thrust")
    robot.attach(more, None)


def test_control_at_an_equilibrium():
    """A regulator about an equilibrium stabilises it, and inputs that reach a place come back from statics: both use
    the derivative by the inputs. Steps of a Stepper are those of `simulate`."""
    model = floating_arm().build()
    q, v, u = state(model)
    rest = ls.solve_statics(model, u)
    made = ls.lqr(model, rest.q, u, state=np.eye(2 * model.nv), inputs=1e-3 * np.eye(3))
    found, K = ls.linearize(model, rest.q, u), made.gain
    assert np.linalg.eigvals(found.A - found.B @ K).real.max() < 0.0
    with pytest.raises(ls.ModelError, match="must be an equilibrium under u"):
        ls.lqr(model, rest.q, -u, state=np.eye(2 * model.nv), inputs=np.eye(3))
    place = ls.frame_pose(model, rest.q, "rod")[:3, 3]
    back = ls.inverse_kinematics(model, {"rod": place}, by="statics", u0=0.8 * u, limits=([-2.0] * 3, [2.0] * 3))
    reached = ls.solve_statics(model, back.u, rest.q).q
    np.testing.assert_allclose(ls.frame_pose(model, reached, "rod")[:3, 3], place, rtol=0, atol=1e-7)
    stepper = ls.Stepper(model, 1e-3, q0=q, v0=v, u=u)
    for _ in range(5):
        stepper.step(u)
    np.testing.assert_array_equal(stepper.state.q, ls.simulate(model, 5e-3, q, v, u=u, method="sdirk", dt=1e-3).q[-1])
