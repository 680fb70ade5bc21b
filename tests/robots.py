"""Random robots for the tests: hybrid trees that cover every kind of part, and rigid ones for Pinocchio.

`random_tree(seed)`, for the SEEDS, follows a schedule: over the trees every pair of levels of joint, basis, body and
load meets on a link at least once (`coverage` counts them), whatever classes there are. Random numbers fill in the
rest, the same ones always.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import combinations, product

import families
import numpy as np
from scipy.spatial.transform import Rotation

import lissom as ls
from lissom.robot.bases import Basis
from lissom.robot.joints import Joint
from lissom.robot.sections import Section

JOINTS, BASES = families.names(Joint), families.names(Basis)
SEEDS = range(max(50, -(-len(JOINTS) * len(BASES) // 2)))  # two rods a tree: one for each pair of joint and basis
LIGHT = tuple(name for name in JOINTS if families.made((getattr(ls, f"Joint{name}"), 0), 0).nq <= 2)
BODIES = ("Rod", "RigidBody", "None")
LOADS = ("world force", "body force", "moment", "varying")
TENDONS = ("whole", "partial", "reversed", "through", "rows")


def schedule():
    """Combinations (joint, body, basis, load) for rods and for other bodies, each in a fixed shuffled order.

    The load runs with joint + basis (and joint + body) modulo the number of loads, so that it meets each level of both.
    """
    rods = [(j, "Rod", b, LOADS[(m + n) % 4]) for (m, j), (n, b) in product(enumerate(JOINTS), enumerate(BASES))]
    others = [(j, b, None, LOADS[(m + n) % 4]) for (m, j), (n, b) in product(enumerate(JOINTS), enumerate(BODIES[1:]))]
    rng = np.random.default_rng(2024)
    return [rods[k] for k in rng.permutation(len(rods))], [others[k] for k in rng.permutation(len(others))]


def random_tree(seed):
    """A random hybrid robot: five to eight links, at least four deep, with branches on rods between their ends."""
    return _Tree(seed).robot


def random_state(described, seed):
    """q, v, a, u for a Robot (or what holds one as `.robot`): rods bent by a few rad, joints far from zero."""
    robot = getattr(described, "robot", described)
    rng = np.random.default_rng(1000 + seed)
    q, v = [np.zeros(0)], [np.zeros(0)]
    for link in robot.links.values():
        q.append(_joint_coordinates(rng, link.joint))
        v.append(rng.uniform(-1.5, 1.5, link.joint.nv))
        if isinstance(link.body, ls.Rod):
            scale = _strain_scale(link.body)
            q.append(scale * rng.uniform(-1, 1, len(scale)))
            v.append(3 * scale * rng.uniform(-1, 1, len(scale)))
    q, v = np.concatenate(q), np.concatenate(v)
    nu = sum(robot.input_size(actuator) for actuator in robot.actuators.values())
    nu -= sum(len(coupling.gains) - 1 for coupling in robot.couplings.values())
    return q, v, rng.uniform(-4, 4, len(v)), rng.uniform(0, 5, nu)


def build(robot):
    """The robot's model, built without its remarks on accuracy: a taper that no rule integrates exactly is meant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.AccuracyWarning)
        return robot.build()


def coverage(robots):
    """What links of the robots are made of: levels met, and pairs of levels met, by the names of the factors."""
    seen = {names: set() for names in combinations(("joint", "body", "basis", "load"), 2)}
    for robot in robots:
        for name, link in robot.links.items():
            levels = {"joint": type(link.joint).__name__.removeprefix("Joint"), "body": type(link.body).__name__}
            levels["body"] = levels["body"].replace("NoneType", "None")
            if isinstance(link.body, ls.Rod):
                levels["basis"] = type(link.body.basis).__name__.removeprefix("Basis")
            for load in robot.loads.values():
                if load.link == name:
                    _meet(seen, levels | {"load": load_kind(load)})
            _meet(seen, levels)
    return seen


def needed_coverage():
    """The pairs of levels that exist: only a rod has a basis."""
    levels = {"joint": JOINTS, "body": BODIES, "basis": BASES, "load": LOADS}
    pairs = {names: set(product(*(levels[n] for n in names))) for names in combinations(levels, 2)}
    pairs["body", "basis"] = {("Rod", basis) for basis in BASES}
    return pairs


def load_kind(load):
    """Which of LOADS a point load is."""
    if load.varies:
        return "varying"
    return "moment" if load.force is None else f"{load.frame} force"


