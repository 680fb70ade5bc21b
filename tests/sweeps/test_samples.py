"""Which samples a sweep takes."""

import numpy as np
import pytest

import lissom as ls
from lissom.sweeps.samples import sampling


def test_grids_take_all_combinations():
    """The last parameter changes fastest; the ends of a span are exact, in a logarithm too."""
    found = sampling({"a": ls.Span(1.0, 100.0, 3, "log"), "b": [0, 5]}, "grid", None, 0)
    np.testing.assert_allclose(found.table, [[1, 0], [1, 5], [10, 0], [10, 5], [100, 0], [100, 5]], rtol=1e-15)
    assert found.table[-1, 0] == 100.0 and found.names == ("a", "b")


def test_lists_go_side_by_side():
    """Row k has the k-th value of each."""
    np.testing.assert_array_equal(sampling({"a": [1, 2], "b": [3, 4]}, "listed", None, 0).table, [[1, 3], [2, 4]])


@pytest.mark.parametrize("kind", ["random", "latin_hypercube", "sobol"])
def test_points_fill_their_ranges(kind):
    """Each parameter stays in its range and has the mean of its distribution; the seed decides, and nothing else."""
    from scipy import stats  # slow to import

    given = {"a": ls.Span(2.0, 4.0), "b": ls.Span(1.0, 100.0, scale="log"), "c": [1.0, 2.0, 3.0], "d": stats.norm(5, 2)}
    a, b, c, d = (found := sampling(given, kind, 512, 1)).table.T
    assert a.min() >= 2 and a.max() <= 4 and b.min() >= 1 and b.max() <= 100 and set(c) == {1, 2, 3}
    for values, mean, deviation in ((a, 3, 0.577), (np.log10(b), 1, 0.577), (c, 2, 0.816), (d, 5, 2)):
        assert abs(values.mean() - mean) < 4 * deviation / np.sqrt(512)
    np.testing.assert_array_equal(found.table, sampling(given, kind, 512, 1).table)
    assert not np.array_equal(found.table, sampling(given, kind, 512, 2).table)


def test_a_latin_hypercube_has_one_point_in_each_slice():
    """Each of n slices of each range holds one of n points."""
    table = sampling({"a": ls.Span(0, 1), "b": ls.Span(0, 1)}, "latin_hypercube", 50, 3).table
    for column in table.T:
        np.testing.assert_array_equal(np.sort((column * 50).astype(int)), np.arange(50))


def test_sobol_points_go_on():
    """The first samples of a longer Sobol sweep are those of a shorter one."""
    short, long = (sampling({"a": ls.Span(0, 1)}, "sobol", n, 3).table for n in (8, 20))
    np.testing.assert_array_equal(long[:8], short)


@pytest.mark.parametrize(
    "given, options, words",
    [
        ({"a": [1]}, {"kind": "grids"}, r"samples: must be one of \('grid', .* \(got 'grids'\)"),
        ({}, {}, r"parameters: must be ranges or lists of values by name \(got {}\)"),
        ({"a": [1]}, {"count": 3}, r"count: a grid has as many samples as its values give; leave it out \(got 3\)"),
        ({"a": ls.Span(0, 1)}, {}, r"parameter 'a': a grid needs the number of steps"),
        ({"a": [1, np.nan]}, {}, r"parameter 'a': must be a Span or a list of finite numbers"),
        ({"a": []}, {}, r"parameter 'a': must"),
        ({"a": [1, 2], "b": [1]}, {"kind": "listed"}, r"equally many values of each \(got {'a': 2, 'b': 1}\)"),
        (
            {"a": 3.0},
            {"kind": "sobol", "count": 4},
            r"parameter 'a': must be a Span, a list of values or a distribution",
        ),
        ({"a": [1]}, {"kind": "sobol"}, r"count: must be an integer >= 1 \(got None\)"),
        ({"a": [1]}, {"kind": "sobol", "count": 4, "seed": -1}, r"seed: must be an integer >= 0 \(got -1\)"),
    ],
)
def test_what_is_wrong_with_samples(given, options, words):
    """The error names the argument, the rule and the value."""
    with pytest.raises(ls.ModelError, match=words):
        sampling(given, **({"kind": "grid", "count": None, "seed": 0} | options))


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((1, 1), r"span: high: must be > 1"),
        ((0, 1, None, "log"), r"span: low: must be > 0"),
        ((0, 1, 1), r"span: steps: must be an integer >= 2 \(got 1\)"),
        ((0, 1, 3, "cubic"), r"span: scale: must be one of \('linear', 'log'\) \(got 'cubic'\)"),
    ],
)
def test_what_is_wrong_with_spans(arguments, words):
    """The error names the argument, the rule and the value."""
    with pytest.raises(ls.ModelError, match=words):
        ls.Span(*arguments)
