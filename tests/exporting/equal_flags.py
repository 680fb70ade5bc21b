"""Largest relative deviations of exported robots from the library, both compiled without fused products.

    python equal_flags.py COMPILER FLAGS FOLDER ROBOT ...

Prints a line of JSON for each robot: its deviations by function, and whether the library needs Python for derivatives
of accelerations; or why it is refused. Optimisation keeps the order of all operations, so that -O0, which compiles
fastest, gives the same bits.
"""

import json
import shutil
import sys
import warnings
from pathlib import Path

from lissom.lie import types

types.CPU_FLAGS = types.CPU_FLAGS.replace("-ffp-contract=fast", "-ffp-contract=off")

import numpy as np  # noqa: E402
from exporting.built import Library, compiled  # noqa: E402
from exporting.gallery_robots import model_of  # noqa: E402
from exporting.test_exported_motions import Motion  # noqa: E402

import lissom as ls  # noqa: E402
from lissom.dynamics.assembly import closed_start  # noqa: E402
from lissom.dynamics.start import start_configuration  # noqa: E402
from lissom.exporting.input_columns import has_input_columns  # noqa: E402
from lissom.exporting.recorded import EVALUATE, evaluated, states_of  # noqa: E402

warnings.simplefilter("ignore")  # of tendons that push and of redundant loops, which random inputs and states make


def deviations(model, compiler, flags, folder):
    """The largest relative deviation of each function, and of the state after twenty steps. A robot that the library
    itself cannot step from its start has none. "python" is whether the library solves systems with loops, or evaluates
    users' actuators, in Python for `forward_dynamics_derivatives`."""
    made = ls.export(model, folder, (*EVALUATE, "step"), name="one")
    library = Library(compiled(made.folder, compiler, *flags, "-ffp-contract=off"), "one", model)
    w, worst = library.make(), {"python": model.n_rows > 0 or has_input_columns(model)}
    for function in EVALUATE:
        for state in states_of(model):
            given, wanted = evaluated(model, function, state)
            found = library.evaluate(w, function, given)
            assert isinstance(found, np.ndarray), library.text(found)
            error = np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-300)
            worst[function] = max(worst.get(function, 0.0), float(error))
    stepper = ls.Stepper(model, 1e-3, q0=closed_start(model, start_configuration(model)[None])[0])
    motion = Motion(library, stepper.state.q, stepper.state.v)
    u = 0.01 * np.arange(1.0, model.nu + 1.0)
    for _ in range(20):
        try:
            stepper.step(u)
        except ls.ModelError:
            return worst
        status = motion.step(1e-3, u)
        assert status == 0, library.text(status)
    ends = zip(motion.state, (stepper.state.q, stepper.state.v))
    worst["step"] = max(float(np.abs(a - b).max(initial=0.0)) for a, b in ends)
    return worst


def main():
    """Print the deviations of each robot."""
    compiler, flags, place, *names = sys.argv[1:]
    for k, name in enumerate(names):
        folder = Path(place) / str(k)
        try:
            found = deviations(model_of(name), compiler, flags.split(), folder)
        except ls.ModelError as error:
            found = {"refused": str(error)}
        shutil.rmtree(folder, ignore_errors=True)
        print(json.dumps([name, found]), flush=True)


if __name__ == "__main__":
    main()