def depth(robot, name):
    """Number of links from the world to a link, itself included."""
    parent = robot.links[name].parent
    return 1 if parent is None else 1 + depth(robot, parent)


def random_placement(rng, reach=0.1):
    """A random pose whose origin lies within `reach` along each axis [m]."""
    g = np.eye(4)
    g[:3, :3], g[:3, 3] = Rotation.random(random_state=rng).as_matrix(), rng.uniform(-reach, reach, 3)
    return g


def _meet(seen, levels):
    for names, pairs in seen.items():
        if set(names) <= set(levels):
            pairs.add(tuple(levels[n] for n in names))


def _psd(rng, n, scale):
    """Positive definite matrix of a scale: as a number, a diagonal or a whole matrix, by chance."""
    form = rng.integers(3)
    if form == 0:
        return scale
    if form == 1:
        return scale * rng.uniform(0.5, 1.5, n)
    A = rng.normal(size=(n, n))
    return scale * (A @ A.T / n + 0.2 * np.eye(n))


def _joint(rng, kind):
    joint = _member(rng, Joint, kind)
    spring = {}
    if joint.nv and rng.random() < 0.7:
        spring["stiffness"] = _psd(rng, joint.nv, 3.0)
        spring["rest"] = 0.3 * rng.normal(size=joint.nq)
        if joint.nq != joint.nv:
            spring["rest"][:4] = np.roll(Rotation.from_rotvec(rng.uniform(-0.4, 0.4, 3)).as_quat(), 1)
    if joint.nv and rng.random() < 0.7:
        spring["damping"] = _psd(rng, joint.nv, 0.2)
    return replace(joint, **spring)


def _joint_coordinates(rng, joint):
    if joint.nq == joint.nv:
        ranges = [0.1 if slides else 1.5 for slides in families.sliding(joint)]
        return np.array([rng.uniform(-most, most) for most in ranges])
    quaternion = np.roll(Rotation.from_rotvec(rng.uniform(-1.1, 1.1, 3)).as_quat(), 1)
    return np.concatenate([quaternion, rng.uniform(-0.2, 0.2, joint.nq - 4)])


def _strain_scale(rod):
    """Size of each rod coordinate: curvatures that turn up to about 4 rad along the rod, 10 % elongation and shear."""
    Phi = np.mean([abs(rod.basis.evaluate(s)) for s in np.linspace(0.01, 0.99, 30)], axis=0)
    angular = Phi[:3].sum(axis=0) > 0
    count = max(1, int(max(np.count_nonzero(row) for row in Phi)))
    return np.where(angular, 6.0 / rod.length, 0.3) / count


