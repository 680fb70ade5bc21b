"""Pictures: they show the computed numbers, and nothing outside the figure changes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from viewing.facets import body_facets, facet_normals, tendon_lines

import lissom as ls
from lissom.viewing import canvas, plots
from lissom.viewing.geometry import AROUND, STATIONS
from lissom.viewing.picture import Picture
from lissom.viewing.render import Scene

PNG = b"\x89PNG\r\n\x1a\n"
EXAMPLES = Path(__file__).parents[2] / "examples" / "robots"


@pytest.fixture(scope="module")
def hybrid():
    """Description and model of a robot with every kind of body."""
    robot = ls.load_robot(EXAMPLES / "hybrid_arm.yaml")
    return robot, robot.build()


@pytest.fixture(scope="module")
def arm():
    """Description and model of one rod with two tendons, a motor and a chamber."""
    robot = ls.Robot("arm")
    basis = ls.BasisLegendre(bending_y=1, bending_z=0)
    rod = ls.Rod(0.3, ls.SectionCircle((0.02, 0.01)), basis, ls.Material(young=1e6, density=1000, viscosity=2e3))
    robot.add_link("arm", rod, ls.JointRevolute(axis=(0, 1, 0), stiffness=1.0, damping=0.1))
    robot.add_tendon("up", "arm", (0.0, 0.008))
    robot.add_joint_actuator("motor", "arm")
    robot.add_chamber("bladder", "arm", area=1e-5)
    return robot, robot.build()


@pytest.fixture(scope="module")
def motion(arm):
    """A short motion of the arm."""
    return ls.simulate(arm[1], 0.1, u=lambda t: np.array([5 * t, 0.1, 1e3 * t]), t_eval=np.linspace(0, 0.1, 21))


def states(model, count=3):
    """Random configurations near the neutral one."""
    rng = np.random.default_rng(5)
    return ls.integrate(model, model.neutral(), 0.3 * rng.normal(size=(count, model.nv)))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Pictures of robots have few pixels, to save time."""
    monkeypatch.setattr(plots, "_PICTURE_DPI", 40)


def scene(model, rows, **options):
    """The scene of a picture of configurations (n, nq)."""
    given = {"curves": [], "links": None, "paint": None, "values": None, "view": None, "obstacles": True, "size": 300}
    return Scene(model, rows, **(given | options))


# -- the drawing -----------------------------------------------------------------------------------------------------


def test_rod_facets_lie_on_the_section_outline_at_frame_pose(arm):
    """Purpose: every corner of the tube is the outline of its section carried by frame_pose, at every station."""
    model = arm[1]
    q = states(model)
    facets = body_facets(model, q, "arm")
    s = np.linspace(0.0, 1.0, STATIONS)
    g = ls.frame_pose(model, q, "arm", s=s)
    sides = (STATIONS - 1) * AROUND
    corners = facets[:, :sides].reshape(3, STATIONS - 1, AROUND, 4, 3)[:, :, :, 0]
    local = np.einsum("nsji,nskj->nski", g[:, :-1, :3, :3], corners - g[:, :-1, None, :3, 3])
    assert np.abs(local[..., 0]).max() < 1e-14
    radii = (0.02 - 0.01 * s[:-1])[None, :, None]
    np.testing.assert_allclose(np.linalg.norm(local[..., 1:], axis=-1), radii + 0 * local[..., 0], rtol=1e-12)


@pytest.mark.graphics
def test_the_axes_show_the_picture_of_render(arm):
    """Purpose: the figure holds the picture of `render` with its shape undistorted, and the name of the robot."""
    model = arm[1]
    q = states(model)
    axes = ls.plot_shapes(model, q, values=[0.0, 1.0, 2.0], value_label="time [s]").axes[0]
    (image,) = axes.images
    expected = ls.render(model, q, values=[0.0, 1.0, 2.0], value_label="time [s]", view=(20.0, -60.0), size=280)
    np.testing.assert_array_equal(image.get_array(), expected)
    assert axes.get_title() == "arm" and axes.get_aspect() == 1.0
    extent = axes.get_window_extent()
    assert extent.height / extent.width == pytest.approx(expected.shape[0] / expected.shape[1])


