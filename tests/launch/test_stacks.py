"""Deformable bodies that JAX is asked for in one call."""

import numpy as np
import pytest

import lissom as ls
from lissom.bodies import evaluation
from lissom.launch import prepare

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.filterwarnings("ignore::lissom.PlausibilityWarning")

L, RADIUS = 0.2, 0.02
LAW = ls.HyperelasticNeoHookean(1e5, damping_time=0.02)
DOMAIN = ls.DomainCylinder(L, RADIUS, 2)
MOTION = ls.KinematicsVolumePreserving(
    L, (ls.PrimitiveTwist([[0.0, 3.0]]), ls.PrimitiveShear([[0.0, 0.0, L]], axis="z"))
)
LINE = [(0.0, 0.01, 0.0), (L, 0.01, 0.0)]


def swaying(x, q):
    """A user's motion, of one coordinate, with a loop that cannot be compiled."""
    q, _ = jax.lax.while_loop(lambda s: s[1] < 1, lambda s: (s[0], s[1] + 1), (q, 0))
    return x + jax.numpy.array([0.0, 0.0, jax.numpy.sin(q[0] * x[0] / L) * x[0]])


def alike(x):
    return 1e3


def arm(*densities):
    """Bodies of two motions by turns about hinges, with tendons inside some of them and one past two."""
    robot, parent = ls.Robot("mixed"), None
    for k, density in enumerate(densities):
        soft = ls.DeformableBody(MOTION, DOMAIN, LAW, density, tip="tip")
        if k == 1:
            law = ls.HyperelasticCompressibleNeoHookean(3e5, 0.3)
            soft = ls.DeformableBody(swaying, DOMAIN, law, density, n=1, tip="tip")
        robot.add_link(str(k), soft, parent=parent, joint=ls.JointRevolute((0.0, 1.0, 0.0)))
        parent = str(k)
    names = [str(k) for k in range(len(densities)) if k != 1]
    robot.add_tendon("long", path=[ls.PathBody(name, LINE, gauss_points=2) for name in names])
    robot.add_tendon("short", path=[ls.PathBody(names[-1], [(0.0, 0.0, 0.01), (L, 0.0, 0.01)])])
    robot.add_tendon("across", path=[ls.PathBody("1", LINE)])
    return robot.build()


@pytest.fixture(scope="module", autouse=True)
def in_python():
    """No motion becomes native code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "MOST_COORDINATES", 0)
        yield


@pytest.fixture(scope="module")
def models(in_python):
    """Bodies of which two have one description, and the same ones that share nothing."""
    return arm(*[1e3] * 3), arm(*(lambda x: alike(x) for _ in range(3)))


def test_alike_go_together(models):
    """Those of one description are a stack; a body of another motion is one of its own."""
    together, apart = (sorted(len(stack.q) for stack in prepare.stacks(model)) for model in models)
    assert together == [1, 2] and apart == [1, 1, 1]
    assert sorted(part.q.shape for part in prepare.pulls(models[0])) == [(1,), (2, 2)]


def test_together_as_alone(models):
    """A stack gives what its bodies give one by one, in batches as well."""
    together, apart = models
    rng = np.random.default_rng(0)
    q, v, a = rng.uniform(-0.3, 0.3, (3, 2, together.nv))
    asked = (
        lambda m: [ls.inverse_dynamics(m, q, v, a), ls.mass_matrix(m, q), ls.actuation_matrix(m, q)],
        lambda m: ls.inverse_dynamics_derivatives(m, q, v, a),
        lambda m: [ls.frame_pose(m, q, "2"), ls.actuation_coordinates(m, q)],
    )
    for find in asked:
        for here, there in zip(find(together), find(apart)):
            assert np.abs(here - there).max() < 1e-12 * np.abs(there).max()


def test_jax_is_asked_once(models, monkeypatch):
    """Once for each stack at a state, for all of its bodies."""
    model, calls = models[0], []
    integrals = {type(stack.integrals) for stack in prepare.stacks(model)}
    (kind,) = integrals
    values = kind.values

    def counted(self, q, v, together=1):
        calls.append(together)
        return values(self, q, v, together)

    monkeypatch.setattr(kind, "values", counted)
    q = np.random.default_rng(1).uniform(-0.3, 0.3, model.nv)
    ls.inverse_dynamics(model, q, q, q)
    ls.mass_matrix(model, q)  # where q̇ = 0
    assert sorted(calls[:2]) == [1, 2] and len(calls) == 4
