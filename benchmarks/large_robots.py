"""Chains of many rigid links, and of rods, fall for half a second: lissom beside Exudyn, at equal errors, in one run.

    python benchmarks/large_robots.py [COUNT ...]

Links of 1 kg and 0.2 m hang on each other by hinges about y and z in turn; soft rods of 0.2 m continue each other. A
chain starts level and at rest. Each code goes through ever finer settings until the end of the tenth link stays within
0.1 mm, that of the tenth rod within 5 mm, of the reference, which is lissom with finer steps, and with higher orders of
strain in the rods. Exudyn takes redundant coordinates, with hinges as constraints and geometrically exact beams of two
nodes, and a sparse factorisation; lissom minimal coordinates, eliminated link by link. Times are of the run alone;
first calls and imports are outside.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

DURATION, LENGTH, WIDTH, GRAVITY = 0.5, 0.2, 0.02, 9.81
YOUNG, SHEAR, DENSITY, RADIUS = 1e6, 1e6 / 3.0, 1000.0, 0.01  # of rods
ROWS = 25  # times that are compared
LOOKED_AT = 10  # the link whose beginning is
INERTIA = np.array([2 * WIDTH**2, LENGTH**2 + WIDTH**2, LENGTH**2 + WIDTH**2]) / 12.0
Run = Callable[..., tuple[np.ndarray, float]]  # where the end of the tenth is over time, by setting, and the time taken


def lissom_links(count: int) -> Run:
    """Links in lissom, by the number of steps."""
    import lissom as ls

    robot = ls.Robot(f"chain of {count}", gravity=(0.0, 0.0, -GRAVITY))
    end = np.eye(4)
    end[0, 3] = LENGTH
    body = ls.RigidBody(1.0, (0.5 * LENGTH, 0.0, 0.0), np.diag(INERTIA))
    for k in range(count):
        joint = ls.JointRevolute((0, 1, 0) if k % 2 == 0 else (0, 0, 1))
        robot.add_link(f"link{k}", body, joint, parent=f"link{k - 1}" if k else None, placement=end if k else None)
    model = robot.build()
    return lambda steps: lissom_run(model, f"link{LOOKED_AT}", steps)


def lissom_rods(count: int) -> Run:
    """Rods in lissom, by the order of bending strains and the number of steps."""
    import lissom as ls

    def run(order: int, steps: int) -> tuple[np.ndarray, float]:
        robot = ls.Robot(f"{count} rods", gravity=(0.0, 0.0, -GRAVITY))
        basis = ls.BasisLegendre(torsion=0, bending_y=order, bending_z=order, elongation=0, shear_y=0, shear_z=0)
        material = ls.Material(young=YOUNG, poisson=0.5, density=DENSITY)
        rod = ls.Rod(LENGTH, ls.SectionCircle(RADIUS), basis, material)
        for k in range(count):
            robot.add_link(f"rod{k}", rod, parent=f"rod{k - 1}" if k else None)
        return lissom_run(robot.build(), f"rod{LOOKED_AT}", steps)

    return run


def lissom_run(model: Any, link: str, steps: int) -> tuple[np.ndarray, float]:
    """Where a link begins over time, and the time taken."""
    import lissom as ls

    times = np.linspace(0.0, DURATION, ROWS + 1)
    ls.simulate(model, DURATION / steps, method="generalized_alpha", dt=DURATION / steps)
    began = time.perf_counter()
    motion = ls.simulate(
        model, DURATION, method="generalized_alpha", dt=DURATION / steps, rtol=1e-6, atol=1e-8, t_eval=times
    )
    spent = time.perf_counter() - began
    return ls.frame_pose(model, motion.q, link, s=0.0)[:, :3, 3], spent


def exudyn_links(count: int) -> Run:
    """Links in Exudyn, by the number of steps."""
    import exudyn as exu
    import exudyn.utilities as eu

    def run(steps: int) -> tuple[np.ndarray, float]:
        mbs = exu.SystemContainer().AddSystem()
        before, sensor = mbs.CreateGround(), 0
        inertia = eu.RigidBodyInertia(mass=1.0, inertiaTensor=np.diag(INERTIA))
        for k in range(count):
            here = LENGTH * k
            body = mbs.CreateRigidBody(
                inertia=inertia, referencePosition=[here + 0.5 * LENGTH, 0.0, 0.0], gravity=[0.0, 0.0, -GRAVITY]
            )
            axis = [0, 1, 0] if k % 2 == 0 else [0, 0, 1]
            mbs.CreateRevoluteJoint(
                itemNumbers=[before, body], position=[here, 0.0, 0.0], axis=axis, useGlobalFrame=True
            )
            before = body
            if k == LOOKED_AT - 1:
                kind = exu.OutputVariableType.Position
                place = [0.5 * LENGTH, 0.0, 0.0]
                sensor = mbs.AddSensor(
                    eu.SensorBody(bodyNumber=body, localPosition=place, outputVariableType=kind, storeInternal=True)
                )
        return exudyn_run(mbs, sensor, steps)

    return run


def exudyn_rods(count: int) -> Run:
    """Rods in Exudyn, by the number of beams in each and that of steps."""
    import exudyn as exu
    import exudyn.utilities as eu

    area, bending = np.pi * RADIUS**2, np.pi * RADIUS**4 / 4.0
    section = exu.BeamSection()
    section.stiffnessMatrix = np.diag(
        [YOUNG * area, SHEAR * area, SHEAR * area, SHEAR * 2 * bending, YOUNG * bending, YOUNG * bending]
    )
    section.inertia = DENSITY * np.diag([2 * bending, bending, bending])
    section.massPerLength = DENSITY * area

    def run(beams: int, steps: int) -> tuple[np.ndarray, float]:
        mbs = exu.SystemContainer().AddSystem()
        places = np.linspace(0.0, LENGTH * count, beams * count + 1)
        nodes = [mbs.AddNode(eu.NodeRigidBodyRotVecLG(referenceCoordinates=[x, 0, 0, 0, 0, 0])) for x in places]
        for ends in pairwise(nodes):
            beam = mbs.AddObject(
                eu.ObjectBeamGeometricallyExact(nodeNumbers=list(ends), length=LENGTH / beams, sectionData=section)
            )
            mass = mbs.AddMarker(eu.MarkerBodyMass(bodyNumber=beam))
            mbs.AddLoad(eu.LoadMassProportional(markerNumber=mass, loadVector=[0, 0, -GRAVITY]))
        fixed = mbs.AddMarker(eu.MarkerNodeCoordinate(nodeNumber=mbs.AddNode(eu.NodePointGround()), coordinate=0))
        for coordinate in range(6):
            marker = mbs.AddMarker(eu.MarkerNodeCoordinate(nodeNumber=nodes[0], coordinate=coordinate))
            mbs.AddObject(eu.CoordinateConstraint(markerNumbers=[fixed, marker]))
        kind = exu.OutputVariableType.Position
        sensor = mbs.AddSensor(
            eu.SensorNode(nodeNumber=nodes[beams * LOOKED_AT], storeInternal=True, outputVariableType=kind)
        )
        return exudyn_run(mbs, sensor, steps)

    return run


def exudyn_run(mbs: Any, sensor: Any, steps: int) -> tuple[np.ndarray, float]:
    """Positions of a sensor over time, and the time of the run."""
    import exudyn as exu

    mbs.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = steps, DURATION
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.newton.useModifiedNewton = True
    settings.timeIntegration.generalizedAlpha.spectralRadius = 0.8
    settings.linearSolverType = exu.LinearSolverType.EigenSparse
    settings.solutionSettings.writeSolutionToFile = False
    settings.solutionSettings.sensorsWritePeriod = DURATION / ROWS
    began = time.perf_counter()
    mbs.SolveDynamic(settings)
    spent = time.perf_counter() - began
    return mbs.GetSensorStoredData(sensor)[:, 1:4], spent


Settings = list[tuple[int, ...]]
STEPS: Settings = [(steps,) for steps in (25, 50, 100, 200, 400, 800, 1600)]
ORDERS: Settings = [(1, 25), (1, 50), (2, 50), (2, 100), (2, 200), (3, 200), (3, 400)]  # of strains, and steps
BEAMS: Settings = [(4, 50), (4, 100), (4, 200), (8, 200), (8, 400)]  # in a rod, and steps


@dataclass(frozen=True)
class Chains:
    """A comparison: numbers of bodies in a chain, the error allowed [m], the setting of the reference, and the runs."""

    counts: tuple[int, ...]
    tolerance: float
    reference: tuple[int, ...]
    codes: tuple[tuple[Callable[[int], Run], Settings], ...]  # lissom, Exudyn


CHAINS = {
    "links": Chains((30, 100, 300), 1e-4, (6400,), ((lissom_links, STEPS), (exudyn_links, STEPS))),
    "rods": Chains((30, 60), 5e-3, (4, 1600), ((lissom_rods, ORDERS), (exudyn_rods, BEAMS))),
}


def needed(
    run: Run, settings: Settings, reference: np.ndarray, tolerance: float
) -> tuple[tuple[int, ...], float, float]:
    """The faster one of the first two settings that keep within a tolerance, the error it leaves [m], and the least of
    two times [s]: the coarsest steps may take the most iterations."""
    found = []
    for setting in settings:
        error = np.abs(run(*setting)[0] - reference).max()
        if error <= tolerance:
            found.append((min(run(*setting)[1] for _ in range(2)), setting, error))
        if len(found) == 2:
            break
    if not found:
        raise RuntimeError(f"{settings[-1]} leaves {error:.1e} m")
    spent, setting, error = min(found)
    return setting, error, spent


def main() -> None:
    """Print a table of each kind, and to which power of the number of links the times grow."""
    warnings.simplefilter("ignore")  # settings that Exudyn has renamed
    asked = tuple(map(int, sys.argv[1:]))
    for kind, chains in CHAINS.items():
        columns = "".join(f"{name:>12s}{'setting':>12s}{'error':>9s}" for name in ("lissom", "Exudyn"))
        print(f"{kind:>6s}{columns}{'ratio':>8s}")
        counts, times = asked or chains.counts, []
        for count in counts:
            runs = [make(count) for make, _ in chains.codes]
            reference = runs[0](*chains.reference)[0]
            row, text = [], f"{count:6d}"
            for run, (_, settings) in zip(runs, chains.codes):
                setting, error, spent = needed(run, settings, reference, chains.tolerance)
                row.append(spent)
                text += f"{spent:10.3f} s{', '.join(map(str, setting)):>12s}{error:9.1e}"
            times.append(row)
            print(f"{text}{row[1] / row[0]:8.1f}", flush=True)
        if len(counts) > 1:
            slopes = np.log(np.array(times[-1]) / times[-2]) / np.log(counts[-1] / counts[-2])
            print(f"grows with {kind} to the power {slopes[0]:.2f} (lissom) and {slopes[1]:.2f} (Exudyn) at the end")


if __name__ == "__main__":
    main()
