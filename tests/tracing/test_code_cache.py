"""The cache of the code of traced functions: its keys, its files, and the functions that come from it."""

import os
import stat
import tempfile
import warnings
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import lissom as ls
from lissom.bodies import native_code as making
from lissom.bodies.domains import DomainCylinder
from lissom.bodies.integrals import ShapeIntegrals
from lissom.bodies.kinematics import KinematicsFunction
from lissom.bodies.materials import HyperelasticLinear, HyperelasticUniaxial
from lissom.lie import start
from lissom.lie.start import cache_folder
from lissom.lie.warp_private import is_tested
from lissom.portable import read_cached
from lissom.robot import poses
from lissom.tracing import code_cache, native
from lissom.tracing.code_cache import content_key, stored_code
from lissom.tracing.graph import trace
from lissom.tracing.native import code_of, compiled_functions

LENGTH = 0.2


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty cache."""
    (tmp_path / "kernels").mkdir()
    monkeypatch.setattr(native.wp.config, "kernel_cache_dir", str(tmp_path / "kernels"))
    return tmp_path / "lissom-traced"


def of_another_user(path, monkeypatch):
    """Let a file or a folder belong to another user."""
    if os.getuid() == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 12345)


needs_users = pytest.mark.skipif(not hasattr(os, "getuid"), reason="the system has no such users")


@needs_users
def test_caches_are_folders_of_one_user(folder, monkeypatch):
    """Code in them runs. A new folder is private, and so is one that others could write; that of another user, or a
    link to it, is replaced by a private one of this process, which a warning says once."""
    assert cache_folder("lissom-traced") == folder and stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    assert cache_folder("lissom-traced") == folder and stat.S_IMODE(folder.stat().st_mode) == 0o700
    other = folder.with_name("other")
    other.mkdir()
    link = folder.with_name("lissom-linked")
    link.symlink_to(other)
    of_another_user(other, monkeypatch)
    of_another_user(folder, monkeypatch)
    for name in ("lissom-traced", "lissom-linked"):
        with pytest.warns(
            ls.CacheWarning, match=f"{name} belongs to another user: .*; set WARP_CACHE_PATH to a folder"
        ):
            own = cache_folder(name)
        assert own.parent != folder.parent and stat.S_IMODE(own.stat().st_mode) == 0o700
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert cache_folder(name) == own


@needs_users
def test_files_of_other_users_are_not_read(folder, monkeypatch):
    """A file that another user has put into a folder while others could write it is not code."""
    file = cache_folder("lissom-traced") / "code.o"
    file.write_bytes(b"code")
    assert read_cached(file, lambda path: path.read_bytes()) == b"code"
    of_another_user(file, monkeypatch)
    assert read_cached(file, lambda path: path.read_bytes()) is None


def test_caches_beside_kernels_that_cannot_be_stored_are_own(tmp_path, monkeypatch):
    """Where kernels go to a temporary folder, the caches beside them lie in a private one, not among the files of all
    users."""
    monkeypatch.setattr(native.wp.config, "kernel_cache_dir", str(tmp_path / "none"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    start._moved(OSError("full"))
    for name in ("lissom-traced", "lissom-grids", "lissom-rules"):
        made = cache_folder(name)
        assert made.parent.parent == tmp_path and stat.S_IMODE(made.parent.stat().st_mode) == 0o700


def bent(scale: float) -> KinematicsFunction:
    """A motion with a constant in its closure."""

    def move(x, q):
        s = x[0] / LENGTH
        return x + scale * jnp.array([q[0] * s, q[1] * s * s, jnp.sin(q[1]) * x[1] * s])

    return KinematicsFunction(move, 2)


def integrals(scale: float, law=None) -> ShapeIntegrals:
    """Integrals of a body in a fresh object, which shares nothing with others."""
    law = HyperelasticUniaxial(young=1e5, poisson=0.4, damping_time=0.01) if law is None else law
    return ShapeIntegrals(bent(scale), DomainCylinder(LENGTH, 0.01), law, 1000.0)


def values(body: ShapeIntegrals) -> list[np.ndarray]:
    """All results of the first native function of a body."""
    n, made = 2, body.native
    shapes = [(3,), (3, 3), (n, 3), (n, 3, 3), (n, n), (3,), (3,), (n, 3), (n,), (), (n,), (n, n)]
    found = [np.zeros(shape) for shape in shapes]
    made.functions.call(0, [np.array([0.3, -0.2]), np.array([0.1, 0.7]), made.table], found)
    return found


def test_second_use_neither_differentiates_nor_writes_code(folder, monkeypatch):
    """A body of the same content takes its code from the cache, with the same bits of results and of tables."""
    first = integrals(1.0)
    expected = values(first)
    assert len(first.native.functions.address) == 2
    assert len(list(folder.glob("*.json"))) == 1
    assert len(list(folder.glob("*.o"))) == (2 if is_tested(native.wp.__version__) else 0)

    def never(*_, **__):
        raise AssertionError

    monkeypatch.setattr(making, "code_of", never)
    monkeypatch.setattr(making, "table_of", never)
    second = integrals(1.0)
    assert all(map(np.array_equal, expected, values(second)))
    assert np.array_equal(first.native.table, second.native.table)


def test_bodies_of_other_content_have_code_of_their_own(folder):
    """A constant of a closure, another law and a law without damping are part of the key."""
    linear = HyperelasticLinear(young=1e5, poisson=0.4, damping_time=0.01)
    undamped = HyperelasticUniaxial(young=1e5, poisson=0.4)
    bodies = list(map(integrals, (1.0, 0.5, 1.0, 1.0), (None, None, undamped, linear)))
    forces = [values(body)[10] for body in bodies]
    assert len({body.native.functions.address for body in bodies}) == 4
    assert len(list(folder.glob("*.json"))) == 4
    assert not any(np.array_equal(forces[0], other) for other in forces[1:])


def test_bodies_of_other_moduli_share_code(folder, monkeypatch):
    """Numbers of the material are in the table: no body needs code of its own for them, and each has its own forces."""
    first = integrals(1.0)
    expected = values(first)
    monkeypatch.setattr(making, "code_of", None)
    numbers = {"young": 1e5, "poisson": 0.4, "damping_time": 0.01}
    for name in numbers:
        other = integrals(1.0, HyperelasticUniaxial(**{**numbers, name: 1.25 * numbers[name]}))
        found = values(other)
        assert other.native.functions.address == first.native.functions.address
        assert len(list(folder.glob("*.json"))) == 1
        x = other.values(np.array([0.3, -0.2]), np.array([0.1, 0.7]))
        for k, wanted in ((9, x.U), (10, x.g + x.d), (11, x.d_v)):
            np.testing.assert_allclose(found[k], wanted, rtol=0, atol=1e-13 * np.abs(wanted).max())
        assert not np.allclose(found[10], expected[10], rtol=1e-3)


def test_poses_come_from_the_cache(folder, monkeypatch):
    """A pose of the same content takes its code from the cache; one with another constant does not."""

    def turning(rate: float):
        def pose(q):
            c, s = jnp.cos(rate * q[0]), jnp.sin(rate * q[0])
            return jnp.array([[c, -s, 0, 0.1 * c], [s, c, 0, 0.1 * s], [0, 0, 1, 0], [0, 0, 0, 1]])

        return pose

    at = np.array([[0.4]])
    first = poses.PoseFunction(turning(2.0), 1).derivatives(at)
    monkeypatch.setattr(poses, "derivative", None)
    second = poses.PoseFunction(turning(2.0), 1).derivatives(at)
    assert all(map(np.array_equal, first, second))
    with pytest.raises(TypeError):
        poses.PoseFunction(turning(3.0), 1).derivatives(at)


def test_what_has_no_known_content_has_no_key(folder):
    """Functions and classes of a user are not stored."""

    class Own:
        pass

    graph, nodes = trace(lambda x: (x * x,), [(2,)])
    assert content_key(Own()) is None
    assert content_key(len) is None
    code = stored_code(None, lambda: code_of([(graph, nodes)], [2]))
    assert "run(" in code.functions[0]()
    assert not folder.exists()


def test_broken_files_are_made_again(folder):
    """A file that cannot be read is replaced."""
    graph, nodes = trace(lambda x: (jnp.sin(x) * 2.0,), [(2,)])
    key = content_key("test", graph)
    text = code_of([(graph, nodes)], [2]).functions[0]()
    file = folder / f"{key}.json"

    def read() -> str:
        code = stored_code(key, lambda: code_of([(graph, nodes)], [2]))
        assert code.name == key
        return code.functions[0]()

    assert read() == text
    whole = file.read_text(encoding="utf-8")
    for broken in ("", whole[: len(whole) // 2], "[]", "{}", '{"functions": 1, "table": null}'):
        file.write_text(broken, encoding="utf-8")
        assert read() == text
        assert file.read_text(encoding="utf-8") == whole


@pytest.mark.skipif(not is_tested(native.wp.__version__), reason="Warp has the compiled code in its own cache")
def test_broken_compiled_code_is_made_again(folder, monkeypatch):
    """Compiled code that cannot be loaded is replaced; other compiled code is not compiled again."""
    graph, nodes = trace(lambda x: (jnp.sin(x) * 3.0,), [(2,)])
    code, x = code_of([(graph, nodes)], [2]), np.array([0.3, -0.8])

    def value() -> np.ndarray:
        found = np.zeros(2)
        monkeypatch.setattr(native, "_loaded", {})
        compiled_functions(code).call(0, [x], [found])
        return found

    assert np.array_equal(value(), 3.0 * np.sin(x))
    (file,) = folder.glob("*.o")
    whole = file.read_bytes()
    for broken in (b"", whole[: len(whole) // 2], np.random.default_rng(1).bytes(4000)):
        file.write_bytes(broken)
        assert np.array_equal(value(), 3.0 * np.sin(x))
        assert file.read_bytes() == whole
    monkeypatch.setattr(native, "object_of", None)
    assert np.array_equal(value(), 3.0 * np.sin(x))


def test_cache_has_a_largest_size(folder, monkeypatch):
    """The oldest files are deleted; the newest one stays."""
    graph, nodes = trace(lambda x: (jnp.cos(x),), [(2,)])
    monkeypatch.setattr(code_cache, "_ON_DISK", 1)
    for name in ("a", "b"):
        stored_code(content_key(name), lambda: code_of([(graph, nodes)], [2])).functions[0]()
    assert [file.stem for file in folder.glob("*.json")] == [content_key("b")]


def test_code_is_stored_when_all_of_it_is_written(folder):
    """A file never holds a part of the functions."""
    graph, nodes = trace(lambda x: (jnp.cos(x) + 1.0,), [(2,)])
    code = stored_code(content_key("two"), lambda: code_of([(graph, nodes), (graph, nodes)], [2]))
    code.functions[1]()
    assert not any(folder.iterdir())
    code.functions[0]()
    assert len(list(folder.glob("*.json"))) == 1
