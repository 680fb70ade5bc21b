"""What a motion cost, and what its steps did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from lissom.robot import formatting


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Statistics:
    """Cost of a simulation or a rollout.

    Fields:
        method: name of the method.
        steps: number of steps.
        evaluations: number of evaluations of the acceleration.
        jacobians: number of Jacobians.
        wall_time: computing time [s].
        remark: reason for the choice of the method, and automatic changes such as a change of order.
        damped: number of steps of a rollout that needed damped Newton steps.
        damped_time: estimated time of damping [s], from its share of the evaluations.
        error: estimate of `simulate(check=True)`, relative to the size of the motion; None without a check.
        parts: number of additional steps, since fixed steps were divided: Newton's method failed, a contact began or
            ended, a stop was hit, a cable became taut, or a ball went through an obstacle.
        plastic: number of fixed steps that implicit Euler took, since a contact, a stop or a cable began or ceased to
            act.
        deepest: largest depth of a contact at the ends of steps [m]; at the times of the motion for "bdf", "radau"
            and "dop853".
    The energy that steps made is computed on demand, from the motion: `energy_made` of Trajectory and Rollout.
    """

    method: str
    steps: int
    evaluations: int
    jacobians: int
    wall_time: float
    remark: str = ""
    damped: int = 0
    damped_time: float = 0.0
    error: float | None = None
    parts: int = 0
    plastic: int = 0
    deepest: float = 0.0

    @classmethod
    def of(cls, given: Any) -> Statistics:
        """The statistics in a file.

        Raises:
            ValueError: `given` holds no statistics.
        """
        found = cls(**given)
        numbers = found.steps, found.evaluations, found.jacobians, found.wall_time
        if not all(isinstance(x, int | float) for x in numbers) or {type(found.method), type(found.remark)} != {str}:
            raise ValueError(f"its statistics are {given}")
        return found
