"""Trajectory and Samples: files that come back exactly, files that are none, and samples in between."""

import dataclasses

import numpy as np
import pytest
from dynamics.small_robots import describe_pendulum, describe_rod, mixed, pendulum, rod, state

import lissom as ls

ARRAYS = ("t", "q", "v", "a", "u", "multipliers", "z")


def motion_of(model, lead=()):
    """A short motion with awkward numbers."""
    q, v, _, u = state(model, lead)
    times = np.array([0.0, 1e-3, np.pi * 1e-3, 0.01])
    u = u[(0,) * len(lead)] if lead else u
    q = ls.integrate(model, model.neutral(), 0.1 * ls.difference(model, model.neutral(), q))  # moderate strains
    return ls.simulate(model, 0.01, q, 0.1 * v, u, t_eval=times, method="bdf")


def same(one, other):
    """Whether two trajectories agree to the last bit, statistics included."""
    assert one.statistics == other.statistics
    for name in ARRAYS:
        x, y = getattr(one, name), getattr(other, name)
        assert x.shape == y.shape, name
        assert x.dtype == y.dtype == np.float64, name
        assert np.array_equal(x, y), name
    return True


def bare():
    """A pendulum without a motor: no inputs."""
    robot = describe_pendulum()
    robot.actuators.clear()
    return robot.build()


@pytest.mark.parametrize("kind", ["npz", "csv"])
@pytest.mark.parametrize("build", [rod, pendulum, mixed, bare])
@pytest.mark.parametrize("as_text", [True, False])
def test_files_come_back_exactly(tmp_path, kind, build, as_text):
    """npz and csv keep every bit of one motion, with and without inputs, by a text path or a Path."""
    motion = motion_of(build())
    path = tmp_path / f"motion.{kind}"
    motion.save(str(path) if as_text else path)
    assert same(motion, ls.Trajectory.load(str(path) if as_text else path))


@pytest.mark.parametrize("kind", ["npz", "csv"])
def test_the_state_of_a_controller_comes_back(tmp_path, kind):
    """z is a part of the files, under names of its own."""
    law = ls.Controller(lambda t, q, v, z: z[:1], lambda t, q, v, z: [q[0], z[0] / 3], [0.1, np.pi])
    motion = ls.simulate(pendulum(), 0.05, [0.3], controller=law)
    motion.save(tmp_path / f"motion.{kind}")
    assert motion.z.shape == (len(motion.t), 2) and np.ptp(motion.z, axis=0).all()
    assert same(motion, ls.Trajectory.load(tmp_path / f"motion.{kind}"))
    assert kind == "npz" or (tmp_path / "motion.csv").read_text().splitlines()[0].endswith("z0,z1")


def test_one_row(tmp_path):
    """A motion of a single time comes back, too."""
    motion = motion_of(rod())
    first = dataclasses.replace(motion, **{name: getattr(motion, name)[:1] for name in ARRAYS})
    for name in ("one.npz", "one.csv"):
        first.save(tmp_path / name)
        assert same(first, ls.Trajectory.load(tmp_path / name))


def test_extreme_numbers(tmp_path):
    """The smallest, the largest, negative zero and 17 digits survive a table."""
    motion = motion_of(pendulum())
    q = np.array([[5e-324], [1.7976931348623157e308], [-0.0], [0.1 + 0.2]])
    odd = dataclasses.replace(motion, q=q)
    for name in ("odd.csv", "odd.npz"):
        odd.save(tmp_path / name)
        back = ls.Trajectory.load(tmp_path / name)
        assert same(odd, back)
        assert np.signbit(back.q[2, 0])


