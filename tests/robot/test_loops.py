"""Bad loops, what assemble says, and loops in robot files."""

import numpy as np
import pytest

import lissom as ls

pytestmark = pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")  # a ball closes a chain in a plane


def chain():
    """Two bars on revolute joints in the x-z plane, and a rod hanging from nothing else."""
    robot = ls.Robot("chain")
    bar = ls.RigidBody(1.0, com=(0.5, 0, 0))
    robot.add_link("upper", bar, ls.JointRevolute((0, 1, 0)))
    out = np.eye(4)
    out[0, 3] = 1.0
    robot.add_link("lower", bar, ls.JointRevolute((0, 1, 0)), "upper", placement=out)
    return robot, out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"link_a": "leg"}, r"loop 'x': link_a: must be one of the links"),
        ({"link_b": 3}, r"loop 'x': link_b: must be one of the links"),
        ({"s_a": 1.5}, r"loop 'x': s_a: must lie in \[0, 1\] \(got 1.5\)"),
        ({"placement_b": np.ones((4, 4))}, r"loop 'x': placement_b: its rotation must be orthonormal"),
        ({"joint": "pin"}, r"loop 'x' > joint: must be a Joint \(got 'pin'\)"),
        ({"joint": ls.JointFree()}, r"loop 'x' > joint: must hold something: a free joint closes no loop"),
        ({"joint": ls.JointRevolute(stiffness=2.0)}, r"loop 'x' > joint: stiffness: must be zero: close the chain"),
        ({"joint": ls.JointRevolute(axis=(0, 0, 0))}, r"loop 'x' > joint: axis: must not be zero"),
    ],
)
def test_bad_loops(given, message):
    """The error names the loop, the rule and the value."""
    robot, _ = chain()
    robot.add_loop("x", **({"link_a": "lower"} | given))
    with pytest.raises(ls.ModelError, match=message):
        robot.build()


def test_names_are_taken_once():
    """Two loops of one name are refused at once."""
    robot, _ = chain()
    robot.add_loop("x", "lower")
    with pytest.raises(ls.ModelError, match="loop name: must not be taken already"):
        robot.add_loop("x", "upper")


def closed_chain(reach):
    """The chain with its end pinned to the world at (reach, 0, 0)."""
    robot, out = chain()
    at = np.eye(4)
    at[0, 3] = reach
    robot.add_loop("pin", "lower", placement_a=out, placement_b=at, joint=ls.JointSpherical())
    return robot.build()


def test_assemble_closes_and_keeps_what_is_fixed():
    """From far away, straight, and with a joint that must stay."""
    model = closed_chain(1.5)
    for start in ([0.3, 0.4], [0.0, 0.0], [3.0, 0.1]):
        q = ls.assemble(model, start)
        assert np.abs(ls.loop_residual(model, q)).max() < 1e-10
    wanted = np.arccos(0.75)
    near = [-wanted, 2 * wanted]
    for fixed in (["upper"], [0]):
        np.testing.assert_allclose(ls.assemble(model, [near[0], 1.2], fixed=fixed), near, rtol=0, atol=1e-9)


def test_assemble_says_which_loop_stays_open():
    """A pin out of reach by 0.4 m is named with its gap; the last configuration comes along."""
    model = closed_chain(2.4)
    with pytest.raises(ls.ConvergenceError, match=r"assemble: loop 'pin' stays open by 0\.4 m; move q0") as error:
        ls.assemble(model, [0.1, 0.2])
    assert np.shape(error.value.partial) == (2,)


@pytest.mark.parametrize(
    ("fixed", "message"),
    [(["leg"], r"fixed: must name links among \['lower', 'upper'\] \(got 'leg'\)"), ([7], r"from 0 to 1 \(got 7\)")],
)
def test_assemble_checks_what_is_fixed(fixed, message):
    """Unknown links and indices are named."""
    with pytest.raises(ls.ModelError, match=message):
        ls.assemble(closed_chain(1.5), fixed=fixed)


def test_a_file_keeps_loops(tmp_path):
    """A written file is read as the same model; a bad loop is named with its line."""
    robot, out = chain()
    robot.add_loop("pin", "lower", placement_a=out, joint=ls.JointUniversal((0, 1, 0), (0, 0, 1)))
    robot.add_loop("weld", "upper", "lower", s_b=0.5)
    path = tmp_path / "chain.yaml"
    ls.save_robot(robot, path)
    read = ls.load_robot(path)
    a, b = robot.build(), read.build()
    assert a.loops.names == b.loops.names
    for name in ("node", "placement", "row_direction", "row_kind", "hinge"):
        assert np.array_equal(getattr(a.loops, name), getattr(b.loops, name))
    path.write_text(path.read_text().replace("link_a: upper", "link_a: leg"))
    with pytest.raises(ls.ModelError, match=r"chain.yaml, line \d+: loop 'weld': link_a: must be one of the links"):
        ls.load_robot(path)
