"""What all pictures share: colours, and how a figure is finished."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lissom.portable import write_whole
from lissom.robot.checks import require

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
    """The figure, written to `path` where there is one.

    Raises:
        ModelError: the ending is none that matplotlib writes. OSError: the file cannot be written.
    """
    if path is not None:
        file = Path(path)
        kind, known = file.suffix.lstrip(".").lower() or "png", sorted(figure.canvas.get_supported_filetypes())
        require(kind in known, "picture", f"must end in one of {', '.join(f'.{end}' for end in known)}", file.name)
        file = file if file.suffix else file.with_name(f"{file.name}.{kind}")
        write_whole(file, lambda stream: figure.savefig(stream, format=kind, dpi=_DPI, facecolor="white"))
    return figure
