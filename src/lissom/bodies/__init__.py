"""Bodies whose kinematics is an input: p = f(x, θ) of material points x and n coordinates θ.

What a body is made of, each from its own module:
domains: DomainCylinder, DomainAnnulus, DomainCone, DomainBox; meshes: DomainTetrahedra, and of simple shapes by
structured_meshes: box_mesh, cylinder_mesh.
materials: HyperelasticNeoHookean, HyperelasticCompressibleNeoHookean, HyperelasticSaintVenantKirchhoff,
HyperelasticLinear, HyperelasticUniaxial, HyperelasticFunction.
kinematics: KinematicsFunction, KinematicsRitz; strains: KinematicsStrain; inflations: InflationUniform, InflationBumps.
volume_preserving: KinematicsVolumePreserving of PrimitiveStretch, PrimitiveBending, PrimitiveTwist, PrimitiveShear and
PrimitiveSource; finite_elements: KinematicsFiniteElements, KinematicsReduced.
body: DeformableBody. integrals: ShapeIntegrals, with ShapeValues and ShapeDerivatives; linear_coefficients:
LinearCoefficients.
"""
