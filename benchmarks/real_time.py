"""Steps of exported robots at a fixed rate: latest completions and misses of a loop at 1 kHz, in C and in Python.

    python benchmarks/real_time.py                      # all robots, ten seconds each, idle and under load
    python benchmarks/real_time.py cdm --seconds 60 --core 1 --rate 500

A program in C runs the export: pinned to one core, with its memory locked, and by SCHED_FIFO where the system allows
it. Every period it wakes up, takes one step of the period's size under a sinusoidal input, and goes to sleep until the
next period begins. "step" is the median and "longest" the maximum of the step alone. "time" is the median from the
begin of the period to the end of the step, with the delay of the wake-up; beside it are its 99.9 % quantile and its
maximum. A miss is a step that ends after its period. `ls.Stepper` does the same in Python. "load" keeps the other cores
busy with products of large matrices.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import lissom as ls
from lissom.exporting.building import find_compiler

ROBOTS = Path(__file__).parents[1] / "examples" / "robots"
_PROGRAM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include "bench_robot.h"

static int compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char** argv) {
    const double seconds = atof(argv[1]), period = atof(argv[2]), size = atof(argv[4]);
    const int core = atoi(argv[3]), count = (int)(seconds / period);
    static double u[BENCH_ROBOT_NU + 1], q[BENCH_ROBOT_NQ], v[BENCH_ROBOT_NV];
    double* times = malloc(sizeof(double) * (size_t)count);
    double* alone = malloc(sizeof(double) * (size_t)count);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof(set), &set);
    const struct sched_param priority = {80};
    const int is_fifo = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
    const int is_locked = mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
    bench_robot_workspace* w = NULL;
    int status = bench_robot_create(&w, NULL, 0, BENCH_ROBOT_ABI_VERSION);
    for (int k = 0; k < BENCH_ROBOT_NQ; ++k)
        q[k] = argc > 5 + k ? atof(argv[5 + k]) : 0.0;
    status = status ? status : bench_robot_start(w, 0.0, q, v, NULL);
    int missed = 0, taken = 0;
    double begin = now() + 0.01;
    struct timespec at;
    for (int k = 0; k < count && !status; ++k) {
        at.tv_sec = (time_t)begin;
        at.tv_nsec = (long)(1e9 * (begin - (double)at.tv_sec));
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
        }
        const double woken = now();
        for (int j = 0; j < BENCH_ROBOT_NU; ++j)
            u[j] = size * (0.5 - 0.5 * cos(6.283185307179586 * period * k + 2.0 * j));
        status = bench_robot_step(w, period, u);
        const double end = now();
        times[taken] = end - begin;
        alone[taken++] = end - woken;
        missed += end > begin + period;
        begin += period;
        while (begin < end)  /* periods that a late step has used up */
            begin += period;
    }
    if (status) {
        fprintf(stderr, "%s after %d steps\n", bench_robot_status_text(status), taken);
        return 1;
    }
    qsort(times, (size_t)taken, sizeof(double), compare);
    qsort(alone, (size_t)taken, sizeof(double), compare);
    printf("%.9g %.9g %.9g %.9g %.9g %d %d %d\n", alone[taken / 2], alone[taken - 1], times[taken / 2],
           times[(int)(0.999 * taken)], times[taken - 1], missed, is_fifo, is_locked);
    bench_robot_destroy(w);
    return 0;
}
"""


def cdm() -> tuple[ls.Robot, float]:
    """The cable-driven manipulator: 24 strain coordinates."""
    return ls.load_robot(ROBOTS / "cdm.yaml"), 2.0


