"""Parameters of exported robots: results after setting them are those of the library for a model with these values."""

import ctypes
from ctypes import byref, c_double

import numpy as np
import pytest
from exporting.built import COMPILERS, Library, compiled, finger, machine, needs_compiler, pointer
from exporting.test_exported_motions import Motion

import lissom as ls
from lissom.cli.main import main
from lissom.exporting.adjusting import adjustment_of
from lissom.exporting.parameters import parameters_of
from lissom.exporting.polynomials import Box, NotPolynomial, fitted
from lissom.exporting.recorded import evaluated, states_of
from lissom.lie.arrays import se3_exp

SMALL = ("inverse_dynamics", "mass_matrix", "energy")
# Tables are sums of products of parameters, found to some units of the last of 53 bits.
ROUNDING = 1e-12
PLACED = se3_exp(np.array([0.3, -0.4, 0.2, 0.03, 0.01, 0.02]))
CHANGED = {
    "palm.mass": 0.05,
    "palm.com": (0.01, 0.0, -0.004),
    "palm.joint.stiffness": 0.9,
    "palm.joint.damping": 0.05,
    "finger.material.young": 9e5,
    "finger.material.density": 900.0,
    "finger.section.radius": 0.011,
    "finger.length": 0.13,
    "finger.placement": PLACED,
    "tendon 1.offset": (0.002, -0.006),
    "gravity": (2.0, 0.0, -9.0),
}


class Adjustable(Library):
    """A library with parameters."""

    def get(self, w):
        """Present values of all parameters, by name."""
        self.of("parameter_name").restype = ctypes.c_char_p
        count = next(k for k in range(10**6) if self.of("parameter_name")(k) is None)
        names = [self.of("parameter_name")(k).decode() for k in range(count)]
        values = np.zeros(count)
        assert self.of("parameters")(w, 0, count, pointer(values)) == 0
        return dict(zip(names, values))

    def set(self, w, name, *values):
        """Set parameters from one of a name on; returns the status."""
        given = np.array(values, dtype=np.float64)
        return self.of("set_parameters")(w, self.of("parameter_index")(name.encode()), len(given), pointer(given))

    def set_paths(self, w, changed):
        """Set values by path."""
        for path, value in changed.items():
            rows = np.asarray(value, dtype=np.float64)
            first = "[0][0]" if rows.ndim == 2 else "[0]" if rows.ndim else ""
            assert self.set(w, path + first, *(rows[:3] if rows.ndim == 2 else rows).ravel()) == 0


@pytest.fixture(scope="module")
def model():
    """The model of the finger."""
    return finger().build()


@pytest.fixture(scope="module")
def library(model, tmp_path_factory):
    """The finger with parameters of all kinds, compiled without optimisation."""
    made = ls.export(model, tmp_path_factory.mktemp("adjustable"), SMALL, name="finger", parameters=list(CHANGED))
    assert len(made.parameters) == 7 + 3 + 12 + 2 + 3 and "finger.placement[2][3]" in made.parameters
    return Adjustable(compiled(made.folder, COMPILERS[0], "-O1"), "finger", model)


def _worst(library, w, model, functions=SMALL):
    """The largest relative deviation from a model of the library."""
    worst = 0.0
    for function in functions:
        for state in states_of(model):
            given, wanted = evaluated(model, function, state)
            worst = max(worst, np.abs(library.evaluate(w, function, given) - wanted).max() / np.abs(wanted).max())
    return worst


@needs_compiler
@pytest.mark.parametrize("path", CHANGED)
def test_each_parameter_changes_the_robot_as_with_does(library, model, path):
    """After a parameter is set, results are those of `Model.with_`, and other than those before."""
    w = library.make()
    library.set_paths(w, {path: CHANGED[path]})
    other = model.with_({path: CHANGED[path]})
    assert _worst(library, w, other) <= ROUNDING
    if (
        not path.startswith("tendon") and path != "palm.mass"
    ):  # a tendon without tension, and a mass on the axis of its joint
        assert _worst(library, w, model) > 1e-6


