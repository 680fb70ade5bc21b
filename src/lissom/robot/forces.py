"""Forces of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from lissom.robot import checks
from lissom.robot.fields import Place


@final
@dataclass(frozen=True)
class Force:
    """A force of the user's own that follows the pose and the twist of a link.

    Args:
        name: unique among forces.
        link: name of the link.
        function: a Python function of (t, g, eta) with the pose g (4, 4) and the body twist eta (6,), or a Warp
            function of (R, p, eta, s, t), which is compiled into the kernels. Both return the wrench (moment; force) at
            the section, in its axes: [N·m, N], or per metre along a rod.
        s: where it acts; None is all along a rod, or at the frame of a body.
    """

    name: str
    link: str
    function: Callable[..., Any]
    s: Place | None = None

    def check(self, where: str) -> None:
        """Raise ModelError where the description breaks a rule."""
        checks.require(callable(self.function), f"{where}: function", "must be a function", self.function)
        if self.s is not None:
            checks.place(self.s, f"{where}: s")


def is_compiled(function: Any) -> bool:
    """Whether a function is one of Warp's, to be called inside kernels."""
    return type(function).__module__.startswith("warp")