@pytest.mark.parametrize("name", ["base", "gripper", "shoulder"])
def test_rigid_bodies_are_drawn_where_they_are(hybrid, name):
    """Purpose: facets of a rigid body fill its outline about its centre of mass, in its frame."""
    model = hybrid[1]
    q = states(model)
    body = model.links.body[model.links.names.index(name)]
    g = ls.frame_pose(model, q, name)
    corners = body_facets(model, q, name).reshape(3, -1, 3)
    local = np.einsum("nji,nkj->nki", g[:, :3, :3], corners - g[:, None, :3, 3]) - body.com
    np.testing.assert_allclose(local.max(axis=(0, 1)), body.outline, rtol=1e-9)
    np.testing.assert_allclose(local.min(axis=(0, 1)), -np.array(body.outline), rtol=1e-9)


@pytest.mark.parametrize(
    ("body", "corners"),
    [
        (ls.RigidBody.box(0.2, 0.1, 0.05, density=1.0), 24),
        (ls.RigidBody.sphere(0.1, density=1.0), None),
        (ls.RigidBody.cylinder(0.2, 0.05, density=1.0), None),
        (ls.RigidBody(1.0, inertia=(1.0, 1.0, 1.0)), 24),
    ],
)
def test_facets_of_rigid_bodies_face_outwards(body, corners):
    """Purpose: shading depends on normals that point away from the body's centre, whichever solid is drawn."""
    robot = ls.Robot("one")
    robot.add_link("body", body, ls.JointRevolute())
    model = robot.build()
    facets = body_facets(model, model.neutral()[None], "body")[0]
    outwards = np.einsum("mi,mi->m", facet_normals(facets), facets.mean(axis=1))
    assert outwards.min() >= 0.0 and outwards.max() > 0.0
    if corners is not None:
        assert facets.reshape(-1, 3).shape == (corners, 3)


def test_facets_of_rods_face_outwards(arm):
    """Purpose: the same for a tube and its two ends."""
    model = arm[1]
    facets = body_facets(model, model.neutral()[None], "arm")[0]
    centre = np.array([0.15, 0.0, 0.0])
    assert np.einsum("mi,mi->m", facet_normals(facets), facets.mean(axis=1) - centre).min() > 0.0


def test_tendon_lines_have_the_length_of_the_tendons(hybrid):
    """Purpose: the lines drawn for tendons follow the paths that the mechanics pulls, through rods and rigid links."""
    model = hybrid[1]
    q = states(model)
    lines = tendon_lines(model, q)
    drawn = [np.linalg.norm(np.diff(line, axis=1), axis=-1).sum(axis=1) for line in lines.values()]
    assert list(lines) == ["flexor", "finger_left", "finger_right"]
    np.testing.assert_allclose(np.stack(drawn, axis=-1), ls.path_lengths(model, q), rtol=2e-4)


def test_pictures_name_tendons(hybrid):
    """Purpose: each tendon has a colour of its own under its name."""
    model = hybrid[1]
    assert list(scene(model, states(model)).paint.tendons) == ["flexor", "finger_left", "finger_right"]


def test_links_are_left_out(hybrid):
    """Purpose: only the links that are wanted are drawn."""
    model = hybrid[1]
    drawn = scene(model, states(model), links=["arm", "finger"]).paint
    assert [mesh.name for mesh in drawn.meshes] == ["arm", "finger"]
    assert list(drawn.tendons) == ["finger_left", "finger_right"]


