"""Bodies with given kinematics: p = f(x, θ) for material points x and n coordinates θ.

Files, each using those above it:
cubature, surfaces: quadrature rules; surfaces of triangles.
domains, meshes: the material points of a body: DomainCylinder, DomainAnnulus, DomainCone, DomainBox, DomainTetrahedra.
materials: HyperelasticNeoHookean, HyperelasticCompressibleNeoHookean, HyperelasticSaintVenantKirchhoff,
HyperelasticLinear, HyperelasticUniaxial, HyperelasticFunction.
jets, evaluation: derivatives of motions; their evaluation at points, with caches.
enrichment: added coordinates that estimate the error of a body's kinematics.
kinematics: KinematicsFunction, KinematicsRitz.
strains, with twists: KinematicsStrain, InflationUniform, InflationBumps.
volume_preserving: KinematicsVolumePreserving of primitives.
finite_elements: KinematicsFiniteElements, KinematicsReduced.
integrals: inertia, weight and elasticity as ShapeIntegrals. material_frames: frames at points.
resolution: the choice of quadrature and steps. body: DeformableBody. pulls: forces of inputs inside a body.
"""