def test_a_table_is_readable(tmp_path):
    """One header row, one row a time, commas, as a spreadsheet or NumPy reads them."""
    motion = motion_of(rod())
    motion.save(tmp_path / "motion.csv")
    lines = (tmp_path / "motion.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "t,q0,q1,q2,v0,v1,v2,a0,a1,a2,u0"
    assert lines[-1].startswith("# ")
    table = np.genfromtxt(tmp_path / "motion.csv", delimiter=",", names=True)
    assert np.array_equal(table["q1"], motion.q[:, 1])


def test_batches(tmp_path):
    """npz holds a batch; a table holds one motion and says so."""
    motion = motion_of(pendulum(), (2,))
    motion.save(tmp_path / "batch.npz")
    assert same(motion, ls.Trajectory.load(tmp_path / "batch.npz"))
    with pytest.raises(ls.ShapeError, match=r"trajectory: a table holds one motion, got a batch of shape \(2,\)"):
        motion.save(tmp_path / "batch.csv")
    assert not (tmp_path / "batch.csv").exists()


@pytest.mark.parametrize("name", ["motion.txt", "motion", "motion.npz.gz"])
def test_other_endings(tmp_path, name):
    """Only .npz and .csv are written and read."""
    with pytest.raises(ls.ShapeError, match=r"trajectory file: must end in \.npz or \.csv"):
        motion_of(pendulum()).save(tmp_path / name)
    (tmp_path / name).write_text("")
    with pytest.raises(ls.ShapeError, match=r"trajectory file: must end in \.npz or \.csv"):
        ls.Trajectory.load(tmp_path / name)


def cut(data):
    """The first half of a file."""
    return data[: len(data) // 2]


BAD = {
    "empty.csv": lambda data: b"",
    "cut.csv": cut,
    "words.csv": lambda data: b"t,q0\n1,two\n# {}\n",
    "header only.csv": lambda data: data.split(b"\n")[0] + b"\n",
    "no statistics.csv": lambda data: b"\n".join(data.split(b"\n")[:-2]) + b"\n",
    "no times.csv": lambda data: data.replace(b"t,", b"x,", 1),
    "a column less.csv": lambda data: data.replace(b",u0", b"", 1),
    "binary.csv": lambda data: bytes(range(256)) * 4,
    "empty.npz": lambda data: b"",
    "cut.npz": cut,
    "text.npz": lambda data: b"not a zip file",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path, name):
    """A file that is not a trajectory raises a ShapeError that names it."""
    good = tmp_path / f"good{name[-4:]}"
    motion_of(pendulum()).save(good)
    path = tmp_path / name
    path.write_bytes(BAD[name](good.read_bytes()))
    with pytest.raises(ls.ShapeError, match="is not a trajectory file") as caught:
        ls.Trajectory.load(path)
    assert name in str(caught.value)


def test_archives_with_wrong_contents(tmp_path):
    """An npz without a field, or with sizes that do not fit together, is not a trajectory."""
    motion = motion_of(pendulum())
    path = tmp_path / "motion.npz"
    motion.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    for wrong in ({"q": None}, {"statistics": np.array("{}")}, {"q": arrays["q"][:2]}, {"v": np.array(["a", "b"])}):
        kept = {name: x for name, x in (arrays | wrong).items() if x is not None}
        np.savez(tmp_path / "wrong.npz", **kept)
        with pytest.raises(ls.ShapeError, match="is not a trajectory file"):
            ls.Trajectory.load(tmp_path / "wrong.npz")


def test_a_file_that_is_not_there(tmp_path):
    """A missing file is the system's own FileNotFoundError."""
    for name in ("none.npz", "none.csv"):
        with pytest.raises(FileNotFoundError):
            ls.Trajectory.load(tmp_path / name)


def test_samples_in_between_and_beyond():
    """Linear between samples, held before the first and after the last; exact at them."""
    u = ls.Samples([1.0, 2.0, 4.0], [[0.0, 1.0], [2.0, 0.0], [-2.0, 5.0]])
    for t, expected in ((0.0, [0, 1]), (1.0, [0, 1]), (1.25, [0.5, 0.75]), (2.0, [2, 0]), (3.0, [0, 2.5]),
                        (4.0, [-2, 5]), (9.0, [-2, 5])):  # fmt: skip
        np.testing.assert_allclose(u(t), expected, atol=1e-15)
    once = ls.Samples([0.5], [[3.0]])
    assert once(0.0) == once(0.5) == once(7.0) == [3.0]


@pytest.mark.parametrize(
    "t, u, message",
    [
        ([0.0, 0.0], [[1.0], [2.0]], "t must rise strictly"),
        ([1.0, 0.0], [[1.0], [2.0]], r"t must rise strictly \(got 0 s after 1 s, row 1\)"),
        ([0.0, np.nan], [[1.0], [2.0]], "must be finite"),
        ([0.0], [[np.inf]], "must be finite"),
        ([0.0, 1.0], [[1.0]], r"expected t of shape \(n,\) and u of shape \(n, nu\), got \(2,\) and \(1, 1\)"),
        ([0.0, 1.0], [1.0, 2.0], r"got \(2,\) and \(2,\)"),
        ([], np.zeros((0, 1)), r"got \(0,\) and \(0, 1\)"),
        (0.0, [[1.0]], r"got \(\) and"),
        ("now", [[1.0]], "expected"),
        ([0.0], [["much"]], "expected"),
    ],
)
def test_wrong_samples(t, u, message):
    """Samples that are none are a ShapeError when they are made."""
    with pytest.raises(ls.ShapeError, match=f"^samples: .*{message}"):
        ls.Samples(t, u)


def test_samples_keep_their_own_numbers():
    """Arrays that samples were made of may change afterwards, and the returned arrays may be written to."""
    t, u = np.array([0.0, 1.0]), np.array([[1.0], [2.0]])
    samples = ls.Samples(t, u)
    t[:], u[:] = (5.0, 6.0), 9.0
    assert samples(0.5)[0] == 1.5
    samples(0.0)[:] = 7.0
    samples(1.0)[:] = 7.0
    assert samples(0.0)[0] == 1.0


def driven(samples):
    """A damped rod pulled by a swinging tendon, with a load of time, at `samples` times."""
    robot = describe_rod()
    robot.add_point_load("load", "rod", force=lambda t: (0.0, 0.0, 0.2 * np.sin(20 * t)))
    model = robot.build()
    times = np.linspace(0.0, 0.2, samples)
    motion = ls.simulate(
        model, 0.2, u=lambda t: [1.0 + np.sin(15 * t)], t_eval=times, method="bdf", rtol=1e-9, atol=1e-11
    )
    return ls.energy_balance(model, motion)


def test_energy_balance_of_a_driven_damped_rod():
    """What goes in is kept or dissipated: the residual is small, shrinks by at least the fourth order of the times, and
    is as large as its estimate from every second time."""
    residuals = []
    for n in (11, 21, 41):
        b = driven(n)
        assert all(getattr(b, name).shape == (n,) for name in ("kinetic", "gravitational", "elastic", "work", "error"))
        assert b.work[0] == b.dissipated[0] == b.error[0] == 0.0
        assert (np.diff(b.dissipated) > -1e-12).all()
        assert b.dissipated[-1] > 0.0
        assert 0.5 * b.residual < b.quadrature < 5.0 * b.residual
        residuals.append(b.residual)
    assert residuals[1] < 1e-6
    assert residuals[2] < residuals[1] / 14 < residuals[0] / 14**2


def test_energy_balance_between_distant_times():
    """Where states between the times would be impossible, Simpson's rule at the times counts, and the estimate tells
    that the times are too far apart."""
    model = describe_rod().build()
    motion = ls.simulate(model, 0.5, u=[5.0], t_eval=np.linspace(0.0, 0.5, 6), rtol=1e-8)
    b = ls.energy_balance(model, motion)
    assert b.quadrature > 0.05 * b.residual > 1e-5


def test_energy_balance_of_little():
    """One or two times, a robot at rest and one without inputs have balances, too."""
    model = bare()
    at_rest = ls.simulate(model, 0.1, t_eval=[0.1], method="bdf")
    assert ls.energy_balance(model, at_rest).residual == 0.0
    swinging = ls.simulate(model, 1.0, [1.0], t_eval=np.linspace(0, 1, 11), method="bdf", rtol=1e-9, atol=1e-11)
    b = ls.energy_balance(model, swinging)
    assert b.residual < 1e-6
    assert not b.work.any() and not b.dissipated.any()


def test_energy_balance_takes_one_motion():
    """A batch is refused by a ShapeError that says so."""
    model = pendulum()
    with pytest.raises(ls.ShapeError, match="trajectory: "):
        ls.energy_balance(model, motion_of(model, (2,)))
