"""First results on a machine that has never compiled a kernel: wall time and time of processors.

    python benchmarks/cold_start.py

Each row is a process of its own, with an empty cache, imports included: the example of the README, all kernels of plain
robots, and the example where kernels came compiled for this kind of processor.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lissom.launch.compiling import targets_here

EXAMPLE = """
import lissom as ls
robot = ls.Robot("arm", gravity=(0, 0, -9.81))
robot.add_link("arm", body=ls.Rod(
    length=0.5, section=ls.SectionCircle(radius=(0.03, 0.015)),
    material=ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=1e4),
    basis=ls.BasisLegendre(torsion=2, bending_y=4, bending_z=4, elongation=2)), joint=ls.JointFixed())
robot.add_tendon("lift", link="arm", offset=lambda s: (0.0, 0.03 - 0.015 * s))
model = robot.build()
rest = ls.solve_statics(model, u=[25.0])
assert abs(ls.frame_pose(model, rest.q, "arm", s=1.0)[0, 3] - 0.46127422) < 1e-6
"""
ALL = "import lissom as ls\nls.build_kernels()"


def measured(label: str, code: str, **environment: str) -> None:
    """Run code in a process with an empty cache, and print its time."""
    with tempfile.TemporaryDirectory() as cache:
        here = os.environ | {"WARP_CACHE_PATH": cache} | environment
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, "-c", code], env=here, check=True)
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{label:45s} {wall:6.1f} s wall {busy:6.1f} s busy", flush=True)


def main() -> None:
    """Print the rows."""
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as folder:
        measured("example of the README", EXAMPLE, LISSOM_KERNELS=empty)
        measured("all kernels", ALL, LISSOM_KERNELS=empty)
        for target in targets_here()[:1]:
            build = f"import lissom as ls\nls.build_kernels(target={target!r}, out={str(Path(folder))!r})"
            measured(f"all kernels for {target}", build, LISSOM_KERNELS=empty)
            measured(f"example with kernels for {target}", EXAMPLE, LISSOM_KERNELS=folder)


if __name__ == "__main__":
    main()
