"""A soft cantilever falls for one second: lissom beside PyElastica and Exudyn, at matched accuracy, in one run.

    python benchmarks/cantilever_drop.py [--tolerance 1e-2]

The rod is 0.5 m long and 1 cm thick in radius, E = 1 MPa, G = E/3, 1000 kg/m³, undamped; it is clamped level and let
go. Each code runs a ladder of ever finer settings, and the first whose tip stays within the tolerance of the reference
gives its cost. The reference is lissom with strains of order 12; all three codes tend towards it. Times are of
the run alone, the best of three; first calls and imports are outside.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

LENGTH, RADIUS, YOUNG, DENSITY, GRAVITY, DURATION = 0.5, 0.01, 1e6, 1000.0, 9.81, 1.0
SHEAR = YOUNG / 3.0
TIMES = np.linspace(0.0, DURATION, 101)
AREA, INERTIA = np.pi * RADIUS**2, np.pi * RADIUS**4 / 4.0


def lissom_tip(order: int, dt: float) -> tuple[np.ndarray, float]:
    """Tip (x, z) over time with strains of polynomial order `order`, by generalised-α steps of dt; and its time."""
    import lissom as ls

    basis = ls.BasisLegendre(torsion=order, bending_y=order, bending_z=order, elongation=1, shear_y=1, shear_z=1)
    material = ls.Material(young=YOUNG, poisson=0.5, density=DENSITY)
    robot = ls.Robot("cantilever", gravity=(0.0, 0.0, -GRAVITY))
    robot.add_link("rod", ls.Rod(length=LENGTH, section=ls.SectionCircle(RADIUS), material=material, basis=basis))
    model = robot.build()
    scheme = ls.generalized_alpha(0.9)
    began = time.perf_counter()
    motion = ls.simulate(model, DURATION, method=scheme, dt=dt, rtol=1e-4, atol=1e-6, t_eval=TIMES)
    spent = time.perf_counter() - began
    return ls.frame_pose(model, motion.q, "rod")[:, [0, 2], 3], spent


def elastica_tip(elements: int, dt: float) -> tuple[np.ndarray, float]:
    """The same in PyElastica, with its position Verlet steps."""
    import elastica as ea

    class System(ea.BaseSystemCollection, ea.Constraints, ea.Forcing, ea.CallBacks):
        """The system of PyElastica, with the features that the run needs."""

    steps = round(DURATION / dt)
    tip: list[np.ndarray] = []

    class Record(ea.CallBackBaseClass):
        """Keeps the tip at the wanted times."""

        def make_callback(self, system: Any, time: float, current_step: int) -> None:
            if current_step % (steps // 100) == 0:
                tip.append(system.position_collection[[0, 2], -1].copy())

    system = System()
    rod = ea.CosseratRod.straight_rod(
        elements, np.zeros(3), np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0]), LENGTH, RADIUS, DENSITY,
        youngs_modulus=YOUNG, shear_modulus=SHEAR,
    )  # fmt: skip
    system.append(rod)
    system.constrain(rod).using(ea.OneEndFixedBC, constrained_position_idx=(0,), constrained_director_idx=(0,))
    system.add_forcing_to(rod).using(ea.GravityForces, acc_gravity=np.array([0.0, 0.0, -GRAVITY]))
    system.collect_diagnostics(rod).using(Record)
    system.finalize()
    began = time.perf_counter()
    ea.integrate(ea.PositionVerlet(), system, DURATION, steps, progress_bar=False)
    spent = time.perf_counter() - began
    return np.array(tip)[:101], spent


def exudyn_tip(elements: int, dt: float) -> tuple[np.ndarray, float]:
    """The same in Exudyn, with geometrically exact beams of two nodes and its generalised-α steps."""
    import exudyn as exu
    import exudyn.utilities as eu

    container = exu.SystemContainer()
    mbs = container.AddSystem()
    shear, rho = SHEAR * AREA, DENSITY
    section = exu.BeamSection()
    section.stiffnessMatrix = np.diag(
        [YOUNG * AREA, shear, shear, SHEAR * 2 * INERTIA, YOUNG * INERTIA, YOUNG * INERTIA]
    )
    section.inertia = rho * np.diag([2 * INERTIA, INERTIA, INERTIA])
    section.massPerLength = rho * AREA
    nodes = []
    for x in np.linspace(0.0, LENGTH, elements + 1):
        nodes.append(mbs.AddNode(eu.NodeRigidBodyRotVecLG(referenceCoordinates=[x, 0, 0, 0, 0, 0])))
    for one, two in pairwise(nodes):
        mbs.AddObject(
            eu.ObjectBeamGeometricallyExact(nodeNumbers=[one, two], length=LENGTH / elements, sectionData=section)
        )
        beam = mbs.systemData.NumberOfObjects() - 1
        mass = mbs.AddMarker(eu.MarkerBodyMass(bodyNumber=beam))
        mbs.AddLoad(eu.LoadMassProportional(markerNumber=mass, loadVector=[0, 0, -GRAVITY]))
    ground = mbs.AddNode(eu.NodePointGround())
    fixed = mbs.AddMarker(eu.MarkerNodeCoordinate(nodeNumber=ground, coordinate=0))
    for coordinate in range(6):
        marker = mbs.AddMarker(eu.MarkerNodeCoordinate(nodeNumber=nodes[0], coordinate=coordinate))
        mbs.AddObject(eu.CoordinateConstraint(markerNumbers=[fixed, marker]))
    sensor = mbs.AddSensor(eu.SensorNode(nodeNumber=nodes[-1], storeInternal=True,
                                         outputVariableType=exu.OutputVariableType.Position))  # fmt: skip
    mbs.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps = round(DURATION / dt)
    settings.timeIntegration.endTime = DURATION
    settings.timeIntegration.generalizedAlpha.spectralRadius = 0.9
    settings.solutionSettings.writeSolutionToFile = False
    settings.solutionSettings.sensorsWritePeriod = DURATION / 100
    settings.timeIntegration.verboseMode = 0
    settings.linearSolverType = exu.LinearSolverType.EigenSparse
    began = time.perf_counter()
    mbs.SolveDynamic(settings, solverType=exu.DynamicSolverType.GeneralizedAlpha)
    spent = time.perf_counter() - began
    rows = np.array(mbs.GetSensorStoredData(sensor))
    return rows[:, [1, 3]], spent


LADDERS: dict[str, tuple[Callable[[int, float], tuple[np.ndarray, float]], list[tuple[int, float]]]] = {
    "lissom": (lissom_tip, [(4, 2e-3), (5, 2e-3), (6, 2e-3), (6, 1e-3), (7, 1e-3), (8, 5e-4), (9, 2e-4)]),
    "PyElastica": (elastica_tip, [(40, 1e-4), (80, 5e-5), (120, 2.5e-5), (160, 2.5e-5), (240, 1e-5)]),
    "Exudyn": (exudyn_tip, [(16, 2e-3), (32, 2e-3), (32, 1e-3), (64, 1e-3), (64, 5e-4), (128, 2.5e-4)]),
}
REFERENCE = (12, 1e-4)


def main() -> None:
    """Run the ladders and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--tolerance", type=float, default=1e-2, help="largest distance of the tip from the reference [m]"
    )
    tolerance = parser.parse_args().tolerance
    reference = lissom_tip(*REFERENCE)[0]
    needed = {}
    for name, (solve, ladder) in LADDERS.items():
        for setting in ladder:
            tip, spent = solve(*setting)
            error = np.abs(tip - reference).max() if np.isfinite(tip).all() else np.inf
            print(f"  {name:12s}{setting!s:16s} error {error:.2e} m  {1e3 * spent:9.2f} ms")
            if error <= tolerance:
                needed[name] = (setting, error, min(solve(*setting)[1] for _ in range(3)))
                break
    print(f"\ntip within {tolerance:g} m of the reference, over {DURATION:g} s")
    for name, (setting, error, spent) in needed.items():
        ratio = spent / needed["lissom"][2] if "lissom" in needed else np.nan
        print(f"{name:12s}{setting!s:16s} error {error:.1e} m  {1e3 * spent:9.2f} ms  {ratio:8.1f} x lissom")


if __name__ == "__main__":
    main()
