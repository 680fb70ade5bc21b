"""Design values from measured shapes: recovered, with intervals that hold them, in spite of noise and outliers."""

import numpy as np
import pytest

import lissom as ls

PATHS = ["arm.material.young", "lift.offset"]
TRUE = {"arm.material.young": 1e6, "lift.offset": (0.002, 0.011)}
WRONG = {"arm.material.young": 1.7e6, "lift.offset": (0.0, 0.008)}
BOUNDS = {"arm.material.young": (1e5, 1e8)}
PLACES = [("arm", s) for s in (0.4, 0.7, 1.0)]
U = np.linspace(0.0, 12.0, 5)[:, None]
NOISE = 5e-4


@pytest.fixture(scope="module")
def arm():
    """A soft arm that gravity bends and one tendon pulls: the model, and where its markers truly are."""
    robot = ls.Robot("arm")
    basis = ls.BasisLegendre(bending_y=1, bending_z=1)
    robot.add_link("arm", ls.Rod(0.3, ls.SectionCircle(0.02), basis, ls.Material(young=1e6, density=1000.0)))
    robot.add_tendon("lift", "arm", (0.0, 0.01))
    model = robot.build()
    truth = model.with_(TRUE)
    q = ls.solve_statics(truth, U).q
    return model, {place: ls.frame_pose(truth, q, *place)[:, :3, 3] for place in PLACES}


def noisy(markers, seed, size=NOISE):
    """Markers with independent noise."""
    rng = np.random.default_rng(seed)
    return {place: p + size * rng.normal(size=p.shape) for place, p in markers.items()}


def numbers(values):
    """Numbers of values in one row."""
    return np.concatenate([np.ravel(values[path]) for path in PATHS])


def test_values_come_back_from_exact_shapes(arm):
    """Without noise the values are found to the accuracy of equilibria, some measurements missing."""
    model, markers = arm
    given = {place: p.copy() for place, p in markers.items()}
    given["arm", 0.4][2] = np.nan
    found = ls.fit(model.with_(WRONG), PATHS, U, given, bounds=BOUNDS)
    np.testing.assert_allclose(numbers(found.values), numbers(TRUE), rtol=1e-7)
    assert found.noise < 1e-9 and np.isnan(found.residuals[2, 0]).all() and found.residuals.shape == (5, 3, 3)
    np.testing.assert_allclose(found.model.description.described_values()["arm.material.young"], 1e6, rtol=1e-7)


def test_derivatives_count_what_moves_points_themselves(arm):
    """A length, which moves points at the same q too, comes back as well."""
    model, markers = arm
    found = ls.fit(model.with_({**TRUE, "arm.length": 0.33}), ["arm.length"], U, markers)
    assert found.values["arm.length"] == pytest.approx(0.3, rel=1e-8) and found.iterations < 10


def test_outliers_do_little_harm(arm):
    """With one marker off by 5 cm the loss that grows with sizes keeps the values; squares do not. Fits begin at the
    truth, which takes a part of the time."""
    model, markers = arm
    given = noisy(markers, 3)
    given["arm", 1.0][3] += 0.05
    robust = ls.fit(model.with_(TRUE), PATHS, U, given, bounds=BOUNDS, outlier=2 * NOISE)
    plain = ls.fit(model.with_(TRUE), PATHS, U, given, bounds=BOUNDS)
    off = [abs(one.values["arm.material.young"] / 1e6 - 1.0) for one in (robust, plain)]
    offsets = [np.abs(one.values["lift.offset"] - TRUE["lift.offset"]).max() for one in (robust, plain)]
    assert off[0] < 0.02 and offsets[0] < 5e-4 and offsets[1] > 3.0 * offsets[0]
    assert robust.noise < 3 * NOISE < plain.noise / 3


def coverage(arm, trials):
    """In how many trials intervals hold each value."""
    model, markers = arm
    held = np.zeros(3)
    for seed in range(trials):
        found = ls.fit(model.with_(WRONG), PATHS, U, noisy(markers, 100 + seed), bounds=BOUNDS)
        low, high = numbers(found.low), numbers(found.high)
        held += (low <= numbers(TRUE)) & (numbers(TRUE) <= high)
    return held


