"""Nets of rods and grids of rigid bars, closed by loops, that several tests share."""

import numpy as np

import lissom as ls

MATERIAL = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=1e4)
BASIS = ls.BasisLegendre(torsion=0, bending_y=0, bending_z=0, elongation=0, shear_y=0, shear_z=0)
ROD = ls.Rod(0.2, ls.SectionCircle(0.01), BASIS, MATERIAL)
BAR = ls.RigidBody(0.2, (0.1, 0.01, 0.0), (1e-4, 1e-3, 1e-3))


def turned(angle, *place):
    """A pose turned about z."""
    g = np.eye(4)
    g[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    g[:3, 3] = place or (0.0, 0.0, 0.0)
    return g


def describe_net(rows, columns, *, body=ROD, joint=None, loop=None, held=(), root=None):
    """Squares of rods or bars in the plane: the lowest row is a tree with all uprights, and each rod of the rows above
    ends in a loop. Nodes `held` (row, column) are held in the world by ball joints."""
    robot = ls.Robot("net")
    end = turned(0.0, 0.2) if body is not ROD else np.eye(4)
    at = {(0, 0): (None, 0.0, np.eye(4))}

    def add(name, start, stop, heading):
        parent, before, tip = at[start]
        own = joint if parent is not None else root
        placement = tip @ turned(heading - before)
        robot.add_link(name, body, **({} if own is None else {"joint": own}), parent=parent, placement=placement)
        if stop not in at:
            at[stop] = name, heading, end

    for j in range(columns):
        add(f"h0_{j}", (0, j), (0, j + 1), 0.0)
    for j in range(columns + 1):
        for i in range(rows):
            add(f"v{i}_{j}", (i, j), (i + 1, j), np.pi / 2)
    for i in range(1, rows + 1):
        for j in range(columns):
            add(f"h{i}_{j}", (i, j), (i, j + 1), 0.0)
            other, heading, tip = at[i, j + 1]
            poses = {"placement_a": end, "placement_b": tip @ turned(-heading)}
            robot.add_loop(f"l{i}_{j}", f"h{i}_{j}", other, **poses, joint=loop or ls.JointFixed())
    for i, j in held:
        link, heading, tip = at[i, j]
        poses = {"placement_a": tip @ turned(-heading), "placement_b": turned(0.0, 0.2 * j, 0.2 * i, 0.0)}
        robot.add_loop(f"w{i}_{j}", link, **poses, joint=ls.JointSpherical())
    return robot
