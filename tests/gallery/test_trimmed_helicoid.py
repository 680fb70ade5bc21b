"""The trimmed helicoid of Pustina 2025, simulation 1: its mesh, and tendons that lead its tips round circles."""

import numpy as np
import pytest
from gallery.examples import example

pytest.importorskip("jax")


@pytest.fixture(scope="module")
def study():
    """The example as a module."""
    return example("trimmed_helicoid")


def test_mesh(study):
    """Purpose: sound cells, each inner face shared by two of them, inside the printed cylinder, with the volume of the
    blades to the order of chords: (2π TURNS / 38)² / 6 is a hundredth."""
    vertices, cells = study.helicoid()
    assert len(cells) == 2736
    faces = np.sort(np.concatenate([cells[:, np.delete(np.arange(4), k)] for k in range(4)]), axis=1)
    shared = np.unique(faces, axis=0, return_counts=True)[1]
    along, across, through = study.DIVISIONS
    skin = 4 * (along * across + across * through + through * along)  # triangles of a blade cut as a box
    assert set(shared) == {1, 2} and (shared == 1).sum() == 2 * skin
    corners = vertices[cells]
    volumes = np.linalg.det(corners[:, 1:] - corners[:, :1]) / 6.0
    assert volumes.min() > 0.0
    exact = 2.0 * np.pi * study.TURNS * (study.RADIUS**2 - study.CORE**2) * study.BLADE
    assert volumes.sum() == pytest.approx(exact, rel=0.015)
    assert np.hypot(*vertices.T[1:]).max() <= study.RADIUS * (1 + 1e-12)
    assert vertices[:, 0].min() == 0.0 and vertices[:, 0].max() == pytest.approx(study.LENGTH, rel=1e-12)


def test_few_points_integrate_as_all(study):
    """Purpose: the chosen points have the moments of the whole mesh up to the degree asked for."""
    few, whole = (study.body(compress).domain.quadrature() for compress in (study.COMPRESS, None))
    assert len(few.points) < 0.01 * len(whole.points)
    powers = [(i, j, k) for i in range(7) for j in range(7 - i) for k in range(7 - i - j)]
    unit = (study.LENGTH, study.RADIUS, study.RADIUS)
    one, other = (
        np.array([np.prod((part.points / unit) ** power, axis=1) @ part.weights for power in powers])
        for part in (few, whole)
    )
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-10 * whole.weights.sum())


@pytest.mark.slow  # minutes: JAX compiles, statics of some ten equilibria, and 40 steps
@pytest.mark.filterwarnings("ignore::lissom.AccuracyWarning")  # some tendons push
def test_lengths_decay_as_the_gains_say(study):
    """Purpose: the tips are on the circles where statics says; errors of lengths are those of ë + ė + 10 e = 0 within
    a hundredth of the largest, the swing of which decays at half the derivative gain within a hundredth."""
    model = study.build()
    q, u = study.start(model)
    given = study.reference(model, q, u, 1.0)
    for k, row in enumerate(given.q):
        there = study.circles(study.PERIOD / study.SAMPLES * k)
        assert np.abs(study.tips(model, row[None])[0] - there).max() < 1e-9
    motion = study.follow(model, given.path, q, 1.0)
    e, rate = study.errors(model, given.path, motion)
    assert 0.01 < np.abs(e[0]).max() < 0.02
    assert np.abs(e - study.promised(motion.t, e[0], rate[0])).max() < 0.01 * np.abs(e[0]).max()
    assert study.decay(motion.t, e, rate) == pytest.approx(0.5 * study.DERIVATIVE, rel=0.01)
