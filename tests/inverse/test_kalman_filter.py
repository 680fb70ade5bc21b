"""The extended Kalman filter: the textbook's where the robot is linear, consistent where it is not, on the manifold."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.special import chdtri
from simulation.test_loops import driven

import lissom as ls

DT = 0.01


@pytest.fixture(scope="module")
def cart():
    """A mass on a spring that a motor pushes: M a + d v + k q = u."""
    robot = ls.Robot("cart", gravity=(0, 0, 0))
    mass = ls.RigidBody.box(0.1, 0.1, 0.2, density=1000.0)
    robot.add_link("cart", mass, ls.JointPrismatic((1, 0, 0), stiffness=50.0, damping=1.5))
    robot.add_joint_actuator("push", "cart")
    return robot.build()


@pytest.fixture(scope="module")
def arm():
    """A soft arm that hangs from a ball joint, with a tendon: a quaternion and strains."""
    robot = ls.Robot("hanging arm")
    basis = ls.BasisLegendre(bending_y=0, bending_z=0)
    material = ls.Material(young=5e5, density=1000.0, viscosity=5e3)
    joint = ls.JointSpherical(damping=0.02)
    down = ls.lie.se3_exp([0.0, np.pi / 2, 0.0, 0.0, 0.0, 0.0])
    robot.add_link("arm", ls.Rod(0.3, ls.SectionCircle(0.02), basis, material), joint, placement=down)
    robot.add_tendon("pull", "arm", (0.0, 0.012))
    return robot.build()


def test_linear_robots_have_the_filter_of_the_textbook(cart):
    """Estimates and covariances are those of the matrices of the trapezoidal rule, and the gain tends to that of the
    algebraic Riccati equation of SciPy."""
    M, d, k, noise, push = 2.0, 1.5, 50.0, 3e-3, 0.4
    A_c, B_c = np.array([[0.0, 1.0], [-k / M, -d / M]]), np.array([0.0, 1.0 / M])
    left = np.linalg.inv(np.eye(2) - 0.5 * DT * A_c)
    A, B, H = left @ (np.eye(2) + 0.5 * DT * A_c), left @ B_c * DT, np.array([[1.0, 0.0]])
    Q = np.diag([1e-8, 1e-5]) + push**2 * np.outer(B, B)
    sensor = ls.SensorPosition("cart", (noise, 1.0, 1.0))
    kalman = ls.ExtendedKalmanFilter(cart, [sensor], DT, push, np.sqrt([1e-8, 1e-5]), method="newmark")
    rng = np.random.default_rng(1)
    u, y = rng.normal(size=(300, 1)), np.zeros((300, 3))
    y[:, 0] = 0.1 * rng.normal(size=300)
    y[7] = np.nan
    begun = kalman.start([0.05], [-0.2], np.array([[1e-4, 2e-5], [2e-5, 1e-2]]))
    found = kalman.run(begun, u, [y])
    x, P = np.array([0.05, -0.2]), np.array([[1e-4, 2e-5], [2e-5, 1e-2]])
    for step in range(300):
        x, P = A @ x + B * u[step, 0], A @ P @ A.T + Q
        if step != 7:
            K = P @ H.T / (H @ P @ H.T + noise**2)
            x, P = x + K[:, 0] * (y[step, 0] - x[0]), P - K @ H @ P
        np.testing.assert_allclose([found.q[step + 1, 0], found.v[step + 1, 0]], x, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.covariance[step + 1], P, rtol=1e-6)
    assert found.t[-1] == pytest.approx(3.0) and found.q.shape == (301, 1)
    ahead = solve_discrete_are(A.T, H.T, Q, np.array([[noise**2]]))
    last = kalman.predict(ls.Estimate(found.t[-1], found.q[-1], found.v[-1], found.covariance[-1]), u[0])
    np.testing.assert_allclose(last.covariance, ahead, rtol=1e-6)
    new = kalman.innovation(last, [y[0]])
    np.testing.assert_allclose(new.covariance[0, 0], ahead[0, 0] + noise**2, rtol=1e-6)


def sensors():
    """One of each kind."""
    return [ls.SensorPosition("arm", 2e-3), ls.SensorPose("arm", [0.02] * 3 + [3e-3] * 3, s=0.5),
            ls.SensorTwist("arm", [0.05, 0.05, 0.05, np.inf, np.inf, np.inf]),
            ls.SensorStrain("arm", 0.3, 0.1), ls.SensorLength("pull", 5e-4)]  # fmt: skip


def test_slopes_are_differences(arm):
    """What sensors answer to changes of a state is what differences of measurements are, a quaternion among them."""
    rng = np.random.default_rng(2)
    q = ls.integrate(arm, arm.neutral(), 0.5 * rng.normal(size=arm.nv) * arm.dofs.scale)
    v, h = rng.normal(size=arm.nv), 1e-6
    for sensor in sensors():
        by_q, by_v = sensor.slopes(arm, q, v)
        for slope, moved in ((by_q, lambda e: (ls.integrate(arm, q, e), v)), (by_v, lambda e: (q, v + e))):
            for j, e in enumerate(h * np.eye(arm.nv)):
                ahead, behind = (sensor.value(arm, *moved(x)) for x in (e, -e))
                np.testing.assert_allclose(slope[:, j], sensor.apart(ahead, behind) / (2 * h), rtol=0, atol=1e-7)


def followed(arm, filter_of, seed, trials, steps, turn=0.05):
    """Motions with noise, and the estimates of a filter that begins as far off as it knows: truth and estimates."""
    rng, nv = np.random.default_rng(seed), arm.nv
    kalman = filter_of(arm)
    P0 = np.diag(np.concatenate([[turn] * 3, [0.3] * 2, [0.3] * 3, [1.0] * 2]) ** 2)
    guess = np.repeat(arm.neutral()[None], trials, axis=0)
    off = rng.normal(size=(trials, 2 * nv)) @ np.sqrt(P0)
    q, v = ls.integrate(arm, guess, off[:, :nv]), off[:, nv:]
    estimate, squares = kalman.start(guess, np.zeros((trials, nv)), P0), []
    spread = np.sqrt(np.diag(kalman.added))
    for k in range(steps):
        u = np.full((trials, 1), 2.0 + np.sin(0.2 * k))
        noisy = u + kalman.inputs * rng.normal(size=u.shape)
        step = ls.step_derivatives(arm, q, v, noisy, dt=kalman.dt, method=kalman.method)
        added = spread * rng.normal(size=(trials, 2 * nv))
        q, v = ls.integrate(arm, step.q, added[:, :nv]), step.v + added[:, nv:]
        seen = []
        for sensor in kalman.sensors:
            exact, size = sensor.value(arm, q, v), sensor.deviations(arm)
            seen.append(
                sensor.moved(exact, np.where(np.isfinite(size), size, 0.0) * rng.normal(size=(trials, len(size))))
            )
        estimate = kalman.correct(kalman.predict(estimate, u), seen)
        squares.append(kalman.squared_distance(estimate, q, v))
    return (q, v), estimate, np.array(squares)


def partial(arm):
    """A filter with two markers, the strain at one place and the length of the tendon."""
    some = [ls.SensorPosition("arm", 3e-3), ls.SensorPosition("arm", 3e-3, s=0.5), *sensors()[3:]]
    noise = np.concatenate([[1e-3] * 3, [1e-2] * 2, [2e-2] * 3, [5e-2] * 2])
    return ls.ExtendedKalmanFilter(arm, some, DT, 0.2, noise)


def test_errors_are_as_large_as_the_covariance_says(arm):
    """Squared distances of true states are distributed as chi-square: their mean over trials and late steps lies in
    the interval that holds it 999 times of 1000, and the estimate is far better than the guess."""
    trials, steps = 20, 25
    (q, v), estimate, squares = followed(arm, partial, 3, trials, steps)
    late = squares[5::5]  # five steps apart, nearly independent
    count = late.size * 2 * arm.nv
    low, high = chdtri(count, [1.0 - 5e-4, 5e-4]) / late.size
    assert low < late.mean() < high
    error = np.abs(ls.difference(arm, estimate.q, q)[:, 1:3])
    assert np.sqrt((error**2).mean()) < 0.015 < 0.05 and v.shape == estimate.v.shape


def test_a_correction_carries_the_covariance_along(arm):
    """Where a measurement turns a stored pose far, errors are seen from the new estimate: the covariance is that of
    Joseph's form, in differences from there."""
    rng, nv = np.random.default_rng(8), arm.nv
    kalman = ls.ExtendedKalmanFilter(arm, [ls.SensorPose("arm", 0.3), ls.SensorLength("pull", 0.01)], DT)
    spread = 0.1 * rng.normal(size=(2 * nv, 2 * nv)) * np.tile(arm.dofs.scale, 2)[:, None]
    guess = kalman.start(arm.neutral(), np.zeros(nv), spread @ spread.T + 0.1 * np.eye(2 * nv))
    truth = ls.integrate(arm, arm.neutral(), np.array([0.5, -0.7, 0.6, 0.3, 0.2]))
    seen = [sensor.value(arm, truth, np.zeros(nv)) for sensor in kalman.sensors]
    new, found, P = kalman.innovation(guess, seen), kalman.correct(guess, seen), guess.covariance
    R = np.diag(np.concatenate([sensor.deviations(arm) for sensor in kalman.sensors]) ** 2)
    K = P @ new.slopes.T @ np.linalg.inv(new.slopes @ P @ new.slopes.T + R)
    kept = np.eye(2 * nv) - K @ new.slopes
    moved, h = (K @ new.values)[:nv], 1e-5
    assert np.linalg.norm(moved[:3]) > 0.3
    G = np.eye(2 * nv)
    for j, way in enumerate(h * np.eye(nv)):
        ahead, behind = (ls.difference(arm, found.q, ls.integrate(arm, guess.q, moved + x)) for x in (way, -way))
        G[:nv, j] = (ahead - behind) / (2.0 * h)
    wanted = G @ (kept @ P @ kept.T + K @ R @ K.T) @ G.T
    np.testing.assert_allclose(found.covariance, wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())


