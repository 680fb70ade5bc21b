"""Study files: a sweep as YAML, for the command line. Nothing in a file is executed.

robot: arm.yaml                       beside the study file
parameters:
  arm.material.young: {low: 1e6, high: 3e6, steps: 5, scale: log}
  u.t1: [0, 1, 2]
samples: {kind: grid}                 or {kind: sobol, count: 256, seed: 1}
statics: {results: [q, arm.position]}
simulation: {duration: 1, dt: 0.01, results: [q]}        instead of statics
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from lissom.errors import ModelError, ShapeError
from lissom.io.text_files import Source, parse, text_of
from lissom.sweeps.samples import Span
from lissom.sweeps.study import StudySimulation, StudyStatics

_KEYS = ("robot", "parameters", "samples", "statics", "simulation")
_STUDIES: dict[str, Any] = {"statics": StudyStatics, "simulation": StudySimulation}
_SAMPLES = {"kind": "samples", "count": "count", "seed": "seed"}


def load_study(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arguments of `sweep` in a study file.

    Raises:
        ModelError: the file, the line, the rule and the value.
        OSError: the file cannot be read.
    """
    source = parse(text_of(path), os.fspath(path))
    found: list[tuple[int, str]] = []
    data = source.data(found)
    if found:
        raise source.error(*min(found))
    _keys(source, data, _KEYS, [])
    kinds = [kind for kind in _STUDIES if kind in data]
    for known, rule in ((len(kinds) == 1, "statics or simulation, and not both"), ("parameters" in data, "parameters")):
        if not known:
            raise source.error(1, f"a study needs {rule} (got {sorted(data)})")
    out: dict[str, Any] = {"task": _study(source, data, kinds[0])}
    out["parameters"] = {
        name: _span(source, data, name) for name in _mapping(source, data["parameters"], ["parameters"])
    }
    if "robot" in data:
        if not isinstance(data["robot"], str):
            raise _wrong(source, ["robot"], "must be the path of a robot file", data["robot"])
        out["robot"] = Path(path).parent / data["robot"]
    given = _mapping(source, data.get("samples", {}), ["samples"])
    _keys(source, given, tuple(_SAMPLES), ["samples"])
    return out | {_SAMPLES[key]: value for key, value in given.items()}


def _study(source: Source, data: dict[str, Any], kind: str) -> Any:
    given, make = dict(_mapping(source, data[kind], [kind])), _STUDIES[kind]
    _keys(source, given, tuple(item.name for item in fields(make) if item.name != "controller"), [kind])
    if isinstance(given.get("u"), dict):
        from lissom.simulation.inputs import Samples

        _keys(source, given["u"], ("t", "u", "smooth"), [kind, "u"])
        given["u"] = _made(source, [kind, "u"], Samples, given["u"])
    return _made(source, [kind], make, given)


def _span(source: Source, data: dict[str, Any], name: str) -> Any:
    """The values of a parameter."""
    given = data["parameters"][name]
    if not isinstance(given, dict):
        return given
    _keys(source, given, tuple(item.name for item in fields(Span)), ["parameters", name])
    return _made(source, ["parameters", name], Span, given)


def _made(source: Source, keys: list[str], make: Callable[..., Any], given: dict[str, Any]) -> Any:
    try:
        return make(**given)
    except (ModelError, ShapeError, TypeError) as error:
        raise source.error(source.locate(keys)[0], f"{' > '.join(keys)}: {error}") from error


def _mapping(source: Source, value: Any, keys: list[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(source, keys, "must hold keys and values", value)
    return value


def _keys(source: Source, data: Any, known: tuple[str, ...], keys: list[str]) -> None:
    for key in _mapping(source, data, keys):
        if key not in known:
            raise _wrong(source, [*keys, key], f"must be one of {', '.join(known)}", key)


def _wrong(source: Source, keys: list[str], rule: str, value: Any) -> ModelError:
    return source.error(source.locate(keys)[0], f"{' > '.join(['study', *keys])}: {rule} (got {value!r})")