@pytest.mark.graphics
def test_trail_and_title(hybrid):
    """Purpose: a trail is drawn, and the title stands above the axes."""
    model = hybrid[1]
    q = states(model)
    path = ls.frame_pose(model, q, "fingertip")[:, :3, 3]
    (plain,), (drawn,), (named,) = (ls.plot_shapes(model, q, trail=trail, title="bent").axes
                                    for trail in (None, path, "fingertip"))  # fmt: skip
    pictures = [axes.images[0].get_array() for axes in (plain, drawn, named)]
    assert pictures[0].shape != pictures[1].shape or (pictures[0] != pictures[1]).any()
    np.testing.assert_array_equal(pictures[1], pictures[2])
    assert drawn.get_title() == "bent"


def test_a_robot_far_from_the_origin_fills_its_picture():
    """Purpose: a free body that has drifted away is not lost between itself and the origin."""
    robot = ls.Robot("far")
    robot.add_link("body", ls.RigidBody.box(0.2, 0.1, 0.1, density=1.0), ls.JointFree())
    model = robot.build()
    q = model.neutral()
    q[4:] = 1e3
    assert scene(model, q[None]).camera.height < 1.0


# -- trajectories -----------------------------------------------------------------------------------------------------


def test_plot_trajectory_holds_the_tip_and_the_inputs(arm, motion):
    """Purpose: the curves are frame_pose and u against t, in panels with units, under one time axis."""
    model = arm[1]
    figure = ls.plot_trajectory(model, motion)
    tip = ls.frame_pose(model, motion.q, "arm")[:, :3, 3]
    of_tip = [line for panel in figure.axes if panel.get_ylabel() == "tip of arm [m]" for line in panel.lines]
    assert sorted(line.get_label() for line in of_tip) == ["x", "y", "z"]
    for line in of_tip:
        np.testing.assert_array_equal(np.array(line.get_data()), [motion.t, tip[:, "xyz".index(line.get_label())]])
    (motor,) = (text.get_text() for text in figure.texts)
    assert motor == "constant: torque motor = 0.1 N·m"
    for label, k in (("tension [N]", 0), ("pressure [Pa]", 2)):
        (panel,) = (panel for panel in figure.axes if panel.get_ylabel() == label)
        np.testing.assert_array_equal(panel.lines[0].get_ydata(), motion.u[:, k])
        assert panel.texts[0].get_text() == model.inputs.names[k]
    assert figure.axes[-1].get_xlabel() == "time [s]"
    assert all(panel.get_xlim() == figure.axes[0].get_xlim() for panel in figure.axes)


def test_no_curve_looks_flat_beside_others():
    """Purpose: ±20 mm beside 450 mm have axes of their own, as each curve whose panel has more than ten times its span;
    constants among the others stay, and one far away is told with its unit."""
    t = np.linspace(0.0, 1.0, 101)[:, None]
    series = 0.02 * np.sin(6.0 * t) * [1, 0, 0, 0.4] + 0.45 * (t + 1.0) * [0, 0, 1, 0] + [0.0, 0.0, 0.0, 0.01]
    panels, still = plots._split_by_scale([plots.Panel("tip [m]", series, list("xyzw"))])
    assert [panel.names for panel in panels] == [["z"], ["x", "y", "w"]] and not still
    assert [panel.looks for panel in panels] == [[2], [0, 1, 3]]
    for panel in panels:
        spans = np.ptp(panel.series, axis=0)
        assert (np.ptp(panel.series) <= 10.0 * spans[spans > 0.0]).all()
    series[:, 1] = 7.0
    panels, still = plots._split_by_scale([plots.Panel("tip of arm [m]", series, list("xyzw"))])
    assert still == ["tip of arm y = 7 m"] and {*"wxz"} == {name for panel in panels for name in panel.names}


def test_a_robot_at_rest_still_has_a_graph():
    """Purpose: without any motion the positions are drawn, all in one panel."""
    panels, still = plots._split_by_scale([plots.Panel("tip [m]", np.tile([0.0, 1.0, 5.0], (4, 1)), list("xyz"))])
    assert [panel.names for panel in panels] == [["x", "y", "z"]] and not still


