"""Model predictive control of soft arms: a tip led round a circle beside other laws, and a swing-up."""

from gallery.examples import example


def test_a_tip_is_led_round_a_circle_within_limits():
    """Purpose: the tip follows to millimetres with tensions within their limits, several times nearer than under laws
    that follow the lengths of tendons, whose limits they do not know."""
    study = example("cdm_tracking")
    found = study.main(duration=1.0)
    assert found["predictive: mean error [m]"] < 5e-3
    assert found["predictive: largest error [m]"] < 8e-3
    for law in study.LAWS:
        assert found[f"{law}: least tension [N]"] >= study.LOW and found[f"{law}: largest tension [N]"] <= study.HIGH
    for law in study.LAWS[1:]:
        assert found[f"{law}: mean error [m]"] > 2.5 * found["predictive: mean error [m]"]


def test_a_soft_arm_swings_up_and_stands():
    """Purpose: with half the torque that would hold it out the arm swings back first, then up, and stays."""
    found = example("swing_up").main()
    assert found["distance from upright at the end [m]"] < 1e-6
    assert found["largest torque, of what holds it out [-]"] < 0.5 + 1e-9
    assert found["largest swing back [rad]"] > 0.5 and found["largest bend [rad]"] > 0.2
    assert found["upright after [s]"] < 2.0
