"""What being a class of a family brings: a public name, a place in robot files, and one in every sweep of the tests."""

from __future__ import annotations

import dataclasses

import families
import pytest
from families import FAMILIES, MAKERS, forms, made, makers, name_of, names
from robot_descriptions import assert_same, one_rod, rod, round_trip

import lissom as ls
from lissom.io.schema import TYPES
from lissom.robot.fields import members
from lissom.robot.sections import Section

EVERY = [form for family in FAMILIES.values() for form in forms(family)]


@pytest.mark.parametrize("name", FAMILIES)
def test_every_class_has_a_maker_a_name_and_a_place_in_files(name):
    """Purpose: a class that is defined is public, known to robot files and made at random, and nothing else is."""
    family = FAMILIES[name]
    assert len(members(family)) >= 4
    for cls in members(family):
        assert makers(cls), cls
        assert cls in TYPES and getattr(ls, cls.__name__) is cls
    assert {cls for cls in MAKERS if issubclass(cls, family)} == set(members(family))
    assert list(names(family)) == sorted(names(family))


def test_a_class_without_a_maker_is_named_with_the_remedy(monkeypatch):
    """Purpose: a class without a maker is named, with the place to add one, by every sweep."""
    monkeypatch.delitem(MAKERS, ls.SectionCircle)
    with pytest.raises(LookupError, match=r"SectionCircle has no maker in tests/families\.py: add one"):
        families.all_made(Section)


def test_classes_of_others_are_no_members():
    """Purpose: classes derived by a user or a test work, but is neither in robot files nor in the sweeps."""

    @dataclasses.dataclass(frozen=True)
    class SectionOfMine(Section):
        """A section that is none of the library's."""

        def constitution(self, s, material, where):
            return ls.SectionCircle(0.01).constitution(s, material, where)

        def outline(self, s, count=24):
            return ls.SectionCircle(0.01).outline(s, count)

    assert SectionOfMine in Section.__subclasses__() and SectionOfMine not in members(Section)
    assert one_rod(section=SectionOfMine()).build().nv == 3


@pytest.mark.parametrize("form", EVERY, ids=name_of)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_random_member_is_valid_and_survives_a_robot_file(form, seed, tmp_path):
    """Purpose: makers obey the rules and give another member for each seed; files hold every class."""
    member = made(form, seed)
    assert type(member) is form[0]
    robot = ls.Robot("one")
    family = next(name for name, base in FAMILIES.items() if isinstance(member, base))
    body = rod(**{family.lower(): member}) if family in ("Basis", "Section") else ls.RigidBody.sphere(0.1, density=1e3)
    joint = member if family == "Joint" else ls.JointRevolute()
    robot.add_link("arm", body, joint)
    if family == "Shape":
        robot.add_contact("touch", "arm", member)
    robot.check()
    assert_same(robot, round_trip(robot, tmp_path))