def test_intervals_are_those_of_the_jacobian(arm):
    """The covariance is s² (JᵀJ)⁻¹ with J by differences of newly computed equilibria, and intervals are Student's."""
    from scipy.stats import t as student  # slow to import

    model, markers = arm
    found = ls.fit(model.with_(TRUE), PATHS, U, noisy(markers, 4), bounds=BOUNDS)
    x = numbers(found.values)

    def positions(y):
        one = model.with_({PATHS[0]: y[0], PATHS[1]: tuple(y[1:])})
        q = ls.solve_statics(one, U, tolerance=1e-13).q
        return np.concatenate([ls.frame_pose(one, q, *place)[:, :3, 3].ravel() for place in PLACES])

    steps = np.diag([1e3, 1e-5, 1e-5])
    J = np.stack([(positions(x + h) - positions(x - h)) / (2 * h.max()) for h in steps], axis=1)
    s = np.sqrt(np.sum(found.residuals**2) / (45 - 3))
    assert found.noise == pytest.approx(s, rel=1e-12) and s == pytest.approx(NOISE, rel=0.3)
    units = np.array([1e6, 1e-2, 1e-2])
    wanted = s**2 * np.linalg.inv((J * units).T @ (J * units))
    got = found.covariance / np.outer(units, units)
    assert np.abs(got - wanted).max() < 1e-5 * np.abs(wanted).max()
    reach = student.ppf(0.975, 42) * np.sqrt(np.diag(found.covariance))
    np.testing.assert_allclose(numbers(found.high) - x, reach, rtol=1e-9)
    np.testing.assert_allclose(x - numbers(found.low), reach, rtol=1e-9)


@pytest.mark.slow  # a hundred fits
def test_intervals_hold_the_values_in_95_of_100(arm):
    """Of 100 noisy trials 95 hold each value, but for what chance allows: 88 to 100."""
    held = coverage(arm, 100)
    assert (held >= 88).all()


def test_refusals(arm):
    """A wrong argument is named, with its value."""
    model, markers = arm
    with pytest.raises(ls.ModelError, match="determine all values"):  # from values without any residual
        ls.fit(model.with_(TRUE), ["arm.material.young", "arm.material.viscosity"], U, markers)
    with pytest.raises(ls.ModelError, match="must be a number or an array of numbers"):
        ls.fit(model, ["arm.material"], U, markers)
    with pytest.raises(ls.ModelError, match="bounds: must contain the values of the model"):
        ls.fit(model, PATHS, U, markers, bounds={"arm.material.young": (2e6, 3e6)})
    with pytest.raises(ls.ShapeError, match="measured > 'arm': expected"):
        ls.fit(model, PATHS, U, {"arm": [0.0, 0.0, 0.0]})
    with pytest.raises(ls.ShapeError, match="u: expected shape"):
        ls.fit(model, PATHS, [1.0], markers)
    with pytest.raises(ls.ModelError, match="more numbers than the 3 values"):
        ls.fit(model, PATHS, U[:1], {"arm": markers["arm", 1.0][:1]})


def test_loads_are_fitted(arm):
    """The force and the moment of a load at the tip follow from three shapes at rest, and its force from a motion."""
    robot = arm[0].description.with_({})
    robot.add_point_load("push", "arm", force=(0.0, 0.1, 0.2), moment=(0.0, 0.0, 0.0))
    model = robot.build()
    truth = model.with_({"push.force": (0.02, 0.15, 0.1), "push.moment": (0.0, 0.002, -0.003)})
    q = ls.solve_statics(truth, U).q
    markers = {("arm", s): ls.frame_pose(truth, q, "arm", s)[:, :3, 3] for s in (0.3, 0.6, 1.0)}
    found = ls.fit(model, ["push.force", "push.moment[1]", "push.moment[2]"], U, markers)
    np.testing.assert_allclose(found.values["push.force"], (0.02, 0.15, 0.1), atol=1e-6)
    np.testing.assert_allclose([found.values[f"push.moment[{k}]"] for k in (1, 2)], (0.002, -0.003), atol=1e-7)
    truth, u = model.with_({"push.force": (0.02, 0.15, 0.1)}), np.zeros((40, model.nu))
    motion = ls.rollout(truth, truth.neutral(), None, u, dt=0.005)
    markers = {"arm": ls.frame_pose(truth, motion.q, "arm")[:, :3, 3]}
    found = ls.fit(model, ["push.force"], u, markers, dt=0.005)
    np.testing.assert_allclose(found.values["push.force"], (0.02, 0.15, 0.1), atol=1e-6)
