"""Every kernel compiles for CUDA, which needs no GPU, and none keeps its compiler busy for long.

Measured in seconds of a busy core, where nothing acts and where everything does: fused steps 49 and 53, equilibria 46
and 58, derivatives of inverse dynamics 38 and 46, forward dynamics 17 and 22, all others at most 21. As long as each
call copied the structs it hands on, fused steps took 400. Native code for a GPU instead of PTX takes longer: 123 for
fused steps where everything acts.
"""

import inspect
import time
from importlib import import_module

import pytest
import warp as wp
from house.test_kernels import kernels
from robots import build, random_tree
from touching_robots import LAW, hybrid
from traced_robots import hybrid_of_traced_functions

import lissom as ls
from lissom.dynamics.inverse_dynamics import inverse_dynamics_kernel
from lissom.launch.compiling import kernel_for
from lissom.lie.types import vec6

ARCHITECTURE = 90
MOST_SECONDS = 90.0  # of one core


@wp.func
def pull(R: wp.mat33d, p: wp.vec3d, eta: vec6, s: wp.float64, t: wp.float64) -> vec6:
    """A user's force."""
    return vec6(p[0], p[1], p[2], wp.sin(t), s, eta[0])


@wp.func
def stream(x: wp.vec3d, t: wp.float64) -> vec6:
    """A user's current."""
    return vec6(wp.sin(x[1] + t), x[2], wp.float64(0.3), wp.float64(0.0), wp.float64(0.0), wp.float64(0.0))


@wp.func
def muscle(length: wp.float64, rate: wp.float64) -> wp.float64:
    """A user's spring."""
    return wp.float64(20.0) * length + rate


def everything():
    """A robot with loops, tendons, contacts that stick, water, springs, and functions of the user's own."""
    robot = hybrid("free")
    robot.add_loop("loop", "a", "b", joint=ls.JointRevolute())
    robot.add_tendon("cable", "a", (0.0, 0.01))
    robot.add_tendon("elastic", "b", (0.01, 0.0), stiffness=100.0)
    robot.add_contact("floor", ["a", "b", "ball"], ls.ShapePlane(), radius=0.02, **LAW, stick_stiffness=1e4)
    robot.set_fluid(density=1000.0, current=stream, links={"b": ls.Hydrodynamics(tail=True)})
    robot.add_spring("muscle", "a", "ball", law=muscle)
    robot.add_force("pull", "a", pull)
    return build(robot)


def compiled(tmp_path, name, module):
    """PTX of a module, and the seconds of one core it took."""
    began = time.process_time()
    paths = wp.compile_aot_module(module, arch=[ARCHITECTURE], module_dir=tmp_path / name, use_ptx=True)
    seconds = time.process_time() - began
    assert paths
    return min(path.stat().st_size for path in paths), seconds


def modules_of(name, models):
    """The modules whose kernels a module of the package holds: its own, and those composed of what acts on models."""
    file, found = import_module(name), {}
    members = [x for x in vars(file).values() if getattr(x, "__module__", name) == name]
    if any(isinstance(x, wp.Kernel) and x.module.name == name for x in members):
        found[name] = wp.get_module(name)
    for x in members:
        if inspect.isfunction(x) and list(inspect.signature(x).parameters) == ["act"]:
            found |= {f"{name}.{x.__name__} ({on})": kernel_for(x, model).module for on, model in models.items()}
    return found


@pytest.mark.slow
def test_traced_functions_compile_for_cuda(tmp_path):
    """In a force, a spring and a current. Numbers are compared in launch/test_gpu.py."""
    module = kernel_for(inverse_dynamics_kernel, build(hybrid_of_traced_functions())).module
    size, _ = compiled(tmp_path, "traced", module)
    assert size > 1000


@pytest.mark.slow
@pytest.mark.parametrize("name", kernels())
def test_every_kernel_compiles_for_cuda(name, tmp_path, capsys):
    """To PTX, in less than ninety seconds of one core each, where nothing acts and where everything does."""
    modules = modules_of(name, {"nothing": build(random_tree(3)), "everything": everything()})
    assert modules
    for k, (key, module) in enumerate(modules.items()):
        size, seconds = compiled(tmp_path, str(k), module)
        with capsys.disabled():
            print(f"\n{key}: {seconds:.0f} s for CUDA, {size / 1e6:.1f} MB")
        assert size > 1000 and seconds < MOST_SECONDS, key