@needs_compiler
def test_all_parameters_at_once_and_the_way_back(library, model):
    """All parameters together give the results of `with_`; with the values of the export, results are those of an
    export without parameters, bit for bit."""
    w, fresh = library.make(), library.make()
    before = library.get(w)
    library.set_paths(w, CHANGED)
    assert _worst(library, w, model.with_(CHANGED)) <= ROUNDING
    found = library.get(w)
    assert found["palm.mass"] == 0.05 and found["finger.placement[1][3]"] == PLACED[1, 3]
    assert library.set(w, "palm.mass", *before.values()) == 0
    for function in SMALL:
        for state in states_of(model):
            given, _ = evaluated(model, function, state)
            assert np.array_equal(library.evaluate(w, function, given), library.evaluate(fresh, function, given))


@needs_compiler
def test_defaults_are_those_of_an_export_without_parameters(library, model, tmp_path):
    """With the values of the export, results equal those of an export without parameters, bit for bit."""
    made = ls.export(model, tmp_path, SMALL, name="finger")
    assert made.parameters == () and "parameter" not in (made.folder / "finger.h").read_text().split("*/", 1)[1][:900]
    plain = Library(compiled(made.folder, COMPILERS[0], "-O1"), "finger", model)
    w, own = library.make(), plain.make()
    for function in SMALL:
        for state in states_of(model):
            given, _ = evaluated(model, function, state)
            assert np.array_equal(library.evaluate(w, function, given), plain.evaluate(own, function, given))


@needs_compiler
def test_names_units_and_ranges(library, model):
    """Parameters have the names of design values, their units, and the ranges that the library allows."""
    library.of("parameter_unit").restype = ctypes.c_char_p

    def told(name):
        k, ends = library.of("parameter_index")(name.encode()), (c_double(), c_double())
        assert library.of("parameter_range")(k, *map(byref, ends)) == 0
        return library.of("parameter_unit")(k).decode(), *(end.value for end in ends)

    assert told("palm.mass") == ("kg", 0.0, np.inf)
    assert told("finger.material.young") == ("Pa", 5e-324, np.inf)
    assert told("gravity[2]") == ("m/s²", -np.inf, np.inf) and told("finger.placement[0][3]")[0] == "m"
    assert library.of("parameter_index")(b"palm.weight") == -1 and library.of("parameter_index")(None) == -1
    assert library.of("parameter_name")(10**6) is None and library.of("parameter_unit")(-1) is None
    (poisson,) = parameters_of(model, ["finger.material.poisson"])
    assert -1.0 < poisson.least < -1.0 + 1e-15 and poisson.most == 0.5


@needs_compiler
def test_values_outside_of_their_range_change_nothing(library):
    """Values that the library refuses, wrong numbers, NaN and null give a code; all values stay as they were."""
    w = library.make()
    before = library.get(w)
    skewed = PLACED.copy()
    skewed[0, 0] += 1e-3
    mirrored = PLACED @ np.diag([1.0, 1.0, -1.0, 1.0])
    values = np.zeros(4)
    for status, text in (
        (library.set(w, "finger.material.young", 0.0), "range"),
        (library.set(w, "palm.mass", -1e-9), "range"),
        (library.set(w, "finger.placement[0][0]", *skewed[:3].ravel()), "no rotation"),
        (library.set(w, "finger.placement[0][0]", *mirrored[:3].ravel()), "no rotation"),
        (library.set(w, "finger.placement[0][0]", 0.5), "no rotation"),
        (library.set(w, "palm.mass", np.nan), "finite"),
        (library.set(w, "palm.weight", 1.0), "no function, name or parameter"),
        (library.of("set_parameters")(w, 0, 10**6, pointer(values)), "no function, name or parameter"),
        (library.of("set_parameters")(w, 1, 2**31 - 1, pointer(values)), "no function, name or parameter"),
        (library.of("parameters")(w, 0, -1, pointer(values)), "no function, name or parameter"),
        (library.of("parameter_range")(-1, byref(c_double()), byref(c_double())), "no function, name or parameter"),
        (library.of("set_parameters")(None, 0, 1, pointer(values)), "null"),
        (library.of("set_parameters")(w, 0, 1, None), "null"),
        (library.of("parameters")(w, 0, 1, None), "null"),
        (library.of("parameter_range")(0, None, None), "null"),
    ):
        assert status != 0 and text in library.text(status)
    assert library.get(w) == before
    nearly = PLACED.copy()
    nearly[:3, :3] *= 1.0 + 1e-8  # rounding of a caller, which is removed as in Python
    assert library.set(w, "finger.placement[0][0]", *nearly[:3].ravel()) == 0
    found = np.array([library.get(w)[f"finger.placement[{i}][{j}]"] for i in range(3) for j in range(3)])
    assert np.abs(found - PLACED[:3, :3].ravel()).max() < 1e-15