def test_notebooks_show_figures_pictures_and_results(arm, motion):
    """Purpose: a notebook, which asks objects for PNG or HTML, gets a picture of a figure and of an array that `render`
    returns, and a table of a result; parts of pictures are plain numbers."""
    figure = ls.plot_trajectory(arm[1], motion)
    assert figure._repr_png_()[:8] == PNG and pickle.loads(pickle.dumps(figure))._repr_png_()[:8] == PNG
    picture = np.zeros((4, 5, 3), dtype=np.uint8).view(Picture)
    assert picture._repr_png_()[:8] == PNG and picture[0]._repr_png_() is None
    assert type(picture + 0.5) is np.ndarray and type(picture.mean()) is np.float64
    table = ls.modes(arm[1], arm[1].neutral())._repr_html_()
    assert "<table>" in table and "frequencies" in table and "(4,)" in table


@pytest.mark.graphics
def test_render_returns_what_notebooks_show(arm):
    """Purpose: the picture itself is such an array."""
    assert ls.render(arm[1], arm[1].neutral(), size=100)._repr_png_()[:8] == PNG


def test_plot_trajectory_draws_what_a_section_and_a_joint_carry(arm, motion):
    """Purpose: moments and forces of the section and of the joint, in panels that say where and in which unit."""
    model = arm[1]
    figure = ls.plot_trajectory(model, motion, internal=("arm", 0.25), joint="arm")
    rows = model, motion.q, motion.v, motion.a, motion.u
    inside = ls.internal_wrench(*rows, "arm", 0.25, t=motion.t).total
    expected = np.hstack([inside, ls.joint_wrench(*rows, "arm", t=motion.t)])
    names = [["torsion", "bending y", "bending z"], ["tension", "shear y", "shear z"], list("xyz"), list("xyz")]
    places = [
        f"{place}\n{kind}" for place in ("arm at s = 0.25", "joint of arm") for kind in ("moment [N·m]", "force [N]")
    ]
    for k, (label, own) in enumerate(zip(places, names)):
        found = {line.get_label(): line for axes in figure.axes if axes.get_ylabel() == label for line in axes.lines}
        assert found and set(found) <= set(own)
        for name, line in found.items():
            column = expected[:, 3 * k + own.index(name)]
            np.testing.assert_allclose(line.get_ydata(), column, rtol=0, atol=1e-12)


def test_plot_trajectory_draws_the_coordinates_of_links():
    """Purpose: each coordinate of the chosen links is drawn or told once, by unit, with its strain and order."""
    robot = ls.Robot()
    robot.add_link("base", ls.RigidBody(1.0, inertia=(0.1, 0.1, 0.1)), ls.JointFree())
    basis = ls.BasisLegendre(bending_y=2, elongation=1)
    rod = ls.Rod(0.3, ls.SectionCircle(0.01), basis, ls.Material(young=1e6, poisson=0.4, density=1e3))
    robot.add_link("arm", rod, ls.JointRevolute((0.0, 1.0, 0.0)), parent="base")
    robot.add_link("slide", ls.RigidBody(0.1), ls.JointPrismatic((1.0, 0.0, 0.0)), parent="base")
    model = robot.build()
    motion = ls.simulate(model, 0.02, dt=2e-3)

    def drawn(**which):
        """Label, names and curves of all panels of coordinates."""
        figure = ls.plot_trajectory(model, motion, **which)
        panels = [axes for axes in figure.axes if not axes.get_ylabel().startswith("slide [m]")]
        told.append("".join(text.get_text() for text in figure.texts))
        return [
            (x.get_ylabel(), [text.get_text() for text in x.texts], [c.get_ydata() for c in x.lines]) for x in panels
        ]

    told: list[str] = []
    found = drawn(coordinates="all")
    labels = {label for label, _, _ in found}
    assert labels == {"quaternion [-]", "position [m]", "angle [rad]", "arm\ncurvature [rad/m]", "arm\nstrain [-]"}
    names = {name for _, own, _ in found for name in own}
    assert {"base z", "arm", "slide", "bending y 0", "bending y 1", "bending y 2", "elongation 0"} <= names
    assert told == ["constant: quaternion base w = 1"]
    curves = np.array([curve for _, _, own in found for curve in own])
    assert len(curves) == model.nq - 1
    columns = {tuple(column) for column in motion.q.T if column[0] != 1.0}
    assert {tuple(curve) for curve in curves} == columns
    angle = drawn(coordinates=["slide"])
    assert [label for label, _, _ in angle] == ["position [m]"]
    np.testing.assert_array_equal(angle[0][2][0], motion.q[:, model.links.q_start[2]])
    with pytest.raises(ls.ModelError, match="coordinates: must be names of links"):
        drawn(coordinates=["leg"])


