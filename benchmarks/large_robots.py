"""Chains of many rigid links fall for half a second: lissom beside Exudyn, at equal errors, in one run.

    python benchmarks/large_robots.py [LINKS ...]

Links of 1 kg and 0.2 m hang on each other by hinges about y and z in turn; the chain starts level and at rest. Each
code halves its steps until the end of the tenth link stays within 0.1 mm of the reference, which is lissom with steps
of a quarter of its finest. Exudyn takes redundant coordinates with joints as constraints and a sparse factorisation;
lissom minimal coordinates, eliminated link by link. Times are of the run alone; first calls and imports are outside.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

COUNTS = (30, 100, 300)
DURATION, TOLERANCE, LENGTH, WIDTH, GRAVITY = 0.5, 1e-4, 0.2, 0.02, 9.81
STEPS = (25, 50, 100, 200, 400, 800, 1600)
ROWS = 25  # times that are compared
LOOKED_AT = 10  # the link whose hinge is
INERTIA = np.array([2 * WIDTH**2, LENGTH**2 + WIDTH**2, LENGTH**2 + WIDTH**2]) / 12.0


def lissom_chain(count: int) -> Callable[[int], tuple[np.ndarray, float]]:
    """Where the end of the tenth link is over time with so many steps, and the time that takes."""
    import lissom as ls

    robot = ls.Robot(f"chain of {count}", gravity=(0.0, 0.0, -GRAVITY))
    end = np.eye(4)
    end[0, 3] = LENGTH
    body = ls.RigidBody(1.0, (0.5 * LENGTH, 0.0, 0.0), np.diag(INERTIA))
    for k in range(count):
        joint = ls.JointRevolute((0, 1, 0) if k % 2 == 0 else (0, 0, 1))
        robot.add_link(f"link{k}", body, joint, parent=f"link{k - 1}" if k else None, placement=end if k else None)
    model = robot.build()

    def run(steps: int) -> tuple[np.ndarray, float]:
        times = np.linspace(0.0, DURATION, ROWS + 1)
        began = time.perf_counter()
        motion = ls.simulate(
            model, DURATION, method="generalized_alpha", dt=DURATION / steps, rtol=1e-6, atol=1e-8, t_eval=times
        )
        spent = time.perf_counter() - began
        return ls.frame_pose(model, motion.q, f"link{LOOKED_AT}")[:, :3, 3], spent

    return run


def exudyn_chain(count: int) -> Callable[[int], tuple[np.ndarray, float]]:
    """The same in Exudyn."""
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

    return run


def needed(run: Callable[[int], tuple[np.ndarray, float]], reference: np.ndarray) -> tuple[int, float, float]:
    """Steps that keep within the tolerance, the error they leave [m], and the least of three times [s]."""
    for steps in STEPS:
        error = np.abs(run(steps)[0] - reference).max()
        if error <= TOLERANCE:
            return steps, error, min(run(steps)[1] for _ in range(3))
    raise RuntimeError(f"{STEPS[-1]} steps leave {error:.1e} m")


def main() -> None:
    """Print the table, and to which power of the number of links the times grow."""
    warnings.simplefilter("ignore")  # settings that Exudyn has renamed
    counts = tuple(map(int, sys.argv[1:])) or COUNTS
    print(
        f"{'links':>6s}{'lissom':>12s}{'steps':>7s}{'error':>9s}{'Exudyn':>12s}{'steps':>7s}{'error':>9s}{'ratio':>8s}"
    )
    times = []
    for count in counts:
        ours = lissom_chain(count)
        reference = ours(4 * STEPS[-1])[0]
        row, text = [], f"{count:6d}"
        for run in (ours, exudyn_chain(count)):
            steps, error, spent = needed(run, reference)
            row.append(spent)
            text += f"{spent:10.3f} s{steps:7d}{error:9.1e}"
        times.append(row)
        print(f"{text}{row[1] / row[0]:8.1f}", flush=True)
    if len(counts) > 1:
        slopes = np.log(np.array(times[-1]) / times[-2]) / np.log(counts[-1] / counts[-2])
        print(f"grows with links to the power {slopes[0]:.2f} (lissom) and {slopes[1]:.2f} (Exudyn) at the end")


if __name__ == "__main__":
    main()
