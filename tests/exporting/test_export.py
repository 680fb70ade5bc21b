"""Exported robots: their results are those of the library, and wrong arguments give error codes."""

import ctypes
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_void_p

import numpy as np
import pytest
from exporting.built import (
    COMPILERS,
    Library,
    compiled,
    compiled_test,
    finger,
    needs_compiler,
    pointer,
    with_null_and_random_numbers,
)
from exporting.functions_of_users import robot_of_functions

import lissom as ls
from lissom.cli.main import main
from lissom.exporting.functions import FUNCTIONS
from lissom.exporting.recorded import evaluated, states_of

SMALL = ("inverse_dynamics", "mass_matrix", "energy")  # whose kernels compile in seconds
# Products and sums are rounded together in other places by other compilers: some units of the last of 53 bits.
ROUNDING = 1e-13


@pytest.fixture(scope="module")
def model():
    """The model of the finger."""
    return finger().build()


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory):
    """The finger with three functions, without optimisation."""
    return ls.export(model, tmp_path_factory.mktemp("exported"), SMALL, name="finger")


@pytest.fixture(scope="module")
def library(exported, model):
    """The compiled finger."""
    return Library(compiled(exported.folder, COMPILERS[0], "-O1"), "finger", model)


@needs_compiler
@pytest.mark.parametrize("function", SMALL)
def test_results_are_those_of_the_library(library, model, function):
    """Each function gives the results of the function of the library, to rounding."""
    w = library.make()
    for state in states_of(model):
        given, wanted = evaluated(model, function, state)
        found = library.evaluate(w, function, given)
        assert np.abs(found - wanted).max() <= ROUNDING * np.abs(wanted).max()
    library.of("destroy")(w)


@needs_compiler
@pytest.mark.parametrize("function", SMALL)
def test_results_may_take_the_place_of_arguments(library, model, function):
    """A call whose results are written over its arguments gives the same results: the kernels of matrices write to
    memory of the caller. Calls after it do not write there."""
    w = library.make()
    states = states_of(model)
    given, _ = evaluated(model, function, states[0])
    wanted = library.evaluate(w, function, given)
    shared = np.zeros(max(given.size, wanted.size))
    shared[: given.size] = given
    call, number = library.of("evaluate"), list(FUNCTIONS).index(function)
    assert call(w, number, pointer(shared), given.size, pointer(shared), wanted.size) == 0
    assert np.array_equal(shared[: wanted.size], wanted)
    library.evaluate(w, function, evaluated(model, function, states[1])[0])
    assert np.array_equal(shared[: wanted.size], wanted)


@needs_compiler
def test_the_test_program_passes_and_can_fail(exported, library, tmp_path):
    """The program beside the sources compares with recorded results, and fails if one of these is another number."""
    program = compiled_test(exported.folder, COMPILERS[0])
    assert subprocess.run([program], capture_output=True).returncode == 0
    other = tmp_path / "other"
    shutil.copytree(exported.folder, other)
    text = (other / "recorded.h").read_text()
    at = text.index("mass_matrix_out[] = {\n    ") + len("mass_matrix_out[] = {\n    ")
    (other / "recorded.h").write_text(f"{text[:at]}1.0 + {text[at:]}")
    assert subprocess.run([compiled_test(other, COMPILERS[0])], capture_output=True).returncode == 1


@needs_compiler
def test_names_are_those_of_the_robot(library, model):
    """Coordinates, inputs and frames have names; other numbers have none."""
    for kind in ("coordinate", "velocity", "input", "frame"):
        library.of(f"{kind}_name").restype = ctypes.c_char_p
    assert library.of("coordinate_name")(0) == b"palm[0]" and library.of("velocity_name")(6) == b"finger[5]"
    assert [library.of("input_name")(k).decode() for k in range(model.nu)] == list(model.inputs.names)
    assert [library.of("frame_name")(k) for k in range(3)] == [b"palm", b"finger", b"tip"]
    assert library.of("frame_name")(3) is None and library.of("coordinate_name")(-1) is None


