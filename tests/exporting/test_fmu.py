"""FMUs of robots: their description, their files, and motions by the C functions of FMI 3.0 and 2.0."""

import ctypes
import subprocess
import zipfile
from ctypes import byref, c_bool, c_char_p, c_double, c_int, c_size_t, c_uint, c_void_p
from xml.etree import ElementTree as Xml

import numpy as np
import pytest
from exporting.built import COMPILERS, OUR_WARNINGS, finger, machine, needs_compiler, pointer

import lissom as ls
from lissom.dynamics.configuration import unit_quaternions
from lissom.exporting.export import coordinate_names
from lissom.exporting.fmu import fmu_sources
from lissom.exporting.fmu_description import Fmu
from lissom.exporting.parameters import parameters_of
from lissom.exporting.units import coordinate_units, exponents, unit_of_input
from lissom.lie.arrays import se3_exp

PARAMETERS = ("palm.mass", "finger.material.young", "finger.placement")
SIMPLE = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-O1", "-w")  # compiles in seconds


@pytest.fixture(scope="module")
def quick():
    """FMUs are compiled without optimisation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lissom.exporting.building.compiler_flags", lambda _: SIMPLE)
        yield


class Component:
    """An FMU of FMI 3.0, loaded by ctypes."""

    def __init__(self, path, folder):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
            self.names = archive.namelist()
        self.root = Xml.parse(folder / "modelDescription.xml").getroot()
        self.listed = {one.get("name"): one for one in self.root.find("ModelVariables")}
        (binary,) = [name for name in self.names if name.startswith("binaries/")]
        self.lib, self.messages = ctypes.CDLL(str(folder / binary)), []
        log = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_char_p)
        self.log = log(lambda _, status, category, text: self.messages.append(text.decode()))
        for kind in ("CoSimulation", "ModelExchange"):
            getattr(self.lib, f"fmi3Instantiate{kind}").restype = c_void_p

    def make(self, kind, token=None):
        """An instance of a kind; None for a wrong token."""
        token = self.root.get("instantiationToken").encode() if token is None else token
        begin = [c_char_p(b"x"), c_char_p(token), None, c_bool(False), c_bool(False)]
        if kind == "CoSimulation":
            begin += [c_bool(False), c_bool(False), None, c_size_t(0)]
        made = getattr(self.lib, f"fmi3Instantiate{kind}")(*begin, None, self.log, *[None][: kind == "CoSimulation"])
        return c_void_p(made) if made else None

    def references(self, names):
        """Value references of variables."""
        return (c_uint * len(names))(*(int(self.listed[name].get("valueReference")) for name in names))

    def put(self, x, values):
        """Set variables; returns the status."""
        numbers = (c_double * len(values))(*values.values())
        n = c_size_t(len(values))
        return self.lib.fmi3SetFloat64(x, self.references(list(values)), n, numbers, n)

    def read(self, x, names):
        """Values of variables."""
        numbers, n = (c_double * len(names))(), c_size_t(len(names))
        assert self.lib.fmi3GetFloat64(x, self.references(names), n, numbers, n) == 0, self.messages
        return np.array(numbers)

    def begin(self, x):
        """Initialise; returns the status."""
        arguments = (c_bool(False), c_double(0.0), c_double(0.0), c_bool(False), c_double(0.0))
        return self.lib.fmi3EnterInitializationMode(x, *arguments) or self.lib.fmi3ExitInitializationMode(x)

    def step(self, x, t, size=1e-2):
        """Take a communication step; returns the status."""
        flags = [byref(c_bool()) for _ in range(3)]
        return self.lib.fmi3DoStep(x, c_double(t), c_double(size), c_bool(False), *flags, byref(c_double()))


@pytest.fixture(scope="module")
def model():
    """The model of the finger."""
    return finger().build()


@pytest.fixture(scope="module")
def component(quick, model, tmp_path_factory):
    """The FMU of the finger, with parameters and both kinds."""
    folder = tmp_path_factory.mktemp("fmu")
    path = ls.export_fmu(model, folder / "finger.fmu", dt=2e-3, name="finger", parameters=PARAMETERS)
    return Component(path, folder)


def flyer():
    """A free body with an arm on a spherical joint, pushed off its middle."""
    robot, at = ls.Robot("flyer"), np.eye(4)
    at[0, 3] = 0.1
    robot.add_link("body", body=ls.RigidBody.box(0.1, 0.06, 0.04, density=500.0), joint=ls.JointFree())
    arm = ls.RigidBody.cylinder(0.2, 0.01, density=900.0)
    robot.add_link("arm", body=arm, parent="body", joint=ls.JointSpherical(stiffness=0.2, damping=0.01), placement=at)
    robot.add_wrench_input("push", "body", directions=(0.0, 0.01, 0.0, 1.0, 0.0, 0.0))
    return robot


def _coordinates(model):
    """Names of the coordinates of the finger, which has as many velocities."""
    return ["palm[0]", *(f"finger[{k}]" for k in range(model.nq - 1))]


def _start(model, u):
    """Values before the start: inputs and coordinates."""
    q = dict(zip((f"q.{name}" for name in _coordinates(model)), 0.1 * model.dofs.scale))
    return {f"u.{name}": x for name, x in zip(model.inputs.names, u)} | q


@pytest.mark.slow
@needs_compiler
def test_an_fmu_moves_like_a_stepper(component, model):
    """Co-simulation: the variables of the description have the values of `Stepper`, a stored state goes on as the
    first time, and a wrong token or variable is refused."""
    assert {"modelDescription.xml", "sources/warp/LICENSE", "sources/component.h"} <= set(component.names)
    assert component.root.get("fmiVersion") == "3.0"
    assert component.root.find("CoSimulation").get("modelIdentifier") == "finger"
    assert component.make("CoSimulation", b"another") is None and "token" in component.messages[-1]
    x, u = component.make("CoSimulation"), np.array([2.0, 0.0, 0.01])
    assert component.put(x, _start(model, u)) == 0
    for wrong in ({"time": 1.0}, {"step_size": -1.0}, {"a.palm[0]": 0.0}, {"u.motor": np.nan}):
        assert component.put(x, wrong) != 0
    assert component.begin(x) == 0
    stepper = ls.Stepper(model, 2e-3, q0=0.1 * model.dofs.scale, u=u)
    for k in range(10):
        assert component.step(x, 1e-2 * k) == 0
        stepper.step(u, steps=5)
    found = component.read(x, [f"q.{name}" for name in _coordinates(model)])
    assert np.abs(found - stepper.state.q).max() <= 1e-9 * np.abs(stepper.state.q).max()
    tip = ls.frame_pose(model, stepper.state.q, "tip")[:3, 3]
    assert np.abs(component.read(x, [f"position.tip.{axis}" for axis in "xyz"]) - tip).max() <= 1e-9
    assert component.put(x, {"q.palm[0]": 0.0}) != 0  # the motion has begun
    kept, after, lib = c_void_p(), [], component.lib
    assert lib.fmi3GetFMUState(x, byref(kept)) == 0
    for _ in range(2):
        assert component.step(x, 0.1) == 0
        after.append(component.read(x, [f"v.{name}" for name in _coordinates(model)]))
        assert lib.fmi3SetFMUState(x, kept) == 0
    assert np.array_equal(*after) and component.step(x, 0.3) != 0
    assert lib.fmi3FreeFMUState(x, byref(kept)) == 0
    lib.fmi3FreeInstance(x)


@pytest.mark.slow
@needs_compiler
def test_states_as_bytes(component, model):
    """A state that was written as bytes goes on in another instance, bit for bit; other bytes are refused."""
    x, other, lib = component.make("CoSimulation"), component.make("CoSimulation"), component.lib
    assert component.put(x, _start(model, [1.0, 0.5, 0.0]) | {"palm.mass": 0.05}) == 0 and component.begin(x) == 0
    assert component.step(x, 0.0) == 0
    kept, size, made = c_void_p(), c_size_t(), c_void_p()
    assert lib.fmi3GetFMUState(x, byref(kept)) == 0 and lib.fmi3SerializedFMUStateSize(x, kept, byref(size)) == 0
    room = (ctypes.c_uint8 * size.value)()
    assert lib.fmi3SerializeFMUState(x, kept, room, c_size_t(size.value - 1)) != 0
    assert lib.fmi3SerializeFMUState(x, kept, room, size) == 0
    assert lib.fmi3DeserializeFMUState(other, room, size, byref(made)) == 0 and lib.fmi3SetFMUState(other, made) == 0
    names = [f"v.{name}" for name in _coordinates(model)]
    assert component.step(x, 0.01) == component.step(other, 0.01) == 0
    assert np.array_equal(component.read(x, names), component.read(other, names))
    assert component.read(other, ["palm.mass"])[0] == 0.05
    room[3] ^= 1
    assert lib.fmi3DeserializeFMUState(other, room, size, byref(made)) != 0
    assert lib.fmi3DeserializeFMUState(other, room, c_size_t(7), byref(made)) != 0


@pytest.mark.slow
@needs_compiler
def test_parameters_of_an_fmu_are_those_of_the_export(component, model):
    """Parameters are tunable, with units and ranges; a motion after they are set, all at once or one by one, is that of
    the other model; values outside of their range are refused."""
    young = component.listed["finger.material.young"]
    assert (young.get("causality"), young.get("variability"), young.get("unit")) == ("parameter", "tunable", "Pa")
    assert float(young.get("min")) == np.finfo(float).tiny and young.get("start") == "500000.0"
    g = se3_exp(np.array([0.3, -0.4, 0.2, 0.03, 0.01, 0.02]))
    x = component.make("CoSimulation")
    for i in range(3):
        for j in range(4):
            assert component.put(x, {f"finger.placement[{i}][{j}]": g[i, j]}) == 0
    assert component.put(x, {"finger.material.young": 0.0}) != 0 and "range" in component.messages[-1]
    assert component.put(x, {"finger.material.young": 8e5, "u.motor": 0.02}) == 0 and component.begin(x) == 0
    other = model.with_({"finger.placement": g, "finger.material.young": 8e5})
    stepper = ls.Stepper(other, 2e-3, u=np.array([0.0, 0.0, 0.02]))
    for k in range(5):
        assert component.step(x, 1e-2 * k) == 0
        stepper.step(np.array([0.0, 0.0, 0.02]), steps=5)
    found = component.read(x, [f"q.{name}" for name in _coordinates(model)])
    assert np.abs(found - stepper.state.q).max() <= 1e-9 * np.abs(stepper.state.q).max()
    assert component.put(x, {"finger.placement[0][0]": 2.0}) == 0 and component.step(x, 0.05) != 0
    assert "rotation" in component.messages[-1]


@pytest.mark.slow
@needs_compiler
def test_model_exchange_and_directional_derivatives(component, model):
    """Model exchange: derivatives of the states are velocities and accelerations of the library, also with other
    parameters; directional derivatives of accelerations and positions are differences of these."""
    x, lib, rng = component.make("ModelExchange"), component.lib, np.random.default_rng(5)
    u = np.array([2.0, 0.5, 0.01])
    assert component.put(x, _start(model, u) | {"palm.mass": 0.06}) == 0 and component.begin(x) == 0
    other, n, count = model.with_({"palm.mass": 0.06}), 2 * model.nv, c_size_t()
    assert lib.fmi3GetNumberOfContinuousStates(x, byref(count)) == 0 and count.value == n
    states = 0.2 * np.tile(model.dofs.scale, 2) * rng.normal(size=n)
    rates, known = np.zeros(n), np.zeros(n)
    assert lib.fmi3SetTime(x, c_double(0.3)) == 0
    assert lib.fmi3SetContinuousStates(x, pointer(states), c_size_t(n)) == 0
    assert lib.fmi3GetContinuousStates(x, pointer(known), c_size_t(n)) == 0 and np.array_equal(known, states)
    assert lib.fmi3GetContinuousStateDerivatives(x, pointer(rates), c_size_t(n)) == 0
    q, v = np.split(states, 2)
    a = ls.forward_dynamics(other, q, v, u)
    assert np.array_equal(rates[: model.nv], v) and np.abs(rates[model.nv :] - a).max() <= 1e-10 * np.abs(a).max()
    assert lib.fmi3GetNominalsOfContinuousStates(x, pointer(known), c_size_t(n)) == 0 and (known > 0.0).all()
    names = _coordinates(model)
    knowns = [*(f"q.{k}" for k in names), *(f"v.{k}" for k in names), *(f"u.{k}" for k in model.inputs.names)]
    unknowns = [*(f"a.{k}" for k in names), *(f"position.tip.{k}" for k in "xyz"), "v.palm[0]", "q.palm[0]"]
    seed = rng.normal(size=len(knowns)) * np.concatenate([model.dofs.scale, model.dofs.scale, np.ones(model.nu)])

    def along(h):
        dq, dv, du = np.split(h * seed, [model.nv, 2 * model.nv])
        tip = ls.frame_pose(other, q + dq, "tip")[:3, 3]
        return np.concatenate([ls.forward_dynamics(other, q + dq, v + dv, u + du), tip, v[:1] + dv[:1], q[:1] + dq[:1]])

    h, found = 1e-4, np.zeros(len(unknowns))
    wanted = (8.0 * (along(h) - along(-h)) - along(2 * h) + along(-2 * h)) / (12.0 * h)
    sizes = c_size_t(len(unknowns)), c_size_t(len(knowns))
    given = (component.references(unknowns), sizes[0], component.references(knowns), sizes[1])
    assert lib.fmi3GetDirectionalDerivative(x, *given, pointer(seed), sizes[1], pointer(found), sizes[0]) == 0
    parts = [slice(model.nv), slice(model.nv, model.nv + 3), slice(model.nv + 3, None)]
    assert all(np.abs(found[k] - wanted[k]).max() <= 1e-7 * np.abs(wanted[k]).max() for k in parts)
    wrong = component.references(["time"]), c_size_t(1)
    assert (
        lib.fmi3GetDirectionalDerivative(x, *given[:2], *wrong, pointer(seed), wrong[1], pointer(found), sizes[0]) != 0
    )
    assert lib.fmi3SetContinuousStates(x, pointer(np.full(n, np.nan)), c_size_t(n)) != 0
    assert component.step(x, 0.3) != 0  # which co-simulation has


@needs_compiler
def test_rates_of_quaternions_are_those_of_the_library(tmp_path):
    """The functions of the FMU for coordinates: rates of q at a quaternion of any length, the tangent vector of a
    change, and changes of the rates, which are differences of these."""
    model, rng = flyer().build(), np.random.default_rng(4)
    texts = fmu_sources(Fmu(model, "robot", "x", 1e-3, "3.0", True, True, ()))
    for path in ("fmu.h", "coordinates.h"):
        (tmp_path / path).write_text(texts[path], encoding="utf-8")
    (tmp_path / "robot.h").write_text(f"#include <cstddef>\n#define ROBOT_NQ {model.nq}\n#define ROBOT_NV {model.nv}\n")
    (tmp_path / "try.cpp").write_text("""#include "coordinates.h"
        extern "C" {
        void rates(const double* q, const double* v, double* out) { put_coordinate_rates(q, v, out); }
        void tangent(const double* q, const double* dq, double* out) { put_tangent(q, dq, out); }
        void changes(const double* q, const double* v, const double* dq, const double* dv, const double* x,
                     double* out) {
            put_changes_of_rates(q, v, dq, dv, x, out);
        }
        }""")
    command = [COMPILERS[0], "-std=c++17", "-shared", "-fPIC", *OUR_WARNINGS, f"-I{tmp_path}"]
    done = subprocess.run([*command, tmp_path / "try.cpp", "-o", tmp_path / "try.so"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    lib = ctypes.CDLL(str(tmp_path / "try.so"))

    def call(name, size, *arrays):
        found = np.zeros(size)
        getattr(lib, name)(*(pointer(x) for x in (*arrays, found)))
        return found

    q, v, dq, dv = (rng.normal(size=n) for n in (model.nq, model.nv, model.nq, model.nv))
    unit, h = unit_quaternions(model, q), 1e-6
    found = call("rates", model.nq, unit, v)
    wanted = (ls.integrate(model, unit, h * v) - ls.integrate(model, unit, -h * v)) / (2.0 * h)
    assert np.abs(found - wanted).max() <= 1e-8 * np.abs(wanted).max()
    scaled = q.copy()
    scaled[:4] *= 3.0
    grown = call("rates", model.nq, scaled, v) - call("rates", model.nq, q, v) * np.repeat(
        [3.0, 1.0], [4, model.nq - 4]
    )
    assert np.abs(grown).max() <= 1e-14 * np.abs(scaled).max() * np.abs(v).max()  # only the direction acts
    moved = [unit_quaternions(model, q + sign * h * dq) for sign in (1.0, -1.0)]
    wanted = ls.difference(model, moved[1], moved[0]) / (2.0 * h)
    x = call("tangent", model.nv, q, dq)
    assert np.abs(x - wanted).max() <= 1e-8 * np.abs(wanted).max()
    ends = [call("rates", model.nq, q + sign * h * dq, v + sign * h * dv) for sign in (1.0, -1.0)]
    wanted = (ends[0] - ends[1]) / (2.0 * h)
    assert np.abs(call("changes", model.nq, q, v, dq, dv, x) - wanted).max() <= 1e-8 * np.abs(wanted).max()


@pytest.mark.slow
@needs_compiler
def test_quaternions_of_any_length_are_states(quick, tmp_path):
    """Model exchange of a free body with an arm on a spherical joint: rates of the states are those of the library at
    unit quaternions, whose lengths they keep; directional derivatives are differences of rates and positions."""
    model = flyer().build()
    component = Component(ls.export_fmu(model, tmp_path / "flyer.fmu", kinds=("model_exchange",)), tmp_path)
    x, lib, rng, n = component.make("ModelExchange"), component.lib, np.random.default_rng(3), model.nq + model.nv
    assert component.begin(x) == 0
    states = rng.normal(size=n)
    q, v = states[: model.nq], states[model.nq :]
    q[:4] *= 0.3 / np.linalg.norm(q[:4])

    def rates(states, u):
        found = np.zeros(n)
        assert component.put(x, {"u.push": u}) == 0
        assert lib.fmi3SetContinuousStates(x, pointer(states), c_size_t(n)) == 0
        assert lib.fmi3GetContinuousStateDerivatives(x, pointer(found), c_size_t(n)) == 0, component.messages
        return found

    found, unit = rates(states, 0.4), unit_quaternions(model, q)
    a = ls.forward_dynamics(model, unit, v, [0.4])
    assert np.abs(found[model.nq :] - a).max() <= 1e-11 * np.abs(a).max()
    h = 1e-6
    wanted = (ls.integrate(model, unit, h * v) - ls.integrate(model, unit, -h * v)) / (2.0 * h)
    wanted[:4] *= 0.3
    wanted[7:11] *= np.linalg.norm(q[7:11])
    assert np.abs(found[: model.nq] - wanted).max() <= 1e-8 * np.abs(wanted).max()
    assert max(abs(found[:4] @ q[:4]), abs(found[7:11] @ q[7:11])) <= 1e-14
    names, speeds = coordinate_names(model)
    assert [component.listed[f"der(q.{name})"].get("derivative") for name in names] == [
        component.listed[f"q.{name}"].get("valueReference") for name in names
    ]
    knowns = [*(f"q.{k}" for k in names), *(f"v.{k}" for k in speeds), "u.push"]
    unknowns = [*(f"der(q.{k})" for k in names), *(f"a.{k}" for k in speeds), *(f"position.arm.{k}" for k in "xyz")]
    seed = rng.normal(size=len(knowns))

    def along(h):
        moved = rates(states + h * seed[:-1], 0.4 + h * seed[-1])
        return np.concatenate([moved, component.read(x, unknowns[-3:])])

    h = 1e-4
    wanted = (8.0 * (along(h) - along(-h)) - along(2 * h) + along(-2 * h)) / (12.0 * h)
    rates(states, 0.4)
    found, sizes = np.zeros(len(unknowns)), (c_size_t(len(unknowns)), c_size_t(len(knowns)))
    given = (component.references(unknowns), sizes[0], component.references(knowns), sizes[1])
    assert lib.fmi3GetDirectionalDerivative(x, *given, pointer(seed), sizes[1], pointer(found), sizes[0]) == 0
    assert np.abs(found - wanted).max() <= 1e-7 * np.abs(wanted).max()
    states[:4] = 0.0
    assert lib.fmi3SetContinuousStates(x, pointer(states), c_size_t(n)) == 0
    assert lib.fmi3GetContinuousStateDerivatives(x, pointer(found), c_size_t(n)) != 0
    assert "quaternion" in component.messages[-1]


@pytest.mark.slow
@needs_compiler
@pytest.mark.filterwarnings("ignore::lissom.errors.RedundancyWarning")
def test_a_closed_chain_has_co_simulation_alone(quick, tmp_path):
    """The FMU of a closed chain by FMI 2.0 offers co-simulation alone, and its motion is that of `Stepper`."""
    model = machine().build()
    path = ls.export_fmu(model, tmp_path / "machine.fmu", dt=2e-3, name="machine", version="2.0")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
    root = Xml.parse(tmp_path / "modelDescription.xml").getroot()
    assert root.find("ModelExchange") is None and root.find("CoSimulation") is not None
    (binary,) = (tmp_path / "binaries").rglob("*.so")
    lib, order = ctypes.CDLL(str(binary)), {}
    for one in root.find("ModelVariables"):
        order[one.get("name")] = int(one.get("valueReference"))
    logger = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_int, c_char_p, c_char_p, c_char_p)
    messages = []
    log = logger(lambda _e, _n, _s, _c, text, more: messages.append((text, more)))
    callbacks = (c_void_p * 5)(ctypes.cast(log, c_void_p).value)
    lib.fmi2Instantiate.restype = c_void_p
    lib.fmi2GetVersion.restype = c_char_p
    assert lib.fmi2GetVersion() == b"2.0"
    token = c_char_p(root.get("guid").encode())
    assert not lib.fmi2Instantiate(b"x", 0, token, None, callbacks, 0, 0) and b"no model exchange" in messages[-1][1]
    x = c_void_p(lib.fmi2Instantiate(b"x", 1, token, None, callbacks, 0, 0))
    start = ls.assemble(model, model.neutral())
    names = [name for name in order if name.startswith("q.")]
    references = (c_uint * len(names))(*(order[name] for name in names))
    assert lib.fmi2SetReal(x, references, c_size_t(len(names)), pointer(start)) == 0
    assert lib.fmi2SetupExperiment(x, 0, c_double(0.0), c_double(0.0), 0, c_double(0.0)) == 0
    assert lib.fmi2EnterInitializationMode(x) == 0 and lib.fmi2ExitInitializationMode(x) == 0
    stepper = ls.Stepper(model, 2e-3, q0=start)
    for k in range(20):
        assert lib.fmi2DoStep(x, c_double(0.01 * k), c_double(0.01), 1) == 0
        stepper.step(steps=5)
    found = np.zeros(len(names))
    assert lib.fmi2GetReal(x, references, c_size_t(len(names)), pointer(found)) == 0
    assert np.abs(found - stepper.state.q).max() <= 1e-9
    status, text = lib.fmi2SetTime(x, c_double(0.0)), messages[-1]
    assert status != 0 and b"not among the capabilities" in text[1]
    lib.fmi2FreeInstance(x)


@needs_compiler
@pytest.mark.parametrize("has_motor", [False, True])
def test_sources_are_free_of_warnings(has_motor, tmp_path):
    """The sources of FMUs of both versions compile without warnings, with and without inputs, model exchange and
    parameters, by all compilers."""
    robot = ls.Robot("pendulum")
    robot.add_link("rod", ls.RigidBody.cylinder(0.3, 0.01, density=2700.0), ls.JointRevolute((0.0, 1.0, 0.0)))
    if has_motor:
        robot.add_joint_actuator("motor", "rod")
    model = robot.build()
    functions = ("forward_dynamics", "frames", "step", "forward_dynamics_derivatives", "jacobians")
    for chosen in ((), ("rod.mass",)):
        made = ls.export(model, tmp_path, functions, name="pendulum", parameters=chosen)
        for version in ("3.0", "2.0"):
            for has_exchange in (False, True):
                about = Fmu(model, "pendulum", "x", 1e-3, version, has_exchange, True, parameters_of(model, chosen))
                for path, text in fmu_sources(about).items():
                    (made.folder / path).write_text(text, encoding="utf-8")
                for compiler in COMPILERS:
                    command = [compiler, "-std=c++17", "-fvisibility=hidden", *OUR_WARNINGS, "-fsyntax-only"]
                    names = [made.folder / f"fmi{version[0]}.cpp", made.folder / "pendulum.cpp"]
                    done = subprocess.run([*command, f"-I{tmp_path}", *names], capture_output=True, text=True)
                    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.filterwarnings("ignore::lissom.errors.RedundancyWarning")
def test_model_exchange_is_refused_by_name(tmp_path):
    """Robots whose q and v are no free choice: the error of model exchange names the part and the cure."""
    stuck = ls.Robot("stuck")
    stuck.add_link("foot", body=ls.RigidBody.sphere(0.1, density=500.0), joint=ls.JointPrismatic((0.0, 0.0, 1.0)))
    stuck.add_contact("ground", "foot", ls.ShapePlane(), stiffness=2e3, friction=0.5, stick_stiffness=5e2)
    loop = machine()
    del loop.motions["drive"]
    for robot, part in ((stuck, "contacts that stick"), (loop, "loops"), (machine(), "'drive'")):
        with pytest.raises(ls.ModelError, match=f"robot '.*': export_fmu: model exchange .*{part}.*co_simulation"):
            ls.export_fmu(robot.build(), tmp_path / "x.fmu", kinds=("model_exchange",))
    with pytest.raises(ls.ModelError, match="kinds: must be of co_simulation, model_exchange"):
        ls.export_fmu(finger().build(), tmp_path / "x.fmu", kinds=("scheduled",))
    with pytest.raises(ls.ModelError, match=r"version: must be one of 3\.0, 2\.0"):
        ls.export_fmu(finger().build(), tmp_path / "x.fmu", version="1.0")


def test_units_of_variables(model):
    """Coordinates, velocities and inputs have units; names of units give exponents of SI units."""
    q, v, a = coordinate_units(model)
    assert q == ["rad", *["1/m"] * 6] and v[:2] == ["rad/s", "1/(m·s)"] and a[0] == "rad/s²"
    assert [unit_of_input(model, k) for k in range(model.nu)] == ["N", "N", "N·m"]
    free = ls.Robot("free")
    free.add_link("body", body=ls.RigidBody.sphere(0.1, density=500.0), joint=ls.JointFree())
    q, v, _ = coordinate_units(free.build())
    assert q == ["1"] * 4 + ["m"] * 3 and v == ["rad/s"] * 3 + ["m/s"] * 3
    for unit, powers in (
        ("Pa", {"kg": 1, "m": -1, "s": -2}), ("kg·m²", {"kg": 1, "m": 2}), ("1/(m·s)", {"m": -1, "s": -1}),
        ("N·m·s/rad", {"kg": 1, "m": 2, "s": -1, "rad": -1}), ("1", {}), ("m/s²", {"m": 1, "s": -2}),
        ("N·m/rad, N/m", None), ("", None), ("apple", None),
    ):  # fmt: skip
        assert exponents(unit) == powers, unit


def test_an_fmu_needs_a_compiler(monkeypatch, tmp_path):
    """Without a compiler the error says which one is needed, before anything is written."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(ls.ModelError, match=r"needs a C\+\+ compiler .*CXX"):
        ls.export_fmu(finger().build(), tmp_path / "finger.fmu")
    with pytest.raises(ls.ModelError, match="dt: must be > 0"):
        ls.export_fmu(finger().build(), tmp_path / "finger.fmu", dt=0.0)
    assert not list(tmp_path.iterdir())
