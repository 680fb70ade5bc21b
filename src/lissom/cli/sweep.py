"""Sweeps over many samples of a robot."""

from __future__ import annotations

import argparse
from pathlib import Path

from lissom.cli.command import Command
from lissom.cli.common import shown

_FAILURES = 10  # printed failures of a sweep


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", type=Path, help="study file (YAML)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the results, or to continue")
    parser.add_argument("--workers", type=int, metavar="N", help="processes (one for each core)")
    parser.add_argument("--cluster", metavar="ADDRESS", help="of the scheduler of a Dask cluster, instead of --workers")
    parser.add_argument("--quiet", action="store_true", help="no progress and no summary")


def _sweep(arguments: argparse.Namespace) -> int:
    import lissom as ls
    from lissom.sweeps.study_file import load_study

    given = load_study(arguments.study)
    where = {"workers": arguments.workers, "cluster": arguments.cluster}
    found = ls.sweep(given.pop("task"), given.pop("parameters"), **given, **where, out=arguments.out,
                     progress=not arguments.quiet)  # fmt: skip
    if not arguments.quiet:
        print(f"{len(found.numbers)} of {found.count} samples, {len(found.failures)} failed")
        for number, why in list(found.failures.items())[:_FAILURES]:
            print(f"sample {number}: {shown(why)}")
        print(f"wrote {arguments.out / 'sweep.json'}")
    return 0


SWEEP = Command(
    "sweep",
    "compute many samples of a robot's values, inputs and starts",
    "lissom sweep study.yaml --out results",
    _arguments,
    _sweep,
)
