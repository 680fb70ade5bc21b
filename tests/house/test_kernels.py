"""The number of Warp kernels, and what they cost before the first result on a fresh machine."""

import ast
import json
import subprocess
import sys

import pytest
from house.sources import package_files, tree

MOST_KERNELS = 31  # the last looks for what balls met within a step, with the distances that contact has

COLD = """
import importlib, json, sys, tempfile, time
import warp as wp
wp.config.kernel_cache_dir, names = tempfile.mkdtemp(), sys.argv[1:]
modules = [importlib.import_module(name) and wp.get_module(name) for name in names]
times = {}
for name, module in zip(names, modules):
    began = time.perf_counter()
    module.load("cpu")
    times[name] = time.perf_counter() - began
print(json.dumps(times))
"""


def kernels():
    """Names of the kernels of each module that has any."""
    found = {}
    for file, path in package_files().items():
        names = [node.name for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef)
                 and "wp.kernel" in (ast.unparse(d).split("(")[0] for d in node.decorator_list)]  # fmt: skip
        if names:
            found["lissom." + file.removesuffix(".py").replace("/", ".")] = names
    return found


def cold_times(modules):
    """Seconds to compile each module into an empty cache, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", COLD, *modules], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def report(capsys, times):
    """Show the count and the times on the terminal."""
    with capsys.disabled():
        count = sum(map(len, kernels().values()))
        print(f"\n{count} Warp kernels in {len(kernels())} modules; cold compile time of {len(times)} modules "
              f"{sum(times.values()):.1f} s: {', '.join(f'{k} {t:.1f}' for k, t in times.items())}")  # fmt: skip


def test_there_are_few_kernels(capsys):
    """At most thirty-one kernels; those of the Lie layer are compiled into an empty cache for their time."""
    report(capsys, cold_times(["lissom.lie.arrays"]))
    assert sum(map(len, kernels().values())) <= MOST_KERNELS


@pytest.mark.slow
def test_cold_compile_time_of_everything(capsys):
    """Compiling every kernel into an empty cache takes less than two minutes on one core."""
    times = cold_times(list(kernels()))
    report(capsys, times)
    assert sum(times.values()) < 120.0


def test_kernels_keep_no_backward_pass():
    """Every module with kernels sets the shared options: no adjoints, strict floating point."""
    for name in kernels():
        path = package_files()[name.removeprefix("lissom.").replace(".", "/") + ".py"]
        assert any(ast.unparse(node) == "wp.set_module_options(kernel_options())" for node in tree(path).body), name
