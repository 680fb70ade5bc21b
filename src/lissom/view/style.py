"""What all pictures share: colours, and how a figure is finished."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#333333"
FAINT = "#b8bcc4"
GRID = "#e6e8ec"
SERIES = ("#2f6db3", "#d1603d", "#3f9b6c", "#8a5fb0", "#c79a1e", "#3aa6b9", "#b4476f", "#6b6f76")
_DPI = 200


def finish(figure: Any, path: str | Path | None) -> Figure:
    """The figure, written to `path` where there is one."""
    if path is not None:
        figure.savefig(path, dpi=_DPI, facecolor="white")
    return figure
