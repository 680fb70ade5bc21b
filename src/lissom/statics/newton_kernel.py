"""Newton's method for equilibria in one kernel, a batch in one launch; the parts are those of newton_stages.

Where something needs Python, the kernel pauses: `pause` says whether it does, and which part comes next.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import warp as wp

from lissom.dynamics.constraints import constraint_kernel
from lissom.dynamics.forward_dynamics import forward_dynamics_kernel, residual_kernel
from lissom.dynamics.kinematics import frames_kernel
from lissom.dynamics.loads import load_rows
from lissom.dynamics.steady_motion import steady_velocity
from lissom.forces.acting import Acting
from lissom.launch.buffers import LONG, Buffers
from lissom.launch.compiling import ahead
from lissom.launch.loop_buffers import shown
from lissom.launch.prepare import Wanted
from lissom.launch.workspace import Workspace, crowded, workspace
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import TablesStruct
from lissom.passes.column_tables import column_width
from lissom.passes.scratch import STATUS_CROWDED, ScratchStruct
from lissom.statics.newton_stages import BEGIN, FLOOR, ITERATION, NOTES, NUMBERS, EquilibriumRowsStruct, go_on
from lissom.systems.newton_matrix import NewtonBuffersStruct, newton_buffers, newton_matrix_of
from lissom.systems.residual import residual_of

_ASTRAY = 1e-6  # stiffness along a step, over that of the coordinates themselves, below which rounding may lead it


def equilibrium_kernel(act: Acting) -> Any:
    """Kernel of Newton's method for equilibria."""
    residual, matrix = residual_of(act), newton_matrix_of(act)

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def equilibria(
        t: TablesStruct,
        s: ScratchStruct,
        b: NewtonBuffersStruct,
        x: EquilibriumRowsStruct,
        gravity: wp.array(dtype=vec3),
        load: wp.array(dtype=vec6),
        pause: wp.array2d(dtype=wp.int32),
        first: int,
    ):
        i = first + wp.tid()
        pause[i, 1] = go_on(pause[i, 1], pause[i, 0], t, s, b, x, i, gravity[0], load, residual, matrix)

    return equilibria


def _make(model: Model, batch: int) -> Buffers:
    unknowns = model.nv + model.n_rows
    sizes = {"start": model.nq, "q": model.nq, "u": model.nu, "notes": NOTES}
    sizes |= dict.fromkeys(("move", "own", "met", "zeros", "v", "extra"), model.nv)
    sizes |= {"step": unknowns, "between": unknowns, "stiffness": model.nv * column_width(model)}
    shapes = {name: (size,) for name, size in sizes.items()}
    w = Buffers(model, batch, shapes, wanted=Wanted(differentiates=True), weight=LONG)
    x = EquilibriumRowsStruct()
    for name in sizes:
        setattr(x, name, w.on_device[name])
    x.numbers = w.buffer("numbers", (NUMBERS,), common=True)
    x.opened = w.buffer("opened", (model.n_rows,), common=True)
    x.inverse_scale = wp.array(1.0 / model.dofs.scale, dtype=wp.float64, device=model.device)
    x.sprung = wp.array(model.elasticity.stiffness_diagonal, dtype=wp.float64, device=model.device)
    rest = [
        w.buffer("gravity", (1,), vec3, common=True),
        w.buffer("load", (model.n_load_rows,), vec6, common=True),
        w.buffer("pause", (batch, 2), wp.int32),
    ]
    b = newton_buffers(model, batch)
    shown(w, b.loops)
    if batch == 1:  # one robot may need Python between two parts
        w.share("K", b.matrix)
        for name in ("matrix", "factors", "unknown", "sigma"):
            w.share(name, getattr(b.loops, name))
    w.record(equilibrium_kernel, [w.tables, w.scratch, b, x, *rest])
    return w


@final
@dataclass(frozen=True)
class Sought:
    """What Newton iterations of a batch look for, and when they end.

    Fields:
        u: inputs (n, nu). t, factor: time of the loads [s], and what these, gravity and the inputs are multiplied by.
        opened: residuals (n_rows,) that loops are left with. hold: a generalised force (nv,) that holds, or a number.
        tolerance: of a step, in units of dofs.scale. limit: most iterations.
    """

    u: np.ndarray
    t: float
    factor: float
    opened: np.ndarray
    tolerance: float
    limit: int
    hold: Any = 0.0

    def of(self, k: int) -> Sought:
        """The same for instance k alone."""
        return replace(self, u=self.u[k : k + 1])


def newton_workspace(model: Model, q: np.ndarray, force: np.ndarray, sought: Sought) -> Workspace:
    """Buffers and launch of the kernel with what newton_in_kernel takes filled in, before the first part."""
    w = workspace(model, "equilibrium", len(q), _make)
    host = w.host
    host["start"][:], host["force"][:] = q, force
    host["u"][:], host["opened"][:] = sought.factor * sought.u, sought.opened
    host["v"][:], host["extra"][:] = steady_velocity(model, sought.factor), sought.hold
    host["numbers"][:] = sought.tolerance, sought.limit, _ASTRAY, FLOOR
    host["gravity"][0] = sought.factor * model.gravity
    if model.n_load_rows:
        host["load"][:] = load_rows(model, sought.t, sought.factor)
    host["pause"][:] = 0, BEGIN
    return w


def load_ahead(model: Model) -> None:
    """Load the kernels of statics together."""
    if not model.calls_python:
        loops = (constraint_kernel, forward_dynamics_kernel) if model.n_rows else ()
        ahead(model, "statics", equilibrium_kernel, residual_kernel, *loops, then=(frames_kernel,))


def newton_in_kernel(model: Model, q: np.ndarray, force: np.ndarray, sought: Sought) -> Workspace:
    """Newton iterations of a batch from q (n, nq) and forces of loops (n, n_rows); the workspace that `results` and
    `last_stiffness` read."""
    w = newton_workspace(model, q, force, sought)
    w.run()
    if (w.status == STATUS_CROWDED).any():
        raise crowded(model)
    return w


def results(w: Workspace) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Last iterates, forces of loops there, iterations, how each ended."""
    iterations = w.host["notes"][:, ITERATION].astype(int)
    return w.host["start"].copy(), w.host["force"].copy(), iterations, w.host["pause"][:, 1].copy()


def last_stiffness(w: Workspace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As views, the last tangent stiffness (n, nv, nv) of a batch, rows A (n, n_rows, nv), and which of these are
    independent (n, n_rows)."""
    model = w.model
    K, A = (w.host[name].reshape(w.batch, rows, column_width(model))[..., : model.nv]
            for name, rows in (("stiffness", model.nv), ("A", model.n_rows)))  # fmt: skip
    return K, A, w.host["slot"] >= 0
