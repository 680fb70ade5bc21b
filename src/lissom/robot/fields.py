"""What a field of a description may hold, where that is more than one plain type.

Robot files read these kinds from the annotations of a class, so that a class says once what its fields are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

NUMBERS, NAMES, PLACE, PLACEMENT, POSE = "numbers", "names", "place", "placement", "pose"
FUNCTION_OF_S, FUNCTION_OF_T = "function of s", "function of t"

Numbers = Annotated[Any, NUMBERS]  # a number, or an array of numbers as nested sequences
Names = Annotated[Any, NAMES]  # a name, or a sequence of names
Place = Annotated[Any, PLACE]  # an abscissa; on a deformable body also a material point (3,) or the name of a place
Placement = Annotated[Any, PLACEMENT]  # 4x4; None is the identity
FunctionOfS = Annotated[Any, FUNCTION_OF_S]  # numbers, or a function of the abscissa that returns them
FunctionOfT = Annotated[Any, FUNCTION_OF_T]  # the same in time
Profile = Annotated[float | tuple[float, float] | Callable[[float], float], FUNCTION_OF_S]  # positive, along a rod
Pose = Annotated[Any, POSE]  # a function of the coordinates that returns a 4x4 pose, or a PoseSpline