class _Tree:
    """One random robot as it is put together."""

    def __init__(self, seed):
        self.seed, self.rng = seed, np.random.default_rng(seed)
        gravity = (0.0, 0.0, -9.81) if seed % 2 else tuple(self.rng.uniform(-9, 9, 3))
        self.robot = ls.Robot(f"tree {seed}", gravity=gravity)
        self.links = self._links()
        order = self.rng.permutation(len(self.links)) if seed % 3 == 0 else range(len(self.links))
        for k in order:
            self.robot.add_link(**self.links[k])
        self.rods = [link["name"] for link in self.links if isinstance(link["body"], ls.Rod)]
        self._loads_and_frames()
        self._actuators()

    def _links(self):
        rng, rods, others = self.rng, *schedule()
        chosen = [rods[(2 * self.seed + k) % len(rods)] for k in range(2)]
        chosen += [others[(2 * self.seed + k) % len(others)] for k in range(2)]
        chosen = [chosen[k] for k in rng.permutation(4)]
        chosen.append((str(rng.choice(LIGHT)), "RigidBody", None, str(rng.choice(LOADS))))
        if not any(combination[1] == "Rod" for combination in chosen[:3]):
            chosen.reverse()
        self.load_of, links = {}, []
        for k, (joint, body, basis, load) in enumerate(chosen):
            name, parent = f"link {k}", None
            if k:
                parent = links[k - 1 if k < 4 else self._branch(links)]
            at = float(rng.choice([1.0, round(rng.uniform(0.1, 0.9), 3)])) if k < 4 else round(rng.uniform(0.2, 0.8), 3)
            links.append(self._link(name, joint, body, basis, parent, at))
            self.load_of[name] = load
            if body == "None":  # a moving frame without mass of its own carries a fixed body, so that M has full rank
                links_of_frame = self._link(f"bob {k}", "Fixed", "RigidBody", None, links[-1], 1.0)
                self.bobs = [*getattr(self, "bobs", []), links_of_frame]
        return links + getattr(self, "bobs", [])

    def _branch(self, links):
        """A link other than the last of the chain, a rod where there is one."""
        rods = [k for k, link in enumerate(links[:3]) if isinstance(link["body"], ls.Rod)]
        return int(self.rng.choice(rods or [0]))

    def _link(self, name, joint, body, basis, parent, at):
        bodies = {"Rod": lambda: self._rod(basis), "RigidBody": self._rigid_body, "None": lambda: None}
        return {
            "name": name,
            "body": bodies[body](),
            "joint": _joint(self.rng, joint),
            "parent": None if parent is None else parent["name"],
            "at": at,
            "placement": random_placement(self.rng) if self.rng.random() < 0.7 else None,
        }

    def _rigid_body(self):
        rng = self.rng
        form = rng.integers(4)
        if form == 0:
            return ls.RigidBody.box(*rng.uniform(0.05, 0.15, 3), density=700.0)
        if form == 1:
            return ls.RigidBody.cylinder(0.2, 0.04, density=900.0)
        moments = np.array([2e-3, 3e-3, 4e-3]) * rng.uniform(0.8, 1.2)
        if form == 2:
            return ls.RigidBody(rng.uniform(0.3, 1.0), rng.uniform(-0.05, 0.05, 3), moments)
        R = Rotation.random(random_state=rng).as_matrix()
        return ls.RigidBody(rng.uniform(0.3, 1.0), rng.uniform(-0.05, 0.05, 3), R @ np.diag(moments) @ R.T)

    def _rod(self, kind):
        rng = self.rng
        forms = families.forms(Section)
        cls, k = forms[int(rng.integers(len(forms)))]
        section, basis = families.makers(cls)[k](rng), _member(rng, Basis, kind)
        material = ls.Material(
            young=float(rng.uniform(0.5e6, 2e6)),
            poisson=float(rng.uniform(0.2, 0.5)),
            density=1000.0,
            viscosity=float(rng.choice([0.0, 3e3])),
            damping_time=float(rng.choice([0.0, 0.01])),
        )
        bare = cls is ls.SectionGeneral and section.shape is None and rng.random() < 0.5
        return ls.Rod(
            length=float(rng.uniform(0.3, 0.6)),
            section=section,
            basis=basis,
            material=None if bare else material,
            reference_strain=_reference(rng),
            gauss_points=_points(rng, basis),
            interval_points=2 + self.seed % 4,
        )

    def _abscissa(self):
        """0, 1 or a generic place along a rod."""
        return float(self.rng.choice([0.0, 1.0, round(self.rng.uniform(0.05, 0.95), 3)], p=[0.1, 0.3, 0.6]))

    def _loads_and_frames(self):
        rng, robot = self.rng, self.robot
        for name, load in self.load_of.items():
            f, m, rate = rng.uniform(-3, 3, 3), rng.uniform(-0.3, 0.3, 3), rng.uniform(1, 5)
            wrench = {
                "world force": {"force": f, "moment": m, "frame": "world"},
                "body force": {"force": f, "frame": "body"},
                "moment": {"moment": m, "frame": str(rng.choice(["world", "body"]))},
                "varying": {
                    "force": lambda t, f=f, rate=rate: f * np.cos(rate * t),
                    "moment": m if rng.random() < 0.5 else lambda t, m=m, rate=rate: m * (1 + np.sin(rate * t)),
                    "frame": str(rng.choice(["world", "body"])),
                },
            }[load]
            position = rng.uniform(-0.05, 0.05, 3) if rng.random() < 0.5 else (0.0, 0.0, 0.0)
            robot.add_point_load(f"load on {name}", name, s=self._abscissa(), position=position, **wrench)
        for k in range(2):
            link = self.rods[k % len(self.rods)] if k else "link 4"
            robot.add_frame(f"frame {k}", link, s=self._abscissa(), placement=random_placement(rng) if k else None)

    def _actuators(self):
        rng, robot = self.rng, self.robot
        makers = [lambda k=k: self._tendon(f"tendon {k}", TENDONS[(self.seed + 2 * k) % 5]) for k in range(2)]
        makers.append(self._chamber)
        moving = [name for name, link in robot.links.items() if link.joint.nv]
        makers.append(lambda: robot.add_joint_actuator("motor", str(rng.choice(moving))))
        if self.seed % 4 == 1:
            makers.append(self._custom)
        for k in rng.permutation(len(makers)):
            makers[k]()
        if self.seed % 3 == 1:
            robot.couple_inputs("coupled", {"tendon 0": 1.0, "chamber": -0.7e-3})
        if self.seed % 6 == 4:
            robot.couple_inputs("scaled", {"tendon 1": 2.5})

    def _tendon(self, name, form):
        rng, robot = self.rng, self.robot
        rod = str(rng.choice(self.rods))
        y, z = rng.uniform(-0.03, 0.03, 2)
        a, b = sorted(np.round(rng.uniform(0.05, 0.95, 2), 3))
        b = max(b, round(a + 0.02, 3))
        if form == "whole":
            robot.add_tendon(name, rod, (y, z))
        elif form == "partial":
            robot.add_tendon(name, rod, lambda s: (y * (1 - 0.5 * s), z + 0.01 * s * s), start=a, stop=b)
        elif form == "reversed":
            robot.add_tendon(name, rod, lambda s: (y * np.cos(3 * s), y * np.sin(3 * s)), start=b, stop=a)
        elif form == "rows":
            count = 2 if rng.random() < 0.3 else 4
            rows = np.column_stack([np.linspace(0, 1, count), 0.02 * rng.uniform(-1, 1, (count, 2))])
            robot.add_tendon(name, path=[ls.PathRod(rod, rows, 0.0, b)])
        else:
            robot.add_tendon(name, path=self._path(rod, (y, z), b))

    def _path(self, rod, offset, stop):
        """From the world through a rod and rigid bodies to another rod."""
        rng = self.rng
        rigid = [link["name"] for link in self.links if isinstance(link["body"], ls.RigidBody)]
        points = [ls.PathPoint(name, rng.uniform(-0.1, 0.1, 3), self._abscissa()) for name in rigid[:2]]
        other = self.rods[(self.rods.index(rod) + 1) % len(self.rods)]
        inside = ls.PathPoint(other, (0.0, *rng.uniform(-0.05, 0.05, 2)), round(rng.uniform(0.1, 0.9), 3))
        world = ls.PathPoint(None, rng.uniform(-0.5, 0.5, 3))
        return [world, ls.PathRod(rod, offset, 0.0, stop), *points, inside]

    def _chamber(self):
        rng = self.rng
        area = [3e-4, (4e-4, 2e-4), lambda s: 3e-4 * (1 + 0.3 * s * s)][int(rng.integers(3))]
        y, z = rng.uniform(-0.02, 0.02, 2)
        self.robot.add_chamber(
            "chamber",
            str(rng.choice(self.rods)),
            offset=(y, z) if rng.random() < 0.5 else lambda s: (y + 0.01 * s, z - 0.01 * s**2),
            area=area,
            start=0.0 if rng.random() < 0.5 else 0.137,
            stop=1.0 if rng.random() < 0.5 else 0.811,
            force=("tangent", "volume")[self.seed % 2],
        )

    def _custom(self):
        size = sum(link["joint"].nv for link in self.links)
        size += sum(link["body"].basis.size for link in self.links if isinstance(link["body"], ls.Rod))
        constant = self.rng.normal(size=(size, 2))
        self.robot.add_custom_actuator("custom", lambda q: constant * (1 + np.sin(q).sum()), size=2)


