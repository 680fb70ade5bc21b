"""Uniform beams of prescribed stiffness, shared by the closed forms."""

import numpy as np

import lissom as ls

NO_GRAVITY = (0.0, 0.0, 0.0)
DOWN = np.array([[0.0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1]])  # turns the rod's x to the world's -z


def beam(
    basis, *, length=1.0, GJ=1.0, EI=1.0, EA=1.0, GA=1.0, inertia=(0, 0, 0, 1, 1, 1), gravity=NO_GRAVITY, **options
):
    """A robot of one rod called "beam"; `options` go to the rod (gauss_points) and to the link (joint, placement)."""
    section = ls.SectionGeneral(stiffness=(GJ, EI, EI, EA, GA, GA), inertia=inertia)
    rod = ls.Rod(length, section, basis, gauss_points=options.pop("gauss_points", None))
    robot = ls.Robot("beam", gravity=gravity)
    robot.add_link("beam", rod, **options)
    return robot


def tip_pose(model, q):
    """Pose of the beam's end, 4x4."""
    return ls.frame_pose(model, q, "beam")
