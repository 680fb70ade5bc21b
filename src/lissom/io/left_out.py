"""The parts of a file that an import leaves out, collected in one warning."""

from __future__ import annotations

import warnings
from typing import final

from lissom.errors import AccuracyWarning, LeftOutWarning

_SHOWN = 8  # places that a warning names for each kind


@final
class LeftOut:
    """Parts of a file that the robot does not have, by kind and place.

    Args:
        source: name of the file.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._places: dict[str, list[str]] = {}
        self._fits: dict[str, tuple[int, float]] = {}

    def add(self, kind: str, place: str) -> None:
        """Add a part of a kind, at a place in the file."""
        self._places.setdefault(kind, []).append(place)

    def fitted(self, link: str, count: int, gap: float) -> None:
        """Add a link whose collision mesh became `count` balls with a largest gap [m]."""
        before = self._fits.get(link, (0, 0.0))
        self._fits[link] = (before[0] + count, max(before[1], gap))

    def warn(self) -> None:
        """Issue one warning of the parts that were left out, and one of balls in place of meshes."""
        if self._places:
            kinds = [f"{kind} of {_listed(places)}" for kind, places in self._places.items()]
            warnings.warn(f"{self.source}: left out: {'; '.join(kinds)}", LeftOutWarning, stacklevel=3)
        if self._fits:
            balls = [f"{link!r} {count}, up to {1e3 * gap:.2g} mm away" for link, (count, gap) in self._fits.items()]
            text = f"{self.source}: balls replace collision meshes: {_listed(balls)}"
            warnings.warn(f"{text}; more balls come nearer, balls=0 makes none", AccuracyWarning, stacklevel=3)


def _listed(places: list[str]) -> str:
    more = len(places) - _SHOWN
    return ", ".join(places[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
