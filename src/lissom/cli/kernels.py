"""Compilation of kernels ahead of their use."""

from __future__ import annotations

import argparse
from pathlib import Path

from lissom.cli.command import Command
from lissom.cli.common import loaded


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("build", "info"))
    parser.add_argument("--target", help="with build: any processor of this kind: x86-64-v3, x86-64-v4, aarch64")
    parser.add_argument("--out", type=Path, help="with --target: folder, which LISSOM_KERNELS then names")
    parser.add_argument("robots", type=Path, nargs="*", metavar="ROBOT", help="robot files; without, plain robots")


def _kernels(arguments: argparse.Namespace) -> int:
    import lissom as ls

    models = [loaded(path)[1] for path in arguments.robots]
    if arguments.what == "build":
        ls.build_kernels(*models, target=arguments.target, out=arguments.out)
    if arguments.out is not None:
        return 0
    cache = ls.kernel_cache(*models)
    print(f"{cache.folder}: {cache.bytes / 1e6:.1f} MB of everything compiled by Warp")
    if cache.compiled is not None:
        whose = ", ".join(str(path) for path in arguments.robots) or "plain robots"
        print(f"{cache.compiled} of {cache.count} modules of {whose} are compiled")
    if cache.ready:
        print(f"{cache.ready} more were installed ready-compiled for processors like this one")
    return 0


KERNELS = Command(
    "kernels",
    "compile kernels ahead of use, or show the compiled kernels of this machine",
    "lissom kernels build robot.yaml",
    _arguments,
    _kernels,
)
