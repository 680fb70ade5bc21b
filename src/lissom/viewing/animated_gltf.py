"""Binary glTF 2.0 of surfaces that move: each shape is a morph target, and an animation blends one into the next.

A target holds the differences of vertices from the surface at rest. At the time of shape k the weight of target k is 1
and all others are 0; between two times both weights are linear, so that vertices move along straight lines.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any, final

import numpy as np

_FLOAT, _INDEX, _BYTE = 5126, 5125, 5121  # component types of glTF
_JSON, _BIN = 0x4E4F534A, 0x004E4942  # kinds of chunks
_STILL = 1e-6  # movement relative to the size of a surface below which it has no targets
_UP = [-(0.5**0.5), 0.0, 0.0, 0.5**0.5]  # glTF's y axis points up, ours is z


@final
class _Binary:
    """The binary part of a file, and the accessors that describe it."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def add(self, values: np.ndarray, kind: str, component: int, **more: Any) -> int:
        """Append an array. Returns the index of its accessor."""
        content = np.ascontiguousarray(values).tobytes()
        self.views.append({"buffer": 0, "byteOffset": self.size, "byteLength": len(content)})
        self.accessors.append({"bufferView": len(self.views) - 1, "componentType": component, "count": len(values),
                               "type": kind, **more})  # fmt: skip
        content += bytes(-len(content) % 4)
        self.parts.append(content)
        self.size += len(content)
        return len(self.accessors) - 1

    def points(self, values: np.ndarray) -> int:
        """Append vertices (n, 3), with their box."""
        rows = values.astype(np.float32)
        return self.add(rows, "VEC3", _FLOAT, min=rows.min(axis=0).tolist(), max=rows.max(axis=0).tolist())

    def numbers(self, values: np.ndarray) -> int:
        """Append numbers (n,), with their range."""
        rows = values.astype(np.float32)
        return self.add(rows, "SCALAR", _FLOAT, min=[float(rows.min())], max=[float(rows.max())])


def animated_gltf(
    surfaces: Sequence[tuple[str, Sequence[np.ndarray], np.ndarray, np.ndarray]], times: np.ndarray
) -> bytes:
    """A file of surfaces.

    Args:
        surfaces: of each its name, its vertices (n, 3) at rest and then at each time [m], its triangles (k, 3), and the
            colours (n, 4) of its vertices, 0 to 255.
        times: of the shapes [s]; without times nothing moves.
    """
    out, nodes, meshes, channels, samplers = _Binary(), [], [], [], []
    t = out.numbers(times) if len(times) else -1
    weights = out.numbers(np.eye(len(times)).ravel()) if len(times) else -1
    for name, shapes, triangles, colors in surfaces:
        rest = np.asarray(shapes[0])
        size = float(np.ptp(rest, axis=0).max(initial=0.0))
        moves = np.array([np.asarray(shape) - rest for shape in shapes[1:]])
        primitive: dict[str, Any] = {
            "attributes": {"POSITION": out.points(rest), "COLOR_0": out.add(colors, "VEC4", _BYTE, normalized=True)},
            "indices": out.add(triangles.astype(np.uint32).ravel(), "SCALAR", _INDEX),
            "material": 0 if colors[:, 3].min() == 255 else 1,
        }
        mesh: dict[str, Any] = {"name": name, "primitives": [primitive]}
        if len(times) and np.abs(moves).max(initial=0.0) > _STILL * size:
            primitive["targets"] = [{"POSITION": out.points(move)} for move in moves]
            mesh["weights"] = [0.0] * len(moves)
            channels.append({"sampler": len(samplers), "target": {"node": len(nodes), "path": "weights"}})
            samplers.append({"input": t, "output": weights, "interpolation": "LINEAR"})
        nodes.append({"name": name, "mesh": len(meshes)})
        meshes.append(mesh)
    nodes.append({"name": "lissom", "rotation": _UP, "children": list(range(len(nodes)))})
    look = {"metallicFactor": 0.0, "roughnessFactor": 0.7}
    solid = {"name": "solid", "pbrMetallicRoughness": look, "doubleSided": True}
    scene: dict[str, Any] = {
        "asset": {"version": "2.0", "generator": "lissom"},
        "scene": 0,
        "scenes": [{"nodes": [len(nodes) - 1]}],
        "nodes": nodes,
        "meshes": meshes,
        "materials": [solid, {**solid, "name": "translucent", "alphaMode": "BLEND"}],
        "buffers": [{"byteLength": out.size}],
        "bufferViews": out.views,
        "accessors": out.accessors,
    }
    if channels:
        scene["animations"] = [{"name": "motion", "channels": channels, "samplers": samplers}]
    text = json.dumps(scene, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    body = b"".join(out.parts)
    header = struct.pack("<4sII", b"glTF", 2, 12 + 8 + len(text) + 8 + len(body))
    return header + struct.pack("<II", len(text), _JSON) + text + struct.pack("<II", len(body), _BIN) + body
