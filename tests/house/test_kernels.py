"""The number of Warp kernels, and their cost before the first result on a fresh machine."""

import ast
import json
import re
import subprocess
import sys

import pytest
from house.sources import definitions, package_files, parsed, statements, text, tree

MOST_KERNELS = 43  # the last are those of loads at a time and of responses to inputs, of exported robots

COLD = """
import importlib, inspect, json, sys, tempfile, time
import lissom as ls
import warp as wp
from lissom.launch.compiling import kernel_for
wp.config.kernel_cache_dir, names = tempfile.mkdtemp(), sys.argv[1:]
robot = ls.Robot("plain")
robot.add_link("body", body=ls.RigidBody.sphere(0.1, density=1e3), joint=ls.JointRevolute())
plain, times = robot.build(), {}
for name in names:
    file = importlib.import_module(name)
    own = [x for x in vars(file).values() if inspect.isfunction(x) and x.__module__ == name]
    made = [x for x in own if list(inspect.signature(x).parameters) == ["act"]]
    modules = [wp.get_module(name), *(kernel_for(x, plain).module for x in made)]
    began = time.process_time()
    for module in modules:
        module.load("cpu")
    times[name] = time.process_time() - began
print(json.dumps(times))
"""


KERNEL = re.compile(r"^ *@wp\.kernel\b.*\n(?: *@.*\n)* *def (\w+)", re.MULTILINE)


def kernels():
    """Names of the kernels of each module that has any, except those that are generated for functions of users."""
    found = {}
    for file, path in package_files().items():
        if file == "tracing/native.py" or "wp.kernel" not in text(path):
            continue
        names = KERNEL.findall(text(path))
        if names:
            found["lissom." + file.removesuffix(".py").replace("/", ".")] = names
    return found


def cold_times(modules):
    """Seconds of one core to compile each module into an empty cache, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", COLD, *modules], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_there_are_few_kernels():
    """There are few kernels."""
    assert sum(map(len, kernels().values())) <= MOST_KERNELS


@pytest.mark.slow
def test_cold_compile_time_of_everything(capsys):
    """Compiling every kernel into an empty cache takes less than two minutes on one core."""
    times = cold_times(list(kernels()))
    count = sum(map(len, kernels().values()))
    with capsys.disabled():
        print(f"\n{count} Warp kernels in {len(times)} modules; cold compile time "
              f"{sum(times.values()):.1f} s: {', '.join(f'{k} {t:.1f}' for k, t in times.items())}")  # fmt: skip
    assert sum(times.values()) < 120.0


def test_kernels_keep_no_backward_pass():
    """Every kernel has the shared options, those of its module or its own: no adjoints, strict floating point."""
    own = "wp.kernel(module='unique', module_options=kernel_options(act.kinds))"
    for name in kernels():
        path = package_files()[name.removeprefix("lissom.").replace(".", "/") + ".py"]
        shared = any(ast.unparse(node) == "wp.set_module_options(kernel_options())" for node in tree(path).body)
        for node in definitions(path):
            made = [text for d in node.decorator_list if (text := ast.unparse(d)).startswith("wp.kernel")]
            assert not made or made == [own] or (made == ["wp.kernel"] and shared), (name, node.name)


def test_functions_take_structs_of_arrays_by_reference():
    """Functions in kernels copy no struct of tables or buffers, which kept the compiler for CUDA busy for minutes: they
    take what `by_reference` made of it."""
    paths = [path for path in package_files().values() if "wp.func" in text(path) or "by_reference" in text(path)]
    assigned = [node.value for path in paths for node in tree(path).body if isinstance(node, ast.Assign)]
    structs = {ast.unparse(value.args[0]) for value in assigned
               if isinstance(value, ast.Call) and ast.unparse(value.func) == "by_reference"}  # fmt: skip
    assert {"TablesStruct", "ScratchStruct", "StepRowsStruct"} <= structs
    for node in (node for path in paths for node in definitions(path)):
        if any(ast.unparse(d).startswith("wp.func") for d in node.decorator_list):
            given = {ast.unparse(argument.annotation) for argument in node.args.args if argument.annotation}
            assert not given & structs, (node.name, given & structs)


def test_kernels_do_not_write_to_their_structs():
    """No kernel assigns to an argument or to a field of one: all instances share the structs of a launch."""
    count = 0
    kernels_in = [path for path in package_files().values() if "wp.kernel" in text(path)]
    for node in (node for path in kernels_in for node, _ in statements(parsed(path))):
        if isinstance(node, ast.FunctionDef) and "wp.kernel" in " ".join(map(ast.unparse, node.decorator_list)):
            count += 1
            given = {argument.arg for argument in node.args.args}
            for assignment in (x for x in ast.walk(node) if isinstance(x, (ast.Assign, ast.AugAssign))):
                for target in assignment.targets if isinstance(assignment, ast.Assign) else [assignment.target]:
                    assert not isinstance(target, ast.Attribute), (node.name, ast.unparse(assignment))
                    assert not isinstance(target, ast.Name) or target.id not in given, (node.name, ast.unparse(target))
    assert count > 30


MOST_ARGUMENTS = 12


def test_functions_in_kernels_have_few_arguments():
    """No kernel, function in a kernel or native function has more than twelve: structs group them."""
    found, count = [], 0
    for file, path in package_files().items():
        for node in definitions(path) if "wp." in text(path) else ():
            if any(ast.unparse(d).startswith(("wp.kernel", "wp.func")) for d in node.decorator_list):
                count += 1
                found += [f"{file}: {node.name}"] if len(node.args.args) > MOST_ARGUMENTS else []
    assert count > 500 and not found