@needs_compiler
def test_random_parameters_never_crash(library, model):
    """A thousand calls with random numbers of parameters and values of all sizes give codes; results after them are
    finite, or a code says that they are not."""
    rng, w = np.random.default_rng(2), library.make()
    count = len(library.get(w))
    q = np.zeros(model.nq)
    for _ in range(1000):
        given = rng.choice([0.0, 1.0, -1e300, 1e-300, np.nan, np.inf, 3.0, 0.02], size=count + 8)
        first, size = int(rng.integers(-3, count + 3)), int(rng.integers(-2, 8))
        status = library.of("set_parameters")(w, first, size, pointer(given))
        assert isinstance(status, int) and library.text(status)
        assert np.isfinite(list(library.get(w).values())).all()
        found = library.evaluate(w, "mass_matrix", q)
        assert isinstance(found, int) or found.shape == (model.nv**2,)


@needs_compiler
def test_copies_and_other_workspaces(library, model):
    """A copy has the parameters of its original; other workspaces keep theirs."""
    w, copy, other = (library.make() for _ in range(3))
    library.set_paths(w, {"palm.mass": 0.08})
    assert library.of("copy")(copy, w) == 0
    assert library.get(copy)["palm.mass"] == 0.08 and library.get(other)["palm.mass"] == model.description.links[
        "palm"].body.mass  # fmt: skip
    assert _worst(library, copy, model.with_({"palm.mass": 0.08})) <= ROUNDING
    assert _worst(library, other, model) <= ROUNDING


@needs_compiler
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::lissom.errors.RedundancyWarning")
def test_steps_of_a_machine_with_other_values(tmp_path):
    """A closed chain that is driven by an expression, and a ball that falls and sticks: steps after setting constants
    of expressions, placements of a loop, masses and laws of contacts are those of `Stepper`, also if they are set
    between two steps; an open loop needs another start."""
    robot, dt = machine(), 2e-3
    model = robot.build()
    changed = {"ball.mass": 0.4, "ground.stiffness": 3e3, "coupler.mass": 0.09, "gravity": (0.1, 0.0, -8.0)}
    paths = [*changed, "pin.placement_a[0][3]"]
    made = ls.export(model, tmp_path, ("forward_dynamics", "step"), name="machine", parameters=paths)
    library = Adjustable(compiled(made.folder, COMPILERS[0], "-O1"), "machine", model)
    other = model.with_(changed)
    start = ls.assemble(other, other.neutral())
    motion = Motion(library, start, np.zeros(model.nv))
    library.set_paths(motion.w, changed)
    assert _worst(library, motion.w, other, ("forward_dynamics",)) <= 1e-10
    assert library.of("start")(motion.w, 0.0, start.ctypes.data, np.zeros(model.nv).ctypes.data, None) == 0
    stepper = ls.Stepper(other, dt, q0=start, v0=np.zeros(model.nv))
    for _ in range(100):
        stepper.step()
        assert motion.step(dt) == 0
    q, v = motion.state
    assert np.abs(q - stepper.state.q).max() <= 1e-9 and np.abs(v - stepper.state.v).max() <= 1e-6
    before = np.concatenate(motion.state)
    library.set_paths(motion.w, {"ball.mass": 0.2})
    assert np.array_equal(np.concatenate(motion.state), before) and motion.step(dt) == 0
    assert library.set(motion.w, "pin.placement_a[0][3]", 0.16) == 0
    assert "start" in library.text(motion.step(dt))


