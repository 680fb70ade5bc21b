"""Kernels that wait for the derivatives of users' functions, and those that need not."""

from pathlib import Path

import jax.numpy as jnp
import pytest
import warp as wp

import lissom as ls
from lissom.dynamics.energy import energy_kernel
from lissom.dynamics.forward_dynamics import articulated_kernel, forward_dynamics_kernel
from lissom.dynamics.inverse_dynamics import inverse_dynamics_kernel
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives_kernel
from lissom.dynamics.kinematics import frames_kernel, jacobian_kernel, motion_kernel
from lissom.dynamics.mass_matrix import mass_inverse_dynamics_kernel, mass_matrix_kernel
from lissom.launch import compiling
from lissom.launch.compiling import kernel_for, load
from lissom.lie.warp_private import is_tested, name_in_cache

LENGTH = 0.2
MARKED = (
    inverse_dynamics_kernel, energy_kernel, frames_kernel, jacobian_kernel, motion_kernel, mass_matrix_kernel,
    mass_inverse_dynamics_kernel, articulated_kernel, forward_dynamics_kernel,
)  # fmt: skip


def bent(x, q):
    """A motion in which sections turn."""
    s = x[0] / LENGTH
    return x + jnp.array([-q[0] * x[1] * s, q[0] * x[0] * s, q[1] * x[2] * s])


@pytest.fixture(scope="module")
def model():
    """A body with a turning tip and a tendon, all in native code."""
    domain, law = ls.DomainBox(LENGTH, 0.02, 0.02), ls.HyperelasticLinear(1e5, 0.3, 0.01)
    body = ls.DeformableBody(ls.KinematicsFunction(bent, 2), domain, law, 1000.0, tip="tip")
    robot = ls.Robot("soft")
    robot.add_link("body", body)
    robot.add_tendon("line", path=[ls.PathBody("body", [(0.0, 0.005, 0.0), (LENGTH, 0.005, 0.0)])])
    return robot.build()


def source(model, kernel) -> str:
    """The C++ code of a kernel."""
    module = kernel_for(kernel, model).module
    load([module], "cpu")
    (file,) = Path(wp.config.kernel_cache_dir, name_in_cache(module)).glob("*.cpp")
    return file.read_text(encoding="utf-8")


@pytest.mark.skipif(not is_tested(wp.__version__), reason="needs the place of code in Warp's cache")
def test_marked_kernels_call_no_derivatives(model):
    """They may run before the derivatives are compiled, when their cells are zero."""
    calls = [f"{name}_function.data[" for name in ("curve", "derivatives", "second")]
    assert set(MARKED) >= compiling._WITHOUT_DERIVATIVES
    for kernel in MARKED:
        text = source(model, kernel)
        assert not any(call in text for call in calls), kernel.__name__
    text = source(model, residual_derivatives_kernel)
    assert all(call in text for call in calls[:2])


def test_other_kernels_wait_for_all_functions(model, monkeypatch):
    """Values alone, or all functions of the model."""
    waited = []
    monkeypatch.setattr(compiling, "wait_for_functions", lambda cells: waited.append(set(cells.tolist()) - {0}))
    compiling.wait_for_native_functions(next(iter(compiling._WITHOUT_DERIVATIVES)), model)
    compiling.wait_for_native_functions(residual_derivatives_kernel, model)
    maps, bodies, pulls = model.maps, model.deforming, model.pulls
    values = {int(x[0]) for x in (maps.place_function, bodies.values_function, pulls.values_function)}
    others = {int(x[0]) for x in (maps.curve_function, bodies.derivatives_function, pulls.derivatives_function)}
    others.add(int(pulls.second_function[0]))
    assert waited == [values, values | others] and len(values | others) == 7
