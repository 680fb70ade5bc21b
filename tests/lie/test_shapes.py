"""Leading axes, sizes and values that the Lie functions take and refuse."""

import numpy as np
import pytest

import lissom as ls

SIX = np.array([0.3, -0.8, 0.5, 0.7, -1.1, 0.4])
POSE = ls.lie.se3_exp(SIX)
# function: arguments
CASES = {
    "so3_exp": (SIX[:3],),
    "so3_log": (POSE[:3, :3],),
    "so3_tangent": (SIX[:3],),
    "so3_tangent_inverse": (SIX[:3],),
    "se3_exp": (SIX,),
    "se3_log": (POSE,),
    "se3_Ad": (POSE,),
    "se3_ad": (SIX,),
    "se3_coad": (SIX, SIX[::-1]),
    "se3_tangent": (SIX,),
    "se3_tangent_inverse": (SIX,),
    "se3_tangent_dot": (SIX, SIX[::-1]),
    "se3_tangent_ddot": (SIX, SIX[::-1], 2 * SIX),
    "se3_tangent_transpose_derivative": (SIX, SIX[::-1]),
}

every = pytest.mark.parametrize("name", CASES)


def test_every_function_is_here():
    """A new public Lie function must join this sweep."""
    assert set(ls.lie.__all__) == set(CASES)


@every
def test_leading_axes(name):
    """A batch gives the single result at each place, whatever its shape."""
    function, arguments = getattr(ls.lie, name), CASES[name]
    one = function(*arguments)
    for lead in ((), (1,), (3, 1, 2), (40,)):
        many = function(*(np.broadcast_to(x, lead + x.shape) for x in arguments))
        assert many.shape == lead + one.shape
        assert many.dtype == np.float64
        assert np.array_equal(many, np.broadcast_to(one, many.shape))


@every
def test_empty_batches(name):
    """An empty batch gives an empty result of the right shape."""
    function, arguments = getattr(ls.lie, name), CASES[name]
    for lead in ((0,), (2, 0)):
        assert function(*(np.zeros(lead + x.shape) for x in arguments)).shape == lead + function(*arguments).shape


@pytest.mark.parametrize("name", [name for name, arguments in CASES.items() if len(arguments) > 1])
def test_arguments_broadcast(name):
    """Leading axes of several arguments broadcast against each other."""
    function, (first, *others) = getattr(ls.lie, name), CASES[name]
    rows = np.stack([first, 0.5 * first, -first])[:, None]
    columns = [np.stack([x, 2 * x]) for x in others]
    grid = function(rows, *columns)
    assert grid.shape[:2] == (3, 2)
    for i in range(3):
        for j in range(2):
            assert np.array_equal(grid[i, j], function(rows[i, 0], *(x[j] for x in columns)))


@every
def test_inputs_stay_and_results_are_fresh(name):
    """Arguments, also read-only ones and views, are not written to; results share no memory."""
    function = getattr(ls.lie, name)
    arguments = [np.repeat(x[None], 2, axis=0)[::-1] for x in CASES[name]]
    copies = [x.copy() for x in arguments]
    for x in arguments:
        x.setflags(write=False)
    one = function(*arguments)
    kept = one.copy()
    two = function(*(1.0 * x for x in arguments))
    two[:] = -7.0
    assert all(np.array_equal(x, y) for x, y in zip(arguments, copies))
    assert np.array_equal(one, kept)
    assert one.flags.writeable


@every
def test_lists_and_integers_are_taken(name):
    """Lists and integer arrays count as float64."""
    shape = CASES[name][0].shape
    value = np.eye(shape[0], dtype=int) if len(shape) == 2 else np.arange(1, shape[0] + 1) % 3
    arguments = [value] * len(CASES[name])
    expected = getattr(ls.lie, name)(*(x.astype(float) for x in arguments))
    assert np.array_equal(getattr(ls.lie, name)(*(x.tolist() for x in arguments)), expected)


@every
def test_wrong_shapes(name):
    """A wrong shape is named with the argument, the expected and the received shape."""
    arguments = CASES[name]
    for k in range(len(arguments)):
        bad = list(arguments)
        bad[k] = np.zeros((2, 5))
        with pytest.raises(ls.ShapeError, match=r"^\w+: expected shape \(\.\.\., [346, ]+\), got \(2, 5\)$"):
            getattr(ls.lie, name)(*bad)
        bad[k] = 1.0
        with pytest.raises(ls.ShapeError, match=r"got \(\)$"):
            getattr(ls.lie, name)(*bad)


@every
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite(name, value):
    """NaN and infinity are errors at the door."""
    arguments = CASES[name]
    for k in range(len(arguments)):
        bad = [x.copy() for x in arguments]
        bad[k].flat[1] = value
        with pytest.raises(ls.ShapeError, match="must be finite, got NaN or infinity"):
            getattr(ls.lie, name)(*bad)


def test_leading_axes_that_do_not_fit():
    """Leading axes that do not broadcast are a ShapeError, like every wrong shape."""
    with pytest.raises(ls.ShapeError, match=r"\(2, 6\).*\(3, 6\)"):
        ls.lie.se3_coad(np.zeros((2, 6)), np.zeros((3, 6)))


def test_what_is_not_a_number():
    """A text is refused with the name of the argument."""
    with pytest.raises(ls.ShapeError, match=r"^w: expected"):
        ls.lie.so3_exp("abc")