def finger_on_arm() -> tuple[ls.Robot, float]:
    """A robot arm of seven hinges with a soft finger, which two tendons bend."""
    robot, place = ls.Robot("7R with a soft finger"), np.eye(4)
    parent: str | None = None
    for k in range(7):
        axis = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0))[k % 2]
        name, length = f"link {k + 1}", 0.25 - 0.02 * k
        robot.add_link(name, body=ls.RigidBody.cylinder(length, 0.04 - 0.003 * k, density=2000.0), parent=parent,
                       joint=ls.JointRevolute(axis, stiffness=200.0, damping=5.0), placement=place.copy())  # fmt: skip
        parent, place[0, 3] = name, 0.5 * length
    rubber = ls.Material(young=5e5, poisson=0.5, density=1100.0, viscosity=500.0)
    basis = ls.BasisLegendre(bending_y=2, bending_z=2, torsion=0)
    robot.add_link(
        "finger", ls.Rod(0.12, ls.SectionCircle((0.01, 0.006)), basis, rubber), parent=parent, placement=place
    )
    for k, side in enumerate((1.0, -1.0)):
        robot.add_tendon(f"tendon {k}", "finger", offset=(0.0, 0.005 * side))
    return robot, 2.0


def gripper() -> tuple[ls.Robot, float]:
    """Three soft fingers that close around a ball with contact and friction; the ball hangs from a spring."""
    robot, middle = ls.Robot("gripper"), np.eye(4)
    middle[2, 3] = -0.087
    slide = ls.JointPrismatic((0.0, 0.0, 1.0), stiffness=50.0, damping=0.5)
    robot.add_link("ball", ls.RigidBody.sphere(0.03, density=300.0), slide, placement=middle)
    silicone = ls.Material(young=1e6, poisson=0.5, density=1100.0, viscosity=3e3)
    for k in range(3):
        angle, g = 2 * np.pi * k / 3, np.eye(4)
        inwards, down = -np.array([np.cos(angle), np.sin(angle), 0.0]), np.array([0.0, 0.0, -1.0])
        g[:3] = np.column_stack([down, inwards, np.cross(down, inwards), -0.04 * inwards])
        name = f"finger {k + 1}"
        basis = ls.BasisLegendre(bending_y=2, bending_z=2)
        robot.add_link(name, body=ls.Rod(0.11, ls.SectionCircle((0.009, 0.006)), basis, silicone), placement=g)
        robot.add_tendon(f"tendon {k + 1}", name, offset=(0.005, 0.0))
        robot.add_contact(f"grip {k + 1}", name, ls.ShapeSphere(0.03), on="ball", stiffness=1e4, exponent=1.5,
                          damping=10.0, friction=0.8, slip_speed=1e-3)  # fmt: skip
    return robot, 2.5


