"""Materials and sections by name: their numbers, their sources, robot files, and names that there are none of."""

from pathlib import Path

import numpy as np
import pytest

import lissom as ls

FILE = """format: 1
links:
  - name: arm
    body:
      type: Rod
      length: 0.1
      section: {section}
      material: {material}
      basis: {{type: BasisLegendre, bending_y: 1}}
"""


def test_every_entry_is_valid_plausible_and_has_a_source():
    """Purpose: `named` finds each entry, its units are plausible, and it cites the source of its numbers."""
    entries = ls.catalogue()
    assert len(entries) > 60
    for name, entry in entries.items():
        made = getattr(ls, entry.of).named(name.upper())
        assert all(getattr(made, key) == value for key, value in entry.values.items())
        assert len(entry.source) > 20
        if entry.of == "Material":
            made.check(name)
            assert 1e4 < made.young < 3e11 and 900 < made.density < 1e4 and 0.25 < made.poisson <= 0.5
        else:
            made.constitution(0.5, ls.Material.named("steel"), name)
    assert {entry.of for entry in entries.values()} == {"Material", "SectionCircle", "SectionAnnulus"}


def test_silicones_stretched_to_twice_their_length():
    """Purpose: a neo-Hookean bar of the catalogue's E carries the maker's 100 % modulus at twice its length."""
    for name, psi in (("Ecoflex 00-30", 10), ("Dragon Skin 30", 86)):
        stretch, E = 2.0, ls.Material.named(name).young
        assert E / 3 * (stretch - stretch**-2) == pytest.approx(psi * 6894.757)


def test_numbers_that_are_known():
    """Purpose: some numbers by hand: AWG 36 and 0000's neighbours, a needle, steel."""
    assert ls.SectionCircle.named("AWG 36").radius == pytest.approx(0.127e-3 / 2)
    assert ls.SectionCircle.named("AWG 0").radius == pytest.approx(8.251e-3 / 2, rel=1e-4)
    tube = ls.SectionAnnulus.named("18G")
    assert (tube.outer, tube.inner) == pytest.approx((0.635e-3, 0.419e-3))
    assert ls.Material.named("steel").shear == pytest.approx(80.77e9, rel=1e-3)
    assert ls.Material.named("NiTi", damping_time=1e-3, young=70e9).young == 70e9


def test_names_in_robot_files(tmp_path):
    """Purpose: a name stands for numbers in files too, which other keys of the same mapping replace or complete."""
    path = tmp_path / "robot.yaml"
    text = FILE.format(section="{type: SectionAnnulus, name: 14G}", material="{name: ecoflex 00-30, viscosity: 20}")
    path.write_text(text, encoding="utf-8")
    body = ls.load_robot(path).links["arm"].body
    assert body.material == ls.Material.named("Ecoflex 00-30", viscosity=20)
    assert body.section == ls.SectionAnnulus.named("14G")
    ls.save_robot(ls.load_robot(path), tmp_path / "again.yaml")
    again = ls.load_robot(tmp_path / "again.yaml").links["arm"].body
    assert again.material == body.material and np.array_equal(again.section.outer, body.section.outer)


def test_unknown_names(tmp_path):
    """Purpose: a name that there is none of is answered by the nearest, in Python and by line in files."""
    with pytest.raises(ls.ModelError, match=r"Material: there is no 'Dragonskin 30' in the .*; the nearest are 'Dra"):
        ls.Material.named("Dragonskin 30")
    with pytest.raises(ls.ModelError, match="SectionCircle: there is no '18G'"):
        ls.SectionCircle.named("18G")
    path = tmp_path / "robot.yaml"
    path.write_text(
        FILE.format(section="{type: SectionCircle, name: AWG 99}", material="{name: steal}"), encoding="utf-8"
    )
    with pytest.raises(ls.ModelError) as raised:
        ls.load_robot(path)
    assert "line 7" in str(raised.value) and "no 'AWG 99' in the catalogue" in str(raised.value)
    assert "line 8" in str(raised.value) and "the nearest are 'steel'" in str(raised.value)


def test_the_manual_has_the_catalogue():
    """Purpose: the table of the manual holds each material with its numbers and its source."""
    text = (Path(__file__).parents[2] / "docs" / "imports.md").read_text(encoding="utf-8")
    for name, entry in ls.catalogue().items():
        if entry.of == "Material":
            young, poisson, density = (entry.values[key] for key in ("young", "poisson", "density"))
            assert f"| `{name}` | {young:.3g} | {poisson:g} | {density:g} | {entry.source} |" in text, name