def test_turned_worlds_have_turned_estimates(arm):
    """A world turned about the vertical turns the estimate and leaves its covariance: it has no preferred axis, as an
    error of the four numbers of a quaternion would."""
    kalman = ls.ExtendedKalmanFilter(arm, [ls.SensorPosition("arm", 2e-3)], DT, 0.1)
    base = ls.frame_pose(arm, arm.neutral(), "arm", 0.0)[:3, :3]
    turn = ls.lie.se3_exp([0.0, 0.0, 2.5, 0.0, 0.0, 0.0])[:3, :3]
    rng = np.random.default_rng(5)
    P0 = np.diag(np.full(10, 0.2) ** 2)
    P0[:3, :3] += 0.05 * np.ones((3, 3))
    q0 = ls.integrate(arm, arm.neutral(), 0.4 * rng.normal(size=5))
    q1 = q0.copy()
    inside = base.T @ turn @ base  # in the axes that the joint stands in
    w = ls.lie.so3_log(inside)
    whole = ls.integrate(arm, arm.neutral(), np.concatenate([w, np.zeros(2)]))[:4]
    a, b = whole, q0[:4]
    q1[:4] = [a[0] * b[0] - a[1:] @ b[1:], *(a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:]))]
    y = rng.normal(size=3) * 0.1 + ls.frame_pose(arm, q0, "arm")[:3, 3]
    one = kalman.correct(kalman.predict(kalman.start(q0, np.ones(5), P0), [1.0]), [y])
    two = kalman.correct(kalman.predict(kalman.start(q1, np.ones(5), P0), [1.0]), [turn @ y])
    np.testing.assert_allclose(two.covariance, one.covariance, rtol=0, atol=1e-8)
    np.testing.assert_allclose(two.v, one.v, rtol=0, atol=1e-7)
    tip = ls.frame_pose(arm, one.q, "arm")[:3, 3]
    np.testing.assert_allclose(ls.frame_pose(arm, two.q, "arm")[:3, 3], turn @ tip, rtol=0, atol=1e-8)


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
def test_loops_stay_closed():
    """Estimates of a robot with a loop lie on it, they have no errors along forbidden directions, and a marker that is
    seen brings the estimate to the truth."""
    robot = driven()
    del robot.motions["spin"]
    model = robot.build()
    rng = np.random.default_rng(4)
    rest = ls.solve_statics(model, [1.0]).q
    kalman = ls.ExtendedKalmanFilter(model, [ls.SensorPosition("plate", 1e-4)], 4e-3, 0.01)
    onto = ls.rollout(model, rest, u=[1.0], dt=4e-3, steps=1, tolerance=1e-9).start_derivatives.onto_q[0]
    P = onto @ np.diag((0.1 * model.dofs.scale) ** 2) @ onto.T
    P0 = np.zeros((2 * model.nv, 2 * model.nv))
    P0[: model.nv, : model.nv] = P
    guess = ls.assemble(model, ls.integrate(model, rest, onto @ (0.1 * rng.normal(size=model.nv) * model.dofs.scale)))
    motion = ls.rollout(model, rest, u=[1.0], dt=4e-3, steps=20, method="bathe", tolerance=1e-9)
    seen = ls.frame_pose(model, motion.q, "plate")[1:, :3, 3]
    found = kalman.run(kalman.start(guess, np.zeros(model.nv), P0), np.ones((20, 1)), [seen])
    gaps = [np.abs(ls.loop_residual(model, q)).max() for q in found.q[1:]]
    assert max(gaps) < 1e-9
    away = np.linalg.norm(ls.frame_pose(model, found.q, "plate")[1:, :3, 3] - seen, axis=-1)
    assert away[-1] < 2e-4 < 0.005 < np.linalg.norm(ls.frame_pose(model, guess, "plate")[:3, 3] - seen[0])


