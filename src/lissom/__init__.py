"""lissom: mechanics of robots that are partly rigid and partly soft.

Every public name is listed here with its one import path; it is loaded on first use, so that importing the package
costs nothing.
"""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Any

__version__ = "0.2.0"

_PUBLIC = {
    "errors": (
        "AccuracyWarning",
        "CacheWarning",
        "ConvergenceError",
        "LeftOutWarning",
        "ModelError",
        "PlausibilityWarning",
        "RedundancyWarning",
        "RepairWarning",
        "ShapeError",
        "StabilityWarning",
        "StepWarning",
    ),
    "robot.robot": ("Link", "Robot"),
    "robot.bodies": ("RigidBody", "Rod"),
    "robot.materials": ("CatalogueEntry", "Material", "catalogue"),
    "robot.meshes": ("FittedBalls", "Mesh", "fit_balls"),
    "robot.sections": (
        "SectionAnnulus",
        "SectionCircle",
        "SectionEllipse",
        "SectionGeneral",
        "SectionPolygon",
        "SectionRectangle",
    ),
    "robot.bases": (
        "BasisBSpline",
        "BasisChebyshev",
        "BasisCustom",
        "BasisFourier",
        "BasisGaussian",
        "BasisHermite",
        "BasisLegendre",
        "BasisMonomial",
        "BasisPiecewiseConstant",
        "BasisPiecewiseLinear",
    ),
    "robot.joints": (
        "JointCustom",
        "JointCylindrical",
        "JointFixed",
        "JointFree",
        "JointHelical",
        "JointPlanar",
        "JointPrismatic",
        "JointRevolute",
        "JointSpherical",
        "JointUniversal",
    ),
    "robot.poses": ("PoseSpline",),
    "robot.actuators": ("PathBody", "PathPoint", "PathRod", "PathWrap"),
    "robot.contacts": ("EVERYTHING",),
    "robot.fluid": ("Hydrodynamics",),
    "robot.springs": ("SpringBranch",),
    "robot.shapes": (
        "PlacedShape",
        "ShapeBox",
        "ShapeCapsule",
        "ShapeCone",
        "ShapeCylinder",
        "ShapeEllipsoid",
        "ShapePlane",
        "ShapeSphere",
        "ShapeTorus",
    ),
    "robot.sampled_shapes": ("ShapeFunction", "ShapeHeightField", "ShapeHull", "ShapeMesh"),
    "bodies.body": ("DeformableBody",),
    "bodies.domains": ("DomainAnnulus", "DomainBox", "DomainCone", "DomainCylinder"),
    "bodies.finite_elements": ("KinematicsFiniteElements", "KinematicsReduced"),
    "bodies.kinematics": ("KinematicsFunction", "KinematicsRitz"),
    "bodies.materials": (
        "HyperelasticCompressibleNeoHookean",
        "HyperelasticFunction",
        "HyperelasticLinear",
        "HyperelasticNeoHookean",
        "HyperelasticSaintVenantKirchhoff",
        "HyperelasticUniaxial",
    ),
    "bodies.meshes": ("DomainTetrahedra", "box_mesh", "cylinder_mesh"),
    "bodies.strains": ("InflationBumps", "InflationUniform", "KinematicsStrain"),
    "bodies.surfaces": ("cylinder_surface", "sphere_surface"),
    "bodies.volume_preserving": (
        "KinematicsVolumePreserving",
        "PrimitiveBending",
        "PrimitiveShear",
        "PrimitiveSource",
        "PrimitiveStretch",
        "PrimitiveTwist",
    ),
    "model.model": ("Model",),
    "model.model_batch": ("ModelBatch",),
    "dynamics.start": ("start_configuration",),
    "dynamics.accuracy": ("Accuracy", "accuracy"),
    "dynamics.configuration": ("difference", "integrate"),
    "dynamics.kinematics": (
        "forward_kinematics",
        "frame_acceleration",
        "frame_jacobian",
        "frame_jacobian_derivative",
        "frame_pose",
        "frame_twist",
    ),
    "dynamics.inverse_dynamics": ("external_force", "inverse_dynamics"),
    "dynamics.inverse_dynamics_derivatives": ("inverse_dynamics_derivatives", "inverse_dynamics_tangent"),
    "dynamics.kinematics_derivatives": ("frame_acceleration_derivatives", "frame_twist_derivatives"),
    "dynamics.forward_dynamics": ("forward_dynamics",),
    "dynamics.forward_dynamics_derivatives": ("forward_dynamics_derivatives",),
    "dynamics.linearization": ("Linearization", "Modes", "ModesAccuracy", "linearize", "modes"),
    "dynamics.mass_matrix": ("MassAndBias", "coriolis_matrix", "mass_inverse_dynamics", "mass_matrix"),
    "dynamics.constraints": (
        "ConstraintDerivatives",
        "constraint_derivatives",
        "constraint_force_derivative",
        "constraint_jacobian",
        "constraint_jacobian_derivative",
        "loop_residual",
        "loop_wrenches",
    ),
    "dynamics.actuation": (
        "actuation_matrix",
        "damping_matrix",
        "path_lengths",
        "spring_lengths",
        "stiffness_matrix",
        "tendon_tensions",
    ),
    "dynamics.energy": ("Energy", "center_of_mass", "energy", "momentum"),
    "dynamics.contacts": ("Contacts", "contact_anchors", "contact_forces"),
    "dynamics.internal_wrench": ("InternalWrench", "internal_wrench", "joint_wrench"),
    "dynamics.stress": ("Stress", "stress"),
    "dynamics.assembly": ("assemble", "assemble_velocities"),
    "statics.equilibrium": ("Equilibrium", "solve_statics"),
    "statics.continuation": ("Branch", "BranchEvent", "branches", "continuation"),
    "statics.residual": ("tangent_stiffness",),
    "stepping.schemes": (
        "Scheme",
        "Stage",
        "bathe",
        "esdirk",
        "generalized_alpha",
        "hht",
        "implicit_euler",
        "newmark",
        "sdirk",
    ),
    "stepping.statistics": ("Statistics",),
    "stepping.stepper": ("Stepper",),
    "simulation.simulate": ("resume", "simulate"),
    "simulation.inputs": ("Controller", "Samples"),
    "simulation.mat_files": ("save_mat",),
    "simulation.trajectory": ("Trajectory",),
    "simulation.energy_balance": ("EnergyBalance", "energy_balance"),
    "gradients.rollout": ("GradientCheck", "Rollout", "Step", "check_gradient", "rollout", "step_derivatives"),
    "gradients.designs": ("design_derivatives",),
    "gradients.equilibria": (
        "EquilibriumDerivatives",
        "ModeDerivatives",
        "equilibrium_derivatives",
        "mode_derivatives",
    ),
    "gradients.feedback": ("FeedbackGradient", "feedback_gradient", "feedback_rollout"),
    "gradients.propagation": ("Gradient", "Sensitivity"),
    "control.actuation_coordinates": ("actuation_coordinates",),
    "control.feedback_linearization": ("partial_feedback_linearization",),
    "control.pd_compensation": ("pd_compensation",),
    "control.model_predictive": ("ModelPredictiveControl", "MotionPlan", "TrackingCost"),
    "control.regulator": ("Regulator", "lqr"),
    "control.static_reference": ("StaticReference", "static_reference"),
    "inverse.fit": ("Fit", "fit"),
    "inverse.kalman_filter": (
        "Estimate",
        "ExtendedKalmanFilter",
        "Innovation",
        "SensorLength",
        "SensorPose",
        "SensorPosition",
        "SensorStrain",
        "SensorTwist",
    ),
    "inverse.frequency_response": ("StateSpace", "frequency_response", "state_space"),
    "inverse.kinematics": ("InverseKinematics", "inverse_kinematics"),
    "inverse.minimize": ("Minimum", "minimize"),
    "inverse.prescribed": ("PrescribedEquilibrium", "prescribed_actuation", "prescribed_equilibrium"),
    "robot.functions": ("Expression", "Tabulated"),
    "robot.traced_functions": ("TracedFunction",),
    "io.mjcf": ("load_mjcf",),
    "io.mjcf_writer": ("save_mjcf",),
    "io.rigid_chains": ("RigidChains", "rigid_chains"),
    "io.rod_segments": ("ChainError",),
    "io.urdf": ("load_urdf",),
    "io.urdf_writer": ("save_urdf",),
    "io.robot_file": ("load_robot", "save_robot"),
    "io.writing": ("SavedRobot",),
    "sweeps.results": ("SweepResults",),
    "sweeps.samples": ("Span",),
    "sweeps.study": ("StudySimulation", "StudyStatics", "Trial"),
    "sweeps.sweep": ("sweep",),
    "kernels": ("KernelCache", "build_kernels", "kernel_cache"),
    "exporting.export": ("ExportedRobot", "export"),
    "exporting.fmu": ("export_fmu",),
    "exporting.web": ("export_web",),
    "viewing.render": ("render",),
    "viewing.usd": ("save_usd",),
    "viewing.branch_plot": ("plot_branch",),
    "viewing.plots": ("plot_shapes", "plot_trajectory"),
    "viewing.viewer": ("Viewer", "view"),
}
# namespaces within the package, and the modules that define their names
_NAMESPACES = {
    "aligator": {"bridges.aligator_stages": ("order", "problem", "stage", "state")},
    "crocoddyl": {"bridges.crocoddyl_actions": ("action", "problem", "state")},
    "gym": {
        "gym.tasks": ("Task", "TaskBalance", "TaskHold", "TaskReach", "TaskStart", "TaskState", "TaskSwim"),
        "gym.registered": ("environment", "stable_baselines_environment", "vector_environment"),
    },
    "jax": {"bridges.jax_functions": ("forward_dynamics", "inverse_dynamics", "rollout", "solve_statics")},
    "lie": {
        "lie.arrays": (
            "se3_Ad",
            "se3_ad",
            "se3_coad",
            "se3_exp",
            "se3_log",
            "se3_tangent",
            "se3_tangent_ddot",
            "se3_tangent_dot",
            "se3_tangent_inverse",
            "se3_tangent_transpose_derivative",
            "so3_exp",
            "so3_log",
            "so3_tangent",
            "so3_tangent_inverse",
        ),
    },
    "torch": {"bridges.torch_functions": ("forward_dynamics", "inverse_dynamics", "rollout", "solve_statics")},
}
# names of the version before, which raise an error that says the new one
_FORMER = {
    (name if space in ("gym", "lie") else f"{space}_{name}"): f"{space}.{name}"
    for space, homes in _NAMESPACES.items()
    for names in homes.values()
    for name in names
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}
__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _NAMESPACES:
        return import_module(f"lissom.{name}")
    if name in _FORMER:
        raise AttributeError(f"lissom.{name} is called lissom.{_FORMER[name]} now")
    if name not in _HOME:
        raise AttributeError(f"module 'lissom' has no attribute {name!r}")
    collects = gc.isenabled()
    gc.disable()  # all that is made here stays, and to look through it again and again took a fifth of the time
    try:
        value = getattr(import_module(f"lissom.{_HOME[name]}"), name)
    finally:
        if collects:
            gc.enable()
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_NAMESPACES])
