"""Time from an edit in the studio to the new picture, for soft arms of 10, 50 and 192 coordinates with three tendons.

A changed value is a modulus, a changed structure an order of a basis. Each time begins with the edit of the document
and ends when the viewer has sent the picture: the edit, reading, checks, model, equilibrium, scene and controls.

    python benchmarks/studio.py [edits]                  the table of the manual
    python benchmarks/studio.py --minutes N [--seed K] [--page]
                                                         memory during N minutes of random use, with a page in a browser
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    from lissom.studio.scene import Studio
    from lissom.studio.serving import free_port

    rods, orders = ARMS[coordinates]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arm.yaml"
        path.write_text(text_of(rods, orders), encoding="utf-8")
        document = RobotDocument(path)
        made, found = Studio(document, "127.0.0.1", free_port("127.0.0.1")), []  # two groups of times
        try:
            made.session.wait(600.0)
            values = [(["links", 0, "body", "material", "young"], 1e6 + 1e4 * k) for k in range(1, edits + 2)]
            changes = [(["links", 0, "body", "basis", "torsion"], orders[0] + k % 2) for k in range(1, edits + 2)]
            for group in (values, changes):
                spent = []
                for keys, value in group:
                    began = time.perf_counter()
                    document.put(keys, value)
                    assert made.session.wait(600.0) and not made.session.built.faults
                    spent.append(time.perf_counter() - began)
                    time.sleep(0.05)
                found.append(np.array(spent)[1:])
        finally:
            made.stop()
    return found[0], found[1]


def used() -> float:
    """Memory of this process [MB]."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def actions(made: Any, rng: np.random.Generator) -> list[tuple[str, Callable[[], Any]]]:
    """What a user does, each with its name."""
    document, session = made.document, made.session

    def some(names: Any) -> str:
        return str(rng.choice(list(names)))

    def tendon() -> None:
        document.add("actuators", {"type": "Tendon", "name": "t", "link": "arm0", "offset": [0, 0.004]})

    def computed() -> None:
        u, name = [float(rng.uniform(0.0, 2.0))] * session.model.nu, f"result {rng.integers(6)}"
        kinds = (lambda: session.solve_statics(name, u), lambda: session.find_modes(name, u),
                 lambda: session.simulate(name, 0.1, [f"{x:g}" for x in u], True),
                 lambda: session.follow_branch(name, u, 0.3, 0.1, 20))  # fmt: skip
        kinds[rng.integers(len(kinds))]()
        while session.run is not None:
            time.sleep(0.01)

    return [
        ("value", lambda: document.put(["links", 0, "body", "material", "young"], float(rng.uniform(5e5, 2e6)))),
        ("structure", lambda: document.put(["links", 0, "body", "basis", "bending_y"], int(rng.integers(2, 6)))),
        ("mistake", lambda: document.put(["links", 0, "body", "length"], "long")),
        ("undo", document.undo),
        ("redo", document.redo),
        ("tendon", tendon),
        ("removal", lambda: len(document.names("actuators")) > 3 and document.remove("actuators", 3)),
        ("result", computed),
        ("show", lambda: session.results and session.show_result(some(session.results))),
        ("ghost", lambda: session.results and session.toggle_ghost(some(session.results))),
        ("forget", lambda: session.results and session.forget(some(session.results))),
        ("back", session.back),
        ("pull", lambda: made.viewer.set_inputs(np.zeros(made.viewer.session.model.nu))),
    ]


class Errors(logging.Handler):
    """Counts the errors that programs log, and prints them."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Count one, and print it."""
        self.count += 1
        print(self.format(record), file=sys.stderr, flush=True)


def use_at_random(made: Any, minutes: float, seed: int) -> None:
    """Use a studio at random, and print times [s], numbers of actions, memory [MB], and numbers of actions that were
    refused with a message, such as inputs in a replay, and of errors that were logged."""
    from lissom.errors import ModelError

    rng, due, errors = np.random.default_rng(seed), 0.0, Errors(logging.ERROR)
    logging.getLogger().addHandler(errors)
    made.session.wait(600.0)
    known, count, refused, began = actions(made, rng), 0, 0, time.perf_counter()
    print("time [s] | actions | memory [MB] | refused | errors")
    while True:
        now = time.perf_counter() - began
        if now >= due:
            print(f"{now:8.0f} | {count:7d} | {used():11.0f} | {refused:7d} | {errors.count}", flush=True)
            due += 60.0 * minutes / 12.0
        if now >= 60.0 * minutes:
            return
        try:
            known[rng.integers(len(known))][1]()
            count += 1
        except ModelError:
            refused += 1
        if not made.session.wait(600.0):
            raise TimeoutError("the robot was not built within 600 s")


def random_use(minutes: float, seed: int, page: bool) -> None:
    """Random use of an arm of 10 coordinates; with `page` a browser without a window shows it meanwhile."""
    from lissom.studio.document import RobotDocument
    from lissom.studio.scene import Studio
    from lissom.studio.serving import free_port, serve

    host = "127.0.0.1"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path, port = Path(folder) / "arm.yaml", free_port(host)
        path.write_text(text_of(*ARMS[10]), encoding="utf-8")
        made = Studio(RobotDocument(path), host, port + 1)
        if not page:
            use_at_random(made, minutes, seed)
            made.stop()
            return
        sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
        from viewing.browser import Browser

        def user() -> None:
            browser = Browser(Path(folder) / "browser", (1200, 800))
            try:
                browser.open(f"http://localhost:{port}")
                text = "document.body && document.body.innerText.includes('the whole robot')"
                browser.until(lambda: browser.run(text), "the page is there", 120.0)
                browser.click_text("arm0", "span")
                use_at_random(made, minutes, seed)
                browser.run("1")  # reads what the page has said so far
                print(f"errors of the page in the browser: {browser.said}", flush=True)
            finally:
                browser.close()
                os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=user).start()
        with contextlib.suppress(KeyboardInterrupt):
            serve(made, host, port)


def main(edits: int) -> None:
    """Print the table of the manual."""
    print("coordinates | changed value, median (worst) | changed structure, median (worst)")
    for coordinates in ARMS:
        cells = [f"{1e3 * np.median(x):.0f} ms ({1e3 * x.max():.0f} ms)" for x in times(coordinates, edits)]
        print(f"{coordinates:>11} | {cells[0]:>29} | {cells[1]}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("edits", nargs="?", type=int, default=40)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.minutes is None:
        main(given.edits)
    else:
        random_use(given.minutes, given.seed, given.page)