def test_names_stand_beside_the_ends_of_their_curves(arm, motion):
    """Purpose: each name has its curve's colour and is at its height, and no two names meet."""
    axes = ls.plot_trajectory(arm[1], motion).axes[0]
    low, high = axes.get_ylim()
    ends = [(line.get_ydata()[-1] - low) / (high - low) for line in axes.lines]
    places = [text.get_position()[1] for text in axes.texts]
    assert [text.get_color() for text in axes.texts] == [line.get_color() for line in axes.lines]
    assert np.abs(np.subtract(places, ends)).max() < 0.1 and np.argsort(places).tolist() == np.argsort(ends).tolist()
    found = plots.spread(np.array([0.1, 0.5, 0.5, 0.51, 0.99, 1.0]), 0.1)
    assert (np.diff(found) > 0.1 - 1e-12).all() and found[0] == 0.1 and found[-1] <= 1.0
    np.testing.assert_allclose(found[1:4], 0.5033333333 + 0.1 * np.arange(-1, 2))  # moved by the same on either side


def test_curves_of_other_scales_and_sampled_inputs():
    """Purpose: a tension a hundred times smaller has axes of its own; one that was held is drawn as steps, and one that
    varies or begins late is not; one that stands still is told below."""
    robot = ls.Robot("arm")
    rod = ls.Rod(0.3, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=0), ls.Material(young=1e7, density=1000))
    robot.add_link("arm", rod)
    for name in ("strong", "weak", "held", "still", "late"):
        robot.add_tendon(name, "arm", (0.0, 0.01))
    model, t = robot.build(), np.linspace(0.0, 0.02, 41)
    motion = ls.simulate(
        model,
        0.02,
        u=lambda t: np.array([500 * t, t, 10.0 if t < 0.01 else 4.0, 2.0, 1e3 * max(t - 0.015, 0.0)]),
        t_eval=t,
    )
    figure = ls.plot_trajectory(model, motion)
    panels = [axes for axes in figure.axes if axes.get_ylabel() == "tension [N]"]
    assert [[line.get_label() for line in axes.lines] for axes in panels] == [["strong", "held", "late"], ["weak"]]
    assert [line.get_drawstyle() for line in panels[0].lines] == ["default", "steps-post", "default"]
    np.testing.assert_array_equal(panels[1].lines[0].get_ydata(), motion.u[:, 1])
    assert [text.get_text() for text in figure.texts] == ["constant: tension still = 2 N"]


def test_plot_trajectory_without_inputs_has_one_panel():
    """Purpose: a robot without actuators is plotted, too; a named frame may be followed."""
    robot = ls.Robot("pendulum")
    robot.add_link("bob", ls.RigidBody.sphere(0.05, density=1e3), ls.JointRevolute(axis=(0, 1, 0)))
    robot.add_frame("edge", "bob", placement=None)
    model = robot.build()
    motion = ls.simulate(model, 0.05, v0=np.ones(1), t_eval=[0.0, 0.05])
    assert [panel.get_ylabel() for panel in ls.plot_trajectory(model, motion, link="edge").axes] == ["edge [m]"]


# -- files, settings, errors ------------------------------------------------------------------------------------------


@pytest.mark.graphics
@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_files_are_written(tmp_path, arm, motion, ending):
    """Purpose: the ending of the path chooses the format."""
    model = arm[1]
    ls.plot_shapes(model, motion.q[::5], path=tmp_path / f"shapes.{ending}")
    ls.plot_trajectory(model, motion, path=tmp_path / f"trajectory.{ending}")
    assert all((tmp_path / f"{name}.{ending}").stat().st_size > 5000 for name in ("shapes", "trajectory"))


