"""The scheme of order 4, and adaptive steps that a kernel takes by itself."""

import numpy as np
import pytest
from dynamics.custom_joints import in_python, universal
from simulation.test_loops import SILICONE, at_rest, driven, shift

import lissom as ls
from lissom.dynamics.configuration import difference
from lissom.stepping import schemes
from lissom.stepping.driver import Motions

SOFT = ls.Material(young=1e5, poisson=0.5, density=1000, viscosity=100.0)  # so soft that steps resolve all of it
A = schemes._ESDIRK_A
ENDS = np.array([0.0, 1 / 2, 83 / 250, 31 / 50, 17 / 20, 1.0])


def order_conditions(b):
    """Residuals of the conditions of orders 1 to 4 on the weights b."""
    c = A.sum(axis=1)
    found = b.sum() - 1, b @ c - 1 / 2, b @ c**2 - 1 / 3, b @ A @ c - 1 / 6
    return np.array(
        [*found, b @ c**3 - 1 / 4, b @ (c * (A @ c)) - 1 / 8, b @ A @ c**2 - 1 / 12, b @ A @ A @ c - 1 / 24]
    )


def test_weights():
    """Order 4, and order 3 alone of the embedded scheme; stages of order 2 that end where they should."""
    np.testing.assert_allclose(A.sum(axis=1), ENDS, rtol=0, atol=1e-15)
    np.testing.assert_allclose(A @ ENDS, ENDS**2 / 2, rtol=0, atol=1e-15)
    assert abs(order_conditions(A[-1])).max() < 1e-15
    other = order_conditions(np.array(schemes._EMBEDDED))
    assert abs(other[:4]).max() < 1e-15 < 1e-4 < abs(other[4:]).max()


def tops(joint):
    """Two bodies that turn in space."""
    robot = ls.Robot("tops")
    robot.add_link("a", ls.RigidBody.box(0.3, 0.1, 0.05, density=1e3), joint)
    robot.add_link("b", ls.RigidBody.box(0.2, 0.1, 0.05, density=1e3), ls.JointSpherical(), "a", placement=shift(0.2))
    return robot.build()


def arm(material=SILICONE):
    """A damped rod on a hinge, pulled by a tendon."""
    robot = ls.Robot("arm")
    rod = ls.Rod(0.2, ls.SectionCircle(0.01), ls.BasisLegendre(torsion=0, bending_y=2, bending_z=2), material)
    robot.add_link("rod", rod, ls.JointRevolute((0, 1, 0)))
    robot.add_tendon("t", "rod", (0.0, 0.005))
    return robot.build()


def pulled(t):
    return np.array([2.0 + np.sin(9.0 * t)])


