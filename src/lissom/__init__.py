"""lissom: mechanics of robots that are partly rigid and partly soft.

Every public name is listed here with its one import path; it is loaded on first use, so that importing the package
costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "errors": ("AccuracyWarning", "ConvergenceError", "ModelError", "ShapeError"),
    "robot.robot": ("Link", "Robot"),
    "robot.bodies": ("RigidBody", "Rod"),
    "robot.materials": ("Material",),
    "robot.sections": (
        "SectionAnnulus",
        "SectionCircle",
        "SectionEllipse",
        "SectionGeneral",
        "SectionRectangle",
    ),
    "robot.bases": (
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
    "robot.actuators": ("PathPoint", "PathRod"),
    "robot.functions": ("Expression", "Tabulated"),
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}
__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lissom' has no attribute {name!r}")
    value = getattr(import_module(f"lissom.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
