"""The text of a template with a choice: a hanging soft arm of several segments, three tendons to each."""

from __future__ import annotations

import numpy as np

_LENGTH = 0.15  # of a segment [m]
_BASE, _TIP = 0.018, 0.009  # radii of the arm [m]
_HEAD = """\
# A soft arm of {count} that hangs from a ceiling. Three tendons end at the tip of each segment.
# Units are SI: m, kg, s, N, Pa, rad.
name: arm of {count}
gravity: [0, 0, -9.81]

links:
"""
_SEGMENT = """\
  - name: segment {number}
    {place}
    body:
      type: Rod
      length: {length}
      section: {{type: SectionCircle, radius: {radius}}}
      material: {{young: 5.0e5, poisson: 0.5, density: 1070, damping_time: 0.03}}
      basis: {{type: BasisLegendre, torsion: 0, bending_y: 2, bending_z: 2}}
"""
_DOWN = "placement: {rotation: {axis: [0, 1, 0], degrees: 90}}  # its axis points down"
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
MOST = len(_WORDS) - 1  # number of segments


def arm_text(n: int) -> str:
    """The robot file of an arm of n segments, 1 to MOST."""
    radii = [_BASE + (_TIP - _BASE) * k / n for k in range(n)]
    text = _HEAD.format(count=f"{_WORDS[n]} segment{'s' if n > 1 else ''}")
    for k, radius in enumerate(radii):
        shown = f"{radius:.4g}" if k < n - 1 else f"[{radius:.4g}, {_TIP}]"
        place = f"parent: segment {k}" if k else _DOWN
        text += _SEGMENT.format(number=k + 1, place=place, length=_LENGTH, radius=shown)
    text += "\nactuators:  # (y, z) of each tendon in the section [m]\n"
    for k in range(n):
        for j, letter in enumerate("abc"):
            angle = 2.0 * np.pi * (j / 3.0 + k / (3.0 * n))
            at = f"[{_TIP * np.cos(angle):.5f}, {_TIP * np.sin(angle):.5f}]".replace("-0.00000", "0.00000")
            name = f"t{k + 1}{letter}"
            if k == 0:
                text += f"  - {{type: Tendon, name: {name}, link: segment 1, offset: {at}}}\n"
                continue
            text += f"  - type: Tendon\n    name: {name}\n    path:\n"
            text += "".join(f"      - {{type: PathRod, link: segment {i + 1}, offset: {at}}}\n" for i in range(k + 1))
    return text + f"\nframes:\n  - {{name: tip, link: segment {n}}}\n"
