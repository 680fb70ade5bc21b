"""Further points on a model: frames asked for after the build."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.model.nodes import Node, node_arrays, point_before


def frame_nodes(model: Model, name: str, abscissae: tuple[float, ...]) -> tuple[Model, np.ndarray, np.ndarray]:
    """Where the frame `name` stands at each s: a model that has the nodes, their indices (-1 world), placements.

    Raises:
        ModelError: no link or frame has this name.
    """
    known = sorted([*model.link_names, *model.frames])
    if not isinstance(name, str) or name not in known:
        raise ModelError(f"link or frame: must be one of {known} (got {name!r})")
    if name in model.frames:
        frames = [model.frames[name]] * len(abscissae)
        return model, *_split(frames)
    if name not in model.rods:
        return model, *_split([model.link_frame[name]] * len(abscissae))
    return model.cached(("points", name, abscissae), lambda: _with_points(model, name, abscissae))


def _with_points(model: Model, name: str, abscissae: tuple[float, ...]) -> tuple[Model, np.ndarray, np.ndarray]:
    rod, link = model.rods[name], model.link_names.index(name)
    added, frames = [], []
    for s in abscissae:
        k = point_before(rod.node_s, s)
        before, s0 = ((int(rod.node[k]), np.eye(4)), float(rod.node_s[k])) if k >= 0 else (rod.base, 0.0)
        if s - s0 <= 1e-12:
            frames.append(before)
            continue
        parent = Node(None, np.eye(4), link, s0, 0, 0, index=before[0])  # stands for one of the frozen tables
        added.append(rod.strain.interval(link, (parent, before[1]), s0, s))
        frames.append((model.n_nodes + len(added) - 1, np.eye(4)))
    if not added:
        return model, *_split(frames)
    more = node_arrays(added)
    more["node_run_start"] = (more["node_run_start"] + len(model.run_phi1)).astype(np.int32)
    more["node_base"] = np.full(len(added), model.node_base[rod.node[0]])
    joined = {field: np.concatenate([getattr(model, field), more[field]]) for field in more}
    return replace(model, **joined, cache={}), *_split(frames)


def _split(frames: list[tuple[int, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    nodes = np.array([node for node, _ in frames], dtype=np.int32)
    return nodes, np.array([g for _, g in frames]).reshape(-1, 4, 4)
