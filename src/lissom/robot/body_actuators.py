"""What drives deformable bodies through their surfaces: pressures in chambers and on a part of the outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from lissom.robot import checks
from lissom.robot.actuators import Actuator


@final
@dataclass(frozen=True, eq=False)
class BodyChamber(Actuator):
    """A chamber in a deformable body; u = pressure above ambient [Pa], B = ∂V/∂q.

    Args:
        link: name of a link whose body is a DeformableBody.
        surface: what bounds the chamber: vertices (m, 3) [m] in the reference shape and triangles (k, 3), such as
            `cylinder_surface` makes, that move as material points do; or a function of a point (3,), which says of the
            corners of the body's boundary which belong to the chamber's wall. Rims that are left open are closed by
            flat lids, which hand the force on them to the corners of the rim in equal parts.
        volume: in place of a surface, V [m³] as a function of the body's own coordinates (n,), made of jax.numpy.
    """

    link: str
    surface: Any = None
    volume: Callable[[Any], Any] | None = None

    def check(self, where: str) -> None:
        one = (self.surface is None) != (self.volume is None)
        checks.require(one, where, "must have a surface or a volume", (self.surface, self.volume))
        made = self.volume is None or callable(self.volume)
        checks.require(made, f"{where}: volume", "must be a function of the body's coordinates", self.volume)
        if self.volume is None:
            check_surface(self.surface, where)


@final
@dataclass(frozen=True, eq=False)
class SurfacePressure(Actuator):
    """A pressure on a part of the surface of a deformable body, normal to it as it moves; u = pressure [Pa], pressing
    on the side that the normals look to.

    Args:
        link: name of a link whose body is a DeformableBody.
        surface: vertices (m, 3) [m] in the reference shape and triangles (k, 3), counterclockwise as seen from where
            the pressure is; or a function of a point (3,), which says of the corners of the body's boundary which
            belong to the part: the pressure is outside the material.
    """

    link: str
    surface: Any

    def check(self, where: str) -> None:
        check_surface(self.surface, where)


def check_surface(surface: Any, where: str) -> None:
    """Raise ModelError unless `surface` is a function, or vertices and triangles."""
    if callable(surface):
        return
    rule = "must be vertices (m, 3) and triangles (k, 3), or a function of a point"
    pair = isinstance(surface, tuple | list) and len(surface) == 2
    checks.require(pair, f"{where}: surface", rule, surface)
    vertices = checks.array(surface[0], (-1, 3), f"{where}: surface", rule)
    triangles = checks.array(surface[1], (-1, 3), f"{where}: surface", rule)
    rule = f"its triangles must hold whole numbers from 0 to {len(vertices) - 1}"
    whole = (triangles == triangles.round()) & (triangles >= 0) & (triangles < len(vertices))
    checks.require(len(triangles) > 0 and bool(whole.all()), f"{where}: surface", rule, surface[1])
