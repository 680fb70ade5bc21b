"""A soft cantilever falls for one second: lissom beside PyElastica and Exudyn, at matched accuracy, in one run.

    python benchmarks/cantilever_drop.py [--tolerance 1e-2 ...]

The rod is 0.5 m long and 1 cm thick in radius, E = 1 MPa, G = E/3, 1000 kg/m³, undamped; it is clamped level and let
go. Each code runs a ladder of ever finer settings, and the first whose tip stays within the tolerance of the reference
gives its cost. The reference is lissom with all six strains of order 16: orders 12 and 14 differ from it by 0.07 and
0.03 mm, a quarter of the step by 0.006 mm, more Gauss points by 0.001 mm, and Exudyn with 128 elements and steps of
0.5 ms by 0.22 mm. Elongation and shear must be of high order, too: with order 1 the tip is 9.6 mm off. PyElastica tends
to a tip 5 mm away, since its sections become thinner when they are stretched. Times are processor times of the run
alone, on one core, the best of three; first calls and imports are outside.
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


def lissom_tip(order: int, stretch: int, dt: float) -> tuple[np.ndarray, float]:
    """Tip (x, z) over time by generalised-α steps of dt, and the time that they take. Bending and torsion are of
    polynomial order `order`, elongation and shear of order `stretch`."""
    import lissom as ls

    turns = {"torsion": order, "bending_y": order, "bending_z": order}
    basis = ls.BasisLegendre(**turns, elongation=stretch, shear_y=stretch, shear_z=stretch)
    material = ls.Material(young=YOUNG, poisson=0.5, density=DENSITY)
    robot = ls.Robot("cantilever", gravity=(0.0, 0.0, -GRAVITY))
    robot.add_link("rod", ls.Rod(length=LENGTH, section=ls.SectionCircle(RADIUS), material=material, basis=basis))
    model = robot.build()
    scheme = ls.generalized_alpha(0.9)
    began = time.process_time()
    motion = ls.simulate(model, DURATION, method=scheme, dt=dt, rtol=1e-4, atol=1e-6, t_eval=TIMES)
    spent = time.process_time() - began
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
    began = time.process_time()
    ea.integrate(ea.PositionVerlet(), system, DURATION, steps, progress_bar=False)
    spent = time.process_time() - began
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
    began = time.process_time()
    mbs.SolveDynamic(settings, solverType=exu.DynamicSolverType.GeneralizedAlpha)
    spent = time.process_time() - began
    rows = np.array(mbs.GetSensorStoredData(sensor))
    return rows[:, [1, 3]], spent


Ladder = list[tuple[Any, ...]]
LADDERS: dict[str, tuple[Callable[..., tuple[np.ndarray, float]], Ladder]] = {
    "lissom": (lissom_tip, [(4, 2, 2e-3), (5, 2, 2e-3), (5, 3, 2e-3), (6, 3, 2e-3), (6, 4, 1e-3), (8, 5, 1e-3),
                            (9, 7, 5e-4), (10, 8, 2e-4)]),
    "PyElastica": (elastica_tip, [(40, 1e-4), (80, 5e-5), (120, 2.5e-5), (160, 2.5e-5), (240, 1e-5)]),
    "Exudyn": (exudyn_tip, [(16, 2e-3), (32, 2e-3), (32, 1e-3), (64, 1e-3), (64, 5e-4), (128, 2.5e-4)]),
}  # fmt: skip
REFERENCE = (16, 16, 1e-4)


def climbed(name: str, reference: np.ndarray, tolerance: float) -> list[tuple[tuple[Any, ...], float, float]]:
    """(setting, error [m], time [s]) of the settings of a code, up to the first within the tolerance [m]."""
    solve, ladder = LADDERS[name]
    found = []
    for setting in ladder:
        tip, _ = solve(*setting)
        error = np.abs(tip - reference).max() if np.isfinite(tip).all() else np.inf
        spent = min(solve(*setting)[1] for _ in range(3))
        print(f"  {name:12s}{setting!s:18s} error {error:.2e} m  {1e3 * spent:9.2f} ms", flush=True)
        found.append((setting, float(error), spent))
        if error <= tolerance:
            break
    return found


def main() -> None:
    """Run the ladders and print a table for each tolerance."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    text = "largest distance of the tip from the reference [m]; several tolerances have a table each"
    parser.add_argument("--tolerance", type=float, nargs="+", default=[1.6e-2, 1e-2], help=text)
    tolerances = parser.parse_args().tolerance
    reference = lissom_tip(*REFERENCE)[0]
    runs = {name: climbed(name, reference, min(tolerances)) for name in LADDERS}
    for tolerance in tolerances:
        needed = {name: next((run for run in found if run[1] <= tolerance), None) for name, found in runs.items()}
        ours = needed["lissom"]
        print(f"\ntip within {tolerance:g} m of the reference, over {DURATION:g} s")
        for name, run in needed.items():
            if run is None:
                print(f"{name:12s}none of its settings")
                continue
            ratio = run[2] / ours[2] if ours else np.nan
            print(f"{name:12s}{run[0]!s:18s} error {run[1]:.1e} m  {1e3 * run[2]:9.2f} ms  {ratio:8.1f} x lissom")


if __name__ == "__main__":
    main()
