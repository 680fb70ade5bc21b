"""Model predictive control of soft arms: a tip led round a circle, a swing-up, and a post to lean on."""

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


def test_an_arm_leans_on_a_post_to_reach_behind_it():
    """Purpose: the tip comes to millimetres of a goal that the arm alone stays far from, touching most of the time,
    within limits; a law that knows no post stays centimetres away, pressed as hard."""
    study = example("reach_behind")
    found = study.main(duration=0.8)
    knowing, other = (
        {key.partition(": ")[2]: x for key, x in found.items() if key.startswith(name)} for name in study.LAWS
    )
    assert found["nearest to the goal without the post [m]"] > 0.05
    near, far = found["knows the post: distance at the end [m]"], found["does not: distance at the end [m]"]
    assert near < 3e-3 and knowing["largest distance of the last 0.6 s [m]"] < 0.02
    assert far > 5.0 * near
    assert knowing["part of the time in contact [-]"] > 0.7 and knowing["push of the post at the end [N]"] > 0.5
    for law in (knowing, other):
        assert law["least tension [N]"] >= study.LOW and law["largest tension [N]"] <= study.HIGH
