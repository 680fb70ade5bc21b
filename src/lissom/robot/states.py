"""Named states (coordinates and velocities of joints, and inputs), and limits of inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from lissom.robot.fields import ActuatorName, JointName, Numbers


@final
@dataclass(frozen=True)
class NamedState:
    """A named state, such as the home pose of an arm. `Model.state` gives its vectors q, v and u.

    Args:
        name: unique among the states.
        positions: coordinates of joints by the names of their links, a number or (nq,) each [rad, m]. Other coordinates
            are neutral.
        velocities: velocities of joints by the names of their links, a number or (nv,) each [rad/s, m/s]. Others are
            zero.
        inputs: inputs by the names of actuators or of coupled inputs, a number or (size,) each [N, N·m, Pa, m]. Others
            are zero.
    """

    name: str
    positions: dict[JointName, Numbers] = field(default_factory=dict)
    velocities: dict[JointName, Numbers] = field(default_factory=dict)
    inputs: dict[ActuatorName, Numbers] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class InputLimits:
    """The least and the largest value of an input. Controllers keep to it (see `Model.input_limits`); simulations take
    the inputs that they are given.

    Args:
        name: name of the actuator or of the coupled input.
        low, high: its least and its largest value, a number or (size,) each [N, N·m, Pa, m]. None: no limit.
    """

    name: ActuatorName
    low: Numbers | None = None
    high: Numbers | None = None
