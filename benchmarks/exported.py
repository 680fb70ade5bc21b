"""Exported C++ beside the library: time of a call, size of the code, and time to build it.

    python benchmarks/exported.py              # the cable-driven manipulator and a robot arm, by clang++
    python benchmarks/exported.py ur10 --compiler g++ --functions mass_matrix,step

A call from C copies arguments, runs the kernel and copies results. Beside it are the same kernel alone, or the sum of
several, the kernel of the library, launched from Python by the library's own loop, and the public function. All times
are those of the process, and the least of many groups of calls, since other programs of the machine only add to them.
Calls and kernels take turns. "of C" is a call over the kernel alone, "of library" one over the kernel of the library.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import lissom as ls
from lissom.dynamics.forward_dynamics_derivatives import forward_dynamics_derivatives_buffers as fdd_buffers
from lissom.exporting.functions import FUNCTIONS, LAUNCHES, launches_of
from lissom.exporting.recorded import EVALUATE, states_of
from lissom.exporting.sources import compiler_flags

ROBOTS = Path(__file__).parents[1] / "examples" / "robots"
MEASURED = (*(name for name, function in FUNCTIONS.items() if function.results), "step")
_GROUPS, _CALLS = 400, 20  # groups of calls, and calls of each
_PROGRAM = """
#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>
#include "robot.h"
#include <cstddef>
#include "tables.h"
namespace layout {
#include "layout.h"
}
#include "recorded.h"

struct inside {  // the first members of a workspace
    bool is_owned;
    void* block;
    char* working;
    void* arguments[layout::N_LAUNCHES];
};

static double now() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e6 * double(t.tv_sec) + 1e-3 * double(t.tv_nsec);
}

template <typename F, typename B>
static double group(F call, B before) {
    before();
    const double begin = now();
    for (int n = 0; n < CALLS; ++n)
        call();
    return (now() - begin) / CALLS;
}

template <typename F, typename K, typename B>
static void measure(const char* name, F call, K kernel, B before) {
    double least[] = {1e300, 1e300};
    for (int k = 0; k < GROUPS; ++k) {
        const double found[] = {group(call, before), group(kernel, before)};
        for (int e = 0; e < 2; ++e)
            least[e] = found[e] < least[e] ? found[e] : least[e];
    }
    std::printf("%s %.4f\\nkernel:%s %.4f\\n", name, least[0], name, least[1]);
}

