"""The mass matrix of rigid bodies on joints of one axis takes a short way, to what inverse dynamics and the long way
give."""

from dataclasses import replace

import numpy as np
import pytest
from robots import random_placement

import lissom as ls
from lissom.dynamics.mass_matrix import kernel_of, mass_matrix_kernel, rigid_mass_matrix_kernel
from lissom.systems.mass import is_rigid

JOINTS = (
    ls.JointRevolute((0.3, -0.5, 0.7), armature=0.3),
    ls.JointPrismatic((1, 2, 2)),
    ls.JointUniversal(),
    ls.JointFixed(),
    ls.JointHelical((1, 1, 0), pitch=0.02),
    ls.JointPlanar(),
)


def body(rng):
    """A rigid body off its axes, any inertia."""
    A = rng.uniform(-0.1, 0.1, (3, 3))
    return ls.RigidBody(rng.uniform(0.5, 2.0), rng.uniform(-0.2, 0.2, 3), A @ A.T + 0.05 * np.eye(3))


def tree(seed, first=None):
    """Two trees of eight links, some of them without a body, on joints of all kinds of one axis at random places."""
    rng = np.random.default_rng(seed)
    made = ls.Robot(f"rigid {seed}")
    for k in range(8):
        parent = None if k in (0, 5) else f"{k - rng.integers(1, min(k, 3) + 1) if k < 5 else k - 1}"
        joint = first if k == 0 and first else JOINTS[rng.integers(len(JOINTS))]
        has_body = k in (4, 7) or rng.random() < 0.8
        made.add_link(f"{k}", body(rng) if has_body else None, joint, parent=parent, placement=random_placement(rng))
    made.add_frame("tip", "7", placement=random_placement(rng))
    return made


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [1e-9, 0.5, 8.0])
def test_columns_are_inverse_dynamics_of_unit_accelerations(seed, size):
    """The general kernel, which takes the twist of a joint for any twist, gives the same."""
    model = tree(seed).build()
    assert is_rigid(model)
    long = replace(model, nodes=replace(model.nodes, screw=np.zeros_like(model.nodes.screw)), cache={})
    assert kernel_of(long) is mass_matrix_kernel and kernel_of(model) is rigid_mass_matrix_kernel
    n, rng = model.nv, np.random.default_rng(seed)
    q, zero = size * rng.normal(size=n), np.zeros(n)
    M = ls.mass_matrix(model, q)
    columns = [ls.inverse_dynamics(model, q, zero, a, gravity=False, elastic=False, loads=False) for a in np.eye(n)]
    for want in (np.array(columns), ls.mass_matrix(long, q)):
        np.testing.assert_allclose(M, want, rtol=0, atol=1e-14 * (1.0 + size**2) * np.abs(M).max())
    assert np.array_equal(M, M.T)


def test_rows_of_batches():
    """Rows of a batch equal the results of each state alone, also where models differ."""
    made = tree(3)
    link = next(name for name, link in made.links.items() if link.body)
    model = made.build()
    batch = model.batch(f"{link}.mass", [1.0, 2.0, 3.0])
    q = np.random.default_rng(1).normal(size=(3, 40, model.nq))
    assert is_rigid(batch.common)
    for found, models in ((ls.mass_matrix(model, q), [model] * 3), (ls.mass_matrix(batch, q), batch.models)):
        for one, rows, given in zip(models, found, q):
            for row, state in zip(rows, given):
                assert np.array_equal(row, ls.mass_matrix(one, state))


def test_what_is_refused():
    """Numbers that are none, and those whose products are none, are named one by one and in a batch."""
    model = tree(1).build()
    slides = int(np.flatnonzero(model.nodes.screw[:, 3:].any(axis=1) & model.nodes.is_screw)[0])
    good = np.zeros((20, model.nq))
    for number, what in ((np.nan, "q.*must be finite"), (1e200, "the result is not finite")):
        bad = good.copy()
        bad[7, model.nodes.v_start[slides]] = number
        for q in (bad, bad[7]):
            with pytest.raises(ls.ShapeError, match=what):
                ls.mass_matrix(model, q)
    assert np.isfinite(ls.mass_matrix(model, good)).all()


def test_what_takes_the_long_way():
    """Rods, joints of several columns, stored poses, and masses that differ by direction, as of links in water."""
    for joint in (ls.JointCylindrical(), ls.JointSpherical(), ls.JointFree()):
        assert not is_rigid(tree(0, first=joint).build())
    soft, basis = tree(0), ls.BasisLegendre(bending_y=0)
    soft.add_link("rod", ls.Rod(0.3, ls.SectionCircle(0.01), basis, ls.Material(young=1e6, density=1e3)))
    assert not is_rigid(soft.build())
    wet, felt = ls.Robot("wet"), ls.Hydrodynamics(added_matrix=np.diag([0, 0, 0, 1.0, 2.0, 3.0]))
    wet.add_link("body", ls.RigidBody.box(0.3, 0.2, 0.1, density=500), ls.JointRevolute())
    assert is_rigid(wet.build())
    wet.set_fluid(density=1000.0, links={"body": felt})
    assert not is_rigid(wet.build())


def test_far_from_the_origin():
    """A robot placed a million metres away, and one that slid there, lose no digits."""
    near = tree(2, first=ls.JointPlanar())
    far = near
    for name in ("0", "5"):
        placement = np.array(near.links[name].placement)
        placement[:3, 3] += 1e6
        far = far.with_({f"{name}.placement": placement})
    model = near.build()
    q = np.random.default_rng(0).normal(size=model.nq)
    slid = q.copy()
    slid[:2] += 1e6
    one = ls.mass_matrix(model, q)
    for other in (ls.mass_matrix(far.build(), q), ls.mass_matrix(model, slid)):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-14 * np.abs(one).max())


def test_slider_that_carries_nothing():
    """It places the base frame of a tree without mass, and has no row but zeros."""
    made = tree(5)
    made.add_link("cart", None, ls.JointPrismatic())
    model = made.build()
    assert is_rigid(model) and model.n_dynamic < model.n_nodes
    q = np.random.default_rng(0).normal(size=model.nq)
    M = ls.mass_matrix(model, q)
    assert not M[-1].any() and not M[:, -1].any()
    assert np.array_equal(M[:-1, :-1], ls.mass_matrix(tree(5).build(), q[:-1]))
