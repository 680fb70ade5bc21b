"""Text files of the user: tables of inputs over time."""

import pytest
from cli.small_robot import write

import lissom as ls
from lissom.io.text_files import read_inputs


def test_input_files_are_read_in_any_order_of_columns(tmp_path):
    """Columns are found by name, blank lines and spaces do not matter, and missing inputs are zero and listed."""
    path = write(tmp_path / "u.csv", "b , t, a\n\n1, 0, 2\n3, 0.5 , 4\n\n")
    history = read_inputs(path, ("a", "gone", "b"))
    assert history.t.tolist() == [0, 0.5] and history.u.tolist() == [[2, 0, 1], [4, 0, 3]]
    assert history.missing == ("gone",)
    assert read_inputs(write(path, "t\n0\n1\n"), ()).u.shape == (2, 0)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["line 1", "empty", "t,up,side"]),
        ("time,up\n0,1\n1,1\n", ["line 1", "must hold the column 't'"]),
        ("t,up,sied\n0,1,1\n", ["line 1, column 3", "up, side", "(got 'sied')"]),
        ("t,up,up\n0,1,1\n", ["line 1, column 3", "'up' is given twice"]),
        ("t,up\n0,1\n1\n", ["line 3", "must hold 2 numbers", "(got 1)"]),
        ("t,up\n0,1\n1,\n", ["line 3, column 'up'", "must be a finite number (got '')"]),
        ("t,up\n0,1\n\n1,two\n", ["line 4, column 'up'", "(got 'two')"]),
        ("t,up\n0,nan\n1,1\n", ["line 2, column 'up'", "(got 'nan')"]),
        ("t,up\n0,1\n1,1\n1,2\n", ["line 4, column 't'", "later than the row before (got 1)"]),
        ("t,up\n0,1\n", ["at least 2 rows", "(got 1)"]),
        ('t,up\n0,"1\n', ["line 2"]),
    ],
)
def test_wrong_input_files_are_named_with_line_and_column(text, parts, tmp_path):
    """Messages contain file, line, column and value."""
    with pytest.raises(ls.ModelError) as caught:
        read_inputs(write(tmp_path / "u.csv", text), ("up", "side"))
    for part in ["u.csv, ", *parts]:
        assert part in str(caught.value)
