"""Action models and shooting problems of Crocoddyl, with exact derivatives (extra `crocoddyl`)."""

from lissom.bridges.crocoddyl_actions import action, problem, state

__all__ = ["action", "problem", "state"]