def test_nothing_global_changes(arm, motion):
    """Purpose: no backend, setting or open figure of matplotlib is touched."""
    from matplotlib import pyplot

    model = arm[1]
    before = dict(matplotlib.rcParams), matplotlib.get_backend(), pyplot.get_fignums()
    ls.plot_shapes(model, motion.q[::5])
    ls.plot_trajectory(model, motion)
    assert before == (dict(matplotlib.rcParams), matplotlib.get_backend(), pyplot.get_fignums())


def test_importing_lissom_does_not_import_matplotlib():
    """Purpose: plots are an optional part; what does not draw does not load it."""
    code = "import sys, lissom; lissom.plot_shapes, lissom.plot_trajectory; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ, check=False).returncode == 0


@pytest.mark.graphics
def test_axes_of_ones_own(arm):
    """Purpose: a picture may be one panel of a user's figure, and has as many pixels as that."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4))
    axes = figure.add_subplot(1, 2, 1)
    out = ls.plot_shapes(arm[1], states(arm[1]), axes=axes, values=[0, 1, 2], title="left")
    assert out is figure and axes.get_title() == "left"
    high, wide, _ = axes.images[0].get_array().shape
    assert abs(wide - 40 * 8 * axes.get_position(original=True).width) <= 1
    assert abs(high - 40 * 4 * axes.get_position(original=True).height) <= 1
    with pytest.raises(ls.ModelError, match="axes: must be axes without projection"):
        ls.plot_shapes(arm[1], states(arm[1]), axes=figure.add_subplot(1, 2, 2, projection="3d"))


def test_without_opengl_the_figure_says_so(arm, monkeypatch, tmp_path):
    """Purpose: the rest of a figure is made and written on a machine without graphics."""

    def refused():
        raise ls.ModelError("pictures need OpenGL")

    monkeypatch.setattr(canvas, "check_graphics", refused)
    figure = ls.plot_shapes(arm[1], states(arm[1]), path=tmp_path / "shapes.png")
    assert [text.get_text() for text in figure.axes[0].texts] == ["not drawn: pictures need OpenGL"]
    assert not figure.axes[0].images and (tmp_path / "shapes.png").exists()


def test_wrong_arguments_are_named(arm, motion):
    """Purpose: each argument that is wrong is named with the expected value."""
    model = arm[1]
    with pytest.raises(ls.ShapeError, match="q: expected"):
        ls.plot_shapes(model, np.zeros(model.nq + 1))
    with pytest.raises(ls.ShapeError, match="q: expected"):
        ls.plot_shapes(model, np.zeros((2, 2, model.nq)))
    with pytest.raises(ls.ModelError, match="links: must be among the links"):
        ls.plot_shapes(model, model.neutral(), links=["leg"])
    with pytest.raises(ls.ShapeError, match="values: expected finite numbers of shape"):
        ls.plot_shapes(model, states(model), values=[1.0])
    with pytest.raises(ls.ShapeError, match="trail: expected shape"):
        ls.plot_shapes(model, states(model), trail=np.zeros((4, 2)))
    batch = ls.simulate(model, 0.01, q0=states(model), t_eval=[0.0, 0.01])
    with pytest.raises(ls.ShapeError, match="a plot shows one motion"):
        ls.plot_trajectory(model, batch)
    with pytest.raises(ls.ModelError, match="link or frame"):
        ls.plot_trajectory(model, motion, link="leg")
    for internal in ("arm", ("arm", [0.0, 1.0])):
        with pytest.raises(ls.ModelError, match=r"internal: must be \(link, s\)"):
            ls.plot_trajectory(model, motion, internal=internal)
    with pytest.raises(ls.ModelError, match="link: must be one of"):
        ls.plot_trajectory(model, motion, joint="leg")
