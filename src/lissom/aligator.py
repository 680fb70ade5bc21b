"""Stages and trajectory problems of aligator, with exact derivatives."""

from lissom.bridges.aligator_stages import order, problem, stage, state

__all__ = ["order", "problem", "stage", "state"]
