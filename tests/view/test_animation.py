"""Films of motions."""

import numpy as np
import pytest
from PIL import Image

import lissom as ls
from lissom.view.animation import configurations_at


@pytest.fixture(scope="module")
def swing():
    """A free body that turns, with a rod on it, over 0.2 s."""
    robot = ls.Robot("flyer")
    robot.add_link("hub", ls.RigidBody.box(0.1, 0.1, 0.05, density=1000), ls.JointFree())
    material = ls.Material(young=1e6, density=1000, viscosity=1e4)
    rod = ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1), material)
    robot.add_link("rod", rod, parent="hub")
    model = robot.build()
    v0 = np.array([1.0, 2.0, 0.0, 0.1, 0.0, 0.5, 0.0, 0.0])
    return model, ls.simulate(model, 0.2, v0=v0, t_eval=np.linspace(0, 0.2, 9))


def test_a_film_has_a_frame_for_each_instant(swing, tmp_path):
    """A gif of 0.2 s at half speed and 20 frames per second has nine frames, and they differ."""
    model, motion = swing
    path = ls.animate(model, motion, tmp_path / "film.gif", fps=20, speed=0.5, follow="rod", dpi=50)
    with Image.open(path) as film:
        assert film.n_frames == 9
        first = np.array(film.convert("RGB"), dtype=int)
        film.seek(8)
        assert np.abs(np.array(film.convert("RGB"), dtype=int) - first).max() > 50


def test_configurations_between_samples(swing):
    """At the samples the configuration is the sample; between them it lies on the manifold, half way."""
    model, motion = swing
    np.testing.assert_allclose(configurations_at(model, motion, motion.t), motion.q, atol=1e-14)
    middle = configurations_at(model, motion, 0.5 * (motion.t[:1] + motion.t[1:2]))[0]
    assert np.linalg.norm(middle[:4]) == pytest.approx(1.0, abs=1e-14)
    ahead, behind = ls.difference(model, middle, motion.q[1]), ls.difference(model, motion.q[0], middle)
    np.testing.assert_allclose(ahead, behind, atol=1e-12)


def test_wrong_films(swing, tmp_path):
    """An unknown kind of file, a speed that is none and a batch are refused by name, and nothing is written."""
    model, motion = swing
    for options, message in (({"speed": 0.0}, "speed: must be > 0"), ({"fps": -1.0}, "fps: must be > 0")):
        with pytest.raises(ls.ModelError, match=message):
            ls.animate(model, motion, tmp_path / "film.gif", **options)
    with pytest.raises(ls.ModelError, match=r"film: must end in \.gif or \.mp4"):
        ls.animate(model, motion, tmp_path / "film.avi")
    batch = ls.simulate(model, 0.01, q0=np.tile(model.neutral(), (2, 1)), t_eval=[0.0, 0.01])
    with pytest.raises(ls.ShapeError, match="a film shows one motion"):
        ls.animate(model, batch, tmp_path / "film.gif")
    assert not list(tmp_path.iterdir())