@pytest.mark.parametrize(
    ("model", "end", "steps"),
    [(tops(ls.JointSpherical()), 0.5, 10), (tops(ls.JointFree()), 0.5, 10), (arm(SOFT), 0.2, 40)],
    ids=["tip", "free", "rod"],
)
def test_order(model, end, steps):
    """Fourth order in q and v, where coordinates add and where poses are stored."""
    v0 = 2.0 * np.random.default_rng(0).normal(size=model.nv) if model.nq > model.nv else None
    u = pulled if model.nu else None
    times = np.linspace(end / 5, end, 5)
    exact = ls.simulate(model, end, None, v0, u, method="radau", rtol=1e-12, atol=1e-13, t_eval=times)
    errors = []
    for n in (steps, 2 * steps, 4 * steps):
        motion = ls.simulate(model, end, None, v0, u, method="esdirk", dt=end / n)
        assert motion.statistics.steps == n
        q, v = (x[n // 5 :: n // 5] for x in (motion.q, motion.v))
        off = difference(model, exact.q, q), exact.v - v
        errors.append([np.abs(x / model.dofs.scale).max() for x in off])
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert (orders > 3.6).all(), (errors, orders)


@pytest.fixture(scope="module")
def rod():
    """The model of `arm`, and its inputs as samples."""
    t = np.linspace(0.0, 1.0, 21)
    return arm(), ls.Samples(t, np.array([pulled(x) for x in t]), smooth=True)


@pytest.mark.parametrize("method", ["esdirk", "generalized_alpha", "bathe"])
def test_asked_times_change_no_step(rod, method):
    """The same steps, and between them states as accurate as the steps are."""
    model, u = rod
    options = {"u": u, "method": method, "rtol": 1e-5, "atol": 1e-7}
    steps = ls.simulate(model, 1.0, **options)
    some = ls.simulate(model, 1.0, **options, t_eval=steps.t[3::5])
    for name in ("q", "v", "u"):
        assert np.array_equal(getattr(some, name), getattr(steps, name)[3::5]), name
    middle = 0.5 * (steps.t[1:] + steps.t[:-1])
    between = ls.simulate(model, 1.0, **options, t_eval=middle)
    assert between.statistics.steps == steps.statistics.steps == some.statistics.steps
    exact = ls.simulate(model, 1.0, u=u, rtol=1e-10, atol=1e-12, t_eval=np.sort([*steps.t, *middle]))
    at_steps, within = (np.abs(exact.q[k::2] - x.q) for k, x in ((0, steps), (1, between)))
    assert within.max() < 1.2 * at_steps.max()


def test_the_kernel_and_python_take_the_same_steps(rod, monkeypatch):
    """In the kernel by polynomials, planned ahead by a function of time, and one by one through Python."""
    model, u = rod
    options, times = {"method": "esdirk", "rtol": 1e-4, "atol": 1e-6}, np.linspace(0.0, 1.0, 21)

    def both(u):
        return ls.simulate(model, 1.0, u=u, **options), ls.simulate(model, 1.0, u=u, t_eval=times, **options).q

    inside, q = both(u)
    planned = both(lambda t: u(t))
    monkeypatch.setattr(Motions, "can_run", staticmethod(lambda *_: False))
    outside = both(u)
    for other, at_times in (planned, outside):
        assert other.statistics.steps == inside.statistics.steps > 20
        np.testing.assert_allclose(other.t, inside.t, rtol=1e-3)
        np.testing.assert_allclose(at_times, q, rtol=0, atol=1e-4)


@pytest.mark.parametrize("smooth", [False, True])
def test_inputs_as_polynomials(smooth):
    """The same numbers as the samples', before, between and behind them."""
    rng = np.random.default_rng(0)
    u = ls.Samples([0.1, 0.3, 0.35, 1.0], rng.normal(size=(4, 3)), smooth=smooth)
    knots, pieces = u.polynomials()
    times = np.append(rng.uniform(-0.5, 1.5, 50), u.t)
    k = np.searchsorted(knots, times, side="right") - 1
    s = np.where(k > 0, times - knots[k], 0.0)
    rows = pieces[k].reshape(len(times), 4, 3)
    value = sum(rows[:, e] * s[:, None] ** (3 - e) for e in range(4))
    np.testing.assert_allclose(value, u.over(times), rtol=0, atol=1e-14)


def test_what_is_not_resolved_is_gone():
    """One long step leaves nothing of a vibration."""
    robot = ls.Robot("spring")
    robot.add_link("mass", ls.RigidBody(1.0), ls.JointPrismatic((1, 0, 0), stiffness=1e10))
    motion = ls.simulate(robot.build(), 1.0, q0=[1.0], method="esdirk", dt=1.0, rtol=1e-9, atol=1e-12)
    assert abs(motion.q[-1, 0]) < 1e-6


def test_loops_between_steps():
    """Loops stay closed at all asked times, and the motion is that of another method."""
    model = driven().build()
    start, times = at_rest(model, np.zeros(1)).q, np.linspace(0.0, 0.4, 9)
    options = {"q0": start, "u": [1.0], "t_eval": times}
    motion = ls.simulate(model, 0.4, **options, method="esdirk", rtol=1e-6, atol=1e-9)
    other = ls.simulate(model, 0.4, **options, method="radau", rtol=1e-9, atol=1e-11)
    assert np.abs(ls.loop_residual(model, motion.q)).max() < 1e-10
    assert np.abs(difference(model, motion.q, other.q) / model.dofs.scale).max() < 2e-5


def test_auto():
    """The remark of the result names the method chosen and the reason."""
    model = arm()
    motion = ls.simulate(model, 0.1, u=[1.0], method="auto")
    assert motion.statistics.method == "esdirk" and motion.statistics.remark.startswith("auto: order 4")
    led = ls.simulate(model, 0.1, method="auto", controller=lambda t, q, v: [1.0])
    assert led.statistics.method == "bdf" and "Python" in led.statistics.remark
    sampled = ls.simulate(
        model, 0.1, method="auto", controller=lambda t, q, v: [1.0 + 0.1 * np.tanh(v[0])], period=0.02
    )
    assert sampled.statistics.method == "esdirk"


@pytest.mark.parametrize("viscosity, method", [(0.0, "esdirk"), (3e3, "bdf")])
def test_auto_for_joints_of_python(viscosity, method):
    """A free tree with a joint of Python that nothing damps keeps its energy by default to rtol, by a method that is
    stable for vibrations; where all is damped, bdf takes the fewest evaluations."""
    robot = ls.Robot("tree", gravity=(0, 0, 0))
    robot.add_link("base", ls.RigidBody.box(0.2, 0.1, 0.1, density=300.0), ls.JointFree())
    material = ls.Material(young=1e6, poisson=0.5, density=1000.0, viscosity=viscosity)
    rod = ls.Rod(0.3, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=1, bending_z=1), material)
    robot.add_link("arm", rod, parent="base")
    robot.add_link(
        "hand", ls.RigidBody.box(0.1, 0.05, 0.05, density=800.0), ls.JointCustom(in_python(universal), 2), "arm"
    )
    model = robot.build()
    v0 = 2.0 * np.random.default_rng(1).normal(size=model.nv) * model.dofs.scale
    motion = ls.simulate(model, 0.02, v0=v0)
    assert motion.statistics.method == method and motion.statistics.remark.startswith("auto:")
    if viscosity == 0.0:
        energy = ls.energy(model, motion.q[[0, -1]], motion.v[[0, -1]]).total
        assert abs(energy[1] - energy[0]) < 1e-6 * energy[0]


def test_a_step_that_is_not_to_be_found(rod):
    """The error carries the motion reached."""
    model, _ = rod

    def jump(t):
        return np.array([1.0 if t < 0.05 else 1e9])

    with pytest.raises(ls.ConvergenceError, match=r"esdirk stopped at t=0\.0[45]\d* s") as error:
        ls.simulate(model, 0.1, u=jump, method="esdirk")
    assert error.value.args and 0.0 < error.value.partial.t[-1] < 0.0501
