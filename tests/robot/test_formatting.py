"""What prompts and notebooks show of robots, models and results, and models with other values."""

import numpy as np
import pytest
import warp as wp
from robot_descriptions import one_rod

import lissom as ls


@pytest.fixture(scope="module")
def robot():
    """A rod with two tendons."""
    made = one_rod()
    made.add_tendon("up", "arm", (0.0, 0.01))
    made.add_tendon("side", "arm", (0.01, 0.0))
    return made


@pytest.fixture(scope="module")
def model(robot):
    """Of that rod."""
    return robot.build()


def test_descriptions_and_results_are_printed_in_one_short_line(robot, model):
    """Names, sizes and ranges; never an array."""
    rest = ls.solve_statics(model, [1.0, 0.5])
    both = ls.solve_statics(model, [[1.0, 0.5], [0.0, 0.0]])
    motion = ls.simulate(model, 0.01, t_eval=[0.0, 0.005, 0.01])
    assert repr(robot) == "Robot('one': 1 link (arm); 2 actuators (up, side))"
    assert repr(model).startswith(f"Model('one', nq={model.nq}, nv={model.nv}, nu=2, n_nodes=")
    low, high = rest.q.min(), rest.q.max()
    said = f"Equilibrium('one': stable; q ({model.nq}) {low:.3g} to {high:.3g}, u (2) 0.5 to 1; residual "
    assert repr(rest).startswith(said)
    assert "batch (2,), 2 stable" in repr(both)
    assert repr(motion).startswith(f"Trajectory(t = 0 to 0.01 s, 3 times, nq={model.nq}, nv={model.nv}, nu=2; esdirk, ")
    for item in (robot, model, rest, both, motion):
        assert len(repr(item)) < 160 and "array" not in repr(item)


def test_notebooks_show_tables(robot, model):
    """HTML with the line above it; names are never taken for markup."""
    other = ls.Robot("<b>")
    other.add_link("<i>")
    assert "<b>" not in other._repr_html_() and "<td>&lt;i&gt;</td>" in other._repr_html_()
    rest = ls.solve_statics(model, [1.0, 0.5])
    for item in (robot, model, rest, ls.simulate(model, 0.01, t_eval=[0.0, 0.01])):
        text = item._repr_html_()
        assert text.count("<table>") == text.count("</table>") == 1 and text.count("<tr>") == text.count("</tr>") > 1
    assert "up, side" in model._repr_html_() and f"<td>({model.nq},)</td>" in rest._repr_html_()


def test_a_model_with_other_values_is_another_model_and_compiles_nothing(robot, model, monkeypatch):
    """The same as that of the changed description, to the last bit, and no module of kernels is made or loaded."""
    q = np.linspace(0.1, 0.5, model.nq)
    zero = np.zeros(model.nv)
    before = ls.inverse_dynamics(model, q, zero, zero)
    counted = []
    load = wp.Module.load
    monkeypatch.setattr(
        wp.Module, "load", lambda self, *args, **more: counted.append(self) or load(self, *args, **more)
    )
    known = {module for module in wp._src.context.user_modules}
    changed = {"arm.material.young": 3e6, "arm.length": 0.4}
    other = model.with_(changed, gravity=(0.0, 0.0, 0.0))
    found = ls.inverse_dynamics(other, q, zero, zero)
    fresh = robot.with_({**changed, "gravity": (0.0, 0.0, 0.0)}).build()
    assert np.array_equal(found, ls.inverse_dynamics(fresh, q, zero, zero)) and not np.allclose(found, before)
    assert np.array_equal(before, ls.inverse_dynamics(model, q, zero, zero))
    assert {module for module in wp._src.context.user_modules} == known
    assert all(module.execs for module in counted)


def test_words_that_lead_nowhere_are_answered_with_the_path(model):
    """A value by its own word alone is not a path; the error names one that ends so."""
    with pytest.raises(ls.ModelError, match=r"there is 'arm\.material\.young'"):
        model.with_(young=2e6)


def test_new_values_that_look_wrong_are_reported(model):
    """A build warns of new values only."""
    with pytest.warns(ls.PlausibilityWarning, match="young is 1 Pa"):
        model.with_({"arm.material.young": 1.0})
