"""Motions under a traced law, with the law in the kernel and in Python."""

import numpy as np

import lissom as ls
from lissom.stepping.state import StateDerivative


def both_ways(model, duration, given, monkeypatch):
    """The motion whose law the kernel evaluates, and the one whose law Python calls."""
    motion = ls.simulate(model, duration, **given)
    monkeypatch.setattr(StateDerivative, "has_native_law", False)
    return motion, ls.simulate(model, duration, **given)


def same_counts(*motions):
    """Whether motions took as many steps, evaluations and matrices."""
    counts = [(x.statistics.steps, x.statistics.evaluations, x.statistics.jacobians) for x in motions]
    return all(one == counts[0] for one in counts)


def check_law_through_inputs(model, q, v, u, options, monkeypatch):
    """A law that drives inputs about u has the matrix of the steps that Python takes with it."""
    import jax.numpy as jnp

    law = ls.TracedFunction(lambda t, q, v: u * (1.0 + 0.5 * jnp.sin(5.0 * t + q[: len(u)]) - 0.1 * v[: len(u)]))
    given = {"q0": q, "v0": v, "controller": law, "t_eval": [0.01, 0.02], **options}
    motion, other = both_ways(model, 0.02, given, monkeypatch)
    assert same_counts(motion, other)
    np.testing.assert_allclose(motion.q, other.q, rtol=0, atol=1e-11)