int main() {
    robot_workspace* w;
    robot_create(&w, nullptr, 0, ROBOT_ABI_VERSION);
    const inside* own = reinterpret_cast<inside*>(w);
    const auto run = [&](int number) { layout::LAUNCHES[number].run(own->arguments[number]); };
    const auto aim = [&] {  // the last kernel of derivatives of accelerations works on matrices of the one before
#if HAS_MASS_RESPONSE
        const auto at = [&](layout::place p) { return reinterpret_cast<double*>(own->working + p.offset); };
        double* const to[] = {at(layout::derivatives_dq), at(layout::derivatives_dv), at(layout::derivatives_da)};
        layout::ROBOT(aim_mass_response)(own->arguments[layout::mass_response], own->working, to);
#endif
    };
    for (int k = 0; k < N_RECORDS; ++k) {
        size_t takes, gives;
        robot_sizes(RECORDS[k].function, &takes, &gives);
        std::vector<double> out(gives);
        measure(RECORDS[k].name, [&] {
            robot_evaluate(w, RECORDS[k].function, RECORDS[k].in, takes, out.data(), gives);
        }, [&] {
            for (int number : NUMBERS[k])
                run(number);
        }, aim);
    }
#if HAS_STEP
    int* counts = reinterpret_cast<int*>(own->working + layout::step_counts.offset);
    measure("step", [&] { robot_step(w, STEP_SIZE, nullptr); }, [&] {
        counts[DONE] = 0;
        run(layout::step);
    }, [&] {  // both from the same state, to which a first step leads
        robot_start(w, 0.0, BEFORE_Q, BEFORE_V, nullptr);
        robot_step(w, STEP_SIZE, nullptr);
    });
#endif
    robot_destroy(w);
}
"""
_RECORD = "struct record { int function; const char* name; const double* in; const double* out; };\n"


def _least(call, count=_GROUPS):
    """Least time of the process for a call, in groups [µs]."""
    times = []
    for _ in range(count):
        began = time.process_time()
        for _ in range(_CALLS):
            call()
        times.append(1e6 * (time.process_time() - began) / _CALLS)
    return min(times)


def _launches(model: ls.Model, function: str) -> list[str]:
    """The launches of a function of states, with that of loads and motions by functions of time."""
    known = launches_of(model, [function])
    of_loads = model.loads.varies and model.n_load_rows > 0
    by_time = of_loads or (model.n_motions > 0 and "forward_dynamics" in known)
    has_laws = by_time and FUNCTIONS[function].arguments[0].name == "t"
    return ["laws", *known] if has_laws else known


def _from_c(
    model: ls.Model, folder: Path, name: str, functions: tuple[str, ...], compiler: str
) -> tuple[dict[str, float], float, int]:
    """Times of calls [µs], the time to compile all sources [s], and the size of the code [bytes]."""
    evaluated = [_launches(model, function) for function in functions if FUNCTIONS[function].results]
    launches = ", ".join(f"{{{', '.join(f'layout::{one}' for one in names)}}}" for names in evaluated)
    solved = int(any("mass_response" in names for names in evaluated))
    included = f'#define HAS_MASS_RESPONSE {solved}\n{_RECORD}#include "recorded.h"\n'
    included += f"static const std::vector<int> NUMBERS[] = {{{launches}}};\n"
    text = _PROGRAM.replace("GROUPS", str(_GROUPS)).replace("CALLS", str(_CALLS))
    (folder / "bench.cpp").write_text(
        text.replace('#include "recorded.h"', included)
        .replace("robot_", f"{name}_").replace("ROBOT_", f"{name.upper()}_").replace("robot.h", f"{name}.h"),
        encoding="utf-8",
    )  # fmt: skip
    began, objects = time.perf_counter(), []
    for source in sorted(folder.rglob("*.cpp")):
        objects.append(folder / f"{source.parent.name}_{source.stem}.o")
        command = [compiler, *compiler_flags(compiler), "-march=native", f"-I{folder}", f"-I{folder}/warp"]
        command += ["-c", source, "-o", objects[-1]]
        subprocess.run(list(map(str, command)), check=True)
    program = folder / "bench"
    subprocess.run([compiler, *map(str, objects), "-o", str(program), "-lm"], check=True)
    built = time.perf_counter() - began
    text = subprocess.run(["size", str(program)], capture_output=True, text=True, check=True).stdout.split("\n")[1]
    lines = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.splitlines()
    return {key: float(value) for key, value in map(str.split, lines)}, built, int(text.split()[0])


def _from_python(model: ls.Model, function: str) -> tuple[float, float]:
    """Times of the kernel alone and of the public function [µs]."""
    state = states_of(model)[0]
    if function == "step":
        stepper = ls.Stepper(model, 1e-3)
        return float("nan"), _least(stepper.step)
    kernels, launches = 0.0, launches_of(model, [function])
    several = [fdd_buffers(model, 1)] if "mass_response" in launches else [LAUNCHES[name](model) for name in launches]
    for w in several:
        for key, value in state.items():
            if key in w.host:
                w.host[key][0] = value
        kernels += _least(w.run)
    given = [state[argument.name] for argument in FUNCTIONS[function].arguments]
    return kernels, _least(lambda: EVALUATE[function](model, *given))


def main() -> None:
    """Print a table for each robot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", default=["cdm", "ur10"])
    parser.add_argument("--compiler", default="clang++")
    parser.add_argument("--functions", type=lambda text: tuple(text.split(",")), default=MEASURED)
    arguments = parser.parse_args()
    for robot in arguments.robots:
        model = ls.load_robot(ROBOTS / f"{robot}.yaml").build()
        with tempfile.TemporaryDirectory() as place:
            made = ls.export(model, place, arguments.functions, name="bench_robot")
            size = sum((made.folder / path).stat().st_size for path in made.files)
            found, built, code = _from_c(model, made.folder, made.name, made.functions, arguments.compiler)
        print(f"{robot}: nq {model.nq}, built by {arguments.compiler} in {built:.0f} s, sources {size / 1e6:.1f} MB, "
              f"program {code / 1e3:.0f} kB")  # fmt: skip
        print(f"{'[µs]':32} {'from C':>9} {'kernel, C':>9} {'kernel':>9} {'Python':>9} {'of C':>7} {'of library':>10}")
        for function in made.functions:
            kernel, public = _from_python(model, function)
            from_c, alone = found[function], found[f"kernel:{function}"]
            print(f"{function:32} {from_c:9.2f} {alone:9.2f} {kernel:9.2f} {public:9.2f} {from_c / alone:7.3f} "
                  f"{from_c / kernel:10.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
