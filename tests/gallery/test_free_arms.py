"""The arms in free evolution of Pustina 2025, simulations 5 to 8: where they come to rest, and that statics says so."""

import numpy as np
import pytest
from gallery.examples import example

import lissom as ls

pytest.importorskip("jax")
ENDS = "base", "tip"


@pytest.fixture(scope="module")
def study():
    """The example as a module."""
    return example("free_arms")


@pytest.fixture(scope="module")
def rested(study):
    """Numbers of the arms made of rods, at the end of their motions."""
    found = {}
    for name in study.ARMS:
        model = study.build(name, native=True)
        found[name] = study.study(name, study.let_go(name, model), model)
    return found


def check_rests(found):
    """The lying arms hang from where they were let go at the end of ten seconds, where statics has them, with little
    force left; constant curvature and constant strains agree, affine curvature turns as far to the tip of each body."""
    for name in ("PCC", "PAC", "PCS"):
        assert found[name]["stable"]
        assert found[name]["end from equilibrium [m]"] < 0.02
        assert found[name]["largest force left at the end"] < 0.02
        assert -0.6 < found[name]["height of the tip at rest [m]"] < -0.5
    constant, affine, strains = (found[name] for name in ("PCC", "PAC", "PCS"))
    for key in ("curvature of the first at its tip [rad]", "curvature of the second at its tip [rad]"):
        assert constant[key] == pytest.approx(strains[key], abs=2e-3)
    key = "elongation of the first [m]"
    assert constant[key] == pytest.approx(strains[key], rel=1e-2)
    assert abs(affine["curvature of the second at its tip [rad]"]) < 0.05, "nothing bends the free end"
    turns = [
        sum(row[f"curvature of the {side} at its {place} [rad]"] / 2 for side in ("first", "second") for place in ENDS)
        for row in (constant, affine, strains)
    ]
    np.testing.assert_allclose(turns, -np.pi / 2, atol=0.05)


def test_where_they_rest(rested):
    """Purpose: statements of the paper on its simulations 6 to 8, and the statics of each, with native rods."""
    check_rests(rested)


def test_the_upright_arm_falls(study, rested):
    """Purpose: upright it is in unstable equilibrium, and stable with the printed GPa; it comes to hang, and its
    curvatures are at rest after the paper's five seconds, to a tenth of their first values."""
    model = study.build("PGC", native=True)
    upright = ls.solve_statics(model, stable=False)
    assert ls.frame_pose(model, upright.q, "second")[2, 3] == pytest.approx(0.4, abs=0.01)
    assert not upright.is_stable
    assert rested["PGC"]["stable"]
    assert rested["PGC"]["height of the tip at rest [m]"] < -0.2
    motion = study.let_go("PGC", model)
    bends = np.array([study.curvatures("PGC", q)[:, 1] for q in motion.q])
    early, late = (np.abs(bends[some] - bends[-1]).max() for some in (motion.t < 1.0, motion.t > 5.0))
    assert late < 0.1 * early
    low = study.tips(model, motion)[motion.t > 5.0, 2].max()
    assert low < -0.1


@pytest.mark.slow  # four motions whose every evaluation goes through JAX, and as many bodies to compile
def test_deformable_bodies(study, tmp_path):
    """Purpose: the same of deformable bodies, whose equilibria are those of rods, and the pictures.

    Poses along the affine and the bell-shaped curvature come from Magnus series of sixth order, in steps of their own,
    and bodies choose their points for a millionth of their forces.
    Motions differ by the damping of Green's strain, which for rods is that of the strain itself.
    """
    found = study.main(tmp_path)
    check_rests(found)
    assert found["PGC"]["stable"] and found["PGC"]["height of the tip at rest [m]"] < -0.2
    for name, accuracy in {"PGC": 1e-5, "PCC": 1e-9, "PAC": 1e-5, "PCS": 1e-9}.items():
        assert found[name]["equilibrium from that of rods [m]"] < accuracy
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    for name in ("PCC", "PAC", "PCS"):
        assert found[name]["motion from that of rods, whose damping is another law [m]"] < 0.1
