"""A robot with a branch, rods and a spherical joint, and calls of native functions on its tables."""

import numpy as np
import warp as wp

import lissom as ls
from lissom.model.tables import device_tables
from lissom.passes.columns import column_tables

HERE = 1  # the instance that is looked at; the others must stay as they are
COUNT = 3


def robot():
    """A hinge, a rod with five strains, a spherical joint on it and a second rod that branches off."""
    made = ls.Robot("branched")
    material = ls.Material(young=1e6, density=1e3, viscosity=1e3)
    basis = ls.BasisLegendre(torsion=1, bending_y=3, bending_z=2, elongation=0, shear_y=1)
    rod = ls.Rod(0.4, ls.SectionCircle(0.02), basis, material)
    made.add_link("one", rod, ls.JointRevolute(stiffness=2.0, damping=0.1))
    made.add_link("two", ls.RigidBody.box(0.1, 0.1, 0.1, density=500), ls.JointSpherical(), parent="one")
    made.add_link("three", rod, ls.JointUniversal(stiffness=1.0, rest=(0.1, 0.2)), parent="one", at=0.5)
    made.add_tendon("tendon", "one", (0.0, 0.01))
    return made.build()


MODEL = robot()
X = column_tables(MODEL)
TABLES = device_tables(MODEL)
WIDTH, NV, NODES = X.width, MODEL.nv, MODEL.n_dynamic
RNG = np.random.default_rng(3)


def random(*shape):
    """Random numbers."""
    return RNG.uniform(-1.0, 1.0, shape)


def device(array, dtype=wp.float64):
    """A device array."""
    return wp.array(array, dtype=dtype, device="cpu")


def host(name):
    """A table of Columns."""
    return getattr(X, name).numpy()


def blocks(start, ranges, k):
    """Columns on the stretches listed for node k."""
    s, r = host(start), host(ranges)
    listed = [np.arange(r[e], r[e + 1]) for e in range(s[k], s[k + 1], 2)]
    return np.concatenate([np.zeros(0, int), *listed])


def dense_phi(site):
    """Φ at the two points of a site, (2, 6, width), from its rows."""
    Phi = np.zeros((2, 6, WIDTH))
    for e in range(host("row_start")[site], host("row_start")[site + 1]):
        at = host("row_component")[e], host("row_v")[e]
        Phi[(0, *at)], Phi[(1, *at)] = host("row_phi1")[e], host("row_phi2")[e]
    return Phi


def pair(A, B):
    """[[A, 0], [B, A]]."""
    return np.block([[A, np.zeros((3, 3))], [B, A]])


def filled(struct, arrays):
    """A struct with device arrays by name."""
    for name, array in arrays.items():
        setattr(struct, name, array)
    return struct


def changed(kernel, arrays, *arguments, struct=None):
    """The first arrays of a kernel after a launch for one instance alone. Arrays by name are those of a struct, the
    first argument of the kernel."""
    names, arrays = ([], arrays) if struct is None else (list(arrays), list(arrays.values()))
    made = [device(a, wp.int32 if a.dtype.kind == "i" else wp.float64) for a in arrays]
    given = made if struct is None else [filled(struct, dict(zip(names, made)))]
    wp.launch(kernel, dim=1, inputs=[*given, *arguments, HERE], device="cpu")
    out = [array.numpy() for array in made]
    for new, old in zip(out, arrays):
        others = [k for k in range(COUNT) if k != HERE]
        assert np.array_equal(new[others], old[others]), "an instance that was not asked for has changed"
    return [array[HERE] for array in out]


NODE = next(k for k in range(NODES) if MODEL.nodes.v_stop[k] - MODEL.nodes.v_start[k] > 8)  # an interval of a rod
LATE = max(k for k in range(NODES) if MODEL.nodes.v_stop[k] - MODEL.nodes.v_start[k] > 8)
BALL = next(k for k in range(NODES) if MODEL.nodes.kind[k] != 0)
SITES = [NODE, LATE, BALL]