def _member(rng, family, kind):
    """A random member of the class of that name, of any of its forms."""
    makers = families.makers(getattr(ls, family.__name__ + kind))
    return makers[int(rng.integers(len(makers)))](rng)


def _points(rng, basis):
    """Gauss points on each smooth stretch of a basis: a little more than its modes need."""
    stretches = len(basis.breaks()) + 1
    return -(-max(*basis.modes(), 2) // stretches) + 1 + int(rng.integers(2))


def _reference(rng):
    form = rng.integers(3)
    if form == 0:
        return None
    if form == 1:
        return (0.2, 1.0, -0.5, 1.02, 0.01, 0.0)
    return lambda s: np.array([0.3 * s, 1.5 * np.cos(2 * s), -1.0 * s**2, 1.0, 0.02 * s, 0.0])


# --- rigid robots, and the same in Pinocchio -----------------------------------------------------------------------


def seven_revolute_arm():
    """An arm of seven revolute joints with bodies of general inertia."""
    rng = np.random.default_rng(7)
    robot = ls.Robot("7R")
    for k in range(7):
        _add_rigid_link(robot, rng, k, "Revolute", None if k == 0 else f"link {k - 1}")
    return robot


def random_rigid_tree(seed, without=()):
    """Rigid bodies on joints of every kind, but for some, in a random tree."""
    rng = np.random.default_rng(500 + seed)
    robot = ls.Robot(f"rigid tree {seed}", gravity=tuple(rng.uniform(-9, 9, 3)))
    for k, kind in enumerate(rng.permutation([kind for kind in JOINTS if kind not in without])):
        parent = None if k == 0 else f"link {rng.integers(max(0, k - 3), k)}"
        _add_rigid_link(robot, rng, k, str(kind), parent)
    return robot


def _add_rigid_link(robot, rng, k, kind, parent):
    R = Rotation.random(random_state=rng).as_matrix()
    moments = np.array([2e-2, 3e-2, 4e-2]) * rng.uniform(0.5, 1.5)
    body = ls.RigidBody(rng.uniform(0.5, 2.0), rng.uniform(-0.1, 0.1, 3), R @ np.diag(moments) @ R.T)
    joint = _joint(rng, kind)
    joint = replace(joint, stiffness=0.0, damping=0.0, rest=None)
    robot.add_link(f"link {k}", body, joint, parent, placement=random_placement(rng, 0.3))


def pinocchio_model(robot):
    """A robot of rigid links as a Pinocchio model, and where our coordinates and links are there.

    Returns (model, q_index, v_index, ends): q_pin[q_index] = q, v_pin[v_index] = v, and ends[link] = (joint, placement
    of the link on it). Pinocchio puts linear velocities and positions first and the scalar of a quaternion last, and
    numbers the joints depth first.
    """
    import pinocchio as pin

    model = pin.Model()
    model.gravity = pin.Motion(np.array(robot.gravity, dtype=float), np.zeros(3))
    q_index, v_index, ends = {}, {}, {None: (0, pin.SE3.Identity())}
    for name in _depth_first(robot, None):
        link = robot.links[name]
        parent, at = ends[link.parent]
        at = at if link.placement is None else at * pin.SE3(np.asarray(link.placement))
        q_index[name], v_index[name] = [], []
        for number, (joint, q_order, v_order) in enumerate(_pinocchio_joints(pin, link.joint)):
            parent = model.addJoint(parent, joint, at, f"{name} {number}")
            at = pin.SE3.Identity()
            q_index[name] += [model.joints[parent].idx_q + k for k in q_order]
            v_index[name] += [model.joints[parent].idx_v + k for k in v_order]
        inertia = np.asarray(link.body.inertia, dtype=float)
        inertia = inertia if inertia.ndim == 2 else np.diag(inertia)
        body = pin.Inertia(float(link.body.mass), np.asarray(link.body.com, dtype=float), inertia)
        model.appendBodyToJoint(parent, body, at)
        ends[name] = parent, at
    del ends[None]
    q_index, v_index = ([k for name in robot.links for k in index[name]] for index in (q_index, v_index))
    return model, np.array(q_index), np.array(v_index), ends


def _depth_first(robot, parent):
    """Names of the links below one, each before its own children."""
    for name, link in robot.links.items():
        if link.parent == parent:
            yield name
            yield from _depth_first(robot, name)


def _pinocchio_joints(pin, joint):
    """Pinocchio's joints for one of ours: (joint, order of our q in its q, order of our v in its v)."""
    kind = type(joint).__name__.removeprefix("Joint")
    if kind == "Spherical":
        return [(pin.JointModelSpherical(), (3, 0, 1, 2), (0, 1, 2))]
    if kind == "Free":
        return [(pin.JointModelFreeFlyer(), (6, 3, 4, 5, 0, 1, 2), (3, 4, 5, 0, 1, 2))]
    if kind == "Helical":
        axis = np.asarray(joint.axis) / np.linalg.norm(joint.axis)
        return [(pin.JointModelHelicalUnaligned(axis, joint.pitch), (0,), (0,))]
    out = []
    for motion in joint.motions("joint"):
        for screw in motion.Phi.T:
            turns = bool(screw[:3].any())
            model = pin.JointModelRevoluteUnaligned if turns else pin.JointModelPrismaticUnaligned
            out.append((model(screw[:3] if turns else screw[3:]), (0,), (0,)))
    return out