@needs_compiler
def test_wrong_arguments_give_error_codes(library, model):
    """Null, NaN, wrong sizes, memory that is too small, another ABI and unknown functions: a code with a text, and no
    crash."""
    w, number = library.make(), list(FUNCTIONS).index("mass_matrix")
    q, M = np.zeros(model.nq), np.zeros(model.nv**2)
    call = library.of("evaluate")
    bad = {
        "a pointer is null": [
            call(None, number, pointer(q), model.nq, pointer(M), M.size),
            call(w, number, None, model.nq, pointer(M), M.size),
            call(w, number, pointer(q), model.nq, None, M.size),
            library.of("create")(None, None, 0, 1),
            library.of("mass_matrix")(w, None, None),
        ],
        "number of entries is wrong": [
            call(w, number, pointer(q), model.nq - 1, pointer(M), M.size),
            call(w, number, pointer(q), model.nq, pointer(M), M.size + 1),
            library.of("create")(byref(c_void_p()), M.ctypes.data, M.nbytes, 1),
        ],
        "another ABI": [library.of("create")(byref(c_void_p()), None, 0, 2)],
        "no function": [call(w, 63, pointer(q), 1, pointer(M), 1), call(w, -1, pointer(q), 1, pointer(M), 1)],
        "finite": [library.evaluate(w, "mass_matrix", np.full(model.nq, x)) for x in (np.nan, np.inf, -np.inf)],
    }
    for text, statuses in bad.items():
        assert all(status != 0 and text in library.text(status) for status in statuses), text
    assert call(w, number, pointer(q), model.nq, pointer(M), M.size) == 0  # the workspace is as before
    assert library.text(0) == "no error" and library.text(-999) == "unknown status"


@needs_compiler
def test_random_calls_never_crash(library, model):
    """A thousand calls with random numbers of functions and entries, and numbers of all sizes."""
    rng, w = np.random.default_rng(1), library.make()
    room = np.zeros(1000)
    for _ in range(1000):
        given = rng.choice([0.0, 1.0, -1e300, 1e-300, np.nan, np.inf, 3.0], size=64)
        count, size = int(rng.integers(0, 64)), int(rng.integers(0, 200))
        status = library.of("evaluate")(w, int(rng.integers(-3, 12)), pointer(given), count, pointer(room), size)
        assert isinstance(status, int) and library.text(status)


@needs_compiler
def test_null_in_each_place_gives_codes(exported, library):
    """Each function of the header takes null for each of its pointers, and numbers of all sizes, without a crash. A
    null workspace is an error of all functions that have a status."""
    found = with_null_and_random_numbers(exported.folder, library, np.random.default_rng(4))
    assert {"create", "evaluate", "sizes", "mass_matrix", "energy", "copy", "status_text"} <= set(found)
    for name in ("mass_matrix", "energy", "inverse_dynamics", "copy", "evaluate"):
        assert all("null" in library.text(status) for null, status in found[name] if null), name


@needs_compiler
def test_memory_of_the_caller_serves_at_any_address(library, model):
    """A workspace in the caller's memory, which is not aligned, gives the same results; one byte less is refused."""
    size = library.of("memory_size")()
    memory, made = np.full(size + 3, 255, dtype=np.uint8), c_void_p()
    assert library.of("create")(byref(made), memory.ctypes.data + 3, size - 1, 1) != 0
    assert library.of("create")(byref(made), memory.ctypes.data + 3, size, 1) == 0
    given, _ = evaluated(model, "energy", states_of(model)[0])
    own = library.make()
    assert np.array_equal(library.evaluate(made, "energy", given), library.evaluate(own, "energy", given))
    library.of("destroy")(made)  # leaves the memory to the caller


