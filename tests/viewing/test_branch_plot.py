"""Graphs of branches: their lines are the computed numbers, solid where stable and dashed where not."""

import numpy as np
import pytest

import lissom as ls


@pytest.fixture(scope="module")
def column():
    """A column that buckles under its Euler load, its straight branch and the two bent ones."""
    strip = ls.SectionGeneral(stiffness=(1, 1, 1, 1, 1, 1), inertia=(0, 0, 0, 1, 1, 1))
    robot = ls.Robot("column", gravity=(0, 0, 0))
    robot.add_link("column", ls.Rod(1.0, strip, ls.BasisLegendre(bending_y=6)))
    robot.add_point_load("tip", "column", force=(-(np.pi**2) / 4, 0, 0))
    model = robot.build()
    straight = ls.continuation(model, factor_range=(0.0, 2.0))
    (event,) = straight.events
    bent = [ls.continuation(model, q0=event.q, factor=event.factor, along=event.direction, factor_range=(0.0, 2.0),
                            direction=way) for way in (1, -1)]  # fmt: skip
    return model, straight, bent


def lines_of(axes):
    """Dash patterns and points (n, 2) of all lines without marks, and the marks with their places."""
    lines = [(line.get_linestyle(), np.column_stack(line.get_data())) for line in axes.lines
             if line.get_linestyle() != "None"]  # fmt: skip
    marks = [(line.get_marker(), *np.ravel(line.get_data())) for line in axes.lines if line.get_linestyle() == "None"]
    return lines, marks


def test_a_column_is_dashed_beyond_its_euler_load(column):
    """The straight branch is solid up to the bifurcation and dashed beyond; the bent branches are solid, and their ends
    are those of frame_pose, which lie on both sides."""
    model, straight, bent = column
    axes = ls.plot_branch(model, [straight, *bent]).axes[0]
    lines, marks = lines_of(axes)
    assert [style for style, _ in lines] == ["-", "--", "-", "-"]
    (mark,) = marks
    assert mark[0] == "D" and mark[1] == pytest.approx(1.0, abs=1e-4) and mark[2] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(lines[0][1][-1], mark[1:])
    np.testing.assert_allclose(lines[1][1][0], mark[1:])
    for (_, points), branch in zip(lines[2:], bent):
        tip = ls.frame_pose(model, branch.q, "column")[:, 2, 3]
        np.testing.assert_allclose(points[-1], [branch.factor[-1], tip[-1]])
    assert lines[2][1][-1, 1] * lines[3][1][-1, 1] < 0.0
    assert axes.get_ylabel() == "z of tip of column [m]" and axes.get_xlabel() == "load factor [-]"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["stable", "unstable", "bifurcation"]


def test_a_fold_is_marked_where_the_factor_turns():
    """x = λ (1 + x²) turns at λ = 1/2, x = 1, where its upper part becomes unstable; values are a user's function."""
    robot = ls.Robot("fold", gravity=(0, 0, 0))
    robot.add_link("slide", ls.RigidBody(1.0), ls.JointPrismatic((1.0, 0.0, 0.0), stiffness=1.0))
    robot.add_custom_actuator("push", lambda q: np.array([[1.0 + q[0] ** 2]]))
    model = robot.build()
    branch = ls.continuation(model, u=[1.0], factor_range=(0.0, 2.0), max_points=25)
    axes = ls.plot_branch(model, branch, values=lambda q: q[:, 0], label="x [m]", title="fold").axes[0]
    lines, marks = lines_of(axes)
    assert [style for style, _ in lines] == ["-", "--"]
    assert marks[0][0] == "o" and marks[0][1:] == pytest.approx((0.5, 1.0), abs=1e-6)
    for _, points in lines:
        np.testing.assert_allclose(points[:, 1], points[:, 0] * (1.0 + points[:, 1] ** 2), atol=1e-8)


def test_a_legend_covers_no_curve(column):
    """The legend stands below the axes."""
    model, straight, _ = column
    figure = ls.plot_branch(model, straight)
    figure.canvas.draw()
    legend, axes = figure.axes[0].get_legend().get_window_extent(), figure.axes[0].get_window_extent()
    assert legend.y1 < axes.y0


def test_wrong_arguments_are_named(column):
    """A branch of another model, values of another shape and an unknown parameter are refused by name."""
    model, straight, _ = column
    other = ls.Robot("other")
    other.add_link("bob", ls.RigidBody(1.0, inertia=(1.0, 1.0, 1.0)), ls.JointRevolute())
    with pytest.raises(ls.ShapeError, match="branch: expected points of 1 coordinates"):
        ls.plot_branch(other.build(), straight)
    with pytest.raises(ls.ShapeError, match="values: expected shape"):
        ls.plot_branch(model, straight, values=lambda q: q)
    with pytest.raises(ls.ModelError, match="parameter: must be 'factor' or 'time'"):
        ls.plot_branch(model, straight, parameter="load")
    with pytest.raises(ls.ModelError, match="branch: must be a Branch"):
        ls.plot_branch(model, [])
