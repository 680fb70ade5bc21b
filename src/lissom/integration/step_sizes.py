"""How long adaptive steps are, for those that Python drives: (1) of paced_steps, with its numbers."""

from __future__ import annotations

import numpy as np

from lissom.integration.paced_steps import CUT, GAIN, GROW, OWN_SHARE, SAFETY, SHARE_BEFORE, SHRINK, TINY_ERROR, WHOLE


def size_towards(left: float, size: float) -> float:
    """Of a step where so much is left to a stop and `size` is wanted; two where one would leave a short rest."""
    return left if size >= left * WHOLE.value else min(size, 0.5 * left)


def change_of_size(error: float, before: float, power: int, part: float) -> float:
    """By what the size of steps changes behind one that was kept; `part` of that size was taken."""
    change = SAFETY.value * max(error, TINY_ERROR.value) ** (-OWN_SHARE.value / power)
    if before < 0.0:
        change = min(change, 1.0)
    else:
        change *= max(before, TINY_ERROR.value) ** (SHARE_BEFORE.value / power)
    if part < WHOLE.value:
        change = max(change * part, 1.0)
    return 1.0 if 1.0 < change < GAIN.value else min(change, GROW.value)


def cut_of_size(error: float, power: int) -> float:
    """By what a step that was not kept is cut: for its error, or, where that is infinite, as none was found."""
    return CUT.value if np.isinf(error) else max(SHRINK.value, SAFETY.value * error ** (-1.0 / power))
