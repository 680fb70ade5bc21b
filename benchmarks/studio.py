"""Time from an edit in the studio to the new picture, for soft arms of 10, 50 and 192 coordinates with three tendons.

A changed value is a modulus, a changed structure an order of a basis. Each time begins with the edit of the document
and ends when the viewer has sent the picture: reading, checks, model, equilibrium, scene and controls.

    python benchmarks/studio.py [edits]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ARMS = {10: (1, (0, 3, 3, 0)), 50: (1, (9, 14, 14, 9)), 192: (4, (2, 20, 20, 2))}  # rods and their orders
STRAINS = ("torsion", "bending_y", "bending_z", "elongation")
ROD = """\
  - name: arm{k}
{parent}    body:
      type: Rod
      length: 0.2
      section: {{type: SectionCircle, radius: [0.02, 0.018]}}
      material: {{young: 1.0e6, density: 1000, viscosity: 1.0e4}}
      basis: {{type: BasisLegendre, {orders}}}
"""


def text_of(rods: int, orders: tuple[int, ...]) -> str:
    """The file of an arm of several rods."""
    listed = ", ".join(f"{name}: {order}" for name, order in zip(STRAINS, orders))
    parents = ["", *(f"    parent: arm{k}\n" for k in range(rods - 1))]
    links = "".join(ROD.format(k=k, parent=parent, orders=listed) for k, parent in enumerate(parents))
    tendons = [f"  - {{type: Tendon, name: t{k}, link: arm{rods - 1}, offset: [0, {0.005 * k}]}}\n" for k in (1, 2, 3)]
    return f"name: arm\nlinks:\n{links}actuators:\n{''.join(tendons)}"


def times(coordinates: int, edits: int) -> tuple[np.ndarray, np.ndarray]:
    """Times of changed values and of changed structures [s]."""
    from lissom.studio.document import RobotDocument
    from lissom.studio.page import Studio, _free_port

    rods, orders = ARMS[coordinates]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arm.yaml"
        path.write_text(text_of(rods, orders), encoding="utf-8")
        document = RobotDocument(path)
        made, found = Studio(document, "127.0.0.1", _free_port("127.0.0.1")), []
        try:
            made.session.wait(600.0)
            values = [(["links", 0, "body", "material", "young"], 1e6 + 1e4 * k) for k in range(1, edits + 2)]
            changes = [(["links", 0, "body", "basis", "torsion"], orders[0] + k % 2) for k in range(1, edits + 2)]
            for group in (values, changes):
                made.session.times.clear()
                for keys, value in group:
                    document.put(keys, value)
                    assert made.session.wait(600.0) and not made.session.built.faults
                    time.sleep(0.05)
                found.append(np.array(made.session.times)[1:])
        finally:
            made.stop()
    return found[0], found[1]


def main(edits: int) -> None:
    """Print the table of the manual."""
    print("coordinates | changed value, median (worst) | changed structure, median (worst)")
    for coordinates in ARMS:
        cells = [f"{1e3 * np.median(x):.0f} ms ({1e3 * x.max():.0f} ms)" for x in times(coordinates, edits)]
        print(f"{coordinates:>11} | {cells[0]:>29} | {cells[1]}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
