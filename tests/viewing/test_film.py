"""Films of motions."""

import pickle
import subprocess

import numpy as np
import pytest
from imageio_ffmpeg import get_ffmpeg_exe
from PIL import Image

import lissom as ls
from lissom.viewing.camera import Camera
from lissom.viewing.canvas import Labels
from lissom.viewing.render import chosen_speed, configurations_at


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


@pytest.mark.graphics
def test_a_film_has_a_frame_for_each_instant(swing, tmp_path):
    """A gif of 0.2 s at half speed and 20 frames per second has nine frames, and they differ."""
    motion = swing[1]
    path = motion.animate(tmp_path / "film.gif", fps=20, speed=0.5, trail="rod", size=(200, 150))
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
            motion.animate(tmp_path / "film.gif", **options)
    with pytest.raises(ls.ModelError, match=r"film: must end in \.gif or \.mp4"):
        motion.animate(tmp_path / "film.avi")
    batch = ls.simulate(model, 0.01, q0=np.tile(model.neutral(), (2, 1)), t_eval=[0.0, 0.01])
    with pytest.raises(ls.ShapeError, match="a film shows one motion"):
        batch.animate(tmp_path / "film.gif")
    assert not list(tmp_path.iterdir())


@pytest.mark.graphics
def test_a_film_has_the_right_length(swing, tmp_path):
    """Purpose: an mp4 has as many frames as instants, so many a second, of the size asked for; the camera goes along
    with a link and round."""
    motion = swing[1]
    path = motion.animate(tmp_path / "film.mp4", fps=20, speed=0.5, size=(160, 120), follow="hub", orbit=90.0)
    read = [get_ffmpeg_exe(), "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run(read, capture_output=True, check=True)
    told = done.stderr.decode()
    assert "Video: h264" in told and "160x120" in told and "20 fps" in told and "Duration: 00:00:00.45" in told
    frames = np.frombuffer(done.stdout, dtype=np.uint8).reshape(-1, 120, 160, 3).astype(int)
    assert len(frames) == 9 and np.abs(frames[8] - frames[0]).max() > 50


def test_a_trajectory_from_a_file_needs_its_model(swing, tmp_path):
    """Purpose: files of trajectories do not hold the model, which is asked for by name; pickles neither."""
    motion = swing[1]
    motion.save(tmp_path / "motion.npz")
    loaded = ls.Trajectory.load(tmp_path / "motion.npz")
    for bare in (loaded, pickle.loads(pickle.dumps(motion))):
        assert bare.model is None
        with pytest.raises(ls.ModelError, match="model="):
            bare.animate(tmp_path / "film.gif")


@pytest.mark.graphics
def test_a_trajectory_from_a_file_is_filmed_with_its_model(swing, tmp_path):
    """Purpose: with the model the film is made."""
    model, motion = swing
    motion.save(tmp_path / "motion.npz")
    loaded = ls.Trajectory.load(tmp_path / "motion.npz")
    assert loaded.animate(tmp_path / "film.gif", model=model, fps=5.0, size=(80, 60)).exists()


def test_a_short_motion_is_slowed_down_and_says_so(swing, monkeypatch, tmp_path):
    """0.2 s become a film of four seconds, whose pictures say that it is 20 times slower; a given speed counts."""
    told = []
    monkeypatch.setattr(Labels, "clock", lambda self, t, speed=1.0: told.append((t, speed)))
    motion = swing[1]
    path = motion.animate(tmp_path / "film.gif", fps=2.0, size=(80, 60))
    with Image.open(path) as film:
        assert film.n_frames == 9
    assert {speed for _, speed in told} == {0.05} and told[-1][0] == pytest.approx(0.2)
    told.clear()
    motion.animate(tmp_path / "film.gif", fps=10.0, speed=1.0, size=(80, 60))
    assert {speed for _, speed in told} == {1.0}
    for duration in (1e-3, 0.1, 1.7, 2.99):
        assert 3.0 <= duration / chosen_speed(duration) <= 7.6
    assert chosen_speed(3.0) == chosen_speed(60.0) == chosen_speed(0.0) == 1.0


def test_the_clock_writes_the_pace():
    """The words of the clock, and digits that tell slow pictures apart."""
    labels, words = Labels(Camera(np.eye(3), np.zeros(3), 1.0, (200, 100))), []
    labels.text = lambda x, y, text, *more: words.append(text)
    for speed in (1.0, 0.05, 0.002, 4.0):
        labels.clock(0.1234567, speed)
    assert words == ["t = 0.12 s", "t = 0.123 s, 20 times slower", "t = 0.1235 s, 500 times slower",
                     "t = 0.12 s, 4 times faster"]  # fmt: skip
