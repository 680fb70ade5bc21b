"""Bodies whose kinematics is an input: p = f(x, θ) of material points x and n coordinates θ.

Files from the bottom up:
cubature, surfaces: quadrature rules; surfaces of triangles.
domains, meshes: the material points of a body, DomainCylinder, DomainAnnulus, DomainCone, DomainBox, DomainTetrahedra.
materials: HyperelasticNeoHookean, HyperelasticCompressibleNeoHookean, HyperelasticSaintVenantKirchhoff,
HyperelasticLinear, HyperelasticUniaxial, HyperelasticFunction.
jets, evaluation: derivatives of motions; their evaluation at points, with caches.
enrichment: further coordinates, by which the error of a body's own is estimated.
kinematics: KinematicsFunction, KinematicsRitz.
strains, with twists: KinematicsStrain, InflationUniform, InflationBumps.
volume_preserving: KinematicsVolumePreserving of primitives.
finite_elements: KinematicsFiniteElements, KinematicsReduced.
integrals: inertia, weight and elasticity as ShapeIntegrals. material_frames: frames at points.
resolution: the choice of quadrature and steps. body: DeformableBody. pulls: forces of inputs inside a body.
"""
