"""FMUs of six robots in FMPy: it finds no fault in their descriptions, and its motions are those of the library."""

from pathlib import Path

import numpy as np
import pytest
from exporting.built import needs_compiler
from exporting.test_fmu import flyer

import lissom as ls

fmpy = pytest.importorskip("fmpy", reason="FMPy is not installed")
validation = pytest.importorskip("fmpy.validation", reason="FMPy is not installed")
pytestmark = [pytest.mark.slow, needs_compiler]
SIMPLE = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-O1", "-w")  # compiles in seconds
ROBOTS = Path(__file__).parents[2] / "examples" / "robots"


def rigid_arm():
    """A robot arm of six hinges, which falls under friction-like damping."""
    return ls.load_robot(ROBOTS / "ur10.yaml")


def soft_arm():
    """A soft rod with a tendon."""
    robot = ls.Robot("soft arm")
    silicone = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=5e3)
    rod = ls.Rod(0.4, ls.SectionCircle((0.02, 0.01)), ls.BasisLegendre(bending_y=2, bending_z=2), silicone)
    robot.add_link("arm", rod)
    robot.add_tendon("tendon", "arm", (0.0, 0.009))
    return robot


def four_bar():
    """A crank, a coupler and a rocker, closed by a loop to the world."""
    robot, axis = ls.Robot("four bar"), (0.0, 1.0, 0.0)
    for name, parent, length, at in (("crank", None, 0.1, 0.0), ("coupler", "crank", 0.3, 0.05),
                                     ("rocker", "coupler", 0.25, 0.15)):  # fmt: skip
        place = np.eye(4)
        place[0, 3] = at
        robot.add_link(name, body=ls.RigidBody.cylinder(length, 0.01, density=2700.0), parent=parent,
                       joint=ls.JointRevolute(axis, damping=1e-3), placement=place)  # fmt: skip
    end, ground = np.eye(4), np.eye(4)
    end[0, 3], ground[0, 3] = 0.125, 0.28
    robot.add_loop("pin", "rocker", None, placement_a=end, placement_b=ground, joint=ls.JointRevolute(axis))
    robot.add_joint_actuator("motor", "crank")
    return robot


def cable_driven_manipulator():
    """The soft manipulator of the examples."""
    return ls.load_robot(ROBOTS / "cdm.yaml")


def landing():
    """A foot on a slide that lands on the ground, without sticking."""
    robot, above = ls.Robot("landing"), np.eye(4)
    above[2, 3] = 0.06
    foot = ls.RigidBody.sphere(0.05, density=500.0)
    robot.add_link("foot", body=foot, joint=ls.JointPrismatic((0.0, 0.0, 1.0)), placement=above)
    robot.add_contact("ground", "foot", ls.ShapePlane(), stiffness=2e3, damping=2.0)
    return robot


def _named(kind, model):
    """Names of the variables of coordinates."""
    spans = zip(model.links.names, model.links.q_start, [*model.links.q_start[1:], model.nq])
    return [f"{kind}.{name}[{k}]" for name, first, stop in spans for k in range(stop - first)]


@pytest.mark.filterwarnings("ignore::lissom.errors.RedundancyWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("robot", "version", "has_exchange"),
    [(rigid_arm, "3.0", True), (soft_arm, "2.0", True), (four_bar, "3.0", False),
     (cable_driven_manipulator, "2.0", True), (landing, "3.0", True), (flyer, "3.0", True), (flyer, "2.0", True)],
)  # fmt: skip
def test_fmpy_moves_robots_as_the_library(robot, version, has_exchange, monkeypatch, tmp_path):
    """FMPy validates each FMU; its co-simulation gives the states of `Stepper`, and CVODE on model exchange those of
    `simulate` to the tolerance of both, quaternions included. A closed chain has no model exchange."""
    monkeypatch.setattr("lissom.exporting.building.compiler_flags", lambda _: SIMPLE)
    model = robot().build()
    path = str(ls.export_fmu(model, tmp_path / "robot.fmu", dt=1e-3, version=version))
    assert validation.validate_fmu(path) == []
    start, u, end = model.neutral(), np.full(model.nu, 0.01), 0.2
    if model.n_rows:
        start = ls.assemble(model, np.array([0.6, 0.5, -1.8]))
    names = _named("q", model)
    given = dict(zip(names, start.tolist())) | {f"u.{name}": 0.01 for name in model.inputs.names}
    run = {"stop_time": end, "output_interval": 0.01, "start_values": given, "output": names}
    found = fmpy.simulate_fmu(path, fmi_type="CoSimulation", **run)
    stepper = ls.Stepper(model, 1e-3, q0=start, u=u)
    stepper.step(u, steps=round(end / 1e-3))
    last = np.array([found[name][-1] for name in names])
    assert np.abs(last - stepper.state.q).max() <= 1e-8 * np.abs(stepper.state.q).max()
    about = fmpy.read_model_description(path)
    assert (about.modelExchange is not None) == has_exchange
    if has_exchange:
        found = fmpy.simulate_fmu(path, fmi_type="ModelExchange", solver="CVode", relative_tolerance=1e-8, **run)
        wanted = ls.simulate(model, end, q0=start, u=u, t_eval=found["time"], rtol=1e-9, atol=1e-11)
        q = np.stack([found[name] for name in names], axis=1)
        assert np.abs(q - wanted.q).max() <= 2e-6 * np.abs(wanted.q).max()
