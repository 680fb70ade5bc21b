"""Weightless cantilevers under loads at their tip, and Beck's load, shared by the tests of continuation."""

import numpy as np
from closed_form.beams import beam
from scipy.optimize import brentq


def loaded(basis, points=96, *, frame="world", force=None, moment=None, **options):
    """A weightless cantilever along x with a wrench at its tip."""
    robot = beam(basis, gauss_points=points, **options)
    robot.add_point_load("tip", "beam", force=force, moment=moment, frame=frame)
    return robot.build()


def beck_load():
    """Where two frequencies of Beck's column meet, in EI/L²: a double root in Ω of the frequency equation.

    P² + 2Ω² (1 + cosh a cos b) + P Ω sinh a sin b = 0,  a², b² = ∓P/2 + √(P²/4 + Ω²)
    """

    def gap(P, W):
        root = np.sqrt(P**2 / 4 + W**2)
        a, b = np.sqrt(root - P / 2), np.sqrt(root + P / 2)
        return P**2 + 2 * W**2 * (1 + np.cosh(a) * np.cos(b)) + P * W * np.sinh(a) * np.sin(b)

    def slope(P, W, h=1e-4):
        return (8 * (gap(P, W + h) - gap(P, W - h)) - gap(P, W + 2 * h) + gap(P, W - 2 * h)) / (12 * h)

    def lowest(P):  # the value between the first two roots, at its stationary point
        return gap(P, brentq(lambda W: slope(P, W), 7.0, 15.0, xtol=1e-12))

    return brentq(lowest, 19.0, 21.0, xtol=1e-11)
