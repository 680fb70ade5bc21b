"""Inverse and forward dynamics of many rigid links in Pinocchio, of any version: this file needs nothing of lissom.

    python benchmarks/pinocchio_links.py STATE.npz FORCES.npy

Takes q, v and a, writes the forces of inverse dynamics, and prints the times of calls from Python [µs] and the version.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def least(call: Callable[[], Any], seconds: float = 1.0, inner: int = 5) -> float:
    """Least time of one call [µs], over `seconds` of repetitions."""
    best, stop = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < stop:
        began = time.perf_counter()
        for _ in range(inner):
            call()
        best = min(best, (time.perf_counter() - began) / inner)
    return best * 1e6


def links(count: int) -> Any:
    """The links of scaling: in a row, with hinges about z and y in turn."""
    import pinocchio as pin

    model, parent = pin.Model(), 0
    for k in range(count):
        joint = pin.JointModelRZ() if k % 2 == 0 else pin.JointModelRY()
        placement = pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.2 if k else 0.0]))
        parent = model.addJoint(parent, joint, placement, f"joint{k}")
        body = pin.Inertia(1.0, np.array([0.02, 0.01, 0.1]), np.diag([0.03, 0.025, 0.01]))
        model.appendBodyToJoint(parent, body, pin.SE3.Identity())
    return model


def main(state: str, forces: str) -> None:
    """Both, of one state."""
    import pinocchio as pin

    rows = np.load(state)
    q, v, a = (rows[name] for name in "qva")
    model = links(len(q))
    data = model.createData()
    np.save(forces, pin.rnea(model, data, q, v, a))
    times = least(lambda: pin.rnea(model, data, q, v, a)), least(lambda: pin.aba(model, data, q, v, 0.0 * a))
    print(*times, pin.__version__)


if __name__ == "__main__":
    main(*sys.argv[1:])