def test_what_cannot_be_adjusted_is_refused_by_name(model, tmp_path):
    """Values that act by no polynomial, change the structure, have no range of their own, or are no numbers: errors
    with the name and the cure, before anything is written."""
    for path, rule in (
        ("finger.material.poisson", "finger.material.poisson, which acts on t.elasticity.* no polynomial"),
        ("palm.joint.friction", "palm.joint.friction, which changes the structure"),
        ("tendon 0.start", "tendon 0.start, which changes the structure"),
        ("palm.inertia", r"palm.inertia\[0\], .*no range of its own: .*largest principal moment"),
        ("finger.basis.bending_y", "bending_y: .* must be an integer"),
        ("palm.joint.slip_speed", "palm.joint.slip_speed, which acts on nothing that the exported functions read"),
        ("palm.joint.rest", "must be a number"),
        ("palm.form", "must be a number"),
        ("palm.wait", "must be one of"),
        ("palm.com[3]", r"must be followed by an entry of its shape \(3,\)"),
        ("finger.placement[0][1]", "name the placement"),
    ):
        with pytest.raises(ls.ModelError, match=rule):
            ls.export(model, tmp_path / "x", ("mass_matrix", "inverse_dynamics"), parameters=[path])
    with pytest.raises(ls.ModelError, match="must name each number once"):
        ls.export(model, tmp_path / "x", SMALL, parameters=["palm.com", "palm.com[1]"])
    assert not (tmp_path / "x").exists()


def test_own_names_and_wildcards(model):
    """Paths may have names of the caller, and a path with * one parameter for all places."""
    found = adjustment_of(model, SMALL, False, {"m": "palm.mass", "where": "palm.com[1]", "rho": "*.material.density"})
    assert [one.name for one in found.parameters] == ["m", "where", "rho"]
    assert [one.unit for one in found.parameters] == ["kg", "m", "kg/m³"]


def test_polynomials_are_found():
    """Sums of products of powers, rotations and numbers of mere rounding: found to rounding; others are named."""
    x0, size = np.array([2.0, 0.5, 3.0]), np.array([2.0, 0.5, 3.0])
    box = Box(0.4 * x0, 2.0 * x0, 0.1 * x0, 5.0 * x0, ())

    def evaluate(x):
        a, b, c = x
        noise = 1e-17 * np.sin(1e9 * a)
        return np.array([a, 3.0 * a * b**4 - 2.0 * c, a * b * c + 1.0, 7.0, noise, 1e3 * c**3 + b])

    found = fitted(evaluate, x0, size, box, np.zeros(6, dtype=int), np.ones(6, dtype=bool))
    assert found.entries.tolist() == [0, 1, 2, 5]
    terms = [{m: round(c, 9) for m, c in own.items()} for own in found.terms]
    assert terms[0] == {(1, 0, 0): 1.0} and terms[1] == {(1, 4, 0): 3.0, (0, 0, 1): -2.0}
    assert terms[2] == {(1, 1, 1): 1.0, (0, 0, 0): 1.0} and terms[3] == {(0, 0, 3): 1000.0, (0, 1, 0): 1.0}
    for wrong, culprits in (
        (lambda x: 1.0 / x[1], (1,)),
        (lambda x: max(x[0], 5.0), (0, 1, 2)),
        (lambda x: x[2] ** 7, (2,)),
    ):
        with pytest.raises(NotPolynomial) as caught:
            fitted(lambda x, f=wrong: np.array([f(x)]), x0, size, box, np.zeros(1, int), np.ones(1, bool))
        assert caught.value.parameters == culprits and caught.value.entry == 0


def test_the_command_takes_parameters(tmp_path):
    """`lissom export --parameters` names them, separated by commas."""
    ls.save_robot(finger(), tmp_path / "finger.yaml")
    words = ["export", str(tmp_path / "finger.yaml"), "--functions", "energy", "--out", str(tmp_path / "out")]
    assert main([*words, "--parameters", "palm.mass,finger.material.young"]) == 0
    assert "SOFT_FINGER_N_PARAMETERS 2" in (tmp_path / "out" / "soft_finger.h").read_text()
