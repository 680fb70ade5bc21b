"""Deformable bodies in robot files: the same body comes back, and parts that a file cannot hold are named."""

from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from bodies.kinematics_makers import KINDS, MESH, PRIMITIVES, REDUCED, L

import lissom as ls
from lissom.io.schema import DEFORMABLE, IN_PYTHON

pytest.importorskip("jax")
LAW = ls.HyperelasticSaintVenantKirchhoff(1e5, 0.4, damping_time=0.02)
TUBE = ls.DomainAnnulus(L, 0.02, 0.01, 3, degree_along=5)
VERTICES = [[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]]
CORNER = ls.DomainTetrahedra(VERTICES, [[0, 1, 2, 3]], marks={"rim": [0, 0.1, 0]})
DOMAINS = [TUBE, CORNER, ls.DomainCone(0.2, 0.02), ls.DomainBox(0.2, 0.02, 0.03), ls.DomainCylinder(0.2, 0.02, 4)]
LAWS = [LAW, ls.HyperelasticLinear(1e5, 0.3), ls.HyperelasticCompressibleNeoHookean(1e5, 0.3),
        ls.HyperelasticNeoHookean(1e5, 0.1), ls.HyperelasticUniaxial(1e5, 0.45)]  # fmt: skip
PARTS = [PRIMITIVES[name][0] for name in ("stretch", "bending_y", "twist", "shear_z", "source")]
OTHERS = ("function", "ritz", "gaussian")  # functions, which are refused, and a bell, which becomes a table


def robot(kinematics, domain=TUBE, material=LAW, **options):
    """One body on a fixed joint; its description alone, without what checking compiles."""
    made = ls.Robot("soft")
    made.add_link("body", ls.DeformableBody(kinematics, domain, material, 1e3, **options), ls.JointFixed())
    return made


def same(a, b):
    """Whether two descriptions are equal to the last bit."""
    if is_dataclass(a):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple | np.ndarray):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def through(made, tmp_path, monkeypatch):
    """The body after saving and loading; checks, which compile, are tested elsewhere."""
    monkeypatch.setattr(ls.DeformableBody, "check", lambda *_: None)
    ls.save_robot(made, tmp_path / "robot.yaml")
    return ls.load_robot(tmp_path / "robot.yaml").links["body"].body


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in OTHERS])
def test_kinematics_come_back(kind, tmp_path, monkeypatch):
    """Every kinematics of the library is written and read as it was."""
    kinematics = KINDS[kind][0]
    if kind == "volume preserving":
        kinematics = ls.KinematicsVolumePreserving(
            L, [PRIMITIVES[name][0] for name in ("stretch", "shear_z", "source")]
        )
    made = robot(kinematics, MESH if "elements" in kind else TUBE, tip="tip")
    assert same(through(made, tmp_path, monkeypatch), made.links["body"].body)


@pytest.mark.parametrize("domain", DOMAINS)
def test_domains_tips_and_materials_come_back(domain, tmp_path, monkeypatch):
    """Domains, with tips by points and places, and materials."""
    tips = (None, "tip", ("tip", "tip_y", "tip_z"), ((0.2, 0, 0), (0.2, 0.01, 0), (0.2, 0, 0.01)), "base")
    for law, tip in zip(LAWS, tips, strict=True):
        made = robot(KINDS["planar"][0], domain, law, tip=tip)
        assert same(through(made, tmp_path, monkeypatch), made.links["body"].body)


def kinds(item):
    """The classes that a description is made of."""
    if is_dataclass(item):
        return {type(item)}.union(*(kinds(getattr(item, f.name)) for f in fields(item)))
    return set().union(*map(kinds, item)) if isinstance(item, list | tuple) else set()


def test_the_sweeps_hold_every_class():
    """A class added to those of deformable bodies must be added to these sweeps."""
    kinematics = [KINDS[kind][0] for kind in KINDS if kind not in OTHERS]
    swept = kinds([kinematics, PARTS, DOMAINS, LAWS, robot(kinematics[0]).links["body"].body])
    assert swept & DEFORMABLE == DEFORMABLE - IN_PYTHON


def test_finite_elements_share_their_mesh(tmp_path, monkeypatch):
    """The mesh of finite elements is written once, and is the domain of the body that comes back."""
    body = through(robot(REDUCED, MESH), tmp_path, monkeypatch)
    assert body.domain is body.kinematics.whole.mesh
    assert (tmp_path / "robot.yaml").read_text(encoding="utf-8").count("vertices:") == 1


