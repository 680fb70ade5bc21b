"""FMUs of robots: their description, their files, and motions by the C functions of FMI 3.0."""

import ctypes
import zipfile
from ctypes import byref, c_bool, c_char_p, c_double, c_size_t, c_uint, c_void_p
from xml.etree import ElementTree as Xml

import numpy as np
import pytest
from exporting.built import finger, needs_compiler

import lissom as ls


@pytest.mark.slow
@needs_compiler
def test_an_fmu_moves_like_a_stepper(tmp_path):
    """The FMU of the finger, called as FMI 3.0 says: the variables of its description have the values of `Stepper`, a
    stored state goes on as the first time, and a wrong token or variable is refused."""
    model = finger().build()
    path = ls.export_fmu(model, tmp_path / "finger.fmu", dt=2e-3, name="finger")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
        names = archive.namelist()
    assert "modelDescription.xml" in names and "sources/warp/LICENSE" in names
    root = Xml.parse(tmp_path / "modelDescription.xml").getroot()
    references = {one.get("name"): int(one.get("valueReference")) for one in root.find("ModelVariables")}
    assert root.get("fmiVersion") == "3.0" and root.find("CoSimulation").get("modelIdentifier") == "finger"
    (binary,) = [name for name in names if name.startswith("binaries/")]
    lib, nothing = ctypes.CDLL(str(tmp_path / binary)), c_void_p()
    lib.fmi3GetVersion.restype = c_char_p
    lib.fmi3InstantiateCoSimulation.restype = c_void_p
    assert lib.fmi3GetVersion() == b"3.0"

    def instance(token):
        flags, sizes = [c_bool(False)] * 4, [nothing, c_size_t(0), nothing, nothing, nothing]
        return lib.fmi3InstantiateCoSimulation(c_char_p(b"x"), c_char_p(token), nothing, *flags, *sizes)

    assert instance(b"another") is None
    x = c_void_p(instance(root.get("instantiationToken").encode()))

    def put(name, value):
        given, numbers = (c_uint * 1)(references.get(name, 9)), (c_double * 1)(value)
        return lib.fmi3SetFloat64(x, given, c_size_t(1), numbers, c_size_t(1))

    def read(found):
        given, numbers = (c_uint * len(found))(*(references[name] for name in found)), (c_double * len(found))()
        assert lib.fmi3GetFloat64(x, given, c_size_t(len(found)), numbers, c_size_t(len(found))) == 0
        return np.array(numbers)

    def step(t):
        flags = [byref(c_bool()) for _ in range(3)]
        return lib.fmi3DoStep(x, c_double(t), c_double(1e-2), c_bool(False), *flags, byref(c_double()))

    u = np.array([2.0, 0.0, 0.01])
    start = 0.1 * model.dofs.scale
    for kind, keys, values in (("u", model.inputs.names, u), ("q", _coordinates(model), start)):
        assert all(put(f"{kind}.{name}", value) == 0 for name, value in zip(keys, values))
    assert put("nothing", 1.0) != 0 and put("time", 1.0) != 0 and put("step_size", -1.0) != 0
    begin = (c_bool(False), c_double(0.0), c_double(0.0), c_bool(False), c_double(0.0))
    assert lib.fmi3EnterInitializationMode(x, *begin) == 0 and lib.fmi3ExitInitializationMode(x) == 0
    stepper = ls.Stepper(model, 2e-3, q0=start, u=u)
    for k in range(10):
        assert step(1e-2 * k) == 0
        stepper.step(u, steps=5)
    found = read([f"q.{name}" for name in _coordinates(model)])
    assert np.abs(found - stepper.state.q).max() <= 1e-9 * np.abs(stepper.state.q).max()
    tip = ls.frame_pose(model, stepper.state.q, "tip")[:3, 3]
    assert np.abs(read([f"position.tip.{axis}" for axis in "xyz"]) - tip).max() <= 1e-9
    kept, after = c_void_p(), []
    assert lib.fmi3GetFMUState(x, byref(kept)) == 0
    for _ in range(2):
        assert step(0.1) == 0
        after.append(read([f"v.{name}" for name in _coordinates(model)]))
        assert lib.fmi3SetFMUState(x, kept) == 0
    assert np.array_equal(*after) and step(0.3) != 0
    assert lib.fmi3FreeFMUState(x, byref(kept)) == 0
    lib.fmi3FreeInstance(x)


def _coordinates(model):
    """Names of the coordinates of the finger, which has as many velocities."""
    return ["palm[0]", *(f"finger[{k}]" for k in range(model.nq - 1))]


def test_an_fmu_needs_a_compiler(monkeypatch, tmp_path):
    """Without a compiler the error says which one is needed, before anything is written."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(ls.ModelError, match=r"needs a C\+\+ compiler .*CXX"):
        ls.export_fmu(finger().build(), tmp_path / "finger.fmu")
    with pytest.raises(ls.ModelError, match="dt: must be > 0"):
        ls.export_fmu(finger().build(), tmp_path / "finger.fmu", dt=0.0)
    assert not list(tmp_path.iterdir())
