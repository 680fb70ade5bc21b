"""Drawings beside the forms: sections, routes and modes are those of the library."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import lissom as ls
from lissom.studio.drawings import graph_picture, modes_drawing, rods_of, section_drawing

SVG = "{http://www.w3.org/2000/svg}"


def arm():
    """A tapered tube with a straight, an oblique and a winding tendon, a chamber, and a hand without sections."""
    robot = ls.Robot("arm")
    section = ls.SectionAnnulus(outer=(0.02, 0.01), inner=(0.005, 0.004))
    basis = ls.BasisLegendre(torsion=0, bending_y=2)
    robot.add_link("arm", ls.Rod(0.3, section, basis, ls.Material(young=1e6, density=1000)))
    robot.add_link("hand", ls.RigidBody.sphere(0.02, density=1000), parent="arm")
    robot.add_tendon("straight", "arm", (0.0, 0.008))
    robot.add_tendon("oblique", "arm", ls.Expression(["0.01 - 0.02*s", "0"], "s"))
    robot.add_tendon("a <winding> one", "arm", ls.Expression(["0.009*cos(6*s)", "0.009*sin(6*s)"], "s"))
    robot.add_chamber("bladder", "arm", area=3e-5, offset=(0.0, -0.008))
    return robot.build()


def parsed(svg):
    """The drawing as a tree, which is well-formed."""
    return ET.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def numbers(text):
    """Pairs of numbers of a list of points."""
    return np.array([float(x) for x in re.split(r"[ ,]+", text.strip())]).reshape(-1, 2)


def test_a_section_and_its_routes_are_drawn_to_scale():
    """Outline, hole, dots and the circle of the chamber have one scale: the radii and offsets of the file."""
    tree = parsed(section_drawing(arm(), "arm", "oblique"))
    outer, inner, tip, tip_hole = (numbers(one.get("points")) for one in tree.iter(f"{SVG}polygon"))
    scale = np.ptp(outer[:, 0]) / 0.04
    middle = 0.5 * (outer.min(axis=0) + outer.max(axis=0))
    for ring, radius in ((outer, 0.02), (inner, 0.005), (tip, 0.01), (tip_hole, 0.004)):
        np.testing.assert_allclose(np.linalg.norm(ring - middle, axis=1), radius * scale, atol=0.2)
    circles = [(float(one.get("cx")), float(one.get("cy")), float(one.get("r"))) for one in tree.iter(f"{SVG}circle")]
    np.testing.assert_allclose(circles[0][:2], middle + np.array([0.0, -0.008 * scale]), atol=0.2)  # z points upwards
    np.testing.assert_allclose(circles[-1][:2], middle + np.array([0.0, 0.008 * scale]), atol=0.2)
    assert circles[-1][2] == pytest.approx(scale * np.sqrt(3e-5 / np.pi), abs=0.1)
    lines = [numbers(one.get("points")) for one in tree.iter(f"{SVG}polyline")]
    assert len(lines) == 2  # of the straight tendon and of the chamber there is nothing to draw along s
    np.testing.assert_allclose(lines[0][[0, -1]], middle + scale * np.array([[0.01, 0.0], [-0.01, 0.0]]), atol=0.2)
    words = [one.text for one in tree.iter(f"{SVG}text")]
    assert {"straight", "oblique", "a <winding> o…", "bladder", "dashed: tip"} <= set(words)
    assert [one.get("font-weight") for one in tree.iter(f"{SVG}text") if one.text == "oblique"] == ["bold"]


def test_rods_of_a_tendon_and_links_without_sections():
    """A tendon is drawn on the rods along which it runs; a rigid link has no section and no modes."""
    model = arm()
    assert rods_of(model, "oblique") == ["arm"] and rods_of(model, "nothing") == []
    assert section_drawing(model, "hand") == "" and modes_drawing(model, "hand") == ""


def test_modes_are_those_of_the_basis():
    """One graph for each strain with modes, with its number and the shapes of Legendre's polynomials."""
    graphs = re.findall(r"<svg .*?</svg>", modes_drawing(arm(), "arm"))
    trees = [parsed(one) for one in graphs]
    titles = [[one.text for one in tree.iter(f"{SVG}text")][-1] for tree in trees]
    assert titles == ["torsion: 1 mode", "bending y: 3 modes"]
    constant, linear, square = (numbers(one.get("points")) for one in trees[1].iter(f"{SVG}polyline"))
    assert np.ptp(constant[:, 1]) == 0.0
    np.testing.assert_allclose(np.diff(linear[:, 1]), np.diff(linear[:, 1])[0], atol=0.11)
    x = np.linspace(-1.0, 1.0, len(square))
    across = np.interp(1.5 * x**2 - 0.5, [-1.0, 1.0], [linear[0, 1], linear[-1, 1]])
    np.testing.assert_allclose(square[:, 1], across, atol=0.2)


def test_graphs_without_a_function():
    """Nothing is drawn; a constant lies in the middle."""
    assert graph_picture(None, "s") == ""
    tree = parsed(graph_picture((np.linspace(0, 1, 5), np.full((5, 1), 3.0)), "t"))
    (line,) = (numbers(one.get("points")) for one in tree.iter(f"{SVG}polyline"))
    assert np.ptp(line[:, 1]) == 0.0
