"""Web pages of robots: the page simulates as the library does, its picture is where the library draws, and its sliders
act."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from exporting.built import finger
from viewing.browser import Browser
from viewing.browser import found as found_browser

import lissom as ls
from lissom.exporting.building import find_web_compiler
from lissom.exporting.web import scene_of
from lissom.viewing.geometry import robot_geometry


def _bent(x):
    """Bending and stretching."""
    return jnp.stack([jnp.array([-2.0 * x[0] * x[1], x[0] ** 2, 0.0]), jnp.array([x[0], 0.0, 0.0])], axis=1)


def _preserving():
    """Stretching that keeps the volume, whose positions are no linear function of its coordinates."""
    return ls.KinematicsVolumePreserving(0.2, [ls.PrimitiveStretch([[0.0, 0.0, 1.0]])])


def _has_compiler():
    try:
        return bool(find_web_compiler("test"))
    except ls.ModelError:
        return False


@pytest.fixture(scope="module")
def model():
    """A finger over a plane that it does not touch."""
    robot = finger()
    robot.add_contact("ground", "palm", ls.ShapePlane(), stiffness=100.0)
    return robot.build()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of the finger in a browser."""
    if not _has_compiler():
        pytest.skip("no clang++ with the C library of WebAssembly")
    if found_browser() is None:
        pytest.skip("no browser")
    path = tmp_path_factory.mktemp("page") / "finger.html"
    assert ls.export_web(finger().build(), path, dt=1e-3) == path
    browser = Browser(tmp_path_factory.mktemp("browser"), size=(900, 600))
    browser.open(f"{path.as_uri()}#t=0.005")
    browser.until(
        lambda: browser.run("window.robot && robot.speed === 1 && place.some((x) => x !== 0)"), "the page runs"
    )
    yield browser
    assert not browser.said and browser.run("document.getElementById('wrong').textContent") == ""
    browser.close()


def test_the_page_takes_the_steps_of_a_stepper(page):
    """The part #t=0.005 of the address takes five steps and pauses; further steps under inputs give the states of
    `Stepper`, but for the products that WebAssembly rounds on their own."""
    stepper = ls.Stepper(finger().build(), 1e-3)
    stepper.step(steps=5)
    assert page.run("robot.t") == pytest.approx(0.005) and not page.run("robot.isRunning")
    assert np.allclose(page.run("robot.q"), stepper.state.q, rtol=1e-9, atol=1e-12)
    u = [1.0, 0.0, 0.01]
    stepper.step(np.array(u), steps=40)
    assert page.run(f"robot.u = {u}; robot.step(40)")
    assert np.allclose(page.run("robot.q"), stepper.state.q, rtol=1e-8, atol=1e-11)
    assert np.allclose(page.run("robot.v"), stepper.state.v, rtol=1e-8, atol=1e-9)


def test_the_picture_is_where_the_library_draws(page):
    """All points of surfaces and tendons of the page are those of the library, between nodes of a rod that is
    bent far to two thousandths of the finger; the picture has the colours of both bodies."""
    page.run("robot.u = [8, 0, 0.02]; robot.step(200); locate(); draw()")
    geometry = robot_geometry(finger().build())
    q = np.array(page.run("robot.q"))
    assert np.abs(q).max() > 0.1
    there = np.reshape(page.run("Array.from(place)"), (-1, 3))
    wanted = geometry.points(q)
    assert np.abs(there - wanted).max() < 2e-3 * np.ptp(wanted, axis=0).max()
    picture = page.picture()[:, 300:]
    red, _, blue = np.moveaxis(picture, -1, 0)
    assert (red - blue > 60).sum() > 300  # the rod
    grey = (np.ptp(picture, axis=-1) < 25) & (picture.max(axis=-1) < 200)
    assert grey.sum() > 300


def test_sliders_buttons_and_errors_act(page):
    """A slider sets its input, which moves the running robot; the buttons stop it and put it back; a step that is not
    found is told, and the page pauses."""
    page.click_text("Restart", "button")
    page.run("(() => { const s = document.querySelectorAll('#inputs input')[0]; s.value = s.max;"
             " s.dispatchEvent(new Event('input')); })()")  # fmt: skip
    assert page.run("robot.u[0] > 0 && robot.u[0] == document.querySelectorAll('#inputs input')[0].max")
    page.until(lambda: page.run("robot.t > 0.02 && Math.abs(robot.q[2]) > 1e-3"), "the tendon bends the finger")
    page.click_text("Pause", "button")
    t = page.run("robot.t")
    page.click_text("Inputs to zero", "button")
    assert page.run("robot.u.every((x) => x === 0)") and page.run("robot.t") == t
    assert page.run("robot.u = [1e9, 0, 0]; robot.step(100)") is False
    assert "Newton" in page.run("document.getElementById('wrong').textContent")
    page.run("robot.u = [0, 0, 0]")
    page.click_text("Restart", "button")
    assert page.run("robot.isRunning")


def test_surfaces_that_bend_and_shapes_of_contacts_are_in_the_scene(model):
    """Contact shapes follow the bodies; bodies that deform linearly have shapes, others are named and left out."""
    scene = scene_of(model, 1e-3)
    assert [one["color"][0] for one in scene["colors"]][-1] == pytest.approx(196 / 255, abs=1e-3)
    assert [one["name"] for one in scene["inputs"]] == list(model.inputs.names)
    assert all(one["low"] <= 0.0 < one["high"] for one in scene["inputs"])
    for kinematics, is_linear in ((ls.KinematicsRitz(_bent, 2), True), (_preserving(), False)):
        robot, law = ls.Robot("pad"), ls.HyperelasticLinear(young=1e4, poisson=0.3)
        robot.add_link("soft", ls.DeformableBody(kinematics, ls.DomainBox(0.2, 0.02, 0.02, degree=4), law, 1e3))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = scene_of(robot.build(), 1e-3)
        assert [one["n"] for one in found["moving"]] == ([2] if is_linear else [])
        assert len(found["colors"]) == int(is_linear)
        assert is_linear == (not any("soft" in str(one.message) for one in told))


def test_a_page_needs_its_compiler(monkeypatch, tmp_path):
    """Without a compiler for WebAssembly the error names the packages, and nothing is written."""
    monkeypatch.setenv("WASM_CXX", "no-such-compiler")
    with pytest.raises(ls.ModelError, match=r"export_web: needs clang\+\+ .*wasi-libc.*WASM_CXX"):
        ls.export_web(finger().build(), tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()
    with pytest.raises(ls.ModelError, match="dt: must be > 0"):
        ls.export_web(finger().build(), tmp_path / "x.html", dt=0.0)
