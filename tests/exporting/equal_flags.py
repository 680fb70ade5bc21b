"""Largest relative deviations of an exported robot from the library, both compiled without fused products."""

import json
import sys

from lissom.lie import types

types.CPU_FLAGS = types.CPU_FLAGS.replace("-ffp-contract=fast", "-ffp-contract=off")

import numpy as np  # noqa: E402
from exporting.built import Library, compiled, finger  # noqa: E402
from exporting.test_exported_motions import Motion  # noqa: E402

import lissom as ls  # noqa: E402
from lissom.exporting.recorded import EVALUATE, evaluated, states_of  # noqa: E402

compiler, folder = sys.argv[1:]
model = finger().build()
made = ls.export(model, folder, (*EVALUATE, "step"), name="finger")
library = Library(compiled(folder, compiler, "-O2", "-march=native", "-ffp-contract=off"), "finger", model)
w, worst = library.make(), {}
for function in EVALUATE:
    for state in states_of(model):
        given, wanted = evaluated(model, function, state)
        error = np.abs(library.evaluate(w, function, given) - wanted).max() / np.abs(wanted).max()
        worst[function] = max(worst.get(function, 0.0), float(error))
stepper = ls.Stepper(model, 1e-3)
motion = Motion(library, stepper.state.q, stepper.state.v)
for _ in range(50):
    stepper.step(np.array([1.0, 0.0, 0.01]))
    assert motion.step(1e-3, np.array([1.0, 0.0, 0.01])) == 0
ends = zip(motion.state, (stepper.state.q, stepper.state.v))
worst["step"] = max(float(np.abs(a - b).max()) for a, b in ends)
print(json.dumps(worst))
