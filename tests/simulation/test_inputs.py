"""Inputs given as samples."""

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator

import lissom as ls

T = np.array([0.0, 0.1, 0.25, 0.3, 1.0])
U = np.array([[0.0, 1.0], [2.0, 1.0], [2.0, 5.0], [-1.0, 0.0], [3.0, 0.5]])


@pytest.mark.parametrize("smooth", [False, True])
def test_samples_pass_through_their_points(smooth):
    """At the samples the value is the sample; beyond the ends the first or last is held."""
    samples = ls.Samples(T, U, smooth=smooth)
    np.testing.assert_allclose([samples(t) for t in T], U, rtol=0, atol=1e-14)
    assert np.array_equal(samples(-1.0), U[0])
    assert np.array_equal(samples(9.0), U[-1])


def test_samples_between_their_points():
    """Between the samples the value is on the straight line, or on SciPy's monotone cubic when smooth."""
    times = np.linspace(0.0, 1.0, 101)
    straight = np.stack([np.interp(times, T, column) for column in U.T], axis=1)
    np.testing.assert_allclose([ls.Samples(T, U)(t) for t in times], straight, rtol=0, atol=1e-14)
    smooth = np.array([ls.Samples(T, U, smooth=True)(t) for t in times])
    np.testing.assert_allclose(smooth, PchipInterpolator(T, U)(times), rtol=0, atol=1e-13)
    assert smooth.min() >= U.min() and smooth.max() <= U.max(), (
        "never beyond the samples, so no tension turns to a push"
    )


@pytest.mark.parametrize("smooth", [False, True])
def test_one_or_two_samples(smooth):
    """One sample is a constant, two are a line."""
    assert np.array_equal(ls.Samples([0.5], [[2.0]], smooth=smooth)(0.1), [2.0])
    np.testing.assert_allclose(ls.Samples([0.0, 1.0], [[0.0], [4.0]], smooth=smooth)(0.25), [1.0], atol=1e-15)
