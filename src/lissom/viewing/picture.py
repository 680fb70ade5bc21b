"""Pictures as arrays that notebooks show."""

from __future__ import annotations

from io import BytesIO
from typing import Any, final

import numpy as np


@final
class Picture(np.ndarray):
    """A picture, shape (height, width, 3), integers from 0 to 255: an array of NumPy that a notebook shows."""

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
        """Results of arithmetic are plain arrays and numbers."""
        plain = np.asarray(array)
        return plain[()] if plain.ndim == 0 else plain

    def _repr_png_(self) -> bytes | None:
        """The picture as PNG; None for arrays that are not pictures, such as parts and sums."""
        if self.ndim != 3 or self.shape[2] != 3 or self.dtype != np.uint8 or not self.size:
            return None
        from PIL import Image

        out = BytesIO()
        Image.fromarray(np.asarray(self)).save(out, format="PNG")
        return out.getvalue()
