"""Writing films."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from lissom.errors import ModelError
from lissom.portable import whole


def write_mp4(path: Path, frames: Iterator[np.ndarray], fps: float, size: tuple[int, int]) -> None:
    """Write frames (high, wide, 3) of numbers from 0 to 255 as a film in H.264.

    Args:
        path: the file. frames: the pictures. fps: of them a second. size: width and height, even numbers.
    Raises:
        ModelError: imageio-ffmpeg is missing, or what its coder says.
    """
    try:
        from imageio_ffmpeg import get_ffmpeg_exe
    except ImportError:
        raise ModelError("film: an .mp4 film needs imageio-ffmpeg: pip install 'lissom[render]'") from None
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}", "-r", f"{fps:.12g}", "-i", "-"]
    coded = ["-c:v", "libx264", "-crf", "18", "-pix_fmt", "yuv420p", "-movflags", "+faststart", "-an", "-f", "mp4"]
    with whole(path) as new:
        command = [get_ffmpeg_exe(), "-y", "-v", "error", *raw, *coded, str(new)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as coder:
            with suppress(BrokenPipeError):  # when it has stopped, it says why
                for frame in frames:
                    coder.stdin.write(np.ascontiguousarray(frame).tobytes())  # pyright: ignore[reportOptionalMemberAccess]
            words = coder.communicate()[1].decode(errors="replace").strip()
        if coder.returncode != 0:
            raise ModelError(f"film: ffmpeg could not write {path.name!r} ({words})")
