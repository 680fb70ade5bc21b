"""Base frames of the sweeps: which nodes share one, and where each stands."""

from __future__ import annotations

import numpy as np

from lissom.model.nodes import Node
from lissom.model.tree import Bases
from lissom.robot.joints import MotionKind


def base_tables(nodes: list[Node], ties: np.ndarray) -> tuple[Bases, np.ndarray]:
    """The base frames, and the index of that of each node.

    A tree has a base frame of its own; trees that a tie joins share that of the one with most mass.

    Args:
        nodes: by their numbers.
        ties: pairs of nodes (n, 2) that something acts between; -1 is the world.
    """
    root = np.arange(len(nodes))
    for k, node in enumerate(nodes):
        if node.parent is not None:
            root[k] = root[node.parent.index]
    roots = np.flatnonzero([node.parent is None for node in nodes])
    mass = np.array([node.inertia[3:, 3:].trace() for node in nodes])
    weight = {int(r): float(mass[root == r].sum()) for r in roots}
    leader = _leaders(weight, {tuple(pair) for pair in root[ties[(ties >= 0).all(axis=1)]].tolist()})
    bases = sorted(set(leader.values()))
    number = {b: k for k, b in enumerate(bases)}
    slides = [_sliding_joint(nodes, b) for b in bases]
    tables = Bases(
        position=np.array([nodes[b].G[:3, 3] for b in bases]).reshape(-1, 3),
        slide_start=np.cumsum([0] + [len(chain) for chain in slides]).astype(np.int32),
        slide=np.array([k for chain in slides for k in chain], dtype=np.int32),
    )
    return tables, np.array([number[leader[int(r)]] for r in root], dtype=np.int32)


def _leaders(weight: dict[int, float], tied: set[tuple[int, ...]]) -> dict[int, int]:
    """The heaviest of the roots that are tied to each root, itself among them; the first of equals."""
    groups = {r: {r} for r in weight}
    for a, b in tied:
        if groups[a] is not groups[b]:
            groups[a] |= groups[b]
            for r in groups[b]:
                groups[r] = groups[a]
    return {r: max(sorted(group), key=lambda x: weight[x]) for r, group in groups.items()}


def _sliding_joint(nodes: list[Node], root: int) -> list[int]:
    """The nodes of a root's joint up to the last one that can slide, from the root on."""
    chain, node = [], nodes[root]
    while node is not None and _is_joint(node):
        chain.append(node)
        after = (other for other in nodes[node.index + 1 :] if other.parent is node and other.link == node.link)
        node = next(after, None)
    while chain and not _slides(chain[-1]):
        chain.pop()
    return [node.index for node in chain]


def _is_joint(node: Node) -> bool:
    """Whether a node moves and is no interval of a rod and no frame of a deformable body, whose coordinates move what
    is on it and not the frame."""
    return node.Phi1.shape[1] > 0 and node.kappa == 0.0 and node.kind is not MotionKind.BODY


def _slides(node: Node) -> bool:
    moves_on = node.kind in (MotionKind.FREE, MotionKind.MAP)
    return moves_on or (node.kind is MotionKind.EXP and bool(node.Phi1[3:].any()))
