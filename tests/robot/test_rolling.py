"""Descriptions of skates and rolling contacts: errors, robot files, copies and edits."""

import numpy as np
import pytest
from robot_descriptions import assert_same, assert_same_rows_on_a_table, on_a_table, round_trip
from touching_robots import moved

import lissom as ls


def cart():
    """A free base with a wheel and a rod, a ball on the base, and all fields of skates and rolling contacts given."""
    robot = ls.Robot("cart")
    body = ls.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
    robot.add_link("base", body, ls.JointFree())
    robot.add_link("wheel", body, ls.JointRevolute((0, 1, 0)), "base")
    robot.add_link("rod", ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_z=1),
                                 ls.Material(young=1e6, density=1000.0)), parent="base")  # fmt: skip
    robot.add_link("ball", body, ls.JointFree())
    robot.add_skate("blade", "rod", (0, 1, 0), point=(0.0, 0.01, 0.02), s=0.5)
    robot.add_skate("clip", "ball", (1, 0, 0), ground="rod", s_ground=0.25)
    robot.add_rolling("tread", "wheel", 0.1, axis=(0, 1, 0), centre=(0.0, 0.01, 0.0), placement=moved(0.0, 0.0, -0.1))
    robot.add_rolling("plate", "ball", 0.05, ground="base", s_ground=1.0, placement=moved(0.0, 0.0, 0.2), height=False)
    return robot


@pytest.mark.parametrize(
    ("add", "given", "message"),
    [
        ("skate", {"link": "leg"}, r"skate 'x': link: must be one of the links"),
        ("skate", {"link": None}, r"skate 'x': link: must be one of the links"),
        ("skate", {"direction": (0, 0, 0)}, r"skate 'x': direction: must not be zero"),
        ("skate", {"direction": (0, 1)}, r"skate 'x': direction: must be a finite 3-vector"),
        ("skate", {"point": 0.2}, r"skate 'x': point: must be \(x, y, z\)"),
        ("skate", {"s": 2.0}, r"skate 'x': s: must lie in \[0, 1\] \(got 2.0\)"),
        ("skate", {"ground": "floor"}, r"skate 'x': ground: must be one of the links"),
        ("rolling", {"link": "leg"}, r"rolling contact 'x': link: must be one of the links"),
        ("rolling", {"radius": 0.0}, r"rolling contact 'x': radius: must be > 0 \(got 0.0\)"),
        ("rolling", {"axis": (0, 0, 0)}, r"rolling contact 'x': axis: must not be zero"),
        ("rolling", {"centre": (0, np.nan, 0)}, r"rolling contact 'x': centre: must be \(x, y, z\)"),
        ("rolling", {"ground": "floor"}, r"rolling contact 'x': ground: must be one of the links"),
        ("rolling", {"s_ground": -1.0}, r"rolling contact 'x': s_ground: must lie in \[0, 1\]"),
        ("rolling", {"placement": np.ones((4, 4))}, r"rolling contact 'x': placement: its rotation must be orthonorm"),
        ("rolling", {"height": 1}, r"rolling contact 'x': height: must be true or false \(got 1\)"),
    ],
)
def test_bad_descriptions(add, given, message):
    """The error names the part, the rule and the value."""
    robot = cart()
    known = {"link": "wheel", "direction": (0, 1, 0)} if add == "skate" else {"link": "wheel", "radius": 0.1}
    getattr(robot, f"add_{add}")("x", **(known | given))
    with pytest.raises(ls.ModelError, match=message):
        robot.build()


def test_names_are_taken_once():
    """Two skates, or two rolling contacts, of one name are refused; one of each kind may have the same name."""
    robot = cart()
    robot.add_skate("tread", "wheel", (1, 0, 0))
    with pytest.raises(ls.ModelError, match="skate name: must not be taken already"):
        robot.add_skate("blade", "rod", (1, 0, 0))
    with pytest.raises(ls.ModelError, match="rolling contact name: must not be taken already"):
        robot.add_rolling("tread", "ball", 0.1)
    assert robot.build().loops.names == ("blade", "clip", "tread", "tread", "plate")


def test_rows_and_multipliers():
    """Rows come in the order of skates, then of rolling contacts: one each, then two tangents and the height."""
    model = cart().build()
    assert model.loops.kinds == ("skates", "skates", "rolling", "rolling")
    assert model.rate_rows.tolist() == [True, True, True, True, False, True, True]
    assert model.n_multipliers == model.n_rows == 7


def test_robot_files(tmp_path):
    """A robot file keeps all fields; a key that is not known is named with its line."""
    robot = cart()
    assert_same(robot, round_trip(robot, tmp_path))
    path = tmp_path / "robot.yaml"
    path.write_text(path.read_text().replace("radius: 0.1", "radius: -0.1"))
    with pytest.raises(ls.ModelError, match=r"rolling contact 'tread': radius: must be > 0"):
        ls.load_robot(path).build()


def test_attach_moves_the_ground():
    """The ground of an attached robot is a frame of the parent: the constraints are those of the same robot built
    there."""
    big = on_a_table(cart())
    assert big.skates["a_blade"].ground == "table" and big.skates["a_clip"].ground == "a_rod"
    assert big.rolling["a_tread"].ground == "table" and big.rolling["a_plate"].ground == "a_base"
    np.testing.assert_allclose(big.rolling["a_tread"].placement, moved(0.1, 0.2, 0.2))
    assert_same_rows_on_a_table(big, cart())


def test_edits_follow_names():
    """A skate or wheel goes with its link, or the link that it moves on. New values by path change it."""
    robot = cart()
    with pytest.raises(ls.ModelError, match="rolling contact 'tread'"):
        robot.remove_link("wheel")
    removed = robot.remove_link("rod", with_children=True)
    assert {"skate 'blade'", "skate 'clip'"} <= set(removed)
    values = cart().described_values()
    assert values["tread.radius"] == 0.1 and values["blade.point"] == (0.0, 0.01, 0.02)
    assert cart().with_({"tread.radius": 0.3}).rolling["tread"].radius == 0.3
    assert cart().with_({"skates.blade.direction": (1, 0, 0)}).skates["blade"].direction == (1, 0, 0)


def test_batches_need_equal_rows():
    """Models of a batch must have the same kinds of rows."""
    other = cart().with_({"rolling.tread.height": False})
    with pytest.raises(ls.ModelError, match="kinds of their rows"):
        ls.ModelBatch([cart().build(), other.build()])


def test_info_names_them(tmp_path, capsys):
    """`lissom info` has a line for each."""
    from lissom.cli.main import main

    ls.save_robot(cart(), tmp_path / "cart.yaml")
    main(["info", str(tmp_path / "cart.yaml")])
    shown = capsys.readouterr().out
    assert "skate 'blade' on 'rod' at s=0.5 against the world" in shown
    assert "skate 'clip' on 'ball' at s=1 against 'rod'" in shown
    assert "wheel 'tread' of radius 0.1 on 'wheel', which rolls on the world" in shown
    assert "ball 'plate' of radius 0.05 on 'ball', which rolls on 'base' without holding its height" in shown
