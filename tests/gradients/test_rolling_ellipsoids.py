"""Derivatives of motions of ellipsoids that roll on planes, with anchors that are points of their bodies."""

import numpy as np
import pytest
from closed_form.test_ellipsoids_on_planes import HALF, ellipsoid, quaternion
from gradients.moving_robots import assert_design_slopes, changes, differenced, mismatch
from scipy.spatial.transform import Rotation

import lissom as ls

LAW = {"stiffness": 1e4, "exponent": 1.4, "damping": 0.5, "stick_stiffness": 2e3, "stick_damping": 0.01}


@pytest.mark.parametrize(("friction", "slides"), [(2.0, False), (0.05, True)], ids=["sticking", "sliding"])
@pytest.mark.parametrize("carried", [False, True])
def test_motions_have_derivatives_by_their_start(friction, slides, carried):
    """Derivatives of a motion that rolls, spins and sticks or slides, by its start, equal central differences of whole
    motions; backward ones equal forward ones."""
    model, rng = ellipsoid(carried=carried, friction=friction, **LAW), np.random.default_rng(4)
    steps = 14 if carried else 40  # it pushes a free tray away
    turn = Rotation.from_euler("xyz", [0.3, -0.4, 0.5])
    height = np.linalg.norm(HALF * (turn.as_matrix().T @ [0, 0, 1.0])) - 1e-3
    q0, v0 = ls.start_configuration(model), np.zeros(model.nv)
    q0[-7:] = np.concatenate([quaternion(turn), [0.01, 0.02, height]])
    v0[-6:] = np.append([2.0, -3.0, 4.0], turn.as_matrix().T @ ([0.3, 0.0, 0.0] if slides else [0.0, 0.0, 0.0]))

    def moved(x, dq, dv):
        return ls.rollout(model, ls.integrate(model, q0, x * dq), v0 + x * dv, dt=1e-3, steps=steps, tolerance=1e-13)

    motion = moved(0.0, np.zeros(model.nv), np.zeros(model.nv))
    assert np.isfinite(motion.anchors[1:]).any(axis=(1, 2)).all()  # it touches all the time
    way = rng.normal(size=(2, model.nv))
    for k in range(2):
        dq, dv = (x if j == k else 0.0 * x for j, x in enumerate(way))
        change = motion.forward(dq, dv, np.zeros((steps, 0)))
        found = differenced(lambda x, dq=dq, dv=dv: changes(model, motion, moved(x, dq, dv)), 1e-6)
        assert mismatch(model, (change.q, change.v, change.a), found) < 1e-6, k
    weights = rng.normal(size=(3, steps + 1, model.nv))
    gradient, change = motion.backward(*weights), motion.forward(*way, np.zeros((steps, 0)))
    forwards = sum(np.sum(w * x) for w, x in zip(weights, (change.q, change.v, change.a)))
    assert gradient.q0 @ way[0] + gradient.v0 @ way[1] == pytest.approx(forwards, rel=1e-10)


@pytest.mark.parametrize("stick", [True, False])
def test_designs(stick):
    """Derivatives of the residual and of the next anchors by half-axes, places and constants equal differences of
    rebuilt robots."""
    law = LAW | {"friction": 0.4} if stick else {k: LAW[k] for k in ("stiffness", "exponent", "damping")}
    model, rng, n = ellipsoid(carried=True, **({"friction": 0.4} | law)), np.random.default_rng(6), 3
    q = np.tile(ls.start_configuration(model), (n, 1))
    for k in range(n):
        turn = Rotation.random(random_state=k)
        height = np.linalg.norm(HALF * (turn.as_matrix().T @ [0, 0, 1.0])) - 4e-3
        q[k, -7:] = np.concatenate([quaternion(turn), [0.01, 0.02, height]])
    v, a = 0.3 * rng.normal(size=(2, n, model.nv))
    before = ls.integrate(model, q, 0.005 * rng.normal(size=(n, model.nv)))
    held = np.array([ls.contact_anchors(model, x) for x in before]) if stick else None
    shape = "stone.body.shapes[0]"
    paths = ["floor.placement", "floor.stiffness", "floor.friction", f"{shape}.placement"]
    paths += [f"{shape}.shape.radius_{x}" for x in "xyz"]
    assert_design_slopes(model, paths, (q, v, a, held), 1e-6, rng)
