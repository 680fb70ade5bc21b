"""Former names of arguments, of one version ago: each raises an error that names the new one."""

import inspect
from operator import attrgetter

import pytest

import lissom as ls

FORMER = [
    ("rollout", "scheme", "method"),
    ("step_derivatives", "scheme", "method"),
    ("feedback_rollout", "scheme", "method"),
    ("fit", "scheme", "method"),
    ("ExtendedKalmanFilter", "scheme", "method"),
    ("crocoddyl.action", "scheme", "method"),
    ("crocoddyl.problem", "scheme", "method"),
    ("aligator.stage", "scheme", "method"),
    ("aligator.problem", "scheme", "method"),
    ("jax.rollout", "scheme", "method"),
    ("torch.rollout", "scheme", "method"),
    ("plot_shapes", "trace", "trail"),
    ("static_reference", "q", "q0"),
    ("static_reference", "u", "u0"),
    ("ModelPredictiveControl.plan", "u", "u0"),
    ("ModelPredictiveControl.controller", "u", "u0"),
]


@pytest.mark.parametrize(("name", "former", "new"), FORMER)
def test_former_names_are_refused_with_the_new_one(name, former, new):
    """The error says both names; the signature has the new one alone, for tab completion too."""
    public = attrgetter(name)(ls)
    own = inspect.signature(public).parameters
    assert new in own and former not in own
    with pytest.raises(TypeError, match=f"{public.__name__}: '{former}' is called '{new}' now"):
        public(**{former: None})


def test_names_that_moved_into_a_namespace_say_so():
    """A name that was flat one version ago raises an error with its new place; an unknown name an ordinary one."""
    for former, new in ls._FORMER.items():
        attrgetter(new)(ls)
        with pytest.raises(AttributeError, match=f"lissom.{former} is called lissom.{new} now"):
            getattr(ls, former)


def test_former_fields_are_refused_with_the_new_one():
    """So do fields of results, while an unknown one is an ordinary AttributeError."""
    motion = object.__new__(ls.Rollout)
    with pytest.raises(AttributeError, match="Rollout: 'scheme' is called 'method' now"):
        _ = motion.scheme
    with pytest.raises(AttributeError, match="'Rollout' object has no attribute 'skeme'"):
        _ = motion.skeme


@pytest.mark.parametrize("name", ["continuation", "branches"])
def test_a_former_order_is_refused(name):
    """Where u and q0 have changed places they are given by name: taken for each other they may have the same size."""
    with pytest.raises(TypeError, match=f"{name}: give u and q0 by name, u= and q0="):
        getattr(ls, name)(None, [0.0])
