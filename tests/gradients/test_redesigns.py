"""Models of changed descriptions that share tables with a first model, against complete builds."""

from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from gradients.moving_robots import ROBOTS as MOVING
from gradients.test_gallery_motions import ROBOTS as GALLERY
from robots import build, random_tree

import lissom as ls
from lissom.model.redesign import redesign_of

QUICK = ("hybrid arm", "swimmer", "printed legs", "vehicle", "in a pipe", "soft-tipped arm", "slider-crank", "finger")


def gallery(name):
    """The model of a robot of the gallery."""
    made = GALLERY[name][1]()
    return made[0] if isinstance(made, tuple) else made


def differences(a, b, path="model"):
    """Names of the tables of two models that are not equal bit by bit."""
    if isinstance(a, np.ndarray):
        same = isinstance(b, np.ndarray) and a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
        return [] if same else [path]
    if is_dataclass(a) and type(a).__module__.startswith("lissom.model"):
        names = [item.name for item in fields(a) if item.name not in ("cache", "description", "known")]
        return [row for name in names for row in differences(getattr(a, name), getattr(b, name), f"{path}.{name}")]
    if isinstance(a, dict | tuple):
        entries = list(a.items() if isinstance(a, dict) else enumerate(a))
        others = dict(b.items() if isinstance(b, dict) else enumerate(b))
        if [key for key, _ in entries] != list(others):
            return [path]
        return [row for key, x in entries for row in differences(x, others[key], f"{path}[{key}]")]
    return [] if not isinstance(a, int | float | str) or a == b else [path]


def changed(value, by):
    """A value that has moved a little, None if it is no number, array of numbers or pose."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return None
    if value is None or isinstance(value, bool | int) or array.size == 0 or not np.isfinite(array).all():
        return None
    other = array @ ls.lie.se3_exp(by * np.arange(1.0, 7.0)) if array.shape == (4, 4) else array * (1.0 + by)
    if array.ndim == 0:
        return float(other)
    return type(value)(other.tolist()) if isinstance(value, list | tuple) else other


def assert_equal_to_builds(model):
    """A model of each changed value, and of two values at once, equals the build. Returns how many shared tables."""
    shared, maker, last = 0, redesign_of(model), model.description
    known = {path: changed(value, 1e-3) for path, value in last.described_values().items()}
    paths = [path for path, value in known.items() if value is not None]
    for path in np.random.default_rng(1).permutation(paths)[:24].tolist():
        robot = last.with_({path: known[path]})
        try:
            wanted = robot.build()
        except ls.ModelError as error:
            with pytest.raises(ls.ModelError) as found:
                maker.model(robot)
                raise error
            assert str(found.value) == str(error), path
            continue
        found = maker.model(robot)
        assert found is None or not differences(found, wanted), (path, differences(found, wanted))
        shared += found is not None
    assert not differences(maker.model(last), last.build())
    return shared


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*MOVING, *QUICK])
def test_models_equal_builds(name):
    """All tables equal those of complete builds, bit by bit, one changed value after the other."""
    model = MOVING[name]().build() if name in MOVING else gallery(name)
    assert assert_equal_to_builds(model) > 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(k, marks=pytest.mark.slow) for k in range(6, 12))])
def test_models_of_random_trees_equal_builds(seed):
    """The same for trees of random joints, rods and bodies."""
    assert assert_equal_to_builds(build(random_tree(seed))) > 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in GALLERY if name not in QUICK])
def test_models_of_the_gallery_equal_builds(name):
    """The same for the other robots of the gallery."""
    assert_equal_to_builds(gallery(name))
