"""What all pictures share: colours, and how a figure is finished."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def rgb(color: str) -> np.ndarray:
    """Red, green and blue from 0 to 1 of "#rrggbb"."""
    return np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0


INK = "#333333"
FAINT = "#b8bcc4"
GRID = "#e6e8ec"
# of Okabe and Ito, which colour-blind readers tell apart; their order has neighbours differ in lightness, for print
SERIES = ("#0072b2", "#d55e00", "#009e73", "#000000", "#cc79a7", "#56b4e9", "#8c6d00", "#6b6f76")
PALETTE = tuple(rgb(color) for color in SERIES)
_DPI = 200


def finish(figure: Any, path: str | Path | None) -> Figure:
    """The figure, written to `path` where there is one."""
    if path is not None:
        figure.savefig(path, dpi=_DPI, facecolor="white")
    return figure