def test_refusals(cart, arm):
    """A wrong argument is named, with its value."""
    with pytest.raises(ls.ModelError, match="a filter needs loads, currents and motions that do not depend on time"):
        ls.ExtendedKalmanFilter(driven().build(), [ls.SensorPosition("plate", 1.0)], 0.01)
    with pytest.raises(ls.ModelError, match="components must be some of"):
        ls.ExtendedKalmanFilter(arm, [ls.SensorStrain("arm", 0.5, 0.1, ("twist",))], 0.01)
    with pytest.raises(ls.ModelError, match=r"noise must be > 0, a number or of shape \(3,\)"):
        ls.ExtendedKalmanFilter(cart, [ls.SensorPosition("cart", 0.0)], 0.01)
    with pytest.raises(ls.ModelError, match="must be of a tendon, one of"):
        ls.ExtendedKalmanFilter(arm, [ls.SensorLength("none", 1.0)], 0.01)
    with pytest.raises(ls.ShapeError, match=r"noise: expected finite values of shape \(2,\)"):
        ls.ExtendedKalmanFilter(cart, [ls.SensorPosition("cart", 1.0)], 0.01, process_noise=[1.0])
    kalman = ls.ExtendedKalmanFilter(cart, [ls.SensorPosition("cart", 1.0)], 0.01)
    begun = kalman.start([0.0], [0.0], [1.0, 1.0])
    with pytest.raises(ls.ShapeError, match=r"measured\[0\]: expected shape \(3,\), got"):
        kalman.correct(begun, [[1.0]])
    with pytest.raises(ls.ShapeError, match="expected 1 arrays"):
        kalman.correct(begun, [])
    with pytest.raises(ls.ShapeError, match="expected 1 arrays, one for each sensor, got 2"):
        kalman.run(begun, np.zeros((2, 1)), [np.zeros((2, 3)), np.zeros((2, 3))])
    with pytest.raises(ls.ModelError, match=r"input_noise: must be a number or of shape \(1,\)"):
        ls.ExtendedKalmanFilter(cart, [ls.SensorPosition("cart", 1.0)], 0.01, input_noise=[0.1, 0.1])
    with pytest.raises(ls.ShapeError, match=r"covariance: expected finite values of shape \(2,\)"):
        kalman.start([0.0], [0.0], [1.0])