@needs_compiler
def test_eight_threads_share_a_model(library, model):
    """Workspaces of one model in eight threads give the results of one thread, bit for bit."""
    given = [evaluated(model, "inverse_dynamics", state)[0] for state in states_of(model, 8)]
    alone = library.make()
    wanted = [library.evaluate(alone, "inverse_dynamics", x) for x in given]

    def run(x):
        w = library.make()
        return [library.evaluate(w, "inverse_dynamics", x) for _ in range(300)][-1]

    with ThreadPoolExecutor(8) as pool:
        assert all(np.array_equal(a, b) for a, b in zip(pool.map(run, given), wanted))


@needs_compiler
def test_loads_by_time_are_those_of_the_time(tmp_path):
    """A load that is an expression of time acts as it is at the time of the call; steady loads need no time."""
    robot = finger()
    robot.add_point_load("breeze", "finger", force=ls.Expression(["0.3*sin(9*t)", "t*t", "0.1"], "t"))
    model = robot.build()
    made = ls.export(model, tmp_path, ("inverse_dynamics",), name="finger")
    library = Library(compiled(made.folder, COMPILERS[0], "-O1"), "finger", model)
    w, found = library.make(), []
    for t in (0.0, 0.7, 3.0):
        given, wanted = evaluated(model, "inverse_dynamics", states_of(model)[0] | {"t": t})
        found.append(library.evaluate(w, "inverse_dynamics", given))
        assert np.abs(found[-1] - wanted).max() <= ROUNDING * np.abs(wanted).max()
    assert not np.allclose(found[0], found[1]) and not np.allclose(found[1], found[2])


@needs_compiler
def test_functions_of_users_give_the_results_of_the_library(tmp_path):
    """Forces with and without inputs, actuators, laws of springs and joints, and a current, all functions of jax.numpy
    that change with time: the exported folder has their code, and calls it in several threads."""
    model = robot_of_functions().build()
    made = ls.export(model, tmp_path, ("forward_dynamics",), name="users")
    library = Library(compiled(made.folder, COMPILERS[0], "-O0"), "users", model)
    assert sum(path.startswith("functions/") for path in made.files) >= 8
    assert "*.cpp kernels/*.cpp functions/*.cpp -o libusers.so" in (made.folder / "README.md").read_text("utf-8")
    pairs = [evaluated(model, "forward_dynamics", state | {"t": 0.7}) for state in states_of(model, 4)]

    def run(given):
        w = library.make()
        return [library.evaluate(w, "forward_dynamics", given) for _ in range(100)][-1]

    with ThreadPoolExecutor(4) as pool:
        for found, (given, wanted) in zip(pool.map(run, [given for given, _ in pairs]), pairs):
            assert np.abs(found - wanted).max() <= 1e-12 * np.abs(wanted).max()
            without = given.copy()
            without[-model.nu :] = 0.0
            assert np.abs(run(without) - wanted).max() > 1e-3 * np.abs(wanted).max()  # the inputs act


@needs_compiler
def test_finite_elements_under_pressure_give_the_results_of_the_library(tmp_path):
    """A finger of finite elements in some modes, of a nonlinear law, with tendons, chambers and a pressure: states that
    turn it inside out are not among the recorded ones, and its native code is in the folder."""
    from bodies.test_linear_pulls import finger

    model = finger(4).build()
    made = ls.export(model, tmp_path, ("inverse_dynamics", "inverse_dynamics_derivatives"), name="pneu")
    library = Library(compiled(made.folder, COMPILERS[0], "-O0"), "pneu", model)
    w = library.make()
    for state in states_of(model):
        for function in made.functions:
            given, wanted = evaluated(model, function, state)
            found = library.evaluate(w, function, given)
            assert np.isfinite(wanted).all() and np.abs(found - wanted).max() <= 1e-12 * np.abs(wanted).max()


