"""A member of each kind of kinematics, for the sweeps of the tests."""

import numpy as np

from lissom.bodies.finite_elements import KinematicsFiniteElements
from lissom.bodies.kinematics import KinematicsFunction, KinematicsRitz
from lissom.bodies.materials import HyperelasticSaintVenantKirchhoff
from lissom.bodies.meshes import DomainTetrahedra, cylinder_mesh
from lissom.bodies.strains import InflationBumps, InflationUniform, KinematicsStrain
from lissom.bodies.volume_preserving import (
    KinematicsVolumePreserving,
    PrimitiveBending,
    PrimitiveShear,
    PrimitiveSource,
    PrimitiveStretch,
    PrimitiveTwist,
)
from lissom.robot.bases import BasisFourier, BasisHermite, BasisLegendre, BasisPiecewiseConstant

L, RADIUS, PAD = 0.3, 0.02, 0.1


def _function(x, q):
    import jax.numpy as jnp

    return jnp.stack([x[0], x[1] + q[0] * jnp.sin(4 * x[0]) ** 2, x[2] + q[1] * x[0] * x[1]])


def _ritz(x):
    import jax.numpy as jnp

    return jnp.stack([jnp.zeros(2), jnp.stack([x[0] ** 2, x[0] ** 3]), jnp.stack([x[0] * x[1], 0.0 * x[0]])])


def _waves(s):
    import jax.numpy as jnp

    return jnp.stack([jnp.sin(2 * s), jnp.exp(-s)])


PRIMITIVES = {
    "stretch": (PrimitiveStretch([(0.0, 1.0, -1.0), (0.0, 0.0, 1.0)]), 0.5),
    "bending_y": (PrimitiveBending([(1.0,), (0.0, 1.0)], "y"), 5.0),
    "bending_z": (PrimitiveBending(_waves), 5.0),
    "twist": (PrimitiveTwist([(0.0, 1.0)]), 2.0),
    "shear_y": (PrimitiveShear([(0.0, 0.0, 0.1)]), 1.0),
    "shear_z": (PrimitiveShear([(0.0, 0.1)], "z"), 1.0),
    "source": (PrimitiveSource([(0.0, 0.0, 1.0)]), 1e-4),
}


def composed(names):
    """A kinematics of primitives in the order of names, and the sizes of its coordinates."""
    from lissom.bodies.kinematics import mode_count

    sizes = np.concatenate([[PRIMITIVES[name][1]] * mode_count(PRIMITIVES[name][0].modes) for name in names])
    return KinematicsVolumePreserving(L, tuple(PRIMITIVES[name][0] for name in names)), sizes


VERTICES, CELLS = cylinder_mesh(L, RADIUS, (3, 1))
TURN = np.array([[1, 0, 0], [0, np.cos(0.2), -np.sin(0.2)], [0, np.sin(0.2), np.cos(0.2)]])
MESH = DomainTetrahedra(VERTICES @ TURN, CELLS, degree=4)  # turned: no point of a quadrature between cells
LINEAR, QUADRATIC = (KinematicsFiniteElements(MESH, degree) for degree in (1, 2))
REDUCED = QUADRATIC.reduced(HyperelasticSaintVenantKirchhoff(1e5, 0.4), 1e3, modes=3, derivatives=2)

# kind: the kinematics, and how large its coordinates are at large but regular shapes
KINDS = {
    "function": (KinematicsFunction(_function, 2), np.array([0.05, 3.0])),
    "ritz": (KinematicsRitz(_ritz, 2), np.array([0.5, 1.0])),
    "planar": (KinematicsStrain.constant_curvature(L, planar=True), np.array([8.0])),
    "spatial": (KinematicsStrain.constant_curvature(L, elongation=True), np.array([6.0, 6.0, 0.3])),
    "constant strain": (KinematicsStrain.constant_strain(L), np.array([6.0] * 3 + [0.2] * 3)),
    "pieces": (KinematicsStrain.constant_strain(L, 2), np.array([6.0] * 6 + [0.2] * 6)),
    "affine": (KinematicsStrain.polynomial_curvature(L), np.full(4, 5.0)),
    "cubic": (KinematicsStrain.polynomial_curvature(L, 3, planar=True, elongation=True), np.array([5.0] * 4 + [0.2])),
    "gaussian": (KinematicsStrain.gaussian_curvature(L, 0.1), np.array([4.0] * 4 + [0.2])),
    "splines": (KinematicsStrain(L, BasisHermite(bending_y=2, torsion=1)), np.full(10, 4.0)),
    "waves": (KinematicsStrain(L, BasisFourier(bending_z=1, shear_y=0)), np.array([4.0, 4.0, 4.0, 0.2])),
    "twisting": (KinematicsStrain(L, BasisPiecewiseConstant(torsion=2)), np.full(2, 10.0)),
    "inflating": (
        KinematicsStrain(L, BasisLegendre(bending_y=1), InflationUniform([(0.0, 1.0)])),
        np.array([5.0, 5.0, 0.4]),
    ),
    "bumps": (
        KinematicsStrain.constant_curvature(L, planar=True, elongation=True, inflation=InflationBumps()),
        np.array([6.0, 0.2, 0.2, 0.2]),
    ),
    "linear elements": (LINEAR, np.full(LINEAR.n, 2e-3)),
    "quadratic elements": (QUADRATIC, np.full(QUADRATIC.n, 1e-3)),
    "reduced elements": (REDUCED, np.full(REDUCED.n, 5e-3)),
    "volume preserving": composed(["stretch", "twist", "shear_y", "shear_z", "bending_z", "bending_y"]),
}


def pad(x, q):
    """A block of length PAD that bends, stretches and bulges."""
    import jax.numpy as jnp

    s = x[0] / PAD
    bend = jnp.stack([-x[2] * s, 0.0 * s, 0.5 * PAD * s**2]) * jnp.sin(q[0])
    return x + bend + jnp.stack([q[1] * x[0], -0.3 * q[1] * s * x[1], 0.2 * jnp.tanh(q[1]) * s * x[2]])


def in_python(function):
    """The same function, with a loop that cannot be compiled."""
    import jax

    return lambda x, q: function(x, jax.lax.while_loop(lambda s: s[1] < 1, lambda s: (s[0], s[1] + 1), (q, 0))[0])
