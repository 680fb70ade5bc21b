"""A robot file that commands read quickly."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples" / "robots"
SMALL = """\
name: small
links:
  - name: arm
    body:
      type: Rod
      length: 0.3
      section: {type: SectionCircle, radius: 0.01}
      material: {young: 1e6, density: 1000, viscosity: 2e3}
      basis: {type: BasisLegendre, bending_y: 1, bending_z: 0}
actuators:
  - {type: Tendon, name: up, link: arm, offset: [0, 0.008]}
  - {type: Tendon, name: side, link: arm, offset: [0.008, 0]}
"""


def write(path, text):
    """Write a text to a file and return its path."""
    path.write_text(text, encoding="utf-8")
    return path


# a four-bar that is open in its neutral coordinates; test_loops has its numbers, too
FOUR_BAR = """\
name: four-bar
gravity: [0, -9.81, 0]
links:
  - name: crank
    joint: {type: JointRevolute}
    body: {type: RigidBody, mass: 0.4, com: [0.1, 0, 0], inertia: [1e-4, 1e-3, 1e-3]}
  - name: coupler
    parent: crank
    placement: {position: [0.2, 0, 0]}
    joint: {type: JointRevolute}
    body: {type: RigidBody, mass: 1.0, com: [0.25, 0, 0], inertia: [1e-4, 2e-2, 2e-2]}
  - name: rocker
    placement: {position: [0.5, 0, 0]}
    joint: {type: JointRevolute}
    body: {type: RigidBody, mass: 0.8, com: [0.2, 0, 0], inertia: [1e-4, 1e-2, 1e-2]}
loops:
  - name: pin
    link_a: coupler
    placement_a: {position: [0.5, 0, 0]}
    link_b: rocker
    placement_b: {position: [0.4, 0, 0]}
    joint: {type: JointRevolute}
states:
  - {name: folded, positions: {crank: 0.6, coupler: 0.5, rocker: 1.5}, velocities: {crank: 1}}
"""
