"""Changed designs written into the models of a batch, whose recorded launches then compute them.

An environment draws a new design in each episode. Its tables are written into those of the model, because new buffers
and launches would take ten times as long as the tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from lissom.errors import ModelError
from lissom.launch.workspace import buffers_of, forget_numbers, write_model
from lissom.model.model import Model
from lissom.model.model_batch import FUNCTIONS_OF_TIME, Differs, ModelBatch, act_alike
from lissom.model.redesign import described
from lissom.robot.robot import Robot


def changeable(models: Sequence[Model]) -> ModelBatch:
    """A batch of copies of models of one structure, for `redraw`. The copies have tables of their own.

    Raises:
        ModelError: a model is not on the CPU, or Python functions fill its tables.
    """
    for model in models:
        if model.device != "cpu" or model.fills_tables_before_launch:
            rule = "a model whose design is drawn must be on the CPU, and no Python function may fill its tables"
            got = model.device if model.device != "cpu" else "Python functions"
            raise ModelError(f"robot {model.name!r}: {rule} (got {got})")
    batch = ModelBatch([described(model, model.description) for model in models])
    for one in batch:
        del one.cache["store"]  # equal arrays are not shared on the device
    return batch


def redraw(common: Model, k: int, robot: Robot, values: Mapping[str, Any]) -> None:
    """Make model k of a batch from `changeable`, in place, that of a description with other values.

    Args:
        common: the common Model of the batch. robot: the description. values: its new values by path, as in
            `Robot.with_`.
    Raises:
        ModelError: a path is unknown, a value breaks its rule, or a table changes its shape or its functions of time.
    """
    model = common.models[k]
    changed, before = described(model, robot.with_(values)), dict(vars(model))
    for group, word in (("loads", "point loads"), ("prescribed", "motions of joints"), ("fluid", "the current")):
        if not act_alike(model.description, changed.description, group):
            _refuse(robot, values, f"{word}, which act on all copies alike")
    phi, is_alike = changed.points.phi, changed.runs is model.runs
    if is_alike and (phi.shape != model.points.phi.shape or phi.tobytes() != model.points.phi.tobytes()):
        _refuse(robot, values, "the part of a rod along which a tendon runs")
    if not is_alike or not write_model(model, changed):
        _refuse(robot, values, "the structure of the robot")
    for buffers in buffers_of(common):
        if "gravity" in buffers.host:
            buffers.host["gravity"][k] = model.gravity
    forget_numbers(common)
    groups: dict[str, Any] = common.__dict__
    for item in fields(Model):
        name = item.name
        if name in ("cache", "models", "description") or getattr(model, name) is before[name]:
            continue
        group: Any = getattr(model, name)
        shared: Any = groups[name]
        if isinstance(group, int | str):
            continue  # the structure, which is the same
        if not is_dataclass(shared):
            groups[name] = Differs(name, group)
            continue
        parts = {part.name: (getattr(group, part.name), getattr(shared, part.name)) for part in fields(group)}
        parts.pop(FUNCTIONS_OF_TIME.get(name, ""), None)
        apart = {part: Differs(f"{name} > {part}", x) for part, (x, y) in parts.items()
                 if x is not y and not isinstance(y, Differs | int | str)}  # fmt: skip
        if apart:
            groups[name] = replace(groups[name], **apart)


def _refuse(robot: Robot, values: Mapping[str, Any], what: str) -> None:
    raise ModelError(f"robot {robot.name!r}: a design that is drawn must not change {what} (got {', '.join(values)})")
