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