def parallel() -> tuple[ls.Robot, float]:
    """Two cranks that carry a pen by two rods: a closed loop, driven by two motors."""
    robot, axis = ls.Robot("five bar"), (0.0, 0.0, 1.0)
    for side, turn in (("left", 2.2), ("right", 0.9)):
        base, at_end = np.eye(4), np.eye(4)
        base[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
        base[0, 3], at_end[0, 3] = -0.1 if side == "left" else 0.1, 0.1
        for part, length, parent, place in (("crank", 0.2, None, base), ("rod", 0.3, f"{side} crank", at_end)):
            joint = ls.JointRevolute(axis, damping=1e-2, stiffness=0.5 if part == "crank" else 0.0)
            body = ls.RigidBody.cylinder(length, 0.01, density=2700.0)
            robot.add_link(f"{side} {part}", body, joint, parent=parent, placement=place)
        robot.add_joint_actuator(f"{side} motor", f"{side} crank")
    end = np.eye(4)
    end[0, 3] = 0.15
    robot.add_loop("pen", "left rod", "right rod", placement_a=end, placement_b=end, joint=ls.JointRevolute(axis))
    return robot, 0.05


KNOWN: dict[str, Callable[[], tuple[ls.Robot, float]]] = {
    "cdm": cdm, "finger_on_arm": finger_on_arm, "gripper": gripper, "parallel": parallel,
}  # fmt: skip


@contextmanager
def load(core: int):
    """Keep all cores but one busy."""
    code = "import numpy as np\nA = np.random.rand(700, 700)\nwhile True:\n    B = A @ A\n    A = B / B.max()"
    others = [k for k in range(os.cpu_count() or 1) if k != core]
    started = [subprocess.Popen(["taskset", "-c", str(k), sys.executable, "-c", code]) for k in others]
    try:
        time.sleep(1.0)
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()


def start_of(model: ls.Model) -> np.ndarray:
    """A configuration in which loops are closed."""
    if not model.n_rows:
        return model.neutral()
    return ls.assemble(model, np.array([0.0, -1.0, 0.0, 1.0]))  # the pen in front of both cranks


def in_c(program: Path, model: ls.Model, size: float, arguments: argparse.Namespace) -> tuple[list[float], bool, bool]:
    """Times [s] and the number of misses of the program, and whether it had a real-time priority and locked memory."""
    given = [arguments.seconds, 1.0 / arguments.rate, arguments.core, size, *start_of(model).tolist()]
    done = subprocess.run([str(program), *map(repr, given)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{program.name}: {done.stderr}")
    numbers = [float(word) for word in done.stdout.split()]
    return numbers[:6], bool(numbers[6]), bool(numbers[7])


def in_python(model: ls.Model, size: float, arguments: argparse.Namespace) -> list[float]:
    """The same of `Stepper`."""
    period, nu = 1.0 / arguments.rate, np.arange(model.nu)
    stepper = ls.Stepper(model, period, q0=start_of(model))
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {arguments.core})
    times, alone, missed = [], [], 0
    begin = time.monotonic() + 0.01
    for k in range(int(arguments.seconds / period)):
        time.sleep(max(begin - time.monotonic(), 0.0))
        woken = time.monotonic()
        stepper.step(size * (0.5 - 0.5 * np.cos(2 * np.pi * period * k + 2.0 * nu)))
        end = time.monotonic()
        times.append(end - begin)
        alone.append(end - woken)
        missed += end > begin + period
        begin += period
        while begin < end:
            begin += period
    os.sched_setaffinity(0, before)
    times.sort()
    alone.sort()
    n = len(times)
    return [alone[n // 2], alone[-1], times[n // 2], times[int(0.999 * n)], times[-1], missed]


def main() -> None:
    """Print a row for each robot, load and language."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", default=list(KNOWN), help=", ".join(KNOWN))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=1000.0, help="steps in a second")
    parser.add_argument("--core", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ls.RedundancyWarning)  # of the planar loop
    head = ("step", "longest", "time", "99.9 %", "worst")
    print(f"{'':34}" + "".join(f"{word:>9}" for word in head) + f"{'misses':>9}   [µs]")
    for name in arguments.robots:
        robot, size = KNOWN[name]()
        model = robot.build()
        with tempfile.TemporaryDirectory() as place:
            made = ls.export(model, place, ["step"], name="bench_robot", build=True)
            (made.folder / "bench.c").write_text(_PROGRAM, encoding="utf-8")
            program = made.folder / "bench"
            command = [find_compiler("real_time"), "-x", "c", "-O2", f"-I{place}", str(made.folder / "bench.c"), "-x",
                       "none", str(made.library), f"-Wl,-rpath,{place}", "-lm", "-o", str(program)]  # fmt: skip
            subprocess.run(command, check=True)
            for is_loaded in (False, True):
                for language in ("C", "Python"):
                    with load(arguments.core) if is_loaded else tempfile.TemporaryDirectory():
                        if language == "C":
                            row, is_fifo, is_locked = in_c(program, model, size, arguments)
                        else:
                            row = in_python(model, size, arguments)
                    title = f"{name} (nq {model.nq}), {language}{', load' * is_loaded}"
                    cells = "".join(f"{1e6 * x:9.1f}" for x in row[:5])
                    print(f"{title:34}{cells}{row[5]:9.0f}", flush=True)
    print(f"{int(arguments.seconds * arguments.rate)} steps each; SCHED_FIFO {'yes' if is_fifo else 'no'}, "
          f"memory locked {'yes' if is_locked else 'no'}")  # fmt: skip


if __name__ == "__main__":
    main()