@pytest.mark.parametrize(("made", "text"), [
    (robot(KINDS["function"][0]), "link 'body' > body: kinematics: a Python function"),
    (robot(KINDS["ritz"][0]), "give it as one of the library's classes"),
    (robot(ls.KinematicsVolumePreserving(L, [PRIMITIVES["bending_z"][0]])), "modes: a Python function made of jax"),
    (robot(KINDS["planar"][0], material=ls.HyperelasticFunction(lambda F: (F * F).sum())), "material: a Python fun"),
    (robot(KINDS["planar"][0], tip=lambda q: q), "body: tip: a Python function"),
])  # fmt: skip
def test_functions_are_refused(made, text, tmp_path, monkeypatch):
    """A function is named with its body and the remedy, and no file is left."""
    monkeypatch.setattr(ls.DeformableBody, "check", lambda *_: None)
    with pytest.raises(ls.ModelError, match=text):
        ls.save_robot(made, tmp_path / "robot.yaml")
    assert not list(tmp_path.iterdir())


FILE = """links:
  - name: finger
    body:
      type: DeformableBody
      kinematics: {type: KinematicsStrain, length: 0.1, basis: {type: BasisMonomial, bending_z: 0}}
      domain: {type: DomainTetrahedra, file: finger.vtk, scale: 0.001, degree: 1}
      material: {type: HyperelasticLinear, young: 1e5, poisson: 0.3}
      density: 1000
"""


def test_mesh_files(tmp_path, monkeypatch):
    """A mesh file is looked for beside the robot file, its unit applied; a missing one raises an error."""
    import meshio

    monkeypatch.setattr(ls.DeformableBody, "check", lambda *_: None)
    path = tmp_path / "robot.yaml"
    path.write_text(FILE, encoding="utf-8")
    with pytest.raises(ls.ModelError, match=r"line \d+: link 'finger'.*finger\.vtk.*cannot be read"):
        ls.load_robot(path)
    points = 1e3 * np.asarray(CORNER.vertices)
    meshio.write(tmp_path / "finger.vtk", meshio.Mesh(points, [("tetra", np.asarray(CORNER.cells))]))
    domain = ls.load_robot(path).links["finger"].body.domain
    np.testing.assert_allclose(domain.vertices, CORNER.vertices, rtol=1e-15)
    assert domain.degree == 1 and domain.volume == pytest.approx(1e-3 / 6)


def pressed():
    """A body with a tendon along its material, a chamber and a pressure."""
    made = robot(KINDS["spatial"][0], tip="tip")
    path = [ls.PathBody("body", [[0.0, 0.015, 0.0], [L, 0.015, 0.0]]), ls.PathPoint(None, (0.1, 0.2, 0.3))]
    made.add_tendon("t", path=path)
    made.add_tendon("eyelets", path=[ls.PathBody("body", [[0.0, 0.0, 0.015], [L, 0.0, 0.015]], gauss_points=None)])
    made.add_body_chamber("c", "body", surface=ls.cylinder_surface(0.05, 0.15, 0.005, around=6, along=3))
    made.add_surface_pressure("p", "body", (VERTICES, [[1, 2, 3]]))
    return made


def test_what_drives_bodies_comes_back(tmp_path, monkeypatch):
    """Paths along material, chambers and pressures, in their order."""
    monkeypatch.setattr(ls.DeformableBody, "check", lambda *_: None)
    made = pressed()
    ls.save_robot(made, tmp_path / "robot.yaml")
    found = ls.load_robot(tmp_path / "robot.yaml")
    assert list(found.actuators) == ["t", "eyelets", "c", "p"]
    for name, actuator in made.actuators.items():
        if name in ("t", "eyelets"):
            assert same(found.actuators[name], actuator)
        else:
            assert type(found.actuators[name]) is type(actuator)
            for one, other in zip(found.actuators[name].surface, actuator.surface):
                np.testing.assert_array_equal(one, other)


def test_functions_that_drive_bodies_are_refused(tmp_path, monkeypatch):
    """By actuator and field; a file holds points and surfaces."""
    monkeypatch.setattr(ls.DeformableBody, "check", lambda *_: None)
    point = ls.PathBody("body", lambda s: (s * L, 0.01, 0.0))
    for add, field in (
        (lambda r: r.add_body_chamber("x", "body", volume=lambda q: q.sum()), "surface"),
        (lambda r: r.add_surface_pressure("x", "body", lambda x: x[0] > 0), "surface"),
        (lambda r: r.add_tendon("x", path=[point]), "points"),
    ):
        words = f"actuator 'x'.*: {field}: a Python function"
        made = robot(KINDS["spatial"][0])
        add(made)
        with pytest.raises(ls.ModelError, match=words):
            ls.save_robot(made, tmp_path / "robot.yaml")
