"""Marks on pictures: scale bar, axes of the world, names of tendons, colour bar, time, title."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, final

import numpy as np

from lissom.viewing.camera import Camera
from lissom.viewing.colors import INK, ramp

_AXES = ("#c0392b", "#2e7d46", "#2456a6")
_FINER = 3  # pixels drawn for each pixel of the picture, along each side


def nice_number(most: float) -> float:
    """Largest of 1, 2 and 5 times a power of ten that is not above `most`."""
    power = 10.0 ** np.floor(np.log10(max(most, 1e-300)))
    return float(power * max(k for k in (1.0, 2.0, 5.0) if k * power <= most * (1.0 + 1e-9)))


@lru_cache(maxsize=16)
def _font(size: int, bold: bool = False) -> Any:
    from matplotlib import get_data_path
    from PIL import ImageFont

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(get_data_path()) / "fonts" / "ttf" / name), size)


@final
class Labels:
    """Marks over a picture. Their unit of length follows its width."""

    def __init__(self, camera: Camera) -> None:
        from PIL import Image, ImageDraw

        self.camera = camera
        width, height = camera.size
        self._image = Image.new("RGBA", (_FINER * width, _FINER * height), (255, 255, 255, 0))
        self._draw = ImageDraw.Draw(self._image)
        self.unit = _FINER * min(width, 2.0 * height) / 100.0
        self._rows, self._has_bar = 0.0, False

    def over(self, picture: np.ndarray) -> np.ndarray:
        """The picture (height, width, 3), values from 0 to 1, with the marks on it; integers from 0 to 255."""
        from PIL import Image

        marks = self._image.resize(self.camera.size, Image.Resampling.BOX)
        base = Image.fromarray(np.round(255.0 * np.clip(picture, 0.0, 1.0)).astype(np.uint8)).convert("RGBA")
        return np.asarray(Image.alpha_composite(base, marks).convert("RGB"))

    def text(self, x: float, y: float, words: str, anchor: str = "ls", size: float = 2.0, bold: bool = False) -> float:
        """Write words at a place in units from the lower left corner; returns their width in units."""
        font = _font(max(round(size * self.unit), 6), bold)
        self._draw.text(self._at(x, y), words, fill=INK, font=font, anchor=anchor)
        return self._draw.textlength(words, font=font) / self.unit

    def scale_bar(self) -> None:
        """Draw a length at the lower left."""
        pixels = self.camera.scale
        length = nice_number(0.2 * self.camera.size[0] / pixels)
        long = length * pixels * _FINER / self.unit
        self._line([(3.0, 3.0), (3.0 + long, 3.0)], 0.35)
        for x in (3.0, 3.0 + long):
            self._line([(x, 2.4), (x, 3.6)], 0.35)
        self.text(3.0 + 0.5 * long, 4.3, _length(length), "ms")

    def directions(self, gravity: np.ndarray) -> None:
        """Draw the axes of the world at the lower right, and gravity beside them."""
        right, up, eye = self.camera.axes
        centre = np.array([self.width - 6.5, 4.6])
        order = np.argsort(eye)  # axes towards the eye last
        for k in order.tolist():
            tip = 3.2 * np.array([right[k], up[k]])
            if np.linalg.norm(tip) > 0.6:
                self._arrow(centre, centre + tip, _AXES[k])
                away = centre + tip + 1.2 * tip / np.linalg.norm(tip)
                self._draw.text(self._at(*away), "xyz"[k], fill=_AXES[k], font=self._small(True), anchor="mm")
        size = float(np.linalg.norm(gravity))
        seen = np.array([right @ gravity, up @ gravity]) / max(size, 1e-300)
        if np.linalg.norm(seen) > 0.2:
            start = centre + np.array([-7.0, 1.0])
            self._arrow(start - 1.8 * seen, start + 1.8 * seen, INK)
            self._draw.text(self._at(start[0] - 1.0, start[1]), "g", fill=INK, font=self._small(True), anchor="rm")

    def title(self, words: str) -> None:
        """Write a title at the upper left."""
        self.text(3.0, self.height - 4.2, words, size=2.4, bold=True)
        self._rows += 1.3

    def clock(self, t: float) -> None:
        """Write the time at the middle of the lower edge."""
        self.text(0.5 * self.width, 3.0, f"t = {t:.2f} s", "ms", 2.2)

    def key(self, colors: dict[str, np.ndarray], pixels: np.ndarray) -> None:
        """List names beside their colours, in the upper corner where they hide less of a robot at pixels (n, 3)."""
        long = 4.5 + max(self._draw.textlength(name, font=self._small(False)) for name in colors) / self.unit
        x, y = pixels[:, 0] * _FINER / self.unit, self.height - pixels[:, 1] * _FINER / self.unit
        tall = y > self.height - 4.0 - 2.8 * (len(colors) + self._rows)
        at_left, at_right = ((x < 4.0 + long) & tall).sum(), ((x > self.width - 4.0 - long) & tall).sum()
        start = 3.0 if at_left <= at_right or self._has_bar else self.width - 3.0 - long
        for k, (name, color) in enumerate(colors.items()):
            row = self.height - 4.2 - 2.8 * (k + (self._rows if start == 3.0 else 0.0))
            self._line([(start, row + 0.7), (start + 2.6, row + 0.7)], 0.55, _painted(color))
            self.text(start + 3.4, row, name)

    def color_bar(self, low: float, high: float, label: str) -> None:
        """Draw the scale of colours at the right."""
        self._has_bar = True
        x, bottom, top = self.width - 9.0, 0.38 * self.height, 0.82 * self.height
        levels = np.linspace(0.0, 1.0, 128)
        edges = bottom + (top - bottom) * np.append(levels, levels[-1] + levels[1])
        for level, y, Y in zip(levels, edges, edges[1:]):
            self._draw.rectangle([self._at(x, Y), self._at(x + 1.6, y)], fill=_painted(ramp(level)))
        for value, y in ((low, bottom), (0.5 * (low + high), 0.5 * (bottom + top)), (high, top)):
            self.text(x + 2.1, y, f"{value:.3g}", "lm", 1.8)
        self.text(self.width - 1.5, top + 2.4, label, "rs")

    @property
    def width(self) -> float:
        """Width of the picture in units."""
        return self._image.width / self.unit

    @property
    def height(self) -> float:
        """Height of the picture in units."""
        return self._image.height / self.unit

    def _small(self, bold: bool) -> Any:
        return _font(max(round(2.0 * self.unit), 6), bold)

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return x * self.unit, self._image.height - y * self.unit

    def _line(self, points: list[tuple[float, float]], width: float, color: Any = INK) -> None:
        self._draw.line([self._at(*p) for p in points], fill=color, width=max(round(width * self.unit), 1))

    def _arrow(self, start: np.ndarray, stop: np.ndarray, color: str) -> None:
        along = stop - start
        size = float(np.linalg.norm(along))
        if size < 1e-9:
            return
        along, neck = along / size, stop - min(1.5, 0.6 * size) * along / size
        across = 0.55 * np.array([-along[1], along[0]])
        self._line([tuple(start), tuple(neck)], 0.4, color)
        self._draw.polygon([self._at(*p) for p in (stop, neck + across, neck - across)], fill=color)


def _painted(color: np.ndarray) -> tuple[int, ...]:
    return tuple(np.round(255 * color).astype(int).tolist())


def _length(length: float) -> str:
    for unit, size in (("m", 1.0), ("mm", 1e-3), ("µm", 1e-6)):
        if length >= 0.9995 * (0.1 if unit == "m" else 1.0) * size:
            return f"{length / size:g} {unit}"
    return f"{length:g} m"