def test_sources_are_of_the_robot_alone(exported):
    """No path of this machine is in the sources, Warp's licence stands beside its headers, and there is nothing to
    download or to import."""
    assert {"finger.h", "finger.cpp", "CMakeLists.txt", "README.md", "warp/LICENSE"} <= set(exported.files)
    assert "*.cpp kernels/*.cpp -o libfinger.so" in (exported.folder / "README.md").read_text(encoding="utf-8")
    for path in exported.files:
        text = (exported.folder / path).read_text(encoding="utf-8")
        assert not re.search(r"const (block|quad)&", text), f"{path}: Clang takes these vectors for aligned ones"
        assert "/src/lissom" not in text and "site-packages" not in text and "@" not in text.split("\n", 1)[0], path
    assert "Apache License" in (exported.folder / "warp/LICENSE").read_text(encoding="utf-8")


@needs_compiler
def test_big_endian_processors_are_refused(exported):
    """The tables are little-endian: compilers for other processors stop with a message."""
    order = "-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__"
    for more, good in (((), True), (order, False)):
        command = [COMPILERS[0], "-std=c++17", "-w", *more, "-fsyntax-only", exported.folder / "finger.cpp"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode == 0) is good and ("little-endian" in done.stderr) is not good


def test_python_functions_are_refused_by_name():
    """What only Python can evaluate is refused with its name and the cure, before anything is written."""
    with_force, with_actuator, with_load = finger(), finger(), finger()
    with_force.add_force("breeze", "finger", lambda t, g, eta: np.zeros(6))
    with_actuator.add_custom_actuator("muscle", lambda q: np.zeros(7))
    with_load.add_point_load("knock", "finger", force=lambda t: (np.tanh(t), 0.0, 0.0))
    for robot, name, cure in (
        (with_force, "breeze", "TracedFunction"),
        (with_actuator, "muscle", "TracedFunction"),
        (with_load, "knock", "expression"),
    ):
        with pytest.raises(ls.ModelError, match=f"robot 'soft finger': export .*{name}.*{cure}"):
            ls.export(robot.build(), "nowhere", SMALL)


def test_wrong_names_are_refused(model, tmp_path):
    """Unknown functions and names that C does not allow are errors with the value."""
    with pytest.raises(ls.ModelError, match=r"functions: must be of forward_dynamics, .*'fly'"):
        ls.export(model, tmp_path, ("fly",))
    for name in ("9lives", "soft finger", "robot", ""):
        with pytest.raises(ls.ModelError, match="name: must be"):
            ls.export(model, tmp_path, SMALL, name=name)


def test_the_command_writes_sources(tmp_path, capsys):
    """`lissom export` writes the folder, and does not overwrite it without --force."""
    ls.save_robot(finger(), tmp_path / "finger.yaml")
    words = ["export", str(tmp_path / "finger.yaml"), "--functions", "energy", "--out", str(tmp_path / "out")]
    assert main(words) == 0 and "soft_finger.h" in capsys.readouterr().out
    assert (tmp_path / "out" / "kernels" / "energy.cpp").exists()
    assert main(words) == 2 and "exists already" in capsys.readouterr().err
    assert main([*words, "--force"]) == 0


def test_recorded_states_have_finite_results():
    """A hollow body that keeps its volume has no shape where the square of a radius would be negative: the states with
    which exports are compared are smaller."""
    primitives = [ls.PrimitiveStretch([[0.0, 0.0, 1.0]]), ls.PrimitiveSource([[0.0, 0.0, 1.0]])]
    motion, robot = ls.KinematicsVolumePreserving(0.1, primitives), ls.Robot("gripper")
    material = ls.HyperelasticNeoHookean(1e6, damping_time=0.02)
    robot.add_link("hand", ls.DeformableBody(motion, ls.DomainAnnulus(0.1, 0.03, 0.02), material, 960.0))
    model = robot.build()
    with pytest.raises(ls.ShapeError, match="not finite"):
        ls.energy(model, [0.0, -0.06], np.zeros(2))
    for state in states_of(model, 8):
        for function in ("energy", "inverse_dynamics", "mass_matrix"):
            assert np.isfinite(evaluated(model, function, state)[1]).all()
